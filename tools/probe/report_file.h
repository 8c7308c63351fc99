/* report_file.h: the contents of a bug report, as one text. */
#ifndef PROBE_REPORT_FILE_H
#define PROBE_REPORT_FILE_H

#include "environment.h"
#include "machine.h"
#include "options.h"

/* Reads the processes, and writes the report to a new file, complete or not at all, or to `out` for "-". Prints the
 * reason on standard error if it cannot. */
gpuhal_probe_exit gpuhal_probe_write_report(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                            const gpuhal_probe_environment *environment, FILE *out);

#endif
