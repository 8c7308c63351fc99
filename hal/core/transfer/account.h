/* transfer/account.h: counts transfers. Operations and bytes are always counted. Time is measured only for transfers of
 * at least 64 KiB, which take much longer than reading the clock.
 *
 * Counters only increase. They are read one after the other, so a reader may see a transfer in one counter and
 * not in another.
 */
#ifndef GPUHAL_TRANSFER_ACCOUNT_H
#define GPUHAL_TRANSFER_ACCOUNT_H

#include "device/device.h"

#define GPUHAL_TIMED_FROM_BYTES (64u << 10)

/* Returns the start time of a transfer of `bytes` bytes, or 0 if transfers of this size are not timed. */
static inline uint64_t gpuhal_count_from(uint64_t bytes)
{
    return __builtin_expect(bytes >= GPUHAL_TIMED_FROM_BYTES, 0) ? gpuhal_os_monotonic_ns() : 0;
}

void gpuhal_count_time(gpuhal_counter *counter, uint64_t bytes, uint64_t begin_ns);

/* Counts a transfer that succeeded. `begin_ns` is the transfer's start time, or 0 if it is not timed. */
static inline void gpuhal_count(gpuhal_counter *counter, uint64_t bytes, uint64_t begin_ns)
{
    atomic_fetch_add_explicit(&counter->operations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counter->bytes, bytes, memory_order_relaxed);
    if (__builtin_expect(begin_ns != 0, 0)) {
        gpuhal_count_time(counter, bytes, begin_ns);
    }
}

#endif
