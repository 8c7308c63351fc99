/* registry_json.c: the document gpuhal.registry/2, described by docs/gpuhal.registry-2.schema.json. All keys are always
 * present, in this order; unknown values are null. */
#include "build.h"
#include "registry.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

static json_t *make_lines(gpuhal_probe_json *builder, const char *text)
{
    json_t *lines = json_array();
    while (*text) {
        char line[4096];
        size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)(length < sizeof line ? length : sizeof line - 1), text);
        gpuhal_probe_append(builder, lines, gpuhal_json_any_text(line));
        text += length + (text[length] != 0);
    }
    return lines;
}

static json_t *make_plugin(gpuhal_probe_json *builder, const gpuhal_view *view, uint32_t index,
                           const gpuhal_plugin_record *plugin)
{
    char why[512] = "";
    json_t *object = json_object();
    bool looked = gpuhal_probe_plugin_stale(view, index, plugin, why, sizeof why) == GPUHAL_OK;
    gpuhal_probe_put(builder, object, "name", gpuhal_json_text(plugin->name));
    gpuhal_probe_put(builder, object, "file", gpuhal_json_text(plugin->file));
    gpuhal_probe_put(builder, object, "version", gpuhal_json_text(plugin->version));
    gpuhal_probe_put(builder, object, "state", gpuhal_json_text(gpuhal_plugin_state_name(plugin->state)));
    gpuhal_probe_put(builder, object, "stage", gpuhal_json_text(gpuhal_plugin_stage_name(plugin->stage)));
    gpuhal_probe_put(builder, object, "reason", gpuhal_json_text(plugin->reason));
    gpuhal_probe_put(builder, object, "signal", plugin->signal ? gpuhal_probe_number(plugin->signal) : json_null());
    gpuhal_probe_put(builder, object, "output", make_lines(builder, plugin->output));
    gpuhal_probe_put(builder, object, "driver", gpuhal_json_text(plugin->driver));
    gpuhal_probe_put(builder, object, "devices", gpuhal_probe_number(plugin->device_count));
    gpuhal_probe_put(builder, object, "probed_at", gpuhal_json_time(plugin->probed_at));
    gpuhal_probe_put(builder, object, "valid", looked ? json_boolean(*why == 0) : json_null());
    gpuhal_probe_put(builder, object, "stale", gpuhal_json_text(why));
    return object;
}

static json_t *make_drivers(gpuhal_probe_json *builder, const gpuhal_view *view, const gpuhal_interface_record *entry)
{
    json_t *array = json_array();
    gpuhal_driver_record driver = {.size = sizeof driver};
    for (uint32_t i = 0; i < entry->driver_count; i++) {
        (void)gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_DRIVER, entry->first_driver + i, &driver);
        json_t *object = json_object();
        gpuhal_probe_put(builder, object, "version", gpuhal_json_text(driver.version));
        gpuhal_probe_put(builder, object, "since", gpuhal_json_time(driver.since));
        gpuhal_probe_append(builder, array, object);
    }
    return array;
}

static json_t *make_interface(gpuhal_probe_json *builder, const gpuhal_view *view, const gpuhal_interface_record *entry,
                              uint32_t vendor_id)
{
    char uuid[PROBE_UUID_BYTES];
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "number", gpuhal_probe_number(entry->number));
    gpuhal_probe_put(builder, object, "backend", gpuhal_json_text(entry->backend));
    gpuhal_probe_put(builder, object, "name", gpuhal_json_text(entry->name));
    gpuhal_probe_put(builder, object, "partition", gpuhal_json_text(entry->partition));
    gpuhal_probe_put(builder, object, "uuid",
                     gpuhal_json_text(gpuhal_probe_uuid(entry->uuid, vendor_id, *entry->partition != 0, uuid)));
    gpuhal_probe_put(builder, object, "present", json_boolean(entry->is_present != 0));
    gpuhal_probe_put(builder, object, "first_seen", gpuhal_json_time(entry->first_seen));
    gpuhal_probe_put(builder, object, "last_seen", gpuhal_json_time(entry->last_seen));
    gpuhal_probe_put(builder, object, "drivers", make_drivers(builder, view, entry));
    return object;
}

static json_t *make_physical(gpuhal_probe_json *builder, const gpuhal_view *view,
                             const gpuhal_physical_record *physical)
{
    json_t *object = json_object(), *interfaces = json_array();
    gpuhal_probe_put(builder, object, "number", gpuhal_probe_number(physical->number));
    gpuhal_probe_put(builder, object, "name", gpuhal_json_text(physical->name));
    gpuhal_probe_put(builder, object, "pci_address", gpuhal_json_text(physical->pci_address));
    gpuhal_probe_put(builder, object, "vendor_id",
                     physical->vendor_id ? gpuhal_probe_number(physical->vendor_id) : json_null());
    gpuhal_probe_put(builder, object, "host_processor", json_boolean(physical->is_host != 0));
    gpuhal_probe_put(builder, object, "present", json_boolean(physical->is_present != 0));
    gpuhal_probe_put(builder, object, "first_seen", gpuhal_json_time(physical->first_seen));
    gpuhal_probe_put(builder, object, "last_seen", gpuhal_json_time(physical->last_seen));
    gpuhal_interface_record entry = {.size = sizeof entry};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &entry) == GPUHAL_OK; i++) {
        if (entry.physical == physical->number) {
            gpuhal_probe_append(builder, interfaces, make_interface(builder, view, &entry, physical->vendor_id));
        }
    }
    gpuhal_probe_put(builder, object, "interfaces", interfaces);
    return object;
}

static json_t *make_link(gpuhal_probe_json *builder, const gpuhal_link_record *link)
{
    json_t *object = json_object();
    bool measured = link->bytes_per_second != 0;
    gpuhal_probe_put(builder, object, "from", gpuhal_probe_number(link->from));
    gpuhal_probe_put(builder, object, "to", gpuhal_probe_number(link->to));
    gpuhal_probe_put(builder, object, "from_driver", gpuhal_json_text(link->from_driver));
    gpuhal_probe_put(builder, object, "to_driver", gpuhal_json_text(link->to_driver));
    gpuhal_probe_put(builder, object, "verified", json_boolean(link->verified != 0));
    gpuhal_probe_put(builder, object, "reason", gpuhal_json_text(link->reason));
    bool known = link->path >= GPUHAL_PATH_PEER && link->path <= GPUHAL_PATH_STAGED;
    gpuhal_probe_put(builder, object, "path",
                     measured && known ? gpuhal_json_text(gpuhal_path_name(link->path)) : json_null());
    gpuhal_probe_put(builder, object, "bytes_per_second",
                     measured ? gpuhal_probe_number(link->bytes_per_second) : json_null());
    gpuhal_probe_put(builder, object, "latency_ns",
                     link->latency_ns ? gpuhal_probe_number(link->latency_ns) : json_null());
    gpuhal_probe_put(builder, object, "tried_at", gpuhal_json_time(link->tried));
    return object;
}

static json_t *make_fault(gpuhal_probe_json *builder, const gpuhal_fault_record *fault)
{
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "kind", gpuhal_json_text(fault->kind));
    gpuhal_probe_put(builder, object, "interface",
                     fault->interface_number ? gpuhal_probe_number(fault->interface_number) : json_null());
    gpuhal_probe_put(builder, object, "plugin", gpuhal_json_text(fault->plugin));
    gpuhal_probe_put(builder, object, "driver_version", gpuhal_json_text(fault->driver_version));
    gpuhal_probe_put(builder, object, "detail", gpuhal_json_text(fault->detail));
    gpuhal_probe_put(builder, object, "count", gpuhal_probe_number(fault->count));
    gpuhal_probe_put(builder, object, "first", gpuhal_json_time(fault->first));
    gpuhal_probe_put(builder, object, "last", gpuhal_json_time(fault->last));
    return object;
}

bool gpuhal_probe_registry_json(const gpuhal_view *view, FILE *out)
{
    const gpuhal_registry_info info = gpuhal_probe_registry_info(view);
    gpuhal_probe_json builder = {0};
    json_t *document = json_object(), *physicals = json_array(), *plugins = json_array();
    json_t *links = json_array(), *faults = json_array();
    gpuhal_probe_put(&builder, document, "schema", gpuhal_json_text("gpuhal.registry/2"));
    gpuhal_probe_put(&builder, document, "library_version", gpuhal_json_text(gpuhal_version()));
    gpuhal_probe_put(&builder, document, "place", gpuhal_json_text(info.place));
    gpuhal_probe_put(&builder, document, "generation", gpuhal_probe_number(info.generation));
    gpuhal_probe_put(&builder, document, "damage", gpuhal_json_text(info.damage));
    gpuhal_physical_record physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        gpuhal_probe_append(&builder, physicals, make_physical(&builder, view, &physical));
    }
    gpuhal_probe_put(&builder, document, "physical_devices", physicals);
    gpuhal_plugin_record plugin = {.size = sizeof plugin};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PLUGIN, i, &plugin) == GPUHAL_OK; i++) {
        gpuhal_probe_append(&builder, plugins, make_plugin(&builder, view, i, &plugin));
    }
    gpuhal_probe_put(&builder, document, "plugins", plugins);
    gpuhal_link_record link = {.size = sizeof link};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_LINK, i, &link) == GPUHAL_OK; i++) {
        gpuhal_probe_append(&builder, links, make_link(&builder, &link));
    }
    gpuhal_probe_put(&builder, document, "links", links);
    gpuhal_fault_record fault = {.size = sizeof fault};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_FAULT, i, &fault) == GPUHAL_OK; i++) {
        gpuhal_probe_append(&builder, faults, make_fault(&builder, &fault));
    }
    gpuhal_probe_put(&builder, document, "faults", faults);
    return gpuhal_probe_json_print(&builder, document, out);
}
