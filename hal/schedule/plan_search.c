/* schedule/plan_search.c: searches for a plan within a capacity (see plan_search.h).
 *
 * A search node has a list of the unplaced boxes of one part, and places one of them. Before the remaining boxes are
 * split into parts, a bound shows whether all of them can still fit. The bound also ends a node as soon as one of the
 * boxes tried at the node must come next.
 */
#include "schedule/plan_search_state.h"

#include "device/for_schedule.h"

#include <stdlib.h>
#include <string.h>

enum { ORDERS = 4, STEPS_PER_LOOK = 16 /* number of steps between clock reads */ };

/* A lower bound of the next box's offset and, at an equal offset, of its rank. */
typedef struct position {
    double offset;
    uint32_t rank;
} position;

typedef struct part {
    uint32_t first, last; /* sections */
    position from;
} part;

static double higher(double a, double b)
{
    return a > b ? a : b;
}

/* ---- remaining boxes */

static bool is_before(const tile *a, position b)
{
    return a->lowest != b.offset ? a->lowest < b.offset : a->rank < b.rank;
}

/* Uses insertion sort, because few positions change from one depth to the next. */
static void sort(const gpuhal_plan_search *s, uint16_t *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint16_t moved = list[i];
        const position place = {s->tiles[moved].lowest, s->tiles[moved].rank};
        uint32_t at = i;
        for (; at > 0 && !is_before(&s->tiles[list[at - 1]], place); at--) {
            list[at] = list[at - 1];
        }
        list[at] = moved;
    }
}

/* Returns the lowest position of a box that was passed over. Such a box can no longer be at its own lowest position; it
 * must lie on a box placed later. */
static double place_on_others(const gpuhal_plan_search *s, const tile *own, double from)
{
    double place = (double)UINT64_MAX;
    for (uint32_t n = own->neighbour; n < own->neighbours_end; n++) {
        const tile *other = &s->tiles[s->neighbours[n]];
        const double top = higher(other->lowest, from) + other->height;
        place = !other->placed && top < place ? top : place;
    }
    return place;
}

/* Returns the lowest position of a box if the next box is placed at `from` or later. */
static double place_from(const gpuhal_plan_search *s, const tile *own, position from)
{
    return is_before(own, from) ? place_on_others(s, own, from.offset) : own->lowest;
}

/* Records the positions of the boxes at a node, where all of them fit. fits() compares them with later positions. */
static void find_places(gpuhal_plan_search *s, const uint16_t *list, uint32_t count, position from)
{
    for (uint32_t i = 0; i < count; i++) {
        s->places[(size_t)(list - s->lists) + i] = place_from(s, &s->tiles[list[i]], from);
    }
}

/* The list of @p at elements is in descending order of positions. */
static void insert(fall *falling, uint32_t at, fall added)
{
    for (; at > 0 && falling[at - 1].place < added.place; at--) {
        falling[at] = falling[at - 1];
    }
    falling[at] = added;
}

/* Returns whether the unplaced boxes of a node's list can fit if the next box is placed at `from` or later. In each
 * section, a box and all boxes that are not lower must fit above the box's position. Skips the sections before and
 * after all boxes whose positions are higher than at the node, because their results cannot have changed. */
static bool fits(gpuhal_plan_search *s, const uint16_t *list, uint32_t count, position from)
{
    const double *before = &s->places[list - s->lists];
    uint32_t first = s->section_count, last = 0, fallen = 0;
    s->steps++;
    for (uint32_t i = 0; i < count; i++) {
        const tile *t = &s->tiles[list[i]];
        s->raised[i] = t->placed ? 0 : place_from(s, t, from);
        if (s->raised[i] > before[i]) {
            first = t->first < first ? t->first : first;
            last = t->last > last ? t->last : last;
        }
    }
    for (uint32_t i = count; i > 0 && first <= last; i--) {
        const tile *t = &s->tiles[list[i - 1]];
        if (!t->placed && t->first <= last && t->last >= first) {
            insert(s->falling, fallen++, (fall){s->raised[i - 1], list[i - 1]});
        }
    }
    for (uint32_t c = first; c <= last; c++) {
        s->sums[c] = 0;
    }
    for (uint32_t i = 0; i < fallen; i++) {
        const tile *t = &s->tiles[s->falling[i].tile];
        const uint32_t begin = t->first > first ? t->first : first, end = t->last < last ? t->last : last;
        double most = 0;
        for (uint32_t c = begin; c <= end; c++) {
            s->sums[c] += t->height;
            most = higher(most, s->sums[c]);
        }
        if (s->falling[i].place + most > s->capacity) {
            return false;
        }
    }
    return true;
}

/* ---- placing */

/* Places the box at its lowest position. Returns false if too little room is left above it for another box. */
static bool place(gpuhal_plan_search *s, tile *own)
{
    const double top = own->lowest + own->height;
    own->placed = true;
    own->offset = own->lowest;
    for (uint32_t c = own->first; c < own->last; c++) {
        s->spanning[c]--;
    }
    for (uint32_t n = own->neighbour; n < own->neighbours_end; n++) {
        tile *other = &s->tiles[s->neighbours[n]];
        if (!other->placed && other->lowest < top) {
            s->changes[s->change_end++] = (change){other->lowest, s->neighbours[n]};
            other->lowest = top;
            if (top + other->height > s->capacity) {
                return false;
            }
        }
    }
    return true;
}

static void take_back(gpuhal_plan_search *s, const uint16_t *list, uint32_t count, uint32_t changes)
{
    for (uint32_t i = 0; i < count; i++) {
        tile *t = &s->tiles[list[i]];
        for (uint32_t c = t->first; t->placed && c < t->last; c++) {
            s->spanning[c]++;
        }
        t->placed = false;
    }
    while (s->change_end > changes) {
        const change *last = &s->changes[--s->change_end];
        s->tiles[last->tile].lowest = last->before;
    }
}

/* Returns whether an identical earlier box of the list is not before `from`, and so leads to the same plans. */
static bool is_like_one_before(const gpuhal_plan_search *s, const uint16_t *list, uint32_t at, position from)
{
    const tile *own = &s->tiles[list[at]];
    bool found = false;
    for (uint32_t i = at; i > 0 && !found; i--) {
        const tile *other = &s->tiles[list[i - 1]];
        if (other->lowest != own->lowest || is_before(other, from)) {
            break;
        }
        found = other->height == own->height && other->first == own->first && other->last == own->last;
    }
    return found;
}

/* ---- orders */

static int by_keys(const void *left, const void *right)
{
    const ranking *a = left, *b = right;
    for (int i = 0; i < 3; i++) {
        if (a->keys[i] != b->keys[i]) {
            return a->keys[i] > b->keys[i] ? -1 : 1;
        }
    }
    return a->item < b->item ? -1 : 1;
}

static void sum_sections(gpuhal_plan_search *s, const uint16_t *list, uint32_t count, const part *own)
{
    memset(&s->sums[own->first], 0, (own->last - own->first + 1) * sizeof *s->sums);
    for (uint32_t i = 0; i < count; i++) {
        const tile *t = &s->tiles[list[i]];
        for (uint32_t c = t->first; c <= t->last; c++) {
            s->sums[c] += t->height;
        }
    }
}

/* Among boxes with the same position, the box in the fullest section, the longest or the largest box comes first,
 * depending on `order`. No order is good for all problems, but the right one often leads directly to a plan. */
static void rank(gpuhal_plan_search *s, const uint16_t *list, uint32_t count, const part *own)
{
    sum_sections(s, list, count, own);
    for (uint32_t i = 0; i < count; i++) {
        const tile *t = &s->tiles[list[i]];
        double most = 0;
        for (uint32_t c = t->first; c <= t->last; c++) {
            most = higher(most, s->sums[c]);
        }
        s->rankings[i] = s->order == 0   ? (ranking){{most, t->width, t->area}, t->item, list[i]}
                         : s->order == 1 ? (ranking){{most, t->area, t->width}, t->item, list[i]}
                         : s->order == 2 ? (ranking){{t->width, t->area, most}, t->item, list[i]}
                                         : (ranking){{t->area, t->width, most}, t->item, list[i]};
    }
    qsort(s->rankings, count, sizeof *s->rankings, by_keys);
    for (uint32_t i = 0; i < count; i++) {
        s->tiles[s->rankings[i].tile].rank = i + 1;
    }
}

/* ---- the search */

static gpuhal_plan_result solve(gpuhal_plan_search *s, uint16_t *list, uint32_t count, const part *own);

/* Moves the tiles that begin in section `last` or earlier. Returns their number. */
static uint32_t move_to_front(const gpuhal_plan_search *s, uint16_t *list, uint32_t count, uint32_t last)
{
    uint32_t moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint16_t own = list[i];
        if (s->tiles[own].first <= last) {
            list[i] = list[moved];
            list[moved++] = own;
        }
    }
    return moved;
}

/* Solves a part that was split off, with new ranks from the boxes left in its sections, because many problems are not
 * solved with the ranks of the whole problem. */
static gpuhal_plan_result solve_ranked(gpuhal_plan_search *s, uint16_t *list, uint32_t count, const part *own)
{
    rank_change *changes = &s->rank_changes[list - s->lists];
    for (uint32_t i = 0; i < count; i++) {
        changes[i] = (rank_change){list[i], (uint16_t)s->tiles[list[i]].rank};
    }
    rank(s, list, count, own);
    const gpuhal_plan_result result = solve(s, list, count, own);
    for (uint32_t i = 0; i < count; i++) {
        s->tiles[changes[i].tile].rank = changes[i].before;
    }
    return result;
}

static gpuhal_plan_result solve_parts(gpuhal_plan_search *s, const uint16_t *list, uint32_t count, const part *own)
{
    uint16_t *left = &s->lists[s->list_end];
    uint32_t left_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!s->tiles[list[i]].placed) {
            left[left_count++] = list[i];
        }
    }
    const uint32_t list_end = s->list_end;
    gpuhal_plan_result result = GPUHAL_PLAN_FOUND;
    s->list_end += left_count;
    for (uint32_t c = own->first, first = own->first; left_count > 0 && result == GPUHAL_PLAN_FOUND; c++) {
        if (c < own->last && s->spanning[c] > 0) {
            continue;
        }
        const part inner = {first, c, {own->from.offset, 0 /* below all new ranks */}};
        const uint32_t inner_count = move_to_front(s, left, left_count, c);
        if (first == own->first && c == own->last) {
            result = solve(s, left, left_count, own);
        } else if (inner_count > 0) {
            result = solve_ranked(s, left, inner_count, &inner);
        }
        left += inner_count;
        left_count -= inner_count;
        first = c + 1;
    }
    s->list_end = list_end;
    return result;
}

static bool is_over(gpuhal_plan_search *s)
{
    bool over = s->steps >= s->step_limit;
    if (s->steps >= s->next_look) {
        s->next_look = s->steps + STEPS_PER_LOOK;
        over = over || gpuhal_os_processor_ns() >= s->until_ns;
    }
    return over;
}

/* Never places a box so high that another box fits beneath it, nor lower than the previous box. */
static gpuhal_plan_result solve(gpuhal_plan_search *s, uint16_t *list, uint32_t count, const part *own)
{
    double room = (double)UINT64_MAX;
    sort(s, list, count);
    find_places(s, list, count, own->from);
    for (uint32_t i = 0; i < count; i++) {
        const double top = s->tiles[list[i]].lowest + s->tiles[list[i]].height;
        room = top < room ? top : room;
    }
    bool tried = false;
    for (uint32_t i = 0; i < count; i++) {
        tile *t = &s->tiles[list[i]];
        const position at = {t->lowest, t->rank};
        if (t->lowest >= room) {
            break;
        }
        if (is_before(t, own->from) || is_like_one_before(s, list, i, own->from)) {
            continue;
        }
        if (is_over(s)) {
            return GPUHAL_PLAN_STOPPED;
        }
        if (tried && !fits(s, list, count, at)) {
            break; /* one of the tried boxes must come next */
        }
        tried = true;
        const uint32_t changes = s->change_end;
        gpuhal_plan_result result = GPUHAL_PLAN_NONE;
        if (place(s, t) && fits(s, list, count, at)) {
            result = solve_parts(s, list, count, &(part){own->first, own->last, at});
        }
        if (result == GPUHAL_PLAN_FOUND) {
            return result;
        }
        take_back(s, list, count, changes);
        if (result == GPUHAL_PLAN_STOPPED) {
            return result;
        }
    }
    return GPUHAL_PLAN_NONE;
}

static gpuhal_plan_result solve_in_order(gpuhal_plan_search *s, uint32_t order)
{
    const part whole = {0, s->section_count - 1, {0, 0}};
    memset(s->spanning, 0, s->section_count * sizeof *s->spanning);
    for (uint32_t i = 0; i < s->count; i++) {
        tile *t = &s->tiles[i];
        t->lowest = 0;
        t->placed = false;
        for (uint32_t c = t->first; c < t->last; c++) {
            s->spanning[c]++;
        }
        s->lists[i] = (uint16_t)i;
    }
    s->list_end = s->count;
    s->change_end = 0;
    s->steps = s->next_look = 0;
    s->order = order;
    rank(s, s->lists, s->count, &whole);
    for (uint32_t c = 0; c < s->section_count; c++) {
        if (s->sums[c] > s->capacity) {
            return GPUHAL_PLAN_NONE;
        }
    }
    return solve_parts(s, s->lists, s->count, &whole);
}

gpuhal_plan_result gpuhal_plan_search_run(gpuhal_plan_search *s, uint64_t capacity, uint64_t until_ns,
                                          uint64_t *out_offsets)
{
    gpuhal_plan_result result = GPUHAL_PLAN_STOPPED;
    s->capacity = (double)capacity;
    s->until_ns = until_ns;
    s->step_limit = 8 * (uint64_t)s->count;
    while (result == GPUHAL_PLAN_STOPPED && gpuhal_os_processor_ns() < until_ns) {
        for (uint32_t order = 0; order < ORDERS && result == GPUHAL_PLAN_STOPPED; order++) {
            result = solve_in_order(s, order);
        }
        s->step_limit *= 2;
    }
    for (uint32_t i = 0; result == GPUHAL_PLAN_FOUND && i < s->count; i++) {
        out_offsets[i] = (uint64_t)s->tiles[i].offset;
    }
    return result;
}
