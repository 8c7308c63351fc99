/* watch_processes.c: see watch_processes.h. */
#include "watch_processes.h"

#include "processes.h"

#include <stdio.h>
#include <stdlib.h>

static void fill(const gpuhal_probe_machine *machine, const gpuhal_process *process, const char *id,
                 gpuhal_watch_process *to)
{
    *to = (gpuhal_watch_process){.pid = process->pid, .flags = process->flags};
    snprintf(to->device, sizeof to->device, "%s", id);
    snprintf(to->command, sizeof to->command, "%s", process->command);
    snprintf(to->user, sizeof to->user, "%s", gpuhal_probe_process_user(machine, process));
    to->memory_bytes = process->flags & GPUHAL_PROCESS_MEMORY_KNOWN ? process->memory_bytes : 0;
    to->busy_permille = process->flags & GPUHAL_PROCESS_BUSY_KNOWN ? (uint32_t)process->busy_permille : 0;
}

bool gpuhal_watch_processes_add(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry,
                                gpuhal_watch_frame *frame)
{
    const uint32_t count = entry->processes ? entry->processes->count : 0;
    gpuhal_watch_process *grown = realloc(frame->processes, (frame->process_count + count + 1) * sizeof *grown);
    if (!grown) {
        return false;
    }
    frame->processes = grown;
    for (uint32_t i = 0; i < count; i++) {
        fill(machine, &entry->processes->list[i], gpuhal_device_id(entry->device), &grown[frame->process_count++]);
    }
    return true;
}
