/* load.h: work that keeps a device busy: enough copies to last for some time. Operations enqueued after this work
 * reveal wrong order and missing waits that a fast device would hide. */
#ifndef GPUHAL_CHECK_LOAD_H
#define GPUHAL_CHECK_LOAD_H

#include "work.h"

/* In checks of order, the copies should last this long after the last call. */
#define GPUHAL_LOAD_NS UINT64_C(120000000)

typedef struct gpuhal_load {
    gpuhal_work work;
    gpuhal_area from, to; /* all of `from` is copied to all of `to` */
    unsigned copies;
    uint64_t lasts_ns; /* minimum duration after the last call */
    bool lasts;        /* the copies last long enough to be observed */
} gpuhal_load;

/* Determines how many copies last at least @p lasts_ns. @p flags are the flags of the load's queue and event. */
void gpuhal_load_init(gpuhal_load *made, const gpuhal_context *context, uint32_t flags, uint64_t lasts_ns);
void gpuhal_load_finish(gpuhal_load *made);
void gpuhal_load_enqueue(const gpuhal_load *made, gpuhal_plugin_queue *queue);
/* Enqueues the load, then a copy of a pattern to `work.to`, then records `work.event`. */
void gpuhal_load_mark(gpuhal_load *made, uint64_t seed);
/* Checks that the pattern of gpuhal_load_mark() has arrived in `work.to`. Called after the event has reported that all
 * earlier work has ended. */
void gpuhal_load_expect_ended(gpuhal_load *made, const char *call);

#endif
