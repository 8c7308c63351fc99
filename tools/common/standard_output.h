/* standard_output.h: the standard output that the program was started with, through a descriptor of its own. Descriptor
 * 1 becomes a copy of standard error, so that a driver that prints cannot get between the program's data; and output
 * that does not arrive is noticed, wherever it goes. */
#ifndef GPUHAL_TOOL_STANDARD_OUTPUT_H
#define GPUHAL_TOOL_STANDARD_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* Takes standard output over, once. From now on a closed pipe is an error of writing and no signal that ends the
 * program. NULL with errno when it is closed. */
FILE *gpuhal_tool_output_take(void);

/* Writes what is buffered, before something else is said on standard error. Keeps the reason of a failure. */
void gpuhal_tool_output_flush(FILE *out);
/* Returns why an earlier flush failed: errno; 0 when none did. */
int gpuhal_tool_output_error(void);

/* Writes what was printed, and closes; false with errno, or 0 in it, when it did not all arrive. Once: *out is NULL
 * afterwards, and closing NULL is true. */
bool gpuhal_tool_output_close(FILE **out);

#endif
