/* options.h: the command line of gpuhal-place. */
#ifndef GPUHAL_TOOL_PLACE_OPTIONS_H
#define GPUHAL_TOOL_PLACE_OPTIONS_H

#include <gpuhal/schedule/placement.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { GPUHAL_PLACE_CONTEXT_MAX = 1 << 24 };

typedef enum gpuhal_place_format {
    GPUHAL_PLACE_TABLE,
    GPUHAL_PLACE_JSON,
    GPUHAL_PLACE_LLAMA_CPP,
    GPUHAL_PLACE_VLLM,
    GPUHAL_PLACE_ACCELERATE
} gpuhal_place_format;

typedef struct gpuhal_place_given {
    char name[64];
    uint64_t bytes;
    uint64_t bytes_per_second; /* 0 if unknown */
} gpuhal_place_given;

typedef struct gpuhal_place_options {
    const char *model;
    const char *devices; /* selectors; NULL for the machine's GPUs, unless hypothetical devices are given */
    gpuhal_place_given given[GPUHAL_PLACEMENT_DEVICES_MAX];
    uint32_t given_count;
    const char *lost; /* the device without which to plan again; NULL if not given */
    uint64_t context, margin_bytes;
    gpuhal_placement_objective objective;
    bool free_order;
    gpuhal_place_format format;
} gpuhal_place_options;

extern const char *const gpuhal_place_objectives[]; /* names for --objective, by enumerator */

/* Returns GPUHAL_TOOL_GO_ON or an exit code. */
int gpuhal_place_options_read(int argc, char **argv, FILE *out, gpuhal_place_options *out_options);

#endif
