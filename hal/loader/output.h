/* loader/output.h: the end of what a helper printed: a driver's last words often tell why it ended. */
#ifndef GPUHAL_LOADER_OUTPUT_H
#define GPUHAL_LOADER_OUTPUT_H

#include "registry/texts.h"

#define GPUHAL_OUTPUT_BYTES 4096u
#define GPUHAL_OUTPUT_LINES 8u

/* Zero-initialised is empty. */
typedef struct gpuhal_output {
    char tail[GPUHAL_OUTPUT_BYTES];
    size_t used;
} gpuhal_output;

/* Keeps the last bytes of all that was added. */
void gpuhal_output_add(gpuhal_output *output, const char *bytes, size_t count);
/* The last lines, without empty ones, with `?` for what no terminal should get. */
void gpuhal_output_lines(const gpuhal_output *output, gpuhal_texts *out_lines);

#endif
