/* schedule/assign.h: the search for an assignment, on plain numbers. assign.c converts steps and devices to a problem,
 * and the result to devices and messages.
 *
 * An item is a step, or a group of steps that stay together. A unit is the memory of one physical device, or of a
 * partition. The search assigns the items in order, each to its first unit in the policy's order. If an item has no
 * unit left, the search backtracks to the previous item and tries its next unit. So the result is the policy's own
 * choice if that is possible. Otherwise an assignment is found if one exists, unless the effort is used up.
 */
#ifndef GPUHAL_SCHEDULE_ASSIGN_H
#define GPUHAL_SCHEDULE_ASSIGN_H

#include "schedule/need.h"

#include <gpuhal/schedule/assign.h>

typedef struct gpuhal_assign_item {
    uint64_t bytes;
    uint32_t busy_permille;
    uint32_t steps;  /* at least 1 */
    uint32_t group;  /* items with the same number are kept together if possible; 0 if none */
    uint32_t former; /* unit in the last assignment; GPUHAL_NONE if none */
    bool runs;       /* already running on `former`, so measurements include its bytes and load */
} gpuhal_assign_item;

/* One item on one unit. */
typedef struct gpuhal_assign_place {
    uint32_t offer; /* GPUHAL_NONE if no offer satisfies the item */
    uint64_t room;  /* of the unit; GPUHAL_UNKNOWN_BYTES if not known */
    uint64_t limit; /* bytes that the object's limit leaves for this offer; valid if `limited` */
    bool limited;
    bool last; /* a CPU that is only a fallback */
} gpuhal_assign_place;

typedef struct gpuhal_assign_unit {
    uint64_t total_bytes, free_bytes; /* minus promises; may be GPUHAL_UNKNOWN_BYTES */
    uint32_t busy_permille;           /* may be GPUHAL_UNKNOWN_PERMILLE */
    uint32_t promised_permille;
} gpuhal_assign_unit;

typedef struct gpuhal_assign_problem {
    gpuhal_assign_policy policy;
    bool in_turn;
    uint32_t margin_permille;
    uint32_t start; /* ROUND_ROBIN: unit of the first item */
    uint32_t item_count, unit_count;
    uint32_t offer_count; /* upper bound of the offers of limited places */
    const gpuhal_assign_item *items;
    const gpuhal_assign_place *places; /* index: item * unit_count + unit */
    const gpuhal_assign_unit *units;
    uint64_t effort; /* maximum number of tried placements; 0 for the default */
} gpuhal_assign_problem;

typedef enum gpuhal_assign_result {
    GPUHAL_ASSIGN_FOUND = 0,
    GPUHAL_ASSIGN_IMPOSSIBLE,
    GPUHAL_ASSIGN_GAVE_UP, /* an assignment may exist */
    GPUHAL_ASSIGN_NO_MEMORY
} gpuhal_assign_result;

/* Writes the unit of each item. On failure, *out_stuck is the first item without a unit after the policy's own choices.
 * PACK minimises the number of units, and SPREAD the steps on the unit with the most, unless the effort is used up. */
gpuhal_assign_result gpuhal_assign_search(const gpuhal_assign_problem *problem, uint32_t *out_units,
                                          uint32_t *out_stuck);

#endif
