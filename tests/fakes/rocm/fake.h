/* tests/fakes/rocm/fake.h: HIP over the engine of the fakes, in ../stream where CUDA has the same. */
#ifndef FAKE_ROCM_FAKE_H
#define FAKE_ROCM_FAKE_H

/* The engine's structures are what the runtime's handles point to. */
#define ihipStream_t                   fake_stream
#define ihipEvent_t                    fake_event
#define ihipMemGenericAllocationHandle fake_physical
#define ihipModule_t                   fake_module
#define ihipModuleSymbol_t             fake_function
#include "vendor_names.h"

#include "../stream/stream.h"

/* Where CUDA differs by a number or a word alone. */
enum {
    FAKE_WANTS_BYTES = false, /* nothing is allocated at NULL */
    FAKE_FREES_NULL = true,
    FAKE_KEEPS_ALIGNMENT = false, /* of reserved addresses: hip_vm.cpp, Device::virtualAlloc hands none on */
    FAKE_ERROR_NOT_CAPTURED = hipErrorIllegalState
};
#define FAKE_HANDLE_TYPES(properties) (properties)->requestedHandleType

/* Major version: what differs between them goes by the version that the machine says. */
unsigned fake_hip_major(void);
/* stream.c: notes the streams that a reset is about to take. */
void fake_streams_lost(const fake_context *context);

#endif
