/* tests/unit/pressure_support.h: requests memory from the sources of a device until they have released enough. */
#ifndef GPUHAL_TEST_PRESSURE_SUPPORT_H
#define GPUHAL_TEST_PRESSURE_SUPPORT_H

#include "pool/pressure.h"

static inline uint64_t relieve_device(gpuhal_device *device, gpuhal_pressure_rung rung, struct gpuhal_pool *pool,
                                      uint64_t bytes, uint64_t deadline_ns)
{
    gpuhal_pressure_attempt attempt = {
        .device = device, .pool = pool, .rung = rung, .bytes = bytes, .deadline_ns = deadline_ns};
    uint64_t total = 0, given = 0;
    while (total < bytes && gpuhal_pressure_ask(&attempt, &given)) {
        total = given < UINT64_MAX - total ? total + given : UINT64_MAX;
    }
    return total;
}

#endif
