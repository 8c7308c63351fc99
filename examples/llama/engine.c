/* engine.c: opens the library, selects the devices, and assigns consecutive layers to each device. */
#include "llama.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool choose_devices(llama_engine *engine, const char *selectors, llama_error *error)
{
    for (const char *at = selectors; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        char selector[128];
        const char *reason = "";
        const size_t bytes = strcspn(at, ",");
        if (engine->stage_count == STAGES_MAX || bytes >= sizeof selector) {
            return llama_fail(error, "--devices takes up to %d selectors of up to %zu bytes", STAGES_MAX,
                              sizeof selector - 1);
        }
        snprintf(selector, sizeof selector, "%.*s", (int)bytes, at);
        llama_stage *stage = &engine->stages[engine->stage_count];
        if (gpuhal_select(engine->gpu, selector, 0, &stage->device, &reason) != GPUHAL_OK) {
            return llama_fail_call(error, "--devices");
        }
        snprintf(stage->why, sizeof stage->why, "%s", reason);
        engine->stage_count++;
    }
    return true;
}

/* Splits the layers by the devices' shares. By default the shares are proportional to the devices' memory. */
static bool split_layers(llama_engine *engine, const llama_split *split, llama_error *error)
{
    double shares[STAGES_MAX], sum = 0.0, at = 0.0;
    bool is_given = false;
    for (uint32_t i = 0; i < STAGES_MAX; i++) {
        is_given = is_given || split->shares[i] > 0.0;
    }
    for (uint32_t i = 0; i < engine->stage_count; i++) {
        uint64_t memory = 0;
        const gpuhal_status status =
            gpuhal_device_u64(engine->stages[i].device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &memory);
        shares[i] = is_given ? split->shares[i] : status == GPUHAL_OK && memory > 0 ? (double)memory : 1e9;
        sum += shares[i];
    }
    if (!(sum > 0.0)) {
        return llama_fail(error, "--split has no share for the given devices");
    }
    for (uint32_t i = 0; i < engine->stage_count; i++) {
        llama_stage *stage = &engine->stages[i];
        at += shares[i];
        stage->first_layer = i > 0 ? engine->stages[i - 1].end_layer : 0;
        stage->end_layer = i + 1 < engine->stage_count ? (uint32_t)lround(at / sum * engine->model->layer_count)
                                                       : engine->model->layer_count;
        snprintf(stage->why + strlen(stage->why), sizeof stage->why - strlen(stage->why), "; %.0f %% by %s",
                 100.0 * shares[i] / sum, is_given ? "--split" : "memory");
    }
    return true;
}

/* Reads the divisors of the frequencies, which only some models have. Without them all divisors are 1. */
static bool read_factors(const llama_model *model, float *factors, llama_error *error)
{
    const llama_tensor *tensor = &model->tensors[ROPE_FREQS];
    for (uint32_t i = 0; i < model->head_size / 2; i++) {
        factors[i] = 1.0f;
    }
    FILE *file = tensor->bytes > 0 ? fopen(model->path, "rb") : NULL;
    const bool is_read = tensor->bytes == 0 || (file != NULL && fseeko(file, (off_t)tensor->offset, SEEK_SET) == 0 &&
                                                fread(factors, 1, (size_t)tensor->bytes, file) == tensor->bytes);
    if (file != NULL) {
        fclose(file);
    }
    return is_read || llama_fail(error, "rope_freqs.weight of %s cannot be read", model->path);
}

static bool make_angles(llama_engine *engine, llama_error *error)
{
    const llama_model *model = engine->model;
    const uint32_t size = model->head_size;
    float factors[128]; /* a head has up to 256 elements */
    if (!read_factors(model, factors, error)) {
        return false;
    }
    for (uint32_t position = 0; position < engine->context; position++) {
        for (uint32_t i = 0; i < size; i += 2) {
            const double angle = position * pow((double)model->rope_base, -(double)i / size) / (double)factors[i / 2];
            engine->angles[(size_t)position * size + i] = (float)cos(angle);
            engine->angles[(size_t)position * size + i + 1] = (float)sin(angle);
        }
    }
    return true;
}

/* Returns whether all kernels were in the cache, so that no kernel had to be compiled. */
static bool is_from_cache(const llama_stage *stage)
{
    bool cached = true;
    for (llama_kernel i = 0; i < KERNELS; i++) {
        cached = cached && gpuhal_program_is_cached(stage->programs[i]) != 0;
    }
    return cached;
}

static void report(const llama_engine *engine, const llama_stage *stage)
{
    const char *name = "";
    gpuhal_device_text(stage->device, GPUHAL_FACT_NAME, &name);
    const bool is_host = strcmp(stage->format, "host-function") == 0;
    fprintf(engine->report, "%s (%s): layers %u to %u; %s%s%s%s; %s\n", gpuhal_device_id(stage->device), name,
            stage->first_layer, stage->end_layer, stage->format, is_host ? ", " : "",
            is_host ? llama_instructions() : "", is_from_cache(stage) ? ", from the cache" : "", stage->why);
}

/* Sums the bytes to load. If embedding and output share their weights and are on the same device, the weights are
 * counted once. */
static uint64_t bytes_to_load(const llama_engine *engine)
{
    const llama_tensor *whole = engine->model->tensors;
    const bool is_shared = engine->stage_count == 1 && whole[OUTPUT].offset == whole[TOKEN_EMBD].offset;
    uint64_t sum = whole[TOKEN_EMBD].bytes + whole[OUTPUT_NORM].bytes + (is_shared ? 0 : whole[OUTPUT].bytes);
    for (uint32_t i = 0; i < engine->model->layer_count; i++) {
        for (uint32_t part = 0; part < LAYER_TENSORS; part++) {
            sum += engine->model->layers[i][part].bytes;
        }
    }
    return sum;
}

bool llama_engine_open(llama_engine *engine, const llama_split *split, llama_error *error)
{
    const llama_model *model = engine->model;
    engine->attention_scale = 1.0f / sqrtf((float)model->head_size);
    engine->tokens = calloc(engine->context, sizeof *engine->tokens);
    engine->angles = calloc((size_t)engine->context * model->head_size, sizeof *engine->angles);
    engine->logits = calloc(model->vocabulary, sizeof *engine->logits);
    if (!engine->tokens || !engine->angles || !engine->logits) {
        return llama_fail(error, "there is no memory for a context of %u tokens", engine->context);
    }
    if (!make_angles(engine, error) || !choose_devices(engine, split->devices, error) ||
        !split_layers(engine, split, error)) {
        return false;
    }
    for (uint32_t i = 0; i < engine->stage_count; i++) {
        if (!llama_stage_open(engine, &engine->stages[i], error)) {
            return false;
        }
        if (engine->report != NULL) {
            report(engine, &engine->stages[i]);
        }
    }
    engine->to_load = bytes_to_load(engine);
    for (uint32_t i = 0; i < engine->stage_count; i++) { /* all devices load at the same time */
        if (!llama_stage_load(engine, &engine->stages[i], error)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < engine->stage_count; i++) {
        if (gpuhal_queue_synchronize(engine->stages[i].queue, UINT64_MAX) != GPUHAL_OK) {
            return llama_fail_call(error, gpuhal_device_id(engine->stages[i].device));
        }
    }
    return true;
}

void llama_engine_close(llama_engine *engine)
{
    for (uint32_t i = 0; i < engine->stage_count; i++) {
        llama_stage_close(&engine->stages[i]);
    }
    free(engine->tokens);
    free(engine->angles);
    free(engine->logits);
}
