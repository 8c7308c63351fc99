/* rocm/telemetry.h: declarations that telemetry.c and smi_values.c share. A value's number is its position in the table
 * of smi_values.c. */
#ifndef GPUHAL_ROCM_TELEMETRY_H
#define GPUHAL_ROCM_TELEMETRY_H

#include "smi.h"

#define GPUHAL_ROCM_VALUES 5

typedef struct gpuhal_rocm_sample_request {
    const gpuhal_rocm_entry *entry;
    bool wanted[GPUHAL_ROCM_VALUES];
    uint64_t numbers[GPUHAL_ROCM_VALUES];
    uint32_t codes[GPUHAL_ROCM_VALUES]; /* codes that the library returned */
} gpuhal_rocm_sample_request;

/* smi_values.c */
extern const gpuhal_key gpuhal_rocm_keys_of_values[GPUHAL_ROCM_VALUES];
bool gpuhal_rocm_smi_has(gpuhal_key key);
/* Writes each number or, in @p whys, the reason why it is missing. */
void gpuhal_rocm_ask_smi(gpuhal_rocm_sample_request *request, gpuhal_stream_why *whys);

#endif
