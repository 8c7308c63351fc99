/* json.c: the document gpuhal.probe/2; docs/gpuhal.probe-2.schema.json describes it. Keys are always there and in this
 * order. What is unknown of a device or a link is null, and its reason stands in the `missing` beside it. */
#include "build.h"
#include "host.h"
#include "links.h"
#include "print.h"
#include "times.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Facts from here on are values that change; of those the document has the free memory alone. */
#define FIRST_VALUE 0x1000u

static json_t *make_milliseconds(uint64_t time_ns)
{
    return time_ns ? json_real(round((double)time_ns / 1e3) / 1e3) : json_null();
}

static json_t *make_host(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine)
{
    gpuhal_probe_host host;
    gpuhal_probe_host_read(&host);
    const char *cpu = NULL; /* null where the processor is hidden */
    for (uint32_t i = 0; i < machine->count && !cpu; i++) {
        if (strcmp(gpuhal_device_backend(machine->devices[i].device), "cpu") == 0) {
            gpuhal_device_text(machine->devices[i].device, GPUHAL_FACT_NAME, &cpu);
        }
    }
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "name", gpuhal_probe_text(host.name));
    gpuhal_probe_put(builder, object, "os", gpuhal_probe_text(host.os));
    gpuhal_probe_put(builder, object, "kernel", gpuhal_probe_text(host.kernel));
    gpuhal_probe_put(builder, object, "cpu", gpuhal_probe_text(cpu));
    return object;
}

static json_t *make_plugin(gpuhal_probe_json *builder, const gpuhal_plugin_report *report)
{
    char words[GPUHAL_PROBE_TEXT_BYTES], probed_at[GPUHAL_PROBE_TIME_BYTES];
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "name", gpuhal_probe_any_text(gpuhal_probe_report_name(report)));
    gpuhal_probe_put(builder, object, "file", gpuhal_probe_text(report->file));
    gpuhal_probe_put(builder, object, "state", gpuhal_probe_any_text(gpuhal_plugin_state_name(report->state)));
    gpuhal_probe_put(builder, object, "stage", gpuhal_probe_any_text(gpuhal_plugin_stage_name(report->stage)));
    gpuhal_probe_put(builder, object, "reason", gpuhal_probe_text(gpuhal_probe_in_options(report->reason, words)));
    gpuhal_probe_put(builder, object, "driver", gpuhal_probe_text(report->driver));
    gpuhal_probe_put(builder, object, "time_ms", make_milliseconds(report->time_ns));
    gpuhal_probe_put(builder, object, "cached", json_boolean(report->cached));
    gpuhal_probe_format_stamp(report->probed_at, probed_at);
    gpuhal_probe_put(builder, object, "probed_at", gpuhal_probe_text(probed_at));
    return object;
}

static void put_reason(gpuhal_probe_json *builder, json_t *missing, const char *name, gpuhal_missing reason,
                       const char *why)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", gpuhal_missing_name(reason), why && *why ? ": " : "", why ? why : "");
    gpuhal_probe_put(builder, missing, name, gpuhal_probe_any_text(text));
}

/* A fact under its own name; without a value null, and the reason in `missing`. */
static void put_fact(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_device *device,
                     gpuhal_key key)
{
    const char *name = gpuhal_key_name(key), *text;
    uint64_t number;
    if (!gpuhal_key_is_text(key) && gpuhal_device_u64(device, key, &number) == GPUHAL_OK) {
        gpuhal_probe_put(builder, object, name, gpuhal_probe_number(number));
        return;
    }
    if (!gpuhal_key_is_text(key) || gpuhal_device_text(device, key, &text) != GPUHAL_OK) {
        const char *why = "";
        gpuhal_missing reason = gpuhal_device_missing(device, key, &why);
        gpuhal_probe_put(builder, object, name, json_null());
        put_reason(builder, missing, name, reason, why);
        return;
    }
    gpuhal_probe_put(builder, object, name, gpuhal_probe_text(text));
    if (!*text) {
        gpuhal_probe_put(builder, missing, name, gpuhal_probe_any_text("failed: the driver gives an empty text"));
    }
}

/* A fact of the backend's own has no name here, and whether it is a text only its value says. */
static void put_vendor_fact(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_device *device,
                            gpuhal_key key)
{
    char name[16];
    const char *text = NULL, *why = "";
    uint64_t number = 0;
    snprintf(name, sizeof name, "0x%08" PRIx32, key);
    gpuhal_missing reason = gpuhal_device_missing(device, key, &why);
    if (reason) {
        gpuhal_probe_put(builder, object, name, json_null());
        put_reason(builder, missing, name, reason, why);
    } else if (gpuhal_device_u64(device, key, &number) == GPUHAL_OK) {
        gpuhal_probe_put(builder, object, name, gpuhal_probe_number(number));
    } else if (gpuhal_device_text(device, key, &text) == GPUHAL_OK) {
        gpuhal_probe_put(builder, object, name, gpuhal_probe_any_text(text));
    }
}

static json_t *make_type(const gpuhal_device *device)
{
    uint64_t type = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type);
    return gpuhal_probe_any_text(gpuhal_device_type_name((gpuhal_device_type)type));
}

static json_t *make_capabilities(gpuhal_probe_json *builder, const gpuhal_device *device)
{
    json_t *array = json_array();
    uint32_t bits = gpuhal_device_capabilities(device);
    for (uint32_t bit = 0; bit < GPUHAL_CAPABILITY_COUNT; bit++) {
        if (bits >> bit & 1u) {
            gpuhal_probe_append(builder, array, gpuhal_probe_any_text(gpuhal_capability_name(bit)));
        }
    }
    return array;
}

/* Why something was not tried. */
static const char *why_untried(bool verifying)
{
    return verifying ? "--verify without --all leaves out devices that are not preferred" : "--verify was not given";
}

/* Of a device or a link that was tried, or was not. */
static void put_result(gpuhal_probe_json *builder, json_t *object, json_t *missing, bool tried,
                       const gpuhal_probe_result *result, bool verifying)
{
    bool failed = tried && result->status;
    gpuhal_probe_put(builder, object, "verified", tried ? json_boolean(!failed) : json_null());
    if (!tried) {
        put_reason(builder, missing, "verified", GPUHAL_MISSING_NOT_READ, why_untried(verifying));
    }
    gpuhal_probe_put(builder, object, "verify_error", failed ? gpuhal_probe_any_text(result->sentence) : json_null());
}

/* What the library knows of a device beyond the keys at the device itself. */
static json_t *make_facts(gpuhal_probe_json *builder, json_t *missing, const json_t *device_object,
                          const gpuhal_device *device)
{
    json_t *facts = json_object();
    for (gpuhal_key key = 1; key < FIRST_VALUE && gpuhal_key_name(key); key++) {
        if (!json_object_get(device_object, gpuhal_key_name(key))) {
            put_fact(builder, facts, missing, device, key);
        }
    }
    gpuhal_key key = 0;
    for (uint32_t i = 0; gpuhal_device_key_at(device, i, &key) == GPUHAL_OK; i++) {
        if (key >= GPUHAL_VENDOR_FIRST) {
            put_vendor_fact(builder, facts, missing, device, key);
        }
    }
    return facts;
}

static json_t *make_device(gpuhal_probe_json *builder, const gpuhal_probe_device *entry, bool verifying)
{
    static const gpuhal_key keys[] = {
        GPUHAL_FACT_MEMORY_TOTAL_BYTES, GPUHAL_VALUE_MEMORY_FREE_BYTES, GPUHAL_FACT_UUID,
        GPUHAL_FACT_PCI_ADDRESS,        GPUHAL_FACT_NUMA_NODE,          GPUHAL_FACT_DRIVER_VERSION,
        GPUHAL_FACT_API_VERSION,        GPUHAL_FACT_NATIVE_INDEX,
    };
    const gpuhal_device *device = entry->device;
    uint64_t software = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
    json_t *object = json_object(), *missing = json_object();
    gpuhal_probe_put(builder, object, "id", gpuhal_probe_any_text(gpuhal_device_id(device)));
    gpuhal_probe_put(builder, object, "backend", gpuhal_probe_any_text(gpuhal_device_backend(device)));
    gpuhal_probe_put(builder, object, "index", gpuhal_probe_number(gpuhal_device_index(device)));
    put_fact(builder, object, missing, device, GPUHAL_FACT_NAME);
    put_fact(builder, object, missing, device, GPUHAL_FACT_VENDOR);
    gpuhal_probe_put(builder, object, "type", make_type(device));
    gpuhal_probe_put(builder, object, "software", json_boolean(software != 0));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        put_fact(builder, object, missing, device, keys[i]);
    }
    gpuhal_probe_put(builder, object, "physical_device", gpuhal_probe_number(entry->physical));
    gpuhal_probe_put(builder, object, "preferred", json_boolean(entry->preferred != 0));
    gpuhal_probe_put(builder, object, "capabilities", make_capabilities(builder, device));
    put_result(builder, object, missing, entry->verified, &entry->result, verifying);
    gpuhal_probe_put(builder, object, "facts", make_facts(builder, missing, object, device));
    gpuhal_probe_put(builder, object, "missing", missing);
    return object;
}

static json_t *make_evidence(gpuhal_probe_json *builder, const gpuhal_evidence *evidence)
{
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "device", gpuhal_probe_any_text(evidence->device));
    gpuhal_probe_put(builder, object, "other", gpuhal_probe_any_text(evidence->other));
    gpuhal_probe_put(builder, object, "same", json_boolean(evidence->same != 0));
    gpuhal_probe_put(builder, object, "matched_by", gpuhal_probe_any_text(evidence->matched_by));
    gpuhal_probe_put(builder, object, "value", gpuhal_probe_text(evidence->value));
    gpuhal_probe_put(builder, object, "sentence", gpuhal_probe_any_text(evidence->sentence));
    return object;
}

static json_t *make_physical(gpuhal_probe_json *builder, const gpuhal *gpu, uint32_t index,
                             const gpuhal_physical_info *physical)
{
    json_t *object = json_object(), *interfaces = json_array(), *array = json_array();
    gpuhal_probe_put(builder, object, "number", gpuhal_probe_number(physical->number));
    gpuhal_probe_put(builder, object, "pci_address", gpuhal_probe_text(physical->pci_address));
    gpuhal_probe_put(builder, object, "uuid", gpuhal_probe_text(physical->uuid));
    for (uint32_t i = 0; i < physical->device_count; i++) {
        gpuhal_probe_append(builder, interfaces,
                            gpuhal_probe_any_text(gpuhal_device_id(gpuhal_physical_device(gpu, index, i))));
    }
    gpuhal_probe_put(builder, object, "interfaces", interfaces);
    gpuhal_evidence evidence = {.size = sizeof evidence};
    for (uint32_t i = 0; gpuhal_physical_evidence(gpu, index, i, &evidence) == GPUHAL_OK; i++) {
        gpuhal_probe_append(builder, array, make_evidence(builder, &evidence));
    }
    gpuhal_probe_put(builder, object, "evidence", array);
    return object;
}

/* What a value of a link says in the document. */
static json_t *make_link_value(size_t place, uint64_t value)
{
    switch (place) {
    case PROBE_LINK_KIND:
        return gpuhal_probe_any_text(gpuhal_link_kind_name((gpuhal_link_kind)value));
    case PROBE_LINK_PATH:
        return gpuhal_probe_any_text(gpuhal_path_name((gpuhal_path)value));
    case PROBE_LINK_ADVERTISED:
        return json_boolean(value != 0);
    case PROBE_LINK_TRIED:
        return gpuhal_probe_time(value);
    default:
        return gpuhal_probe_number(value);
    }
}

/* Where it was not tried now, the cached result counts. */
static void put_link_result(gpuhal_probe_json *builder, json_t *object, json_t *missing, const gpuhal_probe_link *link,
                            bool verifying)
{
    gpuhal_probe_result result = link->result;
    if (link->cached && !link->values[PROBE_LINK_VERIFIED].u64) {
        result.status = GPUHAL_ERROR_DRIVER;
        snprintf(result.sentence, sizeof result.sentence,
                 "it failed before with these drivers; gpuhal-probe --registry says how");
    }
    put_result(builder, object, missing, link->tried || link->cached, &result, verifying);
}

static json_t *make_link(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine, const gpuhal_probe_link *link)
{
    static const char *const names[PROBE_LINK_TRIED + 1] = {
        "kind",  "bandwidth_bytes_per_second", "generation", "count", "peer_advertised",
        "path",  "measured_bytes_per_second",  "measured_latency_ns", "tried_at"};
    json_t *object = json_object(), *missing = json_object();
    gpuhal_probe_put(builder, object, "from",
                     gpuhal_probe_any_text(gpuhal_device_id(machine->devices[link->from].device)));
    gpuhal_probe_put(builder, object, "to", gpuhal_probe_any_text(gpuhal_device_id(machine->devices[link->to].device)));
    gpuhal_probe_put(builder, object, "software", json_boolean(link->software));
    for (size_t i = 0; i <= PROBE_LINK_TRIED; i++) {
        const gpuhal_value *value = &link->values[i];
        gpuhal_probe_put(builder, object, names[i], value->missing ? json_null() : make_link_value(i, value->u64));
        if (value->missing) {
            bool untried = value->missing == GPUHAL_MISSING_NOT_READ && !link->tried && !link->result.status;
            put_reason(builder, missing, names[i], value->missing,
                       untried ? why_untried(machine->verifying) : value->why);
        }
        if (i == PROBE_LINK_KIND) {
            gpuhal_probe_put(builder, object, "name", link->name_missing ? json_null() : gpuhal_probe_text(link->name));
        }
        if (i == PROBE_LINK_ADVERTISED) {
            put_link_result(builder, object, missing, link, machine->verifying);
        }
    }
    if (link->name_missing) {
        put_reason(builder, missing, "name", link->name_missing, link->name);
    }
    gpuhal_probe_put(builder, object, "cached", json_boolean(link->cached));
    gpuhal_probe_put(builder, object, "missing", missing);
    return object;
}

static json_t *make_links(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine)
{
    json_t *array = machine->links ? json_array() : json_null();
    for (uint32_t i = 0; i < machine->link_count; i++) {
        gpuhal_probe_append(builder, array, make_link(builder, machine, &machine->links[i]));
    }
    return array;
}

static json_t *make_environment(gpuhal_probe_json *builder, const gpuhal_probe_environment *environment)
{
    json_t *array = environment ? json_array() : json_null();
    for (uint32_t i = 0; environment && i < environment->count; i++) {
        const gpuhal_probe_variable *variable = &environment->list[i];
        json_t *object = json_object();
        gpuhal_probe_put(builder, object, "name", gpuhal_probe_any_text(variable->name));
        gpuhal_probe_put(builder, object, "value",
                         variable->value ? gpuhal_probe_any_text(variable->value) : json_null());
        gpuhal_probe_put(builder, object, "meaning", gpuhal_probe_any_text(variable->meaning));
        gpuhal_probe_put(builder, object, "ignored", json_boolean(variable->ignored));
        gpuhal_probe_put(builder, object, "overruled_by", gpuhal_probe_text(variable->overruled));
        gpuhal_probe_append(builder, array, object);
    }
    return array;
}

static json_t *make_chosen(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine)
{
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "id",
                     machine->chosen ? gpuhal_probe_any_text(gpuhal_device_id(machine->chosen)) : json_null());
    gpuhal_probe_put(builder, object, "reason", gpuhal_probe_any_text(machine->chosen_reason));
    return object;
}

static json_t *make_document(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine,
                             const gpuhal_probe_environment *environment)
{
    char abi[32];
    snprintf(abi, sizeof abi, "%u.%u", gpuhal_abi_version() >> 16, gpuhal_abi_version() & 0xffffu);
    json_t *document = json_object(), *plugins = json_array(), *devices = json_array(), *physicals = json_array();
    json_t *notes = json_array();
    gpuhal_probe_put(builder, document, "schema", gpuhal_probe_any_text("gpuhal.probe/2"));
    gpuhal_probe_put(builder, document, "library_version", gpuhal_probe_any_text(gpuhal_version()));
    gpuhal_probe_put(builder, document, "abi_version", gpuhal_probe_any_text(abi));
    gpuhal_probe_put(builder, document, "host", make_host(builder, machine));
    gpuhal_plugin_report report;
    for (uint32_t i = 0; gpuhal_probe_report(machine->gpu, i, &report); i++) {
        gpuhal_probe_append(builder, plugins, make_plugin(builder, &report));
    }
    gpuhal_probe_put(builder, document, "plugins", plugins);
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_append(builder, devices, make_device(builder, &machine->devices[i], machine->verifying));
    }
    gpuhal_probe_put(builder, document, "devices", devices);
    gpuhal_physical_info physical;
    for (uint32_t i = 0; gpuhal_probe_physical(machine, i, &physical); i++) {
        gpuhal_probe_append(builder, physicals, make_physical(builder, machine->gpu, i, &physical));
    }
    gpuhal_probe_put(builder, document, "physical_devices", physicals);
    gpuhal_probe_put(builder, document, "links", make_links(builder, machine));
    gpuhal_probe_put(builder, document, "chosen", make_chosen(builder, machine));
    const char *note;
    for (uint32_t i = 0; (note = gpuhal_note_at(machine->gpu, i)); i++) {
        gpuhal_probe_append(builder, notes, gpuhal_probe_any_text(note));
    }
    gpuhal_probe_put(builder, document, "notes", notes);
    gpuhal_probe_put(builder, document, "environment", make_environment(builder, environment));
    return document;
}

bool gpuhal_probe_print_json(const gpuhal_probe_machine *machine, const gpuhal_probe_environment *environment,
                             FILE *out)
{
    gpuhal_probe_json builder = {0};
    json_t *document = make_document(&builder, machine, environment);
    return gpuhal_probe_json_print(&builder, document, out);
}
