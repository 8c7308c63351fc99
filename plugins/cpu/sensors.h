/* cpu/sensors.h: what sensors and counters of the processor say. Each function returns 0 with a value, or why there is
 * none. */
#ifndef GPUHAL_CPU_SENSORS_H
#define GPUHAL_CPU_SENSORS_H

#include "device.h"

/* A value, or why it is missing; and what gave it. */
typedef struct gpuhal_cpu_reading {
    gpuhal_missing reason; /* 0: there is a value */
    uint64_t value;
    const char *source, *why;
} gpuhal_cpu_reading;

/* The mean of the clocks of all processors that state one. */
gpuhal_cpu_reading gpuhal_cpu_read_clock(const char *root);
/* Of the hottest package. */
gpuhal_cpu_reading gpuhal_cpu_read_temperature(const char *root);
/* Of all packages; it wraps in the kernel and not here. */
gpuhal_cpu_reading gpuhal_cpu_read_energy(const char *root, gpuhal_cpu_counters *counters);
gpuhal_cpu_reading gpuhal_cpu_read_power_limit(const char *root);
/* Memory errors since the machine started: `which` is "ce_count" or "ue_count". */
gpuhal_cpu_reading gpuhal_cpu_read_ecc(const char *root, const char *which);

#endif
