/* cpu/sensors.h: readings of the processor's sensors and counters: a value, or why there is none. */
#ifndef GPUHAL_CPU_SENSORS_H
#define GPUHAL_CPU_SENSORS_H

#include "device.h"

/* A value and its source, or why it is missing. */
typedef struct gpuhal_cpu_reading {
    gpuhal_missing reason; /* 0: there is a value */
    uint64_t value;
    const char *source, *why;
} gpuhal_cpu_reading;

/* Reads the mean of the clocks of all processors that state one. */
gpuhal_cpu_reading gpuhal_cpu_read_clock(const char *root);
/* Reads the temperature of the hottest package. */
gpuhal_cpu_reading gpuhal_cpu_read_temperature(const char *root);
/* Sums over all packages: energy, which wraps in the kernel but not here, and the power limit. */
void gpuhal_cpu_read_energy(const char *root, gpuhal_cpu_counters *counters, gpuhal_cpu_reading *out_energy,
                            gpuhal_cpu_reading *out_limit);
/* Reads the numbers of memory errors since the machine started. */
void gpuhal_cpu_read_ecc(const char *root, gpuhal_cpu_reading *out_corrected, gpuhal_cpu_reading *out_uncorrected);

#endif
