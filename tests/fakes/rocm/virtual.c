/* tests/fakes/rocm/virtual.c: virtual memory and memory of others, as HIP names them. Before HIP 5.3 the functions are there and
 * say that they are not supported. */
#include "fake.h"

#include <unistd.h>

enum { SUPPORTED_SINCE = 50300000 };

static hipError_t enter(const char *function)
{
    hipError_t code = fake_enter(function);
    if (code) {
        return code;
    }
    return fake_script_get()->driver_version < SUPPORTED_SINCE ? fake_end(hipErrorNotSupported) : hipSuccess;
}

static bool is_good(const hipMemAllocationProp *properties)
{
    return properties->type == hipMemAllocationTypePinned && properties->location.type == hipMemLocationTypeDevice &&
           properties->requestedHandleType <= hipMemHandleTypePosixFileDescriptor;
}

hipError_t hipMemGetAllocationGranularity(size_t *bytes, const hipMemAllocationProp *properties,
                                          hipMemAllocationGranularity_flags which)
{
    hipError_t code = enter(__func__);
    if (code) {
        return code;
    }
    bool good = is_good(properties) && which <= hipMemAllocationGranularityRecommended;
    *bytes = FAKE_GRANULARITY;
    return fake_end(good ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t bytes, const hipMemAllocationProp *properties,
                        unsigned long long flags)
{
    hipError_t code = enter(__func__);
    if (code) {
        return code;
    }
    if (!is_good(properties) || flags) {
        fake_report_violation("%s: properties that are none", __func__);
        return fake_end(hipErrorInvalidValue);
    }
    return fake_end(fake_physical_new(__func__, bytes, properties->location.id, properties->requestedHandleType != 0, handle));
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
    hipError_t code = enter(__func__);
    return code ? code : fake_end(fake_physical_release(__func__, (uintptr_t)handle));
}

/* An address may be wished for; the real one may pass over that too. It does pass over the alignment, once it has found that it is
 * a power of two (hip_vm.cpp: Device::virtualAlloc hands none on). */
hipError_t hipMemAddressReserve(void **out_address, size_t bytes, size_t alignment, void *wanted, unsigned long long flags)
{
    hipError_t code = enter(__func__);
    if (code) {
        return code;
    }
    (void)wanted;
    uintptr_t address = 0;
    code = flags || (alignment & (alignment - 1)) ? hipErrorInvalidValue : fake_range_reserve(__func__, bytes, 0, &address);
    *out_address = (void *)address;
    return fake_end(code);
}

hipError_t hipMemAddressFree(void *address, size_t bytes)
{
    hipError_t code = enter(__func__);
    return code ? code : fake_end(fake_range_free(__func__, (uintptr_t)address, bytes));
}

/* Before HIP 7 the failure of the command that maps is not looked at (hip_vm.cpp, hipMemMap). */
hipError_t hipMemMap(void *address, size_t bytes, size_t offset, hipMemGenericAllocationHandle_t handle, unsigned long long flags)
{
    hipError_t code = enter(__func__);
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

/* Where nothing is mapped, HIP 6.1 to 6.3 read a null pointer (hip_vm.cpp, hipMemUnmap); fake_range_unmap() says so of all. */
hipError_t hipMemUnmap(void *address, size_t bytes)
{
    hipError_t code = enter(__func__);
    return code ? code : fake_end(fake_range_unmap(__func__, (uintptr_t)address, bytes));
}

/* Before HIP 7 this is where a failed mapping shows. */
hipError_t hipMemSetAccess(void *address, size_t bytes, const hipMemAccessDesc *access, size_t count)
{
    hipError_t code = enter(__func__);
    if (code) {
        return code;
    }
    if (fake_hip_major() < 7 && !is_mapped(address)) {
        return fake_end(hipErrorInvalidValue);
    }
    for (size_t i = 0; !code && i < count; i++) {
        code = access[i].location.type != hipMemLocationTypeDevice
                   ? hipErrorInvalidValue
                   : fake_range_access(__func__, (uintptr_t)address, bytes, access[i].location.id, access[i].flags != 0);
    }
    return fake_end(code);
}

hipError_t hipMemExportToShareableHandle(void *out_handle, hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type, unsigned long long flags)
{
    hipError_t code = enter(__func__);
    if (code) {
        return code;
    }
    bool good = type == hipMemHandleTypePosixFileDescriptor && !flags;
    return fake_end(good ? fake_physical_export((uintptr_t)handle, out_handle) : hipErrorInvalidValue);
}

hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *os_handle,
                                           hipMemAllocationHandleType type)
{
    hipError_t code = enter(__func__);
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
        return fake_end(hipErrorInvalidValue); /* by value too, though 0 is a descriptor */
    }
    const int fd = by_value ? (int)(intptr_t)os_handle : *(const int *)os_handle;
    return fake_end(good ? fake_physical_import(fd, handle) : hipErrorInvalidValue);
}

/* External memory is older than the rest. */
hipError_t hipImportExternalMemory(hipExternalMemory_t *memory, const hipExternalMemoryHandleDesc *handle)
{
    fake_context *context;
    fake_import *import = NULL;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    bool good = handle->type == hipExternalMemoryHandleTypeOpaqueFd && !handle->flags;
    const int duplicate = dup(handle->handle.fd); /* the engine's; the runtime leaves the caller's alone */
    code = good ? fake_import_new(duplicate, handle->size, &import) : hipErrorInvalidValue;
    if (code && duplicate >= 0) {
        close(duplicate);
    }
    *memory = import;
    return fake_end(code);
}

hipError_t hipDestroyExternalMemory(hipExternalMemory_t memory)
{
    hipError_t code = fake_enter(__func__);
    return code ? code : fake_end(fake_import_free(__func__, memory));
}

hipError_t hipExternalMemoryGetMappedBuffer(void **out_address, hipExternalMemory_t memory,
                                            const hipExternalMemoryBufferDesc *buffer)
{
    fake_context *context;
    uintptr_t address = 0;
    hipError_t code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = buffer->flags ? hipErrorInvalidValue : fake_import_map(context, memory, buffer->offset, buffer->size, &address);
    *out_address = (void *)address;
    return fake_end(code);
}
