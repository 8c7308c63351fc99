/* tests/fakes/rocm/virtual.c: the functions for virtual memory and imported memory that differ from CUDA's. Before HIP
 * 5.3 the virtual memory functions exist, but return NOT_SUPPORTED, except hipMemMap(), which returns success. */
#include "fake.h"

#include <unistd.h>

enum { SUPPORTED_SINCE = 50300000 };

hipError_t fake_enter_virtual(const char *function)
{
    hipError_t code = fake_enter(function);
    if (code) {
        return code;
    }
    return fake_script_get()->driver_version < SUPPORTED_SINCE ? fake_end(hipErrorNotSupported) : hipSuccess;
}

/* HIP before 7 ignores the failure of the mapping command (hip_vm.cpp, hipMemMap). */
hipError_t hipMemMap(void *address, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags)
{
    hipError_t code = fake_enter_virtual(__func__);
    if (code) {
        return fake_hip_major() < 7 ? hipSuccess : code;
    }
    bool good = !offset && !flags;
    code = good ? fake_range_map(__func__, (uintptr_t)address, bytes, (uintptr_t)handle) : hipErrorInvalidValue;
    return fake_end(good && fake_hip_major() < 7 ? hipSuccess : code);
}

static bool is_mapped(const void *address)
{
    const fake_region *range = fake_region_find((uintptr_t)address, 1);
    uintptr_t start;
    size_t size;
    return range && range->kind == FAKE_RANGE && fake_range_piece(range, (uintptr_t)address, &start, &size);
}

/* Before HIP 7 this call is the first to report a failed mapping. */
hipError_t hipMemSetAccess(void *address, size_t bytes, const hipMemAccessDesc *access, size_t count)
{
    hipError_t code = fake_enter_virtual(__func__);
    if (code) {
        return code;
    }
    if (fake_hip_major() < 7 && !is_mapped(address)) {
        return fake_end(hipErrorInvalidValue);
    }
    return fake_end(fake_grant(__func__, (uintptr_t)address, bytes, access, count));
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *os_handle,
                                           hipMemAllocationHandleType type)
{
    hipError_t code = fake_enter_virtual(__func__);
    if (code) {
        return code;
    }
    bool good = type == hipMemHandleTypePosixFileDescriptor;
    const bool by_value = fake_script_get()->driver_version >= 70100000;
    if (!by_value && (uintptr_t)os_handle < FAKE_PAGE) {
        fake_report_violation("%s: a descriptor in the place of a pointer, which the runtime would follow", __func__);
        return fake_end(hipErrorInvalidValue);
    }
    if (!os_handle) {
        /* the runtime refuses 0, although 0 is a valid descriptor */
        return fake_end(hipErrorInvalidValue);
    }
    const int fd = by_value ? (int)(intptr_t)os_handle : *(const int *)os_handle;
    return fake_end(good ? fake_physical_import(fd, handle) : hipErrorInvalidValue);
}

/* Versions without virtual memory functions also support external memory. */
hipError_t hipImportExternalMemory(hipExternalMemory_t *memory, const hipExternalMemoryHandleDesc *handle)
{
    fake_context *context;
    fake_import *import = NULL;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    bool good = handle->type == hipExternalMemoryHandleTypeOpaqueFd && !handle->flags;
    /* the engine takes ownership of a descriptor, but the runtime does not close the caller's */
    const int duplicate = dup(handle->handle.fd);
    code = good ? fake_import_new(duplicate, handle->size, &import) : hipErrorInvalidValue;
    if (code && duplicate >= 0) {
        close(duplicate);
    }
    *memory = import;
    return fake_end(code);
}
