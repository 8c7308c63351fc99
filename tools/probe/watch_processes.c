/* watch_processes.c: see watch_processes.h. */
#include "watch_processes.h"

#include "../common/host.h"

#include <gpuhal/telemetry.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_NS 300000000u /* for the processes of one device */

static void find_user(gpuhal_watch_users *users, uint32_t number, char name[WATCH_USER_BYTES])
{
    uint32_t place = 0;
    while (place < users->count && users->list[place].number != number) {
        place++;
    }
    if (place == users->count) {
        place = users->count < WATCH_USERS ? users->count++ : number % WATCH_USERS;
        users->list[place].number = number;
        gpuhal_tool_user_name(number, users->list[place].name, WATCH_USER_BYTES);
    }
    memcpy(name, users->list[place].name, WATCH_USER_BYTES);
}

/* All processes of the device, which may become more between two calls. NULL
 * without memory; none where the device does not list them. */
static gpuhal_process *read_processes(gpuhal_device *device, uint32_t *out_count)
{
    gpuhal_process *list = NULL;
    uint32_t capacity = 32, count = 0;
    do {
        capacity = count > capacity ? count + 32 : capacity;
        free(list);
        list = calloc(capacity, sizeof *list);
        if (!list) {
            return NULL;
        }
        list[0].size = sizeof *list;
        count = 0;
        if (gpuhal_device_processes(device, TIMEOUT_NS, list, capacity, &count) != GPUHAL_OK) {
            count = 0;
        }
    } while (count > capacity);
    *out_count = count;
    return list;
}

static void fill(gpuhal_watch_users *users, const gpuhal_process *process, const char *id, gpuhal_watch_process *to)
{
    *to = (gpuhal_watch_process){.pid = process->pid, .flags = process->flags};
    snprintf(to->device, sizeof to->device, "%s", id);
    snprintf(to->command, sizeof to->command, "%s", process->command);
    to->memory_bytes = process->flags & GPUHAL_PROCESS_MEMORY_KNOWN ? process->memory_bytes : 0;
    to->busy_permille = process->flags & GPUHAL_PROCESS_BUSY_KNOWN ? (uint32_t)process->busy_permille : 0;
    if (process->flags & GPUHAL_PROCESS_USER_KNOWN) {
        find_user(users, process->user, to->user);
    }
}

bool gpuhal_watch_processes_add(gpuhal_watch_users *users, gpuhal_device *device, gpuhal_watch_frame *frame)
{
    uint32_t count = 0;
    gpuhal_process *list = read_processes(device, &count);
    gpuhal_watch_process *grown =
        list ? realloc(frame->processes, (frame->process_count + count + 1) * sizeof *grown) : NULL;
    if (grown) {
        frame->processes = grown;
        for (uint32_t i = 0; i < count; i++) {
            fill(users, &list[i], gpuhal_device_id(device), &frame->processes[frame->process_count++]);
        }
    }
    free(list);
    return grown != NULL;
}
