/* cuda/graph.c: the functions for graphs that differ from HIP's. */
#include "device.h"

bool gpuhal_cuda_has_graphs(void)
{
    const gpuhal_cuda_functions *api = &gpuhal_cuda_api;
    return api->cuGraphCreate && api->cuGraphDestroy && api->cuGraphAddKernelNode && api->cuGraphAddMemcpyNode &&
           api->cuGraphAddMemsetNode && api->cuGraphKernelNodeSetParams && api->cuGraphInstantiateWithFlags &&
           api->cuGraphExecKernelNodeSetParams && api->cuGraphLaunch && api->cuGraphExecDestroy;
}

CUDA_KERNEL_NODE_PARAMS_v1 gpuhal_cuda_kernel_node(gpuhal_stream_launch *launch)
{
    return (CUDA_KERNEL_NODE_PARAMS_v1){
        .func = launch->function,
        .gridDimX = launch->groups[0],
        .gridDimY = launch->groups[1],
        .gridDimZ = launch->groups[2],
        .blockDimX = launch->group_size[0],
        .blockDimY = launch->group_size[1],
        .blockDimZ = launch->group_size[2],
        .sharedMemBytes = launch->shared_bytes,
        .kernelParams = launch->pointers,
    };
}

/* The pitches stay 0: they are not needed for one row, and must be below 2 GiB. */
CUresult gpuhal_cuda_add_copy(const gpuhal_plugin_device *device, CUgraph graph, const CUgraphNode *after,
                              const gpuhal_stream_place *to, const gpuhal_stream_place *from, uint64_t bytes,
                              CUgraphNode *out_node)
{
    const CUDA_MEMCPY3D copy = {
        .srcMemoryType = from->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = from->host,
        .srcDevice = from->device,
        .dstMemoryType = to->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .dstHost = to->host,
        .dstDevice = to->device,
        .WidthInBytes = (size_t)bytes,
        .Height = 1,
        .Depth = 1,
    };
    return gpuhal_cuda_api.cuGraphAddMemcpyNode(out_node, graph, after, after ? 1 : 0, &copy, device->context);
}

CUresult gpuhal_cuda_add_fill(const gpuhal_plugin_device *device, CUgraph graph, const CUgraphNode *after, uint64_t at,
                              uint32_t element, uint32_t element_bytes, uint64_t bytes, CUgraphNode *out_node)
{
    const CUDA_MEMSET_NODE_PARAMS fill = {
        .dst = at,
        .value = element,
        .elementSize = element_bytes,
        .width = (size_t)(bytes / element_bytes),
        .height = 1,
    };
    return gpuhal_cuda_api.cuGraphAddMemsetNode(out_node, graph, after, after ? 1 : 0, &fill, device->context);
}
