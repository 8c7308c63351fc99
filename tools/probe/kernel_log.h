/* kernel_log.h: GPU errors in the kernel log since boot, or since the oldest remaining record. */
#ifndef PROBE_KERNEL_LOG_H
#define PROBE_KERNEL_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gpuhal_probe_machine gpuhal_probe_machine;
typedef struct gpuhal_probe_kernel_log gpuhal_probe_kernel_log;

/* Errors that NVIDIA's driver logged for one GPU (Xid), except those caused by programs. */
typedef struct gpuhal_probe_logged {
    uint32_t count, last; /* number of errors, and the last error's number */
} gpuhal_probe_logged;

/* Finds the errors for all devices that use NVIDIA's driver. If this user may not read the log, finds no errors.
 * Reading stops after 16 MiB or 200 ms, and the next call continues from there. Returns false if out of memory. */
bool gpuhal_probe_kernel_log_read(gpuhal_probe_machine *machine);
/* Returns a note if the last reading stopped before the end of the log, else NULL. */
const char *gpuhal_probe_kernel_log_note(const gpuhal_probe_machine *machine);
void gpuhal_probe_kernel_log_finish(gpuhal_probe_machine *machine);

#endif
