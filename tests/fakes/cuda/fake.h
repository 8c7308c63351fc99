/* tests/fakes/cuda/fake.h: the driver API of CUDA over the engine of the fakes; the calls that HIP has in common are in
 * ../stream.
 */
#ifndef FAKE_CUDA_FAKE_H
#define FAKE_CUDA_FAKE_H

/* The driver's handles point to the engine's structures. */
#define CUctx_st       fake_context
#define CUstream_st    fake_stream
#define CUevent_st     fake_event
#define CUextMemory_st fake_import
#define CUmod_st       fake_module
#define CUfunc_st      fake_function
#include "vendor_names.h"

#include "../stream/stream.h"

/* Differences from HIP in a number or a word alone. */
enum {
    FAKE_WANTS_BYTES = true, /* an allocation of 0 bytes is an error */
    FAKE_FREES_NULL = false,
    FAKE_KEEPS_ALIGNMENT = true, /* of reserved addresses */
    FAKE_ERROR_NOT_CAPTURED = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
};
#define FAKE_HANDLE_TYPES(properties) (properties)->requestedHandleTypes

#endif
