/* device/fault_log.h: records faults of devices and links, for the registry.
 *
 * Recording never blocks on I/O: it sets counts and flags, and a worker (device/worker.h) writes the important records
 * at once: the first fault of each kind of each device, and a link that failed. The other records wait for
 * gpuhal_close(). A process that is killed earlier loses the waiting records, never the written ones.
 */
#ifndef GPUHAL_DEVICE_FAULT_LOG_H
#define GPUHAL_DEVICE_FAULT_LOG_H

#include "device/device.h"

typedef struct gpuhal_fault_log gpuhal_fault_log;

/* Returns NULL without memory. */
gpuhal_fault_log *gpuhal_fault_log_create(void);
/* Writes the waiting records and frees the log; the devices must still exist. Nothing may be recorded afterwards. */
void gpuhal_fault_log_destroy(gpuhal *gpu);

/* Counts one more fault, described by this thread's last error. Calls no plugin. */
void gpuhal_fault_log_fault(gpuhal_device *device, gpuhal_fault_kind kind);
/* Records the state of the link between the two devices. `at_once`: written by the worker, else with the next write. */
void gpuhal_fault_log_link(gpuhal_device *from, gpuhal_device *to, bool at_once);
/* Writes all waiting records, after the records that another thread is writing. Returns OK also when none waits, or no
 * registry is kept. BLOCKS. */
gpuhal_status gpuhal_fault_log_write(gpuhal *gpu);

/* The cached state of the link between the two, valid for their current drivers. */
typedef struct gpuhal_recalled_link {
    bool verified;
    uint64_t path, bytes_per_second, latency_ns, tried_seconds;
    char reason[512];
} gpuhal_recalled_link;
bool gpuhal_fault_log_recall(const gpuhal_device *from, const gpuhal_device *to, gpuhal_recalled_link *out_link);

#endif
