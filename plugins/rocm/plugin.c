/* rocm/plugin.c: what the core sees of the ROCm plugin.
 *
 * Read in this order: hip_api.h, rocm_smi_api.h and amd_smi_api.h (declarations), hip_versions.h (where the versions differ),
 * driver.h (functions and errors), device.h (entries, openings, lanes), discovery.c, system.c, identity.c and facts.c (which
<<<<<<< HEAD
 * devices, what is known of them), telemetry.c and smi.h (their values), context.c, memory.c, share.c and virtual_memory.c,
 * transfer.c and rect.c, queue.c, peer.c and link.c, program.c.
=======
 * devices, what is known of them), telemetry.c and smi_jobs.h (their values), context.c, memory.c, registration.c, share.c and
 * virtual_memory.c, transfer.c and rect.c, queue.c, peer.c and link.c, program.c.
>>>>>>> 0059c4e (rocm, cuda: registrations are counted, a reset is noticed by the number of an allocation)
 */
#include "device.h"

static gpuhal_status rocm_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    const gpuhal_rocm_entry *entry = gpuhal_rocm_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_rocm_describe_context(out_ops);
    gpuhal_rocm_describe_memory(out_ops);
    gpuhal_rocm_describe_registration(entry, out_ops);
    gpuhal_rocm_describe_share(entry, out_ops);
    gpuhal_rocm_describe_transfer(out_ops);
    gpuhal_rocm_describe_rect(out_ops);
    gpuhal_rocm_describe_queue(out_ops);
    gpuhal_rocm_describe_peer(out_ops);
    gpuhal_rocm_describe_ranges(entry, out_ops);
    gpuhal_rocm_describe_program(out_ops);
    return GPUHAL_OK;
}

/* Not fork safe: in the child of a fork HIP cannot be initialised again, and the core refuses every call there. */
static const gpuhal_plugin rocm_plugin = {
    .size = sizeof(gpuhal_plugin),
    .abi = GPUHAL_ABI,
    .name = "rocm",
    .version = "0.1.0",
    .start = gpuhal_rocm_start,
    .enumerate = gpuhal_rocm_enumerate,
    .describe = rocm_describe,
    .open = gpuhal_rocm_open,
    .close = gpuhal_rocm_close,
    .sample = gpuhal_rocm_sample,
    .link = gpuhal_rocm_link,
};

const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host)
{
    if (host_abi != GPUHAL_ABI) {
        (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, (int64_t)host_abi,
                           "the rocm plugin speaks plugin ABI 0.2 only");
        return NULL;
    }
    return &rocm_plugin;
}
