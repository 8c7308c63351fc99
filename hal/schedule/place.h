/* schedule/place.h: the parts of gpuhal_place().
 *
 * A range of layers is [first, past). All tables have layer_count + 1 columns, one for each boundary between layers.
 */
#ifndef GPUHAL_SCHEDULE_PLACE_H
#define GPUHAL_SCHEDULE_PLACE_H

#include <gpuhal/schedule/placement.h>

#include <float.h>
#include <stdbool.h>

enum {
    GPUHAL_PLACE_CELLS_MAX = 1 << 22 /* maximum number of cells of a table for free orders, 16 bytes each; a heuristic
                                      * replaces larger tables */
};

/* The cost that a search minimises, in lexicographic order. `first` is an integer, `second` is in seconds. */
typedef struct gpuhal_cost {
    double first, second;
} gpuhal_cost;

/* These functions replace fmax() and fmin(), which need libm. */
static inline double gpuhal_larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double gpuhal_smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Replaces isfinite(), a macro whose branches for other types cause warnings with some compilers. */
static inline bool gpuhal_is_finite(double value)
{
    return value >= -DBL_MAX && value <= DBL_MAX; /* false for NAN */
}

static inline bool gpuhal_cost_less(gpuhal_cost a, gpuhal_cost b)
{
    return a.first < b.first || (a.first == b.first && a.second < b.second);
}

/* Constraints that are ignored to find out which constraint prevents a placement. */
enum {
    GPUHAL_PLACE_NO_MEMORY = 1u,
    GPUHAL_PLACE_NO_DEVICES = 2u,
    GPUHAL_PLACE_NO_LIMIT = 4u,
    GPUHAL_PLACE_NO_LINKS = 8u
};

/* An upper bound for every stage and every link. */
typedef struct gpuhal_place_bound {
    double seconds, share; /* INFINITY means no bound */
} gpuhal_place_bound;

typedef struct gpuhal_place_model {
    const gpuhal_placement_problem *problem;
    uint32_t layer_count, device_count;
    size_t columns;                                /* layer_count + 1 */
    uint64_t usable[GPUHAL_PLACEMENT_DEVICES_MAX]; /* capacity minus margin */
    uint64_t output_max;
    uint32_t *ties;   /* tie of each layer, numbered densely from 1, or 0 */
    uint32_t *tied;   /* for each tie: number of its layers in the window */
    uint32_t *queue;  /* layers or columns, for sliding maxima and minima */
    double *seconds;  /* one row for each device: seconds of all layers before the column */
    double *moved;    /* the same for bytes to be moved; NULL if not counted */
    uint32_t *window; /* one row for each device: first layer of the longest range that ends at the column and fits */
    uint32_t relaxed;
} gpuhal_place_model;

/* In a fixed order, the used devices of state s are at positions below s, the last one at s - 1. In a free order, a
 * state has one digit for each class of identical devices: the number of used devices in the class. */
typedef struct gpuhal_place_order {
    bool is_free;
    uint32_t count;                               /* number of positions or classes */
    uint32_t size[GPUHAL_PLACEMENT_DEVICES_MAX];  /* size of the class, or 1 in a fixed order */
    uint32_t first[GPUHAL_PLACEMENT_DEVICES_MAX]; /* index in `devices` of the class's first device, or the position in
                                                   * a fixed order */
    uint32_t devices[GPUHAL_PLACEMENT_DEVICES_MAX];
    uint64_t stride[GPUHAL_PLACEMENT_DEVICES_MAX]; /* weight of the class's digit */
    uint64_t states;
} gpuhal_place_order;

typedef struct gpuhal_place_range {
    uint32_t device, first, past;
} gpuhal_place_range;

typedef struct gpuhal_place_ranges {
    uint32_t count;
    gpuhal_place_range list[GPUHAL_PLACEMENT_DEVICES_MAX];
} gpuhal_place_ranges;

/* place_model.c */
gpuhal_status gpuhal_place_model_init(gpuhal_place_model *model, const gpuhal_placement_problem *problem);
void gpuhal_place_model_finish(gpuhal_place_model *model);
void gpuhal_place_windows(gpuhal_place_model *model, gpuhal_place_bound bound);
bool gpuhal_place_is_allowed(const gpuhal_place_model *model, uint32_t layer, uint32_t device);
uint64_t gpuhal_place_need(gpuhal_place_model *model, gpuhal_place_range range);
/* Returns by how many bytes the device's memory would have to be larger for `bytes` to fit. */
uint64_t gpuhal_place_over(const gpuhal_place_model *model, uint32_t device, uint64_t bytes);
/* A link's transfer time in seconds; `latency` is INFINITY if there is no link. */
typedef struct gpuhal_place_line {
    double latency, per_byte;
} gpuhal_place_line;
gpuhal_place_line gpuhal_place_line_of(const gpuhal_place_model *model, uint32_t from, uint32_t to);
double gpuhal_place_link_seconds(const gpuhal_place_model *model, uint32_t from, uint32_t to, uint64_t bytes);
double gpuhal_place_stage_seconds(const gpuhal_place_model *model, gpuhal_place_range range);

/* place_order.c */
void gpuhal_place_order_fixed(gpuhal_place_order *order, const uint32_t *devices, uint32_t count);
/* Returns false if there are too many orders. */
bool gpuhal_place_order_free(gpuhal_place_order *order, const gpuhal_place_model *model);
/* Returns the number of table rows: one for each state; in a free order, one for each state and class. */
size_t gpuhal_place_rows(const gpuhal_place_order *order);
size_t gpuhal_place_row(const gpuhal_place_order *order, uint64_t state, uint32_t last);
/* Both functions return a device of class `last`. The second one returns a device that can follow one of class
 * `before`: another device if the classes are equal. */
uint32_t gpuhal_place_device(const gpuhal_place_order *order, uint32_t last);
uint32_t gpuhal_place_next_device(const gpuhal_place_order *order, uint32_t before, uint32_t last);
/* Returns whether a device of class `last` can be the last device that `state` has used. */
bool gpuhal_place_has_last(const gpuhal_place_order *order, uint64_t state, uint32_t last);
/* Returns the preceding state, in a fixed order the highest one. */
uint64_t gpuhal_place_before(const gpuhal_place_order *order, uint64_t state, uint32_t last);

/* place_search.c */
/* Finds the best ranges. `model->window` must be up to date. @p out_ranges may be NULL. The cost is INFINITY if there
 * are no ranges. */
gpuhal_status gpuhal_place_search(gpuhal_place_model *model, const gpuhal_place_order *order, gpuhal_place_bound bound,
                                  gpuhal_cost *out_cost, gpuhal_place_ranges *out_ranges);
/* Returns whether ranges exist. `bits` has gpuhal_place_bit_words() words. */
bool gpuhal_place_is_possible(gpuhal_place_model *model, const gpuhal_place_order *order, gpuhal_place_bound bound,
                              uint64_t *bits);
size_t gpuhal_place_bit_words(const gpuhal_place_model *model, const gpuhal_place_order *order);

/* place_solve.c */
/* Finds the best ranges for the problem's objective, or good ranges if there are too many orders. @p out_ranges->count
 * is 0 if there are none. */
gpuhal_status gpuhal_place_solve(gpuhal_place_model *model, gpuhal_place_ranges *out_ranges, double *out_gap);
double gpuhal_place_value(gpuhal_place_model *model, const gpuhal_place_ranges *ranges);

/* place_shortfall.c */
/* Finds the smallest total of missing bytes for ranges in this order, or UINT64_MAX if no amount of memory would
 * suffice. The result may be too high if there are too many boundaries to examine every pair. */
gpuhal_status gpuhal_place_missing(gpuhal_place_model *model, const gpuhal_place_order *order, uint64_t *out_bytes);
/* Finds the violated constraint and writes it to @p shortfall. Returns INFEASIBLE with a message, or HOST_MEMORY. */
gpuhal_status gpuhal_place_refuse(gpuhal_place_model *model, const gpuhal_place_order *order,
                                  gpuhal_placement_shortfall *shortfall);

#endif
