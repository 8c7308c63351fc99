/* input.h: a file that is read from its beginning, with the first problem that was found in it. */
#ifndef GPUHAL_TOOL_PLACE_INPUT_H
#define GPUHAL_TOOL_PLACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct gpuhal_input {
    const char *path;
    FILE *file;
    char *problem; /* "": none yet */
    size_t size;   /* of `problem` */
} gpuhal_input;

/* Keeps the first problem. Returns false. */
bool gpuhal_input_fail(gpuhal_input *input, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts a '?' for each byte that a terminal would interpret or that is no UTF-8: files may hold any. */
void gpuhal_input_clean(char *text);

#endif
