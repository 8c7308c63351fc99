/* schedule/memory_plan.c: gpuhal_memory_plan(), from the check of its numbers to the offsets.
 *
 * Only the order of the first and last steps matters: they become columns. A first plan comes from the rules of
 * skyline.c alone, which is the best one for many models. Where it is not known to be, keys that prefer some boxes are
 * changed at random, always the same way, and changes that make it no worse are kept, as long as the work is bounded.
 */
#include <gpuhal/memory_plan.h>

#include "core/error.h"
#include "schedule/skyline.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { WORK_MAX = 4500000 };

static gpuhal_status check(const gpuhal_memory_plan_problem *problem)
{
    const uint64_t most = (uint64_t)1 << 63, mask = problem->alignment - 1;
    uint64_t sum = 0;
    if (problem->item_count > GPUHAL_MEMORY_PLAN_ITEMS_MAX) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_memory_plan: item_count is %u; at most %u",
                                problem->item_count, GPUHAL_MEMORY_PLAN_ITEMS_MAX);
    }
    if (problem->item_count > 0 && !problem->items) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_memory_plan: item_count is %u, and items is NULL", problem->item_count);
    }
    if (problem->alignment & mask) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_memory_plan: the alignment %" PRIu64 " is not a power of two",
                                problem->alignment);
    }
    for (uint32_t i = 0; i < problem->item_count; i++) {
        const gpuhal_memory_plan_item *item = &problem->items[i];
        if (item->first_use > item->last_use) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "gpuhal_memory_plan: item %u: first use in step %u, last use in step %u", i,
                                    item->first_use, item->last_use);
        }
        if (item->bytes > most || ((item->bytes + mask) & ~mask) > most - sum) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "gpuhal_memory_plan: items 0 to %u, each rounded up to the alignment of %" PRIu64
                                    " bytes, have more than 2^63 bytes",
                                    i, problem->alignment);
        }
        sum += (item->bytes + mask) & ~mask;
    }
    return GPUHAL_OK;
}

/* ---- steps to columns */

static int by_value(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* How many of the sorted edges, which differ, are below the value. */
static uint32_t edges_below(const uint64_t *edges, uint32_t count, uint64_t value)
{
    uint32_t low = 0;
    while (low < count) {
        const uint32_t middle = low + (count - low) / 2;
        if (edges[middle] < value) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

/* Boxes of the items that take bytes. A column lies between two steps where an item begins, or one has ended. */
static void make_boxes(const gpuhal_memory_plan_problem *problem, uint64_t *edges, gpuhal_skyline_box *boxes,
                       uint32_t *out_boxes, uint32_t *out_columns)
{
    uint32_t box_count = 0, edge_count = 0, unlike = 0;
    for (uint32_t i = 0; i < problem->item_count; i++) {
        const gpuhal_memory_plan_item *item = &problem->items[i];
        if (item->bytes > 0) {
            const uint64_t mask = problem->alignment - 1;
            boxes[box_count++] = (gpuhal_skyline_box){.height = (item->bytes + mask) & ~mask, .item = i};
            edges[edge_count++] = item->first_use;
            edges[edge_count++] = (uint64_t)item->last_use + 1;
        }
    }
    qsort(edges, edge_count, sizeof *edges, by_value);
    for (uint32_t e = 0; e < edge_count; e++) {
        if (unlike == 0 || edges[e] != edges[unlike - 1]) {
            edges[unlike++] = edges[e];
        }
    }
    for (uint32_t b = 0; b < box_count; b++) {
        const gpuhal_memory_plan_item *item = &problem->items[boxes[b].item];
        boxes[b].first = edges_below(edges, unlike, item->first_use);
        boxes[b].last = edges_below(edges, unlike, (uint64_t)item->last_use + 1) - 1;
    }
    *out_boxes = box_count;
    *out_columns = unlike > 0 ? unlike - 1 : 0;
}

/* ---- the search */

static uint32_t roll(uint32_t *state, uint32_t sides)
{
    *state = *state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)*state * sides >> 32);
}

/* Changes a tenth of the keys at most. */
static void change(uint16_t *keys, uint32_t count, uint32_t *state)
{
    for (uint32_t left = 1 + roll(state, count / 10 + 1); left > 0; left--) {
        keys[roll(state, count)] = (uint16_t)roll(state, GPUHAL_SKYLINE_KEY_END);
    }
}

/* Offsets in the order of boxes. The other arrays have box_count elements too; `keys` and `offsets` are of the best. */
static uint64_t search(gpuhal_skyline *skyline, uint32_t box_count, uint16_t *keys, uint16_t *trial_keys,
                       uint64_t *offsets, uint64_t *trial_offsets)
{
    uint64_t work = 0;
    uint32_t state = 1;
    uint64_t best = gpuhal_skyline_fill(skyline, keys, UINT64_MAX, offsets, &work);
    while (best > gpuhal_skyline_least(skyline) && work < WORK_MAX) {
        memcpy(trial_keys, keys, box_count * sizeof *keys);
        change(trial_keys, box_count, &state);
        const uint64_t total = gpuhal_skyline_fill(skyline, trial_keys, best, trial_offsets, &work);
        if (total <= best) {
            memcpy(keys, trial_keys, box_count * sizeof *keys);
            memcpy(offsets, trial_offsets, box_count * sizeof *offsets);
            best = total;
        }
    }
    return best;
}

/* What one plan needs beside the skyline; each has room for all items. */
typedef struct memory {
    uint64_t *edges; /* two for each item; afterwards the offsets of the best plan, and of a trial */
    gpuhal_skyline_box *boxes;
    uint16_t *keys, *trial_keys;
} memory;

static gpuhal_status plan(const gpuhal_memory_plan_problem *problem, memory *m, uint64_t *out_offsets,
                          gpuhal_memory_plan_info *info)
{
    uint32_t box_count, column_count;
    make_boxes(problem, m->edges, m->boxes, &box_count, &column_count);
    gpuhal_skyline *skyline = box_count > 0 ? gpuhal_skyline_create(m->boxes, box_count, column_count) : NULL;
    if (box_count > 0 && !skyline) {
        return gpuhal_error_host_memory();
    }
    for (uint32_t i = 0; i < problem->item_count; i++) {
        out_offsets[i] = 0;
    }
    if (!skyline) {
        return GPUHAL_OK; /* no item takes bytes */
    }
    uint64_t *offsets = m->edges;
    info->total_bytes = search(skyline, box_count, m->keys, m->trial_keys, offsets, offsets + box_count);
    info->least_bytes = gpuhal_skyline_least(skyline);
    for (uint32_t b = 0; b < box_count; b++) {
        out_offsets[m->boxes[b].item] = offsets[b];
    }
    gpuhal_skyline_destroy(skyline);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_memory_plan(const gpuhal_memory_plan_problem *given, uint64_t *out_offsets,
                                 gpuhal_memory_plan_info *out_info)
{
    gpuhal_memory_plan_problem problem = {0};
    if (given) {
        memcpy(&problem, given, given->size < sizeof problem ? given->size : sizeof problem);
    }
    if (!given || (problem.item_count > 0 && !out_offsets)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_memory_plan: %s is NULL",
                                given ? "out_offsets" : "problem");
    }
    if (problem.size < offsetof(gpuhal_memory_plan_problem, alignment) || (out_info && out_info->size == 0)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_memory_plan: size of the %s",
                                problem.size < offsetof(gpuhal_memory_plan_problem, alignment)
                                    ? "problem must be sizeof(gpuhal_memory_plan_problem)"
                                    : "info must be set to sizeof(gpuhal_memory_plan_info) first");
    }
    problem.alignment = problem.alignment ? problem.alignment : 1;
    gpuhal_status status = check(&problem);
    if (status) {
        return status;
    }
    const size_t count = (size_t)problem.item_count + 1; /* never an allocation of 0 bytes */
    memory m = {.edges = malloc(2 * count * sizeof *m.edges),
                .boxes = malloc(count * sizeof *m.boxes),
                .keys = calloc(count, sizeof *m.keys),
                .trial_keys = malloc(count * sizeof *m.trial_keys)};
    gpuhal_memory_plan_info info = {.size = sizeof info};
    if (m.edges && m.boxes && m.keys && m.trial_keys) {
        status = plan(&problem, &m, out_offsets, &info);
    } else {
        status = gpuhal_error_host_memory();
    }
    free(m.edges);
    free(m.boxes);
    free(m.keys);
    free(m.trial_keys);
    if (!status && out_info) {
        info.size = out_info->size;
        memcpy(out_info, &info, info.size < sizeof info ? info.size : sizeof info);
    }
    return status;
}
