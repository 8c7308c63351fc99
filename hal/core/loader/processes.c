/* loader/processes.c: see processes.h. */
#include "loader/processes.h"

#include "base/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS                                                                                                    \
    (GPUHAL_PROCESS_MEMORY_KNOWN | GPUHAL_PROCESS_BUSY_KNOWN | GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_GRAPHICS |      \
     GPUHAL_PROCESS_FOREIGN_NAMESPACE | GPUHAL_PROCESS_SHARES)
#define SMALLEST ((uint32_t)(offsetof(gpuhal_plugin_process, name) + sizeof(const char *)))

/* Copies a name, truncated at a character boundary, if it is UTF-8 without control characters. Does not read more than
 * GPUHAL_PROCESS_NAME_BYTES bytes. */
static bool copy_name(const char *name, char out_name[GPUHAL_PROCESS_NAME_BYTES])
{
    size_t length = strnlen(name, GPUHAL_PROCESS_NAME_BYTES);
    if (length == GPUHAL_PROCESS_NAME_BYTES) {
        for (length--; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80; length--) {
        }
    }
    if (!gpuhal_records_is_clean(name, length)) {
        return false;
    }
    memcpy(out_name, name, length);
    out_name[length] = 0;
    gpuhal_records_clean(out_name);
    return true;
}

static gpuhal_listed_process *append(gpuhal_process_list *list)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 16;
        gpuhal_listed_process *larger = realloc(list->list, capacity * sizeof *larger);
        if (!larger) {
            list->failed = true;
            return NULL;
        }
        list->list = larger;
        list->capacity = capacity;
    }
    return &list->list[list->count++];
}

void gpuhal_process_list_add(gpuhal_process_list *list, const gpuhal_plugin_process *process, const char *source,
                             char *problem, size_t bytes)
{
    if (!process || process->size < SMALLEST) {
        snprintf(problem, bytes, "it gives a process without its size");
        return;
    }
    if (process->pid == 0 && !(process->flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE)) {
        snprintf(problem, bytes, "it gives process 0, which is none of this system's");
        return;
    }
    if (list->count == GPUHAL_PROCESS_LIST_MAX) {
        snprintf(problem, bytes, "it lists more than %u processes of one device", GPUHAL_PROCESS_LIST_MAX);
        return;
    }
    gpuhal_listed_process one = {.pid = process->pid, .flags = process->flags & KNOWN_FLAGS};
    if ((one.flags & GPUHAL_PROCESS_BUSY_KNOWN) && process->busy_permille > 1000) {
        snprintf(problem, bytes, "it gives process %" PRIu32 " %" PRIu32 " permille of the time", one.pid,
                 process->busy_permille);
        one.flags &= ~(uint32_t)GPUHAL_PROCESS_BUSY_KNOWN;
    }
    one.busy_permille = one.flags & GPUHAL_PROCESS_BUSY_KNOWN ? process->busy_permille : 0;
    one.memory_bytes = one.flags & GPUHAL_PROCESS_MEMORY_KNOWN ? process->memory_bytes : 0;
    if (process->name && !copy_name(process->name, one.name)) {
        snprintf(problem, bytes, "the name of process %" PRIu32 " is not UTF-8, or has control characters", one.pid);
    }
    snprintf(one.source, sizeof one.source, "%s", source);
    gpuhal_listed_process *place = append(list);
    if (place) {
        *place = one;
    }
}

/* The same pid in two PID namespaces means two processes. */
static uint64_t identity(const gpuhal_listed_process *process)
{
    return (uint64_t)process->pid << 1 | ((process->flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE) != 0);
}

static int compare(const void *one, const void *other)
{
    const uint64_t a = identity(one), b = identity(other);
    return a < b ? -1 : a > b;
}

/* If a process uses both compute and graphics, the driver lists the same memory twice. */
static void join(gpuhal_listed_process *to, const gpuhal_listed_process *from)
{
    to->flags |= from->flags;
    to->memory_bytes = from->memory_bytes > to->memory_bytes ? from->memory_bytes : to->memory_bytes;
    to->busy_permille = from->busy_permille > to->busy_permille ? from->busy_permille : to->busy_permille;
    if (!to->name[0]) {
        memcpy(to->name, from->name, sizeof to->name);
    }
}

void gpuhal_process_list_merge(gpuhal_process_list *list)
{
    size_t kept = 0;
    if (list->count > 1) {
        qsort(list->list, list->count, sizeof *list->list, compare);
    }
    for (size_t i = 0; i < list->count; i++) {
        if (kept > 0 && list->list[i].pid != 0 && identity(&list->list[i]) == identity(&list->list[kept - 1])) {
            join(&list->list[kept - 1], &list->list[i]);
        } else {
            list->list[kept++] = list->list[i];
        }
    }
    list->count = kept;
}

void gpuhal_process_list_finish(gpuhal_process_list *list)
{
    free(list->list);
    *list = (gpuhal_process_list){0};
}
