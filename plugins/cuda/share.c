/* cuda/share.c: memory that others see too: given out as a file descriptor, taken in from one, or open to peers.
 *
 * Such memory is physical memory that is mapped to addresses by ourselves, in multiples of the driver's granularity (2 MiB): only
 * that kind can be exported. A descriptor of a Vulkan driver is of another kind and is taken in as external memory; which of the
 * two a descriptor is, only trying tells.
 */
#include "device.h"

#include <fcntl.h>
#include <unistd.h>

/* ---- mappings */

static void unmap(const gpuhal_cuda_mapping *mapping)
{
    (void)gpuhal_cuda_api.cuMemUnmap(mapping->address, (size_t)mapping->bytes);
    (void)gpuhal_cuda_api.cuMemAddressFree(mapping->address, (size_t)mapping->bytes);
    (void)gpuhal_cuda_api.cuMemRelease(mapping->handle);
}

/* Inside the context. Gives addresses to mapping->handle, which stays the caller's on failure; @p out_call is what failed. */
static CUresult map(const gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_cuda_mapping *mapping,
                    const char **out_call)
{
    const gpuhal_cuda_functions *api = &gpuhal_cuda_api;
    uint64_t granularity = 0;
    *out_call = "cuMemAddressReserve";
    CUresult code = gpuhal_cuda_granularity(device, &granularity);
    if (code == CUDA_SUCCESS) {
        const uint64_t alignment = alloc->alignment > granularity ? alloc->alignment : 0; /* every range begins with a granule */
        code = api->cuMemAddressReserve(&mapping->address, (size_t)mapping->bytes, (size_t)alignment, 0, 0);
    }
    if (code != CUDA_SUCCESS) {
        return code;
    }
    *out_call = "cuMemMap";
    code = api->cuMemMap(mapping->address, (size_t)mapping->bytes, 0, mapping->handle, 0);
    if (code != CUDA_SUCCESS) {
        goto free_address;
    }
    *out_call = "cuMemSetAccess";
    code = gpuhal_cuda_allow(device, mapping->address, mapping->bytes, alloc->peers, alloc->peer_count);
    if (code == CUDA_SUCCESS) {
        return CUDA_SUCCESS;
    }
    (void)api->cuMemUnmap(mapping->address, (size_t)mapping->bytes);
free_address:
    (void)api->cuMemAddressFree(mapping->address, (size_t)mapping->bytes);
    return code;
}

static void use(gpuhal_memory *memory, gpuhal_cuda_block_kind kind, CUdeviceptr address)
{
    ((gpuhal_cuda_block *)memory->object)->kind = kind;
    memory->address = address;
    memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
}

/* Multiples of the granularity; the size has been compared with the device's memory before. */
static CUresult whole_granules(const gpuhal_plugin_device *device, uint64_t bytes, uint64_t *out_bytes)
{
    uint64_t granularity = 0;
    const CUresult code = gpuhal_cuda_granularity(device, &granularity);
    if (code == CUDA_SUCCESS) {
        *out_bytes = (bytes + granularity - 1) / granularity * granularity;
    }
    return code;
}

static gpuhal_status peers_fault(const gpuhal_plugin_device *device, const gpuhal_alloc *alloc)
{
    for (uint32_t i = 0; i < alloc->peer_count; i++) {
        const CUdevice peer = alloc->peers[i]->entry->device;
        int can = peer == device->entry->device;
        if (!can && gpuhal_cuda_api.cuDeviceCanAccessPeer(&can, peer, device->entry->device) != CUDA_SUCCESS) {
            can = 0;
        }
        if (!can) {
            return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, "cuDeviceCanAccessPeer", 0,
                                        "a peer cannot reach memory of this device");
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_cuda_allocate_shared(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_cuda_mapping *mapping = &((gpuhal_cuda_block *)out_memory->object)->mapping;
    gpuhal_status status = peers_fault(device, alloc);
    if (status != GPUHAL_OK) {
        return status;
    }
    CUresult code = whole_granules(device, alloc->bytes, &mapping->bytes);
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_result(device, "cuMemGetAllocationGranularity", code);
    }
    code = gpuhal_cuda_create(device, mapping->bytes, alloc->export_kinds != 0, &mapping->handle);
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_allocation_failed(device, "cuMemCreate", code, mapping->bytes);
    }
    const char *call;
    code = map(device, alloc, mapping, &call);
    if (code != CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuMemRelease(mapping->handle);
        return gpuhal_cuda_allocation_failed(device, call, code, mapping->bytes);
    }
    use(out_memory, GPUHAL_CUDA_MAPPED, mapping->address);
    return GPUHAL_OK;
}

void gpuhal_cuda_release_shared(gpuhal_cuda_block *block)
{
    if (block->kind == GPUHAL_CUDA_MAPPED) {
        unmap(&block->mapping);
        return;
    }
    (void)gpuhal_cuda_api.cuMemFree_v2(block->plain); /* the mapping of external memory is freed like an allocation */
    (void)gpuhal_cuda_api.cuDestroyExternalMemory(block->external);
}

/* ---- taking in */

/* Imported memory is as large as the exporter made it: the bytes that were asked for, in whole granules. */
static CUresult import_mapped(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_cuda_mapping *mapping = &((gpuhal_cuda_block *)out_memory->object)->mapping;
    CUresult code = whole_granules(device, alloc->bytes, &mapping->bytes);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    code = gpuhal_cuda_api.cuMemImportFromShareableHandle(&mapping->handle, (void *)alloc->import.as.os,
                                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    const char *call;
    code = map(device, alloc, mapping, &call);
    if (code != CUDA_SUCCESS) {
        (void)gpuhal_cuda_api.cuMemRelease(mapping->handle);
        return code;
    }
    use(out_memory, GPUHAL_CUDA_MAPPED, mapping->address);
    return CUDA_SUCCESS;
}

/* A successful import makes the descriptor the driver's, so it gets a duplicate. */
static CUresult import_external(const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_cuda_functions *api = &gpuhal_cuda_api;
    gpuhal_cuda_block *block = out_memory->object;
    if (!api->cuImportExternalMemory || !api->cuExternalMemoryGetMappedBuffer || !api->cuDestroyExternalMemory) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const int duplicate = fcntl((int)alloc->import.as.os, F_DUPFD_CLOEXEC, 3);
    if (duplicate < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle = {.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
                                                     .handle = {.fd = duplicate},
                                                     .size = alloc->import_offset + alloc->bytes};
    CUresult code = api->cuImportExternalMemory(&block->external, &handle);
    if (code != CUDA_SUCCESS) {
        close(duplicate);
        return code;
    }
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {.offset = alloc->import_offset, .size = alloc->bytes};
    code = api->cuExternalMemoryGetMappedBuffer(&block->plain, block->external, &buffer);
    if (code != CUDA_SUCCESS) {
        (void)api->cuDestroyExternalMemory(block->external);
        return code;
    }
    use(out_memory, GPUHAL_CUDA_EXTERNAL, block->plain);
    return CUDA_SUCCESS;
}

/* The driver's word for a descriptor that it does not know differs from version to version; running out of memory, and losing the
 * device, are what they are. */
static gpuhal_status import_failed(gpuhal_plugin_device *device, CUresult code, uint64_t bytes)
{
    const gpuhal_status status = gpuhal_cuda_status(code);
    if (status == GPUHAL_ERROR_OUT_OF_MEMORY || status == GPUHAL_ERROR_DEVICE_LOST) {
        return gpuhal_cuda_allocation_failed(device, "cuMemImportFromShareableHandle", code, bytes);
    }
    return gpuhal_cuda_report_as(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "cuMemImportFromShareableHandle", code,
                                 "the descriptor is none of memory that this driver gave out with so many bytes");
}

gpuhal_status gpuhal_cuda_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    const intptr_t fd = alloc->import.as.os;
    if (fd < 0 || fd > INT32_MAX || fcntl((int)fd, F_GETFD) < 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "not an open file descriptor");
    }
    if (alloc->bytes > device->entry->total || alloc->import_offset > device->entry->total) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "more bytes than the device has");
    }
    CUresult code = alloc->import_offset == 0 ? import_mapped(device, alloc, out_memory) : CUDA_ERROR_INVALID_VALUE;
    const gpuhal_status status = gpuhal_cuda_status(code);
    if (code != CUDA_SUCCESS && status != GPUHAL_ERROR_OUT_OF_MEMORY && status != GPUHAL_ERROR_DEVICE_LOST) {
        const CUresult external = import_external(alloc, out_memory);
        code = external == CUDA_SUCCESS ? external : code;
    }
    if (code != CUDA_SUCCESS) {
        return import_failed(device, code, alloc->bytes);
    }
    close((int)fd); /* the memory keeps itself alive from here on */
    return GPUHAL_OK;
}

/* ---- giving out */

static gpuhal_status cuda_export_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                        gpuhal_handle *out_handle, uint64_t *out_offset)
{
    const gpuhal_cuda_block *block = memory->object;
    if (kind != GPUHAL_HANDLE_OPAQUE_FD || block->kind != GPUHAL_CUDA_MAPPED) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    int fd = -1;
    gpuhal_cuda_visit visit;
    CUresult code = gpuhal_cuda_enter(device, &visit);
    if (code == CUDA_SUCCESS) {
        code =
            gpuhal_cuda_api.cuMemExportToShareableHandle(&fd, block->mapping.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        gpuhal_cuda_leave(&visit);
    }
    if (code != CUDA_SUCCESS) {
        return gpuhal_cuda_result(device, "cuMemExportToShareableHandle", code);
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    out_handle->kind = GPUHAL_HANDLE_OPAQUE_FD;
    out_handle->as.os = fd;
    *out_offset = 0;
    return GPUHAL_OK;
}

void gpuhal_cuda_describe_share(const gpuhal_cuda_entry *entry, gpuhal_ops *ops)
{
    if (entry->exports_fd) {
        ops->export_memory = cuda_export_memory;
    }
}
