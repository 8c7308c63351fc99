/* print.h: the sections that people read, and the JSON document. */
#ifndef PROBE_PRINT_H
#define PROBE_PRINT_H

#include "environment.h"
#include "machine.h"
#include "screen.h"

/* One line per device; on a terminal also a heading, and the reason for the choice. false without memory. */
bool gpuhal_probe_print_list(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                             const gpuhal_probe_screen *screen);
/* One block per plugin, the remarks, and the choice. */
void gpuhal_probe_print_explanation(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen);
/* One line per plugin that was probed, and the sum of it all. */
void gpuhal_probe_print_timings(const gpuhal_probe_machine *machine, const gpuhal_probe_screen *screen);
/* The document gpuhal.probe/1. `environment` is NULL when it was not asked for. false without memory; whether writing worked is
 * for the caller to see on `out`. */
bool gpuhal_probe_print_json(const gpuhal_probe_machine *machine, const gpuhal_probe_environment *environment, FILE *out);

#endif
