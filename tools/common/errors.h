/* errors.h: captures a program's output to standard error for a JSON document, because callers that asked for JSON do
 * not read standard error. */
#ifndef GPUHAL_TOOL_ERRORS_H
#define GPUHAL_TOOL_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns whether the command line contains --json, even if it is otherwise invalid. */
bool gpuhal_tool_wants_json(int argc, char *const *argv);

/* Captures output to standard error until gpuhal_tool_errors_release() is called; returns -1 on failure. Captures do
 * not nest. */
int gpuhal_tool_errors_catch(void);
/* Writes the first 2047 bytes of the captured output to standard error and copies the first line, or "" if nothing was
 * captured. @caught is the result of gpuhal_tool_errors_catch(). */
void gpuhal_tool_errors_release(int caught, char *out_line, size_t size);

#endif
