/* node/registry_records.c: counts and returns the registry's records. */
#include "node/registry_view.h"

#include "device/for_node.h"

#include <string.h>

static uint32_t count_drivers_before(const gpuhal_database *database, size_t index)
{
    size_t count, drivers = 0;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(database, &count);
    for (size_t i = 0; i < index; i++) {
        drivers += interfaces[i].drivers.count;
    }
    return (uint32_t)drivers;
}

uint32_t gpuhal_registry_count(const void *state, gpuhal_record_kind kind)
{
    const gpuhal_database *database = ((const gpuhal_registry_source *)state)->database;
    switch (kind) {
    case GPUHAL_RECORD_REGISTRY:
        return 1;
    case GPUHAL_RECORD_REGISTRY_PLUGIN:
        return (uint32_t)database->records[GPUHAL_DATABASE_PLUGIN].count;
    case GPUHAL_RECORD_REGISTRY_PHYSICAL:
        return (uint32_t)database->records[GPUHAL_DATABASE_PHYSICAL].count;
    case GPUHAL_RECORD_REGISTRY_INTERFACE:
        return (uint32_t)database->records[GPUHAL_DATABASE_INTERFACE].count;
    case GPUHAL_RECORD_REGISTRY_DRIVER:
        return count_drivers_before(database, database->records[GPUHAL_DATABASE_INTERFACE].count);
    case GPUHAL_RECORD_REGISTRY_LINK:
        return (uint32_t)database->records[GPUHAL_DATABASE_LINK].count;
    case GPUHAL_RECORD_REGISTRY_FAULT:
        return (uint32_t)database->records[GPUHAL_DATABASE_FAULT].count;
    default:
        return GPUHAL_NO_KIND;
    }
}

static void give_plugin(const gpuhal_database_plugin *known, const char *output, void *out_record)
{
    const gpuhal_plugin_record plugin = {
        .state = known->state,
        .stage = known->stage,
        .signal = known->signal,
        .name = gpuhal_text_or_empty(known->name),
        .file = gpuhal_text_or_empty(known->file),
        .version = gpuhal_text_or_empty(known->version),
        .driver = gpuhal_text_or_empty(known->driver),
        .reason = gpuhal_text_or_empty(known->reason),
        .output = gpuhal_text_or_empty(output),
        .identity = gpuhal_text_or_empty(known->identity),
        .probed_at = known->probed_at,
        .device_count = (uint32_t)gpuhal_listed_devices_usable(&known->devices),
    };
    gpuhal_record_give(out_record, &plugin, sizeof plugin);
}

static void give_physical(const gpuhal_database *database, const gpuhal_database_physical *known, void *out_record)
{
    const gpuhal_physical_record physical = {
        .number = known->number,
        .is_host = known->host,
        .is_present = gpuhal_database_lists(database, known->number),
        .vendor_id = known->vendor_id,
        .pci_address = gpuhal_text_or_empty(known->pci),
        .name = gpuhal_text_or_empty(known->name),
        .first_seen = known->first_seen,
        .last_seen = known->last_seen,
    };
    gpuhal_record_give(out_record, &physical, sizeof physical);
}

static void give_interface(const gpuhal_database *database, uint32_t index, void *out_record)
{
    const gpuhal_database_interface *known = gpuhal_database_at(database, GPUHAL_DATABASE_INTERFACE, index);
    const gpuhal_interface_record iface = {
        .number = known->number,
        .physical = known->physical,
        .is_present = known->present,
        .driver_count = (uint32_t)known->drivers.count,
        .first_driver = count_drivers_before(database, index),
        .backend = gpuhal_text_or_empty(known->backend),
        .name = gpuhal_text_or_empty(known->name),
        .partition = gpuhal_text_or_empty(known->partition),
        .uuid = gpuhal_text_or_empty(known->uuid),
        .first_seen = known->first_seen,
        .last_seen = known->last_seen,
    };
    gpuhal_record_give(out_record, &iface, sizeof iface);
}

static void give_driver(const gpuhal_database *database, uint32_t index, void *out_record)
{
    size_t count;
    const gpuhal_database_interface *iface = gpuhal_database_interfaces(database, &count);
    for (; index >= iface->drivers.count; iface++) {
        index -= (uint32_t)iface->drivers.count;
    }
    const gpuhal_database_version *known = &iface->drivers.list[index];
    const gpuhal_driver_record driver = {
        .interface_number = iface->number, .version = gpuhal_text_or_empty(known->version), .since = known->since};
    gpuhal_record_give(out_record, &driver, sizeof driver);
}

static void give_link(const gpuhal_database_link *known, void *out_record)
{
    const gpuhal_link_record link = {
        .from = known->from,
        .to = known->to,
        .verified = known->verified,
        .path = (gpuhal_path)known->path,
        .bytes_per_second = known->bytes_per_second,
        .latency_ns = known->latency_ns,
        .tried = known->tried,
        .from_driver = gpuhal_text_or_empty(known->from_driver),
        .to_driver = gpuhal_text_or_empty(known->to_driver),
        .reason = gpuhal_text_or_empty(known->reason),
    };
    gpuhal_record_give(out_record, &link, sizeof link);
}

/* Returns the plugin's name, or the identity of its file if the plugin has no record. */
static const char *name_of(const gpuhal_database *database, const char *identity)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(database, &count);
    for (size_t i = 0; identity && i < count; i++) {
        if (strcmp(plugins[i].identity, identity) == 0) {
            return plugins[i].name;
        }
    }
    return gpuhal_text_or_empty(identity);
}

static void give_fault(const gpuhal_database *database, const gpuhal_database_fault *known, void *out_record)
{
    static const char *const kinds[] = {
        [GPUHAL_FAULT_CRASH] = "crash",
        [GPUHAL_FAULT_HANG] = "hang",
        [GPUHAL_FAULT_LOST] = "lost",
        [GPUHAL_FAULT_OUT_OF_MEMORY] = "out_of_memory",
    };
    const bool has_name = known->kind < sizeof kinds / sizeof *kinds && kinds[known->kind];
    const gpuhal_fault_record fault = {
        .interface_number = known->iface,
        .kind = has_name ? kinds[known->kind] : "unknown",
        .plugin = name_of(database, known->plugin),
        .driver_version = gpuhal_text_or_empty(known->driver_version),
        .detail = gpuhal_text_or_empty(known->detail),
        .count = known->count,
        .first = known->first,
        .last = known->last,
    };
    gpuhal_record_give(out_record, &fault, sizeof fault);
}

void gpuhal_registry_give(const void *state, gpuhal_record_kind kind, uint32_t index, void *out_record)
{
    const gpuhal_registry_source *source = state;
    const gpuhal_database *database = source->database;
    const gpuhal_registry_info info = {
        .generation = database->generation, .place = source->place, .damage = source->damage};
    switch (kind) {
    case GPUHAL_RECORD_REGISTRY_PLUGIN:
        give_plugin(gpuhal_database_at(database, GPUHAL_DATABASE_PLUGIN, index), source->outputs[index], out_record);
        return;
    case GPUHAL_RECORD_REGISTRY_PHYSICAL:
        give_physical(database, gpuhal_database_at(database, GPUHAL_DATABASE_PHYSICAL, index), out_record);
        return;
    case GPUHAL_RECORD_REGISTRY_INTERFACE:
        give_interface(database, index, out_record);
        return;
    case GPUHAL_RECORD_REGISTRY_DRIVER:
        give_driver(database, index, out_record);
        return;
    case GPUHAL_RECORD_REGISTRY_LINK:
        give_link(gpuhal_database_at(database, GPUHAL_DATABASE_LINK, index), out_record);
        return;
    case GPUHAL_RECORD_REGISTRY_FAULT:
        give_fault(database, gpuhal_database_at(database, GPUHAL_DATABASE_FAULT, index), out_record);
        return;
    default:
        gpuhal_record_give(out_record, &info, sizeof info);
    }
}
