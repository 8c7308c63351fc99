/* device/hardware_machine.c: the machine around the hardware: its kernel, whether this is a container, which groups and
 * packages it has. It is read once for a view, and only where something is wrong. */
#include "device/hardware.h"

#include "os/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECURE_BOOT "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

/* ---- containers and the kernel */

/* What stands in the paths of control groups in containers, where these are not of a namespace of their own. */
static bool is_container(gpuhal_hardware_view *view)
{
    static const char *const words[] = {"docker", "libpod", "kubepods", "containerd", "lxc", "crio"};
    char text[2048];
    if (gpuhal_hardware_is_there(view, "/.dockerenv") || gpuhal_hardware_is_there(view, "/run/.containerenv") ||
        gpuhal_hardware_is_there(view, "/run/systemd/container")) {
        return true;
    }
    (void)gpuhal_hardware_bytes(view, text, sizeof text, "/proc/self/cgroup");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(text, words[i])) {
            return true;
        }
    }
    return false;
}

/* Debian and its kin, Fedora and its kin, …, by the first that matches. */
static gpuhal_hardware_system system_of(gpuhal_hardware_view *view)
{
    static const struct {
        const char *word;
        gpuhal_hardware_system system;
    } systems[] = {
        {"ubuntu", GPUHAL_SYSTEM_UBUNTU}, {"debian", GPUHAL_SYSTEM_DEBIAN}, {"fedora", GPUHAL_SYSTEM_FEDORA},
        {"rhel", GPUHAL_SYSTEM_FEDORA},   {"arch", GPUHAL_SYSTEM_ARCH},     {"suse", GPUHAL_SYSTEM_SUSE},
    };
    char text[2048], id[64], like[96];
    (void)gpuhal_hardware_bytes(view, text, sizeof text, "/etc/os-release");
    (void)gpuhal_hardware_value(text, "ID", id, sizeof id);
    (void)gpuhal_hardware_value(text, "ID_LIKE", like, sizeof like);
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        if (strstr(id, systems[i].word) || strstr(like, systems[i].word)) {
            return systems[i].system;
        }
    }
    return GPUHAL_SYSTEM_UNKNOWN;
}

const gpuhal_hardware_machine *gpuhal_hardware_machine_of(gpuhal_hardware_view *view)
{
    gpuhal_hardware_machine *machine = &view->machine;
    char variable[8]; /* four bytes of attributes, and the value */
    if (!machine->is_read) {
        machine->is_read = true;
        machine->is_container = is_container(view);
        machine->system = system_of(view);
        (void)gpuhal_hardware_line(view, machine->release, sizeof machine->release, "/proc/sys/kernel/osrelease");
        machine->secure_boot =
            gpuhal_hardware_bytes(view, variable, sizeof variable, SECURE_BOOT) == 5 && variable[4] == 1;
        for (uint32_t i = 0; i < view->count; i++) {
            machine->is_usable = machine->is_usable || view->list[i].info.device_count > 0;
        }
    }
    return machine;
}

/* ---- groups */

/* Without the system's name services, which load libraries and ask networks. */
void gpuhal_hardware_group(gpuhal_hardware_view *view, uint32_t number, char *to, size_t bytes)
{
    char text[16384], wanted[16];
    (void)gpuhal_hardware_bytes(view, text, sizeof text, "/etc/group");
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

/* Pieces overlap, so that a word that lies across two of them is found. */
bool gpuhal_hardware_contains(gpuhal_hardware_view *view, const char *word, const char *format, ...)
{
    enum { PIECE = 32 << 10 };
    char path[512];
    const size_t length = strlen(word);
    const size_t root = (size_t)snprintf(path, sizeof path, "%s", view->root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + root, sizeof path - root, format, arguments);
    va_end(arguments);
    char *piece = malloc(PIECE);
    bool found = false;
    size_t got = piece ? PIECE : 0;
    view->error = piece || view->error ? view->error : ENOMEM;
    for (uint64_t offset = 0; got == PIECE && !found; offset += PIECE - length) {
        found = gpuhal_os_file_read_at(path, offset, piece, PIECE, &got) == 0 &&
                has_word(piece, got, word, length);
    }
    free(piece);
    return found;
}

/* "blacklist nvidia", or "install nvidia /bin/false". */
static bool blocks(const char *text, const char *module)
{
    char line[128], first[64], second[64];
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        const int words = sscanf(line, "%63s %63s", first, second);
        if (words == 2 && strcmp(second, module) == 0 &&
            (strcmp(first, "blacklist") == 0 ||
             (strcmp(first, "install") == 0 && (strstr(line, "/bin/false") || strstr(line, "/bin/true"))))) {
            return true;
        }
    }
    return false;
}

/* "modprobe.blacklist=nvidia,nouveau" as a word of the kernel's command line. */
static bool is_named(const char *line, const char *option, const char *module)
{
    const char *at = strstr(line, option);
    const size_t length = strlen(module);
    for (at = at ? at + strlen(option) : NULL; at && *at && *at != ' '; at += strcspn(at, ", "), at += *at == ',') {
        if (strncmp(at, module, length) == 0 && strchr(", ", at[length])) {
            return true;
        }
    }
    return false;
}

bool gpuhal_hardware_is_blocked(gpuhal_hardware_view *view, const char *module, char *out_file, size_t bytes)
{
    static const char *const folders[] = {"/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d",
                                          "/lib/modprobe.d"};
    char text[8192];
    (void)gpuhal_hardware_line(view, text, sizeof text, "/proc/cmdline");
    if (is_named(text, "modprobe.blacklist=", module) || is_named(text, "module_blacklist=", module) ||
        (strcmp(module, "nvidia") != 0 && strstr(text, "nomodeset"))) {
        gpuhal_hardware_text(out_file, bytes, "the kernel's command line");
        return true;
    }
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        char **names;
        size_t count;
        bool found = false;
        (void)gpuhal_hardware_names(view, &names, &count, "%s", folders[f]);
        for (size_t i = 0; i < count && !found; i++) {
            const size_t length = strlen(names[i]);
            if (length < 5 || strcmp(names[i] + length - 5, ".conf") != 0) {
                continue; /* modprobe does not read it either */
            }
            (void)gpuhal_hardware_bytes(view, text, sizeof text, "%s/%s", folders[f], names[i]);
            found = blocks(text, module);
            if (found) {
                gpuhal_hardware_text(out_file, bytes, "%s/%s", folders[f], names[i]);
            }
        }
        gpuhal_os_names_free(names, count);
        if (found) {
            return true;
        }
    }
    return false;
}
