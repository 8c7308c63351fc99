/* stage.c: one device with its layers: kernels, weights, caches, and one buffer for all activations. The library's
 * memory planner computes the buffer's layout.
 *
 * Weights are read from the disk to the device without a copy of the whole file in host memory. Each layer has one
 * buffer. Every tensor begins at an offset that the device's kernels can bind. All reads of a stage are enqueued
 * without a wait in between. */
#include "llama.h"

#include <gpuhal/schedule.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ALIGNMENT = 256 };

bool llama_fail_call(llama_error *error, const char *what)
{
    return llama_fail(error, "%s: %s", what, gpuhal_last_error()->sentence);
}

static uint64_t align_to(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

static uint64_t fact(const gpuhal_device *device, gpuhal_key key, uint64_t otherwise)
{
    uint64_t value;
    return gpuhal_device_u64(device, key, &value) == GPUHAL_OK ? value : otherwise;
}

static uint64_t alignment_of(const gpuhal_device *device)
{
    const uint64_t own = fact(device, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 1);
    return own > ALIGNMENT ? own : ALIGNMENT;
}

static bool create_buffer(llama_stage *stage, uint64_t bytes, const char *tag, gpuhal_buffer **out, llama_error *error)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes};
    if (gpuhal_buffer_create(stage->device, &desc, out) != GPUHAL_OK) {
        return llama_fail_call(error, tag);
    }
    gpuhal_buffer_set_tag(*out, tag);
    return true;
}

/* Kernels use 32-bit byte offsets. A device may limit the size of a binding further. */
static bool check_binding(const llama_stage *stage, uint64_t bytes, const char *what, llama_error *error)
{
    const uint64_t own = fact(stage->device, GPUHAL_FACT_BINDING_MAX_BYTES, UINT32_MAX);
    const uint64_t most = own < UINT32_MAX ? own : UINT32_MAX;
    return bytes <= most || llama_fail(error, "%s: kernels of %s can use %" PRIu64 " bytes at once, and need %" PRIu64,
                                       what, gpuhal_device_id(stage->device), most, bytes);
}

/* ---- kernels */

/* Reports progress at most once per second, because only the first run compiles. */
static void report_kernels(const llama_engine *engine, const llama_stage *stage, uint32_t count, time_t *last)
{
    const time_t now = time(NULL);
    if (engine->report != NULL && now > *last) {
        fprintf(engine->report, "%s: compiling kernels: %u of %u\n", gpuhal_device_id(stage->device), count,
                (unsigned)KERNELS);
        *last = now;
    }
}

/* Creates all kernels from one program if the device's format contains all of them. Otherwise creates a program per
 * kernel, for example for shaders. */
static bool create_kernels(const llama_engine *engine, llama_stage *stage, llama_error *error)
{
    gpuhal_program *whole = NULL;
    time_t last = time(NULL);
    if (engine->report != NULL) {
        fprintf(engine->report, "%s: compiling the kernels that are not in the cache\n",
                gpuhal_device_id(stage->device));
    }
    for (llama_kernel i = 0; i < KERNELS; i++) {
        llama_codes codes;
        llama_codes_of(i, &codes);
        const gpuhal_program_desc desc = {.size = sizeof desc, .codes = codes.codes, .code_count = codes.count};
        if (whole != NULL) {
            stage->programs[i] = gpuhal_program_retain(whole);
        } else if (gpuhal_program_create(stage->device, &desc, &stage->programs[i]) != GPUHAL_OK) {
            return llama_fail_call(error, llama_kernels[i].name);
        }
        const uint32_t choice = gpuhal_program_choice(stage->programs[i]);
        whole = choice >= codes.separate ? stage->programs[i] : NULL;
        stage->format = codes.codes[choice].format;
        if (gpuhal_kernel_create(stage->programs[i], &llama_kernels[i], &stage->kernels[i]) != GPUHAL_OK) {
            return llama_fail_call(error, llama_kernels[i].name);
        }
        report_kernels(engine, stage, i + 1, &last);
    }
    return true;
}

/* ---- activations */

static bool is_quantized(uint32_t type)
{
    return type == TYPE_Q8_0 || type == TYPE_Q4_0;
}

static bool has_quantized(const llama_model *model)
{
    bool found = is_quantized(model->tensors[OUTPUT].type);
    for (uint32_t i = 0; i < model->layer_count; i++) {
        for (uint32_t part = 0; part < LAYER_TENSORS; part++) {
            found = found || is_quantized(model->layers[i][part].type);
        }
    }
    return found;
}

/* Plans the layout of the activations. The steps are a layer's launches, in the order of forward.c. The output's
 * launches after the last layer reuse the steps STEP_NORM to STEP_QKV. x is in use during all layers. */
static bool place_activations(const llama_engine *engine, llama_stage *stage, llama_error *error)
{
    enum {
        STEP_NORM,
        STEP_QUANTIZE,
        STEP_QKV,
        STEP_ATTENTION,
        STEP_QUANTIZE_ATTENDED,
        STEP_OUTPUT,
        STEP_FFN_NORM,
        STEP_FFN_QUANTIZE,
        STEP_GATE_UP,
        STEP_SWIGLU,
        STEP_QUANTIZE_GATE,
        STEP_DOWN,
        LAST = STEP_DOWN
    };
    const llama_model *model = engine->model;
    const uint64_t tokens = engine->batch, d = model->embedding, f = model->feed_forward;
    const uint64_t q = (uint64_t)model->heads * model->head_size;
    const uint64_t int8 = has_quantized(model) ? tokens * 36 : 0; /* 32 elements take 32 bytes and a scale */
    const gpuhal_memory_plan_item items[ACTS] = {
        [ACT_X] = {tokens * d * 4, 0, LAST},
        [ACT_NORMED] = {tokens * d * 4, STEP_NORM, STEP_QKV},
        [ACT_Q] = {tokens * q * 4, STEP_QKV, STEP_ATTENTION},
        [ACT_SCORES] = {tokens * model->heads * engine->context * 4, STEP_ATTENTION, STEP_ATTENTION},
        [ACT_ATTENDED] = {tokens * q * 4, STEP_ATTENTION, STEP_OUTPUT},
        [ACT_FFN_NORMED] = {tokens * d * 4, STEP_FFN_NORM, STEP_GATE_UP},
        [ACT_GATE] = {tokens * f * 4, STEP_GATE_UP, STEP_DOWN},
        [ACT_UP] = {tokens * f * 4, STEP_GATE_UP, STEP_SWIGLU},
        /* used after all layers, at the same time as ACT_NORMED */
        [ACT_LOGITS] = {(uint64_t)model->vocabulary * 4, STEP_NORM, STEP_QKV},
        [ACT_INT8_NORMED] = {int8 * d / 32, STEP_QUANTIZE, STEP_QKV},
        [ACT_INT8_ATTENDED] = {int8 * q / 32, STEP_QUANTIZE_ATTENDED, STEP_OUTPUT},
        [ACT_INT8_FFN] = {int8 * d / 32, STEP_FFN_QUANTIZE, STEP_GATE_UP},
        [ACT_INT8_GATE] = {int8 * f / 32, STEP_QUANTIZE_GATE, STEP_DOWN}};
    const gpuhal_memory_plan_problem problem = {
        .size = sizeof problem, .items = items, .item_count = ACTS, .alignment = alignment_of(stage->device)};
    gpuhal_memory_plan_info info = {.size = sizeof info};
    if (gpuhal_memory_plan(&problem, stage->act_offsets, &info) != GPUHAL_OK) {
        return llama_fail_call(error, "the plan of the activations");
    }
    uint64_t sum = 0;
    for (int i = 0; i < ACTS; i++) {
        stage->act_bytes[i] = items[i].bytes;
        sum += items[i].bytes;
        if (!check_binding(stage, items[i].bytes, "an activation, which --batch and --context make smaller", error)) {
            return false;
        }
    }
    if (engine->report != NULL) {
        fprintf(engine->report, "%s: activations: %.1f MiB, placed in %.1f MiB\n", gpuhal_device_id(stage->device),
                (double)sum / 1048576.0, (double)info.total_bytes / 1048576.0);
    }
    return create_buffer(stage, info.total_bytes, "activations", &stage->activations, error);
}

/* ---- weights */

static int32_t show_progress(void *user, uint64_t done, uint64_t total)
{
    (void)total;
    llama_read *read = user;
    llama_engine *engine = read->engine;
    const uint64_t sum = atomic_fetch_add(&engine->loaded, done - read->done) + done - read->done;
    read->done = done;
    const uint32_t tenths = (uint32_t)(sum * 10 / engine->to_load);
    uint32_t shown = atomic_load(&engine->shown_tenths);
    while (engine->report != NULL && tenths > shown) {
        if (atomic_compare_exchange_weak(&engine->shown_tenths, &shown, tenths)) {
            fprintf(engine->report, "loading: %u %%\n", tenths * 10);
            break;
        }
    }
    return 0;
}

static bool read_tensor(llama_engine *engine, llama_stage *stage, const llama_tensor *tensor, const char *what,
                        gpuhal_buffer *to, uint64_t offset, llama_error *error)
{
    llama_read *read = &stage->reads[stage->read_count++];
    *read = (llama_read){.engine = engine};
    const gpuhal_file file = {.size = sizeof file,
                              .path = engine->model->path,
                              .offset = tensor->offset,
                              .progress = show_progress,
                              .user = read};
    return gpuhal_read_file(stage->queue, to, offset, &file, tensor->bytes) == GPUHAL_OK ||
           llama_fail_call(error, what);
}

/* Returns whether tensor `which` uses the weights of tensor 0. This is true only for the output of a model whose output
 * uses the weights of the embedding, if both are on this device. */
static bool is_shared(const llama_tensor *tensors, uint32_t which)
{
    return which > 0 && tensors[which].bytes > 0 && tensors[which].offset == tensors[0].offset;
}

/* Computes the tensors' offsets, creates the buffer, and enqueues the reads. Skips tensors of 0 bytes. */
static bool load_tensors(llama_engine *engine, llama_stage *stage, const llama_tensor *tensors, uint32_t count,
                         const char *what, uint64_t *offsets, gpuhal_buffer **out, llama_error *error)
{
    const uint64_t alignment = alignment_of(stage->device);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!check_binding(stage, tensors[i].bytes, what, error)) {
            return false;
        }
        offsets[i] = is_shared(tensors, i) ? offsets[0] : bytes;
        bytes += is_shared(tensors, i) ? 0 : align_to(tensors[i].bytes, alignment);
    }
    if (bytes == 0) {
        return true;
    }
    if (!create_buffer(stage, bytes, what, out, error)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (tensors[i].bytes > 0 && !is_shared(tensors, i) &&
            !read_tensor(engine, stage, &tensors[i], what, *out, offsets[i], error)) {
            return false;
        }
    }
    return true;
}

static void weights_of(const llama_engine *engine, const llama_stage *stage, llama_tensor out[MODEL_TENSORS])
{
    const bool is_first = stage == &engine->stages[0], is_last = stage == &engine->stages[engine->stage_count - 1];
    memset(out, 0, MODEL_TENSORS * sizeof *out);
    out[TOKEN_EMBD] = is_first ? engine->model->tensors[TOKEN_EMBD] : out[TOKEN_EMBD];
    out[OUTPUT_NORM] = is_last ? engine->model->tensors[OUTPUT_NORM] : out[OUTPUT_NORM];
    out[OUTPUT] = is_last ? engine->model->tensors[OUTPUT] : out[OUTPUT];
}

bool llama_stage_load(llama_engine *engine, llama_stage *stage, llama_error *error)
{
    const llama_model *model = engine->model;
    const uint32_t count = stage->end_layer - stage->first_layer;
    const uint64_t width = (uint64_t)model->kv_heads * model->head_size * 4,
                   angles = (uint64_t)engine->context * model->head_size * 4;
    llama_tensor whole[MODEL_TENSORS];
    weights_of(engine, stage, whole);
    stage->value_offset = align_to(width * engine->context, alignment_of(stage->device));
    stage->layers = calloc(count + 1, sizeof *stage->layers);
    stage->caches = calloc(count + 1, sizeof *stage->caches);
    stage->offsets = calloc(count + 1, sizeof *stage->offsets);
    stage->reads = calloc((size_t)count * LAYER_TENSORS + MODEL_TENSORS, sizeof *stage->reads);
    if (!stage->layers || !stage->caches || !stage->offsets || !stage->reads) {
        return llama_fail(error, "there is no memory for %u layers", count);
    }
    if (!load_tensors(engine, stage, whole, MODEL_TENSORS, "embedding and output", stage->model_offsets, &stage->model,
                      error)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        char what[32];
        snprintf(what, sizeof what, "layer %u", stage->first_layer + i);
        if (!load_tensors(engine, stage, model->layers[stage->first_layer + i], LAYER_TENSORS, what, stage->offsets[i],
                          &stage->layers[i], error) ||
            !create_buffer(stage, stage->value_offset + width * engine->context, "keys and values", &stage->caches[i],
                           error)) {
            return false;
        }
    }
    return check_binding(stage, width * engine->context, "keys, which --context makes fewer", error) &&
           place_activations(engine, stage, error) &&
           create_buffer(stage, (uint64_t)engine->context * 4, "tokens", &stage->tokens, error) &&
           create_buffer(stage, angles, "angles", &stage->angles, error) &&
           create_buffer(stage, alignment_of(stage->device) + 4, "places", &stage->places, error) &&
           ((gpuhal_write(stage->queue, stage->angles, 0, engine->angles, angles) == GPUHAL_OK &&
             gpuhal_fill(stage->queue, stage->places, alignment_of(stage->device), 4, 0, 4) == GPUHAL_OK) ||
            llama_fail_call(error, "the angles"));
}

bool llama_stage_open(llama_engine *engine, llama_stage *stage, llama_error *error)
{
    if (gpuhal_queue_create(stage->device, NULL, &stage->queue) != GPUHAL_OK ||
        gpuhal_event_create(engine->gpu, 0, &stage->done) != GPUHAL_OK ||
        gpuhal_event_create(engine->gpu, 0, &stage->taken) != GPUHAL_OK) {
        return llama_fail_call(error, gpuhal_device_id(stage->device));
    }
    return create_kernels(engine, stage, error);
}

/* Closes the queue first, because its remaining work still writes to `reads`. The work holds references to its
 * buffers. */
void llama_stage_close(llama_stage *stage)
{
    if (stage->queue != NULL && gpuhal_queue_synchronize(stage->queue, UINT64_MAX) != GPUHAL_OK) {
        gpuhal_queue_reset(stage->queue, UINT64_MAX); /* waits until a failed queue has no running work */
    }
    gpuhal_queue_destroy(stage->queue);
    gpuhal_event_destroy(stage->done);
    gpuhal_event_destroy(stage->taken);
    gpuhal_recording_release(stage->token);
    for (uint32_t i = 0; i < stage->end_layer - stage->first_layer; i++) {
        gpuhal_buffer_release(stage->layers != NULL ? stage->layers[i] : NULL);
        gpuhal_buffer_release(stage->caches != NULL ? stage->caches[i] : NULL);
    }
    gpuhal_buffer *const others[] = {stage->model, stage->activations, stage->tokens, stage->angles, stage->places};
    for (int i = 0; i < 5; i++) {
        gpuhal_buffer_release(others[i]);
    }
    for (int i = 0; i < KERNELS; i++) {
        gpuhal_kernel_release(stage->kernels[i]);
        gpuhal_program_release(stage->programs[i]);
    }
    free(stage->layers);
    free(stage->caches);
    free(stage->offsets);
    free(stage->reads);
}
