/* options.h: the command line of gpuhal-place. */
#ifndef GPUHAL_TOOL_PLACE_OPTIONS_H
#define GPUHAL_TOOL_PLACE_OPTIONS_H

#include <gpuhal/schedule/placement.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { GPUHAL_PLACE_CONTEXT_MAX = 1 << 24 };

/* The form of the output. */
typedef enum gpuhal_place_format {
    GPUHAL_PLACE_TABLE,
    GPUHAL_PLACE_JSON,
    GPUHAL_PLACE_LLAMA_CPP,
    GPUHAL_PLACE_VLLM,
    GPUHAL_PLACE_ACCELERATE
} gpuhal_place_format;

/* A device that need not exist. */
typedef struct gpuhal_place_given {
    char name[64];
    uint64_t bytes;
    uint64_t bytes_per_second; /* 0: unknown */
} gpuhal_place_given;

typedef struct gpuhal_place_options {
    const char *model;
    const char *devices; /* selectors; NULL: the GPUs of the machine, unless devices are given */
    gpuhal_place_given given[GPUHAL_PLACEMENT_DEVICES_MAX];
    uint32_t given_count;
    const char *lost; /* the device without which a second plan is made; NULL: none */
    uint64_t context, margin_bytes;
    gpuhal_placement_objective objective;
    bool free_order;
    gpuhal_place_format format;
} gpuhal_place_options;

extern const char *const gpuhal_place_objectives[]; /* by number, as --objective takes them */

/* Returns GPUHAL_TOOL_GO_ON, or the exit code. */
int gpuhal_place_options_read(int argc, char **argv, FILE *out, gpuhal_place_options *out_options);

#endif
