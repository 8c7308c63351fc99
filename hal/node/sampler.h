/* node/sampler.h: the structure of a sampler, for the files that implement it.
 *
 * One worker (device/worker.h), gpuhal-sample, reads the values with no lock held. It takes the mutex to add them to
 * the ring and to find the events that they cause; callbacks run without the mutex. The worker ends with
 * gpuhal_close(), with gpuhal_sampler_destroy(), and in the child of a fork. The structure has one reference of its
 * user, one of the worker and one of each callback under way. Releasing the last one frees it, and releases its
 * reference to the gpuhal object.
 */
#ifndef GPUHAL_NODE_SAMPLER_H
#define GPUHAL_NODE_SAMPLER_H

#include "device/for_node.h"

#include <gpuhal/node/sampler.h>
#include <gpuhal/telemetry.h>

enum { GPUHAL_SAMPLER_EVENTS_KEPT = 256, GPUHAL_SAMPLER_REASONS = 6 };
/* In place of a threshold's number. */
#define GPUHAL_SAMPLER_OF_HEALTH UINT32_MAX

/* The state, kept from sample to sample, that decides the health of a device; health.c. */
typedef struct gpuhal_health_memory {
    struct gpuhal_health_count {
        uint64_t number; /* at the sample before */
        bool known;
    } uncorrected, events;
    uint64_t replays, replays_ns; /* at the beginning of the minute, and its time; 0: not sampled yet */
    uint64_t until_ns[GPUHAL_SAMPLER_REASONS];    /* when each reason ends; 0: not set */
} gpuhal_health_memory;

typedef struct gpuhal_sampled {
    gpuhal_device *device;
    gpuhal_value *values;    /* of the newest sample, one for each key */
    gpuhal_status status;    /* of the newest sample */
    uint64_t *ring;          /* [place in the ring][key] */
    unsigned char *missing;  /* in the same order: 0, or the reason */
    gpuhal_health health;
    gpuhal_health_memory memory;
} gpuhal_sampled;

/* A threshold on one device. */
typedef struct gpuhal_limit {
    struct gpuhal_limit *next;
    uint32_t number;
    uint32_t device, key; /* places in the sampler's lists */
    gpuhal_threshold threshold;
    bool raised;
    uint32_t in_a_row;    /* samples that ask for the other state */
} gpuhal_limit;

struct gpuhal_sampler {
    gpuhal *gpu;             /* with a reference */
    gpuhal_sampler *next;    /* among those of the object; protected by the mutex of gpuhal_samplers */
    _Atomic uint32_t references;
    /* Constant. */
    uint32_t flags, device_count, key_count, history;
    uint64_t period_ns;
    gpuhal_key *keys;
    gpuhal_sampled *devices; /* the mutex protects their contents */
    gpuhal_sample *samples;  /* used by the worker alone; their values are in sampled_values */
    gpuhal_value *sampled_values;

    gpuhal_mutex mutex;      /* protects the members below */
    gpuhal_condition condition;
    bool stop, destroyed, runs;
    uint64_t *times;         /* the ring's */
    uint32_t newest, count;  /* place of the newest sample, and the number of samples */
    gpuhal_limit *limits;    /* by number, then by device */
    uint32_t last_number;
    gpuhal_sampler_fn *on_health;
    void *on_health_user;
    gpuhal_sampler_event *kept; /* a ring; NULL: not requested */
    uint32_t first_kept, kept_count;
    intptr_t descriptor;     /* -1: not requested */
    uint32_t calling;        /* the threshold whose callback runs, or OF_HEALTH; 0: no callback runs */
    const void *caller;      /* the thread that runs the callback, by gpuhal_job_caller() */
};

/* The samplers of one gpuhal object. */
typedef struct gpuhal_samplers {
    gpuhal_mutex mutex; /* protects the list */
    gpuhal_sampler *first;
} gpuhal_samplers;

/* ---- sampled.c */

/* Frees a sampler, also a half-made one. The reference to the gpuhal object stays. */
void gpuhal_sampler_free(gpuhal_sampler *sampler);
void gpuhal_sampler_release(gpuhal_sampler *sampler);
/* Returns OK, FORKED, or INVALID_ARGUMENT with a message that names the call. */
gpuhal_status gpuhal_sampler_check(const gpuhal_sampler *sampler, const char *call);
/* Each finds a place in the sampler's lists; UINT32_MAX: not sampled. */
uint32_t gpuhal_sampler_find_device(const gpuhal_sampler *sampler, const gpuhal_device *device);
uint32_t gpuhal_sampler_find_key(const gpuhal_sampler *sampler, gpuhal_key key);

/* ---- threshold.c, health.c: with the mutex held, after a sample was added */

void gpuhal_sampler_compare(gpuhal_sampler *sampler);
void gpuhal_sampler_examine(gpuhal_sampler *sampler);

/* ---- sampler_event.c */

/* Adds the event to the list, and queues the call of `callback` unless that is NULL. With the mutex held. */
void gpuhal_sampler_emit(gpuhal_sampler *sampler, const gpuhal_sampler_event *event, gpuhal_sampler_fn *callback);
/* Waits until no callback of this threshold runs (OF_HEALTH: that of health; 0: any), unless this thread runs it. With
 * the mutex held. */
void gpuhal_sampler_await_callback_unlocks(gpuhal_sampler *sampler, uint32_t number);

#endif
