/* loader/output.h: keeps the end of a helper's output. The last lines that a driver prints often explain its crash. */
#ifndef GPUHAL_LOADER_OUTPUT_H
#define GPUHAL_LOADER_OUTPUT_H

#include "registry/texts.h"

#define GPUHAL_OUTPUT_BYTES 4096u
#define GPUHAL_OUTPUT_LINES 8u

/* Zero-initialised means empty. */
typedef struct gpuhal_output {
    char tail[GPUHAL_OUTPUT_BYTES];
    size_t used;
} gpuhal_output;

/* Only the last GPUHAL_OUTPUT_BYTES are kept. */
void gpuhal_output_add(gpuhal_output *output, const char *bytes, size_t count);
/* Returns the last non-empty lines. Bytes that are unsafe on a terminal become `?`. */
void gpuhal_output_lines(const gpuhal_output *output, gpuhal_texts *out_lines);

#endif
