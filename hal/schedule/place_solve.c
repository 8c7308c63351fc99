/* schedule/place_solve.c: converts objectives to searches. The slowest stage or link and the largest share are bounds:
 * the search lowers the bound as far as possible, and then finds the shortest step within it. */
#include "schedule/place.h"

#include "device/for_schedule.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const gpuhal_place_bound no_bound = {INFINITY, INFINITY};

static bool has_bound(const gpuhal_place_model *model)
{
    return model->problem->objective == GPUHAL_PLACEMENT_THROUGHPUT ||
           model->problem->objective == GPUHAL_PLACEMENT_BALANCED;
}

static gpuhal_place_bound bound_of(const gpuhal_place_model *model, double value)
{
    return model->problem->objective == GPUHAL_PLACEMENT_BALANCED ? (gpuhal_place_bound){INFINITY, value}
                                                                  : (gpuhal_place_bound){value, INFINITY};
}

double gpuhal_place_value(gpuhal_place_model *model, const gpuhal_place_ranges *ranges)
{
    double seconds = 0, slowest = 0, share = 0, moved = 0;
    for (uint32_t i = 0; i < ranges->count; i++) {
        const gpuhal_place_range *r = &ranges->list[i];
        const uint64_t bytes = gpuhal_place_need(model, *r);
        const double stage = gpuhal_place_stage_seconds(model, *r);
        const double link = i == 0 ? 0
                                   : gpuhal_place_link_seconds(model, ranges->list[i - 1].device, r->device,
                                                               model->problem->layers[r->first - 1].output_bytes);
        const double own = bytes == 0 ? 0 : (double)bytes / (double)model->usable[r->device];
        seconds += stage + link;
        slowest = gpuhal_larger(slowest, gpuhal_larger(stage, link));
        share = gpuhal_larger(share, own);
        moved += model->moved ? model->moved[r->device * model->columns + r->past] -
                                    model->moved[r->device * model->columns + r->first]
                              : 0;
    }
    switch (model->problem->objective) {
    case GPUHAL_PLACEMENT_THROUGHPUT:
        return slowest;
    case GPUHAL_PLACEMENT_FEWEST_DEVICES:
        return ranges->count;
    case GPUHAL_PLACEMENT_BALANCED:
        return share;
    case GPUHAL_PLACEMENT_LEAST_MOVED:
        return moved;
    default:
        return seconds;
    }
}

/* ---- one set of orders */

/* Finds the lowest bound that allows ranges, with a relative error of about 1e-11. Bisects bit patterns, because those
 * of non-negative doubles have the same order as their values. */
static gpuhal_status least_bound(gpuhal_place_model *model, const gpuhal_place_order *order, double *out_value)
{
    uint64_t *bits = malloc(gpuhal_place_bit_words(model, order) * sizeof *bits);
    if (!bits) {
        return gpuhal_error_host_memory();
    }
    const double most = DBL_MAX;
    uint64_t low = 0, high = 0; /* `high` is feasible if any bound is; `low` is treated as infeasible */
    memcpy(&high, &most, sizeof high);
    const uint64_t enough = UINT64_C(1) << 16; /* there are 2^52 doubles between a value and twice the value */
    gpuhal_place_windows(model, no_bound);
    if (!gpuhal_place_is_possible(model, order, no_bound, bits)) {
        low = high;
    }
    while (high - low > enough) {
        const uint64_t middle = low + (high - low) / 2;
        double value = 0;
        memcpy(&value, &middle, sizeof value);
        gpuhal_place_windows(model, bound_of(model, value));
        if (gpuhal_place_is_possible(model, order, bound_of(model, value), bits)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    memcpy(out_value, &high, sizeof *out_value);
    free(bits);
    return GPUHAL_OK;
}

static gpuhal_status solve_orders(gpuhal_place_model *model, const gpuhal_place_order *order,
                                  gpuhal_place_ranges *out_ranges)
{
    gpuhal_place_bound bound = no_bound;
    if (has_bound(model)) {
        double value = 0;
        gpuhal_status status = least_bound(model, order, &value);
        if (status) {
            return status;
        }
        bound = bound_of(model, value * (1 + 1e-11)); /* treats values that differ only by rounding as equal */
    }
    gpuhal_cost cost;
    gpuhal_place_windows(model, bound);
    return gpuhal_place_search(model, order, bound, &cost, out_ranges);
}

/* ---- too many orders */

static uint32_t fewest_devices(const gpuhal_place_model *model, double bytes)
{
    uint64_t usable[GPUHAL_PLACEMENT_DEVICES_MAX];
    memcpy(usable, model->usable, sizeof usable);
    uint32_t count = 0;
    for (double room = 0; room < bytes && count < model->device_count; count++) {
        uint32_t largest = 0;
        for (uint32_t d = 1; d < model->device_count; d++) {
            largest = usable[d] > usable[largest] ? d : largest;
        }
        room += (double)usable[largest];
        usable[largest] = 0;
    }
    return count > 0 ? count : 1;
}

/* Returns a lower bound of the objective's value over all orders. */
static double lower_bound(gpuhal_place_model *model)
{
    const gpuhal_placement_problem *problem = model->problem;
    double least_seconds = 0, slowest_layer = 0, bytes = 0, moved = 0, room = 0;
    uint32_t usable_devices = 0;
    for (uint32_t d = 0; d < model->device_count; d++) {
        room += (double)model->usable[d];
        usable_devices += model->usable[d] > 0;
    }
    for (uint32_t layer = 0; layer < model->layer_count; layer++) {
        double own = INFINITY;
        bool was_there = false;
        for (uint32_t d = 0; d < model->device_count; d++) {
            const double *seconds = &model->seconds[d * model->columns];
            own = gpuhal_place_is_allowed(model, layer, d) ? gpuhal_smaller(own, seconds[layer + 1] - seconds[layer])
                                                           : own;
            was_there = was_there ||
                        (problem->previous && problem->previous[layer] == d && problem->devices[d].capacity_bytes > 0);
        }
        const gpuhal_placement_layer *l = &problem->layers[layer];
        least_seconds += own;
        slowest_layer = gpuhal_larger(slowest_layer, own);
        bytes += (double)l->state_bytes + (model->ties[layer] == 0 ? (double)l->weight_bytes : 0);
        moved += was_there ? 0 : (double)(l->weight_bytes + l->state_bytes);
    }
    switch (problem->objective) {
    case GPUHAL_PLACEMENT_THROUGHPUT:
        return gpuhal_larger(slowest_layer, least_seconds / gpuhal_larger(usable_devices, 1));
    case GPUHAL_PLACEMENT_FEWEST_DEVICES:
        return fewest_devices(model, bytes);
    case GPUHAL_PLACEMENT_BALANCED:
        return bytes / gpuhal_larger(room, 1);
    case GPUHAL_PLACEMENT_LEAST_MOVED:
        return moved;
    default:
        return least_seconds;
    }
}

/* Missing bytes are compared first, then the objective's value. */
typedef struct attempt {
    gpuhal_cost cost;
    gpuhal_place_ranges ranges;
    uint32_t devices[GPUHAL_PLACEMENT_DEVICES_MAX];
} attempt;

static gpuhal_status try_order(gpuhal_place_model *model, uint32_t count, attempt *out)
{
    gpuhal_place_order order;
    gpuhal_place_order_fixed(&order, out->devices, count);
    gpuhal_status status = solve_orders(model, &order, &out->ranges);
    if (!status && out->ranges.count > 0) {
        out->cost = (gpuhal_cost){0, gpuhal_place_value(model, &out->ranges)};
    } else if (!status) {
        uint64_t missing = 0;
        status = gpuhal_place_missing(model, &order, &missing);
        out->cost = (gpuhal_cost){(double)missing, 0};
    }
    return status;
}

static void move(uint32_t *devices, uint32_t from, uint32_t to)
{
    const uint32_t device = devices[from];
    if (from < to) {
        memmove(&devices[from], &devices[from + 1], (to - from) * sizeof *devices);
    } else {
        memmove(&devices[to + 1], &devices[to], (from - to) * sizeof *devices);
    }
    devices[to] = device;
}

/* Moves one device at a time to a better position, until no move is an improvement or `tries` orders were tried. */
static gpuhal_status improve(gpuhal_place_model *model, uint32_t count, uint32_t tries, attempt *best)
{
    gpuhal_status status = GPUHAL_OK;
    for (bool better = true; better && tries > 0 && !status;) {
        better = false;
        for (uint32_t from = 0; from < count; from++) {
            for (uint32_t to = 0; to < count && tries > 0 && !status; to++) {
                attempt other = {0};
                memcpy(other.devices, best->devices, sizeof other.devices);
                move(other.devices, from, to);
                status = from == to ? GPUHAL_OK : try_order(model, count, &other);
                if (!status && from != to && gpuhal_cost_less(other.cost, best->cost)) {
                    *best = other;
                    better = true;
                }
                tries -= from != to;
            }
        }
    }
    return status;
}

/* Tries two initial orders: the given order, and the fastest devices first. */
static gpuhal_status search_orders(gpuhal_place_model *model, gpuhal_place_ranges *out_ranges, double *out_gap)
{
    const gpuhal_placement_device *devices = model->problem->devices;
    attempt best = {0}, sorted = {0};
    uint32_t count = 0;
    for (uint32_t d = 0; d < model->device_count; d++) {
        if (devices[d].capacity_bytes > 0) {
            best.devices[count] = sorted.devices[count] = d;
            for (uint32_t at = count++; at > 0 && devices[sorted.devices[at]].bytes_per_second >
                                                      devices[sorted.devices[at - 1]].bytes_per_second;
                 at--) {
                move(sorted.devices, at, at - 1);
            }
        }
    }
    /* Limits the time to a few seconds for any number of layers. */
    const double work = (double)model->columns * count * count * (has_bound(model) ? 30 : 1);
    double tries = 1e8 / work;
    gpuhal_status status = try_order(model, count, &best);
    status = status ? status : try_order(model, count, &sorted);
    if (!status && gpuhal_cost_less(sorted.cost, best.cost)) {
        best = sorted;
    }
    /* For an order without a placement, pairs of boundaries have to be examined. */
    if (best.cost.first > 0) {
        tries = gpuhal_smaller(tries, 1e9 / (work * (double)model->columns));
    }
    status = status ? status : improve(model, count, tries > 4000 ? 4000 : (uint32_t)tries, &best);
    if (status) {
        return status;
    }
    *out_ranges = best.ranges;
    const double value = best.cost.second, bound = gpuhal_smaller(lower_bound(model), value);
    *out_gap = value > 0 ? (value - bound) / value : 0;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_place_solve(gpuhal_place_model *model, gpuhal_place_ranges *out_ranges, double *out_gap)
{
    gpuhal_place_order order;
    *out_gap = 0;
    if (!(model->problem->flags & GPUHAL_PLACEMENT_FREE_ORDER)) {
        uint32_t devices[GPUHAL_PLACEMENT_DEVICES_MAX];
        for (uint32_t d = 0; d < model->device_count; d++) {
            devices[d] = d;
        }
        gpuhal_place_order_fixed(&order, devices, model->device_count);
    } else if (!gpuhal_place_order_free(&order, model)) {
        return search_orders(model, out_ranges, out_gap);
    }
    return solve_orders(model, &order, out_ranges);
}
