/* repeat.h: prints listings once, repeatedly, or into a file. */
#ifndef PROBE_REPEAT_H
#define PROBE_REPEAT_H

#include "environment.h"
#include "machine.h"

#include <stdio.h>

/* Prints the machine as the options require, to --output or to `out`. Returns the exit code of the findings, or an
 * error's code after a message on standard error. With --every or --watch, returns COMPLETE after a signal. */
gpuhal_probe_exit gpuhal_probe_repeat(const gpuhal_probe_options *options, const gpuhal_probe_environment *environment,
                                      gpuhal_probe_machine *machine, FILE *out);

#endif
