/* cuda/memory.c: allocating, releasing, taking in host memory, wrapping.
 *
 * CUDA's addresses are unified: what cuMemHostAlloc gives has one address for host and device, and a copy knows by an address
 * what it is. UPLOAD memory is not write-combined: that makes writing a little faster on some systems, and reading (by a program
 * that looks at what it wrote, or by a copy on the host) slower by two orders of magnitude.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ALLOCATION_ALIGNMENT 256u /* what the documentation promises for every kind of variable */

gpuhal_status gpuhal_cuda_allocation_failed(gpuhal_plugin_device *device, const char *call, CUresult code, uint64_t bytes)
{
    size_t free_bytes = 0, total = 0;
    const bool out = gpuhal_cuda_status(code) == GPUHAL_ERROR_OUT_OF_MEMORY;
    if (!out || gpuhal_cuda_api.cuMemGetInfo_v2(&free_bytes, &total) != CUDA_SUCCESS) {
        return gpuhal_cuda_result(device, call, code);
    }
    char text[160];
    snprintf(text, sizeof text, "%" PRIu64 " bytes asked, %zu of %zu bytes free, perhaps not in one piece", bytes, free_bytes,
             total);
    return gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_OUT_OF_MEMORY, call, code, text);
}

/* The bytes to ask for so that an aligned piece fits in. Sums cannot overflow: sizes are at most the device's memory, and so are
 * alignments by then. */
static uint64_t with_slack(const gpuhal_alloc *alloc, uint64_t own)
{
    return alloc->bytes + (alloc->alignment > own ? alloc->alignment - own : 0);
}

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return alignment > 1 ? (value + alignment - 1) & ~(alignment - 1) : value;
}

/* cuMemAlloc commits. */
static gpuhal_status allocate_plain(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    const uint64_t bytes = with_slack(alloc, ALLOCATION_ALIGNMENT);
    const CUresult code = gpuhal_cuda_api.cuMemAlloc_v2(&block->plain, (size_t)bytes);
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_allocation_failed(device, "cuMemAlloc", code, bytes);
    }
    block->kind = GPUHAL_BLOCK_PLAIN;
    out_memory->address = align_up(block->plain, alloc->alignment);
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    return GPUHAL_OK;
}

/* Where the device sees host memory: the same address, except on systems without unified addressing. The driver is asked for the
 * beginning of what it gave or registered; of other addresses the documentation does not speak. */
static CUresult show_host(gpuhal_memory *memory)
{
    const gpuhal_stream_block *block = memory->object;
    CUdeviceptr address = 0;
    const CUresult code = gpuhal_cuda_api.cuMemHostGetDevicePointer_v2(&address, block->host, 0);
    memory->address = address + ((uintptr_t)memory->host - (uintptr_t)block->host);
    memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED;
    return code;
}

/* Portable: page-locked for every device of the process, so that any of them copies fast to and from it. */
static gpuhal_status allocate_host(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    const uint64_t bytes = with_slack(alloc, GPUHAL_HOST_PAGE);
    CUresult code =
        gpuhal_cuda_api.cuMemHostAlloc(&block->host, (size_t)bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_lock_failed(device, "cuMemHostAlloc", code);
    }
    block->kind = GPUHAL_BLOCK_HOST;
    const uintptr_t start = (uintptr_t)block->host;
    out_memory->host = (char *)block->host + (align_up(start, alloc->alignment) - start);
    code = show_host(out_memory);
    if (code != CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuMemFreeHost(block->host);
        return gpuhal_cuda_result(device, "cuMemHostGetDevicePointer", code);
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
    CUresult code = gpuhal_cuda_lock_pages(device, start, alloc->bytes,
                                           alloc->flags & GPUHAL_IMPORT_READ_ONLY ? CU_MEMHOSTREGISTER_READ_ONLY : 0, &block->registration);
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_lock_failed(device, "cuMemHostRegister", code);
    }
    block->kind = GPUHAL_BLOCK_REGISTERED;
    block->host = (void *)block->registration->start;
    out_memory->host = start;
    code = show_host(out_memory);
    if (code != CUDA_SUCCESS) {
        (void)gpuhal_cuda_unlock_pages(device, block->registration);
        return gpuhal_cuda_result(device, "cuMemHostGetDevicePointer", code);
    }
    return GPUHAL_OK;
}

/* ---- the slots */

static bool offers(const gpuhal_cuda_entry *entry, const gpuhal_alloc *alloc)
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
        return gpuhal_cuda_import(device, alloc, out_memory);
    }
    if (alloc->export_kinds != 0 || alloc->peer_count != 0) {
        return gpuhal_cuda_allocate_shared(device, alloc, out_memory);
    }
    return alloc->kind == GPUHAL_MEMORY_DEVICE ? allocate_plain(device, alloc, out_memory)
                                               : allocate_host(device, alloc, out_memory);
}

static gpuhal_status cuda_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
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
    gpuhal_cuda_visit visit;
    const CUresult code = gpuhal_cuda_enter(device, &visit);
    gpuhal_status status = gpuhal_cuda_result(device, "cuCtxPushCurrent", code);
    if (status == GPUHAL_OK) {
        status = take(device, alloc, out_memory);
        gpuhal_cuda_leave(&visit);
    }
    if (status != GPUHAL_OK) {
        *out_memory = (gpuhal_memory){.size = out_memory->size};
        free(block);
    }
    return status;
}

/* Also in a lost context: what the driver refuses then goes with the context, but host memory has to be let go of. */
static void cuda_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    gpuhal_stream_block *block = memory->object;
    gpuhal_cuda_visit visit;
    if (block->kind == GPUHAL_BLOCK_REGISTERED) {
        (void)gpuhal_cuda_unlock_pages(device, block->registration);
    } else if (block->kind != GPUHAL_BLOCK_WRAPPED && gpuhal_cuda_enter_anyway(device, &visit) == CUDA_SUCCESS) {
        switch (block->kind) {
        case GPUHAL_BLOCK_PLAIN:
            (void)gpuhal_cuda_api.cuMemFree_v2(block->plain);
            break;
        case GPUHAL_BLOCK_HOST:
            (void)gpuhal_cuda_api.cuMemFreeHost(block->host);
            break;
        case GPUHAL_BLOCK_MAPPED:
        case GPUHAL_BLOCK_EXTERNAL:
            gpuhal_cuda_release_shared(block);
            break;
        case GPUHAL_BLOCK_REGISTERED:
        case GPUHAL_BLOCK_WRAPPED:
            break;
        }
        gpuhal_cuda_leave(&visit);
    }
    free(block);
}

/* ---- the vendor's objects */

/* Inside the context. NULL when this device's memory lies at the address, and so much of it in one piece. */
static const char *piece_fault(const gpuhal_plugin_device *device, CUdeviceptr address, uint64_t *out_bytes,
                               CUdeviceptr *out_range)
{
    CUmemorytype type = 0;
    int ordinal = -1;
    CUdeviceptr base = 0;
    size_t size = 0;
    const gpuhal_cuda_functions *api = &gpuhal_cuda_api;
    if (api->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE) {
        return "values[0] is no address of device memory";
    }
    if (api->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS ||
        ordinal != (int)device->entry->ordinal) {
        return "the memory is that of another device";
    }
    if (api->cuMemGetAddressRange_v2(&base, &size, address) != CUDA_SUCCESS || address - base >= size) {
        return "the driver does not say how long the allocation is";
    }
    *out_bytes = size - (address - base);
    *out_range = base;
    (void)api->cuPointerGetAttribute(out_range, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    return NULL;
}

/* Inside the context. NULL when the address is one of @p bytes bytes of this device's memory. The driver tells one piece of
 * physical memory at a time, and allocators that grow in place map many in a row. The next allocation, which may begin where this
 * one ends, is of another range. */
static const char *pointer_fault(const gpuhal_plugin_device *device, CUdeviceptr address, uint64_t bytes)
{
    uint64_t piece = 0;
    CUdeviceptr first = 0, range = 0;
    const char *fault = piece_fault(device, address, &piece, &first);
    for (uint64_t covered = piece; !fault && covered < bytes; covered += piece) {
        const bool same = !piece_fault(device, address + covered, &piece, &range) && range == first;
        fault = same ? NULL : "the allocation ends before so many bytes";
    }
    return fault;
}

static gpuhal_status cuda_wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                      gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    if (native->type != GPUHAL_NATIVE_CUDA_MEMORY || native->values[0] == 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "the cuda plugin wraps a GPUHAL_NATIVE_CUDA_MEMORY");
    }
    gpuhal_cuda_visit visit;
    gpuhal_status status = gpuhal_cuda_result(device, "cuCtxPushCurrent", gpuhal_cuda_enter(device, &visit));
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *fault = pointer_fault(device, native->values[0], bytes);
    gpuhal_cuda_leave(&visit);
    if (fault) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, "cuPointerGetAttribute", 0, fault);
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

static gpuhal_status cuda_native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_native *out_native)
{
    (void)device;
    out_native->type = GPUHAL_NATIVE_CUDA_MEMORY;
    out_native->values[0] = memory->address;
    return GPUHAL_OK;
}

void gpuhal_cuda_describe_memory(gpuhal_ops *ops)
{
    ops->allocate = cuda_allocate;
    ops->release = cuda_release;
    ops->wrap_memory = cuda_wrap_memory;
    ops->native_memory = cuda_native_memory;
}
