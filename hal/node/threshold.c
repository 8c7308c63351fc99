/* node/threshold.c: thresholds with hysteresis. A threshold for all devices has one gpuhal_limit per device. */
#include "node/sampler.h"

#include "device/for_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_beyond(const gpuhal_threshold *threshold, uint64_t value, uint64_t limit)
{
    return threshold->is_below ? value < limit : value > limit;
}

static void emit(gpuhal_sampler *sampler, const gpuhal_limit *limit, uint64_t value)
{
    const gpuhal_threshold *threshold = &limit->threshold;
    const char *name = gpuhal_key_name(threshold->key);
    gpuhal_sampler_event event = {.size = sizeof event,
                                  .kind = limit->raised ? GPUHAL_SAMPLER_RAISED : GPUHAL_SAMPLER_CLEARED,
                                  .device = sampler->devices[limit->device].device,
                                  .time_ns = sampler->times[sampler->newest],
                                  .threshold = limit->number,
                                  .key = threshold->key,
                                  .value = value};
    const uint64_t bound = limit->raised ? threshold->limit : threshold->clear;
    const char *side = limit->raised ? threshold->is_below ? "below" : "above"
                                     : threshold->is_below ? "no longer below" : "no longer above";
    snprintf(event.sentence, sizeof event.sentence, "%s: %s is %" PRIu64 ", %s %" PRIu64, event.device->id,
             name ? name : "a value of the vendor's", value, side, bound);
    gpuhal_sampler_emit(sampler, &event, threshold->callback);
}

void gpuhal_sampler_compare(gpuhal_sampler *sampler)
{
    for (gpuhal_limit *limit = sampler->limits; limit; limit = limit->next) {
        const gpuhal_value *value = &sampler->devices[limit->device].values[limit->key];
        const gpuhal_threshold *threshold = &limit->threshold;
        if (value->missing) {
            continue;
        }
        const bool beyond = is_beyond(threshold, value->u64, limit->raised ? threshold->clear : threshold->limit);
        limit->in_a_row = beyond != limit->raised ? limit->in_a_row + 1 : 0;
        if (limit->in_a_row >= threshold->samples) {
            limit->raised = !limit->raised;
            limit->in_a_row = 0;
            emit(sampler, limit, value->u64);
        }
    }
}

static gpuhal_status check(const gpuhal_sampler *sampler, const gpuhal_threshold *given, gpuhal_threshold *out)
{
    if (!given || given->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_sampler_add_threshold: threshold is NULL, or its size is 0");
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    out->samples = out->samples > 0 ? out->samples : 1;
    out->clear = out->clear > 0 ? out->clear : out->limit;
    const bool known_device = !out->device || gpuhal_sampler_find_device(sampler, out->device) != UINT32_MAX;
    if (!known_device || gpuhal_sampler_find_key(sampler, out->key) == UINT32_MAX) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_sampler_add_threshold: the %s is not sampled",
                                known_device ? "key" : "device");
    }
    return is_beyond(out, out->clear, out->limit)
               ? gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "gpuhal_sampler_add_threshold: `clear` lies beyond `limit`")
               : GPUHAL_OK;
}

static void free_limits(gpuhal_limit *limits)
{
    while (limits) {
        gpuhal_limit *next = limits->next;
        free(limits);
        limits = next;
    }
}

/* Creates one limit for each of the threshold's devices, in device order. Returns NULL if memory is short. */
static gpuhal_limit *make_limits(const gpuhal_sampler *sampler, const gpuhal_threshold *threshold)
{
    gpuhal_limit *limits = NULL, **end = &limits;
    for (uint32_t d = 0; d < sampler->device_count; d++) {
        if (!threshold->device || sampler->devices[d].device == threshold->device) {
            gpuhal_limit *limit = calloc(1, sizeof *limit);
            if (!limit) {
                free_limits(limits);
                return NULL;
            }
            *limit = (gpuhal_limit){.device = d,
                                    .key = gpuhal_sampler_find_key(sampler, threshold->key),
                                    .threshold = *threshold};
            *end = limit;
            end = &limit->next;
        }
    }
    return limits;
}

gpuhal_status gpuhal_sampler_add_threshold(gpuhal_sampler *sampler, const gpuhal_threshold *given,
                                           uint32_t *out_number)
{
    gpuhal_threshold threshold = {0};
    if (out_number) {
        *out_number = 0;
    }
    gpuhal_status status = gpuhal_sampler_check(sampler, "gpuhal_sampler_add_threshold");
    status = status ? status : check(sampler, given, &threshold);
    const int error = !status && threshold.callback ? gpuhal_serve(sampler->gpu) : 0;
    if (status || error) {
        return status ? status : gpuhal_error_no_thread(error);
    }
    gpuhal_limit *limits = make_limits(sampler, &threshold);
    if (!limits) {
        return gpuhal_error_host_memory();
    }
    gpuhal_mutex_lock(&sampler->mutex);
    const uint32_t number = ++sampler->last_number;
    for (gpuhal_limit *limit = limits; limit; limit = limit->next) {
        limit->number = number;
    }
    gpuhal_limit **end = &sampler->limits; /* events are emitted in list order */
    while (*end) {
        end = &(*end)->next;
    }
    *end = limits;
    gpuhal_mutex_unlock(&sampler->mutex);
    if (out_number) {
        *out_number = number;
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_sampler_remove_threshold(gpuhal_sampler *sampler, uint32_t number)
{
    gpuhal_limit *removed = NULL;
    gpuhal_status status = gpuhal_sampler_check(sampler, "gpuhal_sampler_remove_threshold");
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&sampler->mutex);
    for (gpuhal_limit **link = &sampler->limits; *link;) {
        gpuhal_limit *limit = *link;
        if (limit->number == number) {
            *link = limit->next;
            limit->next = removed;
            removed = limit;
        } else {
            link = &limit->next;
        }
    }
    if (removed) {
        gpuhal_sampler_await_callback_unlocks(sampler, number);
    }
    gpuhal_mutex_unlock(&sampler->mutex);
    status = removed ? GPUHAL_OK
                     : gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND,
                                        "gpuhal_sampler_remove_threshold: no threshold has the number %u", number);
    free_limits(removed);
    return status;
}
