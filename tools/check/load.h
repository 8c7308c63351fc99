/* load.h: work that keeps a device busy: copies, as many as it needs some time for. Behind it order and waits show that
 * a device which is done at once hides. */
#ifndef GPUHAL_CHECK_LOAD_H
#define GPUHAL_CHECK_LOAD_H

#include "work.h"

/* So long the copies shall go on after the last call, if order is looked at. */
#define GPUHAL_LOAD_NS UINT64_C(120000000)

typedef struct gpuhal_load {
    gpuhal_work work;
    gpuhal_area from, to; /* all of `from` is copied to all of `to` */
    unsigned copies;
    uint64_t lasts_ns; /* so long they went on after the last call, at least */
    bool lasts;        /* that is long enough to be seen */
} gpuhal_load;

/* Finds out how many copies last for so long, at least. @p flags: of its queue and its event. */
void gpuhal_load_init(gpuhal_load *made, const gpuhal_context *context, uint32_t flags, uint64_t lasts_ns);
void gpuhal_load_finish(gpuhal_load *made);
void gpuhal_load_enqueue(const gpuhal_load *made, gpuhal_plugin_queue *queue);
/* The load, then a pattern to `work.to`, then `work.event`. */
void gpuhal_load_mark(gpuhal_load *made, uint64_t seed);
/* The event said that everything before it has ended: the bytes have to be there at once. */
void gpuhal_load_expect_ended(gpuhal_load *made, const char *call);

#endif
