/* schedule/place_order.c: represents the possible orders of devices as numbered states. Every state is larger than its
 * predecessors, so a search visits the states once, in ascending order. */
#include "schedule/place.h"

#include <string.h>

void gpuhal_place_order_fixed(gpuhal_place_order *order, const uint32_t *devices, uint32_t count)
{
    *order = (gpuhal_place_order){.count = count, .states = (uint64_t)count + 1};
    for (uint32_t i = 0; i < count; i++) {
        order->devices[i] = devices[i];
        order->first[i] = i;
        order->size[i] = 1;
    }
}

static bool same_numbers(const gpuhal_placement_device *a, const gpuhal_placement_device *b)
{
    return a->capacity_bytes == b->capacity_bytes && a->margin_bytes == b->margin_bytes &&
           a->bytes_per_second == b->bytes_per_second && a->operations_per_second == b->operations_per_second &&
           a->start_seconds == b->start_seconds && a->layer_limit == b->layer_limit;
}

static bool same_link(const gpuhal_placement_link *a, const gpuhal_placement_link *b)
{
    return a->latency_seconds == b->latency_seconds && a->bytes_per_second == b->bytes_per_second;
}

static bool same_links(const gpuhal_placement_problem *problem, uint32_t a, uint32_t b)
{
    const uint32_t count = problem->device_count;
    const gpuhal_placement_link *links = problem->links;
    bool same = !links || same_link(&links[(size_t)a * count + b], &links[(size_t)b * count + a]);
    for (uint32_t other = 0; links && other < count && same; other++) {
        same = other == a || other == b ||
               (same_link(&links[(size_t)a * count + other], &links[(size_t)b * count + other]) &&
                same_link(&links[(size_t)other * count + a], &links[(size_t)other * count + b]));
    }
    return same;
}

/* Returns whether exchanging the two devices changes no number of the problem. This relation is transitive. */
static bool are_alike(const gpuhal_place_model *model, uint32_t a, uint32_t b)
{
    const gpuhal_placement_problem *problem = model->problem;
    bool alike = same_numbers(&problem->devices[a], &problem->devices[b]) && same_links(problem, a, b);
    for (uint32_t layer = 0; layer < model->layer_count && alike; layer++) {
        const uint64_t devices = problem->layers[layer].devices;
        alike =
            (devices >> a & 1) == (devices >> b & 1) &&
            (!model->moved || !problem->previous || (problem->previous[layer] != a && problem->previous[layer] != b));
    }
    return alike;
}

bool gpuhal_place_order_free(gpuhal_place_order *order, const gpuhal_place_model *model)
{
    *order = (gpuhal_place_order){.is_free = true};
    bool classified[GPUHAL_PLACEMENT_DEVICES_MAX] = {false};
    uint32_t used = 0;
    for (uint32_t d = 0; d < model->device_count; d++) {
        if (classified[d] || model->problem->devices[d].capacity_bytes == 0) {
            continue;
        }
        const uint32_t class = order->count++;
        order->first[class] = used;
        for (uint32_t other = d; other < model->device_count; other++) {
            if (other == d || (!classified[other] && are_alike(model, d, other))) {
                classified[other] = true;
                order->devices[used++] = other;
                order->size[class]++;
            }
        }
    }
    uint64_t states = 1;
    for (uint32_t class = 0; class < order->count && states <= GPUHAL_PLACE_CELLS_MAX; class ++) {
        order->stride[class] = states;
        states *= order->size[class] + 1;
    }
    order->states = states;
    return states * order->count * model->columns <= GPUHAL_PLACE_CELLS_MAX;
}

size_t gpuhal_place_rows(const gpuhal_place_order *order)
{
    return (size_t)(order->states * (order->is_free ? order->count : 1));
}

size_t gpuhal_place_row(const gpuhal_place_order *order, uint64_t state, uint32_t last)
{
    return (size_t)(order->is_free ? state * order->count + last : state);
}

uint32_t gpuhal_place_device(const gpuhal_place_order *order, uint32_t last)
{
    return order->devices[order->first[last]];
}

uint32_t gpuhal_place_next_device(const gpuhal_place_order *order, uint32_t before, uint32_t last)
{
    return order->devices[order->first[last] + (before == last)];
}

bool gpuhal_place_has_last(const gpuhal_place_order *order, uint64_t state, uint32_t last)
{
    return order->is_free ? state / order->stride[last] % (order->size[last] + 1) > 0 : state == (uint64_t)last + 1;
}

uint64_t gpuhal_place_before(const gpuhal_place_order *order, uint64_t state, uint32_t last)
{
    return order->is_free ? state - order->stride[last] : last;
}
