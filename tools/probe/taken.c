/* taken.c: see taken.h. Programs that only draw do not count (nvidia-smi(1), "Compute Mode"), and a service that shares
 * the GPU takes in others (NVIDIA's MPS: exclusive mode holds for its server, not for its clients). */
#include "taken.h"

#include <gpuhal/telemetry.h>

#include <unistd.h>

#define EACH_NS 200000000u

static void read_one(gpuhal_probe_device *entry)
{
    gpuhal_process list[32] = {{.size = sizeof *list}};
    uint32_t count = 0;
    (void)gpuhal_device_processes(entry->device, GPUHAL_SAMPLE_QUICK, EACH_NS, list, sizeof list / sizeof *list,
                                  &count);
    bool computes = false, shares = false;
    for (uint32_t i = 0; i < count && i < sizeof list / sizeof *list; i++) {
        computes = computes || ((list[i].flags & GPUHAL_PROCESS_COMPUTE) && list[i].pid != (uint32_t)getpid());
        shares = shares || (list[i].flags & GPUHAL_PROCESS_SHARES);
    }
    entry->is_taken = computes && !shares;
}

void gpuhal_probe_taken_read(gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        uint64_t mode = 0;
        entry->is_taken = false;
        if (gpuhal_device_u64(entry->device, GPUHAL_FACT_COMPUTE_MODE, &mode) == GPUHAL_OK &&
            mode == GPUHAL_COMPUTE_EXCLUSIVE && gpuhal_device_status(entry->device) == GPUHAL_OK) {
            read_one(entry);
        }
    }
}
