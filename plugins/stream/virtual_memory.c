/* stream/virtual_memory.c: separates physical memory from addresses: commits and decommits parts of a reserved range.
 *
 * Each commit creates one piece of physical memory. The driver unmaps only whole pieces, so a decommit must cover the
 * pieces exactly as they were committed. The core makes only one call at a time on a range.
 *
 * The core's pools use ranges. share.c also uses the mapping functions.
 */
#include "device.h"

#include <stdlib.h>

/* The memory of one commit. */
typedef struct piece {
    struct piece *next;
    uint64_t offset, bytes;
    vendor_allocation handle;
} piece;

struct gpuhal_plugin_range {
    gpuhal_plugin_device *device;
    gpuhal_stream_reservation reserved;
    piece *pieces;
};

vendor_code GPUHAL_OWN(granularity)(const gpuhal_plugin_device *device, uint64_t *out_bytes)
{
    const vendor_properties properties = GPUHAL_VENDOR_PROPERTIES(device->entry->device, device->entry->exports_fd);
    size_t bytes = 0;
    const vendor_code code =
        GPUHAL_VENDOR(MemGetAllocationGranularity)(&bytes, &properties, GPUHAL_VENDOR_GRANULARITY_MINIMUM);
    *out_bytes = bytes;
    return code == GPUHAL_VENDOR_OK && bytes == 0 ? GPUHAL_VENDOR_UNKNOWN : code;
}

vendor_code GPUHAL_OWN(create)(const gpuhal_plugin_device *device, uint64_t bytes, bool exported,
                               vendor_allocation *out_handle)
{
    const vendor_properties properties = GPUHAL_VENDOR_PROPERTIES(device->entry->device, exported);
    return GPUHAL_VENDOR(MemCreate)(out_handle, (size_t)bytes, &properties, 0);
}

/* Grants access to the devices one at a time, so no array is needed. */
static vendor_code allow(const gpuhal_plugin_device *device, vendor_pointer address, uint64_t bytes,
                         gpuhal_plugin_device *const *peers, uint32_t peer_count)
{
    vendor_access access = GPUHAL_VENDOR_READ_WRITE(device->entry->device);
    vendor_code code = GPUHAL_VENDOR(MemSetAccess)(address, (size_t)bytes, &access, 1);
    for (uint32_t i = 0; i < peer_count && code == GPUHAL_VENDOR_OK; i++) {
        access.location.id = peers[i]->entry->device;
        code = GPUHAL_VENDOR(MemSetAccess)(address, (size_t)bytes, &access, 1);
    }
    return code;
}

vendor_code GPUHAL_OWN(map)(const gpuhal_plugin_device *device, uint64_t address, uint64_t bytes,
                            vendor_allocation handle, gpuhal_plugin_device *const *peers, uint32_t peer_count,
                            const char **out_call)
{
    const vendor_pointer at = GPUHAL_VENDOR_AT(address);
    *out_call = GPUHAL_VENDOR_CALL(MemMap);
    vendor_code code = GPUHAL_VENDOR(MemMap)(at, (size_t)bytes, 0, handle, 0);
    if (code != GPUHAL_VENDOR_OK) {
        return code;
    }
    *out_call = GPUHAL_VENDOR_CALL(MemSetAccess);
    code = allow(device, at, bytes, peers, peer_count);
    if (code != GPUHAL_VENDOR_OK) { /* the caller releases the handle, but a remaining mapping would keep the memory */
        GPUHAL_OWN(unmap)(address, bytes);
    }
    return code;
}

void GPUHAL_OWN(free_addresses)(const gpuhal_stream_reservation *reserved)
{
    const vendor_pointer at = GPUHAL_VENDOR_AT(reserved->start);
    GPUHAL_OWN(ignore)(GPUHAL_VENDOR(MemAddressFree)(at, (size_t)reserved->whole_bytes));
}

/* ---- ranges */

static gpuhal_status range_granularity(gpuhal_plugin_device *device, uint64_t range_bytes, uint64_t *out_bytes)
{
    (void)range_bytes; /* these drivers have one granularity */
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const vendor_code code = GPUHAL_OWN(granularity)(device, out_bytes);
    GPUHAL_OWN(leave)(&scope);
    return GPUHAL_OWN(result_of_lookup)(device, GPUHAL_VENDOR_CALL(MemGetAllocationGranularity), code);
}

/* The object of a range's memory is never read, because the pieces belong to the range. */
static gpuhal_status range_reserve(gpuhal_plugin_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                   gpuhal_plugin_range **out_range)
{
    *out_range = NULL;
    gpuhal_plugin_range *range = calloc(1, sizeof *range);
    if (!range) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    range->device = device;
    gpuhal_stream_scope scope;
    gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status == GPUHAL_OK) {
        const vendor_code code = GPUHAL_OWN(reserve)(bytes, 0, &range->reserved);
        GPUHAL_OWN(leave)(&scope);
        status = GPUHAL_OWN(result)(device, GPUHAL_VENDOR_CALL(MemAddressReserve), code);
    }
    if (status != GPUHAL_OK) {
        free(range);
        return status;
    }
    out_memory->object = range;
    out_memory->bytes = bytes;
    out_memory->address = range->reserved.address;
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    *out_range = range;
    return GPUHAL_OK;
}

static bool overlaps(const piece *one, uint64_t offset, uint64_t bytes)
{
    return offset < one->offset + one->bytes && one->offset < offset + bytes;
}

/* Called inside the context. */
static vendor_code fill_piece(const gpuhal_plugin_range *range, piece *own, gpuhal_plugin_device *const *peers,
                              uint32_t peer_count, const char **out_call)
{
    *out_call = GPUHAL_VENDOR_CALL(MemCreate);
    vendor_code code = GPUHAL_OWN(create)(range->device, own->bytes, false, &own->handle);
    if (code != GPUHAL_VENDOR_OK) {
        return code;
    }
    code = GPUHAL_OWN(map)(range->device, range->reserved.address + own->offset, own->bytes, own->handle, peers,
                           peer_count, out_call);
    if (code != GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(ignore)(GPUHAL_VENDOR(MemRelease)(own->handle));
    }
    return code;
}

static gpuhal_status range_commit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes,
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
    gpuhal_stream_scope scope;
    gpuhal_status status = GPUHAL_OWN(enter_or_report)(range->device, &scope);
    if (status == GPUHAL_OK) {
        const char *call;
        const vendor_code code = fill_piece(range, own, peers, peer_count, &call);
        status =
            code == GPUHAL_VENDOR_OK ? GPUHAL_OK : GPUHAL_OWN(allocation_failed)(range->device, call, code, bytes);
        GPUHAL_OWN(leave)(&scope);
    }
    if (status != GPUHAL_OK) {
        free(own);
        return status;
    }
    own->next = range->pieces;
    range->pieces = own;
    return GPUHAL_OK;
}

/* Called inside the context. Unmaps first, because a piece that the driver does not unmap keeps its memory and stays in
 * the list. */
static vendor_code empty_piece(const gpuhal_plugin_range *range, const piece *own, const char **out_call)
{
    const vendor_pointer at = GPUHAL_VENDOR_AT(range->reserved.address + own->offset);
    *out_call = GPUHAL_VENDOR_CALL(MemUnmap);
    const vendor_code code = GPUHAL_VENDOR(MemUnmap)(at, (size_t)own->bytes);
    if (code != GPUHAL_VENDOR_OK) {
        return code;
    }
    *out_call = GPUHAL_VENDOR_CALL(MemRelease);
    return GPUHAL_VENDOR(MemRelease)(own->handle);
}

/* Called inside the context. Removes the pieces that overlap the bytes; stops at the first piece that the driver does
 * not unmap or release. */
static vendor_code empty_pieces(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes, const char **out_call)
{
    vendor_code code = GPUHAL_VENDOR_OK;
    for (piece **link = &range->pieces; *link && code == GPUHAL_VENDOR_OK;) {
        piece *own = *link;
        if (!overlaps(own, offset, bytes)) {
            link = &own->next;
            continue;
        }
        code = empty_piece(range, own, out_call);
        if (code == GPUHAL_VENDOR_OK) {
            *link = own->next;
            free(own);
        }
    }
    return code;
}

static gpuhal_status range_decommit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    const gpuhal_host *host = range->device->host;
    for (const piece *own = range->pieces; own; own = own->next) {
        const bool inside = own->offset >= offset && own->offset + own->bytes <= offset + bytes;
        if (overlaps(own, offset, bytes) && !inside) {
            return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                GPUHAL_VENDOR_API " takes back whole pieces only, as they were committed");
        }
    }
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(range->device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *call = NULL;
    const vendor_code code = empty_pieces(range, offset, bytes, &call);
    GPUHAL_OWN(leave)(&scope);
    return GPUHAL_OWN(result)(range->device, call, code);
}

/* If the context cannot be entered, the driver frees the pieces and addresses with it, so only the plugin's records are
 * freed here. The addresses of pieces that the driver does not unmap are also freed, since no later call could free
 * them. */
static void range_release(gpuhal_plugin_range *range)
{
    gpuhal_stream_scope scope;
    if (GPUHAL_OWN(enter_to_release)(range->device, &scope) == GPUHAL_VENDOR_OK) {
        const char *call; /* failures are not reported */
        GPUHAL_OWN(ignore)(empty_pieces(range, 0, range->reserved.bytes, &call));
        GPUHAL_OWN(free_addresses)(&range->reserved);
        GPUHAL_OWN(leave)(&scope);
    }
    while (range->pieces) {
        piece *own = range->pieces;
        range->pieces = own->next;
        free(own);
    }
    free(range);
}

void GPUHAL_OWN(describe_ranges)(const gpuhal_stream_entry *entry, gpuhal_ops *ops)
{
    static const gpuhal_range_ops ranges = {
        .size = sizeof ranges,
        .version = GPUHAL_RANGES_VERSION,
        .range_granularity = range_granularity,
        .range_reserve = range_reserve,
        .range_commit = range_commit,
        .range_decommit = range_decommit,
        .range_release = range_release,
    };
    ops->ranges = entry->has_ranges ? &ranges : NULL;
}
