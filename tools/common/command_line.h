/* command_line.h: command-line handling that all programs share, based on glibc's argp: help, version, and usage
 * errors. */
#ifndef GPUHAL_TOOL_COMMAND_LINE_H
#define GPUHAL_TOOL_COMMAND_LINE_H

#include <argp.h>
#include <stdio.h>

/* The action after parsing: continue, or exit with this code. */
enum { GPUHAL_TOOL_GO_ON = -1, GPUHAL_TOOL_DONE = 0, GPUHAL_TOOL_USAGE = 2 };

/* The first key for options without a short name; smaller keys are characters. */
enum { GPUHAL_TOOL_KEY = 256 };

/* Parses the command line with @argp. Its parser receives @input and must return EINVAL after argp_error(). Prints
 * --help and --version (with @print_version) to @out. Prints usage errors, prefixed with the program's @name, to
 * standard error. */
int gpuhal_tool_command_line(const char *name, const struct argp *argp, void *input, FILE *out,
                             void (*print_version)(FILE *out), int count, char **arguments);

/* Reports a usage error: `--OPTION is "VALUE"; it takes TAKES`. Returns EINVAL. */
error_t gpuhal_tool_mistake(const struct argp_state *state, const char *option, const char *value, const char *takes);

#endif
