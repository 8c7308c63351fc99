/* device/fault_log.h: records faults of devices and links for the registry.
 *
 * Recording never blocks on I/O, because it only sets counters and flags. A worker (device/worker.h) immediately writes
 * the first fault of each kind of each device, and a failed link. The other records wait for the next write, at the
 * latest by gpuhal_close(), and are lost if the process is killed before that.
 */
#ifndef GPUHAL_DEVICE_FAULT_LOG_H
#define GPUHAL_DEVICE_FAULT_LOG_H

#include "device/device.h"

typedef struct gpuhal_fault_log gpuhal_fault_log;

/* Returns NULL if out of memory. */
gpuhal_fault_log *gpuhal_fault_log_create(void);
/* Writes the pending records and frees the log. The devices must still exist. Nothing may be recorded afterwards. */
void gpuhal_fault_log_destroy(gpuhal *gpu);

/* This thread's last error describes the fault. Calls no plugin. */
void gpuhal_fault_log_fault(gpuhal_device *device, gpuhal_fault_kind kind);
/* With `at_once`, the worker writes the record immediately; otherwise the next write includes it. */
void gpuhal_fault_log_link(gpuhal_device *from, gpuhal_device *to, bool at_once);
/* Writes all pending records, after a concurrent write has ended. Returns OK even if nothing is pending or there is no
 * registry. BLOCKS. */
gpuhal_status gpuhal_fault_log_write(gpuhal *gpu);

/* The cached state of a link, valid for the current drivers of both devices. */
typedef struct gpuhal_recalled_link {
    bool verified;
    uint64_t path, bytes_per_second, latency_ns, tried_seconds;
    char reason[512];
} gpuhal_recalled_link;
bool gpuhal_fault_log_recall(const gpuhal_device *from, const gpuhal_device *to, gpuhal_recalled_link *out_link);

#endif
