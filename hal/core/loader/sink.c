/* loader/sink.c: checks and stores the facts and processes that plugins report, as they arrive.
 *
 * The sink's `problem` describes the first broken rule. It is read after the plugin's call has returned. Later facts
 * are dropped, because the plugin's list is refused anyway.
 */
#include "loader/device_rules.h"
#include "loader/host.h"
#include "loader/loader.h"
#include "loader/processes.h"

#include <gpuhal/direct.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const gpuhal_direct_listener *listener_of(const gpuhal_sink *sink)
{
    return sink->listener;
}

static gpuhal_listed_device *add_device(gpuhal_sink *sink, uint32_t index)
{
    gpuhal_listed_devices *devices = sink->devices;
    if (gpuhal_listed_devices_find(devices, index)) {
        snprintf(sink->problem, sizeof sink->problem, "it lists device %" PRIu32 " twice", index);
        return NULL;
    }
    if (devices->count == GPUHAL_DEVICES_MAX) {
        snprintf(sink->problem, sizeof sink->problem, "it lists more than %u devices", GPUHAL_DEVICES_MAX);
        return NULL;
    }
    gpuhal_listed_device *device = gpuhal_listed_devices_add(devices, index);
    if (!device) {
        snprintf(sink->problem, sizeof sink->problem, "out of host memory for its devices");
    }
    return device;
}

void gpuhal_sink_device(__attribute__((unused)) const gpuhal_host *host, gpuhal_sink *sink, uint32_t index)
{
    if (!sink || sink->problem[0]) {
        return;
    }
    const gpuhal_direct_listener *listener = listener_of(sink);
    if (listener) {
        if (listener->device) {
            listener->device(listener->user, index);
        }
        return;
    }
    if (!sink->devices) {
        snprintf(sink->problem, sizeof sink->problem, "it calls device() during sample()");
        return;
    }
    gpuhal_listed_device *device = add_device(sink, index);
    sink->facts = device ? &device->facts : NULL;
}

/* If the plugin's thread may be abandoned, the mutex prevents the thread from writing facts while the caller takes
 * them. */
static void lock(const gpuhal_sink *sink)
{
    if (sink && sink->mutex) {
        gpuhal_mutex_lock(sink->mutex);
    }
}

static void unlock(const gpuhal_sink *sink)
{
    if (sink && sink->mutex) {
        gpuhal_mutex_unlock(sink->mutex);
    }
}

static bool takes_facts(gpuhal_sink *sink)
{
    if (!sink || sink->closed || sink->problem[0]) {
        return false;
    }
    if (!sink->facts) {
        snprintf(sink->problem, sizeof sink->problem, "it gives a fact before it named a device");
        return false;
    }
    if (sink->facts->count >= GPUHAL_FACTS_MAX) {
        snprintf(sink->problem, sizeof sink->problem, "it gives a device more than %u facts", GPUHAL_FACTS_MAX);
        return false;
    }
    return true;
}

void gpuhal_sink_u64(__attribute__((unused)) const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    const gpuhal_direct_listener *listener = sink ? listener_of(sink) : NULL;
    if (listener) {
        if (listener->u64) {
            listener->u64(listener->user, key, value);
        }
        return;
    }
    lock(sink);
    if (takes_facts(sink) && gpuhal_rules_number(key, value, sink->problem, sizeof sink->problem)) {
        gpuhal_facts_set_u64(sink->facts, key, value);
        gpuhal_facts_set_source(sink->facts, key, sink->source);
    }
    unlock(sink);
}

void gpuhal_sink_text(__attribute__((unused)) const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key,
                      const char *value)
{
    const gpuhal_direct_listener *listener = sink ? listener_of(sink) : NULL;
    if (listener) {
        if (listener->text) {
            listener->text(listener->user, key, value);
        }
        return;
    }
    lock(sink);
    if (takes_facts(sink) && gpuhal_rules_text(key, value, sink->problem, sizeof sink->problem)) {
        gpuhal_facts_set_text(sink->facts, key, value);
        gpuhal_facts_set_source(sink->facts, key, sink->source);
    }
    unlock(sink);
}

void gpuhal_sink_missing(__attribute__((unused)) const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key,
                         gpuhal_missing reason, const char *why)
{
    const gpuhal_direct_listener *listener = sink ? listener_of(sink) : NULL;
    if (listener) {
        if (listener->missing) {
            listener->missing(listener->user, key, reason, why);
        }
        return;
    }
    lock(sink);
    if (takes_facts(sink) && gpuhal_rules_missing(key, reason, why, sink->problem, sizeof sink->problem)) {
        gpuhal_facts_set_missing(sink->facts, key, reason, why);
    }
    unlock(sink);
}

/* ---- sources of values, and processes */

static bool is_source(const char *name)
{
    const size_t length = strnlen(name, GPUHAL_SOURCE_BYTES);
    return length > 0 && length < GPUHAL_SOURCE_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == length;
}

void gpuhal_sink_source(__attribute__((unused)) const gpuhal_host *host, gpuhal_sink *sink, const char *name)
{
    const gpuhal_direct_listener *listener = sink ? listener_of(sink) : NULL;
    if (listener) {
        if (listener->source) {
            listener->source(listener->user, name);
        }
        return;
    }
    lock(sink);
    if (sink && !sink->closed && name && !is_source(name)) {
        if (!sink->problem[0]) {
            snprintf(sink->problem, sizeof sink->problem,
                     "it names a source with other than 1 to 15 lower-case letters, digits, hyphens and underscores");
        }
    } else if (sink && !sink->closed) {
        snprintf(sink->source, sizeof sink->source, "%s", name ? name : "");
    }
    unlock(sink);
}

void gpuhal_sink_process(__attribute__((unused)) const gpuhal_host *host, gpuhal_sink *sink,
                         const gpuhal_plugin_process *process)
{
    const gpuhal_direct_listener *listener = sink ? listener_of(sink) : NULL;
    if (listener) {
        if (listener->process) {
            listener->process(listener->user, process);
        }
        return;
    }
    char problem[sizeof sink->problem] = "it calls process() outside processes()";
    lock(sink);
    if (sink && !sink->closed) {
        if (sink->processes) {
            problem[0] = 0;
            gpuhal_process_list_add(sink->processes, process, sink->source, problem, sizeof problem);
        }
        if (!sink->problem[0]) {
            memcpy(sink->problem, problem, sizeof problem);
        }
    }
    unlock(sink);
}
