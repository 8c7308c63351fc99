/* rocm/system.c: what the kernel's amdgpu driver and its compute half (kfd) say of devices in files. */
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

/* Calls @p look with the name of each node of the kernel's compute driver, until it says that it has seen enough. */
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

/* Processors are nodes too: their gpu_id is 0. */
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

/* A line of a node's properties: a name, a blank and a number (the kernel's kfd_topology.c, sysfs_show_32bit_prop). */
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

typedef struct node_search {
    const gpuhal_rocm_entry *entry;
    uint32_t location, target, render_minor; /* of the node at the device's address that was read last */
    uint32_t gpu_id;                         /* of the same part, where the device is divided */
    bool found;                              /* that part */
    uint32_t count;                          /* of the parts */
} node_search;

/* Bus and device are bits 3 to 15 of the location. A part of a device has its number in the four highest bits, with
 * other kernels in the three lowest (kfd_topology.c, kfd_topology_add_device). */
static uint32_t part_at(uint32_t location)
{
    return location >> 28 ? location >> 28 : location & 7;
}

static bool match_node(const char *node, void *user)
{
    node_search *own = user;
    const gpuhal_rocm_entry *entry = own->entry;
    char path[GPUHAL_STREAM_PATH], properties[4096];
    uint32_t domain = 0;
    gpuhal_rocm_path(path, GPUHAL_ROCM_NODES "/%.10s/properties", node);
    if (gpuhal_rocm_read_file(path, properties, sizeof properties) == 0 ||
        !read_property(properties, "location_id", &own->location) || !read_property(properties, "domain", &domain) ||
        (own->location & 0xffff) >> 3 != (entry->bus << 5 | entry->slot) || domain != entry->domain ||
        !read_property(properties, "gfx_target_version", &own->target) || own->target == 0) {
        return false;
    }
    own->render_minor = 0;
    (void)read_property(properties, "drm_render_minor", &own->render_minor);
    return true;
}

static bool match_part(const char *node, void *user)
{
    node_search *own = user;
    const uint32_t part = own->entry->partition > 0 ? (uint32_t)own->entry->partition : 0;
    char path[GPUHAL_STREAM_PATH], text[24];
    if (!match_node(node, user) || part_at(own->location) != part) {
        return false;
    }
    gpuhal_rocm_path(path, GPUHAL_ROCM_NODES "/%.10s/gpu_id", node);
    if (!gpuhal_rocm_read_line(path, text, sizeof text) || sscanf(text, "%10u", &own->gpu_id) != 1) {
        own->gpu_id = 0;
    }
    own->found = true;
    return true;
}

static bool count_part(const char *node, void *user)
{
    ((node_search *)user)->count += match_node(node, user) ? 1 : 0;
    return false;
}

uint32_t gpuhal_rocm_count_parts(const gpuhal_rocm_entry *entry)
{
    node_search own = {.entry = entry};
    if (entry->has_address) {
        each_node(count_part, &own);
    }
    return own.count;
}

uint32_t gpuhal_rocm_read_gpu_id(const gpuhal_rocm_entry *entry)
{
    node_search own = {.entry = entry};
    if (entry->has_address) {
        each_node(match_part, &own);
    }
    return own.gpu_id;
}

uint32_t gpuhal_rocm_read_render_minor(const gpuhal_rocm_entry *entry)
{
    node_search own = {.entry = entry};
    if (entry->has_address) {
        each_node(match_part, &own);
    }
    return own.found ? own.render_minor : 0;
}

uint32_t gpuhal_rocm_read_target(const gpuhal_rocm_entry *entry)
{
    node_search own = {.entry = entry};
    if (entry->has_address) {
        each_node(match_node, &own);
    }
    return own.target;
}
