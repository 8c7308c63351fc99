/* report_file.h: creates a bug report in one text file. */
#ifndef PROBE_REPORT_FILE_H
#define PROBE_REPORT_FILE_H

#include "environment.h"
#include "machine.h"
#include "options.h"

/* Reads the processes and writes the report to a new file, or to `out` for "-". The file is created only if the report
 * is complete. On failure, prints the reason to standard error. */
gpuhal_probe_exit gpuhal_probe_write_report(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                            const gpuhal_probe_environment *environment, FILE *out);

#endif
