/* rocm/graph.c: the functions for graphs that differ from CUDA's. */
#include "device.h"

bool gpuhal_rocm_has_graphs(void)
{
    const gpuhal_rocm_functions *api = &gpuhal_rocm_api;
    return gpuhal_rocm_runtime.has_graphs && api->hipGraphCreate && api->hipGraphDestroy &&
           api->hipGraphAddKernelNode && api->hipGraphAddMemcpyNode1D && api->hipGraphAddMemsetNode &&
           api->hipGraphKernelNodeSetParams && api->hipGraphInstantiateWithFlags &&
           api->hipGraphExecKernelNodeSetParams && api->hipGraphLaunch && api->hipGraphExecDestroy;
}

hipKernelNodeParams gpuhal_rocm_kernel_node(gpuhal_stream_launch *launch)
{
    return (hipKernelNodeParams){
        .blockDim = {launch->group_size[0], launch->group_size[1], launch->group_size[2]},
        .func = launch->function,
        .gridDim = {launch->groups[0], launch->groups[1], launch->groups[2]},
        .kernelParams = launch->pointers,
        .sharedMemBytes = launch->shared_bytes,
    };
}

hipError_t gpuhal_rocm_add_copy(const gpuhal_plugin_device *device, hipGraph_t graph, const hipGraphNode_t *after,
                                const gpuhal_stream_place *to, const gpuhal_stream_place *from, uint64_t bytes,
                                hipGraphNode_t *out_node)
{
    (void)device;
    void *target = to->host ? to->host : gpuhal_rocm_at(to->device);
    const void *source = from->host ? from->host : gpuhal_rocm_at(from->device);
    const hipMemcpyKind kind = to->host     ? hipMemcpyDeviceToHost
                               : from->host ? hipMemcpyHostToDevice
                                            : hipMemcpyDeviceToDevice;
    return gpuhal_rocm_api.hipGraphAddMemcpyNode1D(out_node, graph, after, after ? 1 : 0, target, source, (size_t)bytes,
                                                   kind);
}

hipError_t gpuhal_rocm_add_fill(const gpuhal_plugin_device *device, hipGraph_t graph, const hipGraphNode_t *after,
                                uint64_t at, uint32_t element, uint32_t element_bytes, uint64_t bytes,
                                hipGraphNode_t *out_node)
{
    (void)device;
    const hipMemsetParams fill = {
        .dst = gpuhal_rocm_at(at),
        .elementSize = element_bytes,
        .height = 1,
        .value = element,
        .width = (size_t)(bytes / element_bytes),
    };
    return gpuhal_rocm_api.hipGraphAddMemsetNode(out_node, graph, after, after ? 1 : 0, &fill);
}
