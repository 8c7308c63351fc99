/* standard_output.h: the standard output that the program was started with, through a new descriptor. Descriptor 1
 * becomes a copy of standard error, so that output of a driver cannot get between the program's data; and output that
 * does not arrive is noticed, wherever it goes. */
#ifndef GPUHAL_TOOL_STANDARD_OUTPUT_H
#define GPUHAL_TOOL_STANDARD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Takes standard output over, once. From now on a closed pipe is a write error, not a signal that ends the program.
 * Returns NULL with errno when standard output is closed. */
FILE *gpuhal_tool_output_take(void);

/* Writes the buffered output, before a message on standard error. Keeps the reason of a failure. */
void gpuhal_tool_output_flush(FILE *out);
/* Returns errno of the first flush that failed; 0 when none did. */
int gpuhal_tool_output_error(void);

/* Writes the buffered output, and closes; returns false with errno, or 0 in it, when not all of it arrived. Once: *out
 * is NULL afterwards, and closing NULL returns true. */
bool gpuhal_tool_output_close(FILE **out);

#endif
