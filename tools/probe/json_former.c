/* json_former.c: gpuhal.probe/1, described by docs/gpuhal.probe-1.schema.json. --json=1 prints it until the next minor
 * version. It is the current document without later additions, with the old names, states and device objects: facts as
 * numbers, every reason, no telemetry. */
#include "json_parts.h"

#include <string.h>

#define LAST_FACT GPUHAL_FACT_DRIVER_UUID /* later facts are not part of gpuhal.probe/1 */

static void rename_key(gpuhal_probe_json *builder, json_t *object, const char *key, const char *former)
{
    json_t *value = json_incref(json_object_get(object, key));
    json_object_del(object, key);
    gpuhal_probe_put(builder, object, former, value);
}

static void rename_in_all(gpuhal_probe_json *builder, json_t *array, const char *key, const char *former)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        rename_key(builder, json_array_get(array, i), key, former);
    }
}

/* Adds the free memory as a value, or null if it is unknown, as with --cached. */
static void put_free_memory(gpuhal_probe_json *builder, json_t *object, json_t *missing,
                            const gpuhal_probe_device *entry)
{
    const gpuhal_value *value = gpuhal_probe_value_find(entry, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    const bool known = value && !value->missing;
    gpuhal_probe_put(builder, object, "memory_free_bytes", known ? gpuhal_probe_number(value->u64) : json_null());
    if (!known) {
        gpuhal_probe_put_reason(builder, missing, "memory_free_bytes", value ? value->missing : GPUHAL_MISSING_NOT_READ,
                                value ? value->why : "the listing is cached");
    }
}

static json_t *make_facts(gpuhal_probe_json *builder, json_t *missing, const json_t *object,
                          const gpuhal_device *device)
{
    json_t *facts = json_object();
    for (gpuhal_key key = 1; key <= LAST_FACT; key++) {
        if (!json_object_get(object, gpuhal_key_name(key))) {
            gpuhal_probe_put_fact(builder, facts, missing, device, key, true);
        }
    }
    return facts;
}

static void rename_capability(gpuhal_probe_json *builder, json_t *capabilities)
{
    for (size_t i = 0; i < json_array_size(capabilities); i++) {
        const char *word = json_string_value(json_array_get(capabilities, i));
        if (word && strcmp(word, "host_copy") == 0 && json_array_set_new(capabilities, i, json_string("write")) != 0) {
            builder->failed = true;
        }
    }
}

static json_t *make_device(gpuhal_probe_json *builder, const gpuhal_probe_device *entry, bool verifying)
{
    static const gpuhal_key keys[] = {GPUHAL_FACT_UUID,           GPUHAL_FACT_PCI_ADDRESS, GPUHAL_FACT_NUMA_NODE,
                                      GPUHAL_FACT_DRIVER_VERSION, GPUHAL_FACT_API_VERSION, GPUHAL_FACT_NATIVE_INDEX};
    const gpuhal_device *device = entry->device;
    uint64_t software = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
    json_t *object = json_object(), *missing = json_object();
    gpuhal_probe_put(builder, object, "id", gpuhal_json_any_text(gpuhal_device_id(device)));
    gpuhal_probe_put(builder, object, "backend", gpuhal_json_any_text(gpuhal_device_backend(device)));
    gpuhal_probe_put(builder, object, "index", gpuhal_probe_number(gpuhal_device_index(device)));
    gpuhal_probe_put_fact(builder, object, missing, device, GPUHAL_FACT_NAME, true);
    gpuhal_probe_put_fact(builder, object, missing, device, GPUHAL_FACT_VENDOR, true);
    gpuhal_probe_put(builder, object, "type", gpuhal_probe_make_type(device));
    gpuhal_probe_put(builder, object, "software", json_boolean(software != 0));
    gpuhal_probe_put_fact(builder, object, missing, device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, true);
    put_free_memory(builder, object, missing, entry);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        gpuhal_probe_put_fact(builder, object, missing, device, keys[i], true);
    }
    gpuhal_probe_put(builder, object, "physical_device", gpuhal_probe_number(entry->physical));
    gpuhal_probe_put(builder, object, "preferred", json_boolean(entry->preferred != 0));
    json_t *capabilities = gpuhal_probe_make_capabilities(builder, device);
    rename_capability(builder, capabilities);
    gpuhal_probe_put(builder, object, "capabilities", capabilities);
    gpuhal_probe_put_result(builder, object, missing, entry->verified, &entry->result, verifying);
    gpuhal_probe_put(builder, object, "facts", make_facts(builder, missing, object, device));
    gpuhal_probe_put(builder, object, "missing", missing);
    return object;
}

static void rename_state(gpuhal_probe_json *builder, json_t *plugin)
{
    const char *state = json_string_value(json_object_get(plugin, "state"));
    if (state && (strcmp(state, "failed") == 0 || strcmp(state, "forked") == 0)) {
        gpuhal_probe_put(builder, plugin, "state", gpuhal_json_any_text("broken"));
    }
}

/* gpuhal.probe/1 had neither link names nor vendor-specific links. */
static void rename_link(gpuhal_probe_json *builder, json_t *link)
{
    json_t *missing = json_object_get(link, "missing");
    const char *kind = json_string_value(json_object_get(link, "kind"));
    if (kind && strcmp(kind, "vendor") == 0) {
        gpuhal_probe_put(builder, link, "kind", json_null());
        gpuhal_probe_put_reason(builder, missing, "kind", GPUHAL_MISSING_NOT_SUPPORTED, "a link of the vendor's own");
    }
    json_object_del(link, "name");
    json_object_del(missing, "name");
    if (json_object_get(missing, "tried_at")) {
        rename_key(builder, missing, "tried_at", "tried");
    }
    rename_key(builder, link, "tried_at", "tried");
    rename_key(builder, link, "cached", "remembered");
}

/* gpuhal.probe/1 had only the library's own variables. */
static void remove_foreign(json_t *environment)
{
    for (size_t i = json_array_size(environment); i-- > 0;) {
        const char *name = json_string_value(json_object_get(json_array_get(environment, i), "name"));
        if (name && strncmp(name, "GPUHAL_", strlen("GPUHAL_")) != 0) {
            json_array_remove(environment, i);
        }
    }
}

void gpuhal_probe_make_former(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine, json_t *document)
{
    static const char *const later[] = {"generated_at", "status", "problems", "hardware"};
    json_t *devices = json_array(), *plugins = json_object_get(document, "plugins"),
           *links = json_object_get(document, "links"), *host = json_object_get(document, "host");
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        json_object_del(document, later[i]);
    }
    json_object_del(host, "architecture");
    json_object_del(host, "processors");
    for (size_t i = 0; i < json_array_size(plugins); i++) {
        rename_state(builder, json_array_get(plugins, i));
    }
    remove_foreign(json_object_get(document, "environment"));
    rename_in_all(builder, plugins, "cached", "remembered");
    rename_in_all(builder, plugins, "probed_at", "met");
    rename_in_all(builder, json_object_get(document, "physical_devices"), "interfaces", "faces");
    for (size_t i = 0; i < json_array_size(links); i++) {
        rename_link(builder, json_array_get(links, i));
    }
    gpuhal_physical_info physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        gpuhal_probe_put(builder, json_array_get(json_object_get(document, "physical_devices"), i), "uuid",
                         gpuhal_json_text(physical.uuid));
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_append(builder, devices, make_device(builder, &machine->devices[i], machine->verifying));
    }
    gpuhal_probe_put(builder, document, "devices", devices);
    gpuhal_probe_put(builder, document, "schema", gpuhal_json_any_text("gpuhal.probe/1"));
    rename_key(builder, document, "notes", "remarks");
}
