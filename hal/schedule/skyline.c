/* schedule/skyline.c: drops boxes onto a floor of columns (see skyline.h).
 *
 * Each choice examines at most CANDIDATES_MAX boxes. All other operations are searches in a tree or a heap, so placing
 * n boxes takes O(n log n) time. A segment is identified by its first column.
 */
#include "schedule/skyline.h"

#include <stdlib.h>
#include <string.h>

enum {
    NONE = UINT32_MAX,
    CANDIDATES_MAX = 256, /* number of boxes that one choice examines, from the left */
    FINALISTS = 3         /* number of boxes whose losses are compared */
};

/* Leaf c of the tree is column c. `added` applies to all leaves below the node. */
typedef struct node {
    uint64_t most, added; /* maximum of the leaves below, including `added` */
} node;

typedef struct segment {
    uint64_t height;
    uint32_t end;  /* last column */
    uint32_t left; /* previous segment, or NONE */
    uint32_t heap; /* index in the heap */
} segment;

struct gpuhal_skyline {
    const gpuhal_skyline_box *boxes; /* sorted by first column, then longest first */
    uint32_t box_count, column_count;
    uint32_t box_leaves, column_leaves; /* powers of two */
    uint32_t *starts;                   /* first box that begins in the column or later; column_count + 1 entries */
    uint32_t *ends, *all_ends; /* tree with the lowest last column of the unplaced boxes below each node, or NONE;
                                * initial state of the tree */
    node *potentials, *all_potentials;
    segment *segments;
    uint32_t *heap; /* segments; the lowest segment is on top, the leftmost one if heights are equal */
    uint32_t heap_count;
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- potentials */

static void potential_add(gpuhal_skyline *s, uint32_t first, uint32_t last, uint64_t height)
{
    node *nodes = s->potentials;
    const uint32_t begin = first + s->column_leaves, end = last + s->column_leaves + 1;
    for (uint32_t a = begin, b = end; a < b; a /= 2, b /= 2) {
        if (a & 1) {
            nodes[a].most += height;
            nodes[a++].added += height;
        }
        if (b & 1) {
            nodes[--b].most += height;
            nodes[b].added += height;
        }
    }
    const uint32_t edges[] = {begin, end - 1};
    for (uint32_t edge = 0; edge < 2; edge++) {
        for (uint32_t p = edges[edge] / 2; p > 0; p /= 2) {
            nodes[p].most = larger(nodes[2 * p].most, nodes[2 * p + 1].most) + nodes[p].added;
        }
    }
}

/* Returns the largest potential of the columns; @p at is a node with `leaves` leaves from column `from` on. */
static uint64_t potential_of(const gpuhal_skyline *s, uint32_t at, uint32_t from, uint32_t leaves, uint32_t first,
                             uint32_t last)
{
    if (first > from + leaves - 1 || last < from) {
        return 0;
    }
    if (first <= from && last >= from + leaves - 1) {
        return s->potentials[at].most;
    }
    return larger(potential_of(s, 2 * at, from, leaves / 2, first, last),
                  potential_of(s, 2 * at + 1, from + leaves / 2, leaves / 2, first, last)) +
           s->potentials[at].added;
}

/* ---- unplaced boxes */

static void box_set_end(gpuhal_skyline *s, uint32_t box, uint32_t end)
{
    uint32_t p = box + s->box_leaves;
    for (s->ends[p] = end; p > 1; p /= 2) {
        s->ends[p / 2] = smaller(s->ends[p], s->ends[p ^ 1]);
    }
}

/* Returns the first box from `box` on that ends at column `end` or earlier, or NONE. `box` must exist. */
static uint32_t box_next(const gpuhal_skyline *s, uint32_t box, uint32_t end)
{
    uint32_t p = box + s->box_leaves;
    while (s->ends[p] > end) {
        while (p & 1) {
            p /= 2;
        }
        if (p == 0) {
            return NONE;
        }
        p++;
    }
    while (p < s->box_leaves) {
        p *= 2;
        p += s->ends[p] > end;
    }
    return p - s->box_leaves;
}

/* ---- the heap */

static bool is_lower(const gpuhal_skyline *s, uint32_t a, uint32_t b)
{
    return s->segments[a].height != s->segments[b].height ? s->segments[a].height < s->segments[b].height : a < b;
}

static void heap_put(gpuhal_skyline *s, uint32_t at, uint32_t x)
{
    s->heap[at] = x;
    s->segments[x].heap = at;
}

/* The index `at` must be free or hold `x`. */
static void heap_settle(gpuhal_skyline *s, uint32_t at, uint32_t x)
{
    for (; at > 0 && is_lower(s, x, s->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap_put(s, at, s->heap[(at - 1) / 2]);
    }
    for (uint32_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
        child += child + 1 < s->heap_count && is_lower(s, s->heap[child + 1], s->heap[child]);
        if (!is_lower(s, s->heap[child], x)) {
            break;
        }
        heap_put(s, at, s->heap[child]);
    }
    heap_put(s, at, x);
}

static void heap_add(gpuhal_skyline *s, uint32_t x)
{
    s->heap_count++;
    heap_settle(s, s->heap_count - 1, x);
}

static void heap_remove(gpuhal_skyline *s, uint32_t x)
{
    const uint32_t at = s->segments[x].heap, moved = s->heap[--s->heap_count];
    if (moved != x) {
        heap_settle(s, at, moved);
    }
}

/* ---- segments */

static uint32_t right_of(const gpuhal_skyline *s, uint32_t x)
{
    return s->segments[x].end + 1 < s->column_count ? s->segments[x].end + 1 : NONE;
}

static uint64_t height_of(const gpuhal_skyline *s, uint32_t x)
{
    return x == NONE ? UINT64_MAX : s->segments[x].height;
}

static void set_end(gpuhal_skyline *s, uint32_t x, uint32_t end)
{
    s->segments[x].end = end;
    if (right_of(s, x) != NONE) {
        s->segments[right_of(s, x)].left = x;
    }
}

static void add_segment(gpuhal_skyline *s, uint32_t x, uint32_t end, uint64_t height, uint32_t left)
{
    s->segments[x] = (segment){.height = height, .left = left};
    set_end(s, x, end);
    heap_add(s, x);
}

static void merge(gpuhal_skyline *s, uint32_t x)
{
    const uint32_t left = s->segments[x].left, right = right_of(s, x);
    if (height_of(s, right) == s->segments[x].height) {
        heap_remove(s, right);
        set_end(s, x, s->segments[right].end);
    }
    if (height_of(s, left) == s->segments[x].height) {
        heap_remove(s, x);
        set_end(s, left, s->segments[x].end);
    }
}

static void raise(gpuhal_skyline *s, uint32_t x)
{
    const uint64_t left = height_of(s, s->segments[x].left), right = height_of(s, right_of(s, x));
    const uint64_t height = left < right ? left : right;
    potential_add(s, x, s->segments[x].end, height - s->segments[x].height);
    s->segments[x].height = height;
    heap_settle(s, s->segments[x].heap, x);
    merge(s, x);
}

/* The rest of the segment keeps its height. */
static void put(gpuhal_skyline *s, uint32_t x, const gpuhal_skyline_box *box)
{
    const segment before = s->segments[x];
    if (box->last < before.end) {
        add_segment(s, box->last + 1, before.end, before.height, box->first);
    }
    if (box->first > x) {
        set_end(s, x, box->first - 1);
        add_segment(s, box->first, box->last, before.height + box->height, x);
    } else {
        set_end(s, x, box->last);
        s->segments[x].height += box->height;
        heap_settle(s, s->segments[x].heap, x);
    }
    merge(s, box->first);
}

/* ---- choices */

typedef struct finalist {
    uint32_t box, score;
} finalist;

typedef struct choice {
    finalist best[FINALISTS]; /* in descending order of score */
    uint32_t count;
    uint32_t least_end, most_first; /* minimum and maximum over all candidates; show whether a candidate fits beside a
                                     * box */
} choice;

/* The segment to be filled. */
typedef struct floor_segment {
    uint32_t x, end;
    uint32_t scale; /* fixed point with 20 fraction bits; a box of full width scores GPUHAL_SKYLINE_KEY_END */
} floor_segment;

/* Returns whether an unplaced box begins in this column and ends at column `end` or earlier. */
static bool begins_at(const gpuhal_skyline *s, uint32_t column, uint32_t end)
{
    const uint32_t box = s->starts[column], past = s->starts[column + 1];
    return box < past && box_next(s, box, end) < past;
}

/* The full width and each edge add GPUHAL_SKYLINE_KEY_END, the upper bound of a key. The right side of the box is also
 * an edge if another box that fits begins right after it. */
static uint32_t score_of(const gpuhal_skyline *s, const floor_segment *on, uint32_t box, uint32_t key)
{
    const uint32_t first = s->boxes[box].first, last = s->boxes[box].last;
    const uint32_t width = (uint32_t)((uint64_t)(last - first + 1) * on->scale >> 20);
    const bool right = last == on->end || begins_at(s, last + 1, on->end);
    return width + ((uint32_t)(first == on->x) + (uint32_t)right) * GPUHAL_SKYLINE_KEY_END + key;
}

static void consider(choice *c, uint32_t box, uint32_t score)
{
    uint32_t at = c->count;
    while (at > 0 && c->best[at - 1].score < score) {
        at--;
    }
    if (at == FINALISTS) {
        return;
    }
    c->count += c->count < FINALISTS;
    memmove(&c->best[at + 1], &c->best[at], (c->count - 1 - at) * sizeof *c->best);
    c->best[at] = (finalist){box, score};
}

static uint32_t look(const gpuhal_skyline *s, uint32_t x, const uint16_t *keys, choice *c)
{
    const uint32_t end = s->segments[x].end, past = s->starts[end + 1];
    const floor_segment on = {x, end, (uint32_t)((uint64_t)GPUHAL_SKYLINE_KEY_END << 20) / (end - x + 1)};
    uint32_t seen = 0;
    *c = (choice){.least_end = NONE};
    for (uint32_t box = s->starts[x]; box < past && seen < CANDIDATES_MAX; box++) {
        box = box_next(s, box, end);
        if (box >= past) {
            break;
        }
        c->least_end = smaller(c->least_end, s->boxes[box].last);
        c->most_first = s->boxes[box].first;
        consider(c, box, score_of(s, &on, box, keys[box]));
        seen++;
    }
    return seen;
}

/* Adds the room that would be wasted in columns `first` to `last` of segment x beside a box of this height. Raises a
 * lower *potential to the largest potential that these columns would then have. */
static void lose(const gpuhal_skyline *s, uint32_t x, uint32_t first, uint32_t last, uint64_t height, uint64_t outside,
                 uint64_t *potential, double *lost)
{
    const uint64_t gap = outside - s->segments[x].height, rise = gap < height ? gap : height;
    const uint64_t most = potential_of(s, 1, 0, s->column_leaves, first, last) + rise;
    *potential = larger(*potential, most);
    *lost += (double)rise * (last - first + 1);
}

/* Returns the finalist after which the lower bound of the total is lowest, or if bounds are equal, the one with the
 * least wasted room. */
static uint32_t choose(const gpuhal_skyline *s, uint32_t x, const choice *c)
{
    const uint32_t end = s->segments[x].end;
    uint32_t best = c->best[0].box;
    uint64_t best_potential = UINT64_MAX;
    double best_lost = 0;
    for (uint32_t i = 0; c->count > 1 && i < c->count; i++) {
        const gpuhal_skyline_box *box = &s->boxes[c->best[i].box];
        uint64_t potential = s->potentials[1].most;
        double lost = 0;
        if (box->first > x && c->least_end >= box->first) {
            lose(s, x, x, box->first - 1, box->height, height_of(s, s->segments[x].left), &potential, &lost);
        }
        if (box->last < end && c->most_first <= box->last) {
            lose(s, x, box->last + 1, end, box->height, height_of(s, right_of(s, x)), &potential, &lost);
        }
        if (potential < best_potential || (potential == best_potential && lost < best_lost)) {
            best = c->best[i].box;
            best_potential = potential;
            best_lost = lost;
        }
    }
    return best;
}

uint64_t gpuhal_skyline_fill(gpuhal_skyline *s, const uint16_t *keys, uint64_t limit, uint64_t *out_offsets,
                             uint64_t *work)
{
    memcpy(s->ends, s->all_ends, 2 * (size_t)s->box_leaves * sizeof *s->ends);
    memcpy(s->potentials, s->all_potentials, 2 * (size_t)s->column_leaves * sizeof *s->potentials);
    s->heap_count = 0;
    add_segment(s, 0, s->column_count - 1, 0, NONE);
    const uint32_t choice_work = 16 + s->box_count / 32; /* the trees soon exceed the CPU's cache */
    for (uint32_t placed = 0; placed < s->box_count && s->potentials[1].most <= limit;) {
        const uint32_t x = s->heap[0];
        choice c;
        *work += choice_work + look(s, x, keys, &c);
        if (c.count == 0) {
            raise(s, x);
            continue;
        }
        const uint32_t box = choose(s, x, &c);
        out_offsets[box] = s->segments[x].height;
        box_set_end(s, box, NONE);
        put(s, x, &s->boxes[box]);
        placed++;
    }
    return s->potentials[1].most <= limit ? s->potentials[1].most : UINT64_MAX;
}

/* ---- creation */

static int by_first(const void *left, const void *right)
{
    const gpuhal_skyline_box *a = left, *b = right;
    if (a->first != b->first) {
        return a->first < b->first ? -1 : 1;
    }
    if (a->last != b->last) {
        return a->last > b->last ? -1 : 1;
    }
    if (a->height != b->height) {
        return a->height > b->height ? -1 : 1;
    }
    return a->item < b->item ? -1 : 1;
}

static uint32_t leaves_for(uint32_t count)
{
    uint32_t leaves = 1;
    while (leaves < count) {
        leaves *= 2;
    }
    return leaves;
}

static void fill_tables(gpuhal_skyline *s)
{
    uint32_t box = 0;
    for (uint32_t column = 0; column <= s->column_count; column++) {
        while (box < s->box_count && s->boxes[box].first < column) {
            box++;
        }
        s->starts[column] = box;
    }
    memset(s->ends, 0xff, 2 * (size_t)s->box_leaves * sizeof *s->ends);
    for (box = 0; box < s->box_count; box++) {
        box_set_end(s, box, s->boxes[box].last);
        potential_add(s, s->boxes[box].first, s->boxes[box].last, s->boxes[box].height);
    }
    memcpy(s->all_ends, s->ends, 2 * (size_t)s->box_leaves * sizeof *s->ends);
    memcpy(s->all_potentials, s->potentials, 2 * (size_t)s->column_leaves * sizeof *s->potentials);
}

gpuhal_skyline *gpuhal_skyline_create(gpuhal_skyline_box *boxes, uint32_t box_count, uint32_t column_count)
{
    gpuhal_skyline *s = calloc(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    *s = (gpuhal_skyline){.boxes = boxes,
                          .box_count = box_count,
                          .column_count = column_count,
                          .box_leaves = leaves_for(box_count),
                          .column_leaves = leaves_for(column_count)};
    s->starts = malloc(((size_t)column_count + 1) * sizeof *s->starts);
    s->ends = malloc(2 * (size_t)s->box_leaves * sizeof *s->ends);
    s->all_ends = malloc(2 * (size_t)s->box_leaves * sizeof *s->all_ends);
    s->potentials = calloc(2 * (size_t)s->column_leaves, sizeof *s->potentials);
    s->all_potentials = malloc(2 * (size_t)s->column_leaves * sizeof *s->all_potentials);
    s->segments = malloc(column_count * sizeof *s->segments);
    s->heap = malloc(column_count * sizeof *s->heap);
    if (!s->starts || !s->ends || !s->all_ends || !s->potentials || !s->all_potentials || !s->segments || !s->heap) {
        gpuhal_skyline_destroy(s);
        return NULL;
    }
    qsort(boxes, box_count, sizeof *boxes, by_first);
    fill_tables(s);
    return s;
}

void gpuhal_skyline_destroy(gpuhal_skyline *s)
{
    if (!s) {
        return;
    }
    free(s->starts);
    free(s->ends);
    free(s->all_ends);
    free(s->potentials);
    free(s->all_potentials);
    free(s->segments);
    free(s->heap);
    free(s);
}

uint64_t gpuhal_skyline_least(const gpuhal_skyline *s)
{
    return s->all_potentials[1].most;
}
