/* schedule/assign_search.c: finds a unit for each item, by depth-first search in the policy's order. The search
 * depends only on the problem. */
#include "schedule/assign.h"

#include <stdlib.h>
#include <string.h>

enum { USUAL_EFFORT = 100000, KEYS = 4 };

/* Units with smaller keys are tried first; ties are broken by the unit's number. */
typedef struct key {
    uint64_t of[KEYS];
    uint32_t unit;
} key;

typedef struct frame {
    key tried;
    bool placed;
    uint64_t used_before, limited_before;
    uint32_t next_before;
} frame;

typedef struct search {
    const gpuhal_assign_problem *problem;
    const uint32_t *order; /* items in search order */
    uint64_t left;         /* remaining effort */
    uint32_t unit_limit;   /* maximum number of units, or UINT32_MAX */
    uint32_t step_limit;   /* maximum number of steps on one unit */
    uint32_t next;         /* ROUND_ROBIN: next unit */
    uint32_t units_used;
    uint32_t deepest;  /* number of items placed before the first backtracking */
    bool packs;        /* use PACK in place of the policy */
    bool without_cpu;  /* do not use a CPU that is only a fallback */
    uint64_t *used;    /* bytes on each unit */
    uint64_t *limited; /* bytes on each offer with a limit */
    uint64_t *busy;
    uint32_t *steps, *items;
    uint32_t *chosen;
    frame *frames;
} search;

static bool is_former(const gpuhal_assign_item *item, uint32_t unit)
{
    return item->former == unit && unit != GPUHAL_NONE;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Returns the bytes on the unit with the item. If the item already runs there, its bytes are not counted twice. */
static uint64_t used_with(const search *own, const gpuhal_assign_item *item, uint32_t unit)
{
    const uint64_t used = own->used[unit], bytes = item->runs && is_former(item, unit) ? 0 : item->bytes;
    return own->problem->in_turn ? (used > bytes ? used : bytes) : add(used, bytes);
}

static uint64_t left_of(uint64_t room, uint64_t used)
{
    return room == GPUHAL_UNKNOWN_BYTES ? room : room > used ? room - used : 0;
}

static uint32_t load_with(const search *own, const gpuhal_assign_item *item, uint32_t unit)
{
    const gpuhal_assign_unit *on = &own->problem->units[unit];
    const uint64_t added = own->busy[unit] + (item->runs && is_former(item, unit) ? 0 : item->busy_permille);
    return gpuhal_load(on->total_bytes, left_of(on->free_bytes, used_with(own, item, unit)), on->busy_permille,
                       added + on->promised_permille);
}

static const gpuhal_assign_place *place_of(const search *own, uint32_t item, uint32_t unit)
{
    return &own->problem->places[(size_t)item * own->problem->unit_count + unit];
}

/* Returns the bytes that count against the offer's limit with the item on the unit. */
static uint64_t limited_with(const search *own, const gpuhal_assign_item *item, uint32_t unit,
                             const gpuhal_assign_place *place)
{
    const uint64_t used = own->limited[place->offer], bytes = item->runs && is_former(item, unit) ? 0 : item->bytes;
    return own->problem->in_turn ? (used > bytes ? used : bytes) : add(used, bytes);
}

static uint64_t left_with(const search *own, uint32_t index, uint32_t unit)
{
    const gpuhal_assign_item *item = &own->problem->items[index];
    const gpuhal_assign_place *place = place_of(own, index, unit);
    const uint64_t left = left_of(place->room, used_with(own, item, unit));
    const uint64_t by_limit =
        place->limited ? left_of(place->limit, limited_with(own, item, unit, place)) : GPUHAL_UNKNOWN_BYTES;
    return by_limit < left ? by_limit : left;
}

static bool has_room(const search *own, uint32_t index, uint32_t unit)
{
    const gpuhal_assign_item *item = &own->problem->items[index];
    const gpuhal_assign_place *place = place_of(own, index, unit);
    return place->offer != GPUHAL_NONE && !(place->last && own->without_cpu) &&
           (place->room == GPUHAL_UNKNOWN_BYTES || used_with(own, item, unit) <= place->room) &&
           (!place->limited || limited_with(own, item, unit, place) <= place->limit) &&
           (own->items[unit] > 0 || own->units_used < own->unit_limit) &&
           item->steps <= own->step_limit - own->steps[unit];
}

static bool has_group(const search *own, uint32_t depth, uint32_t unit)
{
    const uint32_t group = own->problem->items[own->order[depth]].group;
    bool has = false;
    for (uint32_t d = 0; group != 0 && d < depth && !has; d++) {
        has = own->problem->items[own->order[d]].group == group && own->chosen[own->order[d]] == unit;
    }
    return has;
}

/* Returns the lowest load that a unit with room, other than a fallback CPU, would have with the item, or
 * GPUHAL_UNKNOWN_PERMILLE. */
static uint32_t least_load(const search *own, uint32_t index)
{
    uint32_t least = GPUHAL_UNKNOWN_PERMILLE;
    for (uint32_t u = 0; u < own->problem->unit_count; u++) {
        if (has_room(own, index, u) && !place_of(own, index, u)->last) {
            const uint32_t load = load_with(own, &own->problem->items[index], u);
            least = load < least ? load : least;
        }
    }
    return least;
}

static void set_policy(const search *own, uint32_t index, uint32_t unit, uint32_t least, key *out)
{
    const gpuhal_assign_problem *problem = own->problem;
    const gpuhal_assign_item *item = &problem->items[index];
    const uint64_t left = left_with(own, index, unit);
    switch (own->packs ? (gpuhal_assign_policy)GPUHAL_ASSIGN_PACK : problem->policy) {
    case GPUHAL_ASSIGN_ROUND_ROBIN:
        out->of[2] = (unit + problem->unit_count - own->next) % problem->unit_count;
        break;
    case GPUHAL_ASSIGN_SPREAD:
        out->of[2] = own->steps[unit];
        break;
    case GPUHAL_ASSIGN_PACK: /* used units first, then units with fewer bytes left */
        out->of[2] = own->items[unit] == 0;
        out->of[3] = left;
        break;
    case GPUHAL_ASSIGN_MOST_FREE: /* unknown values last */
        out->of[2] = UINT64_MAX - (left == GPUHAL_UNKNOWN_BYTES ? 0 : left);
        break;
    case GPUHAL_ASSIGN_LEAST_LOADED: {
        const uint32_t load = load_with(own, item, unit);
        const bool kept = is_former(item, unit) && load != GPUHAL_UNKNOWN_PERMILLE &&
                          load <= (uint64_t)least + problem->margin_permille;
        out->of[2] = kept ? 0 : (uint64_t)load + 1;
        out->of[3] = UINT64_MAX - (left == GPUHAL_UNKNOWN_BYTES ? 0 : left);
        break;
    }
    default: /* FIRST: in order of unit numbers */
        break;
    }
}

static bool comes_before(const key *a, const key *b)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        if (a->of[i] != b->of[i]) {
            return a->of[i] < b->of[i];
        }
    }
    return a->unit < b->unit;
}

static bool next_unit(const search *own, uint32_t depth, const key *tried, key *out)
{
    const uint32_t index = own->order[depth];
    const bool by_load = !own->packs && own->problem->policy == GPUHAL_ASSIGN_LEAST_LOADED;
    const uint32_t least = by_load ? least_load(own, index) : 0;
    bool found = false;
    for (uint32_t u = 0; u < own->problem->unit_count; u++) {
        if (has_room(own, index, u)) {
            key one = {.of = {place_of(own, index, u)->last, !has_group(own, depth, u)}, .unit = u};
            set_policy(own, index, u, least, &one);
            if ((!tried || comes_before(tried, &one)) && (!found || comes_before(&one, out))) {
                *out = one;
                found = true;
            }
        }
    }
    return found;
}

static void put(search *own, uint32_t depth, const key *to)
{
    const uint32_t index = own->order[depth], unit = to->unit;
    const gpuhal_assign_item *item = &own->problem->items[index];
    own->frames[depth] =
        (frame){.tried = *to, .placed = true, .used_before = own->used[unit], .next_before = own->next};
    own->used[unit] = used_with(own, item, unit);
    const gpuhal_assign_place *place = place_of(own, index, unit);
    if (place->limited) {
        own->frames[depth].limited_before = own->limited[place->offer];
        own->limited[place->offer] = limited_with(own, item, unit, place);
    }
    own->busy[unit] += item->runs && is_former(item, unit) ? 0 : item->busy_permille;
    own->units_used += own->items[unit]++ == 0;
    own->steps[unit] += item->steps;
    own->chosen[index] = unit;
    own->next = (unit + 1) % own->problem->unit_count;
}

static void take_back(search *own, uint32_t depth)
{
    const frame *from = &own->frames[depth];
    const gpuhal_assign_item *item = &own->problem->items[own->order[depth]];
    const uint32_t unit = from->tried.unit;
    const gpuhal_assign_place *place = place_of(own, own->order[depth], unit);
    own->used[unit] = from->used_before;
    if (place->limited) {
        own->limited[place->offer] = from->limited_before;
    }
    own->busy[unit] -= item->runs && is_former(item, unit) ? 0 : item->busy_permille;
    own->units_used -= --own->items[unit] == 0;
    own->steps[unit] -= item->steps;
    own->next = from->next_before;
}

static gpuhal_assign_result descend(search *own)
{
    const gpuhal_assign_problem *problem = own->problem;
    const size_t units = problem->unit_count;
    uint32_t depth = 0;
    memset(own->used, 0, units * sizeof *own->used);
    memset(own->limited, 0, problem->offer_count * sizeof *own->limited);
    memset(own->busy, 0, units * sizeof *own->busy);
    memset(own->steps, 0, units * sizeof *own->steps);
    memset(own->items, 0, units * sizeof *own->items);
    memset(own->frames, 0, ((size_t)problem->item_count + 1) * sizeof *own->frames);
    own->next = units ? problem->start % problem->unit_count : 0;
    own->units_used = own->deepest = 0;
    bool returned = false;
    while (depth < problem->item_count) {
        key to = {{0}, 0};
        frame *at = &own->frames[depth];
        if (at->placed) {
            take_back(own, depth);
        }
        if (!next_unit(own, depth, at->placed ? &at->tried : NULL, &to)) {
            at->placed = false;
            returned = true;
            if (depth-- == 0) {
                return GPUHAL_ASSIGN_IMPOSSIBLE;
            }
            continue;
        }
        if (own->left-- == 0) {
            own->left = 0;
            return GPUHAL_ASSIGN_GAVE_UP;
        }
        put(own, depth++, &to);
        own->deepest = !returned && depth > own->deepest ? depth : own->deepest;
    }
    return GPUHAL_ASSIGN_FOUND;
}

/* Tries strict limits first, so the first feasible limit is the best. */
static gpuhal_assign_result descend_by_limits(search *own)
{
    const bool packs = own->problem->policy == GPUHAL_ASSIGN_PACK;
    const uint64_t units = own->problem->unit_count;
    gpuhal_assign_result result = GPUHAL_ASSIGN_IMPOSSIBLE;
    uint64_t steps = 0, most = 1;
    for (uint32_t i = 0; i < own->problem->item_count; i++) {
        steps += own->problem->items[i].steps;
        most = own->problem->items[i].steps > most ? own->problem->items[i].steps : most;
    }
    const uint64_t even = units ? (steps + units - 1) / units : 1, last = packs ? units : steps;
    uint64_t limit = packs ? 1 : even > most ? even : most;
    for (; limit <= last && result == GPUHAL_ASSIGN_IMPOSSIBLE; limit++) {
        *(packs ? &own->unit_limit : &own->step_limit) = (uint32_t)limit;
        result = descend(own);
    }
    own->unit_limit = own->step_limit = UINT32_MAX;
    return result;
}

/* Sorts items by size, largest first. The search may succeed in this order after giving up in the original one. */
static void order_by_size(const gpuhal_assign_problem *problem, uint32_t *order)
{
    for (uint32_t i = 1; i < problem->item_count; i++) {
        const uint32_t item = order[i];
        uint32_t at = i;
        for (; at > 0 && problem->items[order[at - 1]].bytes < problem->items[item].bytes; at--) {
            order[at] = order[at - 1];
        }
        order[at] = item;
    }
}

static gpuhal_assign_result attempt(search *own, bool has_limits, uint32_t *order, uint32_t *out_stuck)
{
    const gpuhal_assign_problem *problem = own->problem;
    const uint64_t effort = (problem->effort ? problem->effort : USUAL_EFFORT) + problem->item_count;
    gpuhal_assign_result result = GPUHAL_ASSIGN_GAVE_UP;
    for (uint32_t i = 0; i < problem->item_count; i++) {
        order[i] = i;
    }
    own->packs = false;
    own->left = effort;
    if (has_limits) {
        result = descend_by_limits(own);
        own->left = effort;
    }
    if (result != GPUHAL_ASSIGN_FOUND) { /* without limits, this also finds the item that is stuck */
        result = descend(own);
        *out_stuck = own->deepest < problem->item_count ? order[own->deepest] : 0;
    }
    if (result == GPUHAL_ASSIGN_GAVE_UP) {
        order_by_size(problem, order);
        own->packs = true;
        own->left = effort;
        result = descend(own);
    }
    return result;
}

/* A fallback CPU is used only if no assignment is found without it. Limits must not force items onto the CPU. */
static gpuhal_assign_result run(search *own, uint32_t *order, uint32_t *out_stuck)
{
    const gpuhal_assign_problem *problem = own->problem;
    const bool has_limits = problem->policy == GPUHAL_ASSIGN_PACK || problem->policy == GPUHAL_ASSIGN_SPREAD;
    bool has_cpu = false;
    for (size_t i = 0; i < (size_t)problem->item_count * problem->unit_count && !has_cpu; i++) {
        has_cpu = problem->places[i].offer != GPUHAL_NONE && problem->places[i].last;
    }
    own->unit_limit = own->step_limit = UINT32_MAX;
    own->without_cpu = has_cpu;
    gpuhal_assign_result result = attempt(own, has_limits, order, out_stuck);
    if (has_cpu && result != GPUHAL_ASSIGN_FOUND) {
        own->without_cpu = false;
        result = attempt(own, false, order, out_stuck);
    }
    return result;
}

gpuhal_assign_result gpuhal_assign_search(const gpuhal_assign_problem *problem, uint32_t *out_units,
                                          uint32_t *out_stuck)
{
    const size_t units = (size_t)problem->unit_count + 1, items = (size_t)problem->item_count + 1;
    uint32_t *order = calloc(items, sizeof *order);
    search own = {
        .problem = problem,
        .order = order,
        .used = calloc(units, sizeof *own.used),
        .limited = calloc((size_t)problem->offer_count + 1, sizeof *own.limited),
        .busy = calloc(units, sizeof *own.busy),
        .steps = calloc(units, sizeof *own.steps),
        .items = calloc(units, sizeof *own.items),
        .chosen = out_units,
        .frames = calloc(items, sizeof *own.frames),
    };
    gpuhal_assign_result result = GPUHAL_ASSIGN_NO_MEMORY;
    *out_stuck = 0;
    if (order && own.used && own.limited && own.busy && own.steps && own.items && own.frames) {
        result = run(&own, order, out_stuck);
    }
    free(order);
    free(own.used);
    free(own.limited);
    free(own.busy);
    free(own.steps);
    free(own.items);
    free(own.frames);
    return result;
}
