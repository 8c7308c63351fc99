/* tests/fakes/rocm/graph.c: the nodes whose calls differ from CUDA's. Copies and fills must stay within one piece of
 * physical memory in the same versions as those of a stream (copy.c). */
#include "fake.h"

void fake_kernel_node(const hipKernelNodeParams *from, hipFunction_t *out_function, fake_launch *out_launch,
                      void ***out_parameters, void ***out_extra)
{
    *out_function = from->func;
    *out_launch = (fake_launch){.groups = {from->gridDim.x, from->gridDim.y, from->gridDim.z},
                                .group_size = {from->blockDim.x, from->blockDim.y, from->blockDim.z},
                                .shared_bytes = from->sharedMemBytes};
    *out_parameters = from->kernelParams;
    *out_extra = from->extra;
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *out_node, hipGraph_t graph, const hipGraphNode_t *after,
                                   size_t count, void *to, const void *from, size_t bytes, hipMemcpyKind kind)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    const fake_node_work work = {.kind = FAKE_COPY_NODE,
                                 .move = {.to = (uintptr_t)to,
                                          .from = (uintptr_t)from,
                                          .bytes = bytes,
                                          .rows = 1,
                                          .to_host = kind == hipMemcpyHostToHost || kind == hipMemcpyDeviceToHost,
                                          .from_host = kind == hipMemcpyHostToHost || kind == hipMemcpyHostToDevice}};
    fake_place place;
    if (!bytes || kind > hipMemcpyDefault || !fake_copy_fits(work.move.to, bytes) ||
        !fake_copy_fits(work.move.from, bytes)) {
        return fake_end(hipErrorInvalidValue);
    }
    code = fake_place_find(__func__, context, work.move.to, bytes, work.move.to_host, &place);
    code = code ? code : fake_place_find(__func__, context, work.move.from, bytes, work.move.from_host, &place);
    return fake_end(code ? code : fake_node_add(__func__, context, graph, after, count, &work, out_node));
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t *out_node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                 const hipMemsetParams *fill)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = fill->height == 1 ? fake_fill_node_add(__func__, context, graph, after, count, (uintptr_t)fill->dst,
                                                  fill->value, fill->elementSize, fill->width, out_node)
                             : hipErrorInvalidValue;
    return fake_end(code);
}
