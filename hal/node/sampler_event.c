/* node/sampler_event.c: passes a sampler's events to callbacks and to the application's event list. */
#include "node/sampler.h"

#include "device/for_node.h"

#include <stdlib.h>
#include <string.h>

/* ---- callbacks */

typedef struct delivery {
    gpuhal_sampler *sampler;
    gpuhal_sampler_event event;
} delivery;

/* Returns the event's callback, or NULL if it was removed or the sampler was destroyed. The caller holds the mutex. */
static gpuhal_sampler_fn *callback_of(const gpuhal_sampler *sampler, const gpuhal_sampler_event *event, void **out_user)
{
    gpuhal_sampler_fn *callback = NULL;
    *out_user = NULL;
    if (sampler->destroyed) {
        return NULL;
    }
    if (event->kind == GPUHAL_SAMPLER_HEALTH) {
        *out_user = sampler->on_health_user;
        return sampler->on_health;
    }
    for (const gpuhal_limit *limit = sampler->limits; limit && !callback; limit = limit->next) {
        if (limit->number == event->threshold) {
            callback = limit->threshold.callback;
            *out_user = limit->threshold.user;
        }
    }
    return callback;
}

/* Runs on the callback thread. */
static void deliver(void *user, gpuhal_status status)
{
    (void)status;
    delivery *own = user;
    gpuhal_sampler *sampler = own->sampler;
    void *of_callback = NULL;
    gpuhal_mutex_lock(&sampler->mutex);
    gpuhal_sampler_fn *callback = callback_of(sampler, &own->event, &of_callback);
    const uint32_t number = own->event.kind == GPUHAL_SAMPLER_HEALTH ? GPUHAL_SAMPLER_OF_HEALTH : own->event.threshold;
    sampler->calling = callback ? number : 0;
    sampler->caller = gpuhal_job_caller();
    gpuhal_mutex_unlock(&sampler->mutex);
    if (callback) {
        callback(of_callback, &own->event);
        gpuhal_mutex_lock(&sampler->mutex);
        sampler->calling = 0;
        gpuhal_condition_signal_all(&sampler->condition);
        gpuhal_mutex_unlock(&sampler->mutex);
    }
    free(own);
    gpuhal_sampler_release(sampler);
}

void gpuhal_sampler_await_callback_unlocks(gpuhal_sampler *sampler, uint32_t number)
{
    while (sampler->calling != 0 && (number == 0 || sampler->calling == number) &&
           sampler->caller != gpuhal_job_caller()) {
        gpuhal_condition_wait(&sampler->condition, &sampler->mutex);
    }
}

/* If memory is short, the callback is not called, but the event list still contains the event. */
static void send(gpuhal_sampler *sampler, const gpuhal_sampler_event *event)
{
    delivery *own = malloc(sizeof *own);
    if (own) {
        *own = (delivery){.sampler = sampler, .event = *event};
        atomic_fetch_add(&sampler->references, 1);
        if (!gpuhal_serve_call(sampler->gpu, deliver, own)) {
            atomic_fetch_sub(&sampler->references, 1);
            free(own);
        }
    }
}

void gpuhal_sampler_emit(gpuhal_sampler *sampler, const gpuhal_sampler_event *event, gpuhal_sampler_fn *callback)
{
    if (sampler->kept) {
        if (sampler->kept_count == GPUHAL_SAMPLER_EVENTS_KEPT) {
            sampler->first_kept = (sampler->first_kept + 1) % GPUHAL_SAMPLER_EVENTS_KEPT;
            sampler->kept_count--;
        }
        sampler->kept[(sampler->first_kept + sampler->kept_count++) % GPUHAL_SAMPLER_EVENTS_KEPT] = *event;
        gpuhal_os_notifier_set(sampler->descriptor);
    }
    if (callback) {
        send(sampler, event);
    }
}

/* ---- the list */

gpuhal_status gpuhal_sampler_descriptor(gpuhal_sampler *sampler, gpuhal_os_handle *out_descriptor)
{
    if (out_descriptor) {
        *out_descriptor = -1;
    }
    gpuhal_status status = gpuhal_sampler_check(sampler, "gpuhal_sampler_descriptor");
    if (status || !out_descriptor) {
        return status ? status
                      : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                         "gpuhal_sampler_descriptor: out_descriptor is NULL");
    }
    gpuhal_mutex_lock(&sampler->mutex);
    sampler->kept = sampler->kept ? sampler->kept : calloc(GPUHAL_SAMPLER_EVENTS_KEPT, sizeof *sampler->kept);
    const bool has_memory = sampler->kept != NULL;
    const int error = has_memory && sampler->descriptor < 0 ? gpuhal_os_notifier_create(&sampler->descriptor) : 0;
    if (!has_memory || error) {
        free(sampler->kept); /* events are kept only if there is a descriptor */
        sampler->kept = NULL;
    } else {
        *out_descriptor = gpuhal_os_descriptor_copy(sampler->descriptor);
    }
    gpuhal_mutex_unlock(&sampler->mutex);
    if (!has_memory) {
        return gpuhal_error_host_memory();
    }
    return *out_descriptor >= 0 ? GPUHAL_OK
                                : gpuhal_error_set(GPUHAL_ERROR_DRIVER, "the system gives no further descriptor");
}

gpuhal_status gpuhal_sampler_next_event(gpuhal_sampler *sampler, gpuhal_sampler_event *out_event)
{
    gpuhal_status status = gpuhal_sampler_check(sampler, "gpuhal_sampler_next_event");
    if (status || !out_event || out_event->size == 0) {
        return status ? status
                      : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                         "gpuhal_sampler_next_event: out_event is NULL, or its size is 0");
    }
    gpuhal_sampler_event event = {0};
    gpuhal_mutex_lock(&sampler->mutex);
    const bool has = sampler->kept_count > 0;
    if (has) {
        event = sampler->kept[sampler->first_kept];
        sampler->first_kept = (sampler->first_kept + 1) % GPUHAL_SAMPLER_EVENTS_KEPT;
        sampler->kept_count--;
    }
    if (sampler->kept_count == 0 && sampler->descriptor >= 0) {
        gpuhal_os_notifier_clear(sampler->descriptor);
    }
    gpuhal_mutex_unlock(&sampler->mutex);
    if (!has) {
        return GPUHAL_NOT_READY;
    }
    event.size = out_event->size;
    memcpy(out_event, &event, event.size < sizeof event ? event.size : sizeof event);
    return GPUHAL_OK;
}
