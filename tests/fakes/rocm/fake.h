/* tests/fakes/rocm/fake.h: HIP over the engine of the fakes; the calls that CUDA has in common are in ../stream. */
#ifndef FAKE_ROCM_FAKE_H
#define FAKE_ROCM_FAKE_H

/* The runtime's handles point to the engine's structures. */
#define ihipStream_t                   fake_stream
#define ihipEvent_t                    fake_event
#define ihipMemGenericAllocationHandle fake_physical
#define ihipModule_t                   fake_module
#define ihipModuleSymbol_t             fake_function
#include "vendor_names.h"

#include "../stream/stream.h"

/* Differences from CUDA in a number or a word alone. */
enum {
    FAKE_WANTS_BYTES = false, /* an allocation of 0 bytes gives NULL */
    FAKE_FREES_NULL = true,
    FAKE_KEEPS_ALIGNMENT = false, /* of reserved addresses: hip_vm.cpp, Device::virtualAlloc passes none on */
    FAKE_ERROR_NOT_CAPTURED = hipErrorIllegalState
};
#define FAKE_HANDLE_TYPES(properties) (properties)->requestedHandleType

/* Major version of the machine's runtime; the differences between versions depend on it. */
unsigned fake_hip_major(void);
/* stream.c: records the streams that a reset is about to take. */
void fake_streams_lost(const fake_context *context);

#endif
