/* telemetry/rate.h: the rate of a counter, computed from two readings. */
#ifndef GPUHAL_TELEMETRY_RATE_H
#define GPUHAL_TELEMETRY_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Minimum time between two compared readings, because drivers update counters in steps. */
#define GPUHAL_RATE_MIN_NS UINT64_C(20000000)
/* Maximum time between two compared readings, because an average over a longer time is not the current rate. */
#define GPUHAL_RATE_MAX_NS UINT64_C(120000000000)

/* All members are 0 before the first reading. The owner provides the lock. */
typedef struct gpuhal_rate {
    uint64_t count, time_ns; /* the reading that the next reading is compared with; time_ns is 0 if there is none */
    uint64_t per_second;     /* the latest result */
    bool known;
} gpuhal_rate;

typedef enum { GPUHAL_RATE_KNOWN, GPUHAL_RATE_FIRST, GPUHAL_RATE_WENT_BACK } gpuhal_rate_state;

/* Adds a reading. With KNOWN, *out_per_second is the rate since the previous reading or, if that reading is too recent,
 * the latest result. FIRST and WENT_BACK (the counter was reset or has wrapped around) mean that only the next reading
 * has a result. */
gpuhal_rate_state gpuhal_rate_take(gpuhal_rate *rate, uint64_t now_ns, uint64_t count, uint64_t *out_per_second);

#endif
