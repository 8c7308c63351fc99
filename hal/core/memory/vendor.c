/* memory/vendor.c: the calls to plugins for memory: allocation, validation of results, coherence and release. */
#include "memory/buffer.h"

#include "base/error.h"
#include <gpuhal/telemetry.h>

#include <inttypes.h>

#define HOST_ALIGNMENT 64u /* promised by gpuhal/buffer.h for host addresses; fits cache lines and vectors */

/* Uses any source that reports free memory, because not all vendor plugins report it. */
uint64_t gpuhal_memory_free_bytes(gpuhal_device *device)
{
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    const bool known = gpuhal_device_sample(device, 0, &value, 1, NULL) == GPUHAL_OK && value.missing == 0;
    gpuhal_error_restore(&before);
    return known ? value.u64 : UINT64_MAX;
}

/* On OUT_OF_MEMORY adds free and total bytes to the detail; on TOO_LARGE only total bytes. */
static gpuhal_status allocation_failed(gpuhal_device *device, gpuhal_status status, const char *action, uint64_t bytes)
{
    uint64_t total = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    status = gpuhal_device_failed(device, status, "%s %" PRIu64 " bytes", action, bytes);
    uint64_t free_bytes = status == GPUHAL_ERROR_OUT_OF_MEMORY ? gpuhal_memory_free_bytes(device) : UINT64_MAX;
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY || status == GPUHAL_ERROR_TOO_LARGE) {
        gpuhal_error_add_bytes(bytes, free_bytes, total);
        gpuhal_error_add_driver_free(free_bytes);
    }
    return status;
}

/* If the driver hangs, the plugin is not called, because the driver may still be using the memory. For a device that
 * was lost in another way the plugin is called. */
void gpuhal_memory_release(gpuhal_device *device, gpuhal_memory *memory)
{
    if (gpuhal_device_is_reachable(device)) {
        const gpuhal_call call = gpuhal_call_blocking(device, memory->bytes);
        device->ops.release(device->handle, memory);
        gpuhal_call_end(call);
    }
}

/* Immediately releases memory that violates plugin.h, because its use could corrupt other bytes. */
static gpuhal_status unkept_promise(gpuhal_device *device, gpuhal_memory *memory, const char *promise)
{
    gpuhal_memory_release(device, memory);
    gpuhal_error_report(GPUHAL_ERROR_DRIVER, "allocate", 0, promise);
    return gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER, "allocating");
}

static gpuhal_status allocate(gpuhal_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_call call = gpuhal_call_blocking(device, alloc->bytes);
    return gpuhal_device_result(device, call, device->ops.allocate(device->handle, alloc, out_memory));
}

/* Imports with a copy of the descriptor. If the plugin accepts the copy, the plugin closes it, even if the core refuses
 * the memory afterwards. */
static gpuhal_status import_copy(gpuhal_device *device, gpuhal_alloc alloc, gpuhal_memory *out_memory)
{
    alloc.handle.as.os = gpuhal_os_descriptor_copy(alloc.handle.as.os);
    if (alloc.handle.as.os < 0) {
        return gpuhal_error_report(GPUHAL_ERROR_DRIVER, NULL, 0, "no further descriptor is available");
    }
    gpuhal_status status = allocate(device, &alloc, out_memory);
    if (status) {
        gpuhal_os_descriptor_close(alloc.handle.as.os);
    }
    return status;
}

gpuhal_status gpuhal_memory_allocate(gpuhal_device *device, const gpuhal_alloc *alloc, uint64_t bytes,
                                     gpuhal_memory *out_memory)
{
    *out_memory = (gpuhal_memory){.size = sizeof *out_memory};
    gpuhal_status status = gpuhal_is_descriptor_kind(alloc->handle.kind) ? import_copy(device, *alloc, out_memory)
                                                                         : allocate(device, alloc, out_memory);
    if (status) {
        return allocation_failed(device, status, alloc->handle.kind ? "importing" : "allocating", bytes);
    }
    if (out_memory->bytes < alloc->bytes) {
        return unkept_promise(device, out_memory, "the plugin returned less memory than requested");
    }
    bool of_host = alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER;
    if (of_host && out_memory->host != alloc->handle.as.pointer) {
        return unkept_promise(device, out_memory, "the plugin imported host memory and returned another host address");
    }
    /* For imported memory, another allocation determined the address. */
    const uint64_t mask = alloc->handle.kind == 0 && alloc->alignment > 1 ? alloc->alignment - 1 : 0;
    if ((out_memory->address | (uintptr_t)out_memory->host) & mask) {
        return unkept_promise(device, out_memory, "the plugin returned memory that is not aligned as requested");
    }
    if (!alloc->handle.kind && (uintptr_t)out_memory->host % HOST_ALIGNMENT != 0) {
        return unkept_promise(device, out_memory, "the plugin returned a host address that is not a multiple of 64");
    }
    if (alloc->kind != GPUHAL_MEMORY_DEVICE && alloc->kind < GPUHAL_VENDOR_KIND_FIRST && !out_memory->host) {
        return unkept_promise(device, out_memory, "the plugin returned memory of this kind without a host address");
    }
    if (alloc->kind == GPUHAL_MEMORY_MIGRATING &&
        (out_memory->address != (uintptr_t)out_memory->host || !(out_memory->flags & GPUHAL_MEMORY_HOST_COHERENT))) {
        return unkept_promise(device, out_memory,
                              "the plugin returned migrating memory that is not coherent, or that has another address "
                              "on the host");
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_memory_check_shareable(gpuhal_device *device, uint32_t export_kinds, gpuhal_memory *memory)
{
    const bool by_address = export_kinds >> GPUHAL_HANDLE_HOST_POINTER & 1;
    return !by_address || memory->host
               ? GPUHAL_OK
               : unkept_promise(device, memory,
                                "the plugin returned memory without the host address that sharing needs");
}

gpuhal_status gpuhal_memory_clean(gpuhal_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes,
                                  bool invalidate)
{
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    return gpuhal_device_result(device, call,
                                invalidate ? device->ops.memory_invalidate(device->handle, memory, offset, bytes)
                                           : device->ops.memory_flush(device->handle, memory, offset, bytes));
}

/* ---- virtual memory */

/* Returns 0 if the plugin returns no power of two. */
static uint64_t granularity(gpuhal_device *device, uint64_t range_bytes)
{
    uint64_t bytes = 0;
    const gpuhal_call call = gpuhal_call_blocking(device, 0);
    const gpuhal_status status =
        gpuhal_device_result(device, call, device->ranges.range_granularity(device->handle, range_bytes, &bytes));
    return status || (bytes & (bytes - 1)) ? 0 : bytes;
}

/* Rounding up may lead to a size with a larger granularity. */
uint64_t gpuhal_memory_page_bytes(gpuhal_device *device, uint64_t *range_bytes)
{
    gpuhal_error_detail before;
    if (!device->ranges.range_granularity || *range_bytes > UINT64_MAX / 2) {
        return 0;
    }
    gpuhal_error_save(&before);
    uint64_t page = granularity(device, *range_bytes), earlier = 0;
    while (page > earlier && page <= UINT64_MAX / 4) {
        *range_bytes = (*range_bytes + page - 1) & ~(page - 1);
        earlier = page;
        page = granularity(device, *range_bytes);
    }
    gpuhal_error_restore(&before);
    return page == earlier ? page : 0;
}

static void release_range(gpuhal_device *device, gpuhal_plugin_range *range, uint64_t bytes)
{
    if (gpuhal_device_is_reachable(device)) {
        const gpuhal_call call = gpuhal_call_blocking(device, bytes);
        device->ranges.range_release(range);
        gpuhal_call_end(call);
    }
}

/* Refuses memory with a host address: the application would receive this address, but could not know which addresses
 * have memory. */
gpuhal_status gpuhal_memory_reserve(gpuhal_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                    gpuhal_plugin_range **out_range)
{
    *out_memory = (gpuhal_memory){.size = sizeof *out_memory};
    *out_range = NULL;
    const uint64_t wanted = bytes, page = gpuhal_memory_page_bytes(device, &bytes);
    if (page == 0 || bytes != wanted) {
        return gpuhal_device_failed(device, GPUHAL_ERROR_NOT_SUPPORTED, "reserving addresses");
    }
    const gpuhal_call call = gpuhal_call_blocking(device, 0);
    gpuhal_status status = gpuhal_device_result(
        device, call, device->ranges.range_reserve(device->handle, bytes, out_memory, out_range));
    if (status) {
        return gpuhal_device_failed(device, status, "reserving %" PRIu64 " bytes of addresses", bytes);
    }
    if (out_memory->bytes < bytes || (out_memory->address & (page - 1)) || out_memory->host) {
        release_range(device, *out_range, 0);
        gpuhal_error_report(GPUHAL_ERROR_DRIVER, "range_reserve", 0,
                            "the plugin returned too few addresses, unaligned addresses, or a host address");
        status = gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER, "reserving addresses");
    }
    return status;
}

void gpuhal_memory_release_range(gpuhal_buffer *buffer)
{
    release_range(buffer->device, buffer->range, atomic_load(&buffer->charged));
}

gpuhal_status gpuhal_memory_commit(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    gpuhal_device *device = buffer->device;
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    const gpuhal_status status = gpuhal_device_result(
        device, call, device->ranges.range_commit(buffer->range, offset, bytes, NULL, 0));
    return status ? allocation_failed(device, status, "committing", bytes) : GPUHAL_OK;
}

gpuhal_status gpuhal_memory_decommit(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    gpuhal_device *device = buffer->device;
    if (!gpuhal_device_is_reachable(device)) {
        return gpuhal_device_unusable(device);
    }
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    const gpuhal_status status =
        gpuhal_device_result(device, call, device->ranges.range_decommit(buffer->range, offset, bytes));
    return status ? gpuhal_device_failed(device, status, "giving back %" PRIu64 " bytes", bytes) : GPUHAL_OK;
}
