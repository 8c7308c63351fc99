/* transfer/copy.c: the long parts of copy.h, and the choice of the best path between two devices. */
#include "transfer/copy.h"

#include "base/error.h"
#include "memory/cached_import.h"
#include "transfer/peer.h"
#include "transfer/staged.h"

#include <inttypes.h>
#include <stdlib.h>

/* Maximum number of bytes in host memory at a time during an unaligned copy within a device. */
#define BOUNCE_BYTES (256u << 10)

gpuhal_status gpuhal_range_outside(const gpuhal_device *device, uint64_t size, uint64_t offset, uint64_t bytes)
{
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE,
                     "%s: %" PRIu64 " bytes from offset %" PRIu64 " on are outside the buffer of %" PRIu64 " bytes",
                     device->id, bytes, offset, size);
    gpuhal_error_add_device(device->candidate->name, device->id);
    return GPUHAL_ERROR_OUT_OF_RANGE;
}

gpuhal_status gpuhal_range_error(const gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return gpuhal_range_outside(buffer->device, buffer->bytes, offset, bytes);
}

/* ---- device memory */

gpuhal_status gpuhal_memory_copy_bounced(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                         const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    const uint64_t most = bytes < BOUNCE_BYTES ? bytes : BOUNCE_BYTES;
    void *bounce = malloc((size_t)most);
    if (!bounce) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = GPUHAL_OK;
    for (uint64_t done = 0; done < bytes && !status;) {
        uint64_t piece = bytes - done < most ? bytes - done : most;
        status = gpuhal_move(GPUHAL_FROM_DEVICE, device, from, from_offset + done, bounce, piece);
        status = status ? status : gpuhal_move(GPUHAL_TO_DEVICE, device, to, to_offset + done, bounce, piece);
        done += piece;
    }
    free(bounce);
    return status;
}

gpuhal_status gpuhal_memory_copy_large(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                       const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    gpuhal_status status = gpuhal_slot_copy(device, NULL, to, to_offset, from, from_offset, bytes);
    return status ? gpuhal_memory_copy_failed(device, status, bytes) : GPUHAL_OK;
}

/* Also checks whether the watchdog abandoned the device during the plugin's call, because the result of such a call is
 * ignored. */
gpuhal_status gpuhal_memory_copy_failed(gpuhal_device *device, gpuhal_status status, uint64_t bytes)
{
    bool late = atomic_load_explicit(&device->lost, memory_order_relaxed) == GPUHAL_LOST_HUNG;
    status = late ? gpuhal_device_late() : status;
    return status ? gpuhal_device_failed(device, status, "copying %" PRIu64 " bytes", bytes) : GPUHAL_OK;
}

typedef struct destination {
    gpuhal_device *device;
    const gpuhal_memory *memory;
    uint64_t offset;
} destination;

static gpuhal_status write_piece(void *user, void *chunk, uint64_t done, uint64_t bytes)
{
    const destination *to = user;
    return gpuhal_move(GPUHAL_TO_DEVICE, to->device, to->memory, to->offset + done, chunk, bytes);
}

/* The same thread reads and writes a piece. Two pieces must not share an alignment block of the destination, because
 * such a block is read, modified and written back. So all pieces but the first begin at page boundaries of the
 * destination. If the alignment blocks are larger than a page, pieces are moved one after the other. */
gpuhal_status gpuhal_memory_copy_between(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset,
                                         gpuhal_device *from_device, const gpuhal_memory *from, uint64_t from_offset,
                                         uint64_t bytes)
{
    destination target = {to_device, to, to_offset};
    return gpuhal_staged_run(&(gpuhal_staged_copy){
        .device = from_device,
        .direction = GPUHAL_FROM_DEVICE,
        .memory = from,
        .offset = from_offset,
        .bytes = bytes,
        .phase = to_offset,
        .move = write_piece,
        .user = &target,
        .in_order = to_device->copy_mask >= GPUHAL_STAGED_PAGE_BYTES,
    });
}

/* ---- buffers of two devices */

typedef enum {
    WAY_PEER,        /* over a usable link between the two devices */
    WAY_WRITE,       /* the destination's device writes from the source's host address, or the host copies */
    WAY_READ,        /* the source's device reads into the destination's host address */
    WAY_IMPORT_FROM, /* the destination's device imports the source's host memory and copies */
    WAY_IMPORT_TO,   /* the source's device imports the destination's host memory and copies */
    WAY_STAGED
} way;

/* Returns the best path through host memory. Writing and reading are preferred, because they need no preparation. The
 * flags of refusing slots are read with relaxed order: a thread that misses a flag makes a call that is refused, and
 * then continues. */
static way way_through_host(const gpuhal_buffer *to, const gpuhal_buffer *from)
{
    bool readable = gpuhal_host_reads(&from->memory), writable = gpuhal_host_writes(&to->memory);
    bool writes = to->device->ops.write && !atomic_load_explicit(&to->refuses_write, memory_order_relaxed);
    bool reads = from->device->ops.read && !atomic_load_explicit(&from->refuses_read, memory_order_relaxed);
    return readable && (writes || writable)                              ? WAY_WRITE
           : writable && reads                                           ? WAY_READ
           : readable && gpuhal_cached_import_possible(from, to->device) ? WAY_IMPORT_FROM
           : writable && gpuhal_cached_import_possible(to, from->device) ? WAY_IMPORT_TO
                                                                         : WAY_STAGED;
}

/* Chooses the path from the facts known so far. gpuhal_copy_path() also calls this function. */
static way way_between(const gpuhal_buffer *to, const gpuhal_buffer *from)
{
    bool peers = gpuhal_peer_usable(to->device, from->device) && gpuhal_peer_suits(to, from);
    return peers ? WAY_PEER : way_through_host(to, from);
}

static gpuhal_path path_of(way chosen)
{
    return chosen == WAY_PEER ? GPUHAL_PATH_PEER : chosen == WAY_STAGED ? GPUHAL_PATH_STAGED : GPUHAL_PATH_SHARED;
}

static gpuhal_path path_between(const gpuhal_buffer *to, const gpuhal_buffer *from)
{
    return to->device == from->device ? GPUHAL_PATH_NATIVE : path_of(way_between(to, from));
}

/* Copies if no other path could. Uses the host address of one side if possible, otherwise moves both sides through
 * staging. */
static gpuhal_status cross_staged(const gpuhal_buffer_copy *c)
{
    gpuhal_buffer *to = c->to, *from = c->from;
    if (gpuhal_host_reads(&from->memory)) {
        char *source = (char *)from->memory.host + c->from_offset;
        return gpuhal_move(GPUHAL_TO_DEVICE, to->device, &to->memory, c->to_offset, source, c->bytes);
    }
    if (gpuhal_host_writes(&to->memory)) {
        return gpuhal_move(GPUHAL_FROM_DEVICE, from->device, &from->memory, c->from_offset,
                           (char *)to->memory.host + c->to_offset, c->bytes);
    }
    return gpuhal_memory_copy_between(to->device, &to->memory, c->to_offset, from->device, &from->memory,
                                      c->from_offset, c->bytes);
}

/* Makes one copy between the plugin's own memory and a cached import. If the import cannot be used, sets *out_done to
 * false, and returns no error. If the import is not coherent, flushes before the device reads, and invalidates after
 * the device wrote. In the opposite order the copy would read stale bytes, or stale host bytes would hide the new
 * bytes. */
static gpuhal_status cross_by_import(const gpuhal_buffer_copy *c, bool source_is_imported, bool *out_done)
{
    gpuhal_buffer *imported = source_is_imported ? c->from : c->to;
    gpuhal_device *device = source_is_imported ? c->to->device : c->from->device;
    uint64_t offset = 0;
    const gpuhal_memory *import = gpuhal_cached_import_get(imported, device, &offset);
    offset += source_is_imported ? c->from_offset : c->to_offset;
    uint64_t other_offset = source_is_imported ? c->to_offset : c->from_offset;
    *out_done = import && ((offset | other_offset | c->bytes) & device->copy_mask) == 0;
    if (!*out_done) {
        return GPUHAL_OK;
    }
    bool clean = !(import->flags & GPUHAL_MEMORY_HOST_COHERENT) && device->ops.memory_flush;
    gpuhal_status status = GPUHAL_OK;
    if (source_is_imported) {
        status = clean ? gpuhal_memory_clean(device, import, offset, c->bytes, false) : GPUHAL_OK;
        status =
            status ? status : gpuhal_slot_copy(device, NULL, &c->to->memory, c->to_offset, import, offset, c->bytes);
    } else {
        status = gpuhal_slot_copy(device, NULL, import, offset, &c->from->memory, c->from_offset, c->bytes);
        status = status || !clean ? status : gpuhal_memory_clean(device, import, offset, c->bytes, true);
    }
    return status ? gpuhal_memory_copy_failed(device, status, c->bytes) : GPUHAL_OK;
}

/* Uses the slot of one side. If the slot refuses the memory, it is not tried again for this memory. If only the range
 * does not fit, other ranges are still tried. */
static gpuhal_status cross_directly(const gpuhal_buffer_copy *c, bool by_writing, bool *out_done)
{
    gpuhal_buffer *to = c->to, *from = c->from;
    gpuhal_status status = by_writing ? gpuhal_move_try(GPUHAL_TO_DEVICE, to->device, &to->memory, c->to_offset,
                                                        (char *)from->memory.host + c->from_offset, c->bytes)
                                      : gpuhal_move_try(GPUHAL_FROM_DEVICE, from->device, &from->memory, c->from_offset,
                                                        (char *)to->memory.host + c->to_offset, c->bytes);
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        atomic_store(by_writing ? &to->refuses_write : &from->refuses_read, true);
    }
    *out_done = status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY;
    return *out_done ? status : GPUHAL_OK;
}

static gpuhal_status cross_by_peer(const gpuhal_buffer_copy *c, bool *out_done)
{
    gpuhal_device *to = c->to->device, *from = c->from->device;
    if ((c->to_offset | c->from_offset | c->bytes) & (to->copy_mask | from->copy_mask)) {
        return GPUHAL_OK;
    }
    gpuhal_status status =
        gpuhal_peer_copy_blocking(to, &c->to->memory, c->to_offset, from, &c->from->memory, c->from_offset, c->bytes);
    *out_done = status != GPUHAL_ERROR_NOT_SUPPORTED;
    return *out_done ? status : GPUHAL_OK;
}

/* If a path turns out to be unavailable, the next best path is used. Staging is the last path and always available.
 * Each step only moves down the list of paths, so paths that become unavailable in the meantime cannot cause a loop. A
 * refused path has had no side effect. */
gpuhal_status gpuhal_copy_between_devices(const gpuhal_buffer_copy *c)
{
    gpuhal_status status = gpuhal_device_check(c->from->device);
    if (status) {
        return status;
    }
    bool done = false;
    uint64_t begin_ns = gpuhal_count_from(c->bytes);
    if (gpuhal_peer_suits(c->to, c->from)) {
        gpuhal_peer_find_out(c->to->device, c->from->device);
    }
    way chosen = way_between(c->to, c->from);
    if (chosen == WAY_PEER) {
        status = cross_by_peer(c, &done);
        chosen = done ? chosen : way_through_host(c->to, c->from);
    }
    if (chosen == WAY_WRITE || chosen == WAY_READ) {
        status = cross_directly(c, chosen == WAY_WRITE, &done);
        chosen = done ? chosen : way_through_host(c->to, c->from);
    }
    if (!done && (chosen == WAY_IMPORT_FROM || chosen == WAY_IMPORT_TO)) {
        status = cross_by_import(c, chosen == WAY_IMPORT_FROM, &done);
    }
    if (!done) {
        chosen = WAY_STAGED;
        status = cross_staged(c);
    }
    if (!status) {
        gpuhal_count(&gpuhal_link_between(c->from->device, c->to->device)->traffic[path_of(chosen)], c->bytes,
                     begin_ns);
    }
    return status;
}

gpuhal_status gpuhal_copy_timed(const gpuhal_buffer_copy *c)
{
    uint64_t begin_ns = gpuhal_os_monotonic_ns();
    gpuhal_status status =
        gpuhal_memory_copy(c->to->device, &c->to->memory, c->to_offset, &c->from->memory, c->from_offset, c->bytes);
    if (!status) {
        gpuhal_count(&c->to->device->copied, c->bytes, begin_ns);
    }
    return status;
}

/* Overlap is refused on all devices because some drivers refuse it: OpenCL returns CL_MEM_COPY_OVERLAP, and Vulkan
 * forbids overlap. Both ranges have the same size, so comparing the distance between their beginnings with the size is
 * enough, and no sum can overflow. */
gpuhal_status gpuhal_copy_check_pair(const gpuhal_buffer_copy *copy)
{
    if (copy->to->device->gpu != copy->from->device->gpu) {
        return gpuhal_two_objects("gpuhal_copy", "the buffers", copy->to->device->gpu, copy->from->device->gpu);
    }
    uint64_t one = copy->to_offset, other = copy->from_offset;
    if ((one > other ? one - other : other - one) < copy->bytes) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_copy: source and destination overlap in one piece of memory");
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_write_blocking(gpuhal_buffer *to, uint64_t to_offset, const void *from, uint64_t bytes)
{
    return gpuhal_write_now(to, to_offset, from, bytes);
}

gpuhal_status gpuhal_read_blocking(void *to, gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    return gpuhal_read_now(to, from, from_offset, bytes);
}

gpuhal_status gpuhal_copy_blocking(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset,
                                   uint64_t bytes)
{
    return gpuhal_copy_now(to, to_offset, from, from_offset, bytes);
}

const char *gpuhal_path_name(gpuhal_path path)
{
    static const char names[][8] = {"unknown", "native", "peer", "shared", "staged"};
    return names[path < sizeof names / sizeof *names ? path : 0];
}

gpuhal_status gpuhal_copy_path(const gpuhal_buffer *to, const gpuhal_buffer *from, gpuhal_path *out_path)
{
    if (!to || !from || !out_path) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_copy_path: an argument is NULL");
    }
    *out_path = 0;
    if (to->device->gpu != from->device->gpu) {
        return gpuhal_two_objects("gpuhal_copy_path", "the buffers", to->device->gpu, from->device->gpu);
    }
    gpuhal_status status = gpuhal_check(to->device->gpu);
    *out_path = status ? 0 : path_between(to->whole, from->whole);
    return status;
}
