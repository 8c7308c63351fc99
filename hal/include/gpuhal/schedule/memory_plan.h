/** gpuhal/schedule/memory_plan.h: plans the offsets of a model's tensors in one buffer, if each tensor is used in only
 *  some of the steps.
 *
 *  Before an engine runs a graph, it knows the size of each intermediate result, the step that writes it, and the last
 *  step that reads it. Tensors that are never needed in the same step may share bytes. gpuhal_memory_plan() finds
 *  offsets with a small total. Without a search the result is the same at every call, since it depends only on the
 *  input. No device is involved; the caller creates one buffer of the total size, and reads, writes and launches with
 *  offsets in it.
 *
 *      gpuhal_memory_plan_item items[] = {{.bytes = 4096, .first_use = 0, .last_use = 1},
 *                                         {.bytes = 1024, .first_use = 1, .last_use = 2},
 *                                         {.bytes = 4096, .first_use = 2, .last_use = 3}};
 *      gpuhal_memory_plan_problem problem = {.size = sizeof problem, .items = items, .item_count = 3};
 *      gpuhal_memory_plan_info info = {.size = sizeof info};
 *      uint64_t offsets[3];
 *      gpuhal_status status = gpuhal_memory_plan(&problem, offsets, &info); // the third is where the first one was
 *
 *  A quick plan is within a few percent of the smallest total. If that is not good enough, the caller allows CPU time
 *  for a search, and sets a capacity if any plan within it suffices:
 *
 *      problem.capacity_bytes = 1 << 20;
 *      problem.search_ns = 2000000000; // two seconds
 *      status = gpuhal_memory_plan(&problem, offsets, &info); // INFEASIBLE: there is none; TIMEOUT: none was found
 */
#ifndef GPUHAL_MEMORY_PLAN_H
#define GPUHAL_MEMORY_PLAN_H

#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUHAL_MEMORY_PLAN_ITEMS_MAX = 1 << 20 };

/** One tensor, or anything else that occupies bytes during some steps. */
typedef struct gpuhal_memory_plan_item {
    uint64_t bytes;     /**< If 0, the item's offset is 0. */
    uint32_t first_use; /**< The step that writes the item. */
    uint32_t last_use;  /**< The last step that needs the item. In the next step, its bytes are free for other items. */
} gpuhal_memory_plan_item;

/** A problem for gpuhal_memory_plan(). */
typedef struct gpuhal_memory_plan_problem {
    uint32_t size;       /**< sizeof(gpuhal_memory_plan_problem). */
    uint32_t item_count; /**< 0 to GPUHAL_MEMORY_PLAN_ITEMS_MAX. */
    const gpuhal_memory_plan_item *items;
    /** Alignment of every offset and of the total: a power of two, such as GPUHAL_FACT_BINDING_ALIGNMENT_BYTES; 0
     *  counts as 1. */
    uint64_t alignment;
    /** The search ends when a plan fits within this capacity. 0 means that it searches for the smallest total. */
    uint64_t capacity_bytes;
    /** CPU time of the calling thread that a search may take if the quick plan is not good enough; 0 means no search.
     *  The order of the search depends on the problem alone, but how far the search gets depends on the CPU: only a
     *  plan found within a capacity is the same on every CPU. */
    uint64_t search_ns;
} gpuhal_memory_plan_problem;

/** A plan as a whole. */
typedef struct gpuhal_memory_plan_info {
    uint32_t size;          /**< sizeof(gpuhal_memory_plan_info). */
    uint32_t reserved;      /**< 0. */
    uint64_t total_bytes;   /**< Bytes of one buffer that has room for all items. */
    /** Lower bound of every plan: the largest sum of items, each rounded up to the alignment, that are needed in one
     *  step. */
    uint64_t least_bytes;
} gpuhal_memory_plan_info;

/** Finds offsets so that no two items that are needed in the same step overlap. The plan with the smallest total is
 *  hard to find: the returned plan is close to it, and is the best one if `total_bytes` equals `least_bytes`. @p
 *  out_offsets has item_count elements. Set the size of @p out_info first, or pass NULL. A search considers all plans
 *  of up to 1,024 items, and uses at most 300 KiB of stack for that; with more items it keeps improving the quick plan.
 *  @return GPUHAL_OK; INFEASIBLE when no plan fits the capacity, TIMEOUT when none was found: in both cases the offsets
 *  and @p out_info are those of the best plan that was found, which exceeds the capacity; INVALID_ARGUMENT, with the
 *  cause in the detail: an item that ends before it begins, an alignment that is not a power of two, more than 2^63
 *  bytes in all, too many items, NULL, or a size of 0; HOST_MEMORY
 *  Owner: caller; nothing of @p problem is needed afterwards. Threads: any. Blocks: no, but it computes: for 2,000
 *  items a few hundredths of a second, for 100,000 two or three seconds, for 1,000,000 up to a minute, and for a
 *  search `search_ns` more. */
GPUHAL_API gpuhal_status gpuhal_memory_plan(const gpuhal_memory_plan_problem *problem, uint64_t *out_offsets,
                                            gpuhal_memory_plan_info *out_info);

#ifdef __cplusplus
}
#endif
#endif
