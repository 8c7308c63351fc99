/* cpu/sensors.h: what sensors and counters of the processor say: a value, or why there is none. */
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
/* Of all packages: energy, which wraps in the kernel and not here, and the limit of power. */
void gpuhal_cpu_read_energy(const char *root, gpuhal_cpu_counters *counters, gpuhal_cpu_reading *out_energy,
                            gpuhal_cpu_reading *out_limit);
/* Memory errors since the machine started. */
void gpuhal_cpu_read_ecc(const char *root, gpuhal_cpu_reading *out_corrected, gpuhal_cpu_reading *out_uncorrected);

#endif
