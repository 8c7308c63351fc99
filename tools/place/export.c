/* export.c: prints a plan as an argument for another program. Such programs assign blocks to devices and place input
 * and output by their own rules, so only the number of blocks on each device matters. */
#include "print.h"

#include <inttypes.h>
#include <stdio.h>

/* Counts the blocks in a stage. With @with_output, the output layer counts as one more block. */
static uint32_t blocks_of(const gpuhal_plan *plan, const gpuhal_placement_stage *stage, bool with_output)
{
    const gpuhal_model *model = plan->model;
    const uint32_t past_blocks = model->first_block + model->block_count;
    const uint32_t end = with_output && past_blocks < model->layer_count ? past_blocks + 1 : past_blocks;
    const uint32_t past = stage->first_layer + stage->layer_count;
    const uint32_t from = stage->first_layer > model->first_block ? stage->first_layer : model->first_block;
    const uint32_t to = past < end ? past : end;
    return to > from ? to - from : 0;
}

/* Counts the devices before `device` that are not lost. */
static uint32_t place_of(const gpuhal_plan *plan, uint32_t device)
{
    uint32_t place = 0;
    for (uint32_t d = 0; d < device; d++) {
        place += plan->machine->devices[d].capacity_bytes > 0;
    }
    return place;
}

/* For llama.cpp, prints each device's share of the blocks and the output layer, in llama.cpp's device order. */
static bool print_llama_cpp(const gpuhal_plan *plan, uint32_t stages)
{
    uint32_t counts[GPUHAL_PLACEMENT_DEVICES_MAX] = {0};
    uint32_t before = 0;
    for (uint32_t i = 0; i < stages; i++) {
        const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, i);
        if (i > 0 && stage.device < before) {
            fputs("gpuhal-place: llama.cpp uses devices in their own order: leave --free-order out\n", stderr);
            return false;
        }
        before = stage.device;
        counts[place_of(plan, stage.device)] = blocks_of(plan, &stage, true);
    }
    fputs("-ts ", plan->out);
    for (uint32_t place = 0; place < place_of(plan, plan->machine->count); place++) {
        fprintf(plan->out, "%s%u", place > 0 ? "," : "", counts[place]);
    }
    fputc('\n', plan->out);
    return true;
}

/* For vLLM, prints the number of blocks of each pipeline rank, in rank order. */
static bool print_vllm(const gpuhal_plan *plan, uint32_t stages)
{
    fputs("VLLM_PP_LAYER_PARTITION=", plan->out);
    for (uint32_t i = 0; i < stages; i++) {
        const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, i);
        fprintf(plan->out, "%s%u", i > 0 ? "," : "", blocks_of(plan, &stage, false));
    }
    fputc('\n', plan->out);
    fputs("gpuhal-place: ranks are on, from 0:", stderr);
    for (uint32_t i = 0; i < stages; i++) {
        fprintf(stderr, " %s", plan->machine->devices[gpuhal_plan_stage(plan, i).device].name);
    }
    fputc('\n', stderr);
    return true;
}

/* Prints PyTorch's number for the device, or "cpu". After a device is lost, a new process numbers the remaining devices
 * without gaps. */
static void print_torch_device(const gpuhal_plan *plan, uint32_t device)
{
    gpuhal_device *found = NULL;
    const char *name = plan->machine->devices[device].name;
    uint64_t number = place_of(plan, device), type = GPUHAL_DEVICE_GPU, native = 0;
    if (plan->machine->gpu != NULL && gpuhal_select(plan->machine->gpu, name, 0, &found, NULL) == GPUHAL_OK) {
        (void)gpuhal_device_u64(found, GPUHAL_FACT_TYPE, &type);
        const bool known = gpuhal_device_u64(found, GPUHAL_FACT_NATIVE_INDEX, &native) == GPUHAL_OK;
        number = known && plan->options->lost == NULL ? native : number;
    }
    if (type == GPUHAL_DEVICE_CPU) {
        fputs("\"cpu\"", plan->out);
    } else {
        fprintf(plan->out, "%u", (uint32_t)number);
    }
}

static void print_module(const gpuhal_plan *plan, const char *name, uint32_t device, const char **before)
{
    fprintf(plan->out, "%s\"%s\": ", *before, name);
    print_torch_device(plan, device);
    *before = ", ";
}

/* For Accelerate, prints the module names of models in the Llama family, each with its device. */
static bool print_accelerate(const gpuhal_plan *plan, uint32_t stages)
{
    const gpuhal_model *model = plan->model;
    const uint32_t past_blocks = model->first_block + model->block_count;
    const char *before = "";
    if (past_blocks == model->layer_count) {
        fputs("gpuhal-place: a table does not say which layer is which module: give a GGUF file\n", stderr);
        return false;
    }
    fputc('{', plan->out);
    for (uint32_t i = 0; i < stages; i++) {
        const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, i);
        for (uint32_t layer = stage.first_layer; layer < stage.first_layer + stage.layer_count; layer++) {
            char name[64];
            if (layer == 0) {
                print_module(plan, "model.embed_tokens", stage.device, &before);
            }
            if (layer >= model->first_block && layer < past_blocks) {
                snprintf(name, sizeof name, "model.layers.%u", layer - model->first_block);
                print_module(plan, name, stage.device, &before);
            }
            if (layer == past_blocks) {
                print_module(plan, "model.norm", stage.device, &before);
            }
            if (layer == model->layer_count - 1) {
                print_module(plan, "lm_head", stage.device, &before);
            }
        }
    }
    fputs("}\n", plan->out);
    return true;
}

bool gpuhal_plan_print_for(const gpuhal_plan *plan)
{
    const uint32_t stages = gpuhal_plan_info(plan).stage_count;
    switch (plan->options->format) {
    case GPUHAL_PLACE_LLAMA_CPP:
        return print_llama_cpp(plan, stages);
    case GPUHAL_PLACE_VLLM:
        return print_vllm(plan, stages);
    default:
        return print_accelerate(plan, stages);
    }
}
