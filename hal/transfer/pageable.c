/* transfer/pageable.c: see pageable.h. */
#include "transfer/pageable.h"

#include "memory/buffer.h"
#include "transfer/ring.h"

#include <inttypes.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The buffer in which all of these bytes lie and which is page-locked for this driver, as far as the library knows:
 * made by this backend for staging, or imported from the application. With a reference; NULL for none. Memory that the
 * application page-locked by the vendor's own calls is not recognised. */
static gpuhal_buffer *find_page_locked(const gpuhal_device *device, const void *host, uint64_t bytes,
                                       uint64_t *out_offset)
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

static bool is_page_locked(const gpuhal_device *device, const void *host, uint64_t bytes)
{
    uint64_t offset = 0;
    gpuhal_buffer *buffer = find_page_locked(device, host, bytes, &offset);
    gpuhal_buffer_drop(buffer);
    return buffer != NULL;
}

/* Memory that is not coherent is left to staging: writing to it takes the buffer's lock. The reference lasts for this
 * call alone: until work on a queue has ended the caller keeps the host memory, as always. */
gpuhal_status gpuhal_locked_copy(gpuhal_device *device, gpuhal_plugin_queue *queue, const gpuhal_locked_move *move)
{
    uint64_t offset = 0;
    const bool writes = move->direction == GPUHAL_STAGING_TO_DEVICE;
    gpuhal_buffer *locked = find_page_locked(device, move->host, move->bytes, &offset);
    if (!locked) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_status status = GPUHAL_ERROR_NOT_SUPPORTED;
    const bool suits = locked->device == device && !locked->needs_clean && (writes || !locked->read_only);
    if (suits && ((offset | move->offset | move->bytes) & device->copy_mask) == 0) {
        const gpuhal_call call = gpuhal_call_blocking(device, move->bytes);
        status = writes ? device->ops.copy(device->handle, queue, move->memory, move->offset, &locked->memory, offset,
                                           move->bytes)
                        : device->ops.copy(device->handle, queue, &locked->memory, offset, move->memory, move->offset,
                                           move->bytes);
        status = gpuhal_device_result(device, call, status);
        if (status && status != GPUHAL_ERROR_NOT_SUPPORTED && status != GPUHAL_NOT_READY) {
            status = gpuhal_device_failed(device, status, "copying %" PRIu64 " bytes", move->bytes);
        }
    }
    gpuhal_buffer_drop(locked);
    return status;
}

bool gpuhal_pageable_is_possible(gpuhal_device *device, gpuhal_staging_direction direction, const gpuhal_memory *memory,
                                 const void *host, uint64_t bytes)
{
    return !memory->host && gpuhal_chunk_has_memory(device, direction) && !is_page_locked(device, host, bytes);
}

bool gpuhal_pageable_is_quicker(const gpuhal_device *device)
{
    const gpuhal_facts *facts = &device->listed->facts;
    return gpuhal_chunk_has_engine(device) && gpuhal_facts_u64(facts, GPUHAL_FACT_TYPE, 0) == GPUHAL_DEVICE_GPU &&
           gpuhal_facts_u64(facts, GPUHAL_FACT_PAGEABLE_ACCESS, 0) == 1 &&
           gpuhal_facts_u64(facts, GPUHAL_FACT_UNIFIED_MEMORY, 0) == 0;
}

/* Measured (docs/measurements): of copies much larger than the caches, what is written past the caches arrives 1.3 to
 * 1.5 times as fast, since the destination need not be read first. Such stores need a destination at a multiple of 16
 * bytes, and come in no order with others: without the fence the device, or another thread, could be given bytes that
 * are not in memory yet. */
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

/* The host's side of a copy. */
typedef struct host_side {
    char *to;
    const char *from;
    bool past_caches;
} host_side;

static void copy_piece(const host_side *host, char *to, const char *from, uint64_t bytes)
{
    if (host->past_caches) {
        copy_past_caches(to, from, bytes);
    } else {
        memcpy(to, from, (size_t)bytes);
    }
}

static gpuhal_status fill_chunk(void *user, void *chunk, uint64_t done, uint64_t bytes)
{
    const host_side *host = user;
    copy_piece(host, chunk, host->from + done, bytes);
    return GPUHAL_OK;
}

static gpuhal_status take_chunk(void *user, void *chunk, uint64_t done, uint64_t bytes)
{
    const host_side *host = user;
    copy_piece(host, host->to + done, chunk, bytes);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_pageable_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                    const void *from, uint64_t bytes)
{
    const gpuhal_locked_move move = {GPUHAL_STAGING_TO_DEVICE, to, to_offset, from, bytes};
    gpuhal_status status = gpuhal_locked_copy(device, NULL, &move);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        return status;
    }
    if (!gpuhal_chunk_has_memory(device, GPUHAL_STAGING_TO_DEVICE)) {
        return gpuhal_slot_no_way(device, GPUHAL_STAGING_TO_DEVICE);
    }
    host_side host = {.from = from, .past_caches = gpuhal_pageable_is_large(device, bytes)};
    return gpuhal_ring_run(&(gpuhal_ring_copy){
        .device = device,
        .direction = GPUHAL_STAGING_TO_DEVICE,
        .memory = to,
        .offset = to_offset,
        .bytes = bytes,
        .move = fill_chunk,
        .user = &host,
    });
}

gpuhal_status gpuhal_pageable_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                   uint64_t bytes)
{
    const gpuhal_locked_move move = {GPUHAL_STAGING_FROM_DEVICE, from, from_offset, to, bytes};
    gpuhal_status status = gpuhal_locked_copy(device, NULL, &move);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        return status;
    }
    if (!gpuhal_chunk_has_memory(device, GPUHAL_STAGING_FROM_DEVICE)) {
        return gpuhal_slot_no_way(device, GPUHAL_STAGING_FROM_DEVICE);
    }
    host_side host = {.to = to, .past_caches = gpuhal_pageable_is_large(device, bytes)};
    return gpuhal_ring_run(&(gpuhal_ring_copy){
        .device = device,
        .direction = GPUHAL_STAGING_FROM_DEVICE,
        .memory = from,
        .offset = from_offset,
        .bytes = bytes,
        .move = take_chunk,
        .user = &host,
    });
}
