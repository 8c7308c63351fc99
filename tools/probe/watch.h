/* watch.h: the live view (--watch on a terminal). */
#ifndef PROBE_WATCH_H
#define PROBE_WATCH_H

#include "machine.h"

#include <stdio.h>

/* Shows the live view on `out` until q or a signal. If a driver holds its thread, it ends the program and does not
 * return. The screen is restored in every case. */
gpuhal_probe_exit gpuhal_probe_watch(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out);

/* Does the same, in the library of the live view, which gpuhal_probe_watch() loads. */
gpuhal_probe_exit gpuhal_watch_run(const gpuhal_probe_options *options, gpuhal_probe_machine *machine, FILE *out);

#endif
