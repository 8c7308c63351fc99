/* model.h: the layers of a model, read from the header of a GGUF file or from a table. */
#ifndef GPUHAL_TOOL_PLACE_MODEL_H
#define GPUHAL_TOOL_PLACE_MODEL_H

#include <gpuhal/schedule/placement.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gpuhal_model {
    char name[128];        /* taken from the file's contents, or else from the file's name */
    char architecture[64]; /* "" for a table */
    uint32_t layer_count;
    uint32_t first_block; /* index of the first block; the layers before the blocks are for input, the layers after them
                           * for output */
    uint32_t block_count;
    uint64_t context;               /* context length in tokens that the state sizes are based on; 0 if a table states
                                     * the sizes */
    gpuhal_placement_layer *layers; /* the model owns their names */
    char (*names)[64];
} gpuhal_model;

/* Reads a model. @context is the context length in tokens; 0 means the model's own context length, limited to 4096.
 * Returns false with a message in @out_problem. */
bool gpuhal_model_read(const char *path, uint64_t context, gpuhal_model *out_model, char *out_problem, size_t size);
void gpuhal_model_finish(gpuhal_model *model);

/* Resizes the list of layers; new layers are zeroed. */
bool gpuhal_model_resize(gpuhal_model *model, uint32_t layers);

/* Readers for the two file types. The GGUF reader starts after the magic number, the table reader at the beginning. */
struct gpuhal_input;
bool gpuhal_model_read_gguf(struct gpuhal_input *input, uint64_t context, gpuhal_model *model);
bool gpuhal_model_read_table(struct gpuhal_input *input, gpuhal_model *model);

#endif
