/* rocm/share.c: memory that others see too: given out as a file descriptor, taken in from one, or open to peers.
 *
 * Such memory is physical memory that is mapped to addresses by ourselves, in multiples of the driver's granularity (2 MiB): only
 * that kind can be exported. A descriptor of a Vulkan driver is of another kind and is taken in as external memory; which of the
 * two a descriptor is, only trying tells.
 */
#include "device.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- mappings */

static void unmap(const gpuhal_rocm_mapping *mapping)
{
    gpuhal_rocm_unmap(mapping->address, mapping->bytes);
    gpuhal_rocm_ignore(gpuhal_rocm_api.hipMemAddressFree(mapping->reserved, (size_t)mapping->reserved_bytes));
    gpuhal_rocm_ignore(gpuhal_rocm_api.hipMemRelease(mapping->handle));
}

/* With the device current. HIP checks an alignment and does not keep it (hip_vm.cpp: Device::virtualAlloc hands none on), so it is
 * made from a larger reservation; every one begins with a granule. */
static hipError_t reserve(const gpuhal_plugin_device *device, uint64_t alignment, gpuhal_rocm_mapping *mapping)
{
    uint64_t granularity = 0;
    hipError_t code = gpuhal_rocm_granularity(device, &granularity);
    if (code != hipSuccess) {
        return code;
    }
    mapping->reserved_bytes = mapping->bytes + (alignment > granularity ? alignment : 0);
    code = gpuhal_rocm_api.hipMemAddressReserve(&mapping->reserved, (size_t)mapping->reserved_bytes, 0, NULL, 0);
    mapping->address = gpuhal_rocm_at(gpuhal_rocm_align_up((uintptr_t)mapping->reserved, alignment));
    return code;
}

/* With the device current. Gives addresses to mapping->handle, which stays the caller's on failure; @p out_call is what failed.
 */
static hipError_t map(const gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_rocm_mapping *mapping,
                      const char **out_call)
{
    const gpuhal_rocm_functions *api = &gpuhal_rocm_api;
    *out_call = "hipMemAddressReserve";
    hipError_t code = reserve(device, alloc->alignment, mapping);
    if (code != hipSuccess) {
        return code;
    }
    *out_call = "hipMemMap";
    code = api->hipMemMap(mapping->address, (size_t)mapping->bytes, 0, mapping->handle, 0);
    if (code != hipSuccess) {
        goto free_address;
    }
    *out_call = "hipMemSetAccess";
    code = gpuhal_rocm_allow(device, mapping->address, mapping->bytes, alloc->peers, alloc->peer_count);
    if (code == hipSuccess) {
        return hipSuccess;
    }
    gpuhal_rocm_unmap(mapping->address, mapping->bytes);
free_address:
    gpuhal_rocm_ignore(api->hipMemAddressFree(mapping->reserved, (size_t)mapping->reserved_bytes));
    return code;
}

static void use(gpuhal_memory *memory, gpuhal_rocm_block_kind kind, void *address)
{
    ((gpuhal_rocm_block *)memory->object)->kind = kind;
    memory->address = (uintptr_t)address;
    memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
}

/* Multiples of the granularity; the size has been compared with the device's memory before. */
static hipError_t whole_granules(const gpuhal_plugin_device *device, uint64_t bytes, uint64_t *out_bytes)
{
    uint64_t granularity = 0;
    const hipError_t code = gpuhal_rocm_granularity(device, &granularity);
    if (code == hipSuccess) {
        *out_bytes = (bytes + granularity - 1) / granularity * granularity;
    }
    return code;
}

static gpuhal_status peers_fault(const gpuhal_plugin_device *device, const gpuhal_alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->peer_count; i++) {
        const hipDevice_t peer = alloc->peers[i]->entry->device;
        int can = 0;
        if (peer != device->entry->device) {
            gpuhal_rocm_ignore(gpuhal_rocm_api.hipDeviceCanAccessPeer(&can, peer, device->entry->device));
        }
        if (!can && peer != device->entry->device) {
            return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, "hipDeviceCanAccessPeer", 0,
                                        "a peer cannot reach memory of this device");
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_rocm_allocate_shared(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_rocm_mapping *mapping = &((gpuhal_rocm_block *)out_memory->object)->mapping;
    gpuhal_status status = peers_fault(device, alloc);
    if (status != GPUHAL_OK) {
        return status;
    }
    hipError_t code = whole_granules(device, alloc->bytes, &mapping->bytes);
    if (code != hipSuccess) {
        return gpuhal_rocm_result(device, "hipMemGetAllocationGranularity", code);
    }
    code = gpuhal_rocm_create(device, mapping->bytes, alloc->export_kinds != 0, &mapping->handle);
    if (code != hipSuccess) {
        return gpuhal_rocm_allocation_failed(device, "hipMemCreate", code, mapping->bytes);
    }
    const char *call;
    code = map(device, alloc, mapping, &call);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipMemRelease(mapping->handle));
        return gpuhal_rocm_allocation_failed(device, call, code, mapping->bytes);
    }
    use(out_memory, GPUHAL_ROCM_MAPPED, mapping->address);
    return GPUHAL_OK;
}

/* The file that a descriptor stands for; 0 for none. */
static uint64_t file_of(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

/* Unless somebody has closed it since, and it stands for another file. */
static void close_again(int descriptor, uint64_t file)
{
    if (file != 0 && file_of(descriptor) == file) {
        close(descriptor);
    }
}

void gpuhal_rocm_release_shared(gpuhal_rocm_block *block)
{
    if (block->kind == GPUHAL_ROCM_MAPPED) {
        unmap(&block->mapping);
        return;
    }
    gpuhal_rocm_ignore(gpuhal_rocm_api.hipFree(block->plain)); /* the mapping of external memory is freed like an allocation */
    gpuhal_rocm_ignore(gpuhal_rocm_api.hipDestroyExternalMemory(block->external));
    close_again(block->descriptor, block->file);
}

/* ---- taking in */

/* HIP takes the descriptor 0 for none where it takes descriptors in the place of pointers. It does not close them. */
static hipError_t import_handle(int descriptor, hipMemGenericAllocationHandle_t *out_handle)
{
    const int duplicate = descriptor == 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3) : -1;
    int used = duplicate >= 0 ? duplicate : descriptor;
    void *handle = gpuhal_rocm_runtime.takes_descriptors ? gpuhal_rocm_at((uint64_t)used) : &used;
    const hipError_t code =
        gpuhal_rocm_api.hipMemImportFromShareableHandle(out_handle, handle, hipMemHandleTypePosixFileDescriptor);
    if (duplicate >= 0) {
        close(duplicate);
    }
    return code;
}

/* Imported memory is as large as the exporter made it: the bytes that were asked for, in whole granules. */
static hipError_t import_mapped(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_rocm_mapping *mapping = &((gpuhal_rocm_block *)out_memory->object)->mapping;
    hipError_t code = whole_granules(device, alloc->bytes, &mapping->bytes);
    if (code != hipSuccess) {
        return code;
    }
    code = import_handle((int)alloc->import.as.os, &mapping->handle);
    if (code != hipSuccess) {
        return code;
    }
    const char *call;
    code = map(device, alloc, mapping, &call);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipMemRelease(mapping->handle));
        return code;
    }
    use(out_memory, GPUHAL_ROCM_MAPPED, mapping->address);
    return hipSuccess;
}

/* HIP does not say whose the descriptor is after an import. Up to HIP 6.2 at least it leaves it open, so it gets a duplicate,
 * which is closed with the memory if it is open still. */
static hipError_t import_external(const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_rocm_functions *api = &gpuhal_rocm_api;
    gpuhal_rocm_block *block = out_memory->object;
    if (!api->hipImportExternalMemory || !api->hipExternalMemoryGetMappedBuffer || !api->hipDestroyExternalMemory) {
        return hipErrorNotSupported;
    }
    const int duplicate = fcntl((int)alloc->import.as.os, F_DUPFD_CLOEXEC, 3);
    if (duplicate < 0) {
        return hipErrorOperatingSystem;
    }
    const uint64_t file = file_of(duplicate);
    const hipExternalMemoryHandleDesc handle = {
        .type = hipExternalMemoryHandleTypeOpaqueFd, .handle = {.fd = duplicate}, .size = alloc->import_offset + alloc->bytes};
    hipError_t code = api->hipImportExternalMemory(&block->external, &handle);
    if (code != hipSuccess) {
        close(duplicate);
        return code;
    }
    const hipExternalMemoryBufferDesc buffer = {.offset = alloc->import_offset, .size = alloc->bytes};
    code = api->hipExternalMemoryGetMappedBuffer(&block->plain, block->external, &buffer);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(api->hipDestroyExternalMemory(block->external));
        close_again(duplicate, file);
        return code;
    }
    block->descriptor = duplicate;
    block->file = file;
    use(out_memory, GPUHAL_ROCM_EXTERNAL, block->plain);
    return hipSuccess;
}

/* The driver's word for a descriptor that it does not know differs from version to version; running out of memory, and losing the
 * device, are what they are. */
static gpuhal_status import_failed(gpuhal_plugin_device *device, hipError_t code, uint64_t bytes)
{
    const gpuhal_status status = gpuhal_rocm_status(code);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY || status == GPUHAL_ERROR_DEVICE_LOST) {
        return gpuhal_rocm_allocation_failed(device, "hipMemImportFromShareableHandle", code, bytes);
    }
    return gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "hipMemImportFromShareableHandle", code,
                                 "the descriptor is none of memory that this driver gave out with so many bytes");
}

gpuhal_status gpuhal_rocm_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    const intptr_t fd = alloc->import.as.os;
    if (fd < 0 || fd > INT32_MAX || fcntl((int)fd, F_GETFD) < 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "not an open file descriptor");
    }
    if (alloc->bytes > device->entry->total || alloc->import_offset > device->entry->total) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "more bytes than the device has");
    }
    hipError_t code = alloc->import_offset == 0 ? import_mapped(device, alloc, out_memory) : hipErrorInvalidValue;
    const gpuhal_status status = gpuhal_rocm_status(code);
    if (code != hipSuccess && status != GPUHAL_ERROR_OUT_OF_MEMORY && status != GPUHAL_ERROR_DEVICE_LOST) {
        gpuhal_rocm_ignore(code);
        const hipError_t external = import_external(alloc, out_memory);
        code = external == hipSuccess ? external : code;
    }
    if (code != hipSuccess) {
        return import_failed(device, code, alloc->bytes);
    }
    close((int)fd); /* the memory keeps itself alive from here on */
    return GPUHAL_OK;
}

/* ---- giving out */

static gpuhal_status rocm_export_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                        gpuhal_handle *out_handle, uint64_t *out_offset)
{
    const gpuhal_rocm_block *block = memory->object;
    if (kind != GPUHAL_HANDLE_OPAQUE_FD || block->kind != GPUHAL_ROCM_MAPPED) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    intptr_t wide = 0; /* HIP says void *, and writes an int there */
    gpuhal_rocm_visit visit;
    hipError_t code = gpuhal_rocm_enter(device, &visit);
    if (code == hipSuccess) {
        code =
            gpuhal_rocm_api.hipMemExportToShareableHandle(&wide, block->mapping.handle, hipMemHandleTypePosixFileDescriptor, 0);
        gpuhal_rocm_leave(&visit);
    }
    if (code == hipErrorNotReady) { /* since HIP 7.1; our own "not ready" would be no error */
        return gpuhal_rocm_report_as(device->host, GPUHAL_ERROR_BUSY, "hipMemExportToShareableHandle", code,
                                     "HIP cannot export the memory now; try again");
    }
    if (code != hipSuccess) {
        return gpuhal_rocm_result(device, "hipMemExportToShareableHandle", code);
    }
    const int fd = (int)wide;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    out_handle->kind = GPUHAL_HANDLE_OPAQUE_FD;
    out_handle->as.os = fd;
    *out_offset = 0;
    return GPUHAL_OK;
}

void gpuhal_rocm_describe_share(const gpuhal_rocm_entry *entry, gpuhal_ops *ops)
{
    if (entry->exports_fd) {
        ops->export_memory = rocm_export_memory;
    }
}
