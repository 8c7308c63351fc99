/* standard_output.h: the program's original standard output, through a new descriptor. Descriptor 1 becomes a copy of
 * standard error, so that drivers cannot print into the program's data. Failed writes to a file, a pipe or a terminal
 * are detected. */
#ifndef GPUHAL_TOOL_STANDARD_OUTPUT_H
#define GPUHAL_TOOL_STANDARD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Takes over standard output; call once. After this call, writing to a closed pipe is an error instead of a fatal
 * signal. Returns NULL with errno if standard output is closed. */
FILE *gpuhal_tool_output_take(void);

/* Writes the buffered output, for example before a message on standard error. Keeps the error of a failed write. */
void gpuhal_tool_output_flush(FILE *out);
/* Returns errno of the first failed flush, or 0. */
int gpuhal_tool_output_error(void);

/* Writes the buffered output and closes it. If a write failed, returns false and sets errno; errno is 0 if the reason
 * is unknown. Sets *out to NULL; closing NULL returns true. */
bool gpuhal_tool_output_close(FILE **out);

#endif
