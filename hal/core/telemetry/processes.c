/* telemetry/processes.c: gpuhal_device_processes(). Names, users and containers are read from /proc in a job, because
 * reading these files may block if the process hangs in the kernel. */
#include "telemetry/processes.h"

#include "base/error.h"
#include "base/records.h"
#include "loader/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names and users */

typedef struct naming {
    gpuhal_job job;
    char root[GPUHAL_SYSTEM_ROOT_BYTES];
    uint64_t deadline_ns;
    uint32_t count;
    gpuhal_process list[];
} naming;

/* A program may have set any name for itself. */
static void set_name(gpuhal_process *process, char *name)
{
    name[strcspn(name, "\n")] = 0;
    gpuhal_records_clean(name);
    snprintf(process->command, sizeof process->command, "%s", name);
}

/* Docker, containerd, CRI-O and Podman include the container's id, 64 hexadecimal digits, in the control group's name
 * ("docker-ID.scope", "/docker/ID"). The last id is used, because containers can be nested. */
static void set_container(gpuhal_process *process, const char *groups)
{
    enum { ID_DIGITS = 64 };
    for (const char *at = groups; *at;) {
        const size_t digits = strspn(at, "0123456789abcdef");
        if (digits == ID_DIGITS) {
            memcpy(process->container, at, ID_DIGITS);
            process->container[ID_DIGITS] = 0;
        }
        at += digits > 0 ? digits : 1;
    }
}

/* If the process's memory is not readable, the process's directory in /proc belongs to root, so the real user is read
 * from a file in the directory. */
static void name_one(const char *root, gpuhal_process *process)
{
    char path[GPUHAL_SYSTEM_ROOT_BYTES + 64], status[2048], name[64], groups[4096];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/proc/%u/status", root, process->pid);
    if (!gpuhal_os_file_read_at(path, 0, status, sizeof status - 1, &bytes)) {
        status[bytes] = 0;
        const char *user = strstr(status, "\nUid:");
        if (user && sscanf(user + 5, "%" SCNu32, &process->user) == 1) {
            process->flags |= GPUHAL_PROCESS_USER_KNOWN;
        }
    }
    snprintf(path, sizeof path, "%s/proc/%u/comm", root, process->pid);
    if (!gpuhal_os_file_read_at(path, 0, name, sizeof name - 1, &bytes)) {
        name[bytes] = 0;
        set_name(process, name);
        /* NVML lists MPS clients separately, but lists the MPS server like any other process. */
        process->flags |= strncmp(process->command, "nvidia-cuda-mps", 15) == 0 ? GPUHAL_PROCESS_SHARES : 0;
    }
    snprintf(path, sizeof path, "%s/proc/%u/cgroup", root, process->pid);
    if (!gpuhal_os_file_read_at(path, 0, groups, sizeof groups - 1, &bytes)) {
        groups[bytes] = 0;
        set_container(process, groups);
    }
}

static void run(gpuhal_job *job)
{
    naming *own = (naming *)job;
    for (uint32_t i = 0; i < own->count && gpuhal_os_monotonic_ns() < own->deadline_ns; i++) {
        if (!(own->list[i].flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE)) {
            name_one(own->root, &own->list[i]);
        }
    }
}

static void destroy(gpuhal_job *job)
{
    free(job);
}

static int compare(const void *one, const void *other)
{
    const gpuhal_listed_process *a = one, *b = other;
    if (a->memory_bytes != b->memory_bytes) {
        return a->memory_bytes > b->memory_bytes ? -1 : 1;
    }
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static naming *make(const gpuhal *gpu, const gpuhal_process_list *list, uint32_t capacity, const gpuhal_time *time)
{
    const uint32_t count = list->count < capacity ? (uint32_t)list->count : capacity;
    naming *own = calloc(1, sizeof *own + count * sizeof *own->list);
    if (!own) {
        return NULL;
    }
    gpuhal_job_init(&own->job, run, NULL, destroy);
    own->job.calls_no_driver = true;
    memcpy(own->root, gpu->settings.system_root, sizeof own->root);
    own->deadline_ns = gpuhal_os_monotonic_ns() + gpuhal_time_share(time);
    own->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const gpuhal_listed_process *from = &list->list[i];
        gpuhal_process *process = &own->list[i];
        *process = (gpuhal_process){
            .pid = from->pid,
            .flags = from->flags,
            .busy_permille = from->busy_permille,
            .memory_bytes = from->memory_bytes,
        };
        memcpy(process->command, from->name, sizeof process->command);
        memcpy(process->source, from->source, sizeof process->source);
    }
    return own;
}

/* ---- the list */

static void put(const gpuhal_process *list, uint32_t count, uint32_t size, gpuhal_process *out_processes)
{
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_process *to = (gpuhal_process *)(void *)((char *)out_processes + (size_t)i * size);
        memcpy(to, &list[i], size < sizeof *to ? size : sizeof *to);
        to->size = size;
    }
}

static gpuhal_status give(const gpuhal *gpu, gpuhal_process_list *list, const gpuhal_time *time,
                          gpuhal_process *out_processes, uint32_t capacity)
{
    if (capacity == 0 || list->count == 0) {
        return GPUHAL_OK;
    }
    const uint32_t size = out_processes->size;
    naming *own = make(gpu, list, capacity, time);
    if (!own) {
        return gpuhal_error_host_memory();
    }
    put(own->list, own->count, size, out_processes); /* the list is valid even without names */
    const bool in_time = gpuhal_job_run(&own->job, gpuhal_time_share(time) + 1000000) == GPUHAL_JOB_DONE;
    if (in_time) {
        put(own->list, own->count, size, out_processes);
    }
    gpuhal_job_release(&own->job);
    return in_time ? GPUHAL_OK
                   : gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "the names of the processes were not read in time");
}

/* Returns whether the device sleeps, and sets the kernel driver in `place`. */
static gpuhal_power look_at_device(gpuhal *gpu, gpuhal_location *place, const gpuhal_time *time)
{
    gpuhal_kernel_device *kernel =
        place->directory[0] ? gpuhal_kernel_device_get(&gpu->layers.telemetry->devices, place->directory) : NULL;
    if (!kernel) {
        return GPUHAL_POWER_UNKNOWN;
    }
    uint64_t left_ns = gpuhal_time_share(time);
    const gpuhal_kernel_request request = {.device = kernel, .root = gpu->settings.system_root, .left_ns = left_ns};
    gpuhal_kernel_reading *reading = gpuhal_kernel_begin(&request, NULL, 0, NULL);
    const gpuhal_power power = gpuhal_kernel_end(reading, &left_ns, NULL, 0, NULL, place->driver);
    gpuhal_kernel_device_release(kernel);
    return power;
}

static gpuhal_status list_all(gpuhal_device *device, uint32_t flags, const gpuhal_time *time, gpuhal_process_list *list)
{
    gpuhal_location place;
    gpuhal_location_find(device, &place);
    if (look_at_device(device->gpu, &place, time) == GPUHAL_POWER_ASLEEP) {
        return gpuhal_error_set(GPUHAL_NOT_READY, "%s: %s", device->id, GPUHAL_SLEEPS);
    }
    const bool may_walk = !(flags & GPUHAL_SAMPLE_QUICK);
    const gpuhal_status by_clients = gpuhal_processes_of_clients(device->gpu, &place, may_walk, time, list);
    gpuhal_error_detail why;
    gpuhal_error_save(&why);
    const gpuhal_status by_plugins = gpuhal_processes_of_plugins(&place, false, time, list);
    if (list->failed) {
        return gpuhal_error_host_memory();
    }
    gpuhal_process_list_merge(list);
    if (list->count > 0) {
        qsort(list->list, list->count, sizeof *list->list, compare);
    }
    if (by_plugins == GPUHAL_ERROR_NOT_SUPPORTED) {
        return by_clients == GPUHAL_ERROR_NOT_SUPPORTED
                   ? gpuhal_error_set(by_clients, "%s: no source lists the processes of this device", device->id)
               : by_clients ? gpuhal_error_restore(&why)
                            : GPUHAL_OK;
    }
    return !by_plugins && by_clients == GPUHAL_NOT_READY ? gpuhal_error_restore(&why) : by_plugins;
}

gpuhal_status gpuhal_device_processes(gpuhal_device *device, uint32_t flags, uint64_t timeout_ns,
                                      gpuhal_process *out_processes, uint32_t capacity, uint32_t *out_count)
{
    if (out_count) {
        *out_count = 0;
    }
    if (!device || !out_count || (flags & ~(uint32_t)GPUHAL_SAMPLE_QUICK) ||
        (capacity > 0 && (!out_processes || out_processes->size == 0))) {
        return gpuhal_error_set(
            GPUHAL_ERROR_INVALID_ARGUMENT,
            "gpuhal_device_processes: device, out_processes or out_count is NULL, a size is 0, or unknown flags");
    }
    const uint64_t hang_ns = device->gpu->settings.hang_ns;
    const gpuhal_time time = {
        .deadline_ns = timeout_ns ? gpuhal_deadline(timeout_ns) : 0,
        .each_ns = hang_ns < GPUHAL_QUERY_NS ? hang_ns : GPUHAL_QUERY_NS,
    };
    gpuhal_process_list list = {0};
    gpuhal_status status = gpuhal_device_check(device);
    status = status ? status : list_all(device, flags, &time, &list);
    if (status != GPUHAL_ERROR_HOST_MEMORY) {
        gpuhal_error_detail detail;
        gpuhal_error_save(&detail);
        const gpuhal_status given = give(device->gpu, &list, &time, out_processes, capacity);
        *out_count = given == GPUHAL_ERROR_HOST_MEMORY ? 0 : (uint32_t)list.count;
        status = given && !status ? given : status;
        if (status != given) {
            gpuhal_error_restore(&detail);
        }
    }
    gpuhal_process_list_finish(&list);
    return status;
}
