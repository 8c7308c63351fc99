/* node/registry_records.c: hands out the records of a view. */
#include "node/registry_view.h"

#include "device/for_node.h"

#include <string.h>

/* Finds record number `index` of a kind. `size` is the caller's member, the first in all structures; NULL for none. */
static gpuhal_status find(const char *call, const gpuhal_registry_view *view, gpuhal_record_kind kind, uint32_t index,
                          const uint32_t *size, const void **out_record)
{
    if (!view || !size || *size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL, or the size is 0", call);
    }
    gpuhal_status status = gpuhal_view_check(view);
    if (status) {
        return status;
    }
    if (index >= view->database->records[kind].count) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s: %u is past the last of %zu", call, index,
                                view->database->records[kind].count);
    }
    *out_record = gpuhal_database_at(view->database, kind, index);
    return GPUHAL_OK;
}

/* Copies as much of the structure as the caller's version has. */
static void hand_out(void *to, const void *from, uint32_t bytes)
{
    uint32_t size = *(const uint32_t *)to;
    memcpy(to, from, size < bytes ? size : bytes);
    memcpy(to, &size, sizeof size);
}

gpuhal_status gpuhal_registry_plugin(const gpuhal_registry_view *view, uint32_t index, gpuhal_plugin_record *out_plugin)
{
    const void *record = NULL;
    gpuhal_status status = find("gpuhal_registry_plugin", view, GPUHAL_RECORD_PLUGIN, index,
                                out_plugin ? &out_plugin->size : NULL, &record);
    if (!status) {
        const gpuhal_database_plugin *known = record;
        const gpuhal_plugin_record plugin = {
            .state = known->state,
            .stage = known->stage,
            .signal = known->signal,
            .name = gpuhal_view_text(known->name),
            .file = gpuhal_view_text(known->file),
            .version = gpuhal_view_text(known->version),
            .driver = gpuhal_view_text(known->driver),
            .reason = gpuhal_view_text(known->reason),
            .output = view->outputs[index],
            .identity = gpuhal_view_text(known->identity),
            .probed_at = known->probed_at,
            .device_count = (uint32_t)gpuhal_listed_devices_usable(&known->devices),
        };
        hand_out(out_plugin, &plugin, sizeof plugin);
    }
    return status;
}

static bool is_there(const gpuhal_database *database, uint32_t physical)
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(database, &count);
    bool there = false;
    for (size_t i = 0; i < count; i++) {
        there = there || (interfaces[i].physical == physical && interfaces[i].present);
    }
    return there;
}

gpuhal_status gpuhal_registry_physical(const gpuhal_registry_view *view, uint32_t index,
                                       gpuhal_physical_record *out_physical)
{
    const void *record = NULL;
    gpuhal_status status = find("gpuhal_registry_physical", view, GPUHAL_RECORD_PHYSICAL, index,
                                out_physical ? &out_physical->size : NULL, &record);
    if (!status) {
        const gpuhal_database_physical *known = record;
        const gpuhal_physical_record physical = {
            .number = known->number,
            .is_host = known->host,
            .is_present = is_there(view->database, known->number),
            .vendor_id = known->vendor_id,
            .pci_address = gpuhal_view_text(known->pci),
            .name = gpuhal_view_text(known->name),
            .first_seen = known->first_seen,
            .last_seen = known->last_seen,
        };
        hand_out(out_physical, &physical, sizeof physical);
    }
    return status;
}

gpuhal_status gpuhal_registry_interface(const gpuhal_registry_view *view, uint32_t index,
                                        gpuhal_interface_record *out_interface)
{
    const void *record = NULL;
    gpuhal_status status = find("gpuhal_registry_interface", view, GPUHAL_RECORD_INTERFACE, index,
                                out_interface ? &out_interface->size : NULL, &record);
    if (!status) {
        const gpuhal_database_interface *known = record;
        const gpuhal_interface_record iface = {
            .number = known->number,
            .physical = known->physical,
            .is_present = known->present,
            .driver_count = (uint32_t)known->drivers.count,
            .backend = gpuhal_view_text(known->backend),
            .name = gpuhal_view_text(known->name),
            .partition = gpuhal_view_text(known->partition),
            .uuid = gpuhal_view_text(known->uuid),
            .first_seen = known->first_seen,
            .last_seen = known->last_seen,
        };
        hand_out(out_interface, &iface, sizeof iface);
    }
    return status;
}

gpuhal_status gpuhal_registry_link(const gpuhal_registry_view *view, uint32_t index, gpuhal_link_record *out_link)
{
    const void *record = NULL;
    gpuhal_status status =
        find("gpuhal_registry_link", view, GPUHAL_RECORD_LINK, index, out_link ? &out_link->size : NULL, &record);
    if (!status) {
        const gpuhal_database_link *known = record;
        const gpuhal_link_record link = {
            .from = known->from,
            .to = known->to,
            .verified = known->verified,
            .path = (gpuhal_path)known->path,
            .bytes_per_second = known->bytes_per_second,
            .latency_ns = known->latency_ns,
            .tried = known->tried,
            .from_driver = gpuhal_view_text(known->from_driver),
            .to_driver = gpuhal_view_text(known->to_driver),
            .reason = gpuhal_view_text(known->reason),
        };
        hand_out(out_link, &link, sizeof link);
    }
    return status;
}

/* A plugin without a record is named by the identity of its file. */
static const char *name_of(const gpuhal_database *database, const char *identity)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(database, &count);
    for (size_t i = 0; identity && i < count; i++) {
        if (strcmp(plugins[i].identity, identity) == 0) {
            return plugins[i].name;
        }
    }
    return gpuhal_view_text(identity);
}

gpuhal_status gpuhal_registry_fault(const gpuhal_registry_view *view, uint32_t index, gpuhal_fault_record *out_fault)
{
    static const char *const kinds[] = {
        [GPUHAL_FAULT_CRASH] = "crash",
        [GPUHAL_FAULT_HANG] = "hang",
        [GPUHAL_FAULT_LOST] = "lost",
        [GPUHAL_FAULT_OUT_OF_MEMORY] = "out_of_memory",
    };
    const void *record = NULL;
    gpuhal_status status =
        find("gpuhal_registry_fault", view, GPUHAL_RECORD_FAULT, index, out_fault ? &out_fault->size : NULL, &record);
    if (!status) {
        const gpuhal_database_fault *known = record;
        bool has_name = known->kind < sizeof kinds / sizeof *kinds && kinds[known->kind];
        const gpuhal_fault_record fault = {
            .interface_number = known->iface,
            .kind = has_name ? kinds[known->kind] : "unknown",
            .plugin = name_of(view->database, known->plugin),
            .driver_version = gpuhal_view_text(known->driver_version),
            .detail = gpuhal_view_text(known->detail),
            .count = known->count,
            .first = known->first,
            .last = known->last,
        };
        hand_out(out_fault, &fault, sizeof fault);
    }
    return status;
}

gpuhal_status gpuhal_registry_driver(const gpuhal_registry_view *view, uint32_t index, uint32_t n,
                                     const char **out_version, uint64_t *out_since)
{
    const void *record = NULL;
    const uint32_t any = 1;
    if (out_version) {
        *out_version = NULL;
    }
    if (out_since) {
        *out_since = 0;
    }
    gpuhal_status status =
        find("gpuhal_registry_driver", view, GPUHAL_RECORD_INTERFACE, index, out_version ? &any : NULL, &record);
    if (status) {
        return status;
    }
    const gpuhal_database_versions *drivers = &((const gpuhal_database_interface *)record)->drivers;
    if (n >= drivers->count) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "gpuhal_registry_driver: %u is past the last of %zu", n,
                                drivers->count);
    }
    *out_version = gpuhal_view_text(drivers->list[n].version);
    if (out_since) {
        *out_since = drivers->list[n].since;
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_registry_device(const gpuhal_device *device, uint32_t *out_interface, uint32_t *out_physical)
{
    if (!device) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_registry_device: device is NULL");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    if (out_interface) {
        *out_interface = device->interface_number;
    }
    if (out_physical) {
        *out_physical = device->physical_number;
    }
    return device->interface_number ? GPUHAL_OK
                                    : gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s has no record", device->id);
}
