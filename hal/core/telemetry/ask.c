/* telemetry/ask.c: queries plugins for values. Loads another interface's plugin only for a value that the interface may
 * have.
 *
 * Starting a plugin may take longer than the caller waits, so a job with a reference to the gpuhal object starts the
 * plugin. Calls of the plugin's sample() have separate deadlines (loader/query.h).
 */
#include "telemetry/telemetry.h"

#include "base/error.h"
#include "loader/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values requested from one interface. */
struct gpuhal_asking {
    gpuhal_job job;
    gpuhal *gpu; /* with a reference */
    gpuhal_device *iface;
    gpuhal_gather *gather; /* owned by the caller, not used by the job */
    bool begun;
    _Atomic bool given_up;
    uint32_t flags, count;
    uint64_t deadline_ns;
    bool whole; /* the deadline applies to all values together */
    gpuhal_status status;
    bool offers_none; /* the plugin has no sample() */
    gpuhal_facts facts;
    gpuhal_key keys[];
};
typedef gpuhal_asking asking;

/* Returns whether the interface may have the value. The only changing values that Vulkan and OpenCL report are about
 * memory. */
static bool may_have(const gpuhal_device *iface, gpuhal_key key)
{
    const char *name = iface->candidate->name;
    const bool api_alone = strcmp(name, "vulkan") == 0 || strcmp(name, "opencl") == 0;
    const uint32_t bit = key - GPUHAL_VALUE_MEMORY_FREE_BYTES;
    const bool refused = bit < 64 && (atomic_load(&iface->unsupported) >> bit & 1);
    return !refused && (!api_alone || key == GPUHAL_VALUE_MEMORY_FREE_BYTES || key == GPUHAL_VALUE_MEMORY_USED_BYTES);
}

/* The interface that the caller named is queried for all wanted values, because it provides the reasons for missing
 * values. */
static bool is_for(const gpuhal_gather *own, const gpuhal_device *iface, uint32_t i)
{
    return own->wanted[i] && (iface == own->device || may_have(iface, own->values[i].key));
}

static void run(gpuhal_job *job)
{
    asking *own = (asking *)job;
    gpuhal_backend *backend = NULL;
    const gpuhal_listed_device *listed = NULL;
    char problem[GPUHAL_QUERY_PROBLEM_BYTES] = "";
    own->status = gpuhal_device_check(own->iface); /* the driver of a lost device must not be called */
    own->status = own->status ? own->status : gpuhal_device_start_backend(own->iface, &backend, &listed);
    if (own->status || atomic_load(&own->given_up)) {
        return;
    }
    const gpuhal_query_request request = {
        .plugin = gpuhal_backend_plugin(backend),
        .instance = gpuhal_backend_instance(backend),
        .index = listed->index,
        .keys = own->keys,
        .count = own->count,
        .flags = own->flags,
        .deadline_ns = own->deadline_ns,
        .whole = own->whole,
    };
    own->offers_none = !request.plugin->sample;
    if (!own->offers_none) {
        own->status = gpuhal_query_sample(&request, &own->facts, problem);
        if (own->status) {
            own->status = gpuhal_device_failed(own->iface, own->status, "reading values");
        } else if (own->facts.failed) {
            own->status = gpuhal_error_host_memory();
        } else if (problem[0]) {
            own->status = gpuhal_error_set(GPUHAL_ERROR_DRIVER, "%s: the plugin broke a rule while it read values: %s",
                                           own->iface->id, problem);
        }
    }
}

static void destroy(gpuhal_job *job)
{
    asking *own = (asking *)job;
    gpuhal *gpu = own->gpu;
    gpuhal_facts_finish(&own->facts);
    free(own);
    gpuhal_unreference(gpu);
}

static asking *make(gpuhal_gather *gather, gpuhal_device *iface, uint64_t share_ns, const gpuhal_time *time)
{
    asking *own = calloc(1, sizeof *own + gather->count * sizeof *own->keys);
    if (!own) {
        return NULL;
    }
    gpuhal_job_init(&own->job, run, NULL, destroy);
    atomic_fetch_add(&iface->gpu->references, 1);
    own->gpu = iface->gpu;
    own->iface = iface;
    own->gather = gather;
    /* If the device was awake just before, the plugin need not check its power state for each value. */
    own->flags = gather->may_wake || gather->power == GPUHAL_POWER_AWAKE ? GPUHAL_SAMPLE_MAY_WAKE : 0;
    own->deadline_ns = share_ns;
    own->whole = time->deadline_ns != 0;
    for (uint32_t i = 0; i < gather->count; i++) {
        if (is_for(gather, iface, i)) {
            own->keys[own->count++] = gather->values[i].key;
        }
    }
    return own;
}

/* ---- results */

/* If a plugin returns a string for a number, the value counts as failed. */
static void take_fact(const asking *own, gpuhal_value *value)
{
    const gpuhal_fact *fact = gpuhal_facts_find(&own->facts, value->key);
    const char *backend = own->iface->candidate->name;
    gpuhal_value given = {.key = value->key};
    if (own->offers_none) {
        gpuhal_value_miss(&given, GPUHAL_MISSING_NOT_SUPPORTED, "the backend offers no samples");
    } else if (!fact) {
        gpuhal_value_miss(&given, GPUHAL_MISSING_NOT_SUPPORTED, "the backend does not know this value");
    } else if (fact->missing) {
        gpuhal_value_miss(&given, fact->missing, "%s", fact->text ? fact->text : "");
    } else if (fact->text) {
        gpuhal_value_miss(&given, GPUHAL_MISSING_FAILED, "the plugin gave a text for a number");
    } else {
        gpuhal_value_set(&given, fact->u64, fact->source[0] ? fact->source : backend);
    }
    const uint32_t bit = value->key - GPUHAL_VALUE_MEMORY_FREE_BYTES;
    if (given.missing == GPUHAL_MISSING_NOT_SUPPORTED && bit < 64 && !own->status) {
        atomic_fetch_or(&own->iface->unsupported, UINT64_C(1) << bit);
    }
    gpuhal_value_improve(value, &given);
}

static gpuhal_missing reason_of(gpuhal_status status)
{
    return status == GPUHAL_ERROR_TIMEOUT         ? GPUHAL_MISSING_TIMED_OUT
           : status == GPUHAL_ERROR_NO_PERMISSION ? GPUHAL_MISSING_NO_PERMISSION
                                                  : GPUHAL_MISSING_FAILED;
}

/* Stores all results, even if the plugin failed later. */
static void take_all(const asking *own, const char *sentence)
{
    gpuhal_gather *gather = own->gather;
    for (uint32_t i = 0; i < gather->count; i++) {
        if (!is_for(gather, own->iface, i)) {
            continue;
        }
        if (!own->status || gpuhal_facts_find(&own->facts, gather->values[i].key)) {
            take_fact(own, &gather->values[i]);
        } else {
            gpuhal_value failed = {.key = gather->values[i].key};
            gpuhal_value_miss(&failed, reason_of(own->status), "%.111s", sentence);
            gpuhal_value_improve(&gather->values[i], &failed);
        }
    }
}

/* If the interface that the caller named failed, also stores its status and this thread's error detail. */
static void take(asking *own)
{
    gpuhal_gather *gather = own->gather;
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    take_all(own, own->status ? detail.sentence : "");
    if (own->status && own->iface == gather->device) {
        gather->status = own->status;
        gather->detail = detail;
    }
}

/* ---- one query per device
 *
 * Devices of one backend are queried one after the other, because parallel threads would wait for each other in the
 * driver, with a thread switch per value. Different backends are queried in parallel. */

#define LATE_NS UINT64_C(1000000000) /* for all remaining devices of a backend after one device timed out */

/* A single query needs no job if there is no overall deadline or the backend has started, because its other steps have
 * deadlines. */
static void begin(asking *own, bool alone)
{
    const bool is_quick = gpuhal_backend_started(own->iface->candidate) || !own->whole;
    if (alone && is_quick) {
        own->job.run(&own->job);
    } else {
        gpuhal_job_stand_alone(&own->job);
        const gpuhal_job_state state = gpuhal_job_begin(&own->job);
        own->begun = state == GPUHAL_JOB_RUNNING;
        if (state == GPUHAL_JOB_NO_THREAD) { /* otherwise the job sets the status */
            own->status = GPUHAL_ERROR_HOST_MEMORY;
        }
    }
}

/* Returns whether the caller may read the results. If false, the job was abandoned and may still write them. */
static bool end(asking *own, const gpuhal_time *time)
{
    const uint64_t now = gpuhal_os_monotonic_ns();
    uint64_t left_ns = time->deadline_ns == 0 ? UINT64_MAX : now < time->deadline_ns ? time->deadline_ns - now : 0;
    if (!own->begun) {
        return true;
    }
    if (gpuhal_job_await(&own->job, &left_ns) == GPUHAL_JOB_DONE) {
        if (own->status) {
            gpuhal_error_restore(&own->job.detail);
        }
        return true;
    }
    atomic_store(&own->given_up, true);
    return false;
}

static void miss(gpuhal_gather *gather, const gpuhal_device *iface, gpuhal_missing reason, const char *why)
{
    for (uint32_t i = 0; i < gather->count; i++) {
        if (is_for(gather, iface, i)) {
            gpuhal_value late = {.key = gather->values[i].key};
            gpuhal_value_miss(&late, reason, "%s", why);
            gpuhal_value_improve(&gather->values[i], &late);
        }
    }
}

static bool is_any_for(const gpuhal_gather *gather, const gpuhal_device *iface)
{
    bool any = false;
    for (uint32_t i = 0; i < gather->count && !any; i++) {
        any = is_for(gather, iface, i);
    }
    return any;
}

static gpuhal_device *interface_of(const gpuhal_gather *gather, uint32_t n)
{
    gpuhal_device *iface = n < gather->place.interface_count ? gather->place.interfaces[n] : NULL;
    const bool is_off = gather->power == GPUHAL_POWER_ASLEEP || gather->is_unusable;
    return iface && !is_off && is_any_for(gather, iface) ? iface : NULL;
}

/* Returns whether the device is its backend's first device that has not been queried yet. */
static bool is_first(const gpuhal_gather *list, uint32_t i)
{
    bool first = list[i].iface != NULL;
    for (uint32_t k = 0; k < i && first; k++) {
        first = !list[k].iface || list[k].iface->candidate != list[i].iface->candidate;
    }
    return first;
}

/* Returns the device's time. If there is an overall deadline or a device timed out, the devices of this backend that
 * have not been queried yet share the time. */
static uint64_t share_of(const gpuhal_gather *list, uint32_t count, uint32_t i, const gpuhal_time *time)
{
    uint64_t left_ns = gpuhal_time_share(time), devices = 0;
    for (uint32_t k = i; k < count; k++) {
        devices += list[k].iface && list[k].iface->candidate == list[i].iface->candidate;
    }
    left_ns = list[i].is_late && left_ns > LATE_NS ? LATE_NS : left_ns;
    return time->deadline_ns || list[i].is_late ? left_ns / devices : left_ns;
}

static void begin_one(gpuhal_gather *list, uint32_t count, uint32_t i, bool alone, const gpuhal_time *time)
{
    list[i].asking = make(&list[i], list[i].iface, share_of(list, count, i, time), time);
    if (list[i].asking) {
        begin(list[i].asking, alone);
    } else {
        miss(&list[i], list[i].iface, GPUHAL_MISSING_FAILED, "out of host memory");
    }
}

/* Returns whether the driver responded to all requests, even with an error. */
static bool answered(const asking *own)
{
    bool in_time = own->status != GPUHAL_ERROR_TIMEOUT;
    for (uint32_t i = 0; i < own->count && in_time; i++) {
        const gpuhal_fact *fact = gpuhal_facts_find(&own->facts, own->keys[i]);
        in_time = !fact || fact->missing != GPUHAL_MISSING_TIMED_OUT;
    }
    return in_time;
}

static void end_one(gpuhal_gather *list, uint32_t count, uint32_t i, const gpuhal_time *time)
{
    gpuhal_gather *own = &list[i];
    bool in_time = true;
    if (own->asking && end(own->asking, time)) {
        take(own->asking);
        in_time = answered(own->asking);
    } else if (own->asking) {
        in_time = false;
        miss(own, own->iface, GPUHAL_MISSING_TIMED_OUT, "the driver did not start in time");
    }
    if (own->asking) {
        gpuhal_job_release(&own->asking->job);
        own->asking = NULL;
    }
    for (uint32_t k = i; k < count && !in_time; k++) {
        list[k].is_late = list[k].is_late || (list[k].iface && list[k].iface->candidate == own->iface->candidate);
    }
    own->iface = NULL;
}

/* Queries one device of each backend. Returns false if no device was left. */
static bool ask_round(gpuhal_gather *list, uint32_t count, const gpuhal_time *time)
{
    uint32_t backends = 0;
    for (uint32_t i = 0; i < count; i++) {
        list[i].is_asked = is_first(list, i);
        backends += list[i].is_asked;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].is_asked) {
            begin_one(list, count, i, backends == 1, time);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].is_asked) {
            end_one(list, count, i, time);
        }
    }
    return backends > 0;
}

void gpuhal_ask_interfaces(gpuhal_gather *list, uint32_t count, uint32_t n, const gpuhal_time *time)
{
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    for (uint32_t i = 0; i < count; i++) {
        list[i].iface = interface_of(&list[i], n);
        list[i].is_late = false;
    }
    while (ask_round(list, count, time)) {
    }
    gpuhal_error_restore(&before);
}
