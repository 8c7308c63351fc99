/* tests/fakes/cuda/fake.h: the driver API of CUDA over the engine of the fakes, in ../stream where HIP has the same.
 */
#ifndef FAKE_CUDA_FAKE_H
#define FAKE_CUDA_FAKE_H

/* The engine's structures are what the driver's handles point to. */
#define CUctx_st       fake_context
#define CUstream_st    fake_stream
#define CUevent_st     fake_event
#define CUextMemory_st fake_import
#define CUmod_st       fake_module
#define CUfunc_st      fake_function
#include "vendor_names.h"

#include "../stream/stream.h"

/* Where HIP differs by a number or a word alone. */
enum {
    FAKE_WANTS_BYTES = true, /* to allocate nothing is an error */
    FAKE_FREES_NULL = false,
    FAKE_KEEPS_ALIGNMENT = true, /* of reserved addresses */
    FAKE_ERROR_NOT_CAPTURED = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
};
#define FAKE_HANDLE_TYPES(properties) (properties)->requestedHandleTypes

#endif
