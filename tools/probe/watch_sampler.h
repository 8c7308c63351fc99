/* watch_sampler.h: the thread of the live view that reads values, so that a
 * driver which hangs never stops the keys. */
#ifndef PROBE_WATCH_SAMPLER_H
#define PROBE_WATCH_SAMPLER_H

#include "machine.h"
#include "watch_frame.h"

typedef struct gpuhal_watch_sampler gpuhal_watch_sampler;

/* Reads now, and once in a period from now on. The machine is the thread's
 * until the sampler has ended. NULL after a sentence on standard error. */
gpuhal_watch_sampler *gpuhal_watch_sampler_start(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                                 uint64_t period_ns);
/* Readable when there is a new frame. */
int gpuhal_watch_sampler_descriptor(const gpuhal_watch_sampler *sampler);
/* The newest frame, once: it is the caller's to free. NULL: there is no newer
 * one. */
gpuhal_watch_frame *gpuhal_watch_sampler_take(gpuhal_watch_sampler *sampler);
/* While it pauses no driver is called. */
void gpuhal_watch_sampler_set(gpuhal_watch_sampler *sampler, uint64_t period_ns, bool paused);
/* Ends it. false: it is inside a driver that does not return, and everything it
 * uses must stay. */
bool gpuhal_watch_sampler_end(gpuhal_watch_sampler *sampler);

#endif
