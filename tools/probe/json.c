/* json.c: the document gpuhal.probe/1; docs/gpuhal.probe-1.schema.json describes it. Keys are always there and in this order.
 * What is unknown of a device or a link is null, and its reason stands in the `missing` beside it. */
#include "host.h"
#include "links.h"
#include "print.h"
#include "utf8.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Facts from here on are values that change; of those the document has the free memory alone. */
#define FIRST_VALUE 0x1000u

/* A document is built without looking at each step: `failed` remembers that something was lost. */
typedef struct json_builder {
    bool failed;
} json_builder;

static void put(json_builder *builder, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0) {
        builder->failed = true;
    }
}

static void append(json_builder *builder, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0) {
        builder->failed = true;
    }
}

/* A text in which bytes that are no UTF-8 (file names may hold any) became U+FFFD. */
static json_t *make_text(const char *text)
{
    char *clean = malloc(strlen(text) * 3 + 1);
    if (!clean) {
        return NULL;
    }
    size_t used = 0;
    while (*text) {
        uint32_t character;
        size_t length = gpuhal_probe_utf8_next(text, &character);
        memcpy(clean + used, length ? text : "\xef\xbf\xbd", length ? length : 3);
        used += length ? length : 3;
        text += length ? length : 1;
    }
    json_t *value = json_stringn(clean, used);
    free(clean);
    return value;
}

static json_t *make_text_or_null(const char *text)
{
    return text && *text ? make_text(text) : json_null();
}

/* JSON itself has no limit here; jansson's integers end at 2^63 - 1, and what is above loses its last digits. */
static json_t *make_number(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static json_t *make_milliseconds(uint64_t time_ns)
{
    return time_ns ? json_real(round((double)time_ns / 1e3) / 1e3) : json_null();
}

static json_t *make_host(json_builder *builder, const gpuhal_probe_machine *machine)
{
    gpuhal_probe_host host;
    gpuhal_probe_host_read(&host);
    const char *cpu = host.cpu;
    for (uint32_t i = 0; i < machine->count && !*cpu; i++) {
        if (strcmp(gpuhal_device_backend(machine->devices[i].device), "cpu") == 0) {
            gpuhal_device_text(machine->devices[i].device, GPUHAL_FACT_NAME, &cpu);
        }
        cpu = cpu ? cpu : "";
    }
    json_t *object = json_object();
    put(builder, object, "name", make_text_or_null(host.name));
    put(builder, object, "os", make_text_or_null(host.os));
    put(builder, object, "kernel", make_text_or_null(host.kernel));
    put(builder, object, "cpu", make_text_or_null(cpu));
    return object;
}

static json_t *make_plugin(json_builder *builder, const gpuhal_plugin_report *report)
{
    char words[GPUHAL_PROBE_WORDS];
    json_t *object = json_object();
    put(builder, object, "name", make_text(gpuhal_probe_report_name(report)));
    put(builder, object, "file", make_text_or_null(report->file));
    put(builder, object, "state", make_text(gpuhal_plugin_state_name(report->state)));
    put(builder, object, "stage", make_text(gpuhal_plugin_stage_name(report->stage)));
    put(builder, object, "reason", make_text_or_null(gpuhal_probe_in_options(report->reason, words)));
    put(builder, object, "driver", make_text_or_null(report->driver));
    put(builder, object, "time_ms", make_milliseconds(report->time_ns));
    return object;
}

static void put_reason(json_builder *builder, json_t *missing, const char *name, gpuhal_missing reason, const char *why)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s%s", gpuhal_missing_name(reason), why && *why ? ": " : "", why ? why : "");
    put(builder, missing, name, make_text(text));
}

/* A fact under its own name; without a value null, and the reason in `missing`. */
static void put_fact(json_builder *builder, json_t *object, json_t *missing, const gpuhal_device *device, gpuhal_key key)
{
    const char *name = gpuhal_key_name(key), *text;
    uint64_t number;
    if (!gpuhal_key_is_text(key) && gpuhal_device_u64(device, key, &number) == GPUHAL_OK) {
        put(builder, object, name, make_number(number));
        return;
    }
    if (!gpuhal_key_is_text(key) || gpuhal_device_text(device, key, &text) != GPUHAL_OK) {
        const char *why = "";
        gpuhal_missing reason = gpuhal_device_missing(device, key, &why);
        put(builder, object, name, json_null());
        put_reason(builder, missing, name, reason, why);
        return;
    }
    put(builder, object, name, make_text_or_null(text));
    if (!*text) {
        put(builder, missing, name, make_text("failed: the driver gives an empty text"));
    }
}

static json_t *make_type(const gpuhal_device *device)
{
    uint64_t type = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type);
    return make_text(gpuhal_device_type_name((gpuhal_device_type)type));
}

static json_t *make_capabilities(json_builder *builder, const gpuhal_device *device)
{
    json_t *array = json_array();
    uint32_t bits = gpuhal_device_capabilities(device);
    for (uint32_t bit = 0; bit < GPUHAL_CAPABILITY_COUNT; bit++) {
        if (bits >> bit & 1u) {
            append(builder, array, make_text(gpuhal_capability_name(bit)));
        }
    }
    return array;
}

/* Why something was not tried. */
static const char *why_untried(bool verifying)
{
    return verifying ? "--verify without --all leaves out faces that are not preferred" : "--verify was not given";
}

/* Of a device or a link that was tried, or was not. */
static void put_verdict(json_builder *builder, json_t *object, json_t *missing, bool tried, const gpuhal_probe_verdict *verdict,
                        bool verifying)
{
    bool failed = tried && verdict->status;
    put(builder, object, "verified", tried ? json_boolean(!failed) : json_null());
    if (!tried) {
        put_reason(builder, missing, "verified", GPUHAL_MISSING_NOT_READ, why_untried(verifying));
    }
    put(builder, object, "verify_error", failed ? make_text(verdict->sentence) : json_null());
}

/* What the library knows of a device beyond the keys at the device itself. */
static json_t *make_facts(json_builder *builder, json_t *missing, const json_t *device_object, const gpuhal_device *device)
{
    json_t *facts = json_object();
    for (gpuhal_key key = 1; key < FIRST_VALUE && gpuhal_key_name(key); key++) {
        if (!json_object_get(device_object, gpuhal_key_name(key))) {
            put_fact(builder, facts, missing, device, key);
        }
    }
    return facts;
}

static json_t *make_device(json_builder *builder, const gpuhal_probe_device *entry, bool verifying)
{
    static const gpuhal_key keys[] = {
        GPUHAL_FACT_MEMORY_TOTAL_BYTES, GPUHAL_VALUE_MEMORY_FREE_BYTES, GPUHAL_FACT_UUID,        GPUHAL_FACT_PCI_ADDRESS,
        GPUHAL_FACT_NUMA_NODE,          GPUHAL_FACT_DRIVER_VERSION,     GPUHAL_FACT_API_VERSION, GPUHAL_FACT_NATIVE_INDEX,
    };
    const gpuhal_device *device = entry->device;
    uint64_t software = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
    json_t *object = json_object(), *missing = json_object();
    put(builder, object, "id", make_text(gpuhal_device_id(device)));
    put(builder, object, "backend", make_text(gpuhal_device_backend(device)));
    put(builder, object, "index", make_number(gpuhal_device_index(device)));
    put_fact(builder, object, missing, device, GPUHAL_FACT_NAME);
    put_fact(builder, object, missing, device, GPUHAL_FACT_VENDOR);
    put(builder, object, "type", make_type(device));
    put(builder, object, "software", json_boolean(software != 0));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        put_fact(builder, object, missing, device, keys[i]);
    }
    put(builder, object, "physical_device", make_number(entry->physical));
    put(builder, object, "preferred", json_boolean(entry->preferred != 0));
    put(builder, object, "capabilities", make_capabilities(builder, device));
    put_verdict(builder, object, missing, entry->verified, &entry->verdict, verifying);
    put(builder, object, "facts", make_facts(builder, missing, object, device));
    put(builder, object, "missing", missing);
    return object;
}

static json_t *make_evidence(json_builder *builder, const gpuhal_evidence *evidence)
{
    json_t *object = json_object();
    put(builder, object, "device", make_text(evidence->device));
    put(builder, object, "other", make_text(evidence->other));
    put(builder, object, "same", json_boolean(evidence->same != 0));
    put(builder, object, "matched_by", make_text(evidence->matched_by));
    put(builder, object, "value", make_text_or_null(evidence->value));
    put(builder, object, "sentence", make_text(evidence->sentence));
    return object;
}

static json_t *make_physical(json_builder *builder, const gpuhal *gpu, uint32_t index, const gpuhal_physical_device *physical)
{
    json_t *object = json_object(), *faces = json_array(), *array = json_array();
    put(builder, object, "number", make_number(physical->number));
    put(builder, object, "pci_address", make_text_or_null(physical->pci_address));
    put(builder, object, "uuid", make_text_or_null(physical->uuid));
    for (uint32_t i = 0; i < physical->face_count; i++) {
        append(builder, faces, make_text(gpuhal_device_id(gpuhal_physical_face(gpu, index, i))));
    }
    put(builder, object, "faces", faces);
    gpuhal_evidence evidence = {.size = sizeof evidence};
    for (uint32_t i = 0; gpuhal_physical_evidence(gpu, index, i, &evidence) == GPUHAL_OK; i++) {
        append(builder, array, make_evidence(builder, &evidence));
    }
    put(builder, object, "evidence", array);
    return object;
}

/* What a value of a link says in the document. */
static json_t *make_link_value(size_t place, uint64_t value)
{
    switch (place) {
    case PROBE_LINK_KIND:
        return make_text(gpuhal_link_kind_name((gpuhal_link_kind)value));
    case PROBE_LINK_PATH:
        return make_text(gpuhal_path_name((gpuhal_path)value));
    case PROBE_LINK_ADVERTISED:
        return json_boolean(value != 0);
    default:
        return make_number(value);
    }
}

static json_t *make_link(json_builder *builder, const gpuhal_probe_machine *machine, const gpuhal_probe_link *link)
{
    static const char *const names[PROBE_LINK_VALUES] = {
        "kind",  "bandwidth_bytes_per_second", "generation", "count", "peer_advertised",
        "path", "measured_bytes_per_second",  "measured_latency_ns"};
    json_t *object = json_object(), *missing = json_object();
    put(builder, object, "from", make_text(gpuhal_device_id(machine->devices[link->from].device)));
    put(builder, object, "to", make_text(gpuhal_device_id(machine->devices[link->to].device)));
    put(builder, object, "software", json_boolean(link->software));
    for (size_t i = 0; i < PROBE_LINK_VALUES; i++) {
        const gpuhal_value *value = &link->values[i];
        put(builder, object, names[i], value->missing ? json_null() : make_link_value(i, value->u64));
        if (value->missing) {
            bool untried = value->missing == GPUHAL_MISSING_NOT_READ && !link->tried && !link->verdict.status;
            put_reason(builder, missing, names[i], value->missing, untried ? why_untried(machine->verifying) : value->why);
        }
        if (i == PROBE_LINK_ADVERTISED) {
            put_verdict(builder, object, missing, link->tried, &link->verdict, machine->verifying);
        }
    }
    put(builder, object, "missing", missing);
    return object;
}

static json_t *make_links(json_builder *builder, const gpuhal_probe_machine *machine)
{
    json_t *array = machine->links ? json_array() : json_null();
    for (uint32_t i = 0; i < machine->link_count; i++) {
        append(builder, array, make_link(builder, machine, &machine->links[i]));
    }
    return array;
}

static json_t *make_environment(json_builder *builder, const gpuhal_probe_environment *environment)
{
    json_t *array = environment ? json_array() : json_null();
    for (uint32_t i = 0; environment && i < environment->count; i++) {
        const gpuhal_probe_variable *variable = &environment->list[i];
        json_t *object = json_object();
        put(builder, object, "name", make_text(variable->name));
        put(builder, object, "value", variable->value ? make_text(variable->value) : json_null());
        put(builder, object, "meaning", make_text(variable->meaning));
        put(builder, object, "ignored", json_boolean(variable->ignored));
        put(builder, object, "overruled_by", make_text_or_null(variable->overruled));
        append(builder, array, object);
    }
    return array;
}

static json_t *make_chosen(json_builder *builder, const gpuhal_probe_machine *machine)
{
    json_t *object = json_object();
    put(builder, object, "id", machine->chosen ? make_text(gpuhal_device_id(machine->chosen)) : json_null());
    put(builder, object, "reason", make_text(machine->chosen_reason));
    return object;
}

static json_t *make_document(json_builder *builder, const gpuhal_probe_machine *machine,
                             const gpuhal_probe_environment *environment)
{
    char abi[32];
    snprintf(abi, sizeof abi, "%u.%u", gpuhal_abi_version() >> 16, gpuhal_abi_version() & 0xffffu);
    json_t *document = json_object(), *plugins = json_array(), *devices = json_array(), *physicals = json_array();
    json_t *remarks = json_array();
    put(builder, document, "schema", make_text("gpuhal.probe/1"));
    put(builder, document, "library_version", make_text(gpuhal_version()));
    put(builder, document, "abi_version", make_text(abi));
    put(builder, document, "host", make_host(builder, machine));
    gpuhal_plugin_report report;
    for (uint32_t i = 0; gpuhal_probe_report(machine->gpu, i, &report); i++) {
        append(builder, plugins, make_plugin(builder, &report));
    }
    put(builder, document, "plugins", plugins);
    for (uint32_t i = 0; i < machine->count; i++) {
        append(builder, devices, make_device(builder, &machine->devices[i], machine->verifying));
    }
    put(builder, document, "devices", devices);
    gpuhal_physical_device physical;
    for (uint32_t i = 0; gpuhal_probe_physical(machine, i, &physical); i++) {
        append(builder, physicals, make_physical(builder, machine->gpu, i, &physical));
    }
    put(builder, document, "physical_devices", physicals);
    put(builder, document, "links", make_links(builder, machine));
    put(builder, document, "chosen", make_chosen(builder, machine));
    const char *remark;
    for (uint32_t i = 0; (remark = gpuhal_remark_at(machine->gpu, i)); i++) {
        append(builder, remarks, make_text(remark));
    }
    put(builder, document, "remarks", remarks);
    put(builder, document, "environment", make_environment(builder, environment));
    return document;
}

bool gpuhal_probe_print_json(const gpuhal_probe_machine *machine, const gpuhal_probe_environment *environment, FILE *out)
{
    json_builder builder = {0};
    json_t *document = make_document(&builder, machine, environment);
    char *text = builder.failed ? NULL : json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    bool printed = text != NULL;
    if (printed) {
        fprintf(out, "%s\n", text);
    }
    json_decref(document);
    free(text);
    return printed;
}
