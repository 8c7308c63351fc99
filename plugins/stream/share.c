/* stream/share.c: memory that is exported as a file descriptor, imported from a descriptor, or accessible to peers.
 *
 * Such memory is physical memory that this file maps, in multiples of the driver's granularity (2 MiB). No other memory
 * can be exported. Descriptors of Vulkan drivers are of another kind and are imported as external memory. A
 * descriptor's kind can only be found by trying.
 */
#include "device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- mappings */

static void unmap(const gpuhal_stream_mapping *mapping)
{
    GPUHAL_OWN(unmap)(mapping->at.address, mapping->at.bytes);
    GPUHAL_OWN(free_addresses)(&mapping->at);
    GPUHAL_OWN(ignore)(GPUHAL_VENDOR(MemRelease)(mapping->handle));
}

/* Called inside the context. Maps @p bytes of mapping->handle at new addresses. On failure, releases the handle and
 * stores the failed call in @p out_call. */
static vendor_code map(const gpuhal_plugin_device *device, const gpuhal_alloc *alloc, uint64_t bytes,
                       gpuhal_stream_mapping *mapping, const char **out_call)
{
    uint64_t granularity = 0;
    *out_call = GPUHAL_VENDOR_CALL(MemGetAllocationGranularity);
    vendor_code code = GPUHAL_OWN(granularity)(device, &granularity);
    if (code == GPUHAL_VENDOR_OK) {
        *out_call = GPUHAL_VENDOR_CALL(MemAddressReserve);
        const uint64_t alignment =
            alloc->alignment > granularity ? alloc->alignment : 0; /* every reservation is aligned to the granularity */
        code = GPUHAL_OWN(reserve)(bytes, alignment, &mapping->at);
    }
    if (code != GPUHAL_VENDOR_OK) {
        goto release_handle;
    }
    code = GPUHAL_OWN(map)(device, mapping->at.address, bytes, mapping->handle, alloc->peers, alloc->peer_count,
                           out_call);
    if (code == GPUHAL_VENDOR_OK) {
        return code;
    }
    GPUHAL_OWN(free_addresses)(&mapping->at);
release_handle:
    GPUHAL_OWN(ignore)(GPUHAL_VENDOR(MemRelease)(mapping->handle));
    return code;
}

static void use(gpuhal_memory *memory, gpuhal_stream_block_kind kind, uint64_t address)
{
    ((gpuhal_stream_block *)memory->object)->kind = kind;
    memory->address = address;
    memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
}

/* Rounds up to a multiple of the granularity. The size has already been checked against the device's memory. */
static vendor_code whole_granules(const gpuhal_plugin_device *device, uint64_t bytes, uint64_t *out_bytes)
{
    uint64_t granularity = 0;
    const vendor_code code = GPUHAL_OWN(granularity)(device, &granularity);
    if (code == GPUHAL_VENDOR_OK) {
        *out_bytes = (bytes + granularity - 1) / granularity * granularity;
    }
    return code;
}

/* Runs before any memory is allocated, so that a pair without access is reported as "not supported" instead of as a
 * failed allocation. */
static gpuhal_status peers_fault(const gpuhal_plugin_device *device, const gpuhal_alloc *alloc)
{
    const int own = device->entry->device;
    for (uint32_t i = 0; i < alloc->peer_count; i++) {
        const int peer = alloc->peers[i]->entry->device;
        int can = peer == own;
        const vendor_code code = can ? GPUHAL_VENDOR_OK : GPUHAL_VENDOR(DeviceCanAccessPeer)(&can, peer, own);
        GPUHAL_OWN(ignore)(code);
        if (code != GPUHAL_VENDOR_OK || !can) {
            return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED,
                                        GPUHAL_VENDOR_CALL(DeviceCanAccessPeer), 0,
                                        "a peer cannot reach memory of this device");
        }
    }
    return GPUHAL_OK;
}

gpuhal_status GPUHAL_OWN(allocate_shared)(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                          gpuhal_memory *out_memory)
{
    gpuhal_stream_mapping *mapping = &((gpuhal_stream_block *)out_memory->object)->mapping;
    gpuhal_status status = peers_fault(device, alloc);
    if (status != GPUHAL_OK) {
        return status;
    }
    uint64_t bytes = 0;
    vendor_code code = whole_granules(device, alloc->bytes, &bytes);
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(result_of_lookup)(device, GPUHAL_VENDOR_CALL(MemGetAllocationGranularity), code);
    }
    const char *call = GPUHAL_VENDOR_CALL(MemCreate);
    code = GPUHAL_OWN(create)(device, bytes, alloc->export_kinds != 0, &mapping->handle);
    if (code == GPUHAL_VENDOR_OK) {
        code = map(device, alloc, bytes, mapping, &call);
    }
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(allocation_failed)(device, call, code, bytes);
    }
    use(out_memory, GPUHAL_BLOCK_MAPPED, mapping->at.address);
    return GPUHAL_OK;
}

/* Returns a number made of the inode and the file system of a descriptor's file; 0 if the descriptor is not open. */
static uint64_t file_of(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 ? status.st_ino ^ (uint64_t)status.st_dev << 32 : 0;
}

/* Closes the descriptor, unless the driver owns it (@p file is 0), or the number now refers to another file. The latter
 * happens if the driver closed the descriptor and another thread reused its number. Reuse for the same file cannot be
 * detected. */
static void close_again(int descriptor, uint64_t file)
{
    if (file != 0 && file_of(descriptor) == file) {
        close(descriptor);
    }
}

void GPUHAL_OWN(release_shared)(gpuhal_stream_block *block)
{
    if (block->kind == GPUHAL_BLOCK_MAPPED) {
        unmap(&block->mapping);
        return;
    }
    GPUHAL_OWN(ignore)
    (GPUHAL_VENDOR_FREE(block->plain)); /* mapped external memory is freed like an allocation */
    GPUHAL_OWN(ignore)(GPUHAL_VENDOR(DestroyExternalMemory)(block->external));
    close_again(block->descriptor, block->file);
}

/* ---- importing */

/* Imported memory has the exporter's size: the requested bytes, rounded up to the granularity. */
static vendor_code import_mapped(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory,
                                 const char **out_call)
{
    gpuhal_stream_mapping *mapping = &((gpuhal_stream_block *)out_memory->object)->mapping;
    uint64_t bytes = 0;
    *out_call = GPUHAL_VENDOR_CALL(MemGetAllocationGranularity);
    vendor_code code = whole_granules(device, alloc->bytes, &bytes);
    if (code == GPUHAL_VENDOR_OK) {
        *out_call = GPUHAL_VENDOR_CALL(MemImportFromShareableHandle);
        code = GPUHAL_OWN(import_handle)((int)alloc->handle.as.os, &mapping->handle);
    }
    if (code == GPUHAL_VENDOR_OK) {
        code = map(device, alloc, bytes, mapping, out_call);
    }
    if (code == GPUHAL_VENDOR_OK) {
        use(out_memory, GPUHAL_BLOCK_MAPPED, mapping->at.address);
    }
    return code;
}

/* Passes a duplicate of the descriptor to the driver. If the driver does not take ownership of the duplicate, it is
 * closed when the memory is released. */
static vendor_code import_external(const gpuhal_alloc *alloc, gpuhal_memory *out_memory, const char **out_call)
{
    gpuhal_stream_block *block = out_memory->object;
    *out_call = GPUHAL_VENDOR_CALL(ImportExternalMemory);
    if (!GPUHAL_VENDOR(ImportExternalMemory) || !GPUHAL_VENDOR(ExternalMemoryGetMappedBuffer) ||
        !GPUHAL_VENDOR(DestroyExternalMemory)) {
        return GPUHAL_VENDOR_NOT_SUPPORTED;
    }
    const int duplicate = fcntl((int)alloc->handle.as.os, F_DUPFD_CLOEXEC, 3);
    if (duplicate < 0) {
        *out_call = "fcntl";
        return GPUHAL_VENDOR_OPERATING_SYSTEM;
    }
    /* Read before the driver gets the descriptor: afterwards the number may refer to any file. */
    const uint64_t file = GPUHAL_VENDOR_OWNS_DESCRIPTORS ? 0 : file_of(duplicate);
    const vendor_external_handle handle = {
        .type = GPUHAL_VENDOR_OPAQUE_FD, .handle = {.fd = duplicate}, .size = alloc->import_offset + alloc->bytes};
    vendor_code code = GPUHAL_VENDOR(ImportExternalMemory)(&block->external, &handle);
    if (code != GPUHAL_VENDOR_OK) {
        close(duplicate);
        return code;
    }
    const vendor_external_buffer buffer = {.offset = alloc->import_offset, .size = alloc->bytes};
    *out_call = GPUHAL_VENDOR_CALL(ExternalMemoryGetMappedBuffer);
    code = GPUHAL_VENDOR(ExternalMemoryGetMappedBuffer)(&block->plain, block->external, &buffer);
    if (code != GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(ignore)(GPUHAL_VENDOR(DestroyExternalMemory)(block->external));
        close_again(duplicate, file);
        return code;
    }
    block->descriptor = duplicate;
    block->file = file;
    use(out_memory, GPUHAL_BLOCK_EXTERNAL, GPUHAL_VENDOR_NUMBER(block->plain));
    return GPUHAL_VENDOR_OK;
}

/* The code for a descriptor that the driver cannot import differs between driver versions. Out-of-memory and
 * device-lost errors keep their codes. */
static gpuhal_status import_failed(gpuhal_plugin_device *device, const char *name, vendor_code code, uint64_t bytes)
{
    const gpuhal_status status = GPUHAL_OWN(status)(code);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY || status == GPUHAL_ERROR_DEVICE_LOST) {
        return GPUHAL_OWN(allocation_failed)(device, name, code, bytes);
    }
    return GPUHAL_OWN(report_as)(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, name, code,
                                 "not a handle exported by this driver, or wrong size");
}

gpuhal_status GPUHAL_OWN(import)(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    const intptr_t fd = alloc->handle.as.os;
    if (fd < 0 || fd > INT32_MAX || fcntl((int)fd, F_GETFD) < 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "not an open file descriptor");
    }
    /* After this check, adding offset and size and rounding up to the granularity cannot overflow. */
    if (alloc->bytes > device->entry->total || alloc->import_offset > device->entry->total) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "more bytes than the device has");
    }
    const bool whole = alloc->import_offset == 0; /* a mapping begins at the start of the memory */
    const char *call = NULL;
    vendor_code code =
        whole ? import_mapped(device, alloc, out_memory, &call) : import_external(alloc, out_memory, &call);
    const gpuhal_status status = GPUHAL_OWN(status)(code);
    if (whole && code != GPUHAL_VENDOR_OK && status != GPUHAL_ERROR_OUT_OF_MEMORY &&
        status != GPUHAL_ERROR_DEVICE_LOST) {
        /* Out-of-memory and device-lost errors are returned immediately; the second import would only hide them. If
         * both imports fail, the first error is reported, because it applies to the driver's own handles. */
        const char *second;
        GPUHAL_OWN(ignore)(code);
        const vendor_code external = import_external(alloc, out_memory, &second);
        code = external == GPUHAL_VENDOR_OK ? external : code;
    }
    if (code != GPUHAL_VENDOR_OK) {
        return import_failed(device, call, code, alloc->bytes);
    }
    close((int)fd); /* the mapping keeps the memory alive */
    return GPUHAL_OK;
}

/* ---- exporting */

static gpuhal_status export_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                   gpuhal_handle *out_handle, uint64_t *out_offset)
{
    static const char name[] = GPUHAL_VENDOR_CALL(MemExportToShareableHandle);
    const gpuhal_stream_block *block = memory->object;
    if (kind != GPUHAL_HANDLE_OPAQUE_FD || block->kind != GPUHAL_BLOCK_MAPPED) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    union {
        int fd;
        intptr_t wide;
    } handle = {.wide = 0}; /* the drivers declare void *, but write an int */
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const vendor_code code = GPUHAL_VENDOR(MemExportToShareableHandle)(&handle, block->mapping.handle,
                                                                       GPUHAL_VENDOR_FILE_DESCRIPTOR, 0);
    GPUHAL_OWN(leave)(&scope);
    if (code == GPUHAL_VENDOR_NOT_READY) { /* HIP since 7.1 returns this code; the plugin's NOT_READY would not be an
                                            * error */
        return GPUHAL_OWN(report_as)(device->host, GPUHAL_ERROR_BUSY, name, code,
                                     GPUHAL_VENDOR_API " cannot export the memory now; try again");
    }
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(result)(device, name, code);
    }
    /* The driver call has no flag for this, so set FD_CLOEXEC afterwards. A process that another thread starts in
     * between inherits the descriptor. */
    (void)fcntl(handle.fd, F_SETFD, FD_CLOEXEC);
    out_handle->kind = GPUHAL_HANDLE_OPAQUE_FD;
    out_handle->as.os = handle.fd;
    *out_offset = 0;
    return GPUHAL_OK;
}

void GPUHAL_OWN(describe_share)(const gpuhal_stream_entry *entry, gpuhal_ops *ops)
{
    if (entry->exports_fd) {
        ops->export_memory = export_memory;
    }
}
