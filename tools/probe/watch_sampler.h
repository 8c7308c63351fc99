/* watch_sampler.h: a thread that reads values for the live view, so that a driver that hangs does not block the
 * keys. */
#ifndef PROBE_WATCH_SAMPLER_H
#define PROBE_WATCH_SAMPLER_H

#include "machine.h"
#include "watch_frame.h"

typedef struct gpuhal_watch_sampler gpuhal_watch_sampler;

/* Starts a thread that reads the values immediately, and then once per period. The machine belongs to the thread until
 * the sampler has ended. Returns NULL after a message on standard error. */
gpuhal_watch_sampler *gpuhal_watch_sampler_start(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                                 uint64_t period_ns);
/* Returns a descriptor that is readable when there is a new frame. */
int gpuhal_watch_sampler_descriptor(const gpuhal_watch_sampler *sampler);
/* Returns the newest frame, which the caller must free, or NULL if there is no frame since the last call. */
gpuhal_watch_frame *gpuhal_watch_sampler_take(gpuhal_watch_sampler *sampler);
/* Sets the period, and pauses or resumes. No driver is called during a pause. */
void gpuhal_watch_sampler_set(gpuhal_watch_sampler *sampler, uint64_t period_ns, bool paused);
/* Ends the sampler. Returns false if its thread is stuck in a driver; then the thread's objects must stay valid. */
bool gpuhal_watch_sampler_end(gpuhal_watch_sampler *sampler);

#endif
