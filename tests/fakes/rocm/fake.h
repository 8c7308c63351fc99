/* tests/fakes/rocm/fake.h: HIP on top of the fakes' engine. The calls that CUDA shares are in ../stream. */
#ifndef FAKE_ROCM_FAKE_H
#define FAKE_ROCM_FAKE_H

/* The runtime's handles point to the engine's structures. */
#define ihipStream_t                   fake_stream
#define ihipEvent_t                    fake_event
#define ihipMemGenericAllocationHandle fake_physical
#define ihipModule_t                   fake_module
#define ihipModuleSymbol_t             fake_function
#define ihipGraph                      fake_graph
#define hipGraphNode                   fake_node
#define hipGraphExec                   fake_executable
#include "vendor_names.h"

#include "../stream/stream.h"

/* Numbers and names that differ from CUDA's. */
enum {
    FAKE_WANTS_BYTES = false, /* an allocation of 0 bytes of device memory succeeds with NULL */
    FAKE_FREES_NULL = true,
    /* of address ranges; Device::virtualAlloc in hip_vm.cpp ignores the requested alignment */
    FAKE_KEEPS_ALIGNMENT = false,
    FAKE_ERROR_NOT_CAPTURED = hipErrorIllegalState
};
#define FAKE_HANDLE_TYPES(properties) (properties)->requestedHandleType

unsigned fake_hip_major(void);
/* copy.c: returns whether one call may copy this many bytes from or to this address. */
bool fake_copy_fits(uintptr_t address, size_t bytes);
/* stream.c: records the streams that a reset is about to destroy. */
void fake_streams_lost(const fake_context *context);

#endif
