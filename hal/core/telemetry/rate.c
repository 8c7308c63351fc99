/* telemetry/rate.c: see rate.h. */
#include "telemetry/rate.h"

gpuhal_rate_state gpuhal_rate_take(gpuhal_rate *rate, uint64_t now_ns, uint64_t count, uint64_t *out_per_second)
{
    /* Threads may deliver their readings out of order. A reading older than the last reading also counts as too
     * recent. */
    if (rate->time_ns != 0 && now_ns < rate->time_ns + GPUHAL_RATE_MIN_NS) {
        *out_per_second = rate->per_second;
        return rate->known ? GPUHAL_RATE_KNOWN : GPUHAL_RATE_FIRST;
    }
    const gpuhal_rate before = *rate;
    *rate = (gpuhal_rate){.count = count, .time_ns = now_ns};
    *out_per_second = 0;
    if (before.time_ns == 0 || now_ns - before.time_ns > GPUHAL_RATE_MAX_NS) {
        return GPUHAL_RATE_FIRST;
    }
    if (count < before.count) {
        return GPUHAL_RATE_WENT_BACK;
    }
    rate->per_second = (uint64_t)((double)(count - before.count) * 1e9 / (double)(now_ns - before.time_ns));
    rate->known = true;
    *out_per_second = rate->per_second;
    return GPUHAL_RATE_KNOWN;
}
