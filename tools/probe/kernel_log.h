/* kernel_log.h: errors of GPUs in the kernel's log, since the machine started or as far back as the log goes. */
#ifndef PROBE_KERNEL_LOG_H
#define PROBE_KERNEL_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gpuhal_probe_machine gpuhal_probe_machine;
typedef struct gpuhal_probe_kernel_log gpuhal_probe_kernel_log;

/* Errors that NVIDIA's driver wrote of one GPU (Xid), without those that a program causes. */
typedef struct gpuhal_probe_logged {
    uint32_t count, last; /* the number of the last one */
} gpuhal_probe_logged;

/* Finds them for each device of a GPU with NVIDIA's driver. A log that this user may not read costs the values. Reading
 * ends after 16 MiB or 200 ms, and goes on there the next time: what was read before is not read again. false without
 * memory. */
bool gpuhal_probe_kernel_log_read(gpuhal_probe_machine *machine);
/* A sentence, if the last reading ended before the log did; else NULL. */
const char *gpuhal_probe_kernel_log_note(const gpuhal_probe_machine *machine);
void gpuhal_probe_kernel_log_finish(gpuhal_probe_machine *machine);

#endif
