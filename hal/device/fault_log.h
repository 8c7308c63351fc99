/* device/fault_log.h: what happens to devices and links, on its way into the registry.
 *
 * Who notes something never waits for a disk: counts and marks are set, and for what is worth it a thread of the library's own writes them
 * at once. That is the first fault of each kind of each device, and a link that turns out broken; the rest waits for gpuhal_close(). A
 * process that is killed before loses what waits, never what was there. The child of a fork begins with nothing noted.
 */
#ifndef GPUHAL_DEVICE_FAULT_LOG_H
#define GPUHAL_DEVICE_FAULT_LOG_H

#include "device/link.h"

typedef struct gpuhal_fault_log gpuhal_fault_log;

/* NULL without memory. */
gpuhal_fault_log *gpuhal_fault_log_create(void);
/* Writes what is noted, and frees; while the devices are there. Nothing is noted any more. */
void gpuhal_fault_log_destroy(gpuhal *gpu);

/* Once more; this thread's last error tells how. Calls no plugin. */
void gpuhal_fault_log_fault(gpuhal_device *device, gpuhal_fault_kind kind);
/* What was found out about the way between the two is to be kept. `at_once`: by the thread, else by who writes next. */
void gpuhal_fault_log_link(gpuhal_device *from, gpuhal_device *to, bool at_once);
/* device->write_path was measured, and is to be kept. */
void gpuhal_fault_log_write_path(gpuhal_device *device);
/* Whether what is noted of the device is kept beyond this object. */
bool gpuhal_fault_log_is_kept(const gpuhal_device *device);
/* Writes all that is noted, and waits for the thread that does. OK also when there is nothing, or none is kept. BLOCKS. */
gpuhal_status gpuhal_fault_log_write(gpuhal *gpu);

/* What is remembered of the way between the two, with the drivers that they have now. */
typedef struct gpuhal_recalled_link {
    bool verified;
    uint64_t path, bytes_per_second, latency_ns, tried_seconds;
    char reason[512];
} gpuhal_recalled_link;
bool gpuhal_fault_log_recall(const gpuhal_device *from, const gpuhal_device *to, gpuhal_recalled_link *out_link);
/* GPUHAL_WRITE_BY_PLUGIN or _STAGED, as measured with this driver and this plugin; UNKNOWN where it was not. */
uint32_t gpuhal_fault_log_recall_write(const gpuhal_device *device);

#endif
