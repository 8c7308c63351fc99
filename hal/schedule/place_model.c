/* schedule/place_model.c: computes sums over layers, and windows. For each device and boundary, the window is the
 * longest range of allowed layers that ends at the boundary and fits on the device within the limits of memory, layers
 * and time. A longer range never needs less of any, so windows only move forward, and each layer enters and leaves a
 * device's window once. */
#include "schedule/place.h"

#include "device/for_schedule.h"

#include <stdlib.h>
#include <string.h>

static const gpuhal_placement_layer *layer_at(const gpuhal_place_model *model, uint32_t layer)
{
    return &model->problem->layers[layer];
}

static double layer_seconds(const gpuhal_placement_layer *layer, const gpuhal_placement_device *device)
{
    const uint64_t bytes = layer->read_bytes ? layer->read_bytes : layer->weight_bytes + layer->state_bytes;
    const double reading = device->bytes_per_second > 0 ? (double)bytes / device->bytes_per_second : 0;
    const double computing = device->operations_per_second > 0 ? layer->operations / device->operations_per_second : 0;
    return reading > computing ? reading : computing;
}

bool gpuhal_place_is_allowed(const gpuhal_place_model *model, uint32_t layer, uint32_t device)
{
    const uint64_t devices = layer_at(model, layer)->devices;
    return (devices == 0 || devices >> device & 1 || model->relaxed & GPUHAL_PLACE_NO_DEVICES) &&
           model->problem->devices[device].capacity_bytes > 0;
}

/* ---- making */

static int compare_ties(const void *one, const void *other)
{
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* All weights of a tie must have the same size. */
static gpuhal_status number_ties(gpuhal_place_model *model)
{
    uint64_t *sorted = malloc(model->layer_count * sizeof *sorted); /* tie << 32 | layer */
    if (!sorted) {
        return gpuhal_error_host_memory();
    }
    for (uint32_t layer = 0; layer < model->layer_count; layer++) {
        sorted[layer] = (uint64_t)layer_at(model, layer)->tie << 32 | layer;
    }
    qsort(sorted, model->layer_count, sizeof *sorted, compare_ties);
    gpuhal_status status = GPUHAL_OK;
    uint32_t ties = 0, before = UINT32_MAX; /* previous layer in the list */
    for (uint32_t i = 0; i < model->layer_count && !status; i++) {
        const uint32_t layer = (uint32_t)sorted[i];
        const bool is_tied = layer_at(model, layer)->tie != 0;
        const bool is_same =
            is_tied && before != UINT32_MAX && layer_at(model, before)->tie == layer_at(model, layer)->tie;
        ties += is_tied && !is_same;
        model->ties[layer] = is_tied ? ties : 0;
        if (is_same && layer_at(model, before)->weight_bytes != layer_at(model, layer)->weight_bytes) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                      "gpuhal_place: layers %u and %u are tied, and their weights differ in size",
                                      before, layer);
        }
        before = layer;
    }
    free(sorted);
    return status;
}

/* A device's total seconds must be finite, so that no difference of sums is NAN. */
static gpuhal_status sum(gpuhal_place_model *model)
{
    const gpuhal_placement_problem *problem = model->problem;
    for (uint32_t d = 0; d < model->device_count; d++) {
        double *seconds = &model->seconds[d * model->columns],
               *moved = model->moved ? &model->moved[d * model->columns] : NULL;
        for (uint32_t layer = 0; layer < model->layer_count; layer++) {
            const gpuhal_placement_layer *l = layer_at(model, layer);
            seconds[layer + 1] = seconds[layer] + layer_seconds(l, &problem->devices[d]);
            if (moved) {
                const bool is_there = problem->previous && problem->previous[layer] == d;
                moved[layer + 1] = moved[layer] + (is_there ? 0 : (double)(l->weight_bytes + l->state_bytes));
            }
        }
        if (!gpuhal_is_finite(seconds[model->layer_count])) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "gpuhal_place: the layers take more seconds on device %u than a number can say", d);
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_place_model_init(gpuhal_place_model *model, const gpuhal_placement_problem *problem)
{
    *model = (gpuhal_place_model){.problem = problem,
                                  .layer_count = problem->layer_count,
                                  .device_count = problem->device_count,
                                  .columns = (size_t)problem->layer_count + 1};
    const size_t cells = model->columns * model->device_count;
    const bool moves = problem->objective == GPUHAL_PLACEMENT_LEAST_MOVED;
    model->ties = calloc(model->columns, sizeof *model->ties);
    model->tied = calloc(model->columns, sizeof *model->tied);
    model->queue = calloc(model->columns, sizeof *model->queue);
    model->seconds = calloc(cells, sizeof *model->seconds);
    model->moved = moves ? calloc(cells, sizeof *model->moved) : NULL;
    model->window = calloc(cells, sizeof *model->window);
    gpuhal_status status = GPUHAL_OK;
    if (!model->ties || !model->tied || !model->queue || !model->seconds || (moves && !model->moved) ||
        !model->window) {
        status = gpuhal_error_host_memory();
    }
    status = status ? status : number_ties(model);
    status = status ? status : sum(model);
    if (status) {
        gpuhal_place_model_finish(model);
        return status;
    }
    for (uint32_t d = 0; d < model->device_count; d++) {
        const gpuhal_placement_device *device = &problem->devices[d];
        model->usable[d] =
            device->capacity_bytes > device->margin_bytes ? device->capacity_bytes - device->margin_bytes : 0;
    }
    for (uint32_t layer = 0; layer < model->layer_count; layer++) {
        const uint64_t bytes = layer_at(model, layer)->output_bytes;
        model->output_max = bytes > model->output_max ? bytes : model->output_max;
    }
    return GPUHAL_OK;
}

void gpuhal_place_model_finish(gpuhal_place_model *model)
{
    free(model->ties);
    free(model->tied);
    free(model->queue);
    free(model->seconds);
    free(model->moved);
    free(model->window);
}

/* ---- windows */

typedef struct window {
    gpuhal_place_model *model;
    uint32_t device, first, past;
    uint64_t bytes;        /* weights and states */
    uint32_t head, length; /* range of model->queue: layers whose workspace no later layer reaches, largest first */
} window;

static void enter(window *w)
{
    gpuhal_place_model *model = w->model;
    const uint32_t layer = w->past++, tie = model->ties[layer];
    const gpuhal_placement_layer *l = layer_at(model, layer);
    w->bytes += l->state_bytes + (tie == 0 || model->tied[tie]++ == 0 ? l->weight_bytes : 0);
    while (w->length > 0 &&
           layer_at(model, model->queue[w->head + w->length - 1])->workspace_bytes <= l->workspace_bytes) {
        w->length--;
    }
    model->queue[w->head + w->length++] = layer; /* at most one entry for each layer that has entered */
}

static void leave(window *w)
{
    gpuhal_place_model *model = w->model;
    const uint32_t layer = w->first++, tie = model->ties[layer];
    const gpuhal_placement_layer *l = layer_at(model, layer);
    w->bytes -= l->state_bytes + (tie == 0 || --model->tied[tie] == 0 ? l->weight_bytes : 0);
    if (w->length > 0 && model->queue[w->head] == layer) {
        w->head++;
        w->length--;
    }
}

static uint64_t need(const window *w)
{
    return w->bytes + (w->length > 0 ? layer_at(w->model, w->model->queue[w->head])->workspace_bytes : 0);
}

static bool fits(const window *w, gpuhal_place_bound bound)
{
    const gpuhal_place_model *model = w->model;
    const uint64_t bytes = need(w), usable = model->usable[w->device];
    const uint32_t limit = model->relaxed & GPUHAL_PLACE_NO_LIMIT ? 0 : model->problem->devices[w->device].layer_limit;
    const gpuhal_place_range range = {.device = w->device, .first = w->first, .past = w->past};
    return (limit == 0 || w->past - w->first <= limit) &&
           (model->relaxed & GPUHAL_PLACE_NO_MEMORY ||
            (bytes <= usable && (bytes == 0 || (double)bytes / (double)usable <= bound.share))) &&
           gpuhal_place_stage_seconds(model, range) <= bound.seconds;
}

void gpuhal_place_windows(gpuhal_place_model *model, gpuhal_place_bound bound)
{
    for (uint32_t d = 0; d < model->device_count; d++) {
        window w = {.model = model, .device = d};
        for (uint32_t layer = 0; layer < model->layer_count; layer++) {
            enter(&w);
            const bool allowed = gpuhal_place_is_allowed(model, layer, d);
            while (w.first < w.past && (!allowed || !fits(&w, bound))) {
                leave(&w);
            }
            model->window[d * model->columns + w.past] = w.first;
        }
        while (w.first < w.past) {
            leave(&w);
        }
    }
}

uint64_t gpuhal_place_need(gpuhal_place_model *model, gpuhal_place_range range)
{
    window w = {.model = model, .device = range.device, .first = range.first, .past = range.first};
    while (w.past < range.past) {
        enter(&w);
    }
    const uint64_t bytes = need(&w);
    while (w.first < w.past) {
        leave(&w);
    }
    return bytes;
}

uint64_t gpuhal_place_over(const gpuhal_place_model *model, uint32_t device, uint64_t bytes)
{
    const gpuhal_placement_device *d = &model->problem->devices[device];
    if (bytes <= model->usable[device]) {
        return 0;
    }
    const uint64_t short_of_margin = d->margin_bytes > d->capacity_bytes ? d->margin_bytes - d->capacity_bytes : 0;
    const uint64_t over = bytes - model->usable[device];
    return over > UINT64_MAX - short_of_margin ? UINT64_MAX : over + short_of_margin;
}

/* ---- times */

double gpuhal_place_stage_seconds(const gpuhal_place_model *model, gpuhal_place_range range)
{
    const double *seconds = &model->seconds[range.device * model->columns];
    return seconds[range.past] - seconds[range.first] + model->problem->devices[range.device].start_seconds;
}

gpuhal_place_line gpuhal_place_line_of(const gpuhal_place_model *model, uint32_t from, uint32_t to)
{
    const gpuhal_placement_link *links = model->problem->links;
    if (!links || model->relaxed & GPUHAL_PLACE_NO_LINKS) {
        return (gpuhal_place_line){0, 0};
    }
    const gpuhal_placement_link *link = &links[(size_t)from * model->device_count + to];
    return (gpuhal_place_line){.latency = link->latency_seconds,
                               .per_byte = link->bytes_per_second > 0 ? 1 / link->bytes_per_second : 0};
}

double gpuhal_place_link_seconds(const gpuhal_place_model *model, uint32_t from, uint32_t to, uint64_t bytes)
{
    const gpuhal_place_line line = gpuhal_place_line_of(model, from, to);
    return line.latency + (double)bytes * line.per_byte;
}
