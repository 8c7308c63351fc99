/* telemetry/process_sources.c: see processes.h. */
#include "telemetry/processes.h"

#include "base/error.h"
#include "loader/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- clients */

/* A process's use of the device, summed over the process's clients. */
typedef struct usage {
    uint32_t pid, busy_permille;
    bool has_memory, has_busy;
    uint64_t memory;
} usage;

typedef struct usages {
    const gpuhal_client_match *match;
    usage *list;
    uint32_t count;
} usages;

/* The list has room for all clients. */
static void add_client(void *user, const gpuhal_client *client, uint32_t busy_permille)
{
    usages *own = user;
    own->list[own->count++] = (usage){
        .pid = client->pid,
        .has_busy = busy_permille != UINT32_MAX,
        .busy_permille = busy_permille != UINT32_MAX ? busy_permille : 0,
        .has_memory = client->has_memory,
        .memory = own->match->is_unified ? client->memory : client->device_memory,
    };
}

static int compare(const void *one, const void *other)
{
    const uint32_t a = ((const usage *)one)->pid, b = ((const usage *)other)->pid;
    return a < b ? -1 : a > b;
}

static void add_usage(gpuhal_process_list *to, const usage *sum)
{
    char problem[GPUHAL_QUERY_PROBLEM_BYTES] = "";
    const gpuhal_plugin_process process = {
        .size = sizeof process,
        .pid = sum->pid,
        .flags =
            (sum->has_memory ? GPUHAL_PROCESS_MEMORY_KNOWN : 0u) | (sum->has_busy ? GPUHAL_PROCESS_BUSY_KNOWN : 0u),
        .busy_permille = sum->busy_permille < 1000 ? sum->busy_permille : 1000,
        .memory_bytes = sum->memory,
    };
    gpuhal_process_list_add(to, &process, "fdinfo", problem, sizeof problem);
}

gpuhal_status gpuhal_processes_of_clients(gpuhal *gpu, const gpuhal_location *place, bool may_walk,
                                          const gpuhal_time *time, gpuhal_process_list *to)
{
    gpuhal_walks *walks = gpu->layers.telemetry->walks;
    uint64_t left_ns = gpuhal_time_share(time);
    if (!gpuhal_clients_are_of(place->driver)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (!may_walk && !gpuhal_walks_are_recent(walks)) {
        return gpuhal_error_set(GPUHAL_NOT_READY, "processes that only a walk over all processes finds are left out");
    }
    if (!gpuhal_walks_update(walks, gpu->settings.system_root, &left_ns)) {
        return gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "the processes of the system were not read in time");
    }
    usages all = {.match = &place->match, .list = calloc(GPUHAL_CLIENTS_MAX, sizeof *all.list)};
    if (!all.list) {
        to->failed = true;
        return gpuhal_error_host_memory();
    }
    gpuhal_walks_visit(walks, &place->match, add_client, &all);
    if (all.count > 1) {
        qsort(all.list, all.count, sizeof *all.list, compare);
    }
    for (uint32_t i = 0, next; i < all.count; i = next) {
        usage sum = all.list[i];
        for (next = i + 1; next < all.count && all.list[next].pid == sum.pid; next++) {
            sum.memory += all.list[next].memory;
            sum.busy_permille += all.list[next].busy_permille;
            sum.has_memory = sum.has_memory || all.list[next].has_memory;
            sum.has_busy = sum.has_busy || all.list[next].has_busy;
        }
        add_usage(to, &sum);
    }
    free(all.list);
    return GPUHAL_OK;
}

/* ---- plugins */

typedef struct listing {
    gpuhal_job job;
    gpuhal *gpu; /* with a reference, because starting the plugin may take longer than the caller waits */
    gpuhal_device *iface;
    _Atomic bool given_up;
    uint32_t flags;
    uint64_t deadline_ns;
    gpuhal_status status;
    gpuhal_process_list list;
} listing;

static void run(gpuhal_job *job)
{
    listing *own = (listing *)job;
    gpuhal_backend *backend = NULL;
    const gpuhal_listed_device *listed = NULL;
    char problem[GPUHAL_QUERY_PROBLEM_BYTES];
    own->status = gpuhal_device_check(own->iface);
    own->status = own->status ? own->status : gpuhal_device_start_backend(own->iface, &backend, &listed);
    if (own->status || atomic_load(&own->given_up)) {
        return;
    }
    const gpuhal_plugin *plugin = gpuhal_backend_plugin(backend);
    if (!plugin->processes) {
        own->status = GPUHAL_ERROR_NOT_SUPPORTED;
        return;
    }
    own->status = gpuhal_query_processes(plugin, gpuhal_backend_instance(backend), listed->index, own->flags,
                                         own->deadline_ns, &own->list, problem);
    if (own->status < 0) {
        own->status = gpuhal_device_failed(own->iface, own->status, "listing processes");
    }
}

static void destroy(gpuhal_job *job)
{
    listing *own = (listing *)job;
    gpuhal *gpu = own->gpu;
    gpuhal_process_list_finish(&own->list);
    free(own);
    gpuhal_unreference(gpu);
}

/* In a container, drivers list the machine's pids. The same pid in the container belongs to another process. */
static void take(listing *own, gpuhal_process_list *to)
{
    char problem[GPUHAL_QUERY_PROBLEM_BYTES] = "";
    const bool contained = gpuhal_pids_are_contained(own->gpu->settings.system_root);
    to->failed = to->failed || own->list.failed;
    for (size_t i = 0; i < own->list.count; i++) {
        const gpuhal_listed_process *from = &own->list.list[i];
        const gpuhal_plugin_process process = {
            .size = sizeof process,
            .pid = from->pid,
            .flags = from->flags | (contained ? GPUHAL_PROCESS_FOREIGN_NAMESPACE : 0),
            .busy_permille = from->busy_permille,
            .memory_bytes = from->memory_bytes,
            .name = from->name[0] ? from->name : NULL,
        };
        gpuhal_process_list_add(to, &process, from->source[0] ? from->source : own->iface->candidate->name, problem,
                                sizeof problem);
    }
}

static gpuhal_status list_one(gpuhal_device *iface, bool may_wake, const gpuhal_time *time, gpuhal_process_list *to)
{
    listing *own = calloc(1, sizeof *own);
    if (!own) {
        to->failed = true;
        return gpuhal_error_host_memory();
    }
    gpuhal_job_init(&own->job, run, NULL, destroy);
    atomic_fetch_add(&iface->gpu->references, 1);
    own->gpu = iface->gpu;
    own->iface = iface;
    own->flags = may_wake ? GPUHAL_SAMPLE_MAY_WAKE : 0;
    own->deadline_ns = gpuhal_time_share(time);
    gpuhal_job_stand_alone(&own->job);
    /* Waits for twice the time limit of the driver call, so that the call is abandoned first and its partial result is
     * available. */
    gpuhal_job_state state = gpuhal_job_run(&own->job, 2 * own->deadline_ns);
    gpuhal_status status = GPUHAL_ERROR_HOST_MEMORY;
    if (state == GPUHAL_JOB_DONE) {
        status = own->status;
        if (status && status != GPUHAL_ERROR_NOT_SUPPORTED) {
            gpuhal_error_restore(&own->job.detail);
        }
        take(own, to);
    } else if (state == GPUHAL_JOB_ABANDONED) {
        atomic_store(&own->given_up, true);
        status = gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "%s: the driver did not start in time", iface->id);
    }
    gpuhal_job_release(&own->job);
    return status;
}

gpuhal_status gpuhal_processes_of_plugins(const gpuhal_location *place, bool may_wake, const gpuhal_time *time,
                                          gpuhal_process_list *to)
{
    gpuhal_status status = GPUHAL_ERROR_NOT_SUPPORTED;
    for (uint32_t i = 0; i < place->interface_count && status == GPUHAL_ERROR_NOT_SUPPORTED; i++) {
        gpuhal_device *iface = place->interfaces[i];
        const char *name = iface->candidate->name;
        if (strcmp(name, "vulkan") != 0 && strcmp(name, "opencl") != 0) { /* these APIs do not list processes */
            status = list_one(iface, may_wake, time, to);
        }
    }
    return status;
}

void gpuhal_processes_own_memory(const gpuhal_location *place, bool may_wake, const gpuhal_time *time,
                                 gpuhal_value *value)
{
    gpuhal_process_list list = {0};
    const gpuhal_status status = gpuhal_processes_of_plugins(place, may_wake, time, &list);
    for (size_t i = 0; i < list.count; i++) {
        const gpuhal_listed_process *process = &list.list[i];
        if (process->pid == (uint32_t)gpuhal_os_process_own() && (process->flags & GPUHAL_PROCESS_MEMORY_KNOWN) &&
            !(process->flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE)) {
            gpuhal_value_set(value, process->memory_bytes, process->source);
        }
    }
    if (value->missing && status == GPUHAL_ERROR_TIMEOUT) {
        gpuhal_value_miss(value, GPUHAL_MISSING_TIMED_OUT, "the driver did not list the processes in time");
    } else if (value->missing && !status) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the driver does not list this process");
    }
    gpuhal_process_list_finish(&list);
}
