/** gpuhal/schedule/memory_plan.h: the offsets of a model's tensors in one buffer, when each is used for a part of the
 *  steps only.
 *
 *  An engine knows before it runs a graph how large each intermediate result is, which step writes it, and which one
 *  reads it last. Tensors that are never needed at the same step may share bytes. gpuhal_memory_plan() finds offsets
 *  with a small total: without a search the same at every call, since only the numbers count. No device takes part;
 *  the caller makes one buffer of the total, and reads, writes and launches with offsets in it.
 *
 *      gpuhal_memory_plan_item items[] = {{.bytes = 4096, .first_use = 0, .last_use = 1},
 *                                         {.bytes = 1024, .first_use = 1, .last_use = 2},
 *                                         {.bytes = 4096, .first_use = 2, .last_use = 3}};
 *      gpuhal_memory_plan_problem problem = {.size = sizeof problem, .items = items, .item_count = 3};
 *      gpuhal_memory_plan_info info = {.size = sizeof info};
 *      uint64_t offsets[3];
 *      gpuhal_status status = gpuhal_memory_plan(&problem, offsets, &info); // the third is where the first one was
 *
 *  A quick plan is within some hundredths of the least total. If that is too much, the caller gives processor time for
 *  a search, and a capacity if any plan within that will do:
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

/** One tensor, or another thing that takes bytes during some steps. */
typedef struct gpuhal_memory_plan_item {
    uint64_t bytes;     /**< 0: it takes none, and its offset is 0. */
    uint32_t first_use; /**< The step that writes it. */
    uint32_t last_use;  /**< The last step that needs it; bytes are free for others in the step after that. */
} gpuhal_memory_plan_item;

/** A problem for gpuhal_memory_plan(). */
typedef struct gpuhal_memory_plan_problem {
    uint32_t size;       /**< sizeof(gpuhal_memory_plan_problem). */
    uint32_t item_count; /**< 0 to GPUHAL_MEMORY_PLAN_ITEMS_MAX. */
    const gpuhal_memory_plan_item *items;
    /** Of every offset, and of the total: a power of two, as GPUHAL_FACT_BINDING_ALIGNMENT_BYTES states; 0 counts as
     *  1. */
    uint64_t alignment;
    /** The search ends with a plan that takes no more; 0: it looks for the least total. */
    uint64_t capacity_bytes;
    /** How much processor time of the calling thread a search may take if the quick plan is not good enough; 0: there
     *  is no search. The order of the search depends on the problem alone, but how far it gets depends on the
     *  processor: only a plan that it finds within a capacity is the same on each. */
    uint64_t search_ns;
} gpuhal_memory_plan_problem;

/** A plan as a whole. */
typedef struct gpuhal_memory_plan_info {
    uint32_t size;          /**< sizeof(gpuhal_memory_plan_info). */
    uint32_t reserved;      /**< 0. */
    uint64_t total_bytes;   /**< The bytes of the one buffer that has room for all items. */
    /** No plan takes less: the largest sum of items, each rounded up to the alignment, that are needed at one step. */
    uint64_t least_bytes;
} gpuhal_memory_plan_info;

/** Finds offsets so that no two items that are needed at one step overlap. The plan with the least total is hard to
 *  find: this one is near it, and the best if `total_bytes` equals `least_bytes`. @p out_offsets has item_count
 *  elements. Set the size of @p out_info first; NULL: it is not returned. A search looks at all plans of up to 1,024
 *  items, and takes 300 KiB of stack at most for that; with more items it goes on improving the quick plan.
 *  @return GPUHAL_OK; INFEASIBLE when no plan keeps the capacity, and TIMEOUT when none was found: then the offsets and
 *  @p out_info are those of the best plan that was found, above the capacity; INVALID_ARGUMENT, with the cause in the
 *  detail: an item that ends before it begins, an alignment that is not a power of two, more than 2^63 bytes in all,
 *  too many items, NULL, or a size of 0; HOST_MEMORY
 *  Owner: caller; nothing of @p problem is needed afterwards. Threads: any. Blocks: no, but it computes: for 2,000
 *  items some hundredths of a second, for 100,000 two or three seconds, for 1,000,000 up to a minute, and for a search
 *  `search_ns` more. */
GPUHAL_API gpuhal_status gpuhal_memory_plan(const gpuhal_memory_plan_problem *problem, uint64_t *out_offsets,
                                            gpuhal_memory_plan_info *out_info);

#ifdef __cplusplus
}
#endif
#endif
