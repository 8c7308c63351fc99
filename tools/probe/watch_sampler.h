/* watch_sampler.h: the thread of the live view that reads values, so that a driver that hangs never stops the keys. */
#ifndef PROBE_WATCH_SAMPLER_H
#define PROBE_WATCH_SAMPLER_H

#include "machine.h"
#include "watch_frame.h"

typedef struct gpuhal_watch_sampler gpuhal_watch_sampler;

/* Starts a thread that reads now, and then once in a period. The machine belongs to the thread until the sampler has
 * ended. Returns NULL after a sentence on standard error. */
gpuhal_watch_sampler *gpuhal_watch_sampler_start(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                                 uint64_t period_ns);
/* Returns a descriptor that is readable when there is a new frame. */
int gpuhal_watch_sampler_descriptor(const gpuhal_watch_sampler *sampler);
/* Returns the newest frame, once, which the caller frees. NULL: there is no newer one. */
gpuhal_watch_frame *gpuhal_watch_sampler_take(gpuhal_watch_sampler *sampler);
/* Sets period and pause. During a pause no driver is called. */
void gpuhal_watch_sampler_set(gpuhal_watch_sampler *sampler, uint64_t period_ns, bool paused);
/* Ends the sampler. Returns false if it is inside a driver that does not return: then its objects must stay. */
bool gpuhal_watch_sampler_end(gpuhal_watch_sampler *sampler);

#endif
