/* cpu/sensors.h: readings of the processor's sensors and counters. Each reading is a value or the reason why it is
 * missing. */
#ifndef GPUHAL_CPU_SENSORS_H
#define GPUHAL_CPU_SENSORS_H

#include "device.h"

typedef struct gpuhal_cpu_reading {
    gpuhal_missing reason; /* 0 if the value exists */
    uint64_t value;
    const char *source, *why;
} gpuhal_cpu_reading;

/* Reads the mean clock frequency of all processors that report it. */
gpuhal_cpu_reading gpuhal_cpu_read_clock(const char *root);
/* Reads the temperature of the hottest package. */
gpuhal_cpu_reading gpuhal_cpu_read_temperature(const char *root);
/* Sums energy and power limit over all packages. The kernel's energy counters wrap, but the sum does not. */
void gpuhal_cpu_read_energy(const char *root, gpuhal_cpu_counters *counters, gpuhal_cpu_reading *out_energy,
                            gpuhal_cpu_reading *out_limit);
/* Reads the numbers of memory errors since boot. */
void gpuhal_cpu_read_ecc(const char *root, gpuhal_cpu_reading *out_corrected, gpuhal_cpu_reading *out_uncorrected);

#endif
