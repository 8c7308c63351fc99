/* command_line.h: the common part of the command lines of all programs, over glibc's argp: help, version, and the end
 * after a mistake. */
#ifndef GPUHAL_TOOL_COMMAND_LINE_H
#define GPUHAL_TOOL_COMMAND_LINE_H

#include <argp.h>
#include <stdio.h>

/* The next step after the command line was read: go on, or end with this exit code. */
enum { GPUHAL_TOOL_GO_ON = -1, GPUHAL_TOOL_DONE = 0, GPUHAL_TOOL_USAGE = 2 };

/* The first key of an option without a letter: smaller keys are characters. */
enum { GPUHAL_TOOL_KEY = 256 };

/* Reads the command line by @argp, whose parser gets @input and returns EINVAL after argp_error(). --help and --version
 * (which @print_version prints) go to @out. A mistake is named on standard error, after the program's @name. */
int gpuhal_tool_command_line(const char *name, const struct argp *argp, void *input, FILE *out,
                             void (*print_version)(FILE *out), int count, char **arguments);

/* Names a mistake: `--OPTION is "VALUE"; it takes TAKES`. Returns EINVAL. */
error_t gpuhal_tool_mistake(const struct argp_state *state, const char *option, const char *value, const char *takes);

#endif
