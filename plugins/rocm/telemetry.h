/* rocm/telemetry.h: what telemetry.c, metrics.c and smi_values.c share. A value is known by its number in the table of
 * telemetry.c. */
#ifndef GPUHAL_ROCM_TELEMETRY_H
#define GPUHAL_ROCM_TELEMETRY_H

#include "smi.h"

#define GPUHAL_ROCM_VALUES 17

typedef struct gpuhal_rocm_sample_request {
    const gpuhal_rocm_entry *entry;
    bool wanted[GPUHAL_ROCM_VALUES]; /* of the library: what the files did not have */
    uint64_t numbers[GPUHAL_ROCM_VALUES];
    uint32_t codes[GPUHAL_ROCM_VALUES]; /* of the library */
} gpuhal_rocm_sample_request;

gpuhal_key gpuhal_rocm_value_key(size_t number);

/* A file of the device's directory, as gpuhal_rocm_read_file() gives it. */
size_t gpuhal_rocm_read_all(const gpuhal_rocm_entry *entry, const char *name, char *out_bytes, size_t size);
/* What errno says after a file could not be read. */
gpuhal_stream_why gpuhal_rocm_unreadable(const char *name);

/* metrics.c: from the kernel's table of measurements. */
gpuhal_stream_why gpuhal_rocm_metrics_energy(const gpuhal_rocm_entry *entry, uint64_t *out_value);
gpuhal_stream_why gpuhal_rocm_metrics_throttle(const gpuhal_rocm_entry *entry, uint64_t *out_value);

/* smi_values.c */
bool gpuhal_rocm_smi_has(gpuhal_key key);
/* Asks for what is wanted; where a value comes, its reason in @p whys becomes 0. Where none comes, the reason of the
 * files stays unless it says no more than that they do not have the value, and the library's says more. */
void gpuhal_rocm_ask_smi(gpuhal_rocm_sample_request *request, gpuhal_stream_why *whys);

#endif
