/* schedule/assign_call.h: one call of gpuhal_assign(), as assign.c makes it and assign_refuse.c describes it. */
#ifndef GPUHAL_SCHEDULE_ASSIGN_CALL_H
#define GPUHAL_SCHEDULE_ASSIGN_CALL_H

#include "schedule/assign.h"

/* The used members of one step. */
typedef struct gpuhal_assign_need {
    const char *name; /* NULL: none */
    uint32_t flags, group, busy_permille;
    bool needs; /* a device */
    gpuhal_need need;
    uint32_t item; /* of the attempt under way */
} gpuhal_assign_need;

/* One call, with all memory that its end frees. */
typedef struct gpuhal_assign_call {
    gpuhal_assign_desc desc;
    gpuhal_assign_need *steps;
    gpuhal_offers offers;
    gpuhal_assign_item *items;
    gpuhal_assign_place *places;
    gpuhal_assign_unit *units;
    uint32_t *chosen;
    bool *divides; /* of each step: its group is divided, so that it may be elsewhere than the rest */
    uint32_t item_count;
} gpuhal_assign_call;

/* Returns the first step of an item. */
uint32_t gpuhal_assign_first_step(const gpuhal_assign_call *own, uint32_t item);
/* Refuses a step that no device would take even if it were alone. Returns INFEASIBLE if only bytes are short, else
 * NOT_FOUND. */
gpuhal_status gpuhal_assign_refuse_step(const gpuhal_assign_call *own, uint32_t index, bool by_bytes);
/* Returns INFEASIBLE, and says which an item lacks: a unit for the whole group, or room beside the others. */
gpuhal_status gpuhal_assign_refuse_item(const gpuhal_assign_call *own, uint32_t item, gpuhal_assign_result result);

#endif
