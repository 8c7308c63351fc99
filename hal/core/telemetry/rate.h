/* telemetry/rate.h: how fast a counter grows, from two readings. */
#ifndef GPUHAL_TELEMETRY_RATE_H
#define GPUHAL_TELEMETRY_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Minimum time between compared readings, because counters are updated in steps. */
#define GPUHAL_RATE_MIN_NS UINT64_C(20000000)
/* An average over a longer time does not describe the current rate. */
#define GPUHAL_RATE_MAX_NS UINT64_C(120000000000)

/* Zero-initialised, it has no reading. Protected by its container. */
typedef struct gpuhal_rate {
    uint64_t count, time_ns; /* the reading to compare the next reading with; time_ns 0: none */
    uint64_t per_second;     /* the latest result */
    bool known;
} gpuhal_rate;

typedef enum { GPUHAL_RATE_KNOWN, GPUHAL_RATE_FIRST, GPUHAL_RATE_WENT_BACK } gpuhal_rate_state;

/* Adds a reading. KNOWN: *out_per_second is the growth since the previous reading or, if that is too recent, the latest
 * result. After FIRST and WENT_BACK (the counter was reset or has wrapped) the next reading returns a result. */
gpuhal_rate_state gpuhal_rate_take(gpuhal_rate *rate, uint64_t now_ns, uint64_t count, uint64_t *out_per_second);

#endif
