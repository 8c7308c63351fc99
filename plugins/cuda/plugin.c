/* cuda/plugin.c: what the core sees of the CUDA plugin.
 *
 * Read in this order: cuda_api.h and nvml_api.h (declarations), driver.h (functions and errors), device.h (entries, openings,
 * lanes), discovery.c, system.c, identity.c and facts.c (which devices, what is known of them), nvml.h and telemetry.c (what NVML
 * adds), context.c, memory.c, share.c and virtual_memory.c, transfer.c and rect.c, queue.c, peer.c and link.c, program.c.
 */
#include "device.h"

static gpuhal_status cuda_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    const gpuhal_cuda_entry *entry = gpuhal_cuda_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_cuda_describe_context(out_ops);
    gpuhal_cuda_describe_memory(out_ops);
    gpuhal_cuda_describe_registration(entry, out_ops);
    gpuhal_cuda_describe_share(entry, out_ops);
    gpuhal_cuda_describe_transfer(out_ops);
    gpuhal_cuda_describe_rect(out_ops);
    gpuhal_cuda_describe_queue(out_ops);
    gpuhal_cuda_describe_peer(out_ops);
    gpuhal_cuda_describe_ranges(entry, out_ops);
    gpuhal_cuda_describe_program(out_ops);
    return GPUHAL_OK;
}

/* Not fork safe: in the child of a fork CUDA cannot be initialised again, and the core refuses every call there. */
static const gpuhal_plugin cuda_plugin = {
    .size = sizeof(gpuhal_plugin),
    .abi = GPUHAL_ABI,
    .name = "cuda",
    .version = "0.1.0",
    .start = gpuhal_cuda_start,
    .enumerate = gpuhal_cuda_enumerate,
    .describe = cuda_describe,
    .open = gpuhal_cuda_open,
    .close = gpuhal_cuda_close,
    .sample = gpuhal_cuda_sample,
    .link = gpuhal_cuda_link,
};

const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host)
{
    if (host_abi != GPUHAL_ABI) {
        (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, (int64_t)host_abi,
                           "the cuda plugin speaks plugin ABI 0.2 only");
        return NULL;
    }
    return &cuda_plugin;
}
