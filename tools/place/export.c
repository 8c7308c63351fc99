/* export.c: a plan as the argument of another program. They know blocks, and have their own places for input and
 * output, so what counts is the blocks of each device. */
#include "print.h"

#include <inttypes.h>
#include <stdio.h>

/* How many blocks a device has; with those before and behind, if they are counted too. */
static uint32_t blocks_of(const gpuhal_plan *plan, const gpuhal_placement_stage *stage, bool with_output)
{
    const gpuhal_model *model = plan->model;
    const uint32_t past_blocks = model->first_block + model->block_count;
    const uint32_t end = with_output ? model->layer_count : past_blocks;
    const uint32_t past = stage->first_layer + stage->layer_count;
    const uint32_t from = stage->first_layer > model->first_block ? stage->first_layer : model->first_block;
    const uint32_t to = past < end ? past : end;
    return to > from ? to - from : 0;
}

/* llama.cpp: a proportion for each device, in the order in which it lists them, of the blocks and the output layer. */
static void print_llama_cpp(const gpuhal_plan *plan, uint32_t stages)
{
    fprintf(plan->out, "-ts ");
    for (uint32_t d = 0; d < plan->machine->count; d++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < stages; i++) {
            const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, i);
            count += stage.device == d ? blocks_of(plan, &stage, true) : 0;
        }
        fprintf(plan->out, "%s%u", d > 0 ? "," : "", count);
    }
    fputc('\n', plan->out);
}

/* vLLM: blocks of each rank of the pipeline, in its order. */
static void print_vllm(const gpuhal_plan *plan, uint32_t stages)
{
    fprintf(plan->out, "VLLM_PP_LAYER_PARTITION=");
    for (uint32_t i = 0; i < stages; i++) {
        const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, i);
        fprintf(plan->out, "%s%u", i > 0 ? "," : "", blocks_of(plan, &stage, false));
    }
    fputc('\n', plan->out);
}

/* The number that PyTorch has for it; the processor has none. */
static void print_torch_device(const gpuhal_plan *plan, uint32_t device)
{
    uint32_t number = 0;
    gpuhal_device *found = NULL;
    const char *name = plan->machine->devices[device].name;
    uint64_t native = device, type = GPUHAL_DEVICE_GPU;
    if (plan->machine->gpu != NULL && gpuhal_select(plan->machine->gpu, name, 0, &found, NULL) == GPUHAL_OK) {
        (void)gpuhal_device_u64(found, GPUHAL_FACT_TYPE, &type);
        native = gpuhal_device_u64(found, GPUHAL_FACT_NATIVE_INDEX, &native) == GPUHAL_OK ? native : device;
    }
    number = (uint32_t)native;
    if (type == GPUHAL_DEVICE_CPU) {
        fprintf(plan->out, "\"cpu\"");
    } else {
        fprintf(plan->out, "%u", number);
    }
}

/* Accelerate: the modules of Llama's family of models. */
static void print_accelerate(const gpuhal_plan *plan, uint32_t stages)
{
    const gpuhal_model *model = plan->model;
    const char *before = "";
    fputc('{', plan->out);
    for (uint32_t i = 0; i < stages; i++) {
        const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, i);
        for (uint32_t layer = stage.first_layer; layer < stage.first_layer + stage.layer_count; layer++) {
            const bool is_input = layer < model->first_block;
            const bool is_output = layer >= model->first_block + model->block_count;
            if (is_input || is_output) {
                fprintf(plan->out, "%s\"%s\": ", before, is_input ? "model.embed_tokens" : "model.norm");
            } else {
                fprintf(plan->out, "%s\"model.layers.%u\": ", before, layer - model->first_block);
            }
            print_torch_device(plan, stage.device);
            before = ", ";
            if (is_output) {
                fprintf(plan->out, ", \"lm_head\": ");
                print_torch_device(plan, stage.device);
            }
        }
    }
    fputs("}\n", plan->out);
}

bool gpuhal_plan_print_for(const gpuhal_plan *plan)
{
    const uint32_t stages = gpuhal_plan_info(plan).stage_count;
    switch (plan->options->format) {
    case GPUHAL_PLACE_LLAMA_CPP:
        print_llama_cpp(plan, stages);
        break;
    case GPUHAL_PLACE_VLLM:
        print_vllm(plan, stages);
        break;
    default:
        print_accelerate(plan, stages);
    }
    return true;
}
