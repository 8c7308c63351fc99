/* transfer/account.c: the public functions that read the counters; see also account.h. */
#include "transfer/account.h"

#include "base/error.h"
#include "device/link.h"
#include "device/view.h"

#include <gpuhal/usage.h>

void gpuhal_count_time(gpuhal_counter *counter, uint64_t bytes, uint64_t begin_ns)
{
    atomic_fetch_add_explicit(&counter->timed_operations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&counter->timed_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&counter->timed_ns, gpuhal_os_monotonic_ns() - begin_ns, memory_order_relaxed);
}

static gpuhal_traffic traffic_of(const gpuhal_counter *counter)
{
    return (gpuhal_traffic){
        .operations = atomic_load_explicit(&counter->operations, memory_order_relaxed),
        .bytes = atomic_load_explicit(&counter->bytes, memory_order_relaxed),
        .timed_operations = atomic_load_explicit(&counter->timed_operations, memory_order_relaxed),
        .timed_bytes = atomic_load_explicit(&counter->timed_bytes, memory_order_relaxed),
        .timed_ns = atomic_load_explicit(&counter->timed_ns, memory_order_relaxed),
    };
}

gpuhal_status gpuhal_device_usage(const gpuhal_device *device, gpuhal_usage *out_usage)
{
    if (!device || !out_usage || out_usage->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_device_usage: an argument is NULL, or the size is 0");
    }
    gpuhal_status status = gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    const gpuhal_usage usage = {
        .written = traffic_of(&device->written),
        .read = traffic_of(&device->read),
        .filled = traffic_of(&device->filled),
        .copied = traffic_of(&device->copied),
    };
    gpuhal_record_give(out_usage, &usage, sizeof usage);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_pair_usage(const gpuhal_device *from, const gpuhal_device *to, gpuhal_pair_traffic *out_traffic)
{
    if (!out_traffic || out_traffic->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_pair_usage: out_traffic is NULL, or its size is 0");
    }
    gpuhal_status status =
        from && from == to ? gpuhal_check(from->gpu) : gpuhal_link_check("gpuhal_pair_usage", from, to);
    if (status) {
        return status;
    }
    const gpuhal_link *link = gpuhal_link_between(from, to);
    const gpuhal_pair_traffic traffic = {
        .native = traffic_of(from == to ? &from->copied : &link->traffic[GPUHAL_PATH_NATIVE]),
        .peer = traffic_of(&link->traffic[GPUHAL_PATH_PEER]),
        .shared = traffic_of(&link->traffic[GPUHAL_PATH_SHARED]),
        .staged = traffic_of(&link->traffic[GPUHAL_PATH_STAGED]),
    };
    gpuhal_record_give(out_traffic, &traffic, sizeof traffic);
    return GPUHAL_OK;
}
