/* registry/machine.c: the cache key's lines about the machine. No device node and no folder of device nodes except /dev
 * may be opened. Nodes are stat'ed by name. */
#include "base/text.h"
#include "registry/key.h"
#include "registry/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_FILE_BYTES 4096u
/* Contains one folder for each GPU, each with one folder for each partition. */
#define NVIDIA_CAPABILITIES "/proc/driver/nvidia/capabilities"

/* Kernel drivers whose devices are GPUs, or may be GPUs after rebinding. */
static const char gpu_drivers[][9] = {"nvidia", "nouveau", "amdgpu", "radeon", "i915", "xe", "vfio-pci"};
/* Prefixes of the names of GPU device nodes in /dev. */
static const char gpu_nodes[][7] = {"nvidia", "kfd", "dxg", "mali", "kgsl"};
/* Nodes in subfolders of /dev. The kernel lists their names elsewhere, so the subfolders need not be opened. */
static const struct {
    const char *names, *folder;
} node_folders[] = {{"/sys/class/drm", "/dev/dri"}, {"/sys/class/accel", "/dev/accel"}};

/* For a folder, the text contains the modification time instead of the inode, because the time changes with the
 * folder's nodes, which may have been created for one container. */
char *gpuhal_key_node_words(const char *seen, const gpuhal_file_state *state)
{
    uint64_t which = state->directory ? (uint64_t)state->modified_ns : state->inode;
    return gpuhal_text_format("%" PRIu64 "-%" PRIu64 "-%" PRIo32 "-%" PRIu32 "-%" PRIu32 "-%s", state->node, which,
                              state->mode, state->owner, state->group, gpuhal_os_may_use(seen) == 0 ? "rw" : "no");
}

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
    gpuhal_file_info info;
    char *target = NULL;
    char *path = gpuhal_text_format("%s/proc/self/ns/mnt", root);
    if (path) {
        gpuhal_os_link_info(path, &info, &target);
    }
    gpuhal_texts_give(to, path ? gpuhal_text_format("mounts %s", target ? target : "") : NULL);
    free(target);
    free(path);
}

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

static char *node_line(const char *root, const char *path)
{
    gpuhal_file_state state;
    char *seen = gpuhal_text_format("%s%s", root, path), *words = NULL, *line = NULL;
    if (seen && gpuhal_os_file_state(seen, &state)) {
        line = gpuhal_text_format("node absent %s", path);
    } else if (seen) {
        words = gpuhal_key_node_words(seen, &state);
        line = words ? gpuhal_text_format("node %s %s", words, path) : NULL;
    }
    free(words);
    free(seen);
    return line;
}

static void add_nodes(const char *root, gpuhal_texts *to)
{
    char **names;
    size_t count;
    char *path = gpuhal_text_format("%s/dev", root);
    to->failed = to->failed || !path;
    if (!path || gpuhal_os_directory_names(path, &names, &count)) {
        free(path);
        return;
    }
    for (size_t kind = 0; kind < sizeof gpu_nodes / sizeof *gpu_nodes; kind++) {
        for (size_t i = 0; i < count; i++) {
            if (strncmp(names[i], gpu_nodes[kind], strlen(gpu_nodes[kind])) == 0) {
                char *node = gpuhal_text_format("/dev/%s", names[i]);
                gpuhal_texts_give(to, node ? node_line(root, node) : NULL);
                free(node);
            }
        }
    }
    gpuhal_os_names_free(names, count);
    free(path);
}

/* Connectors ("card0-DP-1") and `version` have no device nodes. In a container, names may exist although their nodes do
 * not. */
static void add_nodes_in(const char *root, const char *names_folder, const char *folder, gpuhal_texts *to)
{
    char **names;
    size_t count;
    char *path = gpuhal_text_format("%s%s", root, names_folder);
    to->failed = to->failed || !path;
    if (path && gpuhal_os_directory_names(path, &names, &count) == 0) {
        for (size_t i = 0; i < count; i++) {
            if (!strchr(names[i], '-') && strcmp(names[i], "version") != 0) {
                char *node = gpuhal_text_format("%s/%s", folder, names[i]);
                gpuhal_texts_give(to, node ? node_line(root, node) : NULL);
                free(node);
            }
        }
        gpuhal_os_names_free(names, count);
    }
    free(path);
}

/* Access to a capability depends on the rights of the file, or of the device node whose number is in the file
 * ("DeviceFileMinor: 12"). */
static void add_capability(const char *root, const char *file, gpuhal_texts *to)
{
    char *line = first_line_of(root, file);
    unsigned number = 0;
    if (!line || !*line) {
        to->failed = to->failed || !line;
        free(line);
        return;
    }
    gpuhal_texts_give(to, node_line(root, file));
    if (sscanf(line, "DeviceFileMinor: %u", &number) == 1) {
        char *node = gpuhal_text_format("/dev/nvidia-caps/nvidia-cap%u", number);
        gpuhal_texts_give(to, node ? node_line(root, node) : NULL);
        free(node);
    }
    free(line);
}

/* The line lists the entries of the instance's folder. Access rights are in separate lines. */
static void add_instance(const char *root, const char *folder, gpuhal_text *line, gpuhal_texts *to)
{
    char **names;
    size_t count;
    char *path = gpuhal_text_format("%s%s", root, folder);
    to->failed = to->failed || !path;
    if (path && gpuhal_os_directory_names(path, &names, &count) == 0) {
        for (size_t i = 0; i < count; i++) {
            bool own = strcmp(names[i], "access") == 0;
            char *file = gpuhal_text_format(own ? "%s/%s" : "%s/%s/access", folder, names[i]);
            gpuhal_text_printf(line, " %s", names[i]);
            to->failed = to->failed || !file;
            if (file) {
                add_capability(root, file, to);
            }
            free(file);
        }
        gpuhal_os_names_free(names, count);
    }
    free(path);
}

/* Lists the partitions (MIG) of one GPU that NVIDIA's driver exposes as devices: "instances gpu0 gi1 access ci0". */
static void add_instances_of(const char *root, const char *gpu, gpuhal_texts *to)
{
    char **names;
    size_t count;
    gpuhal_text line = {0};
    char *folder = gpuhal_text_format("%s" NVIDIA_CAPABILITIES "/%s/mig", root, gpu);
    to->failed = to->failed || !folder;
    if (!folder || gpuhal_os_directory_names(folder, &names, &count)) {
        free(folder);
        return;
    }
    gpuhal_text_printf(&line, "instances %s", gpu);
    for (size_t i = 0; i < count; i++) {
        char *instance = gpuhal_text_format(NVIDIA_CAPABILITIES "/%s/mig/%s", gpu, names[i]);
        gpuhal_text_printf(&line, " %s", names[i]);
        to->failed = to->failed || !instance;
        if (instance) {
            add_instance(root, instance, &line, to);
        }
        free(instance);
    }
    gpuhal_texts_give(to, gpuhal_text_take(&line));
    gpuhal_text_finish(&line);
    gpuhal_os_names_free(names, count);
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
    add_capability(root, NVIDIA_CAPABILITIES "/mig/config", to);
    add_capability(root, NVIDIA_CAPABILITIES "/mig/monitor", to);
}

/* Adds this process's limits and the library's version, since a different version may have a different result. */
static void add_grants(const char *root, gpuhal_texts *to)
{
    uint64_t limit = gpuhal_limit_memory(root);
    gpuhal_texts_give(to, gpuhal_text_format("processors %" PRIu32, gpuhal_os_processors()));
    gpuhal_texts_give(to, limit == UINT64_MAX ? gpuhal_text_copy("memory unlimited")
                                              : gpuhal_text_format("memory %" PRIu64, limit));
    gpuhal_texts_add(to, "library " GPUHAL_VERSION);
}

void gpuhal_key_machine(const char *root, gpuhal_texts *out_lines)
{
    *out_lines = (gpuhal_texts){0};
    if (*root) {
        gpuhal_texts_give(out_lines, gpuhal_text_format("root %s", root));
    }
    add_file_word(root, "boot", "/proc/sys/kernel/random/boot_id", out_lines);
    add_file_word(root, "kernel", "/proc/sys/kernel/osrelease", out_lines);
    add_file_word(root, "nvidia", "/proc/driver/nvidia/version", out_lines);
    add_mounts(root, out_lines);
    add_grants(root, out_lines);
    add_instances(root, out_lines);
    for (size_t i = 0; i < sizeof gpu_drivers / sizeof *gpu_drivers; i++) {
        add_driver(root, gpu_drivers[i], out_lines);
    }
    add_nodes(root, out_lines);
    for (size_t i = 0; i < sizeof node_folders / sizeof *node_folders; i++) {
        add_nodes_in(root, node_folders[i].names, node_folders[i].folder, out_lines);
    }
}
