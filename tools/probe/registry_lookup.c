/* registry_lookup.c: finds facts about single records of a view; see registry.h. */
#include "registry.h"

#include "../common/standard_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gpuhal_registry_info gpuhal_probe_registry_info(const gpuhal_view *view)
{
    gpuhal_registry_info info = {.size = sizeof info, .place = "", .damage = ""};
    (void)gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY, 0, &info);
    return info;
}

bool gpuhal_probe_find_interface(const gpuhal_view *view, uint32_t number, gpuhal_interface_record *out_entry)
{
    *out_entry = (gpuhal_interface_record){.size = sizeof *out_entry};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, out_entry) == GPUHAL_OK; i++) {
        if (out_entry->number == number) {
            return true;
        }
    }
    return false;
}

uint64_t gpuhal_probe_last_seen(const gpuhal_view *view)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    uint64_t last = 0;
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        last = physical.last_seen > last ? physical.last_seen : last;
    }
    return last;
}

/* Returns the PCI address of the interface's physical device. Returns "" if the address is unknown, or if the interface
 * is a partition, because partitions share one address. */
static const char *find_address(const gpuhal_view *view, const gpuhal_interface_record *entry)
{
    gpuhal_physical_record physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        if (physical.number == entry->physical && !*entry->partition) {
            return physical.pci_address;
        }
    }
    return "";
}

void gpuhal_probe_name_interface(const gpuhal_view *view, uint32_t number, char to[GPUHAL_PROBE_NAME_BYTES])
{
    gpuhal_interface_record entry, other = {.size = sizeof other};
    uint32_t same = 0;
    if (!gpuhal_probe_find_interface(view, number, &entry)) {
        snprintf(to, GPUHAL_PROBE_NAME_BYTES, "interface %u", number);
        return;
    }
    const char *address = find_address(view, &entry);
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &other) == GPUHAL_OK; i++) {
        same += strcmp(other.backend, entry.backend) == 0 && strcmp(other.name, entry.name) == 0;
    }
    if (*address) {
        snprintf(to, GPUHAL_PROBE_NAME_BYTES, "%.40s at %s", entry.backend, address);
    } else if (same > 1 || !*entry.name) {
        snprintf(to, GPUHAL_PROBE_NAME_BYTES, "%.40s interface %u", entry.backend, number);
    } else {
        snprintf(to, GPUHAL_PROBE_NAME_BYTES, "%.40s (%.64s)", entry.backend, entry.name);
    }
}

const char *gpuhal_probe_last_driver(const gpuhal_view *view, const gpuhal_interface_record *entry)
{
    gpuhal_driver_record driver = {.size = sizeof driver, .version = ""};
    if (entry->driver_count > 0) {
        (void)gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_DRIVER, entry->first_driver + entry->driver_count - 1,
                              &driver);
    }
    return driver.version;
}

bool gpuhal_probe_is_unwritten(const gpuhal_view *newest)
{
    gpuhal_view *disk = NULL;
    bool kept = *gpuhal_probe_registry_info(newest).place != 0;
    bool read = kept && gpuhal_view_read(NULL, &disk) == GPUHAL_OK;
    bool unwritten =
        kept && (!read || gpuhal_probe_registry_info(disk).generation < gpuhal_probe_registry_info(newest).generation);
    gpuhal_view_release(disk);
    return unwritten;
}

gpuhal_status gpuhal_probe_plugin_stale(const gpuhal_view *view, uint32_t index, const gpuhal_plugin_record *plugin,
                                        char *out_why, uint32_t why_bytes)
{
    if (plugin->state == GPUHAL_PLUGIN_FAILED) {
        snprintf(out_why, why_bytes, "it failed, and is run again each time");
        return GPUHAL_OK;
    }
    return gpuhal_registry_plugin_stale(view, index, out_why, why_bytes);
}

void gpuhal_probe_format_hardware(const gpuhal_physical_record *physical, char *to, size_t bytes)
{
    const char *name = *physical->name ? physical->name : "a device without a name";
    if (physical->is_host) {
        snprintf(to, bytes, "the host's processor"); /* the interfaces have more specific names */
    } else {
        snprintf(to, bytes, "%s%s%s", name, *physical->pci_address ? ", PCI " : "", physical->pci_address);
    }
}

const char *gpuhal_probe_why_no_record(void)
{
    const char *variable = getenv("GPUHAL_REGISTRY");
    return variable && *variable ? "GPUHAL_REGISTRY is \"none\""
                                 : "neither HOME nor XDG_STATE_HOME names a directory for it";
}
