/* model.h: the layers of a model, from the header of a GGUF file or from a table. */
#ifndef GPUHAL_TOOL_PLACE_MODEL_H
#define GPUHAL_TOOL_PLACE_MODEL_H

#include <gpuhal/schedule/placement.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpuhal_model {
    char name[128];        /* as the file states it, else the file's name */
    char architecture[64]; /* "" in a table */
    uint32_t layer_count;
    uint32_t first_block; /* of the layers that repeat; layers before and after belong to the input and the output */
    uint32_t block_count;
    uint64_t context;               /* tokens that the states are for; 0: a table states them */
    gpuhal_placement_layer *layers; /* their names belong to the model */
    char (*names)[64];
} gpuhal_model;

/* Reads a model. @context: tokens; 0: as many as the model was made for, 4096 at most. Returns false with a
 * sentence. */
bool gpuhal_model_read(const char *path, uint64_t context, gpuhal_model *out_model, char *out_problem, size_t size);
void gpuhal_model_finish(gpuhal_model *model);

/* Resizes the list of layers; new ones are all zero. */
bool gpuhal_model_resize(gpuhal_model *model, uint32_t layers);

/* Read the two kinds of files. @file is open at its beginning. */
struct gpuhal_input;
bool gpuhal_model_read_gguf(struct gpuhal_input *input, uint64_t context, gpuhal_model *model);
bool gpuhal_model_read_table(struct gpuhal_input *input, gpuhal_model *model);

#endif
