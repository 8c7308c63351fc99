/** gpuhal/schedule/rank.h: ranks the devices for a need, with reasons.
 *
 *  A need states the requirements for a device: interfaces, kinds of memory, data types, bytes. gpuhal_rank() orders
 *  all devices, first the devices that satisfy the need, with a sentence that explains each device's place.
 *  gpuhal_assign() (assign.h) accepts the same needs, and chooses a device for each of several steps.
 *
 *      const char *const apis[] = {"cuda", "rocm"};
 *      gpuhal_need need = {.size = sizeof need, .bytes = UINT64_C(8) << 30, .backends = apis, .backend_count = 2};
 *      gpuhal_rank_desc desc = {.size = sizeof desc, .order = GPUHAL_RANK_MOST_FREE, .need = &need};
 *      gpuhal_ranked list[16] = {{.size = sizeof *list}};
 *      uint32_t count;
 *      if (gpuhal_rank(gpu, &desc, list, 16, &count) == GPUHAL_OK) {
 *          run_on(list[0].device);
 *      }
 *
 *  Software drivers, devices that failed their self-test (gpuhal_device_verify()) or are GPUHAL_COMPUTE_PROHIBITED, and
 *  the CPU satisfy a need only if it names their backend, or if the caller lists the devices; the CPU also satisfies
 *  needs that allow it. Interfaces of one physical device, or of one partition of it, share its memory and its load.
 */
#ifndef GPUHAL_RANK_H
#define GPUHAL_RANK_H

#include <gpuhal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of needs. */
enum { GPUHAL_NEED_ALLOW_CPU = 1u /**< The CPU is acceptable if no other device has room. */ };

/** The requirements for a device. Zero means no requirement. */
typedef struct gpuhal_need {
    uint32_t size;             /**< sizeof(gpuhal_need). */
    uint32_t flags;            /**< GPUHAL_NEED_ bits. */
    uint64_t bytes;            /**< Free device memory, in total. */
    uint64_t allocation_bytes; /**< Size of the largest single buffer. */
    uint32_t memory_kinds;     /**< Bit 1 << gpuhal_memory_kind for each kind to be allocated. */
    uint32_t data_types;       /**< GPUHAL_DATA_ bits of types that the kernels compute with. */
    uint32_t capabilities;     /**< GPUHAL_CAPABILITY_ bits. */
    uint32_t backend_count;    /**< 0 for any backend. */
    /** For a physical device, gpuhal_assign() uses the interface of the earliest backend in this list that satisfies
     *  the need. GPUHAL_RANK_BEST puts devices of earlier backends first; the other orders do so only among equal
     *  devices. */
    const char *const *backends;
} gpuhal_need;

/** A planned use of a device that cannot be measured yet: a lease, or work of the application that has not begun. It
 *  counts for all interfaces of the physical device. */
typedef struct gpuhal_promise {
    uint32_t size;          /**< sizeof(gpuhal_promise). */
    uint32_t busy_permille; /**< Share of the time during which the device will work for this use. */
    gpuhal_device *device;
    uint64_t bytes; /**< Bytes of the device's memory, in addition to bytes that are already allocated. */
} gpuhal_promise;

/** Records earlier choices, so that choices by load do not alternate between nearly equal devices. */
typedef struct gpuhal_balance gpuhal_balance;

/** How a balance decides. */
typedef struct gpuhal_balance_desc {
    uint32_t size;            /**< sizeof(gpuhal_balance_desc). */
    /** The choice changes only to a device whose load is lower by more than this margin; 0 means 100. */
    uint32_t margin_permille;
} gpuhal_balance_desc;

/** Creates a balance without earlier choices. @p desc may be NULL.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, HOST_MEMORY
 *  Owner: caller, gpuhal_balance_destroy(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_balance_create(gpuhal *gpu, const gpuhal_balance_desc *desc,
                                               gpuhal_balance **out_balance);

/** Destroys the balance. NULL does nothing.
 *  Owner: @p balance is invalid afterwards. Threads: any, with no other call on @p balance in progress. Blocks: no. */
GPUHAL_API void gpuhal_balance_destroy(gpuhal_balance *balance);

/** The order of devices. In each order, devices that do not satisfy the need come last. The CPU comes before them,
 *  if the need allows the CPU and does not name it. Devices that failed their self-test or are
 *  GPUHAL_COMPUTE_PROHIBITED come before the CPU. */
typedef uint32_t gpuhal_rank_order;
enum {
    /** The order of the need's backends, then the rule of gpuhal_select(). */
    GPUHAL_RANK_BEST = 0,
    /** Software drivers come after all others. Apart from that, the device with the most free memory now comes first;
     *  equal devices are ordered by BEST. */
    GPUHAL_RANK_MOST_FREE = 1,
    /** Software drivers come after all others. Apart from that, the device with the least load now comes first. The
     *  load is the mean of the share of memory that is not free and of the share of time during which the device works,
     *  including promises; if one share is unknown, the load is the other share. Unknown loads come last. */
    GPUHAL_RANK_LEAST_LOADED = 2
};

/** Flags of gpuhal_rank(). */
enum {
    GPUHAL_RANK_ONE_EACH = 1u /**< One interface of each physical device, or of each partition. */
};

/** The description of a ranking. */
typedef struct gpuhal_rank_desc {
    uint32_t size;  /**< sizeof(gpuhal_rank_desc). */
    uint32_t flags; /**< GPUHAL_RANK_ONE_EACH, or 0. */
    gpuhal_rank_order order;
    uint32_t device_count;         /**< 0 means all devices of the gpuhal object. */
    gpuhal_device *const *devices; /**< Lost devices are skipped. */
    const gpuhal_need *need;       /**< NULL for no requirement. */
    const gpuhal_promise *promises;
    uint32_t promise_count;
    uint32_t reserved;       /**< 0. */
    gpuhal_balance *balance; /**< For LEAST_LOADED: the device that was first in earlier rankings. May be NULL. */
    uint64_t timeout_ns;     /**< Timeout for reading values; 0 means as for gpuhal_device_sample(). */
} gpuhal_rank_desc;

/** The place of one device. */
typedef struct gpuhal_ranked {
    uint32_t size; /**< sizeof(gpuhal_ranked). */
    uint32_t fits; /**< 1 if the device satisfies the need. */
    gpuhal_device *device;
    /** Free memory minus promises, within all limits of the process, or UINT64_MAX if not read or unknown. */
    uint64_t free_bytes;
    uint32_t load_permille; /**< UINT32_MAX if not read or unknown. */
    uint32_t reserved;
    char reason[192]; /**< Why the device comes after the preceding device, or why it does not satisfy the need. */
} gpuhal_ranked;

/** Ranks devices. BEST for a need without bytes uses listed facts alone. Every other ranking reads values, and loads
 *  plugins if needed. If a device's free memory is unknown, its total memory counts, and MOST_FREE puts it after
 *  devices whose free memory is known. @p desc may be NULL. @p out_count, the number of devices, may exceed @p
 *  capacity. @p out_ranked may be NULL if @p capacity is 0; otherwise the caller sets the size of the first element.
 *  @return GPUHAL_OK; NOT_FOUND when no device satisfies the need, apart from `bytes`; INFEASIBLE when the devices that
 *  satisfy it have too little free memory; in both cases all devices are still listed with their reasons; FORKED;
 *  INVALID_ARGUMENT; HOST_MEMORY
 *  Owner: caller; the devices belong to @p gpu. Threads: any; one call at a time with the same balance. Blocks: if
 *  values are read. */
GPUHAL_API gpuhal_status gpuhal_rank(gpuhal *gpu, const gpuhal_rank_desc *desc, gpuhal_ranked *out_ranked,
                                     uint32_t capacity, uint32_t *out_count);

#ifdef __cplusplus
}
#endif
#endif
