/* tests/fakes/cuda/graph.c: the nodes whose calls differ from HIP's. */
#include "fake.h"

void fake_kernel_node(const CUDA_KERNEL_NODE_PARAMS_v1 *from, CUfunction *out_function, fake_launch *out_launch,
                      void ***out_parameters, void ***out_extra)
{
    *out_function = from->func;
    *out_launch = (fake_launch){.groups = {from->gridDimX, from->gridDimY, from->gridDimZ},
                                .group_size = {from->blockDimX, from->blockDimY, from->blockDimZ},
                                .shared_bytes = from->sharedMemBytes};
    *out_parameters = from->kernelParams;
    *out_extra = from->extra;
}

/* Resolves one side of a copy of one row. Returns false for other memory types. */
static bool side(CUmemorytype type, const void *host, CUdeviceptr device, uintptr_t *out_address, bool *out_host)
{
    *out_host = type == CU_MEMORYTYPE_HOST;
    *out_address = *out_host ? (uintptr_t)host : (uintptr_t)device;
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *out_node, CUgraph graph, const CUgraphNode *after, size_t count,
                              const CUDA_MEMCPY3D *copy, CUcontext context)
{
    CUresult code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    fake_node_work work = {.kind = FAKE_COPY_NODE, .move = {.bytes = copy->WidthInBytes, .rows = 1}};
    const bool is_row = copy->Height == 1 && copy->Depth == 1 && !copy->srcPitch && !copy->dstPitch &&
                        !copy->srcXInBytes && !copy->dstXInBytes && !copy->reserved0 && !copy->reserved1;
    const bool good = side(copy->dstMemoryType, copy->dstHost, copy->dstDevice, &work.move.to, &work.move.to_host) &&
                      side(copy->srcMemoryType, copy->srcHost, copy->srcDevice, &work.move.from, &work.move.from_host);
    if (!good || !is_row || !work.move.bytes || !fake_context_alive(context)) {
        fake_report_violation("%s: not a row of bytes of host or device memory, or no context", __func__);
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    fake_place place;
    code = fake_place_find(__func__, context, work.move.to, work.move.bytes, work.move.to_host, &place);
    code =
        code ? code : fake_place_find(__func__, context, work.move.from, work.move.bytes, work.move.from_host, &place);
    return fake_end(code ? code : fake_node_add(__func__, context, graph, after, count, &work, out_node));
}

CUresult cuGraphAddMemsetNode(CUgraphNode *out_node, CUgraph graph, const CUgraphNode *after, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
    CUresult code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    const bool good = fake_context_alive(context) && fill->height == 1;
    code = good ? fake_fill_node_add(__func__, context, graph, after, count, fill->dst, fill->value, fill->elementSize,
                                     fill->width, out_node)
                : CUDA_ERROR_INVALID_VALUE;
    return fake_end(code);
}
