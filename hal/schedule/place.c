/* schedule/place.c: implements the argument checks and the result of gpuhal_place(). */
#include "schedule/place.h"

#include "device/for_schedule.h"

#include <stdlib.h>
#include <string.h>

struct gpuhal_placement {
    gpuhal_placement_info info;
    gpuhal_placement_stage stages[]; /* info.stage_count */
};

/* ---- checks of a problem */

/* Returns false if the sum would exceed 2^63. */
static bool add(uint64_t *sum, uint64_t bytes)
{
    const uint64_t most = (uint64_t)1 << 63;
    if (bytes > most || *sum > most - bytes) {
        return false;
    }
    *sum += bytes;
    return true;
}

static gpuhal_status check_layers(const gpuhal_placement_problem *problem)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < problem->layer_count; i++) {
        const gpuhal_placement_layer *layer = &problem->layers[i];
        if (layer->reserved != 0) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_place: layer %u: reserved is not 0", i);
        }
        if (!gpuhal_is_finite(layer->operations) || layer->operations < 0) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_place: layer %u: operations: %g", i,
                                    layer->operations);
        }
        if (!add(&sum, layer->weight_bytes) || !add(&sum, layer->state_bytes) || !add(&sum, layer->workspace_bytes)) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "gpuhal_place: the layers up to number %u have more than 2^63 bytes", i);
        }
        if (problem->device_count < 64 && layer->devices >> problem->device_count != 0) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "gpuhal_place: layer %u: devices: %#llx, and there are %u devices", i,
                                    (unsigned long long)layer->devices, problem->device_count);
        }
        if (problem->previous && problem->previous[i] != UINT32_MAX && problem->previous[i] >= problem->device_count) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "gpuhal_place: previous[%u] is %u, and there are %u devices", i,
                                    problem->previous[i], problem->device_count);
        }
    }
    return GPUHAL_OK;
}

/* Returns whether the value is 0, or positive with a finite reciprocal (the seconds per unit); false for NAN. */
static bool is_speed(double value)
{
    return value == 0 || (value > 0 && gpuhal_is_finite(1 / value));
}

static bool is_time(double value)
{
    return value >= 0;
}

static gpuhal_status check_devices(const gpuhal_placement_problem *problem)
{
    const uint32_t count = problem->device_count;
    for (uint32_t d = 0; d < count; d++) {
        const gpuhal_placement_device *device = &problem->devices[d];
        if (!is_speed(device->bytes_per_second) || !is_speed(device->operations_per_second) ||
            !is_time(device->start_seconds) || !gpuhal_is_finite(device->start_seconds) || device->reserved != 0) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "gpuhal_place: device %u: %g bytes and %g operations per second, begins after %g s",
                                    d, device->bytes_per_second, device->operations_per_second, device->start_seconds);
        }
    }
    for (uint32_t l = 0; problem->links && l < count * count; l++) {
        const gpuhal_placement_link *link = &problem->links[l];
        if (l / count != l % count && (!is_time(link->latency_seconds) || !is_speed(link->bytes_per_second))) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "gpuhal_place: link from device %u to %u: %g s, %g bytes per second", l / count,
                                    l % count, link->latency_seconds, link->bytes_per_second);
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status check(const gpuhal_placement_problem *problem)
{
    if (problem->layer_count == 0 || problem->layer_count > GPUHAL_PLACEMENT_LAYERS_MAX || problem->device_count == 0 ||
        problem->device_count > GPUHAL_PLACEMENT_DEVICES_MAX || !problem->layers || !problem->devices) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_place: %u layers and %u devices, or no lists of them", problem->layer_count,
                                problem->device_count);
    }
    if (problem->objective > GPUHAL_PLACEMENT_LEAST_MOVED || problem->flags & ~(uint32_t)GPUHAL_PLACEMENT_FREE_ORDER) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_place: objective %u, flags %#x",
                                problem->objective, problem->flags);
    }
    gpuhal_status status = check_layers(problem);
    return status ? status : check_devices(problem);
}

/* ---- the result */

static uint64_t bytes_moved(const gpuhal_placement_problem *problem, const gpuhal_place_range *range)
{
    uint64_t bytes = 0;
    for (uint32_t layer = range->first; layer < range->past; layer++) {
        if (!problem->previous || problem->previous[layer] != range->device) {
            bytes += problem->layers[layer].weight_bytes + problem->layers[layer].state_bytes;
        }
    }
    return bytes;
}

static gpuhal_placement_stage stage_of(gpuhal_place_model *model, const gpuhal_place_range *range,
                                       const gpuhal_place_range *before)
{
    const uint64_t used = gpuhal_place_need(model, *range);
    return (gpuhal_placement_stage){
        .size = sizeof(gpuhal_placement_stage),
        .device = range->device,
        .first_layer = range->first,
        .layer_count = range->past - range->first,
        .used_bytes = used,
        .left_bytes = model->problem->devices[range->device].capacity_bytes - used,
        .seconds = gpuhal_place_stage_seconds(model, *range),
        .link_seconds = before ? gpuhal_place_link_seconds(model, before->device, range->device,
                                                           model->problem->layers[range->first - 1].output_bytes)
                               : 0};
}

static gpuhal_placement *placement_of(gpuhal_place_model *model, const gpuhal_place_ranges *ranges, double gap)
{
    gpuhal_placement *placement = calloc(1, sizeof *placement + ranges->count * sizeof *placement->stages);
    if (!placement) {
        return NULL;
    }
    gpuhal_placement_info *info = &placement->info;
    *info = (gpuhal_placement_info){.size = sizeof *info, .stage_count = ranges->count, .gap = gap};
    for (uint32_t i = 0; i < ranges->count; i++) {
        const gpuhal_place_range *range = &ranges->list[i];
        const gpuhal_placement_stage stage = stage_of(model, range, i > 0 ? range - 1 : NULL);
        info->step_seconds += stage.seconds + stage.link_seconds;
        info->slowest_seconds = gpuhal_larger(info->slowest_seconds, gpuhal_larger(stage.seconds, stage.link_seconds));
        if (stage.used_bytes > 0) {
            info->largest_share =
                gpuhal_larger(info->largest_share, (double)stage.used_bytes / (double)model->usable[stage.device]);
        }
        info->moved_bytes += bytes_moved(model->problem, range);
        placement->stages[i] = stage;
    }
    return placement;
}

/* Explains why there are no ranges; if there are too many free orders, for the given order. */
static gpuhal_status refuse(gpuhal_place_model *model, gpuhal_placement_shortfall *shortfall)
{
    gpuhal_place_order order;
    if (!(model->problem->flags & GPUHAL_PLACEMENT_FREE_ORDER) || !gpuhal_place_order_free(&order, model)) {
        uint32_t devices[GPUHAL_PLACEMENT_DEVICES_MAX];
        for (uint32_t d = 0; d < model->device_count; d++) {
            devices[d] = d;
        }
        gpuhal_place_order_fixed(&order, devices, model->device_count);
    }
    return gpuhal_place_refuse(model, &order, shortfall);
}

gpuhal_status gpuhal_place(const gpuhal_placement_problem *given, gpuhal_placement_shortfall *out_shortfall,
                           gpuhal_placement **out_placement)
{
    if (out_placement) {
        *out_placement = NULL;
    }
    if (!given || given->size == 0 || !out_placement || (out_shortfall && out_shortfall->size == 0)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_place: problem or out_placement is NULL, or a size is 0");
    }
    gpuhal_placement_problem problem = {0};
    memcpy(&problem, given, given->size < sizeof problem ? given->size : sizeof problem);
    gpuhal_place_model model;
    gpuhal_status status = check(&problem);
    status = status ? status : gpuhal_place_model_init(&model, &problem);
    if (status) {
        return status;
    }
    gpuhal_place_ranges ranges = {0};
    double gap = 0;
    status = gpuhal_place_solve(&model, &ranges, &gap);
    if (!status && ranges.count > 0) {
        *out_placement = placement_of(&model, &ranges, gap);
        status = *out_placement ? GPUHAL_OK : gpuhal_error_host_memory();
    } else if (!status) {
        gpuhal_placement_shortfall shortfall = {.size = sizeof shortfall, .layer = UINT32_MAX, .device = UINT32_MAX};
        status = refuse(&model, &shortfall);
        if (out_shortfall) {
            const uint32_t size = out_shortfall->size < sizeof shortfall ? out_shortfall->size : sizeof shortfall;
            shortfall.size = out_shortfall->size;
            memcpy(out_shortfall, &shortfall, size);
        }
    }
    gpuhal_place_model_finish(&model);
    return status;
}

gpuhal_status gpuhal_placement_get_info(const gpuhal_placement *placement, gpuhal_placement_info *out_info)
{
    if (!placement || !out_info || out_info->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_placement_get_info: placement or out_info is NULL, or its size is 0");
    }
    const uint32_t size = out_info->size;
    memcpy(out_info, &placement->info, size < sizeof *out_info ? size : sizeof *out_info);
    out_info->size = size;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_placement_stage_at(const gpuhal_placement *placement, uint32_t index,
                                        gpuhal_placement_stage *out_stage)
{
    if (!placement || !out_stage || out_stage->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_placement_stage_at: placement or out_stage is NULL, or its size is 0");
    }
    if (index >= placement->info.stage_count) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "gpuhal_placement_stage_at: stage %u, and there are %u", index,
                                placement->info.stage_count);
    }
    const uint32_t size = out_stage->size;
    memcpy(out_stage, &placement->stages[index], size < sizeof *out_stage ? size : sizeof *out_stage);
    out_stage->size = size;
    return GPUHAL_OK;
}

void gpuhal_placement_destroy(gpuhal_placement *placement)
{
    free(placement);
}
