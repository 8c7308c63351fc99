/* schedule/assign.h: the search for an assignment, over plain numbers. assign.c turns steps and devices into a problem,
 * and its result into devices and sentences.
 *
 * An item is a step, or the steps of a group, which stay together. Items are assigned to units: the memory of one
 * physical device, or of a part of a divided one. The search goes through the items in order and gives each the first
 * unit of the policy's order; if an item has none left, it returns to the item before and gives that the next one. So
 * the policy's own choices are the result if they have one, and otherwise some assignment is found if there is one,
 * unless the effort is used up.
 */
#ifndef GPUHAL_SCHEDULE_ASSIGN_H
#define GPUHAL_SCHEDULE_ASSIGN_H

#include "schedule/need.h"

#include <gpuhal/schedule/assign.h>

typedef struct gpuhal_assign_item {
    uint64_t bytes;
    uint32_t busy_permille;
    uint32_t steps;  /* at least 1 */
    uint32_t group;  /* items with the same number are kept together if possible; 0: alone */
    uint32_t former; /* the unit of the last assignment; GPUHAL_NONE: none */
    bool runs;       /* there, so that measurements include its bytes and share */
} gpuhal_assign_item;

/* The place of one item in one unit. */
typedef struct gpuhal_assign_place {
    uint32_t offer; /* GPUHAL_NONE: none satisfies the item */
    uint64_t room;  /* of the unit; GPUHAL_UNKNOWN_BYTES: no limit is known */
    uint64_t limit; /* bytes that the object's limit leaves for that offer alone; only if `limited` */
    bool limited;
    bool last; /* the CPU, which is only allowed */
} gpuhal_assign_place;

typedef struct gpuhal_assign_unit {
    uint64_t total_bytes, free_bytes; /* less promises; GPUHAL_UNKNOWN_BYTES */
    uint32_t busy_permille;           /* GPUHAL_UNKNOWN_PERMILLE */
    uint32_t promised_permille;
} gpuhal_assign_unit;

typedef struct gpuhal_assign_problem {
    gpuhal_assign_policy policy;
    bool in_turn;
    uint32_t margin_permille;
    uint32_t start; /* ROUND_ROBIN: the unit of the first item */
    uint32_t item_count, unit_count;
    uint32_t offer_count; /* above the offers of limited places */
    const gpuhal_assign_item *items;
    const gpuhal_assign_place *places; /* of each item in each unit: item * unit_count + unit */
    const gpuhal_assign_unit *units;
    uint64_t effort; /* how often an item is put somewhere before the search is given up; 0: the usual */
} gpuhal_assign_problem;

typedef enum gpuhal_assign_result {
    GPUHAL_ASSIGN_FOUND = 0,
    GPUHAL_ASSIGN_IMPOSSIBLE,
    GPUHAL_ASSIGN_GAVE_UP, /* there may be one */
    GPUHAL_ASSIGN_NO_MEMORY
} gpuhal_assign_result;

/* Writes the unit of each item. *out_stuck: otherwise, the first item left without a unit by the policy's own choices.
 * PACK uses the fewest units, and SPREAD puts the fewest steps on the unit with most, unless the effort ends before. */
gpuhal_assign_result gpuhal_assign_search(const gpuhal_assign_problem *problem, uint32_t *out_units,
                                          uint32_t *out_stuck);

#endif
