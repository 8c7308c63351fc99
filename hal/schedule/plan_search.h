/* schedule/plan_search.h: an exhaustive search for a memory plan within a capacity.
 *
 * Used by gpuhal_memory_plan(), with boxes as in skyline.h. The search places one box after the other at its lowest
 * possible position, never below the previous box, and backtracks when the remaining boxes can no longer fit. With
 * enough time it finds a plan or proves that there is none. Its steps depend only on the problem.
 *
 * The method is that of "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
 * (Moffitt, ASPLOS 2023), with a stronger bound. In each column, a box and all boxes whose lowest positions are not
 * below its own must fit above its lowest position. A box that was passed over must lie on a later one.
 */
#ifndef GPUHAL_SCHEDULE_PLAN_SEARCH_H
#define GPUHAL_SCHEDULE_PLAN_SEARCH_H

#include "schedule/skyline.h"

enum { GPUHAL_PLAN_SEARCH_BOXES_MAX = 1024 /* each takes a few hundred bytes of stack */ };
/* Sums of heights are exact up to this value. */
#define GPUHAL_PLAN_SEARCH_CAPACITY_MAX (UINT64_C(1) << 53)

typedef enum {
    GPUHAL_PLAN_FOUND,
    GPUHAL_PLAN_NONE,   /* no plan exists */
    GPUHAL_PLAN_STOPPED /* the time limit was reached */
} gpuhal_plan_result;

typedef struct gpuhal_plan_search gpuhal_plan_search;

/* Copies @p boxes, 1 to GPUHAL_PLAN_SEARCH_BOXES_MAX in columns 0 to column_count - 1. Returns NULL if out of
 * memory. */
gpuhal_plan_search *gpuhal_plan_search_create(const gpuhal_skyline_box *boxes, uint32_t box_count,
                                              uint32_t column_count);
void gpuhal_plan_search_destroy(gpuhal_plan_search *search);
/* Searches until this thread's CPU time (gpuhal_os_processor_ns()) reaches @p until_ns. If a plan is found, fills @p
 * out_offsets in the order of the boxes. */
gpuhal_plan_result gpuhal_plan_search_run(gpuhal_plan_search *search, uint64_t capacity, uint64_t until_ns,
                                          uint64_t *out_offsets);

#endif
