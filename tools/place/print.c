/* print.c: prints a plan for people, with a row for each device and a bar of its memory. */
#include "print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BAR = 20 };

gpuhal_placement_stage gpuhal_plan_stage(const gpuhal_plan *plan, uint32_t index)
{
    gpuhal_placement_stage stage = {.size = sizeof stage};
    (void)gpuhal_placement_stage_at(plan->placement, index, &stage);
    return stage;
}

gpuhal_placement_info gpuhal_plan_info(const gpuhal_plan *plan)
{
    gpuhal_placement_info info = {.size = sizeof info};
    (void)gpuhal_placement_get_info(plan->placement, &info);
    return info;
}

void gpuhal_plan_sums(const gpuhal_model *model, uint64_t *out_weights, uint64_t *out_states)
{
    bool tied = false;
    *out_weights = *out_states = 0;
    for (uint32_t i = 0; i < model->layer_count; i++) {
        const gpuhal_placement_layer *layer = &model->layers[i];
        *out_weights += layer->tie != 0 && tied ? 0 : layer->weight_bytes; /* a file has at most one tie */
        *out_states += layer->state_bytes;
        tied = tied || layer->tie != 0;
    }
}

static const char *bytes_text(uint64_t bytes, char text[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1023.95 && unit < sizeof units / sizeof *units - 1; unit++) {
        value /= 1024;
    }
    snprintf(text, 24, "%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
    return text;
}

static const char *time_text(double seconds, char text[24])
{
    static const struct {
        double least, scale;
        const char *unit;
    } units[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}};
    size_t unit = 0;
    while (seconds < units[unit].least) {
        unit++;
    }
    snprintf(text, 24, seconds > 0 ? "%.3g %s" : "-", seconds * units[unit].scale, units[unit].unit);
    return text;
}

static void bar_text(double share, char text[BAR + 3])
{
    const int full = (int)(share * BAR + 0.5);
    text[0] = '[';
    for (int i = 0; i < BAR; i++) {
        text[i + 1] = i < full ? '#' : '.';
    }
    memcpy(text + BAR + 1, "]", sizeof "]");
}

static void print_model(const gpuhal_plan *plan)
{
    char weights[24], states[24];
    uint64_t weight_bytes, state_bytes;
    const gpuhal_model *model = plan->model;
    gpuhal_plan_sums(model, &weight_bytes, &state_bytes);
    fprintf(plan->out, "%s: %s%s%u %s, %s of weights", model->name, model->architecture,
            *model->architecture ? ", " : "", model->block_count, model->context > 0 ? "blocks" : "layers",
            bytes_text(weight_bytes, weights));
    if (state_bytes > 0) {
        fprintf(plan->out, ", %s of state", bytes_text(state_bytes, states));
    }
    if (model->context > 0) {
        fprintf(plan->out, " for %" PRIu64 " tokens", model->context);
    }
    fputc('\n', plan->out);
}

/* Formats "input ... block 11" from the names of the layers. */
static void layers_text(const gpuhal_model *model, const gpuhal_placement_stage *stage, char *text, size_t size)
{
    const char *first = model->names[stage->first_layer];
    const char *last = model->names[stage->first_layer + stage->layer_count - 1];
    if (stage->layer_count == 1) {
        snprintf(text, size, "%s", first);
    } else {
        snprintf(text, size, "%s ... %s", first, last);
    }
}

static void print_stage(const gpuhal_plan *plan, uint32_t index, int name_width, int layers_width)
{
    char layers[160], used[24], capacity[24], seconds[24], bar[BAR + 3];
    const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, index);
    const gpuhal_placement_device *device = &plan->machine->devices[stage.device];
    layers_text(plan->model, &stage, layers, sizeof layers);
    bar_text((double)stage.used_bytes / (double)device->capacity_bytes, bar);
    fprintf(plan->out, "%-*s  %-*s %6u  %s  %10s of %10s  %s\n", name_width, device->name, layers_width, layers,
            stage.layer_count, bar, bytes_text(stage.used_bytes, used), bytes_text(device->capacity_bytes, capacity),
            time_text(stage.seconds + stage.link_seconds, seconds));
}

static void print_end(const gpuhal_plan *plan)
{
    char step[24], slowest[24], moved[24];
    const gpuhal_placement_info info = gpuhal_plan_info(plan);
    if (info.step_seconds > 0) {
        fprintf(plan->out, "a step takes %s at least, its slowest stage %s\n", time_text(info.step_seconds, step),
                time_text(info.slowest_seconds, slowest));
    } else {
        fputs("the speed of the devices' memory is not known, so no times are\n", plan->out);
    }
    if (plan->problem->previous != NULL) {
        fprintf(plan->out, "%s move\n", bytes_text(info.moved_bytes, moved));
    }
    if (info.gap > 0) {
        fprintf(plan->out, "a better plan would save %.0f %% at most\n", 100 * info.gap);
    }
}

bool gpuhal_plan_print_table(const gpuhal_plan *plan)
{
    print_model(plan);
    if (plan->placement == NULL) { /* the reason was printed to standard error */
        char missing[24];
        if (plan->shortfall->missing_bytes > 0) {
            fprintf(plan->out, "%s are missing\n", bytes_text(plan->shortfall->missing_bytes, missing));
        }
        return true;
    }
    const uint32_t count = gpuhal_plan_info(plan).stage_count;
    int name_width = 6, layers_width = 6;
    for (uint32_t i = 0; i < count; i++) {
        char layers[160];
        const gpuhal_placement_stage stage = gpuhal_plan_stage(plan, i);
        layers_text(plan->model, &stage, layers, sizeof layers);
        const int name = (int)strlen(plan->machine->devices[stage.device].name), text = (int)strlen(layers);
        name_width = name > name_width ? name : name_width;
        layers_width = text > layers_width ? text : layers_width;
    }
    fprintf(plan->out, "%-*s  %-*s %6s  %-*s  %24s  %s\n", name_width, "DEVICE", layers_width, "LAYERS", "COUNT",
            BAR + 2, "MEMORY", "", "TIME");
    for (uint32_t i = 0; i < count; i++) {
        print_stage(plan, i, name_width, layers_width);
    }
    print_end(plan);
    return true;
}
