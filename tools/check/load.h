/* load.h: work that keeps a device busy: enough copies to take some time. Operations after it show errors of order and
 * waits that a fast device hides. */
#ifndef GPUHAL_CHECK_LOAD_H
#define GPUHAL_CHECK_LOAD_H

#include "work.h"

/* The copies shall last this long after the last call, if a check is about order. */
#define GPUHAL_LOAD_NS UINT64_C(120000000)

typedef struct gpuhal_load {
    gpuhal_work work;
    gpuhal_area from, to; /* all of `from` is copied to all of `to` */
    unsigned copies;
    uint64_t lasts_ns; /* they last at least this long after the last call */
    bool lasts;        /* long enough to be seen */
} gpuhal_load;

/* Finds out how many copies last at least @p lasts_ns. @p flags: of its queue and its event. */
void gpuhal_load_init(gpuhal_load *made, const gpuhal_context *context, uint32_t flags, uint64_t lasts_ns);
void gpuhal_load_finish(gpuhal_load *made);
void gpuhal_load_enqueue(const gpuhal_load *made, gpuhal_plugin_queue *queue);
/* Enqueues the load, then a pattern to `work.to`, then `work.event`. */
void gpuhal_load_mark(gpuhal_load *made, uint64_t seed);
/* Checks that the bytes of the load are there, since the event said that all earlier work has ended. */
void gpuhal_load_expect_ended(gpuhal_load *made, const char *call);

#endif
