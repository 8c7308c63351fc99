/* schedule/place_search.c: finds the best ranges for given orders, by dynamic programming.
 *
 * best(state, last, j) is the lowest cost of placing the layers before j on the devices of the state, with the last
 * range on `last`. It is computed from arrive(i), which is the lowest cost of placing the layers before i on the
 * preceding devices, including the transfer to `last`. Since a range's cost is a difference of sums, the minimum over
 * all i of a window is a sliding minimum. A column is removed from the queue when a later column is at least as good.
 */
#include "schedule/place.h"

#include "device/for_schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct search {
    gpuhal_place_model *model;
    const gpuhal_place_order *order;
    gpuhal_place_bound bound;
    gpuhal_cost *best;   /* rows × columns */
    gpuhal_cost *arrive; /* one row */
} search;

static const gpuhal_cost unreachable = {INFINITY, INFINITY};

/* Returns the link to a device of another class, or to another device of the same class. */
static gpuhal_place_line line_of(const search *s, uint32_t from, uint32_t to)
{
    return gpuhal_place_line_of(s->model, gpuhal_place_device(s->order, from),
                                gpuhal_place_next_device(s->order, from, to));
}

/* Returns the cost of a range on `device`, without the cost of its layers. */
static gpuhal_cost begin_cost(const gpuhal_place_model *model, uint32_t device)
{
    return (gpuhal_cost){.first = model->problem->objective == GPUHAL_PLACEMENT_FEWEST_DEVICES,
                         .second = model->problem->devices[device].start_seconds};
}

static gpuhal_cost sum_at(const gpuhal_place_model *model, uint32_t device, uint32_t column)
{
    const size_t cell = device * model->columns + column;
    return (gpuhal_cost){.first = model->moved ? model->moved[cell] : 0, .second = model->seconds[cell]};
}

static gpuhal_cost plus(gpuhal_cost a, gpuhal_cost b)
{
    return (gpuhal_cost){a.first + b.first, a.second + b.second};
}

static gpuhal_cost minus(gpuhal_cost a, gpuhal_cost b)
{
    return (gpuhal_cost){a.first - b.first, a.second - b.second};
}

/* An iterator over possible predecessors: all lower states in a fixed order, else the state with one device less. */
typedef struct from {
    uint64_t state, end;
    uint32_t last; /* last device in `state` to try next */
} from;

static from first_from(const gpuhal_place_order *order, uint64_t state, uint32_t last)
{
    const uint64_t before = gpuhal_place_before(order, state, last);
    return order->is_free ? (from){before, before + 1, 0} : (from){0, before + 1, 0};
}

static bool next_from(const gpuhal_place_order *order, from *f, uint64_t *out_state, uint32_t *out_last)
{
    for (; f->state < f->end; f->state++, f->last = 0) {
        if (!order->is_free && f->state > 0 && f->last == 0) {
            f->last = (uint32_t)f->state - 1; /* the only candidate */
        }
        const uint32_t count = order->is_free ? order->count : (uint32_t)f->state;
        while (f->state > 0 && f->last < count) {
            const uint32_t last = f->last++;
            if (gpuhal_place_has_last(order, f->state, last)) {
                *out_state = f->state;
                *out_last = last;
                return true;
            }
        }
    }
    return false;
}

/* Adds the cost of the transfer over the link after the layers before `column`, which must not be 0. */
static gpuhal_cost step(const search *s, gpuhal_cost before, gpuhal_place_line line, uint32_t column)
{
    const double bytes = (double)s->model->problem->layers[column - 1].output_bytes;
    const double seconds = line.latency + bytes * line.per_byte;
    return seconds > s->bound.seconds ? unreachable : (gpuhal_cost){before.first, before.second + seconds};
}

static const gpuhal_cost *best_of(const search *s, uint64_t state, uint32_t last)
{
    return &s->best[gpuhal_place_row(s->order, state, last) * s->model->columns];
}

static void fill_arrive(search *s, uint64_t state, uint32_t last)
{
    const uint32_t layers = s->model->layer_count;
    for (uint32_t i = 0; i < layers; i++) {
        s->arrive[i] = unreachable;
    }
    from f = first_from(s->order, state, last);
    if (f.state == 0) {
        s->arrive[0] = (gpuhal_cost){0, 0};
    }
    uint64_t before = 0;
    for (uint32_t from_last = 0; next_from(s->order, &f, &before, &from_last);) {
        const gpuhal_cost *best = best_of(s, before, from_last);
        const gpuhal_place_line line = line_of(s, from_last, last);
        for (uint32_t i = 1; i < layers && gpuhal_is_finite(line.latency); i++) {
            const gpuhal_cost cost = step(s, best[i], line, i);
            if (gpuhal_cost_less(cost, s->arrive[i])) {
                s->arrive[i] = cost;
            }
        }
    }
}

/* The queue contains only columns that a later window may use. Their costs increase from head to end. */
static void fill_best(search *s, uint64_t state, uint32_t last)
{
    gpuhal_place_model *model = s->model;
    const uint32_t device = gpuhal_place_device(s->order, last);
    const uint32_t *window = &model->window[device * model->columns];
    gpuhal_cost *best = &s->best[gpuhal_place_row(s->order, state, last) * model->columns];
    const gpuhal_cost begin = begin_cost(model, device);
    uint32_t head = 0, length = 0;
    best[0] = unreachable;
    for (uint32_t past = 1; past <= model->layer_count; past++) {
        const uint32_t column = past - 1;
        if (gpuhal_is_finite(s->arrive[column].first)) {
            const gpuhal_cost cost = minus(s->arrive[column], sum_at(model, device, column));
            while (length > 0) {
                const uint32_t tail = model->queue[head + length - 1];
                if (gpuhal_cost_less(minus(s->arrive[tail], sum_at(model, device, tail)), cost)) {
                    break;
                }
                length--;
            }
            model->queue[head + length++] = column;
        }
        while (length > 0 && model->queue[head] < window[past]) {
            head++;
            length--;
        }
        best[past] = unreachable;
        if (length > 0) {
            const uint32_t first = model->queue[head];
            const gpuhal_cost cost = minus(s->arrive[first], sum_at(model, device, first));
            best[past] = plus(cost, plus(sum_at(model, device, past), begin));
        }
    }
}

/* Returns the first layer of the range on `last` that ends before `past`. */
static uint32_t first_of(const search *s, uint32_t last, uint32_t past)
{
    const gpuhal_place_model *model = s->model;
    const uint32_t device = gpuhal_place_device(s->order, last);
    uint32_t found = past;
    gpuhal_cost least = unreachable;
    for (uint32_t first = model->window[device * model->columns + past]; first < past; first++) {
        if (gpuhal_is_finite(s->arrive[first].first)) {
            const gpuhal_cost cost = minus(s->arrive[first], sum_at(model, device, first));
            if (found == past || gpuhal_cost_less(cost, least)) {
                least = cost;
                found = first;
            }
        }
    }
    return found;
}

/* Reconstructs the ranges from the last one backwards. */
static void trace(search *s, uint64_t state, uint32_t last, gpuhal_place_ranges *out_ranges)
{
    uint32_t past = s->model->layer_count;
    gpuhal_place_ranges ranges = {0}; /* in reverse order, with classes instead of devices */
    while (past > 0) {
        fill_arrive(s, state, last);
        const uint32_t first = first_of(s, last, past);
        ranges.list[ranges.count++] = (gpuhal_place_range){.device = last, .first = first, .past = past};
        from f = first_from(s->order, state, last);
        uint64_t before = 0, from_state = 0;
        uint32_t from_last = 0;
        gpuhal_cost least = unreachable;
        for (uint32_t at = 0; first > 0 && next_from(s->order, &f, &before, &at);) {
            const gpuhal_place_line line = line_of(s, at, last);
            const gpuhal_cost cost = step(s, best_of(s, before, at)[first], line, first);
            if (gpuhal_is_finite(line.latency) && gpuhal_cost_less(cost, least)) {
                least = cost;
                from_state = before;
                from_last = at;
            }
        }
        state = from_state;
        last = from_last;
        past = first;
    }
    uint32_t used[GPUHAL_PLACEMENT_DEVICES_MAX] = {0}; /* number of used devices of each class */
    out_ranges->count = ranges.count;
    for (uint32_t i = 0; i < ranges.count; i++) {
        gpuhal_place_range *range = &out_ranges->list[i];
        *range = ranges.list[ranges.count - 1 - i];
        last = range->device;
        range->device = s->order->devices[s->order->first[last] + used[last]++];
    }
}

gpuhal_status gpuhal_place_search(gpuhal_place_model *model, const gpuhal_place_order *order, gpuhal_place_bound bound,
                                  gpuhal_cost *out_cost, gpuhal_place_ranges *out_ranges)
{
    search s = {.model = model, .order = order, .bound = bound};
    s.best = malloc(gpuhal_place_rows(order) * model->columns * sizeof *s.best);
    s.arrive = malloc(model->columns * sizeof *s.arrive);
    *out_cost = unreachable;
    if (!s.best || !s.arrive) {
        free(s.best);
        free(s.arrive);
        return gpuhal_error_host_memory();
    }
    uint64_t best_state = 0;
    uint32_t best_last = 0;
    for (uint64_t state = 1; state < order->states; state++) {
        for (uint32_t last = 0; last < order->count; last++) {
            if (gpuhal_place_has_last(order, state, last)) {
                fill_arrive(&s, state, last);
                fill_best(&s, state, last);
                const gpuhal_cost cost = best_of(&s, state, last)[model->layer_count];
                if (gpuhal_cost_less(cost, *out_cost)) {
                    *out_cost = cost;
                    best_state = state;
                    best_last = last;
                }
            }
        }
    }
    if (out_ranges) {
        out_ranges->count = 0;
        if (gpuhal_is_finite(out_cost->first)) {
            trace(&s, best_state, best_last, out_ranges);
        }
    }
    free(s.best);
    free(s.arrive);
    return GPUHAL_OK;
}

/* ---- feasibility: the same search with one bit in place of each cost */

static size_t words_of(const gpuhal_place_model *model)
{
    return (model->columns + 63) / 64;
}

size_t gpuhal_place_bit_words(const gpuhal_place_model *model, const gpuhal_place_order *order)
{
    return (gpuhal_place_rows(order) + 1) * words_of(model);
}

static bool bit(const uint64_t *bits, uint32_t column)
{
    return bits[column / 64] >> column % 64 & 1;
}

/* Adds the columns that are reachable over the link: all of them if even the largest output is within the bound. */
static void arrive_bits(const search *s, const uint64_t *reached, uint32_t from_last, uint32_t to, uint64_t *out_bits)
{
    const gpuhal_place_model *model = s->model;
    const gpuhal_placement_layer *layers = model->problem->layers;
    const gpuhal_place_line line = line_of(s, from_last, to);
    const bool all = line.latency + (double)model->output_max * line.per_byte <= s->bound.seconds;
    const bool any = gpuhal_is_finite(line.latency) && line.latency <= s->bound.seconds;
    for (size_t word = 0; word < words_of(model) && any; word++) {
        uint64_t bits = reached[word];
        for (uint64_t left = all ? 0 : bits; left; left &= left - 1) {
            const uint32_t column = (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(left);
            const double seconds = line.latency + (double)layers[column - 1].output_bytes * line.per_byte;
            bits &= seconds > s->bound.seconds ? ~(left & -left) : ~(uint64_t)0;
        }
        out_bits[word] |= bits;
    }
}

/* Sets a bit for each possible end of a range that begins at a column of `arrive`. */
static void range_bits(const gpuhal_place_model *model, uint32_t device, const uint64_t *arrive, uint64_t *out_bits)
{
    const uint32_t *window = &model->window[device * model->columns];
    uint32_t newest = UINT32_MAX; /* last column of `arrive` below `past`, whose ranges reach furthest */
    memset(out_bits, 0, words_of(model) * sizeof *out_bits);
    for (uint32_t past = 1; past <= model->layer_count; past++) {
        newest = bit(arrive, past - 1) ? past - 1 : newest;
        if (newest != UINT32_MAX && newest >= window[past]) {
            out_bits[past / 64] |= (uint64_t)1 << past % 64;
        }
    }
}

bool gpuhal_place_is_possible(gpuhal_place_model *model, const gpuhal_place_order *order, gpuhal_place_bound bound,
                              uint64_t *bits)
{
    const size_t words = words_of(model);
    const search s = {.model = model, .order = order, .bound = bound};
    uint64_t *arrive = bits + gpuhal_place_rows(order) * words;
    bool possible = false;
    for (uint64_t state = 1; state < order->states && !possible; state++) {
        for (uint32_t last = 0; last < order->count && !possible; last++) {
            if (!gpuhal_place_has_last(order, state, last)) {
                continue;
            }
            memset(arrive, 0, words * sizeof *arrive);
            from f = first_from(order, state, last);
            arrive[0] = f.state == 0;
            uint64_t before = 0;
            for (uint32_t at = 0; next_from(order, &f, &before, &at);) {
                arrive_bits(&s, &bits[gpuhal_place_row(order, before, at) * words], at, last, arrive);
            }
            uint64_t *own = &bits[gpuhal_place_row(order, state, last) * words];
            range_bits(model, gpuhal_place_device(order, last), arrive, own);
            possible = bit(own, model->layer_count);
        }
    }
    return possible;
}
