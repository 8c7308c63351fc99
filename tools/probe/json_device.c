/* json_device.c: a device in gpuhal.probe/2; see json_parts.h. Bit sets become lists of words. */
#include "json_parts.h"
#include "rows.h"
#include "uuid.h"

#include <stdio.h>
#include <string.h>

#define FIRST_VALUE 0x1000u

static const char *throttle_name(uint32_t bit)
{
    static const char *const names[] = {"idle",     "setting", "power_cap", "thermal", "power_brake",
                                        "hardware", "sync",    "display",   "other"};
    return bit < sizeof names / sizeof *names ? names[bit] : "other";
}

static const char *memory_kind_name(uint32_t bit)
{
    return gpuhal_memory_kind_name(bit);
}

static const char *handle_kind_name(uint32_t bit)
{
    return gpuhal_handle_kind_name(bit);
}

static const char *native_type_name(uint32_t bit)
{
    return gpuhal_native_type_name(bit);
}

static const char *data_type_name(uint32_t bit)
{
    return gpuhal_data_type_name(bit);
}

static const char *launch_form_name(uint32_t bit)
{
    static const char *const names[] = {"local_memory", "group_size", "prepared_sizes", "threads",
                                        "offset",       "indirect",   "null_buffers"};
    return bit < sizeof names / sizeof *names ? names[bit] : "other";
}

static const char *compute_mode_name(uint32_t value)
{
    static const char *const names[] = {"unknown", "shared", "exclusive", "prohibited"};
    return names[value < sizeof names / sizeof *names ? value : 0];
}

static const char *pageable_name(uint32_t value)
{
    static const char *const names[] = {"none", "staged", "direct"};
    return value < sizeof names / sizeof *names ? names[value] : "unknown";
}

/* How to write the library's numbers: one word for each set bit, a single word, or a boolean. */
static const struct {
    gpuhal_key key;
    const char *(*name)(uint32_t);
    bool is_set;
} translations[] = {
    {GPUHAL_FACT_MEMORY_KINDS, memory_kind_name, true},
    {GPUHAL_FACT_EXPORT_KINDS, handle_kind_name, true},
    {GPUHAL_FACT_IMPORT_KINDS, handle_kind_name, true},
    {GPUHAL_FACT_ADOPT_KINDS, native_type_name, true},
    {GPUHAL_FACT_DATA_TYPES, data_type_name, true},
    {GPUHAL_FACT_HOST_VISIBLE_KINDS, memory_kind_name, true},
    {GPUHAL_FACT_HOST_COHERENT_KINDS, memory_kind_name, true},
    {GPUHAL_FACT_KERNEL_KINDS, memory_kind_name, true},
    {GPUHAL_FACT_EXPORTABLE_KINDS, memory_kind_name, true},
    {GPUHAL_FACT_LAUNCH_FORMS, launch_form_name, true},
    {GPUHAL_VALUE_THROTTLE_REASONS, throttle_name, true},
    {GPUHAL_FACT_PAGEABLE_ACCESS, pageable_name, false},
    {GPUHAL_FACT_COMPUTE_MODE, compute_mode_name, false},
    {GPUHAL_FACT_UNIFIED_MEMORY, NULL, false},
};

static bool is_temperature(gpuhal_key key)
{
    return key == GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS || key == GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS ||
           key == GPUHAL_VALUE_TEMPERATURE_HOT_SPOT_MILLICELSIUS;
}

static json_t *make_words(gpuhal_probe_json *builder, uint64_t bits, const char *(*name)(uint32_t))
{
    json_t *array = json_array();
    for (uint32_t bit = 0; bit < 64; bit++) {
        if (bits >> bit & 1u) {
            gpuhal_probe_append(builder, array, gpuhal_json_any_text(name(bit)));
        }
    }
    return array;
}

static json_t *split_words(gpuhal_probe_json *builder, const char *text)
{
    json_t *array = json_array();
    char word[64];
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        gpuhal_probe_append(builder, array, gpuhal_json_any_text(word));
        at += length;
    }
    return array;
}

static json_t *make_number(gpuhal_probe_json *builder, gpuhal_key key, uint64_t number)
{
    for (size_t i = 0; i < sizeof translations / sizeof *translations; i++) {
        if (translations[i].key == key && translations[i].is_set) {
            return make_words(builder, number, translations[i].name);
        }
        if (translations[i].key == key) {
            return translations[i].name ? gpuhal_json_any_text(translations[i].name((uint32_t)number))
                                        : json_boolean(number != 0);
        }
    }
    return is_temperature(key) ? json_integer((json_int_t)number) : gpuhal_probe_number(number);
}

static json_t *make_facts(gpuhal_probe_json *builder, json_t *missing, const json_t *device_object,
                          const gpuhal_device *device)
{
    json_t *facts = json_object();
    for (gpuhal_key key = 1; key < FIRST_VALUE && gpuhal_key_name(key); key++) {
        uint64_t number;
        const char *text;
        if (key == GPUHAL_FACT_UNLISTED || json_object_get(device_object, gpuhal_key_name(key))) {
            continue; /* no device has UNLISTED */
        }
        if (!gpuhal_key_is_text(key) && gpuhal_device_u64(device, key, &number) == GPUHAL_OK) {
            gpuhal_probe_put(builder, facts, gpuhal_key_name(key), make_number(builder, key, number));
        } else if (key == GPUHAL_FACT_PROGRAM_FORMATS && gpuhal_device_text(device, key, &text) == GPUHAL_OK) {
            gpuhal_probe_put(builder, facts, gpuhal_key_name(key), split_words(builder, text));
        } else {
            gpuhal_probe_put_fact(builder, facts, missing, device, key, false);
        }
    }
    gpuhal_probe_put_vendor_facts(builder, facts, missing, device);
    return facts;
}

/* Creates {"value": 41000, "source": "nvml"}, {"value": null, "reason": "timed out: ..."}, or null if the device has no
 * such value. */
static json_t *make_value(gpuhal_probe_json *builder, const gpuhal_value *value)
{
    if (value->missing == GPUHAL_MISSING_NOT_SUPPORTED) {
        return json_null();
    }
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "value",
                     value->missing ? json_null() : make_number(builder, value->key, value->u64));
    if (value->missing) {
        gpuhal_probe_put_reason(builder, object, "reason", value->missing, value->why);
    } else {
        gpuhal_probe_put(builder, object, "source", gpuhal_json_text(value->source));
    }
    return object;
}

json_t *gpuhal_probe_make_telemetry(gpuhal_probe_json *builder, const gpuhal_probe_device *entry)
{
    json_t *object = entry->values ? json_object() : json_null();
    for (uint32_t i = 0; entry->values && i < entry->values->count; i++) {
        const gpuhal_value *value = gpuhal_probe_value_find(entry, entry->values->list[i].key);
        gpuhal_probe_put(builder, object, gpuhal_key_name(value->key), make_value(builder, value));
    }
    return object;
}

/* CUDA and HIP report the API version and the compute capability in one string. */
static void put_versions(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_device *device)
{
    static const char between[] = ", compute capability ";
    const char *text = "", *found = NULL;
    char version[256];
    gpuhal_probe_put_fact(builder, object, missing, device, GPUHAL_FACT_API_VERSION, false);
    if (gpuhal_device_text(device, GPUHAL_FACT_API_VERSION, &text) == GPUHAL_OK) {
        found = strstr(text, between);
    }
    if (found) {
        snprintf(version, sizeof version, "%.*s", (int)(found - text), text);
        gpuhal_probe_put(builder, object, "api_version", gpuhal_json_any_text(version));
    }
    gpuhal_probe_put(builder, object, "compute_capability",
                     found ? gpuhal_json_text(found + strlen(between)) : json_null());
    gpuhal_probe_put_fact(builder, object, missing, device, GPUHAL_FACT_TARGET_ARCHITECTURE, false);
}

static json_t *make_mig(gpuhal_probe_json *builder, const gpuhal_device *device)
{
    const char *name = "", *numbers = "";
    char space[PROBE_UUID_BYTES];
    (void)gpuhal_device_text(device, GPUHAL_FACT_NAME, &name);
    (void)gpuhal_device_text(device, GPUHAL_FACT_PARTITION_NUMBERS, &numbers);
    return gpuhal_probe_make_mig(builder, name, gpuhal_probe_device_uuid(device, GPUHAL_FACT_PARTITION, space),
                                 numbers);
}

static void put_hardware(gpuhal_probe_json *builder, json_t *object, const gpuhal_probe_device *entry,
                         const gpuhal_hardware_info *hardware)
{
    gpuhal_probe_put(builder, object, "kernel_driver", gpuhal_probe_make_kernel_driver(builder, hardware));
    gpuhal_probe_put(builder, object, "device_nodes", gpuhal_probe_make_nodes(builder, entry, hardware));
    gpuhal_probe_put(builder, object, "cpu_affinity", gpuhal_json_text(hardware ? hardware->local_cpus : ""));
}

json_t *gpuhal_probe_make_device(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine,
                                 const gpuhal_probe_device *entry)
{
    static const gpuhal_key keys[] = {GPUHAL_FACT_MEMORY_TOTAL_BYTES, GPUHAL_FACT_UUID, GPUHAL_FACT_PCI_ADDRESS,
                                      GPUHAL_FACT_NUMA_NODE, GPUHAL_FACT_DRIVER_VERSION};
    const gpuhal_device *device = entry->device;
    uint64_t software = 0;
    char uuid[PROBE_UUID_BYTES];
    gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
    json_t *object = json_object(), *missing = json_object();
    gpuhal_probe_put(builder, object, "id", gpuhal_json_any_text(gpuhal_device_id(device)));
    gpuhal_probe_put(builder, object, "backend", gpuhal_json_any_text(gpuhal_device_backend(device)));
    gpuhal_probe_put(builder, object, "index", gpuhal_probe_number(gpuhal_device_index(device)));
    gpuhal_probe_put_fact(builder, object, missing, device, GPUHAL_FACT_NAME, false);
    gpuhal_probe_put_fact(builder, object, missing, device, GPUHAL_FACT_VENDOR, false);
    gpuhal_probe_put(builder, object, "type", gpuhal_probe_make_type(device));
    gpuhal_probe_put(builder, object, "software", json_boolean(software != 0));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        gpuhal_probe_put_fact(builder, object, missing, device, keys[i], false);
    }
    gpuhal_probe_put(builder, object, "uuid",
                     gpuhal_json_text(gpuhal_probe_device_uuid(device, GPUHAL_FACT_UUID, uuid)));
    put_versions(builder, object, missing, device);
    gpuhal_probe_put_fact(builder, object, missing, device, GPUHAL_FACT_NATIVE_INDEX, false);
    gpuhal_probe_put(builder, object, "mig", make_mig(builder, device));
    gpuhal_probe_put(builder, object, "physical_device", gpuhal_probe_number(entry->physical));
    gpuhal_probe_put(builder, object, "preferred", json_boolean(entry->preferred != 0));
    put_hardware(builder, object, entry, gpuhal_probe_hardware_of(machine, entry));
    gpuhal_probe_put(builder, object, "capabilities", gpuhal_probe_make_capabilities(builder, device));
    gpuhal_probe_put_result(builder, object, missing, entry->verified, &entry->result, machine->verifying);
    gpuhal_probe_put(builder, object, "telemetry", gpuhal_probe_make_telemetry(builder, entry));
    gpuhal_probe_put_processes(builder, object, missing, machine, entry);
    gpuhal_probe_put(builder, object, "facts", make_facts(builder, missing, object, device));
    gpuhal_probe_put(builder, object, "missing", missing);
    return object;
}
