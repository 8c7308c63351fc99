/* forward.c: launches the layers. A prompt is processed in batches. As soon as a device has passed a batch on, it
 * begins the next batch, while later devices still work on the previous batch. The launches for a single token and its
 * logits are recorded once. The kernels read the token's position from a buffer, so each run of the recording is the
 * same. */
#include "llama.h"

/* The launches of one stage. */
typedef struct pass {
    llama_engine *engine;
    llama_stage *stage;
    uint32_t tokens, position;   /* number of tokens, and the first token's position in the context */
    gpuhal_recording *recording; /* records the launches; NULL if they are enqueued at once */
    llama_error *error;
} pass;

typedef struct call {
    gpuhal_argument arguments[12];
    union {
        uint32_t number;
        float real;
    } values[12];
    uint32_t count;
} call;

static void add_buffer(call *own, gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    own->arguments[own->count++] = (gpuhal_argument){.buffer = buffer, .offset = offset, .bytes = (bytes + 3) / 4 * 4};
}

static void add_activation(call *own, const llama_stage *stage, int which)
{
    add_buffer(own, stage->activations, stage->act_offsets[which], stage->act_bytes[which]);
}

static void add_number(call *own, uint32_t number)
{
    own->values[own->count].number = number;
    own->arguments[own->count] = (gpuhal_argument){.value = &own->values[own->count], .bytes = 4};
    own->count++;
}

/* The kernel reads the position, or 0, from a buffer. */
static void add_place(call *own, const llama_stage *stage, bool is_position)
{
    add_buffer(own, stage->places, is_position ? 0 : gpuhal_buffer_bytes(stage->places) - 4, 4);
}

static void add_real(call *own, float real)
{
    add_number(own, 0);
    own->values[own->count - 1].real = real;
}

static bool run(const pass *own, llama_kernel kernel, const call *arguments, uint32_t x, uint32_t y)
{
    const gpuhal_launch launch = {.size = sizeof launch,
                                  .argument_count = arguments->count,
                                  .arguments = arguments->arguments,
                                  .groups = {x, y, 1}};
    const gpuhal_status status =
        own->recording ? gpuhal_recording_launch(own->recording, own->stage->kernels[kernel], &launch, NULL)
                       : gpuhal_kernel_launch(own->stage->queue, own->stage->kernels[kernel], &launch);
    return status == GPUHAL_OK || llama_fail_call(own->error, llama_kernels[kernel].name);
}

/* ---- steps */

typedef struct weight {
    const llama_tensor *tensor;
    gpuhal_buffer *buffer;
    uint64_t offset;
} weight;

static weight layer_weight(const pass *own, uint32_t layer, int part)
{
    return (weight){&own->engine->model->layers[layer][part], own->stage->layers[layer - own->stage->first_layer],
                    own->stage->offsets[layer - own->stage->first_layer][part]};
}

static weight model_weight(const pass *own, int which)
{
    return (weight){&own->engine->model->tensors[which], own->stage->model, own->stage->model_offsets[which]};
}

static void add_weight(call *own, const weight *from)
{
    add_buffer(own, from->buffer, from->offset, from->tensor->bytes);
}

static bool write_tokens(const pass *own)
{
    return gpuhal_write(own->stage->queue, own->stage->tokens, (uint64_t)own->position * 4,
                        own->engine->tokens + own->position, (uint64_t)own->tokens * 4) == GPUHAL_OK ||
           llama_fail_call(own->error, "the tokens");
}

static bool embed(const pass *own)
{
    const weight table = model_weight(own, TOKEN_EMBD);
    call arguments = {0};
    add_activation(&arguments, own->stage, ACT_X);
    add_weight(&arguments, &table);
    add_buffer(&arguments, own->stage->tokens, 0, 0);
    add_number(&arguments, own->engine->model->embedding);
    add_number(&arguments, table.tensor->type);
    add_place(&arguments, own->stage, true);
    return run(own, KERNEL_GET_ROWS, &arguments, own->tokens, 1);
}

/* Normalizes the rows, starting at `first`. */
static bool norm(const pass *own, int to, weight scales, uint32_t first, uint32_t count)
{
    call arguments = {0};
    add_activation(&arguments, own->stage, to);
    add_activation(&arguments, own->stage, ACT_X);
    add_weight(&arguments, &scales);
    add_number(&arguments, own->engine->model->embedding);
    add_real(&arguments, own->engine->model->epsilon);
    add_number(&arguments, first);
    return run(own, KERNEL_NORM, &arguments, count, 1);
}

static bool is_quantized(weight matrix)
{
    return matrix.tensor->type == TYPE_Q8_0 || matrix.tensor->type == TYPE_Q4_0;
}

/* Quantizes the rows. The result is used for all matrices that are multiplied with the rows. */
static bool quantize(const pass *own, int to, int from, uint32_t columns, uint32_t count, bool is_needed)
{
    call arguments = {0};
    add_activation(&arguments, own->stage, to);
    add_activation(&arguments, own->stage, from);
    add_number(&arguments, columns);
    return !is_needed || run(own, KERNEL_QUANTIZE, &arguments, (columns / 32 + 31) / 32, count);
}

/* A product with the quantized or the float input, depending on the matrix's type. The output begins at row 0 or at the
 * position. */
typedef struct product {
    int reals, bytes;
    gpuhal_buffer *to;
    uint64_t offset, size;
    uint32_t count;
    bool adds, at_position;
} product;

static uint32_t type_index(uint32_t type)
{
    return type == TYPE_F32 ? 0 : type == TYPE_F16 ? 1 : type == TYPE_Q8_0 ? 2 : 3;
}

static bool multiply(const pass *own, weight matrix, const product *what)
{
    const llama_tensor *tensor = matrix.tensor;
    const llama_kernel first = what->count == 1 ? KERNEL_MATVEC_F32 : KERNEL_MATMUL_F32;
    const uint32_t tile = what->count == 1 ? 1 : TILE_TOKENS;
    call arguments = {0};
    add_buffer(&arguments, what->to, what->offset, what->size);
    add_weight(&arguments, &matrix);
    add_activation(&arguments, own->stage, is_quantized(matrix) ? what->bytes : what->reals);
    add_number(&arguments, tensor->columns);
    add_number(&arguments, tensor->rows);
    add_number(&arguments, what->count);
    add_place(&arguments, own->stage, what->at_position);
    add_number(&arguments, what->adds);
    return run(own, first + type_index(tensor->type), &arguments, (what->count + tile - 1) / tile,
               (tensor->rows + GROUP_ROWS - 1) / GROUP_ROWS);
}

static bool multiply_to(const pass *own, weight matrix, int to, int reals, int bytes, bool adds)
{
    const llama_stage *stage = own->stage;
    const product what = {.reals = reals,
                          .bytes = bytes,
                          .to = stage->activations,
                          .offset = stage->act_offsets[to],
                          .size = stage->act_bytes[to],
                          .count = own->tokens,
                          .adds = adds};
    return multiply(own, matrix, &what);
}

/* Multiplies, and writes the result to the layer's keys or values after those of earlier tokens. */
static bool multiply_to_cache(const pass *own, weight matrix, gpuhal_buffer *cache, uint64_t offset)
{
    const product what = {.reals = ACT_NORMED,
                          .bytes = ACT_INT8_NORMED,
                          .to = cache,
                          .offset = offset,
                          .size = (uint64_t)own->engine->context * matrix.tensor->rows * 4,
                          .at_position = true,
                          .count = own->tokens};
    return multiply(own, matrix, &what);
}

/* Rotates the rows from row 0 or from the position on. */
static bool rotate(const pass *own, gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t heads,
                   bool at_position)
{
    call arguments = {0};
    add_buffer(&arguments, buffer, offset, bytes);
    add_buffer(&arguments, own->stage->angles, 0, 0);
    add_number(&arguments, heads);
    add_number(&arguments, own->engine->model->head_size);
    add_place(&arguments, own->stage, true);
    add_place(&arguments, own->stage, at_position);
    return run(own, KERNEL_ROPE, &arguments, own->tokens, 1);
}

static bool attend(const pass *own, gpuhal_buffer *cache, uint64_t bytes)
{
    const llama_model *model = own->engine->model;
    call arguments = {0};
    add_activation(&arguments, own->stage, ACT_ATTENDED);
    add_activation(&arguments, own->stage, ACT_Q);
    add_buffer(&arguments, cache, 0, bytes);
    add_buffer(&arguments, cache, own->stage->value_offset, bytes);
    add_activation(&arguments, own->stage, ACT_SCORES);
    add_number(&arguments, model->heads);
    add_number(&arguments, model->kv_heads);
    add_number(&arguments, model->head_size);
    add_place(&arguments, own->stage, true);
    add_number(&arguments, own->engine->context);
    add_real(&arguments, own->engine->attention_scale);
    return run(own, KERNEL_ATTENTION, &arguments, model->heads, own->tokens);
}

static bool activate(const pass *own)
{
    const uint32_t columns = own->engine->model->feed_forward;
    call arguments = {0};
    add_activation(&arguments, own->stage, ACT_GATE);
    add_activation(&arguments, own->stage, ACT_UP);
    add_number(&arguments, columns);
    return run(own, KERNEL_SWIGLU, &arguments, (columns + 127) / 128, own->tokens);
}

/* ---- a layer, a stage, all stages */

static bool run_attention(const pass *own, uint32_t layer)
{
    const llama_model *model = own->engine->model;
    llama_stage *stage = own->stage;
    gpuhal_buffer *cache = stage->caches[layer - stage->first_layer];
    const uint64_t bytes = (uint64_t)own->engine->context * model->kv_heads * model->head_size * 4;
    const weight q = layer_weight(own, layer, ATTN_Q), k = layer_weight(own, layer, ATTN_K),
                 v = layer_weight(own, layer, ATTN_V);
    const weight output = layer_weight(own, layer, ATTN_OUTPUT);
    return norm(own, ACT_NORMED, layer_weight(own, layer, ATTN_NORM), 0, own->tokens) &&
           quantize(own, ACT_INT8_NORMED, ACT_NORMED, model->embedding, own->tokens,
                    is_quantized(q) || is_quantized(k) || is_quantized(v)) &&
           multiply_to(own, q, ACT_Q, ACT_NORMED, ACT_INT8_NORMED, false) && multiply_to_cache(own, k, cache, 0) &&
           multiply_to_cache(own, v, cache, stage->value_offset) &&
           rotate(own, stage->activations, stage->act_offsets[ACT_Q], stage->act_bytes[ACT_Q], model->heads, false) &&
           rotate(own, cache, 0, bytes, model->kv_heads, true) && attend(own, cache, bytes) &&
           quantize(own, ACT_INT8_ATTENDED, ACT_ATTENDED, output.tensor->columns, own->tokens, is_quantized(output)) &&
           multiply_to(own, output, ACT_X, ACT_ATTENDED, ACT_INT8_ATTENDED, true);
}

static bool run_feed_forward(const pass *own, uint32_t layer)
{
    const llama_model *model = own->engine->model;
    const weight gate = layer_weight(own, layer, FFN_GATE), up = layer_weight(own, layer, FFN_UP);
    const weight down = layer_weight(own, layer, FFN_DOWN);
    return norm(own, ACT_FFN_NORMED, layer_weight(own, layer, FFN_NORM), 0, own->tokens) &&
           quantize(own, ACT_INT8_FFN, ACT_FFN_NORMED, model->embedding, own->tokens,
                    is_quantized(gate) || is_quantized(up)) &&
           multiply_to(own, gate, ACT_GATE, ACT_FFN_NORMED, ACT_INT8_FFN, false) &&
           multiply_to(own, up, ACT_UP, ACT_FFN_NORMED, ACT_INT8_FFN, false) && activate(own) &&
           quantize(own, ACT_INT8_GATE, ACT_GATE, model->feed_forward, own->tokens, is_quantized(down)) &&
           multiply_to(own, down, ACT_X, ACT_GATE, ACT_INT8_GATE, true);
}

/* Launches the kernels for the logits of the last token of the batch. */
static bool run_output(const pass *own)
{
    const llama_stage *stage = own->stage;
    const weight output = model_weight(own, OUTPUT);
    const product what = {.reals = ACT_NORMED,
                          .bytes = ACT_INT8_NORMED,
                          .to = stage->activations,
                          .offset = stage->act_offsets[ACT_LOGITS],
                          .size = stage->act_bytes[ACT_LOGITS],
                          .count = 1};
    return norm(own, ACT_NORMED, model_weight(own, OUTPUT_NORM), own->tokens - 1, 1) &&
           quantize(own, ACT_INT8_NORMED, ACT_NORMED, output.tensor->columns, 1, is_quantized(output)) &&
           multiply(own, output, &what);
}

static bool read_logits(const pass *own)
{
    const llama_stage *stage = own->stage;
    return (gpuhal_read(stage->queue, own->engine->logits, stage->activations, stage->act_offsets[ACT_LOGITS],
                        stage->act_bytes[ACT_LOGITS]) == GPUHAL_OK &&
            gpuhal_queue_synchronize(stage->queue, UINT64_MAX) == GPUHAL_OK) ||
           llama_fail_call(own->error, "the logits");
}

/* Copies x from the previous device. This queue waits for the previous device's queue. That queue may continue after
 * the copy. */
static bool take_over(const pass *own, llama_stage *before)
{
    llama_stage *stage = own->stage;
    const uint64_t bytes = (uint64_t)own->tokens * own->engine->model->embedding * 4;
    return (gpuhal_queue_wait(stage->queue, before->done) == GPUHAL_OK &&
            gpuhal_copy(stage->queue, stage->activations, stage->act_offsets[ACT_X], before->activations,
                        before->act_offsets[ACT_X], bytes) == GPUHAL_OK &&
            gpuhal_event_record(before->taken, stage->queue) == GPUHAL_OK) ||
           llama_fail_call(own->error, gpuhal_device_id(stage->device));
}

static bool run_layers(const pass *own, uint32_t number)
{
    bool good = number > 0 || embed(own);
    for (uint32_t layer = own->stage->first_layer; layer < own->stage->end_layer && good; layer++) {
        good = run_attention(own, layer) && run_feed_forward(own, layer);
    }
    return good;
}

static bool is_last(const pass *own, uint32_t number)
{
    return number + 1 == own->engine->stage_count;
}

static bool finish(const pass *own, gpuhal_recording *recording)
{
    return gpuhal_recording_finish(recording) == GPUHAL_OK || llama_fail_call(own->error, "the recording");
}

static bool run_recording(const pass *own, uint32_t number)
{
    llama_stage *stage = own->stage;
    const gpuhal_recording_desc desc = {.size = sizeof desc, .name = "token"};
    if (!stage->token) {
        pass recorded = *own;
        if (gpuhal_recording_create(stage->device, &desc, &stage->token) != GPUHAL_OK) {
            return llama_fail_call(own->error, "the recording");
        }
        recorded.recording = stage->token;
        if (!run_layers(&recorded, number) || (is_last(own, number) && !run_output(&recorded)) ||
            !finish(own, stage->token)) {
            gpuhal_recording_release(stage->token);
            stage->token = NULL;
            return false;
        }
        if (own->engine->report) {
            fprintf(own->engine->report, "%s: the launches for a token are recorded (form: %s)\n",
                    gpuhal_device_id(stage->device), gpuhal_recording_form(stage->token));
        }
    }
    return gpuhal_recording_run(stage->queue, stage->token, NULL, 0) == GPUHAL_OK ||
           llama_fail_call(own->error, "the recording");
}

/* Returns whether the next stage has copied the previous batch's x, or will have before this queue continues. */
static bool wait_for_next(const pass *own)
{
    return gpuhal_queue_wait(own->stage->queue, own->stage->taken) == GPUHAL_OK ||
           llama_fail_call(own->error, gpuhal_device_id(own->stage->device));
}

static bool notify_next(const pass *own)
{
    return gpuhal_event_record(own->stage->done, own->stage->queue) == GPUHAL_OK ||
           llama_fail_call(own->error, gpuhal_device_id(own->stage->device));
}

static bool run_stage(const pass *own, uint32_t number)
{
    llama_stage *stage = own->stage;
    if (!is_last(own, number) && !wait_for_next(own)) {
        return false;
    }
    if (gpuhal_fill(stage->queue, stage->places, 0, 4, own->position, 4) != GPUHAL_OK) {
        return llama_fail_call(own->error, "the position");
    }
    return (number == 0 ? write_tokens(own) : take_over(own, stage - 1)) &&
           (own->tokens == 1 ? run_recording(own, number) : run_layers(own, number)) &&
           (is_last(own, number) || notify_next(own));
}

bool llama_forward(llama_engine *engine, uint32_t count, llama_error *error)
{
    if (count == 0 || count > engine->context - engine->used) {
        return llama_fail(error, "%u tokens do not fit: %u of %u places of the context are taken", count, engine->used,
                          engine->context);
    }
    pass own = {.engine = engine, .error = error};
    for (const uint32_t end = engine->used + count; engine->used < end; engine->used += own.tokens) {
        own.position = engine->used;
        own.tokens = end - engine->used < engine->batch ? end - engine->used : engine->batch;
        for (uint32_t i = 0; i < engine->stage_count; i++) {
            own.stage = &engine->stages[i];
            if (!run_stage(&own, i)) {
                return false;
            }
        }
    }
    own.stage = &engine->stages[engine->stage_count - 1];
    return (own.tokens == 1 || run_output(&own)) && read_logits(&own);
}
