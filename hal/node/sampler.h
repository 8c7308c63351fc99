/* node/sampler.h: the sampler structure, for the files that implement it.
 *
 * One worker (device/worker.h), gpuhal-sample, reads the values with no lock held. It locks the mutex to add them to
 * the ring and to find the resulting events; callbacks run without the mutex. The worker ends at gpuhal_close(), at
 * gpuhal_sampler_destroy(), and in a forked child. The user, the worker and each queued or running callback have one
 * reference to the structure. Releasing the last reference frees the structure and releases its reference to the gpuhal
 * object.
 */
#ifndef GPUHAL_NODE_SAMPLER_H
#define GPUHAL_NODE_SAMPLER_H

#include "device/for_node.h"

#include <gpuhal/node/sampler.h>
#include <gpuhal/telemetry.h>

enum { GPUHAL_SAMPLER_EVENTS_KEPT = 256, GPUHAL_SAMPLER_REASONS = 6 };
/* Used in place of a threshold's number. */
#define GPUHAL_SAMPLER_OF_HEALTH UINT32_MAX

/* The state kept between samples that determines a device's health; health.c. */
typedef struct gpuhal_health_memory {
    struct gpuhal_health_count {
        uint64_t number; /* in the previous sample */
        bool known;
    } uncorrected, events;
    uint64_t replays, replays_ns;              /* number and time at the minute's beginning, or 0 if not read yet */
    uint64_t until_ns[GPUHAL_SAMPLER_REASONS]; /* end time of each reason, or 0 if it is not set */
} gpuhal_health_memory;

typedef struct gpuhal_sampled {
    gpuhal_device *device;
    gpuhal_value *values;   /* from the newest sample, one per key */
    gpuhal_status status;   /* of the newest sample */
    uint64_t *ring;         /* [ring index][key] */
    unsigned char *missing; /* in the order of `ring`: why each value is missing, or 0 */
    gpuhal_health health;
    gpuhal_health_memory memory;
} gpuhal_sampled;

typedef struct gpuhal_limit {
    struct gpuhal_limit *next;
    uint32_t number;
    uint32_t device, key; /* indexes in the sampler's lists */
    gpuhal_threshold threshold;
    bool raised;
    uint32_t in_a_row; /* number of consecutive samples that would change the state */
} gpuhal_limit;

struct gpuhal_sampler {
    gpuhal *gpu;          /* referenced */
    gpuhal_sampler *next; /* in the object's list; protected by the mutex of gpuhal_samplers */
    _Atomic uint32_t references;
    /* Constant members. */
    uint32_t flags, device_count, key_count, history;
    uint64_t period_ns;
    gpuhal_key *keys;
    gpuhal_sampled *devices; /* the mutex protects the contents */
    gpuhal_sample *samples;  /* used only by the worker; their values are in sampled_values */
    gpuhal_value *sampled_values;

    gpuhal_mutex mutex; /* protects the members below */
    gpuhal_condition condition;
    bool stop, destroyed, runs;
    uint64_t *times;        /* sample times, by ring index */
    uint32_t newest, count; /* ring index of the newest sample, and the number of samples */
    gpuhal_limit *limits;   /* ordered by number, then by device */
    uint32_t last_number;
    gpuhal_sampler_fn *on_health;
    void *on_health_user;
    gpuhal_sampler_event *kept; /* a ring, or NULL if not requested */
    uint32_t first_kept, kept_count;
    intptr_t descriptor; /* -1 if not requested */
    uint32_t calling;    /* number of the threshold whose callback is running, or OF_HEALTH, or 0 */
    const void *caller;  /* the thread that runs the callback, by gpuhal_job_caller() */
};

typedef struct gpuhal_samplers {
    gpuhal_mutex mutex; /* protects the list */
    gpuhal_sampler *first;
} gpuhal_samplers;

/* ---- sampled.c */

/* Frees a sampler, including an incomplete one, but keeps its reference to the gpuhal object. */
void gpuhal_sampler_free(gpuhal_sampler *sampler);
void gpuhal_sampler_release(gpuhal_sampler *sampler);
/* Returns OK, FORKED, or INVALID_ARGUMENT with a message that names the call. */
gpuhal_status gpuhal_sampler_check(const gpuhal_sampler *sampler, const char *call);
/* Each function returns an index in the sampler's lists, or UINT32_MAX if the device or key is not sampled. */
uint32_t gpuhal_sampler_find_device(const gpuhal_sampler *sampler, const gpuhal_device *device);
uint32_t gpuhal_sampler_find_key(const gpuhal_sampler *sampler, gpuhal_key key);

/* ---- threshold.c, health.c: call with the mutex held, after adding a sample */

void gpuhal_sampler_compare(gpuhal_sampler *sampler);
void gpuhal_sampler_examine(gpuhal_sampler *sampler);

/* ---- sampler_event.c */

/* Adds the event to the list if the application has requested the list, and queues a call of `callback` unless it is
 * NULL. The caller holds the mutex. */
void gpuhal_sampler_emit(gpuhal_sampler *sampler, const gpuhal_sampler_event *event, gpuhal_sampler_fn *callback);
/* Waits until no callback of this threshold is running, unless this thread is running it. `number` may also be
 * OF_HEALTH for the health callback, or 0 for all callbacks. The caller holds the mutex. */
void gpuhal_sampler_await_callback_unlocks(gpuhal_sampler *sampler, uint32_t number);

#endif
