/* formats.h: the listing for programs, other than JSON. Each is printed by a file of its own. */
#ifndef PROBE_FORMATS_H
#define PROBE_FORMATS_H

#include "fields.h"
#include "machine.h"

#include <stdio.h>

/* All return false without memory, the last one INTERNAL; whether writing worked is for the caller to see on `out`. */

/* RFC 4180: a line for each row, under a line of names, which `with_names` may leave out where it was printed before.
 */
bool gpuhal_probe_print_csv(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, bool with_names,
                            FILE *out);
/* OpenMetrics 1.0, or Prometheus' text format 0.0.4. */
bool gpuhal_probe_print_openmetrics(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                    FILE *out);
/* gres.conf of Slurm. */
bool gpuhal_probe_print_gres(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, FILE *out);
/* A specification of the Container Device Interface, which names one GPU at least: NO_DEVICE, and nothing was printed.
 * `says_left_out`: standard error names the GPUs that are not in it, with the reason. */
gpuhal_probe_exit gpuhal_probe_print_cdi(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                         bool says_left_out, FILE *out);

#endif
