/* tests/fakes/rocm/memory.c: the functions for page-locking and memory types that differ from CUDA's. */
#include "fake.h"

#include <string.h>

static fake_region *known_at(uintptr_t address)
{
    fake_region *region = fake.regions;
    while (region && region->address != address) {
        region = region->next;
    }
    return region;
}

/* Never returns 712. The runtime looks memory up by its start and leaves known memory unchanged (ihipHostRegister in
 * hip_memory.cpp ignores that its map refuses the insertion). */
hipError_t hipHostRegister(void *memory, size_t bytes, unsigned int flags)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    if (flags > 15) {
        return fake_end(hipErrorInvalidValue);
    }
    return fake_end(known_at((uintptr_t)memory) ? hipSuccess
                                                : fake_host_memory_register(context, memory, bytes, flags & 8));
}

/* Removes the registration that begins at this address, even if another caller made it. If the address is inside other
 * known memory, the real function aborts the process (device.cpp, MemObjMap::RemoveMemObj: guarantee). */
hipError_t hipHostUnregister(void *memory)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    fake_region *region = known_at((uintptr_t)memory);
    if (!region && !fake_region_find((uintptr_t)memory, 1)) {
        return fake_end(hipErrorHostMemoryNotRegistered);
    }
    if (!region || region->kind != FAKE_REGISTERED_MEMORY) {
        fake_report_violation("%s: no beginning of a registration, but memory that is known", __func__);
        return fake_end(hipErrorInvalidValue);
    }
    fake_context_drain(NULL);
    fake_region_free(region);
    return fake_end(hipSuccess);
}

hipError_t hipHostGetDevicePointer(void **out_address, void *memory, unsigned int flags)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find((uintptr_t)memory, 1);
    if (!region || flags || !fake_region_is_host(region)) {
        return fake_end(hipErrorInvalidValue);
    }
    *out_address = memory;
    return fake_end(hipSuccess);
}

/* HIP 6 changed the numbers of the memory types: 0 now means unknown memory. */
static unsigned kind_of(const fake_region *region)
{
    return (fake_hip_major() < 6 ? 0u : 1u) + (fake_region_is_host(region) ? 0u : 1u);
}

/* If a caller queries the memory type of an unknown address, a runtime before 6.2 reads the bytes at the address as a
 * pointer and dereferences it (hip_memory.cpp, ihipPointerGetAttributes: "checks for array type"). */
static hipError_t unknown_pointer(hipPointer_attribute attribute)
{
    if (attribute == HIP_POINTER_ATTRIBUTE_MEMORY_TYPE && fake_script_get()->driver_version < 60200000) {
        fake_report_violation(
            "hipPointerGetAttribute: the kind of memory that is not known, which the runtime would follow");
    }
    return hipErrorInvalidValue;
}

/* Allocation IDs have 32 bits; the managed flag has 8 bits. */
hipError_t hipPointerGetAttribute(void *out_value, hipPointer_attribute attribute, hipDeviceptr_t address)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find((uintptr_t)address, 1);
    if (!region) {
        return fake_end(unknown_pointer(attribute));
    }
    switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
        memcpy(out_value, &(unsigned){kind_of(region)}, sizeof(unsigned));
        return fake_end(hipSuccess);
    case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
        memcpy(out_value, &region->id, sizeof region->id);
        return fake_end(hipSuccess);
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
        *(bool *)out_value = region->kind == FAKE_MANAGED_MEMORY;
        return fake_end(hipSuccess);
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        memcpy(out_value, &(int){(int)fake_region_device(region, (uintptr_t)address)}, sizeof(int));
        return fake_end(hipSuccess);
    default:
        return fake_end(hipErrorInvalidValue);
    }
}
