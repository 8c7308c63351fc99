/* tests/fakes/cuda/memory.c: the functions for page-locking, virtual memory and imported memory that differ from
 * HIP's. */
#include "fake.h"

#include <string.h>

/* Drivers since 580 lock less than 512 GiB in one call. */
#define LOCKED_AT_MOST (((size_t)512 << 30) - 1)

/* Only whole pages can be locked, so a registration cannot share a page with another registration or an allocation. */
CUresult cuMemHostRegister_v2(void *memory, size_t bytes, unsigned int flags)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    if (flags > 15 || !memory || !bytes) {
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    int takes_flag = 0;
    const fake_plan *plan = fake.devices[context->device].plan;
    (void)fake_attribute_of(plan, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, &takes_flag);
    if (flags & CU_MEMHOSTREGISTER_READ_ONLY && !takes_flag) {
        return fake_end(CUDA_ERROR_NOT_SUPPORTED);
    }
    if (bytes > LOCKED_AT_MOST) {
        return fake_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    return fake_end(fake_pages_are_known(memory, bytes)
                        ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                        : fake_host_memory_register(context, memory, bytes, flags & CU_MEMHOSTREGISTER_READ_ONLY));
}

CUresult cuMemHostUnregister(void *memory)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    return fake_end(fake_memory_free(__func__, (uintptr_t)memory, FAKE_REGISTERED_MEMORY, FAKE_REGISTERED_MEMORY,
                                     CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out_address, void *memory, unsigned int flags)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find((uintptr_t)memory, 1);
    if (!region || flags || region->address != (uintptr_t)memory ||
        (region->kind != FAKE_HOST_MEMORY && region->kind != FAKE_REGISTERED_MEMORY)) {
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    *out_address = (uintptr_t)memory;
    return fake_end(CUDA_SUCCESS);
}

CUresult cuPointerGetAttribute(void *out_value, CUpointer_attribute attribute, CUdeviceptr address)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    const fake_region *region = fake_region_find(address, 1);
    if (!region) {
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        memcpy(out_value, &region->context, sizeof region->context);
        return fake_end(region->context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        memcpy(out_value,
               &(CUmemorytype){fake_region_is_host(region) && region->kind != FAKE_MANAGED_MEMORY
                                   ? CU_MEMORYTYPE_HOST
                                   : CU_MEMORYTYPE_DEVICE},
               sizeof(CUmemorytype));
        return fake_end(CUDA_SUCCESS);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        memcpy(out_value, &(unsigned long long){region->id}, sizeof(unsigned long long));
        return fake_end(CUDA_SUCCESS);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        memcpy(out_value, &(unsigned){region->kind == FAKE_MANAGED_MEMORY}, sizeof(unsigned));
        return fake_end(CUDA_SUCCESS);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        memcpy(out_value, &(CUdeviceptr){region->address}, sizeof(CUdeviceptr));
        return fake_end(CUDA_SUCCESS);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        memcpy(out_value, &(int){(int)fake_region_device(region, address)}, sizeof(int));
        return fake_end(CUDA_SUCCESS);
    default:
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
}

/* ---- virtual memory and imported memory */

fake_code fake_enter_virtual(const char *function)
{
    return fake_enter(function);
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    return fake_end(offset || flags ? CUDA_ERROR_INVALID_VALUE : fake_range_map(__func__, address, bytes, handle));
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
    CUresult code = fake_enter(__func__);
    return code ? code : fake_end(fake_grant(__func__, address, bytes, access, count));
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out_handle, void *os_handle,
                                        CUmemAllocationHandleType type)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    fake_physical *physical = NULL;
    code = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? fake_physical_import((int)(intptr_t)os_handle, &physical)
                                                            : CUDA_ERROR_INVALID_VALUE;
    *out_handle = (uintptr_t)physical;
    return fake_end(code);
}

/* Takes ownership of the descriptor on success. */
CUresult cuImportExternalMemory(CUexternalMemory *out_memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *handle)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    fake_import *import = NULL;
    code = handle->type == CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD
               ? fake_import_new(handle->handle.fd, handle->size, &import)
               : CUDA_ERROR_INVALID_VALUE;
    *out_memory = import;
    return fake_end(code);
}

bool fake_fill_fits(uintptr_t address, size_t bytes)
{
    (void)address;
    (void)bytes;
    return true;
}
