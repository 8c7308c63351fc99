/* rocm/system.c: reads device information from files of the kernel's amdgpu driver and its compute part (kfd). */
#include "device.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

bool gpuhal_rocm_find_name(const char *directory, const char *prefix, char *out_name, size_t size)
{
    DIR *listing = opendir(directory);
    bool found = false;
    while (listing && !found) {
        const struct dirent *entry = readdir(listing);
        if (!entry) {
            break;
        }
        found = strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && strlen(entry->d_name) < size;
        if (found) {
            snprintf(out_name, size, "%s", entry->d_name);
        }
    }
    if (listing) {
        closedir(listing);
    }
    return found;
}

/* Calls @p look with the name of each node of the kernel's compute driver, until @p look returns true. */
static void each_node(bool (*look)(const char *node, void *user), void *user)
{
    char path[GPUHAL_STREAM_PATH];
    gpuhal_rocm_path(path, GPUHAL_ROCM_NODES);
    DIR *listing = opendir(path);
    const struct dirent *entry = listing ? readdir(listing) : NULL;
    for (bool enough = false; entry && !enough; entry = readdir(listing)) {
        enough = entry->d_name[0] != '.' && strlen(entry->d_name) <= 10 && look(entry->d_name, user);
    }
    if (listing) {
        closedir(listing);
    }
}

/* CPUs are also nodes; their gpu_id is 0. */
static bool count_node(const char *node, void *user)
{
    char path[GPUHAL_STREAM_PATH], text[24];
    gpuhal_rocm_path(path, GPUHAL_ROCM_NODES "/%.10s/gpu_id", node);
    *(uint32_t *)user += gpuhal_rocm_read_line(path, text, sizeof text) && strcmp(text, "0") != 0 ? 1 : 0;
    return false;
}

uint32_t gpuhal_rocm_count_system(void)
{
    uint32_t count = 0;
    each_node(count_node, &count);
    return count;
}

/* Each line of a node's properties consists of a name, a blank and a number (sysfs_show_32bit_prop in the kernel's
 * kfd_topology.c). */
static bool read_property(const char *properties, const char *name, uint32_t *out_value)
{
    const size_t length = strlen(name);
    for (const char *at = properties; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n' ? 1 : 0) {
        if (strncmp(at, name, length) == 0 && at[length] == ' ') {
            return sscanf(at + length, "%10u", out_value) == 1;
        }
    }
    return false;
}

typedef struct entry_list {
    gpuhal_rocm_entry *list;
    uint32_t count;
} entry_list;

/* Bus and device are bits 3 to 15 of the location. Depending on the kernel, the partition number is in the four highest
 * or the three lowest bits (kfd_topology_add_device in kfd_topology.c). */
static uint32_t part_at(uint32_t location)
{
    return location >> 28 ? location >> 28 : location & 7;
}

static bool is_at(const gpuhal_rocm_entry *entry, uint32_t location, uint32_t domain)
{
    return entry->has_address && (location & 0xffff) >> 3 == (entry->bus << 5 | entry->slot) && domain == entry->domain;
}

/* Nodes with target 0 are skipped, because they cannot compute. */
static bool read_node(const char *node, void *user)
{
    const entry_list *all = user;
    char path[GPUHAL_STREAM_PATH], properties[4096], text[24];
    uint32_t location = 0, domain = 0, target = 0, render_minor = 0, gpu_id = 0;
    gpuhal_rocm_path(path, GPUHAL_ROCM_NODES "/%.10s/properties", node);
    if (gpuhal_rocm_read_file(path, properties, sizeof properties) == 0 ||
        !read_property(properties, "location_id", &location) || !read_property(properties, "domain", &domain) ||
        !read_property(properties, "gfx_target_version", &target) || target == 0) {
        return false;
    }
    (void)read_property(properties, "drm_render_minor", &render_minor);
    gpuhal_rocm_path(path, GPUHAL_ROCM_NODES "/%.10s/gpu_id", node);
    if (!gpuhal_rocm_read_line(path, text, sizeof text) || sscanf(text, "%10u", &gpu_id) != 1) {
        gpu_id = 0;
    }
    for (uint32_t i = 0; i < all->count; i++) {
        gpuhal_rocm_entry *entry = &all->list[i];
        if (!is_at(entry, location, domain)) {
            continue;
        }
        entry->kernel.parts++;
        entry->kernel.target = target;
        if (part_at(location) == (entry->partition > 0 ? (uint32_t)entry->partition : 0)) {
            entry->kernel.gpu_id = gpu_id;
            entry->kernel.render_minor = render_minor;
        }
    }
    return false;
}

void gpuhal_rocm_read_nodes(gpuhal_rocm_entry *entries, uint32_t count)
{
    entry_list all = {.list = entries, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        entries[i].kernel = (gpuhal_rocm_kernel){0};
    }
    each_node(read_node, &all);
}
