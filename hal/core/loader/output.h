/* loader/output.h: the end of a helper's output: the last lines of a driver often explain its crash. */
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

/* Keeps the last bytes of all output. */
void gpuhal_output_add(gpuhal_output *output, const char *bytes, size_t count);
/* Lists the last lines without empty ones. Bytes that no terminal must get become `?`. */
void gpuhal_output_lines(const gpuhal_output *output, gpuhal_texts *out_lines);

#endif
