/* formats.h: output formats for other programs, except JSON. Each format has a separate file. */
#ifndef PROBE_FORMATS_H
#define PROBE_FORMATS_H

#include "fields.h"
#include "machine.h"

#include <stdio.h>

/* All functions return false if out of memory; gpuhal_probe_print_cdi() returns INTERNAL. The caller must check `out`
 * for write errors. */

/* Prints CSV (RFC 4180): a header line and a line for each row. If `with_names` is false, omits the header line. */
bool gpuhal_probe_print_csv(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, bool with_names,
                            FILE *out);
/* Prints OpenMetrics 1.0 or Prometheus' text format 0.0.4. */
bool gpuhal_probe_print_openmetrics(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                    FILE *out);
/* Prints gres.conf for Slurm. */
bool gpuhal_probe_print_gres(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, FILE *out);
/* Prints a specification for the Container Device Interface. The format requires at least one GPU. Prints nothing and
 * returns NO_DEVICE if no GPU can be included. With `says_left_out`, reports on standard error the omitted GPUs and the
 * reasons, except for reasons that other messages already report. */
gpuhal_probe_exit gpuhal_probe_print_cdi(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                         bool says_left_out, FILE *out);

#endif
