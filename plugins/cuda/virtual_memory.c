/* cuda/virtual_memory.c: physical memory and addresses apart: ranges of addresses that are filled and emptied piece by piece.
 *
 * A commit makes one piece of physical memory; the driver unmaps whole pieces only, so a decommit covers pieces that were
 * committed as such. The core has one call in progress on a range.
 */
#include "device.h"

#include <stdlib.h>

/* One commit. */
typedef struct piece {
    struct piece *next;
    uint64_t offset, bytes;
    CUmemGenericAllocationHandle handle;
} piece;

struct gpuhal_plugin_range {
    gpuhal_plugin_device *device;
    CUdeviceptr address;
    uint64_t bytes;
    piece *pieces;
};

static CUmemAllocationProp properties_of(const gpuhal_plugin_device *device, bool exported)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = exported ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->entry->device},
    };
}

CUresult gpuhal_cuda_granularity(const gpuhal_plugin_device *device, uint64_t *out_bytes)
{
    const CUmemAllocationProp properties = properties_of(device, device->entry->exports_fd);
    size_t bytes = 0;
    const CUresult code = gpuhal_cuda_api.cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    *out_bytes = bytes;
    return code == CUDA_SUCCESS && bytes == 0 ? CUDA_ERROR_UNKNOWN : code;
}

CUresult gpuhal_cuda_create(const gpuhal_plugin_device *device, uint64_t bytes, bool exported,
                            CUmemGenericAllocationHandle *out_handle)
{
    const CUmemAllocationProp properties = properties_of(device, exported);
    return gpuhal_cuda_api.cuMemCreate(out_handle, (size_t)bytes, &properties, 0);
}

/* One device at a time: the device that is refused is known then, and no array is needed. */
CUresult gpuhal_cuda_allow(const gpuhal_plugin_device *device, CUdeviceptr address, uint64_t bytes,
                           gpuhal_plugin_device *const *peers, uint32_t peer_count)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->entry->device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult code = gpuhal_cuda_api.cuMemSetAccess(address, (size_t)bytes, &access, 1);
    for (uint32_t i = 0; i < peer_count && code == CUDA_SUCCESS; i++) {
        access.location.id = peers[i]->entry->device;
        code = gpuhal_cuda_api.cuMemSetAccess(address, (size_t)bytes, &access, 1);
    }
    return code;
}

static gpuhal_status cuda_range_granularity(gpuhal_plugin_device *device, uint64_t *out_bytes)
{
    gpuhal_cuda_visit visit;
    CUresult code = gpuhal_cuda_enter(device, &visit);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_granularity(device, out_bytes);
        gpuhal_cuda_leave(&visit);
    }
    return gpuhal_cuda_result(device, "cuMemGetAllocationGranularity", code);
}

/* The object of a range's memory is never looked at: its pieces belong to the range. */
static gpuhal_status cuda_range_reserve(gpuhal_plugin_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                        gpuhal_plugin_range **out_range)
{
    *out_range = NULL;
    gpuhal_plugin_range *range = calloc(1, sizeof *range);
    if (!range) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    range->device = device;
    range->bytes = bytes;
    gpuhal_cuda_visit visit;
    CUresult code = gpuhal_cuda_enter(device, &visit);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuMemAddressReserve(&range->address, (size_t)bytes, 0, 0, 0);
        gpuhal_cuda_leave(&visit);
    }
    if (code != CUDA_SUCCESS) {
        free(range);
        return gpuhal_cuda_result(device, "cuMemAddressReserve", code);
    }
    out_memory->object = range;
    out_memory->bytes = bytes;
    out_memory->address = range->address;
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    *out_range = range;
    return GPUHAL_OK;
}

static bool overlaps(const piece *one, uint64_t offset, uint64_t bytes)
{
    return offset < one->offset + one->bytes && one->offset < offset + bytes;
}

/* Inside the context. */
static CUresult fill_piece(const gpuhal_plugin_range *range, piece *own, gpuhal_plugin_device *const *peers, uint32_t peer_count,
                           const char **out_call)
{
    const CUdeviceptr address = range->address + own->offset;
    *out_call = "cuMemCreate";
    CUresult code = gpuhal_cuda_create(range->device, own->bytes, false, &own->handle);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    *out_call = "cuMemMap";
    code = gpuhal_cuda_api.cuMemMap(address, (size_t)own->bytes, 0, own->handle, 0);
    if (code != CUDA_SUCCESS) {
        goto release_handle;
    }
    *out_call = "cuMemSetAccess";
    code = gpuhal_cuda_allow(range->device, address, own->bytes, peers, peer_count);
    if (code == CUDA_SUCCESS) {
        return CUDA_SUCCESS;
    }
    (void)gpuhal_cuda_api.cuMemUnmap(address, (size_t)own->bytes);
release_handle:
    (void)gpuhal_cuda_api.cuMemRelease(own->handle);
    return code;
}

static gpuhal_status cuda_range_commit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes,
                                       gpuhal_plugin_device *const *peers, uint32_t peer_count)
{
    const gpuhal_host *host = range->device->host;
    for (const piece *other = range->pieces; other; other = other->next) {
        if (overlaps(other, offset, bytes)) {
            return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "a part of it is committed already");
        }
    }
    piece *own = calloc(1, sizeof *own);
    if (!own) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    own->offset = offset;
    own->bytes = bytes;
    gpuhal_cuda_visit visit;
    gpuhal_status status = gpuhal_cuda_result(range->device, "cuCtxPushCurrent", gpuhal_cuda_enter(range->device, &visit));
    if (status == GPUHAL_OK) {
        const char *call;
        const CUresult code = fill_piece(range, own, peers, peer_count, &call);
        status = code == CUDA_SUCCESS ? GPUHAL_OK : gpuhal_cuda_allocation_failed(range->device, call, code, bytes);
        gpuhal_cuda_leave(&visit);
    }
    if (status != GPUHAL_OK) {
        free(own);
        return status;
    }
    own->next = range->pieces;
    range->pieces = own;
    return GPUHAL_OK;
}

/* Inside the context. */
static CUresult empty_piece(const gpuhal_plugin_range *range, const piece *own)
{
    const CUresult code = gpuhal_cuda_api.cuMemUnmap(range->address + own->offset, (size_t)own->bytes);
    return code != CUDA_SUCCESS ? code : gpuhal_cuda_api.cuMemRelease(own->handle);
}

/* Inside the context. Takes out the pieces within the bytes; stops at the first that the driver keeps. */
static CUresult empty_pieces(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    CUresult code = CUDA_SUCCESS;
    for (piece **link = &range->pieces; *link && code == CUDA_SUCCESS;) {
        piece *own = *link;
        if (!overlaps(own, offset, bytes)) {
            link = &own->next;
            continue;
        }
        code = empty_piece(range, own);
        if (code == CUDA_SUCCESS) {
            *link = own->next;
            free(own);
        }
    }
    return code;
}

static gpuhal_status cuda_range_decommit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    const gpuhal_host *host = range->device->host;
    for (const piece *own = range->pieces; own; own = own->next) {
        const bool inside = own->offset >= offset && own->offset + own->bytes <= offset + bytes;
        if (overlaps(own, offset, bytes) && !inside) {
            return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                "CUDA takes back whole pieces only, as they were committed");
        }
    }
    gpuhal_cuda_visit visit;
    CUresult code = gpuhal_cuda_enter(range->device, &visit);
    if (code == CUDA_SUCCESS) {
        code = empty_pieces(range, offset, bytes);
        gpuhal_cuda_leave(&visit);
    }
    return gpuhal_cuda_result(range->device, "cuMemUnmap", code);
}

static void cuda_range_release(gpuhal_plugin_range *range)
{
    gpuhal_cuda_visit visit;
    if (gpuhal_cuda_enter_anyway(range->device, &visit) == CUDA_SUCCESS) {
        (void)empty_pieces(range, 0, range->bytes);
        (void)gpuhal_cuda_api.cuMemAddressFree(range->address, (size_t)range->bytes);
        gpuhal_cuda_leave(&visit);
    }
    while (range->pieces) {
        piece *own = range->pieces;
        range->pieces = own->next;
        free(own);
    }
    free(range);
}

void gpuhal_cuda_describe_ranges(const gpuhal_cuda_entry *entry, gpuhal_ops *ops)
{
    if (!entry->has_ranges) {
        return;
    }
    ops->range_granularity = cuda_range_granularity;
    ops->range_reserve = cuda_range_reserve;
    ops->range_commit = cuda_range_commit;
    ops->range_decommit = cuda_range_decommit;
    ops->range_release = cuda_range_release;
}
