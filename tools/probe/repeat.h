/* repeat.h: listings that are printed once, repeatedly, or into a file. */
#ifndef PROBE_REPEAT_H
#define PROBE_REPEAT_H

#include "environment.h"
#include "machine.h"

#include <stdio.h>

/* Prints the machine by the options, into --output or to `out`. Returns the code of the findings, or of a failure after
 * a sentence on standard error; with --every or --watch COMPLETE, after a signal has ended it. */
gpuhal_probe_exit gpuhal_probe_repeat(const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                                      gpuhal_probe_machine *machine, FILE *out);

#endif
