/* transfer/move.c: the long parts of move.h. In the common case, an aligned range with a slot, a move is one plugin
 * call. The other cases are large copies, unaligned ranges, and devices that have no slot or whose slot refuses the
 * memory. */
#include "transfer/move.h"

#include "memory/buffer.h"
#include "transfer/ranges.h"
#include "transfer/staged.h"

#include <inttypes.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ---- page-locked host memory */

/* Returns the buffer that contains all of these bytes, with a reference, if the buffer is page-locked for this driver:
 * it must belong to this backend, and be of kind UPLOAD or READBACK or imported from the application. Otherwise returns
 * NULL. Memory that the application page-locked with the vendor's API is not recognized. */
static gpuhal_buffer *find_page_locked(const gpuhal_device *device, void *host, uint64_t bytes, uint64_t *out_offset)
{
    gpuhal_buffer *buffer =
        gpuhal_address_index_find(device->gpu->layers.addresses, GPUHAL_ADDRESS_HOST, (uintptr_t)host, out_offset);
    if (!buffer) {
        return NULL;
    }
    bool locked =
        buffer->device->backend == device->backend &&
        (buffer->kind == GPUHAL_MEMORY_UPLOAD || buffer->kind == GPUHAL_MEMORY_READBACK || buffer->origin.memory);
    if (locked && bytes <= buffer->bytes - *out_offset) {
        return buffer;
    }
    gpuhal_buffer_drop(buffer);
    return NULL;
}

/* Memory that is not coherent is moved by other paths, because writing to it requires the buffer's lock. The reference
 * is held only during this call: the caller must keep the host memory until queued work has ended. */
gpuhal_status gpuhal_move_locked(gpuhal_plugin_queue *queue, gpuhal_direction direction, gpuhal_device *device,
                                 const gpuhal_memory *memory, uint64_t offset, void *host, uint64_t bytes)
{
    uint64_t at = 0;
    const bool writes = direction == GPUHAL_TO_DEVICE;
    gpuhal_buffer *locked = find_page_locked(device, host, bytes, &at);
    if (!locked) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_status status = GPUHAL_ERROR_NOT_SUPPORTED;
    const bool suits = locked->device == device && !locked->needs_clean && (writes || !locked->read_only);
    if (suits && ((at | offset | bytes) & device->copy_mask) == 0) {
        status = writes ? gpuhal_slot_copy(device, queue, memory, offset, &locked->memory, at, bytes)
                        : gpuhal_slot_copy(device, queue, &locked->memory, at, memory, offset, bytes);
        if (status && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY) {
            status = gpuhal_device_failed(device, status, "copying %" PRIu64 " bytes", bytes);
        }
    }
    gpuhal_buffer_drop(locked);
    return status;
}

/* ---- staging */

/* Returns whether the range is larger than all chunks of the pool together: then a check for faster paths pays off,
 * because an address lookup takes little time in comparison. Ranges of up to 1 MiB are not checked, because
 * gpuhal_move() passes them directly to the slot. */
static bool is_large(const gpuhal_device *device, uint64_t bytes)
{
    return __builtin_expect(bytes > device->gpu->settings.staging_limit_bytes, 0);
}

/* Returns whether staging in the library is probably faster than the slot, from the device's facts and the location of
 * the bytes. For pageable memory, the driver stages with a single thread, but the library uses several threads while a
 * GPU with separate memory copies. Returns false if the host can access the device memory, and for host
 * memory that the library knows to be page-locked. */
static bool is_quicker_staged(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                              void *host, uint64_t bytes)
{
    const gpuhal_facts *facts = &device->listed->facts;
    uint64_t at;
    if (!gpuhal_staging_has_engine(device) || gpuhal_facts_u64(facts, GPUHAL_FACT_TYPE, 0) != GPUHAL_DEVICE_GPU ||
        gpuhal_facts_u64(facts, GPUHAL_FACT_PAGEABLE_ACCESS, 0) != 1 ||
        gpuhal_facts_u64(facts, GPUHAL_FACT_UNIFIED_MEMORY, 0) != 0 || memory->host ||
        !gpuhal_staging_has_memory(device, direction)) {
        return false;
    }
    gpuhal_buffer *locked = find_page_locked(device, host, bytes, &at);
    gpuhal_buffer_drop(locked);
    return !locked;
}

/* Measured (docs/measurements): in copies much larger than the caches, non-temporal stores are 1.3 to 1.5 times as fast
 * as ordinary stores, because the CPU does not read the destination first. Non-temporal stores need a destination
 * aligned to 16 bytes, and are not ordered with other stores. Without the fence the device or another thread could read
 * the memory before it contains the bytes. */
static void copy_past_caches(char *to, const char *from, uint64_t bytes)
{
#if defined(__SSE2__)
    uint64_t head = (0 - (uint64_t)(uintptr_t)to) & 15;
    head = head < bytes ? head : bytes;
    memcpy(to, from, (size_t)head);
    uint64_t done = head;
    for (; bytes - done >= 64; done += 64) {
        const __m128i *source = (const __m128i *)(const void *)(from + done);
        __m128i *target = (__m128i *)(void *)(to + done);
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1), c = _mm_loadu_si128(source + 2),
                      d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    _mm_sfence();
    memcpy(to + done, from + done, (size_t)(bytes - done));
#else
    memcpy(to, from, (size_t)bytes);
#endif
}

typedef struct host_side {
    char *bytes; /* only read in direction TO_DEVICE */
    gpuhal_direction direction;
    bool past_caches;
} host_side;

static gpuhal_status move_piece(void *user, void *chunk, uint64_t done, uint64_t bytes)
{
    const host_side *host = user;
    const bool writes = host->direction == GPUHAL_TO_DEVICE;
    char *to = writes ? chunk : host->bytes + done;
    const char *from = writes ? host->bytes + done : chunk;
    if (host->past_caches) {
        copy_past_caches(to, from, bytes);
    } else {
        memcpy(to, from, (size_t)bytes);
    }
    return GPUHAL_OK;
}

/* Moves directly if gpuhal_move_locked() can, otherwise through staging memory. In direction TO_DEVICE, offset and size
 * must be aligned. Returns NOT_SUPPORTED if neither way is possible. */
static gpuhal_status move_staged(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                 uint64_t offset, void *host, uint64_t bytes)
{
    gpuhal_status status = gpuhal_move_locked(NULL, direction, device, memory, offset, host, bytes);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        return status;
    }
    if (!gpuhal_staging_has_memory(device, direction)) {
        return gpuhal_slot_no_way(device, direction);
    }
    host_side side = {host, direction, is_large(device, bytes)};
    return gpuhal_staged_run(&(gpuhal_staged_copy){
        .device = device,
        .direction = direction,
        .memory = memory,
        .offset = offset,
        .bytes = bytes,
        .move = move_piece,
        .user = &side,
    });
}

/* ---- the rule */

/* Moves with the slot, or through staging memory if that is faster. Offset and size must be aligned. Falls back to the
 * slot if staging memory runs out, even after some bytes were moved: moving these bytes twice does no harm. */
static gpuhal_status move_quickly(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                  uint64_t offset, void *host, uint64_t bytes)
{
    if (is_large(device, bytes) &&
        (direction == GPUHAL_TO_DEVICE ? device->ops.write != NULL : device->ops.read != NULL) &&
        is_quicker_staged(direction, device, memory, host, bytes)) {
        gpuhal_status status = move_staged(direction, device, memory, offset, host, bytes);
        if (status != GPUHAL_ERROR_OUT_OF_MEMORY && status != GPUHAL_ERROR_HOST_MEMORY) {
            return status;
        }
    }
    return gpuhal_slot_move(direction, device, memory, offset, host, bytes);
}

gpuhal_status gpuhal_move_try(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                              uint64_t offset, void *host, uint64_t bytes)
{
    return gpuhal_is_aligned(device, offset, bytes) ? move_quickly(direction, device, memory, offset, host, bytes)
                                                    : GPUHAL_NOT_READY;
}

static gpuhal_status move_whole_blocks(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                       uint64_t offset, void *host, uint64_t bytes)
{
    gpuhal_status status = move_quickly(direction, device, memory, offset, host, bytes);
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? move_staged(direction, device, memory, offset, host, bytes) : status;
}

/* Device memory of any offset can be read into chunks, so reading needs no slot for unaligned ends. */
static gpuhal_status move_without_slot(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                                       uint64_t offset, void *host, uint64_t bytes)
{
    const bool writes = direction == GPUHAL_TO_DEVICE;
    if (gpuhal_host_writes(memory)) {
        char *seen = (char *)memory->host + offset;
        memcpy(writes ? seen : host, writes ? host : seen, (size_t)bytes);
        return GPUHAL_OK;
    }
    return gpuhal_is_aligned(device, offset, bytes) || (!writes && !device->ops.read)
               ? move_staged(direction, device, memory, offset, host, bytes)
               : gpuhal_slot_move_blocks(direction, device, memory, offset, host, bytes, move_whole_blocks);
}

gpuhal_status gpuhal_move_any(gpuhal_direction direction, gpuhal_device *device, const gpuhal_memory *memory,
                              uint64_t offset, void *host, uint64_t bytes)
{
    gpuhal_status status = gpuhal_is_aligned(device, offset, bytes)
                               ? move_quickly(direction, device, memory, offset, host, bytes)
                               : GPUHAL_ERROR_NOT_SUPPORTED;
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? move_without_slot(direction, device, memory, offset, host, bytes)
                                                : status;
}

gpuhal_status gpuhal_move_after(gpuhal_status status, gpuhal_direction direction, gpuhal_device *device,
                                const gpuhal_memory *memory, uint64_t offset, void *host, uint64_t bytes)
{
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? move_without_slot(direction, device, memory, offset, host, bytes)
                                                : gpuhal_slot_result(direction, device, status, bytes);
}
