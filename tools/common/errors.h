/* errors.h: what a program writes to standard error, kept for a document too: programs that asked for JSON read no
 * sentences on standard error. */
#ifndef GPUHAL_TOOL_ERRORS_H
#define GPUHAL_TOOL_ERRORS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the command line has --json, be the rest of it right or wrong. */
bool gpuhal_tool_wants_json(int argc, char *const *argv);

/* Keeps what is written to standard error until release; -1 where that is not possible. One at a time. */
int gpuhal_tool_errors_catch(void);
/* Writes to standard error what was kept, and copies its first line; "" where nothing was kept. @caught: what catch
 * returned. */
void gpuhal_tool_errors_release(int caught, char *out_line, size_t size);

#endif
