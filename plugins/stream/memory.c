/* stream/memory.c: allocates and releases memory, imports host memory, wraps the caller's device memory.
 *
 * Addressing is unified. Page-locked memory has the same address on host and device, and the driver derives the kind of
 * memory from its address. UPLOAD memory is not write-combined. On some systems write-combining makes writes slightly
 * faster. However, it makes reads, such as a copy on the host, slower by two orders of magnitude. UPLOAD memory is
 * coherent: devices do not cache it, so kernels see the host's writes.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <stdlib.h>

#define ALLOCATION_ALIGNMENT 256u /* documented as sufficient for every kind of variable */
#define HOST_ALIGNMENT       64u  /* plugin.h requires this alignment for every host address */

/* Returns the number of bytes to request so that an aligned block fits. The sum cannot overflow, because size and
 * alignment are at most the size of the device's memory. The driver itself aligns to @p own, so only the excess over @p
 * own has to be added. */
static uint64_t with_slack(const gpuhal_alloc *alloc, uint64_t own)
{
    return alloc->bytes + (alloc->alignment > own ? alloc->alignment - own : 0);
}

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return alignment > 1 ? (value + alignment - 1) & ~(alignment - 1) : value;
}

/* cuMemAlloc and hipMalloc commit memory immediately. */
static gpuhal_status allocate_plain(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    const uint64_t bytes = with_slack(alloc, ALLOCATION_ALIGNMENT);
    const vendor_code code = GPUHAL_VENDOR_ALLOCATE(&block->plain, (size_t)bytes);
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(allocation_failed)(device, GPUHAL_VENDOR_ALLOCATE_CALL, code, bytes);
    }
    block->kind = GPUHAL_BLOCK_PLAIN;
    out_memory->address = align_up(GPUHAL_VENDOR_NUMBER(block->plain), alloc->alignment);
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    return GPUHAL_OK;
}

/* The driver takes pages at the first access. Its address is valid on the host, too. */
static gpuhal_status allocate_managed(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                      gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    const uint64_t bytes = with_slack(alloc, ALLOCATION_ALIGNMENT);
    const vendor_code code =
        GPUHAL_VENDOR_ALLOCATE_MANAGED(&block->plain, (size_t)bytes, GPUHAL_VENDOR_MANAGED_FOR_ALL);
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(allocation_failed)(device, GPUHAL_VENDOR_ALLOCATE_MANAGED_CALL, code, bytes);
    }
    block->kind = GPUHAL_BLOCK_PLAIN;
    out_memory->address = align_up(GPUHAL_VENDOR_NUMBER(block->plain), alloc->alignment);
    out_memory->host = (void *)(uintptr_t)out_memory->address;
    out_memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_DEVICE_LOCAL;
    return GPUHAL_OK;
}

/* Called inside the context. Sets memory->address to the device's address of the host memory. Asks the driver only for
 * the starts of blocks and pieces. Fails unless every piece of the registration has the same offset on the device as on
 * the host. */
static vendor_code show(gpuhal_memory *memory)
{
    const gpuhal_stream_block *block = memory->object;
    const gpuhal_stream_registration *own = block->registration;
    uint64_t base = 0;
    vendor_code code = GPUHAL_OWN(show_host)(block->host, &base);
    memory->address = base + ((uintptr_t)memory->host - (uintptr_t)block->host);
    for (uint64_t done = 0; own && own->in_pieces && code == GPUHAL_VENDOR_OK && done < own->bytes;) {
        void *const at = (void *)(own->start + (uintptr_t)done);
        uint64_t address = 0;
        code = GPUHAL_OWN(show_host)(at, &address);
        code = code == GPUHAL_VENDOR_OK && address - base != done ? GPUHAL_VENDOR_NOT_SUPPORTED : code;
        done += gpuhal_stream_piece(at, own->bytes - done);
    }
    return code;
}

/* Allocates @p bytes of host memory. *out_start is the start of an aligned block of alloc->bytes within this memory. If
 * an aligned block does not fit, frees the memory and returns false. If the allocation fails, returns true with its
 * code. */
static bool take_host(const gpuhal_alloc *alloc, uint64_t alignment, uint64_t bytes, gpuhal_stream_block *block,
                      char **out_start, vendor_code *out_code)
{
    *out_code = GPUHAL_VENDOR_ALLOCATE_HOST(&block->host, (size_t)bytes, GPUHAL_VENDOR_ALLOCATE_HOST_FLAGS);
    if (*out_code != GPUHAL_VENDOR_OK) {
        return true;
    }
    const uint64_t lead = align_up((uintptr_t)block->host, alignment) - (uintptr_t)block->host;
    *out_start = (char *)block->host + lead;
    if (lead + alloc->bytes > bytes) {
        GPUHAL_OWN(ignore)(GPUHAL_VENDOR_FREE_HOST(block->host));
        return false;
    }
    return true;
}

/* Portable memory is page-locked for every device of the process, so copies to and from all devices are fast. The
 * vendors' own drivers return whole pages. Other runtimes (HIP-CPU) may not, so a larger block is requested if
 * needed. */
static gpuhal_status allocate_host(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    const uint64_t alignment = alloc->alignment > HOST_ALIGNMENT ? alloc->alignment : HOST_ALIGNMENT;
    char *start = NULL;
    vendor_code code;
    if (!take_host(alloc, alignment, with_slack(alloc, GPUHAL_HOST_PAGE), block, &start, &code)) {
        (void)take_host(alloc, alignment, alloc->bytes + alignment, block, &start, &code);
    }
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(lock_failed)(device, GPUHAL_VENDOR_ALLOCATE_HOST_CALL, code, false);
    }
    block->kind = GPUHAL_BLOCK_HOST;
    out_memory->host = start;
    out_memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED;
    code = show(out_memory);
    if (code != GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(ignore)(GPUHAL_VENDOR_FREE_HOST(block->host));
        return GPUHAL_OWN(result)(device, GPUHAL_VENDOR_HOST_ADDRESS_CALL, code);
    }
    return GPUHAL_OK;
}

static gpuhal_status import_host(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_stream_block *block = out_memory->object;
    char *start = alloc->handle.as.pointer;
    if (!start || ((uintptr_t)start + alloc->import_offset) % GPUHAL_HOST_PAGE != 0 ||
        alloc->bytes % GPUHAL_HOST_PAGE != 0) {
        return device->host->report(
            device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
            "address and size of host memory must be multiples of import_alignment_bytes, which is 4096");
    }
    start += alloc->import_offset;
    const bool read_only = alloc->flags & GPUHAL_IMPORT_READ_ONLY;
    const unsigned int flags[] = {read_only ? GPUHAL_OWN(read_only_flags)(device) : 0, 0};
    const char *call;
    vendor_code code = GPUHAL_OWN(lock_pages)(device, start, alloc->bytes, flags, &block->registration, &call);
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(lock_failed)(device, call, code, read_only);
    }
    block->kind = GPUHAL_BLOCK_REGISTERED;
    /* Use the start of the whole registration, because CUDA documents device addresses only for the start (address.c).
     * An earlier import may have made the registration. */
    block->host = (void *)block->registration->start;
    out_memory->host = start;
    out_memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED;
    code = show(out_memory);
    if (code != GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(ignore)(GPUHAL_OWN(unlock_pages)(device, block->registration));
        return GPUHAL_OWN(result)(device, GPUHAL_VENDOR_HOST_ADDRESS_CALL, code);
    }
    return GPUHAL_OK;
}

/* ---- the slots */

static bool offers(const gpuhal_stream_entry *entry, const gpuhal_alloc *alloc)
{
    const uint32_t exports = entry->exports_fd ? 1u << GPUHAL_HANDLE_OPAQUE_FD : 0;
    const bool import_known = alloc->handle.kind == 0 ||
                              (alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER && entry->registers_host) ||
                              (alloc->handle.kind == GPUHAL_HANDLE_OPAQUE_FD && entry->exports_fd);
    const bool kind_known = alloc->kind == GPUHAL_MEMORY_DEVICE ||
                            (alloc->kind <= GPUHAL_MEMORY_READBACK && entry->maps_host) ||
                            (alloc->kind == GPUHAL_MEMORY_MIGRATING && entry->has_managed && alloc->handle.kind == 0);
    const bool shared =
        alloc->export_kinds != 0 || alloc->peer_count != 0 || alloc->handle.kind == GPUHAL_HANDLE_OPAQUE_FD;
    return kind_known && import_known && (alloc->flags & ~(uint32_t)GPUHAL_IMPORT_READ_ONLY) == 0 &&
           (alloc->export_kinds & ~exports) == 0 && (alloc->peer_count == 0 || entry->has_ranges) &&
           (!shared || alloc->kind == GPUHAL_MEMORY_DEVICE);
}

/* Called inside the context. Memory that is exported or accessible to peers must be created as physical memory and
 * mapped (share.c).
 */
static gpuhal_status take(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    if (alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER) {
        return import_host(device, alloc, out_memory);
    }
    if (alloc->handle.kind != 0) {
        return GPUHAL_OWN(import)(device, alloc, out_memory);
    }
    if (alloc->export_kinds != 0 || alloc->peer_count != 0) {
        return GPUHAL_OWN(allocate_shared)(device, alloc, out_memory);
    }
    return alloc->kind == GPUHAL_MEMORY_DEVICE      ? allocate_plain(device, alloc, out_memory)
           : alloc->kind == GPUHAL_MEMORY_MIGRATING ? allocate_managed(device, alloc, out_memory)
                                                    : allocate_host(device, alloc, out_memory);
}

static gpuhal_status allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    if (!offers(device->entry, alloc)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (alloc->bytes == 0 || (alloc->alignment & (alloc->alignment - 1)) != 0) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    /* with_slack() relies on this check. Imports have other limits: share.c checks a descriptor's size, and imported
     * host memory may be larger than the device's memory. */
    if (alloc->handle.kind == 0 && (alloc->bytes > device->entry->total || alloc->alignment > device->entry->total)) {
        return host->report(host, GPUHAL_ERROR_TOO_LARGE, NULL, 0, "more than the device's total memory");
    }
    gpuhal_stream_block *block = calloc(1, sizeof *block);
    if (!block) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    out_memory->object = block;
    out_memory->bytes = alloc->bytes;
    gpuhal_stream_scope scope;
    gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status == GPUHAL_OK) {
        status = take(device, alloc, out_memory);
        GPUHAL_OWN(leave)(&scope);
    }
    if (status != GPUHAL_OK) { /* the failed step has freed its resources; the core calls release() only after
                                * success */
        *out_memory = (gpuhal_memory){.size = out_memory->size};
        free(block);
    }
    return status;
}

/* Also runs in a lost context. Objects that the driver refuses to free are destroyed with the context, but host memory
 * must be released here. */
static void release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    gpuhal_stream_block *block = memory->object;
    gpuhal_stream_scope scope;
    if (block->kind == GPUHAL_BLOCK_REGISTERED) {
        GPUHAL_OWN(ignore)(GPUHAL_OWN(unlock_pages)(device, block->registration));
    } else if (block->kind != GPUHAL_BLOCK_WRAPPED &&
               GPUHAL_OWN(enter_to_release)(device, &scope) == GPUHAL_VENDOR_OK) {
        switch (block->kind) {
        case GPUHAL_BLOCK_PLAIN:
            GPUHAL_OWN(ignore)(GPUHAL_VENDOR_FREE(block->plain));
            break;
        case GPUHAL_BLOCK_HOST:
            GPUHAL_OWN(ignore)(GPUHAL_VENDOR_FREE_HOST(block->host));
            break;
        case GPUHAL_BLOCK_MAPPED:
        case GPUHAL_BLOCK_EXTERNAL:
            GPUHAL_OWN(release_shared)(block);
            break;
        case GPUHAL_BLOCK_REGISTERED:
        case GPUHAL_BLOCK_WRAPPED:
            break;
        }
        GPUHAL_OWN(leave)(&scope);
    }
    free(block);
}

/* ---- the vendor's objects */

gpuhal_status GPUHAL_OWN(wrap_memory)(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                      gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    if (native->type != GPUHAL_VENDOR_NATIVE(MEMORY) || native->values[0] == 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "the " GPUHAL_VENDOR_PLUGIN " plugin wraps a " GPUHAL_VENDOR_MEMORY_TYPE);
    }
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *fault = GPUHAL_OWN(pointer_fault)(device, native->values[0], bytes);
    GPUHAL_OWN(leave)(&scope);
    if (fault) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_VENDOR_CALL(PointerGetAttribute), 0, fault);
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

gpuhal_status GPUHAL_OWN(native_memory)(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                        gpuhal_native *out_native)
{
    (void)device;
    out_native->type = GPUHAL_VENDOR_NATIVE(MEMORY);
    out_native->values[0] = memory->address;
    return GPUHAL_OK;
}

void GPUHAL_OWN(describe_memory)(gpuhal_ops *ops)
{
    ops->allocate = allocate;
    ops->release = release;
}
