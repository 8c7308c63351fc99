/* tests/fakes/cuda/virtual.c: virtual memory and memory of others, as the driver API names them. */
#include "fake.h"

CUresult cuMemGetAllocationGranularity(size_t *out_bytes, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags which)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    bool good = properties->type == CU_MEM_ALLOCATION_TYPE_PINNED && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                which <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED && fake_device_at(properties->location.id, &code);
    *out_bytes = FAKE_GRANULARITY;
    return fake_leave(good ? CUDA_SUCCESS : code ? code : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out_handle, size_t bytes, const CUmemAllocationProp *properties,
                     unsigned long long flags)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || flags ||
        properties->requestedHandleTypes > CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        fake_report_violation("%s: properties that are none", __func__);
        return fake_leave(CUDA_ERROR_INVALID_VALUE);
    }
    fake_physical *physical = NULL;
    code = fake_physical_new(__func__, bytes, properties->location.id, properties->requestedHandleTypes != 0, &physical);
    *out_handle = (uintptr_t)physical;
    return fake_leave(code);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    return fake_leave(fake_physical_release(__func__, handle));
}

CUresult cuMemAddressReserve(CUdeviceptr *out_address, size_t bytes, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    (void)wanted; /* a wish, which the real one may pass over too */
    uintptr_t address = 0;
    code = flags ? CUDA_ERROR_INVALID_VALUE : fake_range_reserve(__func__, bytes, alignment, &address);
    *out_address = address;
    return fake_leave(code);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    return fake_leave(fake_range_free(__func__, address, bytes));
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    return fake_leave(offset || flags ? CUDA_ERROR_INVALID_VALUE : fake_range_map(__func__, address, bytes, handle));
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    return fake_leave(fake_range_unmap(__func__, address, bytes));
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    for (size_t i = 0; !code && i < count; i++) {
        code = access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE
                   ? CUDA_ERROR_INVALID_VALUE
                   : fake_range_access(__func__, address, bytes, access[i].location.id, access[i].flags != 0);
    }
    return fake_leave(code);
}

CUresult cuMemExportToShareableHandle(void *out_handle, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    bool good = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !flags;
    return fake_leave(good ? fake_physical_export(handle, out_handle) : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out_handle, void *os_handle, CUmemAllocationHandleType type)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    fake_physical *physical = NULL;
    code = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? fake_physical_import((int)(intptr_t)os_handle, &physical)
                                                            : CUDA_ERROR_INVALID_VALUE;
    *out_handle = (uintptr_t)physical;
    return fake_leave(code);
}

/* The descriptor becomes the library's on success. */
CUresult cuImportExternalMemory(CUexternalMemory *out_memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    fake_import *import = NULL;
    code = handle->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ? fake_import_new(handle->handle.fd, handle->size, &import)
                                                                    : CUDA_ERROR_INVALID_VALUE;
    *out_memory = import;
    return fake_leave(code);
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    return fake_leave(fake_import_free(__func__, memory));
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out_address, CUexternalMemory memory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *buffer)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    uintptr_t address = 0;
    code = buffer->flags ? CUDA_ERROR_INVALID_VALUE : fake_import_map(context, memory, buffer->offset, buffer->size, &address);
    *out_address = address;
    return fake_leave(code);
}
