/* telemetry/state.c: the state of a gpuhal object between readings, and the time of one call. */
#include "telemetry/telemetry.h"

#include <stdlib.h>

gpuhal_telemetry *gpuhal_telemetry_create(void)
{
    gpuhal_telemetry *own = calloc(1, sizeof *own);
    if (own) {
        gpuhal_mutex_init(&own->devices.mutex);
        own->walks = gpuhal_walks_create();
    }
    if (own && !own->walks) {
        gpuhal_telemetry_destroy(own);
        own = NULL;
    }
    return own;
}

void gpuhal_telemetry_destroy(gpuhal_telemetry *telemetry)
{
    if (!telemetry) {
        return;
    }
    for (uint32_t i = 0; i < telemetry->devices.count; i++) {
        gpuhal_kernel_device_release(telemetry->devices.list[i]);
    }
    gpuhal_mutex_finish(&telemetry->devices.mutex);
    gpuhal_walks_release(telemetry->walks);
    free(telemetry);
}

uint64_t gpuhal_time_share(const gpuhal_time *time)
{
    if (time->deadline_ns == 0) {
        return time->each_ns;
    }
    const uint64_t now = gpuhal_os_monotonic_ns();
    return now < time->deadline_ns ? (time->deadline_ns - now) / 2 : 0;
}
