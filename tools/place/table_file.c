/* table_file.c: reads a table with one layer per line, as a name and sizes:
 *
 * name, weights[, state[, workspace[, output]]]
 *
 * Sizes are in bytes or have a unit, such as 512MiB. Text after a # is a comment. */
#include "../common/text.h"
#include "input.h"
#include "model.h"

#include <inttypes.h>
#include <string.h>

static bool take_line(gpuhal_input *input, unsigned number, char *line, gpuhal_model *model)
{
    char *words[5] = {NULL};
    size_t count = 0;
    for (char *word = line; word != NULL && count < 5;) {
        char *comma = strchr(word, ',');
        if (comma != NULL) {
            *comma++ = '\0';
        }
        words[count++] = gpuhal_tool_trimmed(word);
        word = comma;
        if (word != NULL && count == 5) {
            return gpuhal_input_fail(input, "line %u: more than five columns", number);
        }
    }
    if (model->layer_count == GPUHAL_PLACEMENT_LAYERS_MAX || !gpuhal_model_resize(model, model->layer_count + 1)) {
        return gpuhal_input_fail(input, "line %u: too many layers", number);
    }
    gpuhal_placement_layer *layer = &model->layers[model->layer_count - 1];
    uint64_t *const members[] = {&layer->weight_bytes, &layer->state_bytes, &layer->workspace_bytes,
                                 &layer->output_bytes};
    snprintf(model->names[model->layer_count - 1], sizeof *model->names, "%s", words[0]);
    gpuhal_input_clean(model->names[model->layer_count - 1]);
    if (count < 2 || *words[0] == '\0') {
        return gpuhal_input_fail(input, "line %u: a name and bytes, with a comma between them", number);
    }
    for (size_t i = 1; i < count; i++) {
        if (!gpuhal_tool_read_size(words[i], UINT64_C(1) << 62, members[i - 1])) {
            return gpuhal_input_fail(input, "line %u: \"%s\" is not a number of bytes", number, words[i]);
        }
    }
    return true;
}

bool gpuhal_model_read_table(gpuhal_input *input, gpuhal_model *model)
{
    char line[1024];
    for (unsigned number = 1; fgets(line, sizeof line, input->file) != NULL; number++) {
        if (strlen(line) == sizeof line - 1) {
            return gpuhal_input_fail(input, "line %u is too long: neither GGUF nor a table of layers", number);
        }
        line[strcspn(line, "#")] = '\0';
        char *text = gpuhal_tool_trimmed(line);
        if (*text != '\0' && !take_line(input, number, text, model)) {
            return false;
        }
    }
    model->block_count = model->layer_count;
    if (ferror(input->file) || model->layer_count == 0) {
        return gpuhal_input_fail(input, ferror(input->file) ? "it cannot be read" : "it has no layers");
    }
    return true;
}
