/* schedule/place.h: the parts of gpuhal_place().
 *
 *   place.c           checks the problem, and makes the result
 *   place_model.c     the numbers in the form that the search needs: sums, and windows: how many layers fit a device
 *   place_order.c     the orders of devices, as states of a search; devices that are alike share them
 *   place_search.c    the best ranges for one order, by dynamic programming
 *   place_solve.c     the objectives, in terms of searches; of too many orders, good ones
 *   place_shortfall.c why there is no placement
 *
 * A range of layers is [first, past). All tables have layer_count + 1 columns, one for each boundary between layers.
 */
#ifndef GPUHAL_SCHEDULE_PLACE_H
#define GPUHAL_SCHEDULE_PLACE_H

#include <gpuhal/schedule/placement.h>

#include <float.h>
#include <stdbool.h>

enum {
    GPUHAL_PLACE_CELLS_MAX = 1 << 22 /* of the search's table, 16 bytes each: more free orders are not compared */
};

/* The cost that a search minimises: `first` decides, a whole number, then `second`, in seconds. */
typedef struct gpuhal_cost {
    double first, second;
} gpuhal_cost;

/* C's fmax() and fmin() are in libm, which the library does not need otherwise. */
static inline double gpuhal_larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double gpuhal_smaller(double a, double b)
{
    return a < b ? a : b;
}

/* isinf() and isfinite() are macros whose branches for other types do not compile without a warning everywhere. */
static inline bool gpuhal_is_finite(double value)
{
    return value >= -DBL_MAX && value <= DBL_MAX; /* false for NAN */
}

static inline bool gpuhal_cost_less(gpuhal_cost a, gpuhal_cost b)
{
    return a.first < b.first || (a.first == b.first && a.second < b.second);
}

/* Which constraints are ignored, to find the one that stands in the way. */
enum {
    GPUHAL_PLACE_NO_MEMORY = 1u,
    GPUHAL_PLACE_NO_DEVICES = 2u,
    GPUHAL_PLACE_NO_LIMIT = 4u,
    GPUHAL_PLACE_NO_LINKS = 8u
};

/* A bound that no stage and no link may exceed. */
typedef struct gpuhal_place_bound {
    double seconds, share; /* INFINITY: no bound */
} gpuhal_place_bound;

typedef struct gpuhal_place_model {
    const gpuhal_placement_problem *problem;
    uint32_t layer_count, device_count;
    size_t columns;                                /* layer_count + 1 */
    uint64_t usable[GPUHAL_PLACEMENT_DEVICES_MAX]; /* capacity without margin */
    uint64_t output_max;
    uint32_t *ties;   /* for each layer the dense number of its tie, from 1; 0: none */
    uint32_t *tied;   /* for each tie how many of its layers the window has */
    uint32_t *queue;  /* of layers, for maxima and minima over windows */
    double *seconds;  /* row for each device: of the layers before the column */
    double *moved;    /* the same for bytes that the device does not have now; NULL: not counted */
    uint32_t *window; /* row for each device: the first layer of the longest range that ends at the column and fits */
    uint32_t relaxed;
} gpuhal_place_model;

/* The states of a search. Fixed: state s has used devices of positions below s, the last one at s - 1. Free: a state
 * has one digit for each class of devices that are alike: how many of them are used. */
typedef struct gpuhal_place_order {
    bool is_free;
    uint32_t count;                               /* positions, or classes */
    uint32_t size[GPUHAL_PLACEMENT_DEVICES_MAX];  /* members of a class; 1 */
    uint32_t first[GPUHAL_PLACEMENT_DEVICES_MAX]; /* its first member in `devices`; the position */
    uint32_t devices[GPUHAL_PLACEMENT_DEVICES_MAX];
    uint64_t stride[GPUHAL_PLACEMENT_DEVICES_MAX]; /* of its digit */
    uint64_t states;
} gpuhal_place_order;

/* One range. */
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
/* Fills `window`. */
void gpuhal_place_windows(gpuhal_place_model *model, gpuhal_place_bound bound);
bool gpuhal_place_is_allowed(const gpuhal_place_model *model, uint32_t layer, uint32_t device);
uint64_t gpuhal_place_need(gpuhal_place_model *model, gpuhal_place_range range);
/* Returns how many bytes more a device would have to have for `bytes`. */
uint64_t gpuhal_place_over(const gpuhal_place_model *model, uint32_t device, uint64_t bytes);
/* The seconds of a link; the latency is INFINITY if there is none. */
typedef struct gpuhal_place_line {
    double latency, per_byte;
} gpuhal_place_line;
gpuhal_place_line gpuhal_place_line_of(const gpuhal_place_model *model, uint32_t from, uint32_t to);
double gpuhal_place_link_seconds(const gpuhal_place_model *model, uint32_t from, uint32_t to, uint64_t bytes);
double gpuhal_place_stage_seconds(const gpuhal_place_model *model, gpuhal_place_range range);

/* place_order.c */
/* Makes the one order of `devices`, `count` of them. */
void gpuhal_place_order_fixed(gpuhal_place_order *order, const uint32_t *devices, uint32_t count);
/* Makes all orders; false if there are too many. */
bool gpuhal_place_order_free(gpuhal_place_order *order, const gpuhal_place_model *model);
/* Returns how many rows a table has, one for each state and each device that can have been its last one. */
size_t gpuhal_place_rows(const gpuhal_place_order *order);
size_t gpuhal_place_row(const gpuhal_place_order *order, uint64_t state, uint32_t last);
/* Returns a device of class `last`; and one that follows a device of class `before`, another one if both classes are
 * the same. */
uint32_t gpuhal_place_device(const gpuhal_place_order *order, uint32_t last);
uint32_t gpuhal_place_next_device(const gpuhal_place_order *order, uint32_t before, uint32_t last);
/* Whether a device of class `last` can have been the last one that `state` has used. */
bool gpuhal_place_has_last(const gpuhal_place_order *order, uint64_t state, uint32_t last);
/* Returns the state before; in a fixed order the highest state that may precede. */
uint64_t gpuhal_place_before(const gpuhal_place_order *order, uint64_t state, uint32_t last);

/* place_search.c */
/* Finds the best ranges; `model->window` must be up to date. @p out_ranges may be NULL. A cost of INFINITY: there are
 * none. */
gpuhal_status gpuhal_place_search(gpuhal_place_model *model, const gpuhal_place_order *order, gpuhal_place_bound bound,
                                  gpuhal_cost *out_cost, gpuhal_place_ranges *out_ranges);
/* Whether there are ranges. `bits` has room for gpuhal_place_bit_words(). */
bool gpuhal_place_is_possible(gpuhal_place_model *model, const gpuhal_place_order *order, gpuhal_place_bound bound,
                              uint64_t *bits);
size_t gpuhal_place_bit_words(const gpuhal_place_model *model, const gpuhal_place_order *order);

/* place_solve.c */
/* Finds the best ranges for the problem's objective. @p out_ranges->count is 0 if there are none. */
gpuhal_status gpuhal_place_solve(gpuhal_place_model *model, gpuhal_place_ranges *out_ranges, double *out_gap);
/* Returns the value of ranges by the objective. */
double gpuhal_place_value(gpuhal_place_model *model, const gpuhal_place_ranges *ranges);

/* place_shortfall.c */
/* Finds the fewest bytes that are missing in all, for ranges in this order. UINT64_MAX: no memory would do. */
gpuhal_status gpuhal_place_missing(gpuhal_place_model *model, const gpuhal_place_order *order, uint64_t *out_bytes);
/* Finds the constraint in the way, and returns INFEASIBLE with a sentence, or HOST_MEMORY. */
gpuhal_status gpuhal_place_refuse(gpuhal_place_model *model, const gpuhal_place_order *order,
                                  gpuhal_placement_shortfall *shortfall);

#endif
