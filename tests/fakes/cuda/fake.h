/* tests/fakes/cuda/fake.h: the CUDA driver API on top of the fakes' engine. The calls that HIP shares are in
 * ../stream. */
#ifndef FAKE_CUDA_FAKE_H
#define FAKE_CUDA_FAKE_H

/* The driver's handles point to the structures of the engine and of ../stream. */
#define CUctx_st       fake_context
#define CUstream_st    fake_stream
#define CUevent_st     fake_event
#define CUextMemory_st fake_import
#define CUmod_st       fake_module
#define CUfunc_st      fake_function
#define CUgraph_st     fake_graph
#define CUgraphNode_st fake_node
#define CUgraphExec_st fake_executable
#include "vendor_names.h"

#include "../stream/stream.h"

/* Numbers and names that differ from HIP's. */
enum {
    FAKE_WANTS_BYTES = true, /* an allocation of 0 bytes is an error */
    FAKE_FREES_NULL = false,
    FAKE_KEEPS_ALIGNMENT = true, /* of address ranges */
    FAKE_ERROR_NOT_CAPTURED = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
};
#define FAKE_HANDLE_TYPES(properties) (properties)->requestedHandleTypes

#endif
