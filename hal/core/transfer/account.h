/* transfer/account.h: counts transfers: operations and bytes always, time from 64 KiB up, since then a look at the
 * clock costs nothing beside the transfer.
 *
 * Counters only grow, and each is read for itself: a reader may see the operations of a transfer whose bytes it does
 * not see yet.
 */
#ifndef GPUHAL_TRANSFER_ACCOUNT_H
#define GPUHAL_TRANSFER_ACCOUNT_H

#include "device/device.h"

#define GPUHAL_TIMED_FROM_BYTES (64u << 10)

/* Returns when a transfer of that size begins; 0: it is not timed. */
static inline uint64_t gpuhal_count_from(uint64_t bytes)
{
    return __builtin_expect(bytes >= GPUHAL_TIMED_FROM_BYTES, 0) ? gpuhal_os_monotonic_ns() : 0;
}

void gpuhal_count_time(gpuhal_counter *counter, uint64_t bytes, uint64_t begin_ns);

/* Counts a transfer that succeeded. */
static inline void gpuhal_count(gpuhal_counter *counter, uint64_t bytes, uint64_t begin_ns)
{
    atomic_fetch_add_explicit(&counter->operations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counter->bytes, bytes, memory_order_relaxed);
    if (__builtin_expect(begin_ns != 0, 0)) {
        gpuhal_count_time(counter, bytes, begin_ns);
    }
}

#endif
