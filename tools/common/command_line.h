/* command_line.h: what the command lines of all programs have in common, over glibc's argp: help, version, and the end
 * after a mistake. */
#ifndef GPUHAL_TOOL_COMMAND_LINE_H
#define GPUHAL_TOOL_COMMAND_LINE_H

#include <argp.h>
#include <stdio.h>

/* What the program does after its command line was read: it goes on, or ends with this exit code. */
enum { GPUHAL_TOOL_GO_ON = -1, GPUHAL_TOOL_DONE = 0, GPUHAL_TOOL_USAGE = 2 };

/* The first key of an option without a letter: below are characters. */
enum { GPUHAL_TOOL_KEY = 256 };

/* Reads the command line by @argp, whose parser gets @input and returns EINVAL after argp_error(). --help and --version
 * (which @print_version prints) go to @out; a mistake is named on standard error, behind the program's @name. */
int gpuhal_tool_command_line(const char *name, const struct argp *argp, void *input, FILE *out,
                             void (*print_version)(FILE *out), int count, char **arguments);

/* Names a mistake: `--OPTION is "VALUE"; it takes TAKES`. Returns EINVAL. */
error_t gpuhal_tool_mistake(const struct argp_state *state, const char *option, const char *value, const char *takes);

#endif
