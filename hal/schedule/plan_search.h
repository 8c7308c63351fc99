/* schedule/plan_search.h: looks for a plan that is not higher than a capacity, among all plans.
 *
 * For gpuhal_memory_plan(): boxes as in skyline.h. The search puts one box after the other as low as it can lie, never
 * lower than the one before it, and goes back when the remaining boxes cannot fit any more. With enough time it finds a
 * plan, or that there is none. Its course up to a number of steps depends on the problem alone.
 *
 * It is the method of "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning" (Moffitt,
 * ASPLOS 2023), with a stronger bound: in one column, a box and all boxes with lowest places no lower have to fit above
 * its lowest place, and a box that was passed over lies on a later one.
 */
#ifndef GPUHAL_SCHEDULE_PLAN_SEARCH_H
#define GPUHAL_SCHEDULE_PLAN_SEARCH_H

#include "schedule/skyline.h"

enum { GPUHAL_PLAN_SEARCH_BOXES_MAX = 1024 /* each takes some hundred bytes of stack */ };
/* Sums of heights are exact up to this one. */
#define GPUHAL_PLAN_SEARCH_CAPACITY_MAX (UINT64_C(1) << 53)

typedef enum {
    GPUHAL_PLAN_FOUND,
    GPUHAL_PLAN_NONE,   /* there is none */
    GPUHAL_PLAN_STOPPED /* the time was over */
} gpuhal_plan_result;

typedef struct gpuhal_plan_search gpuhal_plan_search;

/* Copies @p boxes, 1 to GPUHAL_PLAN_SEARCH_BOXES_MAX in columns 0 to column_count - 1. NULL: no memory. */
gpuhal_plan_search *gpuhal_plan_search_create(const gpuhal_skyline_box *boxes, uint32_t box_count,
                                              uint32_t column_count);
void gpuhal_plan_search_destroy(gpuhal_plan_search *search);
/* Searches until this thread has had @p until_ns of processor time (gpuhal_os_processor_ns()). Fills @p out_offsets, in
 * the order of the boxes, when it has found a plan. */
gpuhal_plan_result gpuhal_plan_search_run(gpuhal_plan_search *search, uint64_t capacity, uint64_t until_ns,
                                          uint64_t *out_offsets);

#endif
