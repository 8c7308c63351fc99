/* tests/fakes/cuda/memory.c: device memory and page-locked memory of the driver API. */
#include "fake.h"

#include <string.h>

CUresult cuMemGetInfo_v2(size_t *out_free, size_t *out_total)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    const fake_device *device = &fake.devices[context->device];
    *out_total = device->memory;
    *out_free = fake_free_bytes(context->device);
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuMemAlloc_v2(CUdeviceptr *out_address, size_t bytes)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    uintptr_t address = 0;
    code = fake_memory_new(context, bytes, &address);
    *out_address = code ? *out_address : address;
    return fake_leave(code);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    return fake_leave(fake_memory_free(__func__, address, FAKE_DEVICE_MEMORY, FAKE_IMPORTED, CUDA_ERROR_INVALID_VALUE));
}

CUresult cuMemHostAlloc(void **out_memory, size_t bytes, unsigned int flags)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    return fake_leave(flags > 7 ? CUDA_ERROR_INVALID_VALUE : fake_host_memory_new(context, bytes, out_memory));
}

CUresult cuMemFreeHost(void *memory)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    return fake_leave(
        fake_memory_free(__func__, (uintptr_t)memory, FAKE_HOST_MEMORY, FAKE_HOST_MEMORY, CUDA_ERROR_INVALID_VALUE));
}

CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    return fake_leave(flags > 15 ? CUDA_ERROR_INVALID_VALUE : fake_host_memory_register(context, memory, bytes, flags & CU_MEMHOSTREGISTER_READ_ONLY));
}

CUresult cuMemHostUnregister(void *memory)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    return fake_leave(fake_memory_free(__func__, (uintptr_t)memory, FAKE_REGISTERED_MEMORY, FAKE_REGISTERED_MEMORY,
                                       CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out_address, void *memory, unsigned int flags)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find((uintptr_t)memory, 1);
    if (!region || flags || region->address != (uintptr_t)memory ||
        (region->kind != FAKE_HOST_MEMORY && region->kind != FAKE_REGISTERED_MEMORY)) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    *out_address = (uintptr_t)memory;
    return fake_leave(CUDA_SUCCESS);
}

CUresult cuPointerGetAttribute(void *out_value, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find(address, 1);
    if (!region) {
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        memcpy(out_value, &region->context, sizeof region->context);
        return fake_leave(region->context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        memcpy(out_value, &(CUmemorytype){fake_region_is_host(region) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE},
               sizeof(CUmemorytype));
        return fake_leave(CUDA_SUCCESS);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        memset(out_value, 0, sizeof(unsigned));
        return fake_leave(CUDA_SUCCESS);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        memcpy(out_value, &(CUdeviceptr){region->address}, sizeof(CUdeviceptr));
        return fake_leave(CUDA_SUCCESS);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        memcpy(out_value, &(int){(int)fake_region_device(region, address)}, sizeof(int));
        return fake_leave(CUDA_SUCCESS);
    default:
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *out_base, size_t *out_bytes, CUdeviceptr address)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find(address, 1);
    if (!region) {
        return fake_leave(CUDA_ERROR_NOT_FOUND);
    }
    uintptr_t start = region->address;
    size_t size = region->size;
    if (region->kind == FAKE_RANGE && !fake_range_piece(region, address, &start, &size)) {
        return fake_leave(CUDA_ERROR_NOT_FOUND);
    }
    if (out_base) {
        *out_base = start;
    }
    if (out_bytes) {
        *out_bytes = size;
    }
    return fake_leave(CUDA_SUCCESS);
}
