/* formats.h: the listing for programs, other than JSON. Each format has its file. */
#ifndef PROBE_FORMATS_H
#define PROBE_FORMATS_H

#include "fields.h"
#include "machine.h"

#include <stdio.h>

/* All return false without memory, the last one INTERNAL; the caller checks on `out` whether writing worked. */

/* Prints CSV of RFC 4180: a line for each row, under a line of names, which `with_names` may leave out if it was
 * printed before.
 */
bool gpuhal_probe_print_csv(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, bool with_names,
                            FILE *out);
/* Prints OpenMetrics 1.0, or Prometheus' text format 0.0.4. */
bool gpuhal_probe_print_openmetrics(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                    FILE *out);
bool gpuhal_probe_print_gres(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, FILE *out);
/* Prints a specification of the Container Device Interface, which must name one GPU at least: else prints nothing and
 * returns NO_DEVICE. `says_left_out`: standard error names the GPUs that are not in it, with the reason. */
gpuhal_probe_exit gpuhal_probe_print_cdi(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                         bool says_left_out, FILE *out);

#endif
