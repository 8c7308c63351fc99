/* rocm/telemetry.c: reads device values from AMD SMI or ROCm SMI (smi_values.c). The devices need not be open. The core
 * itself reads values from the kernel's files before it calls this plugin.
 *
 * A library may wake a sleeping GPU, so the kernel's files are read first to find out whether the GPU sleeps.
 */
#include "telemetry.h"

/* Returns the reason why the library must not be queried for a value, or reason 0 if it may be queried. */
static gpuhal_stream_why may_ask(const gpuhal_rocm_entry *entry, gpuhal_key key, bool asleep)
{
    if (asleep) {
        return gpuhal_rocm_because(GPUHAL_MISSING_ASLEEP, "the GPU sleeps, and reading would wake it");
    }
    /* If the plugin numbered the partition, the library may number it differently. */
    if (entry->is_counted || !gpuhal_rocm_smi_has(key)) {
        return gpuhal_rocm_because(GPUHAL_MISSING_NOT_SUPPORTED, "no management library has it for this device");
    }
    return (gpuhal_stream_why){0};
}

/* Only the memory values are specific to a partition. */
static const char *source_of(const gpuhal_rocm_entry *entry, gpuhal_key key)
{
    if (gpuhal_rocm_smi_which() != GPUHAL_ROCM_SMI_AMD) {
        return "rocm-smi"; /* only memory values are read from ROCm SMI */
    }
    const bool is_memory = key == GPUHAL_VALUE_MEMORY_FREE_BYTES || key == GPUHAL_VALUE_MEMORY_USED_BYTES;
    return entry->partition >= 0 && !is_memory ? "amd-smi-board" : "amd-smi";
}

gpuhal_status gpuhal_rocm_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    gpuhal_rocm_sample_request own = {.entry = gpuhal_rocm_find(index)};
    if (!own.entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_stream_why whys[GPUHAL_ROCM_VALUES] = {0};
    const bool asleep = !(flags & GPUHAL_SAMPLE_MAY_WAKE) && gpuhal_rocm_is_asleep(own.entry);
    bool any = false;
    for (size_t i = 0; i < GPUHAL_ROCM_VALUES; i++) {
        if (gpuhal_rocm_wants(keys, count, gpuhal_rocm_keys_of_values[i])) {
            whys[i] = may_ask(own.entry, gpuhal_rocm_keys_of_values[i], asleep);
            own.wanted[i] = whys[i].reason == 0;
            any = any || own.wanted[i];
        }
    }
    if (any) {
        gpuhal_rocm_ask_smi(&own, whys);
    }
    for (size_t i = 0; i < GPUHAL_ROCM_VALUES; i++) {
        if (own.wanted[i] && whys[i].reason == 0) {
            host->source(host, sink, source_of(own.entry, gpuhal_rocm_keys_of_values[i]));
            host->u64(host, sink, gpuhal_rocm_keys_of_values[i], own.numbers[i]);
        } else if (whys[i].reason != 0) {
            host->missing(host, sink, gpuhal_rocm_keys_of_values[i], whys[i].reason, whys[i].text);
        }
    }
    return GPUHAL_OK;
}
