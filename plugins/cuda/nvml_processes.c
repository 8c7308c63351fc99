/* cuda/nvml_processes.c: lists the processes that NVML reports for a GPU: compute processes, graphics processes, and
 * compute processes under the multi-process service (MPS).
 *
 * The list is read into a buffer for a number of entries. If there are more entries, NVML returns their number. This
 * number may be larger at the next attempt. Drivers 535.43 to 535.86 write longer entries through the same function.
 * Longer entries are detected from the bytes behind the entries.
 */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROOM_FIRST   64u
#define ROOM_MOST    65536u
#define ATTEMPTS     8
#define LONGER_ENTRY 16u /* an entry may be longer than ours by at most this number of bytes */
#define UNTOUCHED    0xa5
#define PERIOD_US    1000000u

typedef nvmlReturn_t lister(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *processes);

static bool is_untouched(const unsigned char *from, size_t bytes)
{
    bool same = true;
    for (size_t i = 0; same && i < bytes; i++) {
        same = from[i] == UNTOUCHED;
    }
    return same;
}

/* Makes one attempt. *room is the buffer's size in entries. After INSUFFICIENT_SIZE, *room is the size for the next
 * attempt. The caller frees the list. */
static nvmlReturn_t read_once(lister *ask, nvmlDevice_t device, unsigned *room, nvmlProcessInfo_t **out_list,
                              unsigned *out_count)
{
    const size_t bytes = *room * (sizeof(nvmlProcessInfo_t) + LONGER_ENTRY);
    unsigned count = *room;
    *out_list = malloc(bytes);
    if (!*out_list) {
        return NVML_ERROR_MEMORY;
    }
    memset(*out_list, UNTOUCHED, bytes);
    nvmlReturn_t code = ask(device, &count, *out_list);
    if (code == NVML_ERROR_INSUFFICIENT_SIZE) {
        *room = count + count / 4 + 16;
        return *room > ROOM_MOST ? NVML_ERROR_INSUFFICIENT_RESOURCES : code;
    }
    if (code != NVML_SUCCESS || count == 0) {
        return code;
    }
    *out_count = count;
    return count > *room || !is_untouched((const unsigned char *)(*out_list + count), count * (size_t)LONGER_ENTRY)
               ? GPUHAL_CUDA_NVML_OTHER_LAYOUT
               : code;
}

/* The caller must free the list, even after a failure. */
static nvmlReturn_t read_list(lister *ask, nvmlDevice_t device, nvmlProcessInfo_t **out_list, unsigned *out_count)
{
    nvmlReturn_t code = NVML_ERROR_FUNCTION_NOT_FOUND;
    unsigned room = ROOM_FIRST;
    *out_list = NULL;
    *out_count = 0;
    for (int attempt = 0; ask && attempt < ATTEMPTS; attempt++) {
        free(*out_list);
        code = read_once(ask, device, &room, out_list, out_count);
        if (code != NVML_ERROR_INSUFFICIENT_SIZE) {
            break;
        }
    }
    *out_count = code == NVML_SUCCESS ? *out_count : 0;
    return code;
}

/* Reads each type of process with one of two functions, trying the newer one first. */
static nvmlReturn_t read_kind(lister *newer, lister *older, nvmlDevice_t device, nvmlProcessInfo_t **out_list,
                              unsigned *out_count)
{
    const nvmlReturn_t code = read_list(newer, device, out_list, out_count);
    if (code != NVML_ERROR_FUNCTION_NOT_FOUND) {
        return code;
    }
    free(*out_list);
    return read_list(older, device, out_list, out_count);
}

static nvmlReturn_t read_computing(nvmlDevice_t device, nvmlProcessInfo_t **out_list, unsigned *out_count)
{
    return read_kind(gpuhal_cuda_nvml.nvmlDeviceGetComputeRunningProcesses_v3,
                     gpuhal_cuda_nvml.nvmlDeviceGetComputeRunningProcesses_v2, device, out_list, out_count);
}

static nvmlReturn_t read_drawing(nvmlDevice_t device, nvmlProcessInfo_t **out_list, unsigned *out_count)
{
    return read_kind(gpuhal_cuda_nvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
                     gpuhal_cuda_nvml.nvmlDeviceGetGraphicsRunningProcesses_v2, device, out_list, out_count);
}

static nvmlReturn_t read_sharing(nvmlDevice_t device, nvmlProcessInfo_t **out_list, unsigned *out_count)
{
    return read_kind(gpuhal_cuda_nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
                     gpuhal_cuda_nvml.nvmlDeviceGetMPSComputeRunningProcesses_v2, device, out_list, out_count);
}

/* ---- the memory of this process */

/* The driver may list this process as both a compute and a graphics process. Finds the larger of the two numbers,
 * because the sum would count memory twice. */
nvmlReturn_t gpuhal_cuda_nvml_own_memory(nvmlDevice_t device, uint64_t *out_value)
{
    const unsigned self = (unsigned)getpid();
    nvmlProcessInfo_t *list = NULL;
    unsigned count = 0;
    *out_value = 0;
    nvmlReturn_t code = read_computing(device, &list, &count);
    for (int kind = 0; kind < 2 && code == NVML_SUCCESS; kind++) {
        for (unsigned i = 0; i < count; i++) {
            if (list[i].pid == self && list[i].usedGpuMemory > *out_value) {
                *out_value = list[i].usedGpuMemory;
            }
        }
        if (kind == 0) {
            free(list);
            /* MIG devices do not support graphics. */
            (void)read_drawing(device, &list, &count);
        }
    }
    free(list);
    return code == NVML_SUCCESS && !gpuhal_cuda_is_first_namespace() ? GPUHAL_CUDA_NVML_OTHER_NAMESPACE : code;
}

/* ---- GPU utilization of each process */

static int compare_samples(const void *one, const void *other)
{
    const nvmlProcessUtilizationSample_t *a = one, *b = other;
    if (a->pid != b->pid) {
        return a->pid < b->pid ? -1 : 1;
    }
    return a->timeStamp < b->timeStamp ? -1 : a->timeStamp > b->timeStamp;
}

typedef struct usage {
    nvmlProcessUtilizationSample_t *samples; /* by pid, then by time */
    unsigned count;
} usage;

/* Reads the samples of the last second; without samples, no process has a value. The caller frees them. */
static usage read_usage(nvmlDevice_t device)
{
    struct timespec now;
    usage found = {0};
    unsigned count = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    const unsigned long long since =
        (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000 - PERIOD_US;
    if (!gpuhal_cuda_nvml.nvmlDeviceGetProcessUtilization ||
        gpuhal_cuda_nvml.nvmlDeviceGetProcessUtilization(device, NULL, &count, since) != NVML_ERROR_INSUFFICIENT_SIZE ||
        count == 0 || count > ROOM_MOST) {
        return found;
    }
    found.samples = calloc(count, sizeof *found.samples);
    found.count = count;
    if (!found.samples ||
        gpuhal_cuda_nvml.nvmlDeviceGetProcessUtilization(device, found.samples, &found.count, since) != NVML_SUCCESS ||
        found.count > count) {
        found.count = 0;
    }
    if (found.count > 1) {
        qsort(found.samples, found.count, sizeof *found.samples, compare_samples);
    }
    return found;
}

/* Finds the process's newest sample, which is the last sample whose pid is not greater than @p pid. NVML has been seen
 * to return more than 100 %. */
static bool find_usage(const usage *of, unsigned pid, uint32_t *out_permille)
{
    unsigned low = 0, high = of->count;
    while (low < high) {
        const unsigned middle = low + (high - low) / 2;
        if (of->samples[middle].pid <= pid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || of->samples[low - 1].pid != pid || of->samples[low - 1].smUtil > 100) {
        return false;
    }
    *out_permille = of->samples[low - 1].smUtil * 10;
    return true;
}

/* ---- the list */

typedef struct request {
    const gpuhal_host *host;
    gpuhal_sink *sink;
    const gpuhal_cuda_entry *entry;
    usage usage;
    nvmlReturn_t code; /* the first code that is not success */
} request;

static void give(const request *own, const nvmlProcessInfo_t *one, uint32_t flags)
{
    gpuhal_plugin_process process = {.pid = one->pid, .flags = flags};
    /* All bits set mean that the number is not available. Any number that exceeds the GPU's memory is not plausible. */
    if (one->usedGpuMemory <= own->entry->total) {
        process.flags |= GPUHAL_PROCESS_MEMORY_KNOWN;
        process.memory_bytes = one->usedGpuMemory;
    }
    if (find_usage(&own->usage, one->pid, &process.busy_permille)) {
        process.flags |= GPUHAL_PROCESS_BUSY_KNOWN;
    }
    gpuhal_cuda_give_process(own->host, own->sink, process);
}

static void list_kind(request *own, nvmlDevice_t device,
                      nvmlReturn_t (*read)(nvmlDevice_t device, nvmlProcessInfo_t **out_list, unsigned *out_count),
                      uint32_t flags)
{
    nvmlProcessInfo_t *list = NULL;
    unsigned count = 0;
    const nvmlReturn_t code = read(device, &list, &count);
    for (unsigned i = 0; i < count; i++) {
        give(own, &list[i], flags);
    }
    free(list);
    own->code = own->code == NVML_SUCCESS ? code : own->code;
}

/* Runs in this thread's turn. Compute-only GPUs and MIG devices support neither graphics processes nor the
 * multi-process service. */
static nvmlReturn_t list_all(void *user)
{
    request *own = user;
    nvmlDevice_t device = NULL, board = NULL;
    own->code = gpuhal_cuda_nvml_find(own->entry, &device, &board);
    if (own->code != NVML_SUCCESS) {
        return own->code;
    }
    own->usage = read_usage(device);
    list_kind(own, device, read_computing, GPUHAL_PROCESS_COMPUTE);
    const nvmlReturn_t code = own->code;
    list_kind(own, device, read_drawing, GPUHAL_PROCESS_GRAPHICS);
    list_kind(own, device, read_sharing, GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_SHARES);
    const bool optional = own->code == NVML_ERROR_NOT_SUPPORTED || own->code == NVML_ERROR_FUNCTION_NOT_FOUND;
    own->code = optional ? code : own->code;
    free(own->usage.samples);
    return own->code;
}

gpuhal_status gpuhal_cuda_processes(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                    uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    request own = {.host = host, .sink = sink, .entry = gpuhal_cuda_find(index)};
    gpuhal_stream_why why = {0};
    if (!own.entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (!(flags & GPUHAL_SAMPLE_MAY_WAKE) && gpuhal_cuda_is_asleep(own.entry)) {
        why = gpuhal_cuda_because(GPUHAL_MISSING_ASLEEP, "the GPU sleeps, and NVML would wake it");
    } else {
        host->source(host, sink, "nvml");
        why = gpuhal_cuda_nvml_run(list_all, &own);
        why = why.reason == 0 ? gpuhal_cuda_nvml_why(own.code) : why;
    }
    return gpuhal_cuda_processes_failed(host, &why, "nvmlDeviceGetComputeRunningProcesses", (int64_t)own.code);
}
