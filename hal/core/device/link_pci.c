/* device/link_pci.c: determines distances between PCI devices from sysfs. The real path of a device contains its host
 * bridge and each bridge above the device as directories: /sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0. */
#include "device/link.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static char *place_of(const char *root, const char *address)
{
    int ignored = 0;
    char *link = gpuhal_text_format("%s/sys/bus/pci/devices/%s", root, address);
    char *tree = gpuhal_text_format("%s/sys", root);
    char *base = tree ? gpuhal_os_real_path(tree, &ignored) : NULL;
    char *place = link ? gpuhal_os_real_path(link, &ignored) : NULL;
    size_t length = base ? strlen(base) : 0;
    if (place && base && strncmp(place, base, length) == 0) {
        memmove(place, place + length, strlen(place + length) + 1);
    } else {
        free(place);
        place = NULL;
    }
    free(base);
    free(tree);
    free(link);
    return place;
}

/* Returns the length of the path up to the host bridge, "/devices/pci0000:40/"; 0 if there is none. */
static size_t host_bridge_bytes(const char *place)
{
    const char *bridge = strstr(place, "/pci");
    const char *below = bridge ? strchr(bridge + 1, '/') : NULL;
    return below ? (size_t)(below + 1 - place) : 0;
}

static size_t shared_bytes(const char *one, const char *other)
{
    size_t shared = 0;
    for (size_t i = 0; one[i] && one[i] == other[i]; i++) {
        shared = one[i] == '/' ? i + 1 : shared;
    }
    return shared;
}

/* Returns whether the remaining paths are two functions of one device: "0000:c1:00.0" and "0000:c1:00.1". */
static bool are_functions_of_one(const char *one, const char *other)
{
    size_t dot = strcspn(one, "./");
    return one[dot] == '.' && strncmp(one, other, dot + 1) == 0;
}

static char *read_text(const char *root, const char *folder, const char *name, const char *leaf)
{
    size_t bytes = 0;
    char *text = NULL, *path = gpuhal_text_format("%s/sys/%s/%s/%s", root, folder, name, leaf);
    if (path && gpuhal_os_file_read(path, 256, &text, &bytes) == 0) {
        text[strcspn(text, "\n")] = 0;
    }
    free(path);
    return text;
}

/* Kernels without NUMA support list no nodes. */
static bool has_one_node(const char *root)
{
    char *online = read_text(root, "devices/system", "node", "online");
    bool one = !online || strcmp(online, "0") == 0;
    free(online);
    return one;
}

bool gpuhal_pci_node_of(const char *root, const char *text, uint32_t *out_node)
{
    char *end = NULL;
    long node = strtol(text, &end, 10);
    bool known = end != text && !*end;
    /* sysfs contains -1 if the firmware reports no NUMA node. */
    if (known && node < 0 && has_one_node(root)) {
        node = 0;
    }
    *out_node = node >= 0 ? (uint32_t)node : 0;
    return known && node >= 0 && node < INT32_MAX;
}

bool gpuhal_pci_node(const char *root, const char *address, uint32_t *out_node)
{
    char *text = read_text(root, "bus/pci/devices", address, "numa_node");
    const bool known = gpuhal_pci_node_of(root, text ? text : "", out_node);
    free(text);
    return known;
}

static gpuhal_link_kind kind_by_nodes(const char *root, const char *one, const char *other)
{
    uint32_t node = 0, other_node = 0;
    if (!gpuhal_pci_node(root, one, &node) || !gpuhal_pci_node(root, other, &other_node)) {
        return 0;
    }
    return node == other_node ? GPUHAL_LINK_NUMA_NODE : GPUHAL_LINK_SYSTEM;
}

gpuhal_link_kind gpuhal_pci_link_kind(const char *root, const char *one, const char *other)
{
    char *place = place_of(root, one), *other_place = place_of(root, other);
    gpuhal_link_kind kind = 0;
    size_t bridge = place && other_place ? host_bridge_bytes(place) : 0;
    if (bridge > 0 && host_bridge_bytes(other_place) > 0) {
        size_t shared = shared_bytes(place, other_place);
        kind = shared < bridge                                              ? kind_by_nodes(root, one, other)
               : are_functions_of_one(place + shared, other_place + shared) ? GPUHAL_LINK_SAME_BOARD
               : shared > bridge                                            ? GPUHAL_LINK_PCIE_SWITCH
                                                                            : GPUHAL_LINK_PCIE_HOST_BRIDGE;
    }
    free(place);
    free(other_place);
    return kind;
}
