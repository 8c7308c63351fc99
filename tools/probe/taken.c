/* taken.c: see taken.h. Programs that only draw do not count (nvidia-smi(1), "Compute Mode"). A GPU that a service
 * shares among clients is not taken. (With NVIDIA MPS, exclusive mode applies to the server, not to its clients.) */
#include "taken.h"

#include <gpuhal/telemetry.h>

#include <unistd.h>

#define ALL_NS 400000000u /* for all GPUs together */

static bool is_exclusive(const gpuhal_probe_device *entry)
{
    uint64_t mode = 0;
    return gpuhal_device_u64(entry->device, GPUHAL_FACT_COMPUTE_MODE, &mode) == GPUHAL_OK &&
           mode == GPUHAL_COMPUTE_EXCLUSIVE && gpuhal_device_status(entry->device) == GPUHAL_OK;
}

/* Returns whether the process is not this process. In another pid namespace, this process has a different pid. If this
 * process has verified an exclusive device, no other process can use that device, so a process with a foreign pid is
 * this process. */
static bool is_stranger(const gpuhal_probe_device *entry, const gpuhal_process *process)
{
    const bool is_here = entry->verified && !entry->in_child && !entry->result.status;
    return process->pid != (uint32_t)getpid() && !(is_here && (process->flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE));
}

static void read_one(gpuhal_probe_device *entry, uint64_t limit_ns)
{
    gpuhal_process list[32] = {{.size = sizeof *list}};
    uint32_t count = 0;
    (void)gpuhal_device_processes(entry->device, GPUHAL_SAMPLE_QUICK, limit_ns, list, sizeof list / sizeof *list,
                                  &count);
    bool computes = false, shares = false;
    for (uint32_t i = 0; i < count && i < sizeof list / sizeof *list; i++) {
        const bool is_other = (list[i].flags & GPUHAL_PROCESS_COMPUTE) && is_stranger(entry, &list[i]);
        if (is_other && !computes) {
            entry->taken_by = list[i].flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE ? 0 : list[i].pid;
        }
        computes = computes || is_other;
        shares = shares || (list[i].flags & GPUHAL_PROCESS_SHARES);
    }
    entry->is_taken = computes && !shares;
}

/* A driver that hangs uses at most half of the remaining time, so that time is left for the next devices. The last
 * device may use all of it. */
void gpuhal_probe_taken_read(gpuhal_probe_machine *machine)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        machine->devices[i].is_taken = false;
        machine->devices[i].taken_by = 0;
        left += is_exclusive(&machine->devices[i]);
    }
    const uint64_t begin_ns = gpuhal_tool_now_ns(), most_ns = gpuhal_probe_time_left(machine, ALL_NS, 1);
    const uint64_t until_ns = begin_ns + (most_ns < ALL_NS ? most_ns : ALL_NS);
    for (uint32_t i = 0; i < machine->count && left > 0; i++) {
        const uint64_t now_ns = gpuhal_tool_now_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        const uint64_t limit_ns = left > 1 ? left_ns / 2 : left_ns;
        if (is_exclusive(&machine->devices[i]) && left-- && limit_ns > 0) {
            read_one(&machine->devices[i], limit_ns);
        }
    }
}
