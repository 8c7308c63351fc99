/* node/hardware_machine.c: reads facts about the machine other than its hardware: the kernel, the distribution, the
 * container or job that started this process, groups and module settings. A survey reads them only if a check needs
 * them, and the facts in gpuhal_hardware_machine only once. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECURE_BOOT "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* ---- the system */

/* A derived distribution is treated as the first matching distribution in the table. */
static gpuhal_hardware_system system_of(gpuhal_hardware_survey *survey)
{
    static const struct {
        const char *word;
        gpuhal_hardware_system system;
    } systems[] = {
        {"ubuntu", GPUHAL_SYSTEM_UBUNTU}, {"debian", GPUHAL_SYSTEM_DEBIAN}, {"fedora", GPUHAL_SYSTEM_FEDORA},
        {"rhel", GPUHAL_SYSTEM_FEDORA},   {"arch", GPUHAL_SYSTEM_ARCH},     {"suse", GPUHAL_SYSTEM_SUSE},
    };
    char text[2048], id[64], like[96];
    (void)gpuhal_hardware_bytes(survey, text, sizeof text, "/etc/os-release");
    (void)gpuhal_hardware_value(text, "ID", id, sizeof id);
    (void)gpuhal_hardware_value(text, "ID_LIKE", like, sizeof like);
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        if (strstr(id, systems[i].word) || strstr(like, systems[i].word)) {
            return systems[i].system;
        }
    }
    return GPUHAL_SYSTEM_UNKNOWN;
}

const gpuhal_hardware_machine *gpuhal_hardware_machine_of(gpuhal_hardware_survey *survey)
{
    gpuhal_hardware_machine *machine = &survey->machine;
    char variable[8]; /* four attribute bytes, followed by the value */
    if (!machine->is_read) {
        machine->is_read = true;
        machine->system = system_of(survey);
        (void)gpuhal_hardware_line(survey, machine->release, sizeof machine->release, "/proc/sys/kernel/osrelease");
        machine->is_windows = strstr(machine->release, "icrosoft");
        machine->place = gpuhal_hardware_place_of(survey, machine->is_windows);
        gpuhal_hardware_find_who(survey, machine);
        machine->secure_boot =
            gpuhal_hardware_bytes(survey, variable, sizeof variable, SECURE_BOOT) == 5 && variable[4] == 1;
        for (uint32_t i = 0; i < survey->count; i++) {
            machine->is_usable = machine->is_usable || survey->list[i].info.device_count > 0;
        }
    }
    return machine;
}

/* ---- groups */

/* Reads the file directly, because the system's name services load libraries and query the network. */
void gpuhal_hardware_group(gpuhal_hardware_survey *survey, uint32_t number, char *to, size_t bytes)
{
    char text[16384], wanted[16];
    (void)gpuhal_hardware_bytes(survey, text, sizeof text, "/etc/group");
    const int length = snprintf(wanted, sizeof wanted, ":%u:", number);
    gpuhal_hardware_text(to, bytes, "%u", number);
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        const char *password = memchr(line, ':', strcspn(line, "\n"));
        const char *id = password ? strchr(password + 1, ':') : NULL;
        if (id && strncmp(id, wanted, (size_t)length) == 0) {
            gpuhal_hardware_text(to, bytes, "%.*s", (int)(password - line), line);
            return;
        }
    }
}

/* ---- modules */

static bool has_word(const char *piece, size_t bytes, const char *word, size_t length)
{
    const char *at = piece;
    while (bytes >= length && (at = memchr(at, word[0], bytes - length + 1 - (size_t)(at - piece))) != NULL) {
        if (memcmp(at, word, length) == 0) {
            return true;
        }
        at++;
    }
    return false;
}

/* Chunks overlap, so that a word across a boundary is found. */
bool gpuhal_hardware_contains(gpuhal_hardware_survey *survey, const char *word, const char *format, ...)
{
    enum { PIECE = 32 << 10 };
    char path[512];
    const size_t length = strlen(word);
    const size_t root = (size_t)snprintf(path, sizeof path, "%s", survey->root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + root, sizeof path - root, format, arguments);
    va_end(arguments);
    char *piece = malloc(PIECE);
    bool found = false;
    size_t got = piece ? PIECE : 0;
    survey->error = piece || survey->error ? survey->error : ENOMEM;
    for (uint64_t offset = 0; got == PIECE && !found; offset += PIECE - length) {
        found = gpuhal_os_file_read_at(path, offset, piece, PIECE, &got) == 0 && has_word(piece, got, word, length);
    }
    free(piece);
    return found;
}

/* "nvidia-drm" and "nvidia_drm" are the same module. */
static bool is_module(const char *word, size_t length, const char *module)
{
    bool same = strlen(module) == length;
    for (size_t i = 0; same && i < length; i++) {
        same = word[i] == module[i] || (strchr("-_", word[i]) && strchr("-_", module[i]));
    }
    return same;
}

/* Parses one line of a modprobe configuration file. "blacklist nvidia" only prevents the kernel from loading the module
 * automatically. "install nvidia /bin/false" and "alias nvidia off" also stop modprobe, and take precedence. Returns
 * whether the line also stops modprobe. */
static bool find_block(gpuhal_hardware_survey *survey, const char *line, const char *file, const char *module,
                       gpuhal_hardware_block *out)
{
    char first[16] = "", second[64] = "", third[64] = "";
    (void)sscanf(line, "%15s %63s %63s", first, second, third);
    const char *command = gpuhal_hardware_leaf(third);
    const bool is_off = strcmp(first, "alias") == 0 && strcmp(third, "off") == 0;
    const bool is_nothing =
        strcmp(first, "install") == 0 && (strcmp(command, "false") == 0 || strcmp(command, "true") == 0);
    const bool is_own = is_module(second, strlen(second), module), is_list = strcmp(first, "blacklist") == 0;
    if (!is_own || (!is_off && !is_nothing && (!is_list || *out->where))) {
        return false;
    }
    gpuhal_hardware_text(out->where, sizeof out->where, "%s", file);
    if (is_off && gpuhal_hardware_machine_of(survey)->system == GPUHAL_SYSTEM_UBUNTU) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "# changes the system's files; then restart the machine:");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "sudo prime-select %s", module);
    } else if (is_off || is_nothing) {
        const bool is_plain =
            file[strspn(file, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-")] == 0;
        if (is_plain) {
            gpuhal_hardware_text(out->fix, sizeof out->fix, "# takes that line out of the file:");
            gpuhal_hardware_add_line(out->fix, sizeof out->fix, "sudo sed -i '/^\\s*%s\\s\\+%s\\s/d' %s", first, second,
                                     file);
            gpuhal_hardware_add_line(out->fix, sizeof out->fix, "sudo modprobe %s", module);
        } else {
            gpuhal_hardware_text(out->fix, sizeof out->fix, "grep -r '%s *%s' /etc/modprobe.d", first, second);
            gpuhal_hardware_add_line(out->fix, sizeof out->fix, "# take that line out, then: sudo modprobe %s", module);
        }
    } else {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo modprobe %s", module);
    }
    return is_off || is_nothing;
}

/* Matches "modprobe.blacklist=nvidia,nouveau" in the kernel's command line. */
static bool is_named(const char *line, const char *option, const char *module)
{
    const char *at = strstr(line, option);
    bool found = false;
    for (at = at ? at + strlen(option) : NULL; at && *at && *at != ' ' && !found; at += *at == ',') {
        const size_t length = strcspn(at, ", ");
        found = is_module(at, length, module);
        at += length;
    }
    return found;
}

static void find_block_at_boot(gpuhal_hardware_survey *survey, const char *module, gpuhal_hardware_block *out)
{
    char line[4096];
    (void)gpuhal_hardware_line(survey, line, sizeof line, "/proc/cmdline");
    const bool is_left_out = is_named(line, "modprobe.blacklist=", module);
    const char *word = is_named(line, "module_blacklist=", module)                  ? "module_blacklist"
                       : strcmp(module, "nvidia") != 0 && strstr(line, "nomodeset") ? "nomodeset"
                                                                                    : NULL;
    if (word) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "grep -r %s /etc/default/grub /boot/loader", word);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "# take it out there, and restart the machine");
    } else if (is_left_out) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo modprobe %s", module);
    }
    gpuhal_hardware_text(out->where, sizeof out->where, "%s", word || is_left_out ? "the kernel's command line" : "");
}

static bool find_block_in(gpuhal_hardware_survey *survey, const char *file, const char *module,
                          gpuhal_hardware_block *out)
{
    char text[8192], line[160];
    bool found = false;
    (void)gpuhal_hardware_bytes(survey, text, sizeof text, "%s", file);
    for (char *at = text; (at = strstr(at, "\\\n")) != NULL;) {
        memcpy(at, "  ", 2); /* the line continues */
    }
    for (const char *at = text; *at && !found; at += strcspn(at, "\n"), at += *at == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        found = find_block(survey, line, file, module, out);
    }
    return found;
}

bool gpuhal_hardware_is_blocked(gpuhal_hardware_survey *survey, const char *module, gpuhal_hardware_block *out)
{
    static const char *const folders[] = {"/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d",
                                          "/lib/modprobe.d"};
    bool found = false;
    *out = (gpuhal_hardware_block){0};
    find_block_at_boot(survey, module, out);
    for (size_t f = 0; f < sizeof folders / sizeof *folders && !found; f++) {
        char **names, file[128];
        size_t count;
        (void)gpuhal_hardware_names(survey, &names, &count, "%s", folders[f]);
        for (size_t i = 0; i < count && !found; i++) {
            const size_t length = strlen(names[i]);
            const bool is_read = length > 5 && strcmp(names[i] + length - 5, ".conf") == 0; /* by modprobe */
            snprintf(file, sizeof file, "%s/%.90s", folders[f], names[i]);
            found = is_read && find_block_in(survey, file, module, out);
        }
        gpuhal_os_names_free(names, count);
    }
    return *out->where != 0;
}
