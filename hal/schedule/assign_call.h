/* schedule/assign_call.h: the data of one gpuhal_assign() call, shared by assign.c and assign_refuse.c. */
#ifndef GPUHAL_SCHEDULE_ASSIGN_CALL_H
#define GPUHAL_SCHEDULE_ASSIGN_CALL_H

#include "schedule/assign.h"

typedef struct gpuhal_assign_need {
    const char *name; /* may be NULL */
    uint32_t flags, group, busy_permille;
    bool needs;
    gpuhal_need need;
    uint32_t item; /* index of the step's item in the current attempt */
} gpuhal_assign_need;

typedef struct gpuhal_assign_call {
    gpuhal_assign_desc desc;
    gpuhal_assign_need *steps;
    gpuhal_offers offers;
    gpuhal_assign_item *items;
    gpuhal_assign_place *places;
    gpuhal_assign_unit *units;
    uint32_t *chosen;
    bool *divides; /* for each step: its group is divided, so the step may be on another unit than the rest */
    uint32_t item_count;
} gpuhal_assign_call;

uint32_t gpuhal_assign_first_step(const gpuhal_assign_call *own, uint32_t item);
/* Reports a step that fits on no device, even without other steps. Returns INFEASIBLE if a device lacks only memory,
 * else NOT_FOUND. */
gpuhal_status gpuhal_assign_refuse_step(const gpuhal_assign_call *own, uint32_t index, bool by_bytes);
/* Returns INFEASIBLE. The message says whether no unit can take the whole group, or the other items leave no room for
 * the item. */
gpuhal_status gpuhal_assign_refuse_item(const gpuhal_assign_call *own, uint32_t item, gpuhal_assign_result result);

#endif
