/* telemetry/location.c: finds a device's place in the system, and the device's interfaces, from the device's facts. */
#include "telemetry/telemetry.h"

#include "device/snapshot.h"

#include <stdio.h>
#include <string.h>

uint32_t gpuhal_location_interfaces(gpuhal_device *device, gpuhal_device *out_interfaces[GPUHAL_INTERFACES_MAX],
                                    bool *out_is_part)
{
    uint32_t count = 0;
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(device->gpu);
    const gpuhal_interface *own = gpuhal_device_snapshot_interface(snapshot, device);
    for (int preferred = 1; own && preferred >= 0; preferred--) {
        for (uint32_t i = 0; i < snapshot->identity.count; i++) {
            const gpuhal_entry *entry = &snapshot->entries[i];
            if (entry->device && entry->preferred == (preferred == 1) &&
                snapshot->identity.interfaces[i].partition == own->partition && count < GPUHAL_INTERFACES_MAX) {
                out_interfaces[count++] = entry->device;
            }
        }
    }
    if (count == 0) {
        out_interfaces[count++] = device;
    }
    *out_is_part = own && own->partition_name[0];
    return count;
}

static void copy_name(char out_name[GPUHAL_CLIENT_PLACE_BYTES], const char *prefix, unsigned number)
{
    snprintf(out_name, GPUHAL_CLIENT_PLACE_BYTES, "%s%u", prefix, number);
}

/* Card numbers start at 0, render node numbers at 128. The two nodes of a device have the same offset from these
 * numbers, unless a device in the system has only one node. */
static void find_nodes(const char *node, gpuhal_client_match *match)
{
    unsigned major = 0, minor = 0;
    if (sscanf(node, "%3u:%7u", &major, &minor) == 2 && minor >= 128) {
        copy_name(match->nodes[0], "renderD", minor);
        copy_name(match->nodes[1], "card", minor - 128);
    }
}

typedef struct tegra_search {
    const char *drivers;
    gpuhal_location *place;
} tegra_search;

/* Stores the path of the link to the device, whose name is, for example, "17000000.gpu". Ignores "module". */
static bool look_at_link(void *user, const char *name, const char *target)
{
    const tegra_search *own = user;
    if (!strstr(target, "devices/")) {
        return true;
    }
    char *to = own->place->directory;
    const int length = snprintf(to, sizeof own->place->directory, "%s/%s", own->drivers, name);
    to[0] = length < (int)sizeof own->place->directory ? to[0] : 0;
    return false;
}

/* A Tegra GPU is not on a bus, and CUDA reports no location, but it is the only device of NVIDIA's Tegra driver. */
static void find_tegra(const char *root, gpuhal_location *place)
{
    char drivers[GPUHAL_PLACE_BYTES];
    bool is_cuda = false;
    for (uint32_t i = 0; i < place->interface_count; i++) {
        is_cuda = is_cuda || strcmp(gpuhal_device_backend(place->interfaces[i]), "cuda") == 0;
    }
    snprintf(drivers, sizeof drivers, "%s/sys/bus/platform/drivers/" GPUHAL_TEGRA, root);
    tegra_search own = {.drivers = drivers, .place = place};
    if (is_cuda) {
        (void)gpuhal_os_directory_links(drivers, look_at_link, &own);
    }
}

void gpuhal_location_find(gpuhal_device *device, gpuhal_location *place)
{
    const char *root = device->gpu->settings.system_root;
    *place = (gpuhal_location){0};
    place->interface_count = gpuhal_location_interfaces(device, place->interfaces, &place->is_part);
    const gpuhal_facts *facts = &place->interfaces[0]->listed->facts;
    const char *address = gpuhal_device_hardware_address(device), *node = NULL;
    for (uint32_t i = 0; i < place->interface_count && !node; i++) {
        node = gpuhal_facts_text(&place->interfaces[i]->listed->facts, GPUHAL_FACT_DRM_RENDER_NODE);
    }
    int length = 0;
    if (address) {
        snprintf(place->match.address, sizeof place->match.address, "%s", address);
        length = snprintf(place->directory, sizeof place->directory, "%s/sys/bus/pci/devices/%s", root, address);
    } else {
        find_tegra(root, place);
    }
    if (node && !place->directory[0]) {
        find_nodes(node, &place->match);
        length = snprintf(place->directory, sizeof place->directory, "%s/sys/dev/char/%s/device", root, node);
    }
    if (length >= (int)sizeof place->directory) {
        place->directory[0] = 0; /* a truncated path would name another file */
    }
    place->memory_total = gpuhal_facts_u64(facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    place->match.is_unified = gpuhal_facts_u64(facts, GPUHAL_FACT_UNIFIED_MEMORY, 0) == 1;
}
