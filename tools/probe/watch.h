/* watch.h: the live view (--watch on a terminal). */
#ifndef PROBE_WATCH_H
#define PROBE_WATCH_H

#include "machine.h"

#include <stdio.h>

/* Shows the live view on `out` until the user presses q, a signal ends the program (stop.h), or the terminal is gone.
 * If a driver blocks the sampler's thread, ends the program instead of returning. Always restores the screen. */
gpuhal_probe_exit gpuhal_probe_watch(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out);

/* The implementation in the live view's library, which gpuhal_probe_watch() loads and calls. */
gpuhal_probe_exit gpuhal_watch_run(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out);

#endif
