/* errors.h: keeps a program's output on standard error for a document too: callers that asked for JSON read no
 * sentences on standard error. */
#ifndef GPUHAL_TOOL_ERRORS_H
#define GPUHAL_TOOL_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the command line has --json, even if the rest is wrong. */
bool gpuhal_tool_wants_json(int argc, char *const *argv);

/* Keeps output to standard error until release; returns -1 if that is not possible. One catch at a time. */
int gpuhal_tool_errors_catch(void);
/* Writes the kept output to standard error, and copies its first line; "" if nothing was kept. @caught: the result of
 * catch. */
void gpuhal_tool_errors_release(int caught, char *out_line, size_t size);

#endif
