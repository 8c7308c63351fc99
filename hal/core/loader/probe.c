/* loader/probe.c: see probe.h. */
#include "loader/probe.h"

#include "base/call.h"
#include "loader/device_rules.h"
#include "loader/slot_tables.h"
#include "loader/query.h"

#include <inttypes.h>
#include <stdio.h>

static bool broke_rule(gpuhal_load_context *load, const char *problem)
{
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER, "the plugin broke a rule: %s", problem);
}

/* The calls of start(), describe() and enumerate() are between gpuhal_load_call_begin() and _end(), so that the
 * plugin's reports belong to this load context. */
static bool start(gpuhal_load_context *load, const gpuhal_plugin *plugin, gpuhal_plugin_instance **out_instance)
{
    gpuhal_load_enter(load, GPUHAL_STAGE_START);
    gpuhal_load_call_begin(load);
    const gpuhal_call call = gpuhal_call_blocking(plugin, 0);
    *out_instance = NULL;
    gpuhal_status status = plugin->start(gpuhal_host_table(), out_instance);
    gpuhal_call_end(call);
    gpuhal_load_call_end(load);
    if (status) {
        *out_instance = NULL;
        return gpuhal_load_fail_call(load, status, "starting");
    }
    gpuhal_load_name_unknown_options(load, plugin->name);
    return true;
}

/* The device is used without a group that this library does not know. The plugin's report contains the first note. */
static bool note_unknown(gpuhal_load_context *load, const gpuhal_plugin *plugin, uint32_t index, const char *unknown)
{
    char sentence[664], line[744];
    if (!*unknown) {
        return true;
    }
    snprintf(sentence, sizeof sentence, "device %" PRIu32 ": %s", index, unknown);
    snprintf(line, sizeof line, "%s: %s", plugin->name, sentence);
    gpuhal_log_to_all(GPUHAL_LEVEL_WARNING, line);
    load->note = load->note ? load->note : gpuhal_text_copy(sentence);
    return load->note || gpuhal_load_no_memory(load);
}

static bool describe(gpuhal_load_context *load, const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                     gpuhal_listed_device *device)
{
    gpuhal_ops ops = {.size = sizeof ops};
    gpuhal_slots slots;
    gpuhal_slots_text text;
    gpuhal_load_call_begin(load);
    const gpuhal_call call = gpuhal_call_prompt(plugin);
    gpuhal_status status = plugin->describe(gpuhal_host_table(), instance, device->index, &ops);
    gpuhal_call_end(call);
    gpuhal_load_call_end(load);
    char what[48], sentence[224];
    if (status != GPUHAL_OK) {
        snprintf(what, sizeof what, "describing device %" PRIu32, device->index);
        return gpuhal_load_fail_call(load, status, what);
    }
    if (!gpuhal_slots_read(&ops, &slots, &text)) {
        snprintf(sentence, sizeof sentence, "device %" PRIu32 ": %s", device->index, text.problem);
        return broke_rule(load, sentence);
    }
    device->capabilities = gpuhal_slots_capabilities(&slots, &device->facts);
    return note_unknown(load, plugin, device->index, text.unknown);
}

/* Samples free memory, so that lists can show it without opening the device. The value is optional. */
static bool sample(gpuhal_load_context *load, const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                   gpuhal_listed_device *device)
{
    const gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    if (!plugin->sample) {
        gpuhal_facts_set_missing(&device->facts, key, GPUHAL_MISSING_NOT_SUPPORTED, "the plugin offers no samples");
        return !device->facts.failed || gpuhal_load_no_memory(load);
    }
    /* Otherwise a hung driver could use up the deadline again for each device. */
    if (load->hangs) {
        gpuhal_facts_set_missing(&device->facts, key, GPUHAL_MISSING_TIMED_OUT, "reading it from another device hangs");
        return !device->facts.failed || gpuhal_load_no_memory(load);
    }
    gpuhal_facts values;
    char problem[GPUHAL_QUERY_PROBLEM_BYTES];
    const gpuhal_query_request request = {
        .plugin = plugin,
        .instance = instance,
        .index = device->index,
        .keys = &key,
        .count = 1,
        .deadline_ns = load->sample_ns ? load->sample_ns : GPUHAL_QUERY_NS,
    };
    gpuhal_status status = gpuhal_query_sample(&request, &values, problem);
    const gpuhal_fact *value = gpuhal_facts_find(&values, key);
    if (problem[0] == 0 && status != GPUHAL_OK) {
        gpuhal_facts_set_missing(&device->facts, key, GPUHAL_MISSING_FAILED, "the plugin could not read it");
    } else if (!value) {
        gpuhal_facts_set_missing(&device->facts, key, GPUHAL_MISSING_NOT_SUPPORTED, "the plugin does not sample it");
    } else if (value->missing) {
        gpuhal_facts_set_missing(&device->facts, key, value->missing, value->text);
    } else {
        gpuhal_facts_set_u64(&device->facts, key, value->u64);
    }
    load->hangs = load->hangs || (value && value->missing == GPUHAL_MISSING_TIMED_OUT);
    bool whole = !values.failed && !device->facts.failed;
    gpuhal_facts_finish(&values);
    if (problem[0]) {
        return broke_rule(load, problem);
    }
    return whole || gpuhal_load_no_memory(load);
}

/* The sink checks single facts and cannot detect missing facts. */
static bool complete(gpuhal_load_context *load, const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                     gpuhal_listed_devices *devices)
{
    char problem[160];
    for (size_t i = 0; i < devices->count; i++) {
        gpuhal_listed_device *device = &devices->list[i];
        if (device->facts.failed) {
            return gpuhal_load_no_memory(load);
        }
        if (!gpuhal_rules_device(device, problem, sizeof problem)) {
            return broke_rule(load, problem);
        }
        if (gpuhal_listed_is_device(device) &&
            (!describe(load, plugin, instance, device) || !sample(load, plugin, instance, device))) {
            return false;
        }
        if (load->on_device) {
            load->on_device(load->user, device);
        }
    }
    return true;
}

/* A broken rule takes precedence over the returned status, because the list cannot be trusted. */
static bool enumerate(gpuhal_load_context *load, const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                      gpuhal_listed_devices *devices)
{
    gpuhal_load_enter(load, GPUHAL_STAGE_ENUMERATE);
    gpuhal_sink sink = {.devices = devices};
    gpuhal_load_call_begin(load);
    const gpuhal_call call = gpuhal_call_blocking(plugin, 0);
    gpuhal_status status = plugin->enumerate(gpuhal_host_table(), instance, &sink);
    gpuhal_call_end(call);
    gpuhal_load_call_end(load);
    if (sink.problem[0]) {
        return broke_rule(load, sink.problem);
    }
    const bool is_none = gpuhal_listed_devices_usable(devices) == 0;
    if (is_none && (status == GPUHAL_OK || status == GPUHAL_ERROR_NO_DEVICE) &&
        !complete(load, plugin, instance, devices)) {
        return false;
    }
    if (status != GPUHAL_OK) {
        return gpuhal_load_fail_call(load, status, "listing its devices");
    }
    if (is_none) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_NO_DEVICE, GPUHAL_ERROR_NO_DEVICE, "the driver lists no device");
    }
    return true;
}

bool gpuhal_plugin_probe(gpuhal_load_context *load, const gpuhal_plugin *plugin, bool *started_before,
                         gpuhal_plugin_instance **instance, gpuhal_listed_devices *out_devices)
{
    *out_devices = (gpuhal_listed_devices){0};
    bool started = *started_before || start(load, plugin, instance);
    *started_before = started;
    if (started && enumerate(load, plugin, *instance, out_devices) && complete(load, plugin, *instance, out_devices)) {
        return true;
    }
    if (load->state == GPUHAL_PLUGIN_NO_DEVICE && gpuhal_listed_devices_usable(out_devices) == 0) {
        load->unlisted = *out_devices;
        *out_devices = (gpuhal_listed_devices){0};
    }
    gpuhal_listed_devices_finish(out_devices);
    return false;
}
