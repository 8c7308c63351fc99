/* telemetry/sample.c: samples changing values of devices, including devices that are not open. */
#include "telemetry/telemetry.h"

#include "base/error.h"
#include "loader/query.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_VALUE ((gpuhal_key)GPUHAL_VALUE_MEMORY_FREE_BYTES)

/* Returns whether the library itself provides the result: for a value that it counts or calculates, and for a fact,
 * which is not a value. */
static bool is_ours(gpuhal_key key)
{
    return key == GPUHAL_VALUE_MEMORY_HELD_BYTES || key == GPUHAL_VALUE_QUEUES_BUSY_NS ||
           key == GPUHAL_VALUE_TRANSFERRED_BYTES || key == GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES || key < FIRST_VALUE;
}

static uint64_t held_bytes(const gpuhal_device *device)
{
    return atomic_load(&device->allocated_bytes);
}

static uint64_t transferred_bytes(const gpuhal_device *device)
{
    return atomic_load(&device->written.bytes) + atomic_load(&device->read.bytes) + atomic_load(&device->filled.bytes) +
           atomic_load(&device->copied.bytes);
}

/* Returns the sum over all interfaces of the device, so that every interface reports the same value. */
static uint64_t sum(gpuhal_device *device, uint64_t (*bytes_of)(const gpuhal_device *device))
{
    gpuhal_device *interfaces[GPUHAL_INTERFACES_MAX];
    bool is_part = false;
    const uint32_t count = gpuhal_location_interfaces(device, interfaces, &is_part);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += bytes_of(interfaces[i]);
    }
    return bytes;
}

static void answer(gpuhal_device *device, gpuhal_value *value)
{
    if (value->key == GPUHAL_VALUE_MEMORY_HELD_BYTES) {
        gpuhal_value_set(value, sum(device, held_bytes), "library");
    } else if (value->key == GPUHAL_VALUE_QUEUES_BUSY_NS) {
        gpuhal_value_set(value, gpuhal_busy_ns(device), "library");
    } else if (value->key == GPUHAL_VALUE_TRANSFERRED_BYTES) {
        gpuhal_value_set(value, sum(device, transferred_bytes), "library");
    } else {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "it is a fact, not a value: use gpuhal_device_u64()");
    }
}

static uint32_t find(const gpuhal_gather *own, gpuhal_key key)
{
    uint32_t i = 0;
    while (i < own->count && own->values[i].key != key) {
        i++;
    }
    return i;
}

/* The sources are queried for free memory once, even if the caller requests only available memory. */
static void find_free(gpuhal_gather *own)
{
    own->free_at = find(own, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    own->free_is_extra = own->free_at == own->count;
    if (own->free_is_extra) {
        own->free_at = find(own, GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES);
    }
    if (own->free_is_extra && own->free_at < own->count) {
        own->values[own->free_at].key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    }
}

static uint64_t what_is_left(uint64_t of, uint64_t held)
{
    return of > held ? of - held : 0;
}

/* On entry, the value is the free memory. */
static void calculate_available(gpuhal_device *device, gpuhal_value *value)
{
    uint64_t ignored;
    const uint64_t total = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX),
                   limit = gpuhal_device_limit(device), held = held_bytes(device);
    const uint64_t of_total = total == UINT64_MAX ? total : what_is_left(total, held),
                   of_limit = limit == 0 ? UINT64_MAX : what_is_left(limit, held);
    const uint64_t least = of_total < of_limit ? of_total : of_limit;
    value->key = GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES;
    if (!value->missing && least < value->u64) {
        gpuhal_value_set(value, least, "library");
    }
    const uint64_t of_group = value->missing ? UINT64_MAX : gpuhal_device_group_left(device, &ignored);
    if (of_group < value->u64) {
        gpuhal_value_set(value, of_group, "cgroup");
    }
}

/* If the value is the limit and the kernel reports it, sets the value and returns true. Otherwise the driver must be
 * queried. */
static bool knows_limit(gpuhal_device *device, gpuhal_value *value)
{
    uint64_t limit = UINT64_MAX;
    if (value->key == GPUHAL_VALUE_MEMORY_LIMIT_BYTES) {
        (void)gpuhal_device_group_left(device, &limit);
    }
    if (limit != UINT64_MAX) {
        gpuhal_value_set(value, limit, "cgroup");
    }
    return limit != UINT64_MAX;
}

static void calculate(const gpuhal_gather *own)
{
    for (uint32_t i = 0; i < own->count; i++) {
        if (own->values[i].key == GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES) {
            own->values[i] = own->values[own->free_at];
            calculate_available(own->device, &own->values[i]);
        }
    }
    if (own->free_is_extra && own->free_at < own->count) {
        calculate_available(own->device, &own->values[own->free_at]);
    }
}

/* Writes the library's own values, and marks all other values as wanted. Returns whether any value is wanted. */
static bool begin(gpuhal_gather *own)
{
    bool any = false;
    find_free(own);
    for (uint32_t i = 0; i < own->count; i++) {
        own->wanted[i] = !is_ours(own->values[i].key) && !knows_limit(own->device, &own->values[i]);
        any = any || own->wanted[i];
        if (own->wanted[i]) {
            gpuhal_value_miss(&own->values[i], GPUHAL_MISSING_NOT_SUPPORTED, "%s", "");
        } else if (is_ours(own->values[i].key)) {
            answer(own->device, &own->values[i]);
        }
        own->has_any = own->has_any || !own->values[i].missing;
    }
    return any;
}

/* If a plugin failed, its values are missing. Returns the plugin's error if no other source has a value either, or if
 * the error is DEVICE_LOST or HOST_MEMORY. */
static gpuhal_status result(gpuhal_gather *own)
{
    calculate(own);
    for (uint32_t i = 0; i < own->count; i++) {
        if (own->values[i].missing && !own->values[i].why[0]) {
            gpuhal_value_miss(&own->values[i], own->is_unusable ? GPUHAL_MISSING_FAILED : own->values[i].missing,
                              own->is_unusable ? "the device is lost" : "no source knows this value");
        }
    }
    const bool is_fatal = own->status == GPUHAL_ERROR_DEVICE_LOST || own->status == GPUHAL_ERROR_HOST_MEMORY;
    return own->status && (is_fatal || !own->has_any) ? gpuhal_error_restore(&own->detail) : GPUHAL_OK;
}

/* The results are in the members `status`. */
static gpuhal_status sample_all(gpuhal *gpu, gpuhal_gather *list, uint32_t count, uint64_t timeout_ns)
{
    uint64_t hang_ns = gpu->settings.hang_ns;
    const gpuhal_time time = {
        .deadline_ns = timeout_ns ? gpuhal_deadline(timeout_ns) : 0,
        .each_ns = hang_ns < GPUHAL_QUERY_NS ? hang_ns : GPUHAL_QUERY_NS,
    };
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        list[i].wanted = calloc(list[i].count, sizeof *list[i].wanted);
        if (!list[i].wanted) {
            return gpuhal_error_host_memory();
        }
    }
    for (uint32_t i = 0; i < count; i++) { /* from here until result(), some values have other keys than the caller's */
        const bool wants = begin(&list[i]);
        any = any || wants;
        list[i].status = wants ? gpuhal_device_check(list[i].device) : GPUHAL_OK;
        list[i].is_unusable = list[i].status != GPUHAL_OK;
        if (list[i].status) {
            gpuhal_error_save(&list[i].detail);
        }
    }
    if (any) {
        gpuhal_gather_all(gpu, list, count, &time);
    }
    return GPUHAL_OK;
}

static void finish(gpuhal_gather *list, uint32_t count)
{
    for (uint32_t i = 0; list && i < count; i++) {
        free(list[i].wanted);
    }
    free(list);
}

gpuhal_status gpuhal_device_sample(gpuhal_device *device, uint32_t flags, gpuhal_value *values, uint32_t count,
                                   uint64_t *out_time_ns)
{
    if (out_time_ns) {
        *out_time_ns = 0;
    }
    if (!device || !values || count == 0 || (flags & ~(uint32_t)GPUHAL_SAMPLE_WAKE)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_device_sample: device or values is NULL, count is 0, or a flag is unknown");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    gpuhal_gather *own = status ? NULL : calloc(1, sizeof *own);
    if (!own) {
        return status ? status : gpuhal_error_host_memory();
    }
    own->device = device;
    own->values = values;
    own->count = count;
    own->may_wake = (flags & GPUHAL_SAMPLE_WAKE) != 0;
    status = sample_all(device->gpu, own, 1, 0);
    status = status ? status : result(own);
    finish(own, 1);
    if (!status && out_time_ns) {
        *out_time_ns = gpuhal_os_monotonic_ns();
    }
    return status;
}

static bool is_sample(const gpuhal *gpu, const gpuhal_sample *sample)
{
    return sample->size >= sizeof *sample && sample->device && sample->device->gpu == gpu && sample->values &&
           sample->count > 0 && !(sample->flags & ~(uint32_t)GPUHAL_SAMPLE_WAKE);
}

gpuhal_status gpuhal_sample_all(gpuhal *gpu, gpuhal_sample *samples, uint32_t count, uint64_t timeout_ns)
{
    if (!gpu || !samples || count == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_sample_all: gpu or samples is NULL, or count is 0");
    }
    gpuhal_status status = gpuhal_check(gpu);
    for (uint32_t i = 0; i < count && !status; i++) {
        if (!is_sample(gpu, &samples[i])) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                      "gpuhal_sample_all: sample %u has no device of this object, no values, an "
                                      "unknown flag, or too small a size",
                                      i);
        }
    }
    gpuhal_gather *list = status ? NULL : calloc(count, sizeof *list);
    if (!list) {
        return status ? status : gpuhal_error_host_memory();
    }
    for (uint32_t i = 0; i < count; i++) {
        list[i].device = samples[i].device;
        list[i].values = samples[i].values;
        list[i].count = samples[i].count;
        list[i].may_wake = (samples[i].flags & GPUHAL_SAMPLE_WAKE) != 0;
    }
    status = sample_all(gpu, list, count, timeout_ns);
    const uint64_t now = gpuhal_os_monotonic_ns();
    for (uint32_t i = 0; i < count && !status; i++) {
        samples[i].status = result(&list[i]);
        samples[i].time_ns = now;
    }
    finish(list, count);
    return status;
}
