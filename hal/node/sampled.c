/* node/sampled.c: frees the sampler structure, and finds devices and keys in it. */
#include "node/sampler.h"

#include "device/for_node.h"

#include <stdlib.h>

void gpuhal_sampler_free(gpuhal_sampler *sampler)
{
    for (uint32_t d = 0; sampler->devices && d < sampler->device_count; d++) {
        free(sampler->devices[d].values);
        free(sampler->devices[d].ring);
        free(sampler->devices[d].missing);
    }
    while (sampler->limits) {
        gpuhal_limit *limit = sampler->limits;
        sampler->limits = limit->next;
        free(limit);
    }
    if (sampler->descriptor >= 0) {
        gpuhal_os_descriptor_close(sampler->descriptor);
    }
    gpuhal_condition_finish(&sampler->condition);
    gpuhal_mutex_finish(&sampler->mutex);
    free(sampler->devices);
    free(sampler->keys);
    free(sampler->samples);
    free(sampler->sampled_values);
    free(sampler->times);
    free(sampler->kept);
    free(sampler);
}

void gpuhal_sampler_release(gpuhal_sampler *sampler)
{
    if (atomic_fetch_sub(&sampler->references, 1) == 1) {
        gpuhal *gpu = sampler->gpu;
        gpuhal_sampler_free(sampler);
        gpuhal_unreference(gpu);
    }
}

gpuhal_status gpuhal_sampler_check(const gpuhal_sampler *sampler, const char *call)
{
    return sampler ? gpuhal_check(sampler->gpu)
                   : gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: sampler is NULL", call);
}

uint32_t gpuhal_sampler_find_device(const gpuhal_sampler *sampler, const gpuhal_device *device)
{
    for (uint32_t d = 0; d < sampler->device_count; d++) {
        if (sampler->devices[d].device == device) {
            return d;
        }
    }
    return UINT32_MAX;
}

uint32_t gpuhal_sampler_find_key(const gpuhal_sampler *sampler, gpuhal_key key)
{
    for (uint32_t k = 0; k < sampler->key_count; k++) {
        if (sampler->keys[k] == key) {
            return k;
        }
    }
    return UINT32_MAX;
}

gpuhal_device *gpuhal_sampler_device(const gpuhal_sampler *sampler, uint32_t index)
{
    return sampler && index < sampler->device_count ? sampler->devices[index].device : NULL;
}
