/* schedule/place_shortfall.c: explains why there is no placement. Finds the first constraint without which one would
 * exist, and the missing bytes of memory. */
#include "schedule/place.h"

#include "device/for_schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the smallest number of missing bytes: a search with bytes as costs. Because of ties and workspaces, the bytes of
 * a range are not a difference of sums, so each range is examined */

typedef struct bytes_search {
    gpuhal_place_model *model;
    const gpuhal_place_order *order;
    uint32_t stride;  /* maximum distance between examined boundaries */
    uint64_t *best;   /* rows × columns; UINT64_MAX if unreachable */
    uint64_t *arrive; /* a single row */
} bytes_search;

static bool is_boundary(const bytes_search *s, uint32_t column)
{
    const gpuhal_placement_layer *layers = s->model->problem->layers;
    return column % s->stride == 0 || column == s->model->layer_count ||
           layers[column].devices != layers[column - 1].devices;
}

static void arrive_from(bytes_search *s, uint64_t state, uint32_t from_last, uint32_t last)
{
    const gpuhal_place_order *order = s->order;
    const uint64_t *before = &s->best[gpuhal_place_row(order, state, from_last) * s->model->columns];
    const uint32_t one = gpuhal_place_device(order, from_last);
    const uint32_t other = gpuhal_place_next_device(order, from_last, last);
    for (uint32_t column = 1; column < s->model->layer_count; column++) {
        const uint64_t bytes = s->model->problem->layers[column - 1].output_bytes;
        if (before[column] < s->arrive[column] &&
            gpuhal_is_finite(gpuhal_place_link_seconds(s->model, one, other, bytes))) {
            s->arrive[column] = before[column];
        }
    }
}

static void fill_arrive(bytes_search *s, uint64_t state, uint32_t last)
{
    memset(s->arrive, 0xff, s->model->columns * sizeof *s->arrive);
    const uint64_t before = gpuhal_place_before(s->order, state, last);
    const uint64_t begin = s->order->is_free ? before : 0;
    s->arrive[0] = begin == 0 ? 0 : UINT64_MAX;
    for (uint64_t from = begin > 0 ? begin : 1; from <= before; from++) {
        for (uint32_t at = 0; at < s->order->count; at++) {
            if (gpuhal_place_has_last(s->order, from, at)) {
                arrive_from(s, from, at, last);
            }
        }
    }
}

/* Examines the ranges that end at `past`, shortest first. `model->tied` counts the layers of each tie in the range. */
static uint64_t least_before(bytes_search *s, uint32_t device, uint32_t past)
{
    gpuhal_place_model *model = s->model;
    uint64_t least = UINT64_MAX, bytes = 0, workspace = 0;
    /* These windows ignore memory limits. */
    const uint32_t begin = model->window[device * model->columns + past];
    for (uint32_t layer = past; layer-- > begin;) {
        const gpuhal_placement_layer *l = &model->problem->layers[layer];
        const uint32_t tie = model->ties[layer];
        bytes += l->state_bytes + (tie == 0 || model->tied[tie]++ == 0 ? l->weight_bytes : 0);
        workspace = l->workspace_bytes > workspace ? l->workspace_bytes : workspace;
        if (is_boundary(s, layer) && s->arrive[layer] != UINT64_MAX) {
            const uint64_t over = gpuhal_place_over(model, device, bytes + workspace);
            const uint64_t all = s->arrive[layer] > UINT64_MAX - over ? UINT64_MAX : s->arrive[layer] + over;
            least = all < least ? all : least;
        }
    }
    for (uint32_t layer = past; layer-- > begin;) {
        model->tied[model->ties[layer]] = 0;
    }
    return least;
}

static void fill_best(bytes_search *s, uint64_t state, uint32_t last)
{
    uint64_t *best = &s->best[gpuhal_place_row(s->order, state, last) * s->model->columns];
    const uint32_t device = gpuhal_place_device(s->order, last);
    memset(best, 0xff, s->model->columns * sizeof *best);
    for (uint32_t past = 1; past <= s->model->layer_count; past++) {
        best[past] = is_boundary(s, past) ? least_before(s, device, past) : UINT64_MAX;
    }
}

gpuhal_status gpuhal_place_missing(gpuhal_place_model *model, const gpuhal_place_order *order, uint64_t *out_bytes)
{
    const uint32_t relaxed = model->relaxed;
    bytes_search s = {.model = model, .order = order};
    /* Each row examines every pair of boundaries, or only some pairs if all would take too long. */
    s.stride = 1 + (uint32_t)((double)gpuhal_place_rows(order) * (double)model->columns * (double)model->columns / 1e9);
    s.best = malloc(gpuhal_place_rows(order) * model->columns * sizeof *s.best);
    s.arrive = malloc(model->columns * sizeof *s.arrive);
    if (!s.best || !s.arrive) {
        free(s.best);
        free(s.arrive);
        return gpuhal_error_host_memory();
    }
    model->relaxed |= GPUHAL_PLACE_NO_MEMORY;
    gpuhal_place_windows(model, (gpuhal_place_bound){INFINITY, INFINITY});
    *out_bytes = UINT64_MAX;
    for (uint64_t state = 1; state < order->states; state++) {
        for (uint32_t last = 0; last < order->count; last++) {
            if (gpuhal_place_has_last(order, state, last)) {
                fill_arrive(&s, state, last);
                fill_best(&s, state, last);
                const uint64_t bytes =
                    s.best[gpuhal_place_row(order, state, last) * model->columns + model->layer_count];
                *out_bytes = bytes < *out_bytes ? bytes : *out_bytes;
            }
        }
    }
    model->relaxed = relaxed;
    free(s.best);
    free(s.arrive);
    return GPUHAL_OK;
}

/* ---- the violated constraint */

static const char *layer_name(const gpuhal_place_model *model, uint32_t layer, char text[32])
{
    const char *name = model->problem->layers[layer].name;
    snprintf(text, 32, "number %u", layer);
    return name ? name : text;
}

static const char *device_name(const gpuhal_place_model *model, uint32_t device, char text[32])
{
    const char *name = model->problem->devices[device].name;
    snprintf(text, 32, "device %u", device);
    return name ? name : text;
}

static gpuhal_status find_layer(gpuhal_place_model *model, gpuhal_placement_shortfall *shortfall)
{
    for (uint32_t layer = 0; layer < model->layer_count; layer++) {
        uint64_t least = UINT64_MAX, asked = 0;
        uint32_t device = UINT32_MAX;
        for (uint32_t d = 0; d < model->device_count; d++) {
            const gpuhal_place_range alone = {.device = d, .first = layer, .past = layer + 1};
            const uint64_t bytes = gpuhal_place_need(model, alone);
            const uint64_t missing = gpuhal_place_over(model, d, bytes);
            if (gpuhal_place_is_allowed(model, layer, d) && (device == UINT32_MAX || missing < least)) {
                least = missing;
                device = d;
            }
            asked = bytes;
        }
        char name[32], where[32];
        if (device == UINT32_MAX) {
            shortfall->constraint = GPUHAL_PLACEMENT_BY_DEVICES;
            shortfall->layer = layer;
            return gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE, "layer %s is allowed on no device that takes layers",
                                    layer_name(model, layer, name));
        }
        if (least > 0) {
            shortfall->constraint = GPUHAL_PLACEMENT_BY_LAYER;
            shortfall->layer = layer;
            shortfall->device = device;
            shortfall->missing_bytes = least;
            gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE,
                             "layer %s needs %" PRIu64
                             " bytes, and no device that is allowed for it has enough: %" PRIu64 " are missing on %s",
                             layer_name(model, layer, name), asked, least, device_name(model, device, where));
            gpuhal_error_add_bytes(asked, model->usable[device], model->problem->devices[device].capacity_bytes);
            return GPUHAL_ERROR_INFEASIBLE;
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status is_possible_without(gpuhal_place_model *model, const gpuhal_place_order *order, uint32_t relaxed,
                                         bool *out_possible)
{
    const gpuhal_place_bound bound = {INFINITY, INFINITY};
    uint64_t *bits = malloc(gpuhal_place_bit_words(model, order) * sizeof *bits);
    if (!bits) {
        return gpuhal_error_host_memory();
    }
    model->relaxed = relaxed;
    gpuhal_place_windows(model, bound);
    *out_possible = gpuhal_place_is_possible(model, order, bound, bits);
    model->relaxed = 0;
    free(bits);
    return GPUHAL_OK;
}

static gpuhal_status refuse_by_memory(gpuhal_place_model *model, const gpuhal_place_order *order,
                                      gpuhal_placement_shortfall *shortfall)
{
    uint64_t usable = 0;
    gpuhal_status status = gpuhal_place_missing(model, order, &shortfall->missing_bytes);
    if (status) {
        return status;
    }
    for (uint32_t d = 0; d < model->device_count; d++) {
        usable = model->usable[d] > UINT64_MAX - usable ? UINT64_MAX : usable + model->usable[d];
    }
    shortfall->constraint = GPUHAL_PLACEMENT_BY_MEMORY;
    if (shortfall->missing_bytes == UINT64_MAX) { /* no placement has only examined boundaries */
        shortfall->missing_bytes = 0;
        return gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE, "the layers do not fit the devices' %" PRIu64 " bytes",
                                usable);
    }
    return gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE,
                            "the layers do not fit: %" PRIu64 " bytes are missing; the devices have %" PRIu64
                            " bytes in total",
                            shortfall->missing_bytes, usable);
}

static const char no_link[] = "devices that must follow each other have no link";

gpuhal_status gpuhal_place_refuse(gpuhal_place_model *model, const gpuhal_place_order *order,
                                  gpuhal_placement_shortfall *shortfall)
{
    static const struct {
        uint32_t relaxed;
        gpuhal_placement_constraint constraint;
        const char *sentence;
    } steps[] = {
        {GPUHAL_PLACE_NO_LIMIT, GPUHAL_PLACEMENT_BY_LAYER_LIMIT,
         "the devices take fewer layers than there are: see their layer_limit"},
        {GPUHAL_PLACE_NO_LINKS, GPUHAL_PLACEMENT_BY_LINKS, no_link},
        {GPUHAL_PLACE_NO_DEVICES, GPUHAL_PLACEMENT_BY_DEVICES,
         "in this order, the devices that are allowed for the layers cannot have one range each"},
        {GPUHAL_PLACE_NO_LIMIT | GPUHAL_PLACE_NO_LINKS | GPUHAL_PLACE_NO_DEVICES, GPUHAL_PLACEMENT_BY_DEVICES,
         "the layers' devices, the devices' limits and the missing links together leave no placement"},
    };
    bool possible = false;
    gpuhal_status status = find_layer(model, shortfall);
    /* Checks whether a placement would be possible in the existing memory with all links. */
    status = status ? status : is_possible_without(model, order, GPUHAL_PLACE_NO_LINKS, &possible);
    if (!status && possible) {
        shortfall->constraint = GPUHAL_PLACEMENT_BY_LINKS;
        status = gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE, "%s", no_link);
    }
    status = status ? status : is_possible_without(model, order, GPUHAL_PLACE_NO_MEMORY, &possible);
    if (!status && possible) {
        status = refuse_by_memory(model, order, shortfall);
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !status; i++) {
        status = is_possible_without(model, order, GPUHAL_PLACE_NO_MEMORY | steps[i].relaxed, &possible);
        if (!status && possible) {
            shortfall->constraint = steps[i].constraint;
            status = gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE, "%s", steps[i].sentence);
        }
    }
    return status ? status : gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE, "nothing satisfies all constraints");
}
