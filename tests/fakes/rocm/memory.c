/* tests/fakes/rocm/memory.c: device memory and page-locked memory of HIP. */
#include "fake.h"

#include <string.h>

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    *free_bytes = fake_free_bytes(context->device);
    *total_bytes = fake.devices[context->device].memory;
    return fake_end(hipSuccess);
}

/* No bytes are no error: the address is NULL then. */
hipError_t hipMalloc(void **out_address, size_t bytes)
{
    fake_context *context;
    uintptr_t address = 0;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = bytes ? fake_memory_new(context, bytes, &address) : hipSuccess;
    *out_address = (void *)address;
    return fake_end(code);
}

/* NULL is freed without anything to do. */
static hipError_t free_memory(const char *function, void *memory, fake_region_kind kind, fake_region_kind other,
                              hipError_t unknown)
{
    hipError_t code = fake_enter(function);
    if (code) {
        return code;
    }
    return fake_end(memory ? fake_memory_free(function, (uintptr_t)memory, kind, other, unknown) : hipSuccess);
}

hipError_t hipFree(void *address)
{
    return free_memory(__func__, address, FAKE_DEVICE_MEMORY, FAKE_IMPORTED, hipErrorInvalidValue);
}

hipError_t hipHostMalloc(void **out_memory, size_t bytes, unsigned int flags)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    return fake_end(flags > 7 ? hipErrorInvalidValue : fake_host_memory_new(context, bytes, out_memory));
}

hipError_t hipHostFree(void *memory)
{
    return free_memory(__func__, memory, FAKE_HOST_MEMORY, FAKE_HOST_MEMORY, hipErrorInvalidValue);
}

hipError_t hipHostRegister(void *memory, size_t bytes, unsigned int flags)
{
    fake_context *context;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    return fake_end(flags > 15 ? hipErrorInvalidValue : fake_host_memory_register(context, memory, bytes, flags & 8));
}

hipError_t hipHostUnregister(void *memory)
{
    return free_memory(__func__, memory, FAKE_REGISTERED_MEMORY, FAKE_REGISTERED_MEMORY, hipErrorHostMemoryNotRegistered);
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

/* Kinds of memory have other numbers since HIP 6, where 0 became memory that is not known. */
hipError_t hipPointerGetAttribute(void *out_value, hipPointer_attribute attribute, hipDeviceptr_t address)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find((uintptr_t)address, 1);
    if (!region) {
        return fake_end(hipErrorInvalidValue);
    }
    const unsigned first = fake_hip_major() < 6 ? 0 : 1, kind = first + (fake_region_is_host(region) ? 0 : 1);
    const int ordinal = (int)fake_region_device(region, (uintptr_t)address);
    switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
        memcpy(out_value, &kind, sizeof kind);
        return fake_end(hipSuccess);
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        memcpy(out_value, &ordinal, sizeof ordinal);
        return fake_end(hipSuccess);
    default:
        return fake_end(hipErrorInvalidValue);
    }
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *bytes, hipDeviceptr_t address)
{
    hipError_t code = fake_enter(__func__);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find((uintptr_t)address, 1);
    if (!region) {
        return fake_end(hipErrorNotFound);
    }
    *base = (void *)region->address;
    *bytes = region->size;
    return fake_end(hipSuccess);
}
