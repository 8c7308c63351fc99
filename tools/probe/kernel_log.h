/* kernel_log.h: errors of GPUs in the kernel's log, since the machine started or as far back as the log goes. */
#ifndef PROBE_KERNEL_LOG_H
#define PROBE_KERNEL_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gpuhal_probe_machine gpuhal_probe_machine;
typedef struct gpuhal_probe_kernel_log gpuhal_probe_kernel_log;

/* Errors that NVIDIA's driver logged for one GPU (Xid), except errors that a program causes. */
typedef struct gpuhal_probe_logged {
    uint32_t count, last; /* the number of the last one */
} gpuhal_probe_logged;

/* Finds the errors for each device of a GPU with NVIDIA's driver. If this user may not read the log, there are no
 * values. A reading ends after 16 MiB or 200 ms, and the next one goes on from there. Returns false without memory. */
bool gpuhal_probe_kernel_log_read(gpuhal_probe_machine *machine);
/* Returns a sentence if the last reading ended before the log did; else NULL. */
const char *gpuhal_probe_kernel_log_note(const gpuhal_probe_machine *machine);
void gpuhal_probe_kernel_log_finish(gpuhal_probe_machine *machine);

#endif
