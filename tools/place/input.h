/* input.h: an input file that is read sequentially, and the first problem found in it. */
#ifndef GPUHAL_TOOL_PLACE_INPUT_H
#define GPUHAL_TOOL_PLACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct gpuhal_input {
    const char *path;
    FILE *file;
    char *problem; /* "" if there was no problem so far */
    size_t size;   /* size of the buffer `problem` */
} gpuhal_input;

/* Records the problem unless a problem is already recorded. Returns false. */
bool gpuhal_input_fail(gpuhal_input *input, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Replaces control characters and bytes that are not UTF-8 with '?'. */
void gpuhal_input_clean(char *text);

#endif
