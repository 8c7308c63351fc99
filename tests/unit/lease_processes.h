/* tests/unit/lease_processes.h: replaces the list of processes that use a device, for lease tests that are linked with
 * --wrap=gpuhal_device_processes. */
#ifndef LEASE_PROCESSES_H
#define LEASE_PROCESSES_H

#include "lease_support.h"

/* The processes that the wrapped call returns. */
static gpuhal_process listed[3];
static uint32_t listed_count; /* 0 means that the device does not list processes */
static bool lists_late;       /* the driver hangs */

gpuhal_status __wrap_gpuhal_device_processes(gpuhal_device *device, uint32_t flags, uint64_t timeout_ns,
                                             gpuhal_process *out_processes, uint32_t capacity, uint32_t *out_count);
gpuhal_status __wrap_gpuhal_device_processes(gpuhal_device *device, uint32_t flags, uint64_t timeout_ns,
                                             gpuhal_process *out_processes, uint32_t capacity, uint32_t *out_count)
{
    assert_true(device && flags == 0 && timeout_ns > 0 && capacity >= listed_count);
    if (lists_late) {
        usleep((useconds_t)(timeout_ns / 1000));
        return GPUHAL_ERROR_TIMEOUT;
    }
    memcpy(out_processes, listed, listed_count * sizeof *listed);
    *out_count = listed_count;
    return listed_count > 0 ? GPUHAL_OK : GPUHAL_ERROR_NOT_SUPPORTED;
}

#endif
