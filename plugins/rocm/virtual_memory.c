/* rocm/virtual_memory.c: physical memory and addresses apart: ranges of addresses that are filled and emptied piece by piece.
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
    hipMemGenericAllocationHandle_t handle;
} piece;

struct gpuhal_plugin_range {
    gpuhal_plugin_device *device;
    void *address;
    uint64_t bytes;
    piece *pieces;
};

static hipMemAllocationProp properties_of(const gpuhal_plugin_device *device, bool exported)
{
    return (hipMemAllocationProp){
        .type = hipMemAllocationTypePinned,
        .requestedHandleType = exported ? hipMemHandleTypePosixFileDescriptor : hipMemHandleTypeNone,
        .location = {.type = hipMemLocationTypeDevice, .id = device->entry->device},
    };
}

hipError_t gpuhal_rocm_granularity(const gpuhal_plugin_device *device, uint64_t *out_bytes)
{
    const hipMemAllocationProp properties = properties_of(device, device->entry->exports_fd);
    size_t bytes = 0;
    const hipError_t code =
        gpuhal_rocm_api.hipMemGetAllocationGranularity(&bytes, &properties, hipMemAllocationGranularityMinimum);
    *out_bytes = bytes;
    return code == hipSuccess && bytes == 0 ? hipErrorUnknown : code;
}

hipError_t gpuhal_rocm_create(const gpuhal_plugin_device *device, uint64_t bytes, bool exported,
                              hipMemGenericAllocationHandle_t *out_handle)
{
    const hipMemAllocationProp properties = properties_of(device, exported);
    return gpuhal_rocm_api.hipMemCreate(out_handle, (size_t)bytes, &properties, 0);
}

/* Before HIP 7 hipMemMap answers success whatever came of it, and the failure shows in hipMemSetAccess. hipMemUnmap of what is not
 * mapped reads a null pointer in HIP 6.1 to 6.3 (hip_vm.cpp). */
void gpuhal_rocm_unmap(void *address, uint64_t bytes)
{
    uint64_t mapped;
    if (gpuhal_rocm_is_known((uintptr_t)address, &mapped)) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipMemUnmap(address, (size_t)bytes));
    }
}

/* One device at a time: the device that is refused is known then, and no array is needed. */
hipError_t gpuhal_rocm_allow(const gpuhal_plugin_device *device, void *address, uint64_t bytes,
                             gpuhal_plugin_device *const *peers, uint32_t peer_count)
{
    hipMemAccessDesc access = {.location = {.type = hipMemLocationTypeDevice, .id = device->entry->device},
                               .flags = hipMemAccessFlagsProtReadWrite};
    hipError_t code = gpuhal_rocm_api.hipMemSetAccess(address, (size_t)bytes, &access, 1);
    for (uint32_t i = 0; i < peer_count && code == hipSuccess; i++) {
        access.location.id = peers[i]->entry->device;
        code = gpuhal_rocm_api.hipMemSetAccess(address, (size_t)bytes, &access, 1);
    }
    return code;
}

static gpuhal_status rocm_range_granularity(gpuhal_plugin_device *device, uint64_t *out_bytes)
{
    gpuhal_rocm_visit visit;
    hipError_t code = gpuhal_rocm_enter(device, &visit);
    if (code == hipSuccess) {
        code = gpuhal_rocm_granularity(device, out_bytes);
        gpuhal_rocm_leave(&visit);
    }
    return gpuhal_rocm_result(device, "hipMemGetAllocationGranularity", code);
}

/* The object of a range's memory is never looked at: its pieces belong to the range. */
static gpuhal_status rocm_range_reserve(gpuhal_plugin_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                        gpuhal_plugin_range **out_range)
{
    *out_range = NULL;
    gpuhal_plugin_range *range = calloc(1, sizeof *range);
    if (!range) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    range->device = device;
    range->bytes = bytes;
    gpuhal_rocm_visit visit;
    hipError_t code = gpuhal_rocm_enter(device, &visit);
    if (code == hipSuccess) {
        code = gpuhal_rocm_api.hipMemAddressReserve(&range->address, (size_t)bytes, 0, NULL, 0);
        gpuhal_rocm_leave(&visit);
    }
    if (code != hipSuccess) {
        free(range);
        return gpuhal_rocm_result(device, "hipMemAddressReserve", code);
    }
    out_memory->object = range;
    out_memory->bytes = bytes;
    out_memory->address = (uintptr_t)range->address;
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    *out_range = range;
    return GPUHAL_OK;
}

static bool overlaps(const piece *one, uint64_t offset, uint64_t bytes)
{
    return offset < one->offset + one->bytes && one->offset < offset + bytes;
}

/* With the device current. */
static hipError_t fill_piece(const gpuhal_plugin_range *range, piece *own, gpuhal_plugin_device *const *peers,
                             uint32_t peer_count, const char **out_call)
{
    void *address = (char *)range->address + own->offset;
    *out_call = "hipMemCreate";
    hipError_t code = gpuhal_rocm_create(range->device, own->bytes, false, &own->handle);
    if (code != hipSuccess) {
        return code;
    }
    *out_call = "hipMemMap";
    code = gpuhal_rocm_api.hipMemMap(address, (size_t)own->bytes, 0, own->handle, 0);
    if (code != hipSuccess) {
        goto release_handle;
    }
    *out_call = "hipMemSetAccess";
    code = gpuhal_rocm_allow(range->device, address, own->bytes, peers, peer_count);
    if (code == hipSuccess) {
        return hipSuccess;
    }
    gpuhal_rocm_unmap(address, own->bytes);
release_handle:
    gpuhal_rocm_ignore(gpuhal_rocm_api.hipMemRelease(own->handle));
    return code;
}

static gpuhal_status rocm_range_commit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes,
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
    gpuhal_rocm_visit visit;
    gpuhal_status status = gpuhal_rocm_result(range->device, "hipSetDevice", gpuhal_rocm_enter(range->device, &visit));
    if (status == GPUHAL_OK) {
        const char *call;
        const hipError_t code = fill_piece(range, own, peers, peer_count, &call);
        status = code == hipSuccess ? GPUHAL_OK : gpuhal_rocm_allocation_failed(range->device, call, code, bytes);
        gpuhal_rocm_leave(&visit);
    }
    if (status != GPUHAL_OK) {
        free(own);
        return status;
    }
    own->next = range->pieces;
    range->pieces = own;
    return GPUHAL_OK;
}

/* With the device current. */
static hipError_t empty_piece(const gpuhal_plugin_range *range, const piece *own)
{
    const hipError_t code = gpuhal_rocm_api.hipMemUnmap((char *)range->address + own->offset, (size_t)own->bytes);
    return code != hipSuccess ? code : gpuhal_rocm_api.hipMemRelease(own->handle);
}

/* With the device current. Takes out the pieces within the bytes; stops at the first that the driver keeps. */
static hipError_t empty_pieces(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    hipError_t code = hipSuccess;
    for (piece **link = &range->pieces; *link && code == hipSuccess;) {
        piece *own = *link;
        if (!overlaps(own, offset, bytes)) {
            link = &own->next;
            continue;
        }
        code = empty_piece(range, own);
        if (code == hipSuccess) {
            *link = own->next;
            free(own);
        }
    }
    return code;
}

static gpuhal_status rocm_range_decommit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    const gpuhal_host *host = range->device->host;
    for (const piece *own = range->pieces; own; own = own->next) {
        const bool inside = own->offset >= offset && own->offset + own->bytes <= offset + bytes;
        if (overlaps(own, offset, bytes) && !inside) {
            return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                "HIP takes back whole pieces only, as they were committed");
        }
    }
    gpuhal_rocm_visit visit;
    hipError_t code = gpuhal_rocm_enter(range->device, &visit);
    if (code == hipSuccess) {
        code = empty_pieces(range, offset, bytes);
        gpuhal_rocm_leave(&visit);
    }
    return gpuhal_rocm_result(range->device, "hipMemUnmap", code);
}

static void rocm_range_release(gpuhal_plugin_range *range)
{
    gpuhal_rocm_visit visit;
    if (gpuhal_rocm_enter_anyway(range->device, &visit) == hipSuccess) {
        gpuhal_rocm_ignore(empty_pieces(range, 0, range->bytes));
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipMemAddressFree(range->address, (size_t)range->bytes));
        gpuhal_rocm_leave(&visit);
    }
    while (range->pieces) {
        piece *own = range->pieces;
        range->pieces = own->next;
        free(own);
    }
    free(range);
}

void gpuhal_rocm_describe_ranges(const gpuhal_rocm_entry *entry, gpuhal_ops *ops)
{
    if (!entry->has_ranges) {
        return;
    }
    ops->range_granularity = rocm_range_granularity;
    ops->range_reserve = rocm_range_reserve;
    ops->range_commit = rocm_range_commit;
    ops->range_decommit = rocm_range_decommit;
    ops->range_release = rocm_range_release;
}
