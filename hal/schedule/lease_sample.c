/* schedule/lease_sample.c: samples the memory, load and health of devices before one of them is leased. Also lists the
 * processes if a device is exclusive, if other processes have leased its memory, or on request. Reuses recent samples.
 */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <gpuhal/telemetry.h>

#include <stdio.h>
#include <stdlib.h>

#define FRESH_NS     UINT64_C(100000000)
#define PROCESSES_NS UINT64_C(1000000000) /* time limit for listing the processes of all devices */
/* FAR_NS is the time that hanging drivers may take if there is no deadline. LEAST_NS is the time that drivers always
 * have. Without LEAST_NS, a lease could be granted memory that other programs use. */
#define FAR_NS   UINT64_C(6000000000)
#define LEAST_NS UINT64_C(1000000000)

/* BUSY must be last because it is optional. */
enum { FREE, USED, RESERVED, LIMIT, ERRORS, THROTTLE, REPAIR, LINKS, FABRIC, BUSY, VALUES };

static const gpuhal_key keys[VALUES] = {
    [FREE] = GPUHAL_VALUE_MEMORY_FREE_BYTES,
    [USED] = GPUHAL_VALUE_MEMORY_USED_BYTES,
    [RESERVED] = GPUHAL_VALUE_MEMORY_RESERVED_BYTES,
    [LIMIT] = GPUHAL_VALUE_MEMORY_LIMIT_BYTES,
    [ERRORS] = GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL,
    [THROTTLE] = GPUHAL_VALUE_THROTTLE_REASONS,
    [REPAIR] = GPUHAL_VALUE_MEMORY_REPAIR,
    [LINKS] = GPUHAL_VALUE_LINK_ERRORS_TOTAL,
    [FABRIC] = GPUHAL_VALUE_FABRIC,
    [BUSY] = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE,
};

typedef struct reading {
    gpuhal_lease_device **devices;
    gpuhal_sample *samples;
    gpuhal_value *values;
    uint32_t count;
    bool compares;
} reading;

static bool is_exclusive(const gpuhal_device *device)
{
    return gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_COMPUTE_MODE, 0) == GPUHAL_COMPUTE_EXCLUSIVE;
}

/* In a pid namespace such as a container's, drivers list this process with another pid: NVML lists pids of the machine,
 * and /proc lists only pids of its own namespace. If this process has opened the exclusive device, an unknown process
 * must be this one, since no other process can open the device. */
static bool is_stranger(gpuhal_device *device, const gpuhal_process *process, const gpuhal_lease_reading *last)
{
    const bool is_here = last->own_bytes > 0 || atomic_load(&device->state) == GPUHAL_DEVICE_IS_OPEN;
    return (process->flags & GPUHAL_PROCESS_COMPUTE) && process->pid != (uint32_t)gpuhal_os_process_own() && !is_here;
}

/* An exclusive device does not count as taken if one of its users is a service that shares it. */
static void sample_processes(gpuhal_device *device, uint64_t until_ns, gpuhal_lease_reading *out)
{
    gpuhal_process list[GPUHAL_LEASE_PROCESSES] = {{.size = sizeof *list}};
    uint32_t count = 0;
    /* A hanging driver may take at most half of the remaining time, so that the other devices are also sampled. */
    const uint64_t now = gpuhal_os_monotonic_ns(), limit_ns = until_ns > now ? (until_ns - now) / 2 : 0;
    const gpuhal_status status =
        limit_ns == 0 ? GPUHAL_ERROR_TIMEOUT
                      : gpuhal_device_processes(device, 0, limit_ns, list, GPUHAL_LEASE_PROCESSES, &count);
    out->has_processes = status == GPUHAL_OK && count <= GPUHAL_LEASE_PROCESSES;
    out->process_count = count < GPUHAL_LEASE_PROCESSES ? count : GPUHAL_LEASE_PROCESSES;
    bool shares = false;
    for (uint32_t i = 0; i < out->process_count; i++) {
        shares = shares || (list[i].flags & GPUHAL_PROCESS_SHARES);
        out->taken = out->taken || (is_exclusive(device) && is_stranger(device, &list[i], out));
        const bool usable = list[i].pid > 0 && (list[i].flags & GPUHAL_PROCESS_MEMORY_KNOWN) &&
                            !(list[i].flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE);
        out->processes[i].pid = usable ? list[i].pid : 0;
        out->processes[i].bytes = usable ? list[i].memory_bytes : 0;
        out->has_processes = out->has_processes && usable;
    }
    out->taken = out->taken && !shares;
}

/* Skips a CPU's load, because sampling it takes a while and does not affect the decision. */
static bool asks_busy(const gpuhal_lease_device *device, bool compares)
{
    return compares && !gpuhal_lease_is_processor(device->device);
}

/* Skips a CPU if none of its memory is requested. */
static bool is_needed(const gpuhal_lease_device *device, bool compares)
{
    const gpuhal_lease_reading *last = &device->sample;
    const bool fresh = last->when_ns > 0 && gpuhal_os_monotonic_ns() - last->when_ns < FRESH_NS &&
                       (last->asked_busy || !asks_busy(device, compares)) &&
                       (last->asked_processes || !last->wants_processes);
    return !fresh && (device->bytes > 0 || !gpuhal_lease_is_processor(device->device));
}

/* Copies each device's last sample. Lists the devices that must be sampled now. */
static void list(gpuhal *gpu, gpuhal_lease_device *devices, uint32_t count, reading *own)
{
    gpuhal_leases *leases = gpuhal_leases_of(gpu);
    gpuhal_mutex_lock(&leases->mutex);
    for (uint32_t i = 0; i < count; i++) {
        const struct gpuhal_known_device *known = gpuhal_lease_known(leases, devices[i].device);
        devices[i].sample = known ? known->sample : (gpuhal_lease_reading){0};
        devices[i].sample.wants_processes =
            devices[i].sample.wants_processes || devices[i].lists_processes || is_exclusive(devices[i].device);
    }
    gpuhal_mutex_unlock(&leases->mutex);
    for (uint32_t i = 0; i < count; i++) {
        if (!is_needed(&devices[i], own->compares)) {
            continue;
        }
        gpuhal_value *values = &own->values[(size_t)VALUES * own->count];
        for (uint32_t k = 0; k < VALUES; k++) {
            values[k].key = keys[k];
        }
        /* This value must be read before the driver's used bytes. */
        devices[i].sample.own_bytes = gpuhal_lease_allocated(devices[i].device);
        own->samples[own->count] = (gpuhal_sample){.size = sizeof *own->samples,
                                                   .device = devices[i].device,
                                                   .values = values,
                                                   .count = asks_busy(&devices[i], own->compares) ? VALUES : BUSY};
        own->devices[own->count++] = &devices[i];
    }
}

/* A limit that cannot be read is ignored, since the kernel or driver enforces it. */
static void take_limit(const gpuhal_value *limit, gpuhal_lease_reading *out)
{
    out->limit_bytes = limit->missing ? UINT64_MAX : limit->u64;
    snprintf(out->limit_source, sizeof out->limit_source, "%s", limit->source);
}

/* Since version 615, NVML caps the reported free bytes at the limit of this process's control group, but the bytes
 * beyond the limit are not in use. Drivers that report reserved bytes do not count them as used. CUDA also excludes
 * reserved bytes from the total: for an H100, nvidia-smi reports 81559 MiB with 551 MiB reserved, and CUDA reports 79.1
 * GiB. Drivers that do not report reserved bytes count them as used. */
static uint64_t used_of(const gpuhal_value *values, uint64_t total)
{
    const bool says_used = !values[USED].missing && (!values[RESERVED].missing || values[FREE].missing);
    return says_used ? values[USED].u64 : total > values[FREE].u64 ? total - values[FREE].u64 : 0;
}

static void take(const gpuhal_sample *sample, uint64_t until_ns, gpuhal_lease_device *device)
{
    const gpuhal_value *values = sample->values;
    gpuhal_lease_reading *out = &device->sample;
    const bool sampled = sample->status == GPUHAL_OK;
    const uint64_t total = device->described.bytes;
    out->lost = sample->status == GPUHAL_ERROR_DEVICE_LOST;
    out->ailments = gpuhal_ailments(values, sample->count);
    out->asked_busy = sample->count == VALUES;
    out->busy_permille = sampled && out->asked_busy && !values[BUSY].missing ? (uint32_t)values[BUSY].u64 : UINT32_MAX;
    out->known = sampled && (!values[FREE].missing || !values[USED].missing);
    out->used_bytes = out->known ? used_of(values, total) : out->used_bytes;
    out->late =
        !out->known && (values[FREE].missing == GPUHAL_MISSING_TIMED_OUT || sample->status == GPUHAL_ERROR_TIMEOUT);
    take_limit(&values[LIMIT], out);
    out->has_processes = false;
    out->asked_processes = out->wants_processes;
    out->process_count = 0;
    out->taken = false;
    if (sampled && out->wants_processes) {
        sample_processes(device->device, until_ns, out);
    }
    out->when_ns = gpuhal_os_monotonic_ns();
}

/* Returns a timeout for gpuhal_sample_all(), or 0 for its default timeouts. */
static uint64_t time_for_drivers(uint64_t deadline_ns)
{
    const uint64_t now = gpuhal_os_monotonic_ns(), left_ns = deadline_ns > now ? deadline_ns - now : 0;
    return deadline_ns == 0 || left_ns >= FAR_NS ? 0 : left_ns > LEAST_NS ? left_ns : LEAST_NS;
}

static gpuhal_status read_devices(gpuhal *gpu, reading *own, uint64_t deadline_ns)
{
    const uint64_t begin_ns = gpuhal_os_monotonic_ns(), limit_ns = time_for_drivers(deadline_ns);
    gpuhal_status status = own->count > 0 ? gpuhal_sample_all(gpu, own->samples, own->count, limit_ns) : GPUHAL_OK;
    for (uint32_t i = 0; i < own->count && !status; i++) {
        status = own->samples[i].status == GPUHAL_ERROR_HOST_MEMORY ? gpuhal_error_host_memory() : GPUHAL_OK;
    }
    const uint64_t later_ns = gpuhal_os_monotonic_ns() + PROCESSES_NS;
    const uint64_t until_ns = limit_ns > 0 && begin_ns + limit_ns < later_ns ? begin_ns + limit_ns : later_ns;
    for (uint32_t i = 0; i < own->count && !status; i++) {
        take(&own->samples[i], until_ns, own->devices[i]);
    }
    return status;
}

static void keep(gpuhal_leases *leases, const reading *own)
{
    gpuhal_mutex_lock(&leases->mutex);
    for (uint32_t i = 0; i < own->count; i++) {
        struct gpuhal_known_device *known = gpuhal_lease_known(leases, own->devices[i]->device);
        if (known) {
            known->sample = own->devices[i]->sample;
        }
    }
    gpuhal_mutex_unlock(&leases->mutex);
}

gpuhal_status gpuhal_lease_sample(gpuhal *gpu, gpuhal_lease_device *devices, uint32_t count, bool compares,
                                  uint64_t deadline_ns)
{
    gpuhal_error_detail before;
    if (count == 0) {
        return GPUHAL_OK;
    }
    gpuhal_error_save(&before);
    reading own = {.devices = calloc(count, sizeof *own.devices),
                   .samples = calloc(count, sizeof *own.samples),
                   .values = calloc(count, VALUES * sizeof *own.values),
                   .compares = compares};
    gpuhal_status status = own.devices && own.samples && own.values ? GPUHAL_OK : gpuhal_error_host_memory();
    if (!status) {
        list(gpu, devices, count, &own);
        status = read_devices(gpu, &own, deadline_ns);
    }
    if (!status) {
        keep(gpuhal_leases_of(gpu), &own);
        gpuhal_error_restore(&before); /* a value that the driver does not report is not a lease error */
    }
    free(own.devices);
    free(own.samples);
    free(own.values);
    return status;
}
