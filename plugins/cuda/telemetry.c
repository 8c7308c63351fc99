/* cuda/telemetry.c: reads device values from NVML; the devices need not be open. No context is created. NVML would wake
 * a sleeping GPU (a notebook's GPU sleeps if no process uses it), so sysfs is read first to find out whether the GPU
 * sleeps. If NVML hangs, the values are missing, but the caller does not hang (nvml.h).
 *
 * NVML measures PCI Express traffic for 20 ms in each of two calls, and keeps recording events after the first call for
 * events. So these functions are called only if their values are requested. For a MIG device NVML reports memory and
 * ECC counts, but no utilization. All other values are the whole GPU's, and their source is called nvml-board.
 */
#include "nvml.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct sample {
    const gpuhal_cuda_entry *entry;
    bool wanted[GPUHAL_CUDA_NVML_VALUES];
    uint64_t numbers[GPUHAL_CUDA_NVML_VALUES];
    nvmlReturn_t codes[GPUHAL_CUDA_NVML_VALUES];
    bool is_lost;
    bool is_of_another; /* another GPU is lost and NVML searched all GPUs (gpuhal_cuda_nvml_find()) */
    bool is_again;      /* set after the first run; a shutdown during that run causes a second run */
} sample;

/* Runs in this thread's turn. If the device is not found, every value gets the error code. If reading one value fails,
 * only this value gets the code. If NVML is shut down between two values of the first run, returns this code, so that
 * the sample is repeated once. */
static nvmlReturn_t take_sample(void *request)
{
    sample *own = request;
    nvmlDevice_t device = NULL, board = NULL;
    const nvmlReturn_t found = gpuhal_cuda_nvml_find(own->entry, &device, &board);
    bool is_shut = false;
    own->is_lost = false;
    gpuhal_cuda_nvml_begin_events();
    for (size_t i = 0; i < GPUHAL_CUDA_NVML_VALUES; i++) {
        const gpuhal_cuda_nvml_value *value = &gpuhal_cuda_nvml_values[i];
        own->codes[i] = found;
        if (own->wanted[i] && found == NVML_SUCCESS) {
            own->codes[i] = value->read(value->of_board ? board : device, &own->numbers[i]);
            is_shut = is_shut || own->codes[i] == NVML_ERROR_UNINITIALIZED;
        }
        own->is_lost = own->is_lost || (own->wanted[i] && own->codes[i] == NVML_ERROR_GPU_IS_LOST);
    }
    own->is_lost = own->is_lost && gpuhal_cuda_nvml_is_lost(own->entry);
    own->is_of_another = found == NVML_ERROR_GPU_IS_LOST && !own->is_lost;
    is_shut = is_shut && !own->is_again;
    own->is_again = true;
    return is_shut ? NVML_ERROR_UNINITIALIZED : found;
}

/* Explains why a value is missing. NVML has been seen to return success with impossible values after a reset, and for a
 * GPU that is about to fall off the bus. */
static gpuhal_stream_why judge(const sample *own, size_t i)
{
    const gpuhal_cuda_nvml_value *value = &gpuhal_cuda_nvml_values[i];
    gpuhal_stream_why why = gpuhal_cuda_nvml_why(own->codes[i]);
    why.reason = why.reason == GPUHAL_MISSING_LOST && own->is_of_another ? GPUHAL_MISSING_FAILED : why.reason;
    if (why.reason == GPUHAL_MISSING_NOT_SUPPORTED && own->entry->is_mig && !value->of_board) {
        return gpuhal_cuda_because(GPUHAL_MISSING_NOT_SUPPORTED,
                                   "NVML does not measure it for a part of a divided GPU (MIG)");
    }
    if (why.reason == 0 && own->numbers[i] == UINT64_MAX) {
        why = gpuhal_cuda_nvml_why(NVML_ERROR_NO_DATA);
    } else if (why.reason == 0 && (own->numbers[i] < value->least || own->numbers[i] > value->most)) {
        why.reason = GPUHAL_MISSING_FAILED;
        snprintf(why.text, sizeof why.text, "NVML returned a number that no GPU has (%" PRIu64 ")", own->numbers[i]);
    }
    return why;
}

static void list(const gpuhal_host *host, gpuhal_sink *sink, const sample *own, size_t i,
                 const gpuhal_stream_why *whole)
{
    const gpuhal_cuda_nvml_value *value = &gpuhal_cuda_nvml_values[i];
    const gpuhal_stream_why why = whole->reason != 0 ? *whole : judge(own, i);
    if (why.reason == 0) {
        host->source(host, sink, own->entry->is_mig && value->of_board ? "nvml-board" : "nvml");
        host->u64(host, sink, value->key, own->numbers[i]);
    } else {
        host->missing(host, sink, value->key, why.reason, why.text);
    }
}

gpuhal_status gpuhal_cuda_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    sample own = {.entry = gpuhal_cuda_find(index)};
    if (!own.entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    bool any = false;
    for (size_t i = 0; i < GPUHAL_CUDA_NVML_VALUES; i++) {
        const gpuhal_cuda_nvml_value *value = &gpuhal_cuda_nvml_values[i];
        own.wanted[i] = gpuhal_cuda_wants(keys, count, value->key);
        if (own.wanted[i] && value->is_slow && count == 0) {
            own.wanted[i] = false;
            host->missing(host, sink, value->key, GPUHAL_MISSING_NOT_READ,
                          "reading it takes 20 ms or longer: request it by name");
        }
        any = any || own.wanted[i];
    }
    gpuhal_stream_why whole = {0};
    if (any && !(flags & GPUHAL_SAMPLE_MAY_WAKE) && gpuhal_cuda_is_asleep(own.entry)) {
        whole = (gpuhal_stream_why){.reason = GPUHAL_MISSING_ASLEEP, .text = "the GPU sleeps, and NVML would wake it"};
    } else if (any) {
        whole = gpuhal_cuda_nvml_run(take_sample, &own);
    }
    for (size_t i = 0; i < GPUHAL_CUDA_NVML_VALUES; i++) {
        if (own.wanted[i]) {
            list(host, sink, &own, i, &whole);
        }
    }
    return own.is_lost ? host->report(host, GPUHAL_ERROR_DEVICE_LOST, NULL, NVML_ERROR_GPU_IS_LOST,
                                      gpuhal_cuda_nvml_why(NVML_ERROR_GPU_IS_LOST).text)
                       : GPUHAL_OK;
}
