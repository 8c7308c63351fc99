/* stream/plugin.c: the CUDA and HIP plugins as the core sees them.
 *
 * Read in this order: the plugin's declarations (cuda_api.h, nvml_api.h; hip_api.h, rocm_smi_api.h and amd_smi_api.h,
 * and hip_versions.h for the differences between versions), driver.h (functions and errors), stream_names.h (their
 * names in the sources here), device.h (entries, opened devices) and stream.h; discovery.c, system.c, identity.c and
 * facts.c (the devices and their facts), management.c and telemetry.c with nvml.h or smi.h (their values), context.c,
 * memory.c with address.c, registration.c with page_lock.c, share.c and virtual_memory.c, transfer.c, rect.c and
 * calls.c, queue.c with event.c, peer.c and link.c, module.c, program.c,
 * recording.c with graph.c.
 */
#include "device.h"

static const gpuhal_native_ops native = {
    .size = sizeof native,
    .version = GPUHAL_NATIVE_VERSION,
    .native_device = GPUHAL_OWN(native_device),
    .native_memory = GPUHAL_OWN(native_memory),
    .native_queue = GPUHAL_OWN(native_queue),
    .native_event = GPUHAL_OWN(native_event),
    .wrap_memory = GPUHAL_OWN(wrap_memory),
};

static gpuhal_status describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    const gpuhal_stream_entry *entry = GPUHAL_OWN(find)(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    GPUHAL_OWN(describe_context)(out_ops);
    GPUHAL_OWN(describe_memory)(out_ops);
    GPUHAL_OWN(describe_registration)(entry, out_ops);
    GPUHAL_OWN(describe_share)(entry, out_ops);
    GPUHAL_OWN(describe_transfer)(out_ops);
    GPUHAL_OWN(describe_rect)(out_ops);
    GPUHAL_OWN(describe_queue)(out_ops);
    GPUHAL_OWN(describe_peer)(out_ops);
    GPUHAL_OWN(describe_ranges)(entry, out_ops);
    GPUHAL_OWN(describe_program)(out_ops);
    GPUHAL_OWN(describe_recording)(out_ops);
    out_ops->native = &native;
    return GPUHAL_OK;
}

/* Not fork safe, because neither API can be initialised again in a forked child. The core refuses every call there. */
static const gpuhal_plugin plugin = {
    .size = sizeof(gpuhal_plugin),
    .abi = GPUHAL_ABI,
    .name = GPUHAL_VENDOR_PLUGIN,
    .version = GPUHAL_VERSION,
    .start = GPUHAL_OWN(start),
    .enumerate = GPUHAL_OWN(enumerate),
    .describe = describe,
    .open = GPUHAL_OWN(open),
    .close = GPUHAL_OWN(close),
    .sample = GPUHAL_OWN(sample),
    .link = GPUHAL_OWN(link),
    .processes = GPUHAL_OWN(processes),
};

const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host)
{
    if (host_abi >> 16 != GPUHAL_ABI_MAJOR) {
        (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, 0,
                           "the " GPUHAL_VENDOR_PLUGIN " plugin supports another major version of the plugin ABI");
        return NULL;
    }
    return &plugin;
}
