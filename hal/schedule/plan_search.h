/* schedule/plan_search.h: searches exhaustively for a memory plan within a capacity.
 *
 * gpuhal_memory_plan() uses this search, with boxes as in skyline.h. The search places one box after another at the
 * lowest possible position, never below the previous box. It backtracks when the remaining boxes can no longer fit.
 * Given enough time, it finds a plan or proves that none exists. Its steps depend only on the problem.
 *
 * The method comes from "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
 * (Moffitt, ASPLOS 2023), with a stronger bound. In each column, a box B and all boxes whose lowest positions are not
 * below B's must fit above B's lowest position. A box that was passed over must lie on a box placed later.
 */
#ifndef GPUHAL_SCHEDULE_PLAN_SEARCH_H
#define GPUHAL_SCHEDULE_PLAN_SEARCH_H

#include "schedule/skyline.h"

enum { GPUHAL_PLAN_SEARCH_BOXES_MAX = 1024 /* each box takes a few hundred bytes of stack */ };
/* Sums of heights, which are doubles, are exact up to this value. */
#define GPUHAL_PLAN_SEARCH_CAPACITY_MAX (UINT64_C(1) << 53)

typedef enum {
    GPUHAL_PLAN_FOUND,
    GPUHAL_PLAN_NONE,   /* no plan exists */
    GPUHAL_PLAN_STOPPED /* the time limit was reached */
} gpuhal_plan_result;

typedef struct gpuhal_plan_search gpuhal_plan_search;

/* Copies @p boxes: 1 to GPUHAL_PLAN_SEARCH_BOXES_MAX boxes in columns 0 to column_count - 1. Returns NULL if out of
 * memory. */
gpuhal_plan_search *gpuhal_plan_search_create(const gpuhal_skyline_box *boxes, uint32_t box_count,
                                              uint32_t column_count);
void gpuhal_plan_search_destroy(gpuhal_plan_search *search);
/* Searches until this thread's CPU time (gpuhal_os_processor_ns()) reaches @p until_ns. If a plan is found, fills @p
 * out_offsets in the order of the boxes. */
gpuhal_plan_result gpuhal_plan_search_run(gpuhal_plan_search *search, uint64_t capacity, uint64_t until_ns,
                                          uint64_t *out_offsets);

#endif
