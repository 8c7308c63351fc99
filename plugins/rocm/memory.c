/* rocm/memory.c: allocating, releasing, taking in host memory, wrapping.
 *
 * HIP's addresses are unified: what hipHostMalloc gives has one address for host and device. Page-locked memory is coherent, as
 * HIP makes it by itself: the device does not keep it in its caches, so what the host wrote is what a kernel reads.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ALLOCATION_ALIGNMENT 256u /* what the documentation promises for every kind of variable */

gpuhal_status gpuhal_rocm_allocation_failed(gpuhal_plugin_device *device, const char *call, hipError_t code, uint64_t bytes)
{
    size_t free_bytes = 0, total = 0;
    const bool out = gpuhal_rocm_status(code) == GPUHAL_ERROR_OUT_OF_MEMORY;
    if (!out || gpuhal_rocm_api.hipMemGetInfo(&free_bytes, &total) != hipSuccess) {
        return gpuhal_rocm_result(device, call, code);
    }
    char text[160];
    snprintf(text, sizeof text, "%" PRIu64 " bytes asked, %zu of %zu bytes free, perhaps not in one piece", bytes, free_bytes,
             total);
    return gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_OUT_OF_MEMORY, call, code, text);
}

/* The bytes to ask for so that an aligned piece fits in. Sums cannot overflow: sizes are at most the device's memory, and so are
 * alignments by then. */
static uint64_t with_slack(const gpuhal_alloc *alloc, uint64_t own)
{
    return alloc->bytes + (alloc->alignment > own ? alloc->alignment - own : 0);
}

bool gpuhal_rocm_is_known(uint64_t address, uint64_t *out_bytes)
{
    void *base = NULL;
    size_t size = 0;
    const hipError_t code = gpuhal_rocm_api.hipMemGetAddressRange(&base, &size, gpuhal_rocm_at(address));
    const uint64_t before = address - (uintptr_t)base;
    gpuhal_rocm_ignore(code);
    *out_bytes = code == hipSuccess && before < size ? size - before : 0;
    return code == hipSuccess;
}

/* hipMalloc commits. */
static gpuhal_status allocate_plain(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    const uint64_t bytes = with_slack(alloc, ALLOCATION_ALIGNMENT);
    const hipError_t code = gpuhal_rocm_api.hipMalloc(&block->plain, (size_t)bytes);
    if (code != hipSuccess) {
        return gpuhal_rocm_allocation_failed(device, "hipMalloc", code, bytes);
    }
    block->kind = GPUHAL_BLOCK_PLAIN;
    out_memory->address = gpuhal_rocm_align_up((uintptr_t)block->plain, alloc->alignment);
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    return GPUHAL_OK;
}

/* Where the device sees host memory: the same address, except on systems without unified addressing. */
static hipError_t show_host(gpuhal_memory *memory)
{
    void *address = NULL;
    const hipError_t code = gpuhal_rocm_api.hipHostGetDevicePointer(&address, memory->host, 0);
    memory->address = (uintptr_t)address;
    memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED;
    return code;
}

/* Portable: page-locked for every device of the process, so that any of them copies fast to and from it. */
static gpuhal_status allocate_host(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    const uint64_t bytes = with_slack(alloc, GPUHAL_HOST_PAGE);
    hipError_t code = gpuhal_rocm_api.hipHostMalloc(&block->host, (size_t)bytes, hipHostMallocPortable | hipHostMallocMapped);
    if (code != hipSuccess) {
        return gpuhal_rocm_lock_failed(device, "hipHostMalloc", code);
    }
    block->kind = GPUHAL_BLOCK_HOST;
    const uintptr_t start = (uintptr_t)block->host;
    out_memory->host = (char *)block->host + (gpuhal_rocm_align_up(start, alloc->alignment) - start);
    code = show_host(out_memory);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipHostFree(block->host));
        return gpuhal_rocm_result(device, "hipHostGetDevicePointer", code);
    }
    return GPUHAL_OK;
}

static gpuhal_status import_host(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    char *start = alloc->import.as.pointer;
    if (!start || ((uintptr_t)start + alloc->import_offset) % GPUHAL_HOST_PAGE != 0 || alloc->bytes % GPUHAL_HOST_PAGE != 0) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "address and size of host memory must be multiples of import_alignment_bytes, which is 4096");
    }
    start += alloc->import_offset;
    /* 8 is two flags in hip_runtime_api.h: hipHostRegisterReadOnly, which AMD ignores, and coarse-grained memory, which does no harm to
     * memory that is only read. */
    const unsigned int flags = alloc->flags & GPUHAL_IMPORT_READ_ONLY ? hipExtHostRegisterCoarseGrained : 0;
    hipError_t code = gpuhal_rocm_lock_pages(device, start, alloc->bytes, flags, &block->registration);
    if (code != hipSuccess) {
        return gpuhal_rocm_lock_failed(device, "hipHostRegister", code);
    }
    block->kind = GPUHAL_BLOCK_REGISTERED;
    out_memory->host = start;
    code = show_host(out_memory);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_unlock_pages(device, block->registration));
        return gpuhal_rocm_result(device, "hipHostGetDevicePointer", code);
    }
    return GPUHAL_OK;
}

/* ---- the slots */

static bool offers(const gpuhal_rocm_entry *entry, const gpuhal_alloc *alloc)
{
    const uint32_t exports = entry->exports_fd ? 1u << GPUHAL_HANDLE_OPAQUE_FD : 0;
    const bool import_known = alloc->import.kind == 0 ||
                              (alloc->import.kind == GPUHAL_HANDLE_HOST_POINTER && entry->registers_host) ||
                              (alloc->import.kind == GPUHAL_HANDLE_OPAQUE_FD && entry->exports_fd);
    const bool kind_known = alloc->kind == GPUHAL_MEMORY_DEVICE || (alloc->kind <= GPUHAL_MEMORY_READBACK && entry->maps_host);
    const bool shared = alloc->export_kinds != 0 || alloc->peer_count != 0 || alloc->import.kind == GPUHAL_HANDLE_OPAQUE_FD;
    return kind_known && import_known && (alloc->flags & ~(uint32_t)GPUHAL_IMPORT_READ_ONLY) == 0 &&
           (alloc->export_kinds & ~exports) == 0 && (alloc->peer_count == 0 || entry->has_ranges) &&
           (!shared || alloc->kind == GPUHAL_MEMORY_DEVICE);
}

static gpuhal_status take(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    if (alloc->import.kind == GPUHAL_HANDLE_HOST_POINTER) {
        return import_host(device, alloc, out_memory);
    }
    if (alloc->import.kind != 0) {
        return gpuhal_rocm_import(device, alloc, out_memory);
    }
    if (alloc->export_kinds != 0 || alloc->peer_count != 0) {
        return gpuhal_rocm_allocate_shared(device, alloc, out_memory);
    }
    return alloc->kind == GPUHAL_MEMORY_DEVICE ? allocate_plain(device, alloc, out_memory)
                                               : allocate_host(device, alloc, out_memory);
}

static gpuhal_status rocm_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    if (!offers(device->entry, alloc)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (alloc->bytes == 0 || (alloc->alignment & (alloc->alignment - 1)) != 0) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    if (alloc->import.kind == 0 && (alloc->bytes > device->entry->total || alloc->alignment > device->entry->total)) {
        return host->report(host, GPUHAL_ERROR_TOO_LARGE, NULL, 0, "above the memory that the device has in all");
    }
    gpuhal_stream_block *block = calloc(1, sizeof *block);
    if (!block) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    out_memory->object = block;
    out_memory->bytes = alloc->bytes;
    gpuhal_rocm_visit visit;
    const hipError_t code = gpuhal_rocm_enter(device, &visit);
    gpuhal_status status = gpuhal_rocm_result(device, "hipSetDevice", code);
    if (status == GPUHAL_OK) {
        status = take(device, alloc, out_memory);
        gpuhal_rocm_leave(&visit);
    }
    if (status != GPUHAL_OK) {
        *out_memory = (gpuhal_memory){.size = out_memory->size};
        free(block);
    }
    return status;
}

/* Also with a lost device: what HIP refuses then goes with the process, but host memory has to be let go of. */
static void rocm_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    gpuhal_stream_block *block = memory->object;
    gpuhal_rocm_visit visit;
    if (block->kind == GPUHAL_BLOCK_REGISTERED) {
        gpuhal_rocm_ignore(gpuhal_rocm_unlock_pages(device, block->registration));
    } else if (block->kind != GPUHAL_BLOCK_WRAPPED && gpuhal_rocm_enter_anyway(device, &visit) == hipSuccess) {
        switch (block->kind) {
        case GPUHAL_BLOCK_PLAIN:
            gpuhal_rocm_ignore(gpuhal_rocm_api.hipFree(block->plain));
            break;
        case GPUHAL_BLOCK_HOST:
            gpuhal_rocm_ignore(gpuhal_rocm_api.hipHostFree(block->host));
            break;
        case GPUHAL_BLOCK_MAPPED:
        case GPUHAL_BLOCK_EXTERNAL:
            gpuhal_rocm_release_shared(block);
            break;
        case GPUHAL_BLOCK_REGISTERED:
        case GPUHAL_BLOCK_WRAPPED:
            break;
        }
        gpuhal_rocm_leave(&visit);
    }
    free(block);
}

/* ---- the vendor's objects */

/* @p out_value is zero before: HIP writes 8 bits of some and 32 of others. */
static bool attribute(hipPointer_attribute which, uint64_t address, uint32_t *out_value)
{
    const hipError_t code = gpuhal_rocm_api.hipPointerGetAttribute(out_value, which, gpuhal_rocm_at(address));
    gpuhal_rocm_ignore(code);
    return code == hipSuccess;
}

/* With the device current. NULL when memory that this device reaches lies at the address, and so much of it in one piece. Managed
 * memory is the host's by its kind (hip_memory.cpp), and every device's. HIP is asked for the kind of memory that it knows only. */
static const char *piece_fault(const gpuhal_plugin_device *device, uint64_t address, uint64_t *out_bytes)
{
    uint32_t type = 0, managed = 0, ordinal = 0;
    if (!gpuhal_rocm_is_known(address, out_bytes)) {
        return "values[0] is no address of device memory";
    }
    if (attribute(HIP_POINTER_ATTRIBUTE_IS_MANAGED, address, &managed) && managed) {
        return NULL;
    }
    if (!attribute(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, address, &type) || type != gpuhal_rocm_runtime.memory_type_device) {
        return "values[0] is no address of device memory";
    }
    if (!attribute(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, &ordinal) || ordinal != device->entry->ordinal) {
        return "the memory is that of another device";
    }
    return *out_bytes > 0 ? NULL : "HIP does not say how long the allocation is";
}

/* With the device current. NULL when the address is one of @p bytes bytes of this device's memory. HIP tells one piece of
 * physical memory at a time, and allocators that grow in place map many in a row. */
static const char *pointer_fault(const gpuhal_plugin_device *device, uint64_t address, uint64_t bytes)
{
    uint64_t piece = 0;
    const char *fault = piece_fault(device, address, &piece);
    for (uint64_t covered = piece; !fault && covered < bytes; covered += piece) {
        fault = piece_fault(device, address + covered, &piece) ? "the allocation ends before so many bytes" : NULL;
    }
    return fault;
}

static gpuhal_status rocm_wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                      gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    if (native->type != GPUHAL_NATIVE_HIP_MEMORY || native->values[0] == 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "the rocm plugin wraps a GPUHAL_NATIVE_HIP_MEMORY");
    }
    gpuhal_rocm_visit visit;
    gpuhal_status status = gpuhal_rocm_result(device, "hipSetDevice", gpuhal_rocm_enter(device, &visit));
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *fault = pointer_fault(device, native->values[0], bytes);
    gpuhal_rocm_leave(&visit);
    if (fault) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, "hipPointerGetAttribute", 0, fault);
    }
    gpuhal_stream_block *block = calloc(1, sizeof *block);
    if (!block) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    block->kind = GPUHAL_BLOCK_WRAPPED;
    out_memory->object = block;
    out_memory->bytes = bytes;
    out_memory->address = native->values[0];
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    return GPUHAL_OK;
}

static gpuhal_status rocm_native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_native *out_native)
{
    (void)device;
    out_native->type = GPUHAL_NATIVE_HIP_MEMORY;
    out_native->values[0] = memory->address;
    return GPUHAL_OK;
}

void gpuhal_rocm_describe_memory(gpuhal_ops *ops)
{
    ops->allocate = rocm_allocate;
    ops->release = rocm_release;
    ops->wrap_memory = rocm_wrap_memory;
    ops->native_memory = rocm_native_memory;
}
