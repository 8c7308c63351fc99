/* tests/unit/schedule_support.h: devices whose load a test sets, for tests of rankings, assignments and strategies. */
#ifndef GPUHAL_TEST_SCHEDULE_SUPPORT_H
#define GPUHAL_TEST_SCHEDULE_SUPPORT_H

#include "support/mock.h"
#include "test.h"

#define GIB(count) ((uint64_t)(count) << 30)

/* Sets the values that a mock device's sample() returns from now on. */
static inline void set_load(uint32_t device, uint64_t free_bytes, uint32_t busy_permille)
{
    gpuhal_mock_value *values = gpuhal_mock.devices[device].values;
    values[0].u64 = free_bytes;
    values[0].key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    values[1].u64 = busy_permille;
    values[1].key = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE;
}

/* Opens `count` equal devices of 16 GiB, all idle and empty, and the CPU. */
static inline gpuhal *open_equal(uint32_t count)
{
    gpuhal_mock = (gpuhal_mock_state){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_mock.devices[i].total_bytes = GIB(16);
        set_load(i, GIB(16), 0);
    }
    return gpuhal_mock_open(NULL, 1);
}

static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

#endif
