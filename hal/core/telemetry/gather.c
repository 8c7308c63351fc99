/* telemetry/gather.c: the steps that read values; see telemetry.h. */
#include "telemetry/processes.h"

#include <string.h>

static void update_wanted(gpuhal_gather *own)
{
    for (uint32_t i = 0; i < own->count; i++) {
        own->has_any = own->has_any || (own->wanted[i] && !own->values[i].missing);
        own->wanted[i] = own->wanted[i] && own->values[i].missing;
    }
}

/* ---- the kernel's files */

static bool has_same_files(const gpuhal_gather *one, const gpuhal_gather *other)
{
    bool same = one->place.is_part && other->place.is_part && one->may_wake == other->may_wake &&
                one->count == other->count && strcmp(one->place.directory, other->place.directory) == 0;
    for (uint32_t i = 0; i < one->count && same; i++) {
        same = one->values[i].key == other->values[i].key;
    }
    return same;
}

/* Finds another part of the same divided device whose files are already being read for the same values. All parts share
 * the device's files, so the results apply to this part as well. */
static const gpuhal_gather *find_read(const gpuhal_gather *list, const gpuhal_gather *own)
{
    const gpuhal_gather *found = NULL;
    for (const gpuhal_gather *other = list; other < own && !found; other++) {
        found = other->reading && has_same_files(other, own) ? other : NULL;
    }
    return found;
}

static void take_from(gpuhal_gather *own, const gpuhal_gather *other)
{
    own->power = other->power;
    memcpy(own->place.driver, other->place.driver, sizeof own->place.driver);
    for (uint32_t i = 0; i < own->count; i++) {
        if (own->wanted[i] && gpuhal_kernel_has(own->values[i].key)) {
            own->values[i] = other->values[i];
        }
    }
}

static void begin_files(gpuhal *gpu, const gpuhal_gather *list, gpuhal_gather *own, const gpuhal_time *time)
{
    if (own->is_unusable || !own->place.directory[0]) {
        return;
    }
    own->read = find_read(list, own);
    if (own->read) {
        return;
    }
    own->kernel = gpuhal_kernel_device_get(&gpu->layers.telemetry->devices, own->place.directory);
    if (!own->kernel) {
        return;
    }
    const gpuhal_kernel_request request = {
        .device = own->kernel,
        .match = own->place.match,
        .root = gpu->settings.system_root,
        .memory_total = own->place.memory_total,
        .is_part = own->place.is_part,
        .may_wake = own->may_wake,
        .left_ns = gpuhal_time_share(time),
    };
    own->reading = gpuhal_kernel_begin(&request, own->values, own->count, own->wanted);
}

static void read_files(gpuhal *gpu, gpuhal_gather *list, uint32_t count, const gpuhal_time *time)
{
    uint64_t left_ns = gpuhal_time_share(time);
    for (uint32_t i = 0; i < count; i++) {
        begin_files(gpu, list, &list[i], time);
    }
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_gather *own = &list[i];
        if (own->read) {
            take_from(own, own->read);
        } else {
            own->power =
                gpuhal_kernel_end(own->reading, &left_ns, own->values, own->count, own->wanted, own->place.driver);
            gpuhal_kernel_device_release(own->kernel);
        }
        update_wanted(own);
    }
}

/* ---- the clients */

/* Returns false for the memory of amdgpu devices, because amdgpu counts it itself, and for the memory of devices that
 * share the host's memory. */
static bool may_have(const gpuhal_gather *own, uint32_t i)
{
    const gpuhal_key key = own->values[i].key;
    const bool memory = key == GPUHAL_VALUE_MEMORY_USED_BYTES || key == GPUHAL_VALUE_MEMORY_FREE_BYTES;
    return own->wanted[i] && gpuhal_walks_has(key) && own->power != GPUHAL_POWER_ASLEEP && !own->is_unusable &&
           !own->place.is_part && own->values[i].missing == GPUHAL_MISSING_NOT_SUPPORTED &&
           gpuhal_clients_are_of(own->place.driver) &&
           !(memory && (own->place.match.is_unified || strcmp(own->place.driver, "amdgpu") == 0));
}

static void read_clients(gpuhal *gpu, gpuhal_gather *list, uint32_t count, const gpuhal_time *time)
{
    gpuhal_walks *walks = gpu->layers.telemetry->walks;
    bool tried = false, there = false;
    for (uint32_t g = 0; g < count; g++) {
        for (uint32_t i = 0; i < list[g].count; i++) {
            if (!may_have(&list[g], i)) {
                continue;
            }
            uint64_t left_ns = gpuhal_time_share(time);
            there = tried ? there : gpuhal_walks_update(walks, gpu->settings.system_root, &left_ns);
            tried = true;
            gpuhal_value value = {.key = list[g].values[i].key};
            if (there) {
                gpuhal_walks_value(walks, &list[g].place.match, list[g].place.memory_total, &value);
            } else {
                gpuhal_value_miss(&value, GPUHAL_MISSING_TIMED_OUT, "the processes were not read in time");
            }
            gpuhal_value_improve(&list[g].values[i], &value);
        }
        update_wanted(&list[g]);
    }
}

/* ---- all sources */

/* Reads this process's memory from the process list, for drivers that do not report clients. */
static void read_own_memory(gpuhal_gather *own, const gpuhal_time *time)
{
    for (uint32_t i = 0; i < own->count; i++) {
        if (own->wanted[i] && own->values[i].key == GPUHAL_VALUE_MEMORY_PROCESS_BYTES &&
            own->power != GPUHAL_POWER_ASLEEP && !own->is_unusable &&
            own->values[i].missing == GPUHAL_MISSING_NOT_SUPPORTED) {
            gpuhal_error_detail before;
            gpuhal_error_save(&before);
            gpuhal_processes_own_memory(&own->place, own->may_wake || own->power == GPUHAL_POWER_AWAKE, time,
                                        &own->values[i]);
            (void)gpuhal_error_restore(&before);
        }
    }
    update_wanted(own);
}

void gpuhal_gather_all(gpuhal *gpu, gpuhal_gather *list, uint32_t count, const gpuhal_time *time)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_location_find(list[i].device, &list[i].place);
        most = list[i].place.interface_count > most ? list[i].place.interface_count : most;
    }
    read_files(gpu, list, count, time);
    read_clients(gpu, list, count, time);
    for (uint32_t n = 0; n < most; n++) {
        gpuhal_ask_interfaces(list, count, n, time);
        for (uint32_t i = 0; i < count; i++) {
            update_wanted(&list[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        read_own_memory(&list[i], time);
    }
}
