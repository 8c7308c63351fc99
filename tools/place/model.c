/* model.c: see model.h. */
#include "model.h"

#include <stdlib.h>

bool gpuhal_model_resize(gpuhal_model *model, uint32_t layers)
{
    gpuhal_placement_layer *list = realloc(model->layers, layers * sizeof *list);
    model->layers = list != NULL ? list : model->layers;
    char(*names)[64] = list != NULL ? realloc(model->names, layers * sizeof *names) : NULL;
    model->names = names != NULL ? names : model->names;
    if (names == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < layers; i++) {
        if (i >= model->layer_count) {
            list[i] = (gpuhal_placement_layer){0};
            names[i][0] = '\0';
        }
        list[i].name = names[i]; /* realloc() may have moved the names */
    }
    model->layer_count = layers;
    return true;
}

void gpuhal_model_finish(gpuhal_model *model)
{
    free(model->layers);
    free(model->names);
    *model = (gpuhal_model){0};
}
