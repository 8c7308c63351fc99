/* options.h: the command line. */
#ifndef GPUHAL_CHECK_OPTIONS_H
#define GPUHAL_CHECK_OPTIONS_H

#include "check.h"

/* Reads the command line. Help is printed to @p out, like the report. Returns GPUHAL_TOOL_GO_ON, or the exit code if
 * the program is finished (common/command_line.h). */
int gpuhal_options_read(int argc, char **argv, FILE *out, gpuhal_check_options *out_options);

#endif
