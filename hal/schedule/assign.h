/* schedule/assign.h: searches for an assignment. The problem consists of numbers only. assign.c converts steps and
 * devices to a problem, and the result to devices and messages.
 *
 * An item is a step, or a group of steps that stay together. A unit is the memory of one physical device or partition.
 * The search assigns the items in order, each to its first unit in the policy's order. If an item has no unit left, the
 * search backtracks to the previous item and tries its next unit. If the policy's own choices are feasible, they are
 * the result. Otherwise the search finds an assignment if one exists, unless the effort is used up.
 */
#ifndef GPUHAL_SCHEDULE_ASSIGN_H
#define GPUHAL_SCHEDULE_ASSIGN_H

#include "schedule/need.h"

#include <gpuhal/schedule/assign.h>

typedef struct gpuhal_assign_item {
    uint64_t bytes;
    uint32_t busy_permille;
    uint32_t steps;  /* at least 1 */
    uint32_t group;  /* items with the same group number are kept together if possible; 0 for no group */
    uint32_t former; /* unit in the last assignment, or GPUHAL_NONE */
    bool runs;       /* already running on `former`, so measurements include its bytes and load */
} gpuhal_assign_item;

/* One item on one unit. */
typedef struct gpuhal_assign_place {
    uint32_t offer; /* GPUHAL_NONE if no offer satisfies the item and has room */
    uint64_t room;  /* bytes of room on the unit, or GPUHAL_UNKNOWN_BYTES */
    uint64_t limit; /* bytes left for this offer by the object's limit, minus promises; valid if `limited` */
    bool limited;
    bool last; /* a CPU that is only a fallback */
} gpuhal_assign_place;

typedef struct gpuhal_assign_unit {
    uint64_t total_bytes, free_bytes; /* free_bytes: minus promises; both may be GPUHAL_UNKNOWN_BYTES */
    uint32_t busy_permille;           /* may be GPUHAL_UNKNOWN_PERMILLE */
    uint32_t promised_permille;
} gpuhal_assign_unit;

typedef struct gpuhal_assign_problem {
    gpuhal_assign_policy policy;
    bool in_turn;
    uint32_t margin_permille;
    uint32_t start; /* ROUND_ROBIN: unit tried first */
    uint32_t item_count, unit_count;
    uint32_t offer_count; /* exclusive upper bound of `offer` in limited places */
    const gpuhal_assign_item *items;
    const gpuhal_assign_place *places; /* index: item * unit_count + unit */
    const gpuhal_assign_unit *units;
    uint64_t effort; /* each stage of the search tries at most this number of placements plus item_count; 0 for the
                      * default */
} gpuhal_assign_problem;

typedef enum gpuhal_assign_result {
    GPUHAL_ASSIGN_FOUND = 0,
    GPUHAL_ASSIGN_IMPOSSIBLE,
    GPUHAL_ASSIGN_GAVE_UP, /* an assignment may exist */
    GPUHAL_ASSIGN_NO_MEMORY
} gpuhal_assign_result;

/* Writes the unit of each item. On failure, *out_stuck is the first item for which the policy's own choices left no
 * unit. Unless the effort is used up or a fallback CPU is needed, PACK minimises the number of units, and SPREAD the
 * largest number of steps on one unit. */
gpuhal_assign_result gpuhal_assign_search(const gpuhal_assign_problem *problem, uint32_t *out_units,
                                          uint32_t *out_stuck);

#endif
