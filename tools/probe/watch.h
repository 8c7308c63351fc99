/* watch.h: the live view (--watch on a terminal). */
#ifndef PROBE_WATCH_H
#define PROBE_WATCH_H

#include "machine.h"

#include <stdio.h>

/* Shows it on `out` until q or a signal. Does not return where a driver holds
 * its thread: it ends the program then. The screen is as it was in every case.
 */
gpuhal_probe_exit gpuhal_probe_watch(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out);

/* The same, in the library of the live view, which the former loads. */
gpuhal_probe_exit gpuhal_watch_run(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out);

#endif
