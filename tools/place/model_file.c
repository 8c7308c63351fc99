/* model_file.c: reads a model; the first bytes of the file determine its type. */
#include "input.h"
#include "model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void name_after(const char *path, gpuhal_model *model)
{
    const char *slash = strrchr(path, '/');
    snprintf(model->name, sizeof model->name, "%s", slash != NULL ? slash + 1 : path);
}

enum { TABLE_BYTES_MAX = 64 << 20 };

/* Reads a table. Its first bytes are already in @begun, because a pipe cannot seek back. */
static bool read_table(gpuhal_input *input, const char *begun, size_t count, gpuhal_model *model)
{
    FILE *file = input->file;
    char *text = malloc(TABLE_BYTES_MAX);
    if (text == NULL) {
        return gpuhal_input_fail(input, "no memory");
    }
    memcpy(text, begun, count);
    count += fread(text + count, 1, TABLE_BYTES_MAX - count, file);
    bool good = !ferror(file) && feof(file);
    good = good || gpuhal_input_fail(input, ferror(file) ? "it cannot be read" : "neither GGUF nor a table of layers");
    input->file = good && count > 0 ? fmemopen(text, count, "r") : NULL;
    if (input->file != NULL) {
        good = gpuhal_model_read_table(input, model);
        fclose(input->file);
    } else {
        good = gpuhal_input_fail(input, count == 0 ? "it has no layers" : "no memory");
    }
    input->file = file;
    free(text);
    return good;
}

bool gpuhal_model_read(const char *path, uint64_t context, gpuhal_model *out_model, char *out_problem, size_t size)
{
    char magic[4] = "";
    gpuhal_input input = {.path = path, .file = fopen(path, "rbe"), .problem = out_problem, .size = size};
    *out_model = (gpuhal_model){0};
    out_problem[0] = '\0';
    name_after(path, out_model);
    bool good = input.file != NULL || gpuhal_input_fail(&input, "%s", strerror(errno));
    const size_t begun = good ? fread(magic, 1, sizeof magic, input.file) : 0;
    if (good && begun == sizeof magic && memcmp(magic, "GGUF", 4) == 0) {
        good = gpuhal_model_read_gguf(&input, context, out_model);
    } else if (good && ferror(input.file)) {
        good = gpuhal_input_fail(&input, "%s", strerror(errno));
    } else if (good) {
        good = read_table(&input, magic, begun, out_model);
    }
    if (input.file != NULL) {
        fclose(input.file);
    }
    gpuhal_input_clean(out_model->name);
    gpuhal_input_clean(out_problem);
    if (!good) {
        gpuhal_model_finish(out_model);
    }
    return good;
}
