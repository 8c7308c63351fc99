/* schedule/memory_plan.c: implements gpuhal_memory_plan().
 *
 * Only the order of the first and last steps matters; these steps become columns. The first plan follows only the rules
 * of skyline.c, and is optimal for many models. If it misses the goal (the capacity, or else a lower bound), the keys
 * of the boxes are changed pseudorandomly (with a fixed seed), up to a work limit. Changes that do not make the plan
 * worse are kept. If the caller allows more time, plan_search.c searches all plans, unless there are too many items or
 * bytes. In the remaining time, the keys are changed further, unless no plan can reach the goal.
 */
#include <gpuhal/schedule/memory_plan.h>

#include "device/for_schedule.h"
#include "schedule/plan_search.h"

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

/* The edges are sorted and distinct. */
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

/* The first use of an item, and the step after its last use, are column boundaries. */
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
        boxes[b].steps = (uint64_t)item->last_use - item->first_use + 1;
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

/* Changes at most a tenth of the keys and one more. */
static void change(uint16_t *keys, uint32_t count, uint32_t *state)
{
    for (uint32_t left = 1 + roll(state, count / 10 + 1); left > 0; left--) {
        keys[roll(state, count)] = (uint16_t)roll(state, GPUHAL_SKYLINE_KEY_END);
    }
}

/* The memory for one plan, in addition to the skyline. Each array has room for all items. */
typedef struct memory {
    uint64_t *edges; /* two for each item; reused for the offsets of the best plan and of a trial */
    gpuhal_skyline_box *boxes;
    uint16_t *keys, *trial_keys;
} memory;

/* Offsets are stored in the order of boxes. */
typedef struct planning {
    gpuhal_skyline *skyline;
    memory *memory;
    uint32_t box_count, column_count;
    uint64_t *offsets, *trial;
    uint64_t best;     /* total of `offsets` */
    uint64_t goal;     /* the search ends at this total or less */
    uint64_t until_ns; /* CPU time limit of the search */
    uint32_t random;
    bool impossible; /* no plan reaches the goal */
} planning;

static bool has_time(const planning *p)
{
    return p->best > p->goal && gpuhal_os_processor_ns() < p->until_ns;
}

static void take_trial(planning *p, uint64_t total)
{
    memcpy(p->offsets, p->trial, p->box_count * sizeof *p->offsets);
    p->best = total;
}

/* Changes keys until `most` work is done or the goal is reached. */
static void change_keys(planning *p, uint64_t most)
{
    memory *m = p->memory;
    uint64_t work = 0;
    while (p->best > p->goal && work < most) {
        memcpy(m->trial_keys, m->keys, p->box_count * sizeof *m->keys);
        change(m->trial_keys, p->box_count, &p->random);
        const uint64_t total = gpuhal_skyline_fill(p->skyline, m->trial_keys, p->best, p->trial, &work);
        if (total <= p->best) {
            memcpy(m->keys, m->trial_keys, p->box_count * sizeof *m->keys);
            take_trial(p, total);
        }
    }
}

static uint64_t total_of(const planning *p, const uint64_t *offsets)
{
    uint64_t total = 0;
    for (uint32_t b = 0; b < p->box_count; b++) {
        const uint64_t end = offsets[b] + p->memory->boxes[b].height;
        total = end > total ? end : total;
    }
    return total;
}

/* First tries to reach the goal, which is often possible, then bisects between the goal and the best plan. Each try may
 * use half of the remaining time. With a capacity, there is only one try, which may use all of it. */
static void search_all(planning *p, gpuhal_plan_search *search, bool has_capacity)
{
    uint64_t low = p->goal;
    while (low < p->best && has_time(p) && !(has_capacity && low > p->goal)) {
        const uint64_t now = gpuhal_os_processor_ns(), left = p->until_ns - now;
        const uint64_t capacity = low == p->goal ? low : low + (p->best - low) / 2;
        const gpuhal_plan_result result =
            gpuhal_plan_search_run(search, capacity, has_capacity ? p->until_ns : now + left / 2 + 1, p->trial);
        if (result == GPUHAL_PLAN_FOUND) {
            take_trial(p, total_of(p, p->trial));
        } else {
            p->impossible = p->impossible || (capacity == p->goal && result == GPUHAL_PLAN_NONE);
            low = capacity + 1;
        }
    }
}

static gpuhal_status search(planning *p, bool has_capacity)
{
    uint64_t unused = 0;
    p->best = gpuhal_skyline_fill(p->skyline, p->memory->keys, UINT64_MAX, p->offsets, &unused);
    change_keys(p, WORK_MAX);
    if (!has_time(p) || p->goal < gpuhal_skyline_least(p->skyline)) {
        return GPUHAL_OK;
    }
    if (p->box_count <= GPUHAL_PLAN_SEARCH_BOXES_MAX && p->best <= GPUHAL_PLAN_SEARCH_CAPACITY_MAX) {
        gpuhal_plan_search *all = gpuhal_plan_search_create(p->memory->boxes, p->box_count, p->column_count);
        if (!all) {
            return gpuhal_error_host_memory();
        }
        search_all(p, all, has_capacity);
        gpuhal_plan_search_destroy(all);
    }
    while (!p->impossible && has_time(p)) {
        change_keys(p, WORK_MAX / 8);
    }
    return GPUHAL_OK;
}

/* Returns OK unless the plan exceeds the caller's capacity. */
static gpuhal_status judge(const planning *p, uint64_t capacity, const gpuhal_memory_plan_info *info)
{
    if (capacity == 0 || info->total_bytes <= capacity) {
        return GPUHAL_OK;
    }
    if (info->least_bytes > capacity) {
        return gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE,
                                "gpuhal_memory_plan: one step needs %" PRIu64
                                " bytes, more than the capacity of %" PRIu64,
                                info->least_bytes, capacity);
    }
    if (p->impossible) {
        return gpuhal_error_set(GPUHAL_ERROR_INFEASIBLE,
                                "gpuhal_memory_plan: no plan takes %" PRIu64 " bytes or less; the best that was found "
                                "takes %" PRIu64,
                                capacity, info->total_bytes);
    }
    return gpuhal_error_set(GPUHAL_ERROR_TIMEOUT,
                            "gpuhal_memory_plan: no plan of %" PRIu64 " bytes or less was found in the time; the best "
                            "one takes %" PRIu64 ", and none less than %" PRIu64,
                            capacity, info->total_bytes, info->least_bytes);
}

static gpuhal_status plan(const gpuhal_memory_plan_problem *problem, memory *m, uint64_t *out_offsets,
                          gpuhal_memory_plan_info *info)
{
    planning p = {.memory = m, .random = 1};
    const uint64_t begin_ns = gpuhal_os_processor_ns();
    p.until_ns = problem->search_ns < UINT64_MAX - begin_ns ? begin_ns + problem->search_ns : UINT64_MAX;
    make_boxes(problem, m->edges, m->boxes, &p.box_count, &p.column_count);
    gpuhal_status status = GPUHAL_OK;
    if (p.box_count > 0) {
        p.skyline = gpuhal_skyline_create(m->boxes, p.box_count, p.column_count);
        p.offsets = m->edges;
        p.trial = m->edges + p.box_count;
        if (!p.skyline) {
            return gpuhal_error_host_memory();
        }
        info->least_bytes = gpuhal_skyline_least(p.skyline);
        p.goal = problem->capacity_bytes > 0 ? problem->capacity_bytes : info->least_bytes;
        status = search(&p, problem->capacity_bytes > 0);
        gpuhal_skyline_destroy(p.skyline);
    }
    if (status) {
        return status;
    }
    info->total_bytes = p.best;
    for (uint32_t i = 0; i < problem->item_count; i++) {
        out_offsets[i] = 0;
    }
    for (uint32_t b = 0; b < p.box_count; b++) {
        out_offsets[m->boxes[b].item] = p.offsets[b];
    }
    return judge(&p, problem->capacity_bytes, info);
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
    const size_t count = (size_t)problem.item_count + 1; /* avoids allocations of 0 bytes */
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
    if (out_info && (!status || status == GPUHAL_ERROR_INFEASIBLE || status == GPUHAL_ERROR_TIMEOUT)) {
        info.size = out_info->size;
        memcpy(out_info, &info, info.size < sizeof info ? info.size : sizeof info);
    }
    return status;
}
