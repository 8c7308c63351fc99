/* registry/key.c: see key.h. A line is made anew from what its own first words name, and compared. */
#include "registry/key.h"

#include "core/text.h"
#include "os/os.h"
#include "registry/checksum.h"
#include "registry/limit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_FILE_BYTES  4096u
#define MAPS_BYTES_MAX    (4u << 20)
#define FOLDER_NAMES_MAX  4096u
/* A folder for each GPU, with one for each part of it. */
#define NVIDIA_CAPABILITIES "/proc/driver/nvidia/capabilities"

/* Drivers of the kernel whose devices are GPUs, or may be after a rebinding. */
static const char *const gpu_drivers[] = {"nvidia", "nouveau", "amdgpu", "radeon", "i915", "xe", "vfio-pci"};
/* What the dynamic loader goes by for every program. */
static const char *const library_variables[] = {"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"};
/* Folders of device nodes of GPUs, and how the names of such nodes begin. */
static const struct {
    const char *folder, *prefix;
} gpu_nodes[] = {
    {"/dev", "nvidia"}, {"/dev", "kfd"}, {"/dev", "dxg"}, {"/dev", "mali"}, {"/dev", "kgsl"}, {"/dev/dri", ""}, {"/dev/accel", ""},
    {"/dev/nvidia-caps", ""},
};

/* ---- files */

static char *words_of(const gpuhal_file_state *state)
{
    return gpuhal_text_format("%" PRIu64 "-%" PRIu64 "-%" PRIu64 "-%" PRId64 "-%" PRId64, state->device, state->inode, state->bytes,
                              state->modified_ns, state->changed_ns);
}

char *gpuhal_key_identity(const char *path)
{
    gpuhal_file_state state;
    return gpuhal_os_file_state(path, &state) ? NULL : words_of(&state);
}

/* A folder changes with what lies in it: a file that is written over does not change the folder's own times. */
static char *folder_line(const char *path, const gpuhal_file_state *state)
{
    char **names;
    size_t count;
    uint32_t sum = 0;
    bool failed = false;
    if (gpuhal_os_directory_names(path, &names, &count)) {
        return gpuhal_text_format("folder unreadable %s", path);
    }
    for (size_t i = 0; i < count && i < FOLDER_NAMES_MAX && !failed; i++) {
        gpuhal_file_state inner;
        char *inner_path = gpuhal_text_format("%s/%s", path, names[i]);
        char *words = inner_path && gpuhal_os_file_state(inner_path, &inner) == 0 ? words_of(&inner) : gpuhal_text_copy("absent");
        failed = !inner_path || !words;
        if (!failed) {
            sum = gpuhal_checksum(sum, names[i], strlen(names[i]) + 1);
            sum = gpuhal_checksum(sum, words, strlen(words));
        }
        free(words);
        free(inner_path);
    }
    gpuhal_os_names_free(names, count);
    char *own = failed ? NULL : words_of(state);
    char *line = own ? gpuhal_text_format("folder %s-%08" PRIx32 " %s", own, sum, path) : NULL;
    free(own);
    return line;
}

/* Of a device. Rights count: they decide what a driver answers. `seen` is where it is found. NULL without memory. */
static char *words_of_node(const char *seen, const gpuhal_file_state *state)
{
    return gpuhal_text_format("%" PRIu64 "-%" PRIu64 "-%" PRIo32 "-%" PRIu32 "-%" PRIu32 "-%s", state->node,
                              state->directory ? 0 : state->inode, state->mode, state->owner, state->group,
                              gpuhal_os_may_use(seen) ? "rw" : "no");
}

/* The times of what the kernel makes up are those of the last time that it did. */
static bool is_made_up(const char *path)
{
    return strncmp(path, "/sys/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

/* NULL without memory. */
static char *file_line(const char *path)
{
    gpuhal_file_state state;
    if (gpuhal_os_file_state(path, &state)) {
        return gpuhal_text_format("file absent %s", path);
    }
    if (is_made_up(path)) {
        return gpuhal_text_format("file there %s", path);
    }
    if (state.directory) {
        return folder_line(path, &state);
    }
    char *words = state.node != 0 ? words_of_node(path, &state) : words_of(&state);
    char *line = words ? gpuhal_text_format("file %s %s", words, path) : NULL;
    free(words);
    return line;
}

static char *variable_line(const char *name)
{
    const char *value = gpuhal_os_environment(name);
    return value ? gpuhal_text_format("variable %s=%s", name, value) : gpuhal_text_format("variable %s", name);
}

/* ---- the machine */

/* The first line of a small file below `root`; "" when it cannot be read. NULL without memory. */
static char *first_line_of(const char *root, const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    char *whole = gpuhal_text_format("%s%s", root, path);
    bool read = whole && gpuhal_os_file_read(whole, SMALL_FILE_BYTES, &text, &bytes) == 0;
    char *line = !whole ? NULL : read ? gpuhal_text_copy_range(text, strcspn(text, "\n")) : gpuhal_text_copy("");
    free(text);
    free(whole);
    return line;
}

static void add_file_word(const char *root, const char *word, const char *path, gpuhal_texts *to)
{
    char *value = first_line_of(root, path);
    gpuhal_texts_give(to, value ? gpuhal_text_format("%s %s", word, value) : NULL);
    free(value);
}

static void add_mounts(const char *root, gpuhal_texts *to)
{
    uint32_t owner;
    char *target = NULL;
    char *path = gpuhal_text_format("%s/proc/self/ns/mnt", root);
    if (path) {
        gpuhal_os_link_info(path, &owner, &target);
    }
    gpuhal_texts_give(to, path ? gpuhal_text_format("mounts %s", target ? target : "") : NULL);
    free(target);
    free(path);
}

/* Version by the module's own word, else by the checksum of its source. */
static char *module_version(const char *root, const char *driver)
{
    static const char *const files[] = {"version", "srcversion"};
    char *version = NULL;
    for (size_t i = 0; i < 2 && (!version || !*version); i++) {
        free(version);
        char *path = gpuhal_text_format("/sys/module/%s/%s", driver, files[i]);
        version = path ? first_line_of(root, path) : NULL;
        free(path);
        if (!version) {
            return NULL;
        }
    }
    return version;
}

static bool is_pci_address(const char *name)
{
    return strlen(name) >= 12 && strchr(name, ':') && strchr(name, '.');
}

static void add_driver(const char *root, const char *driver, gpuhal_texts *to)
{
    char **names;
    size_t count;
    char *folder = gpuhal_text_format("%s/sys/bus/pci/drivers/%s", root, driver);
    bool there = folder && gpuhal_os_directory_names(folder, &names, &count) == 0;
    char *version = there ? module_version(root, driver) : NULL;
    gpuhal_text line = {0};
    gpuhal_text_printf(&line, "driver %s %s", driver, version ? version : "");
    for (size_t i = 0; there && i < count; i++) {
        if (is_pci_address(names[i])) {
            gpuhal_text_printf(&line, " %s", names[i]);
        }
    }
    if (there || !folder) {
        gpuhal_texts_give(to, version ? gpuhal_text_take(&line) : NULL);
    }
    if (there) {
        gpuhal_os_names_free(names, count);
    }
    gpuhal_text_finish(&line);
    free(version);
    free(folder);
}

/* `path` is the node's, below `root`. NULL without memory. */
static char *node_line(const char *root, const char *path)
{
    gpuhal_file_state state;
    char *seen = gpuhal_text_format("%s%s", root, path), *words = NULL, *line = NULL;
    if (seen && gpuhal_os_file_state(seen, &state)) {
        line = gpuhal_text_format("node absent %s", path);
    } else if (seen) {
        words = words_of_node(seen, &state);
        line = words ? gpuhal_text_format("node %s %s", words, path) : NULL;
    }
    free(words);
    free(seen);
    return line;
}

static void add_nodes(const char *root, const char *folder, const char *prefix, gpuhal_texts *to)
{
    char **names;
    size_t count;
    char *path = gpuhal_text_format("%s%s", root, folder);
    to->failed = to->failed || !path;
    if (!path || gpuhal_os_directory_names(path, &names, &count)) {
        free(path);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], prefix, strlen(prefix)) == 0) {
            char *node = gpuhal_text_format("%s/%s", folder, names[i]);
            gpuhal_texts_give(to, node ? node_line(root, node) : NULL);
            free(node);
        }
    }
    gpuhal_os_names_free(names, count);
    free(path);
}

/* Parts of one GPU that NVIDIA's driver lists as devices (MIG): "instances gpu0 gi1 access ci0". */
static void add_instances_of(const char *root, const char *gpu, gpuhal_texts *to)
{
    char **outer = NULL, **inner = NULL;
    size_t outer_count = 0, inner_count = 0;
    gpuhal_text line = {0};
    char *folder = gpuhal_text_format("%s" NVIDIA_CAPABILITIES "/%s/mig", root, gpu);
    to->failed = to->failed || !folder;
    if (!folder || gpuhal_os_directory_names(folder, &outer, &outer_count)) {
        free(folder);
        return;
    }
    gpuhal_text_printf(&line, "instances %s", gpu);
    for (size_t i = 0; i < outer_count; i++) {
        gpuhal_text_printf(&line, " %s", outer[i]);
        char *path = gpuhal_text_format("%s/%s", folder, outer[i]);
        line.failed = line.failed || !path;
        if (path && gpuhal_os_directory_names(path, &inner, &inner_count) == 0) {
            for (size_t k = 0; k < inner_count; k++) {
                gpuhal_text_printf(&line, " %s", inner[k]);
            }
            gpuhal_os_names_free(inner, inner_count);
        }
        free(path);
    }
    gpuhal_texts_give(to, gpuhal_text_take(&line));
    gpuhal_text_finish(&line);
    gpuhal_os_names_free(outer, outer_count);
    free(folder);
}

static void add_instances(const char *root, gpuhal_texts *to)
{
    char **names;
    size_t count;
    char *folder = gpuhal_text_format("%s" NVIDIA_CAPABILITIES, root);
    to->failed = to->failed || !folder;
    if (folder && gpuhal_os_directory_names(folder, &names, &count) == 0) {
        for (size_t i = 0; i < count; i++) {
            add_instances_of(root, names[i], to);
        }
        gpuhal_os_names_free(names, count);
    }
    free(folder);
}

/* What this process is granted; and what another version of the library said need not be what this one would say. */
static void add_grants(const char *root, gpuhal_texts *to)
{
    uint64_t limit = gpuhal_limit_memory(root);
    gpuhal_texts_give(to, gpuhal_text_format("processors %" PRIu32, gpuhal_os_processors()));
    gpuhal_texts_give(to, limit == UINT64_MAX ? gpuhal_text_copy("memory unlimited") : gpuhal_text_format("memory %" PRIu64, limit));
    gpuhal_texts_add(to, "library " GPUHAL_VERSION);
}

void gpuhal_key_machine(const char *root, gpuhal_texts *out_lines)
{
    *out_lines = (gpuhal_texts){0};
    add_file_word(root, "boot", "/proc/sys/kernel/random/boot_id", out_lines);
    add_file_word(root, "kernel", "/proc/sys/kernel/osrelease", out_lines);
    add_file_word(root, "nvidia", "/proc/driver/nvidia/version", out_lines);
    add_mounts(root, out_lines);
    add_grants(root, out_lines);
    add_instances(root, out_lines);
    for (size_t i = 0; i < sizeof gpu_drivers / sizeof *gpu_drivers; i++) {
        add_driver(root, gpu_drivers[i], out_lines);
    }
    for (size_t i = 0; i < sizeof gpu_nodes / sizeof *gpu_nodes; i++) {
        add_nodes(root, gpu_nodes[i].folder, gpu_nodes[i].prefix, out_lines);
    }
}

/* ---- keys */

static void add_all(const gpuhal_texts *from, gpuhal_texts *to)
{
    for (size_t i = 0; i < from->count; i++) {
        gpuhal_texts_add(to, from->list[i]);
    }
    to->failed = to->failed || from->failed;
}

void gpuhal_key_make(const char *root, const gpuhal_key_request *request, const gpuhal_texts *machine, gpuhal_texts *out_lines)
{
    *out_lines = (gpuhal_texts){0};
    for (size_t i = 0; request->files && i < request->files->count; i++) {
        gpuhal_texts_give(out_lines, file_line(request->files->list[i]));
    }
    char *cache = gpuhal_text_format("%s/etc/ld.so.cache", root);
    gpuhal_texts_give(out_lines, cache ? file_line(cache) : NULL);
    for (size_t i = 0; i < sizeof library_variables / sizeof *library_variables; i++) {
        gpuhal_texts_give(out_lines, variable_line(library_variables[i]));
    }
    free(cache);
    for (size_t i = 0; request->variables && i < request->variables->count; i++) {
        gpuhal_texts_give(out_lines, variable_line(request->variables->list[i]));
    }
    add_all(machine, out_lines);
}

/* The line that would be written now for what this one is about; NULL for a line about the machine, and without memory. */
static char *line_again(const char *line, bool *out_own)
{
    const char *path = strncmp(line, "file ", 5) == 0     ? strchr(line + 5, ' ')
                       : strncmp(line, "folder ", 7) == 0 ? strchr(line + 7, ' ')
                                                          : NULL;
    *out_own = true;
    if (path) {
        return file_line(path + 1);
    }
    if (strncmp(line, "variable ", 9) == 0) {
        char *name = gpuhal_text_copy_range(line + 9, strcspn(line + 9, "="));
        char *again = name ? variable_line(name) : NULL;
        free(name);
        return again;
    }
    *out_own = false;
    return NULL;
}

static void say_why(char **out_why, const char *line)
{
    if (out_why) {
        *out_why = gpuhal_text_copy(line);
    }
}

bool gpuhal_key_is_current(const gpuhal_texts *lines, const gpuhal_texts *machine, char **out_why)
{
    size_t of_machine = 0;
    if (out_why) {
        *out_why = NULL;
    }
    for (size_t i = 0; i < lines->count; i++) {
        bool own = false;
        const char *line = lines->list[i];
        char *again = line_again(line, &own);
        const char *now = own ? again : of_machine < machine->count ? machine->list[of_machine++] : NULL;
        bool same = now && strcmp(now, line) == 0;
        free(again);
        if (!same) {
            say_why(out_why, line);
            return false;
        }
    }
    if (machine->failed || of_machine != machine->count) {
        say_why(out_why, of_machine < machine->count ? machine->list[of_machine] : "");
        return false;
    }
    return true;
}

/* Two keys may be current at once: that of a crash names fewer files than that of a listing. Then the later verdict counts. */
const gpuhal_known_plugin *gpuhal_key_find(const gpuhal_content *content, const char *name, const char *identity,
                                           const gpuhal_texts *machine)
{
    size_t count;
    const gpuhal_known_plugin *plugins = gpuhal_content_plugins(content, &count), *found = NULL;
    for (size_t i = 0; i < count; i++) {
        bool later = !found || plugins[i].generation > found->generation;
        if (later && strcmp(plugins[i].identity, identity) == 0 && strcmp(plugins[i].name, name) == 0 &&
            gpuhal_key_is_current(&plugins[i].key, machine, NULL)) {
            found = &plugins[i];
        }
    }
    return found;
}

/* ---- what is mapped */

/* "7f0…-7f0… r-xp 00000000 fe:00 131 /usr/lib/libc.so.6": the path of a file with code; NULL for any other line. */
static const char *code_path(const char *line)
{
    const char *rights = strchr(line, ' ');
    const char *path = strchr(line, '/');
    return rights && path && path > rights + 4 && rights[3] == 'x' ? path : NULL;
}

void gpuhal_key_mapped_files(gpuhal_texts *out_paths)
{
    char *text = NULL;
    size_t bytes = 0;
    *out_paths = (gpuhal_texts){0};
    if (gpuhal_os_file_read("/proc/self/maps", MAPS_BYTES_MAX, &text, &bytes)) {
        out_paths->failed = true;
        return;
    }
    char *end = NULL;
    for (char *line = text; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end) {
            *end = 0;
        }
        const char *path = code_path(line);
        bool known = !path;
        for (size_t i = out_paths->count; i > 0 && !known; i--) {
            known = strcmp(out_paths->list[i - 1], path) == 0;
        }
        if (!known) {
            gpuhal_texts_add(out_paths, path);
        }
    }
    free(text);
}
