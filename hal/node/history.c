/* node/history.c: returns a sampler's newest sample and the samples in its ring, and computes statistics over a part of
 * the ring. */
#include "node/sampler.h"

#include "device/for_node.h"

#include <stdio.h>
#include <string.h>

gpuhal_status gpuhal_sampler_latest(gpuhal_sampler *sampler, const gpuhal_device *device, gpuhal_value *values,
                                    uint32_t count, uint64_t *out_time_ns)
{
    if (out_time_ns) {
        *out_time_ns = 0;
    }
    gpuhal_status status = gpuhal_sampler_check(sampler, "gpuhal_sampler_latest");
    if (status) {
        return status;
    }
    const uint32_t d = gpuhal_sampler_find_device(sampler, device);
    if (d == UINT32_MAX || !values || count == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_sampler_latest: values is NULL, count is 0, or the device is not sampled");
    }
    gpuhal_mutex_lock(&sampler->mutex);
    const gpuhal_sampled *own = &sampler->devices[d];
    status = sampler->count > 0 ? own->status : GPUHAL_NOT_READY;
    for (uint32_t i = 0; i < count && !status; i++) {
        const uint32_t k = gpuhal_sampler_find_key(sampler, values[i].key);
        if (k != UINT32_MAX) {
            values[i] = own->values[k];
        } else {
            values[i] = (gpuhal_value){.key = values[i].key, .missing = GPUHAL_MISSING_NOT_READ};
            snprintf(values[i].why, sizeof values[i].why, "the sampler does not read it");
        }
    }
    if (out_time_ns && !status) {
        *out_time_ns = sampler->times[sampler->newest];
    }
    gpuhal_mutex_unlock(&sampler->mutex);
    return status < 0 ? gpuhal_error_set(status, "%s: the newest sample failed", device->id) : status;
}

/* Returns the ring index of the sample that is `age` samples older than the newest. */
static uint32_t place_of(const gpuhal_sampler *sampler, uint32_t age)
{
    return (sampler->newest + sampler->history - age) % sampler->history;
}

static gpuhal_point point_at(const gpuhal_sampler *sampler, uint32_t d, uint32_t k, uint32_t place)
{
    const gpuhal_sampled *own = &sampler->devices[d];
    const size_t at = (size_t)place * sampler->key_count + k;
    return (gpuhal_point){.time_ns = sampler->times[place], .u64 = own->ring[at], .missing = own->missing[at]};
}

static gpuhal_status find(const gpuhal_sampler *sampler, const char *call, const gpuhal_device *device, gpuhal_key key,
                          uint32_t *out_device, uint32_t *out_key)
{
    gpuhal_status status = gpuhal_sampler_check(sampler, call);
    if (!status) {
        *out_device = gpuhal_sampler_find_device(sampler, device);
        *out_key = gpuhal_sampler_find_key(sampler, key);
        if (*out_device == UINT32_MAX || *out_key == UINT32_MAX) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the %s is not sampled", call,
                                      *out_device == UINT32_MAX ? "device" : "key");
        }
    }
    return status;
}

gpuhal_status gpuhal_sampler_history(gpuhal_sampler *sampler, const gpuhal_device *device, gpuhal_key key,
                                     gpuhal_point *out_points, uint32_t capacity, uint32_t *out_count)
{
    uint32_t d = 0, k = 0;
    if (out_count) {
        *out_count = 0;
    }
    gpuhal_status status = find(sampler, "gpuhal_sampler_history", device, key, &d, &k);
    if (!status && (!out_count || (!out_points && capacity > 0))) {
        status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_sampler_history: an argument is NULL");
    }
    if (status) {
        return status;
    }
    gpuhal_mutex_lock(&sampler->mutex);
    const uint32_t count = capacity < sampler->count ? capacity : sampler->count;
    for (uint32_t i = 0; i < count; i++) {
        out_points[i] = point_at(sampler, d, k, place_of(sampler, count - 1 - i));
    }
    gpuhal_mutex_unlock(&sampler->mutex);
    *out_count = count;
    return GPUHAL_OK;
}

/* Running statistics of a window. The sum may exceed 64 bits. */
typedef struct sums {
    gpuhal_window window;
    uint64_t before;
    long double sum; /* rounded if it exceeds the mantissa, so end() clamps the mean to [min, max] */
} sums;

static void take(sums *all, gpuhal_point point)
{
    gpuhal_window *w = &all->window;
    if (point.missing) {
        w->missing++;
        return;
    }
    if (w->count == 0) {
        w->first = w->min = w->max = point.u64;
        w->from_ns = point.time_ns;
    } else {
        w->increase += point.u64 > all->before ? point.u64 - all->before : 0;
    }
    w->min = point.u64 < w->min ? point.u64 : w->min;
    w->max = point.u64 > w->max ? point.u64 : w->max;
    w->last = all->before = point.u64;
    w->to_ns = point.time_ns;
    w->count++;
    all->sum += (long double)point.u64;
}

static void end(sums *all)
{
    gpuhal_window *w = &all->window;
    if (w->count > 0) {
        const long double mean = all->sum / (long double)w->count;
        w->mean = mean <= (long double)w->min ? w->min : mean >= (long double)w->max ? w->max : (uint64_t)mean;
    }
}

gpuhal_status gpuhal_sampler_window(gpuhal_sampler *sampler, const gpuhal_device *device, gpuhal_key key,
                                    uint64_t window_ns, gpuhal_window *out_window)
{
    uint32_t d = 0, k = 0;
    gpuhal_status status = find(sampler, "gpuhal_sampler_window", device, key, &d, &k);
    if (!status && (!out_window || out_window->size == 0)) {
        status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                  "gpuhal_sampler_window: out_window is NULL, or its size is 0");
    }
    if (status) {
        return status;
    }
    const uint64_t now_ns = gpuhal_os_monotonic_ns();
    const uint64_t from_ns = window_ns > 0 && window_ns < now_ns ? now_ns - window_ns : 0;
    sums all = {.window = {.size = out_window->size}};
    gpuhal_mutex_lock(&sampler->mutex);
    for (uint32_t age = sampler->count; age-- > 0;) {
        const gpuhal_point point = point_at(sampler, d, k, place_of(sampler, age));
        if (point.time_ns >= from_ns) {
            take(&all, point);
        }
    }
    gpuhal_mutex_unlock(&sampler->mutex);
    end(&all);
    memcpy(out_window, &all.window, all.window.size < sizeof all.window ? all.window.size : sizeof all.window);
    return GPUHAL_OK;
}
