/* schedule/promise.c: adds promises to device offers. */
#include "schedule/need.h"

#include "device/for_schedule.h"

static const gpuhal_promise *promise_at(const gpuhal_promise *promises, uint32_t index)
{
    return (const gpuhal_promise *)(const void *)((const char *)promises + (size_t)index * promises->size);
}

gpuhal_status gpuhal_promises_check(const gpuhal *gpu, const char *call, const gpuhal_promise *promises, uint32_t count)
{
    const char *problem =
        count > 0 && (!promises || promises->size < sizeof *promises) ? "promises is NULL, or without its size" : NULL;
    for (uint32_t i = 0; i < count && !problem; i++) {
        const gpuhal_promise *promise = promise_at(promises, i);
        problem = promise->size != promises->size ? "the sizes of promises differ"
                  : !promise->device              ? "the device of a promise is NULL"
                                                  : NULL;
        if (!problem && promise->device->gpu != gpu) {
            return gpuhal_two_objects(call, "a promise and gpu", gpu, promise->device->gpu);
        }
    }
    return problem ? gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s", call, problem) : GPUHAL_OK;
}

/* A promise for one interface counts for all interfaces of the same unit. */
void gpuhal_promises_add(const gpuhal_promise *promises, uint32_t count, gpuhal_offers *offers)
{
    for (uint32_t i = 0; i < count; i++) {
        const gpuhal_promise *promise = promise_at(promises, i);
        for (uint32_t j = 0; j < offers->count; j++) {
            gpuhal_offer *offer = &offers->list[j];
            if (gpuhal_devices_same_part(promise->device, offers->devices[j])) {
                const uint64_t bytes = offer->promised_bytes, busy = offer->promised_permille;
                offer->promised_bytes = promise->bytes > UINT64_MAX - bytes ? UINT64_MAX : bytes + promise->bytes;
                offer->promised_permille =
                    (uint32_t)(busy + promise->busy_permille < 1000 ? busy + promise->busy_permille : 1000);
            }
        }
    }
}
