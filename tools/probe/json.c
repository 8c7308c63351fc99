/* json.c: the document gpuhal.probe/2, described by docs/gpuhal.probe-2.schema.json. All keys are always present, in
 * this order. Unknown facts of a device or link are null. The adjacent `missing` contains the reason if readers would
 * expect a value. */
#include "json_parts.h"
#include "print.h"
#include "uuid.h"

#include <string.h>
#include <time.h>

static json_t *make_milliseconds(uint64_t time_ns)
{
    const uint64_t microseconds = (time_ns + 500) / 1000;
    return time_ns ? json_real((double)microseconds / 1e3) : json_null();
}

static json_t *make_plugin(gpuhal_probe_json *builder, const gpuhal_plugin_report *report)
{
    char words[GPUHAL_PROBE_TEXT_BYTES];
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "name", gpuhal_json_any_text(gpuhal_probe_report_name(report)));
    gpuhal_probe_put(builder, object, "file", gpuhal_json_text(report->file));
    gpuhal_probe_put(builder, object, "state", gpuhal_json_any_text(gpuhal_plugin_state_name(report->state)));
    gpuhal_probe_put(builder, object, "stage", gpuhal_json_any_text(gpuhal_plugin_stage_name(report->stage)));
    gpuhal_probe_put(builder, object, "reason", gpuhal_json_text(gpuhal_probe_in_options(report->reason, words)));
    gpuhal_probe_put(builder, object, "driver", gpuhal_json_text(report->driver));
    gpuhal_probe_put(builder, object, "time_ms", make_milliseconds(report->time_ns));
    gpuhal_probe_put(builder, object, "cached", json_boolean(report->cached));
    gpuhal_probe_put(builder, object, "probed_at", gpuhal_json_time(report->probed_at));
    return object;
}

static json_t *make_evidence(gpuhal_probe_json *builder, const gpuhal_evidence *evidence)
{
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "device", gpuhal_json_any_text(evidence->device));
    gpuhal_probe_put(builder, object, "other", gpuhal_json_any_text(evidence->other));
    gpuhal_probe_put(builder, object, "same", json_boolean(evidence->same != 0));
    gpuhal_probe_put(builder, object, "matched_by", gpuhal_json_any_text(evidence->matched_by));
    gpuhal_probe_put(builder, object, "value", gpuhal_json_text(evidence->value));
    gpuhal_probe_put(builder, object, "sentence", gpuhal_json_any_text(evidence->sentence));
    return object;
}

static json_t *make_physical(gpuhal_probe_json *builder, const gpuhal_view *view, const gpuhal_physical_info *physical)
{
    json_t *object = json_object(), *interfaces = json_array(), *array = json_array();
    char space[PROBE_UUID_BYTES];
    gpuhal_probe_put(builder, object, "number", gpuhal_probe_number(physical->number));
    gpuhal_probe_put(builder, object, "pci_address", gpuhal_json_text(physical->pci_address));
    const gpuhal_device *first = gpuhal_probe_interface(view, physical->first_interface);
    gpuhal_probe_put(builder, object, "uuid", gpuhal_json_text(gpuhal_probe_physical_uuid(physical, first, space)));
    for (uint32_t i = 0; i < physical->device_count; i++) {
        const gpuhal_device *device = gpuhal_probe_interface(view, physical->first_interface + i);
        gpuhal_probe_append(builder, interfaces, gpuhal_json_any_text(gpuhal_device_id(device)));
    }
    gpuhal_probe_put(builder, object, "interfaces", interfaces);
    gpuhal_evidence evidence = {.size = sizeof evidence};
    for (uint32_t i = 0; i < physical->evidence_count; i++) {
        if (gpuhal_view_get(view, GPUHAL_RECORD_EVIDENCE, physical->first_evidence + i, &evidence) == GPUHAL_OK) {
            gpuhal_probe_append(builder, array, make_evidence(builder, &evidence));
        }
    }
    gpuhal_probe_put(builder, object, "evidence", array);
    return object;
}

static json_t *make_environment(gpuhal_probe_json *builder, const gpuhal_probe_environment *environment)
{
    json_t *array = environment ? json_array() : json_null();
    for (uint32_t i = 0; environment && i < environment->count; i++) {
        const gpuhal_probe_variable *variable = &environment->list[i];
        json_t *object = json_object();
        gpuhal_probe_put(builder, object, "name", gpuhal_json_any_text(variable->name));
        gpuhal_probe_put(builder, object, "value",
                         variable->value ? gpuhal_json_any_text(variable->value) : json_null());
        gpuhal_probe_put(builder, object, "meaning", gpuhal_json_any_text(variable->meaning));
        gpuhal_probe_put(builder, object, "ignored", json_boolean(variable->ignored));
        gpuhal_probe_put(builder, object, "overruled_by", gpuhal_json_text(variable->overruled));
        gpuhal_probe_append(builder, array, object);
    }
    return array;
}

/* Returns the processor's name; NULL if the processor is hidden. */
static const char *cpu_name(const gpuhal_probe_machine *machine)
{
    const char *cpu = NULL;
    for (uint32_t i = 0; i < machine->count && !cpu; i++) {
        if (strcmp(gpuhal_device_backend(machine->devices[i].device), "cpu") == 0) {
            gpuhal_device_text(machine->devices[i].device, GPUHAL_FACT_NAME, &cpu);
        }
    }
    return cpu;
}

static json_t *make_chosen(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine)
{
    json_t *object = json_object();
    gpuhal_probe_put(builder, object, "id",
                     machine->chosen ? gpuhal_json_any_text(gpuhal_device_id(machine->chosen)) : json_null());
    gpuhal_probe_put(builder, object, "reason", gpuhal_json_any_text(machine->chosen_reason));
    return object;
}

static const char *status_name(gpuhal_probe_exit code)
{
    switch (code) {
    case PROBE_COMPLETE:
        return "complete";
    case PROBE_NO_DEVICE:
        return "no_device";
    case PROBE_NO_PERMISSION:
        return "no_permission";
    default:
        return "partial";
    }
}

static void put_lists(gpuhal_probe_json *builder, json_t *document, const gpuhal_probe_machine *machine)
{
    json_t *plugins = json_array(), *devices = json_array(), *physicals = json_array();
    gpuhal_plugin_report report = {.size = sizeof report};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        gpuhal_probe_append(builder, plugins, make_plugin(builder, &report));
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_append(builder, devices, gpuhal_probe_make_device(builder, machine, &machine->devices[i]));
    }
    gpuhal_physical_info physical = {.size = sizeof physical};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        gpuhal_probe_append(builder, physicals, make_physical(builder, machine->view, &physical));
    }
    gpuhal_probe_put(builder, document, "hardware", gpuhal_probe_make_hardware(builder, machine));
    gpuhal_probe_put(builder, document, "plugins", plugins);
    gpuhal_probe_put(builder, document, "devices", devices);
    gpuhal_probe_put(builder, document, "physical_devices", physicals);
    gpuhal_probe_put(builder, document, "links", gpuhal_probe_make_links(builder, machine));
}

static json_t *make_document(gpuhal_probe_json *builder, const gpuhal_probe_machine *machine,
                             const gpuhal_probe_problems *problems, const gpuhal_probe_options *options,
                             const gpuhal_probe_environment *environment)
{
    const char *status = status_name(gpuhal_probe_judge_findings(machine, problems, options));
    json_t *document = json_object(), *notes = json_array();
    gpuhal_probe_put(builder, document, "schema", gpuhal_json_any_text("gpuhal.probe/2"));
    gpuhal_probe_put(builder, document, "generated_at", gpuhal_json_time((uint64_t)time(NULL)));
    gpuhal_probe_put(builder, document, "library_version", gpuhal_json_any_text(gpuhal_version()));
    gpuhal_probe_put(builder, document, "abi_version", gpuhal_json_abi(gpuhal_abi_version()));
    gpuhal_probe_put(builder, document, "host", gpuhal_json_host(cpu_name(machine)));
    gpuhal_probe_put(builder, document, "status", gpuhal_json_any_text(status));
    gpuhal_probe_put(builder, document, "problems", gpuhal_probe_make_problems(builder, problems));
    put_lists(builder, document, machine);
    gpuhal_probe_put(builder, document, "chosen", make_chosen(builder, machine));
    gpuhal_note_info note = {.size = sizeof note};
    for (uint32_t i = 0; gpuhal_view_get(machine->view, GPUHAL_RECORD_NOTE, i, &note) == GPUHAL_OK; i++) {
        gpuhal_probe_append(builder, notes, gpuhal_json_any_text(note.text));
    }
    const char *of_log = gpuhal_probe_kernel_log_note(machine);
    if (of_log) {
        gpuhal_probe_append(builder, notes, gpuhal_json_any_text(of_log));
    }
    gpuhal_probe_put(builder, document, "notes", notes);
    gpuhal_probe_put(builder, document, "environment", make_environment(builder, environment));
    return document;
}

bool gpuhal_probe_print_json(const gpuhal_probe_machine *machine, const gpuhal_probe_problems *problems,
                             const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                             FILE *out)
{
    gpuhal_probe_json builder = {.in_one_line = options->format != PROBE_FORMAT_JSON};
    json_t *document = make_document(&builder, machine, problems, options, environment);
    if (options->json_version == 1) {
        gpuhal_probe_make_former(&builder, machine, document);
    }
    return gpuhal_probe_json_print(&builder, document, out);
}
