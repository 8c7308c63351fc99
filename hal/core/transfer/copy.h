/* transfer/copy.h: blocking transfers between host memory and buffers, and between two buffers.
 *
 * The path to the plugin's function is deliberately short: it takes no lock, allocates nothing, and does not read the
 * clock below 64 KiB. It is inline; copy.c contains the long parts. */
#ifndef GPUHAL_TRANSFER_COPY_H
#define GPUHAL_TRANSFER_COPY_H

#include "memory/buffer.h"
#include "transfer/account.h"
#include "transfer/move.h"
#include "transfer/ranges.h"

/* The long parts of gpuhal_memory_copy(), which copies within the memory of one device, at any offsets. The first
 * function copies unaligned ranges through host memory; the second calls the plugin. */
gpuhal_status gpuhal_memory_copy_bounced(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                         const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);
gpuhal_status gpuhal_memory_copy_large(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                       const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);
/* Sets the error detail for the plugin's failure. If the watchdog abandoned the device in the meantime, returns
 * DEVICE_LOST. */
gpuhal_status gpuhal_memory_copy_failed(gpuhal_device *device, gpuhal_status status, uint64_t bytes);

static inline gpuhal_status gpuhal_memory_copy(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                               const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    if (__builtin_expect(((to_offset | from_offset | bytes) & device->copy_mask) != 0, 0)) {
        return gpuhal_memory_copy_bounced(device, to, to_offset, from, from_offset, bytes);
    }
    if (__builtin_expect(bytes > GPUHAL_CALL_SMALL_BYTES, 0)) {
        return gpuhal_memory_copy_large(device, to, to_offset, from, from_offset, bytes);
    }
    const gpuhal_call call = gpuhal_call_small(device);
    gpuhal_status status = device->ops.copy(device->handle, NULL, to, to_offset, from, from_offset, bytes);
    gpuhal_call_end(call);
    int32_t lost = (int32_t)atomic_load_explicit(&device->lost, memory_order_relaxed);
    return __builtin_expect((status | lost) != 0, 0) ? gpuhal_memory_copy_failed(device, status, bytes) : GPUHAL_OK;
}

/* Copies between two devices that cannot access each other's memory, at any offsets, through staging chunks of the
 * source's pool; reading and writing overlap. The ranges must have been checked. The devices must be open and
 * different. */
gpuhal_status gpuhal_memory_copy_between(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset,
                                         gpuhal_device *from_device, const gpuhal_memory *from, uint64_t from_offset,
                                         uint64_t bytes);

typedef struct gpuhal_buffer_copy {
    gpuhal_buffer *to, *from;
    uint64_t to_offset, from_offset, bytes;
} gpuhal_buffer_copy;

/* Sets the error detail and returns INVALID_ARGUMENT if the buffers belong to different gpuhal objects, or the ranges
 * overlap in the same memory. */
gpuhal_status gpuhal_copy_check_pair(const gpuhal_buffer_copy *copy);
/* The long parts of gpuhal_copy_now(). */
gpuhal_status gpuhal_copy_timed(const gpuhal_buffer_copy *copy);
gpuhal_status gpuhal_copy_between_devices(const gpuhal_buffer_copy *copy);

static inline gpuhal_status gpuhal_copy_check(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from,
                                              uint64_t from_offset, uint64_t bytes)
{
    gpuhal_status status = gpuhal_range_check_written(to, to_offset, bytes);
    if (status) {
        return status;
    }
    if (__builtin_expect(from_offset > from->bytes || bytes > from->bytes - from_offset, 0)) {
        return gpuhal_range_error(from, from_offset, bytes);
    }
    bool separate = to->device->gpu == from->device->gpu && to->root != from->root;
    return __builtin_expect(separate, 1)
               ? GPUHAL_OK
               : gpuhal_copy_check_pair(&(gpuhal_buffer_copy){to, from, to->begin + to_offset,
                                                              from->begin + from_offset, bytes});
}

/* Implement complete transfers for the public calls. They are always_inline because GCC moves parts out of line if a
 * file has more than one caller. */
static inline __attribute__((always_inline)) gpuhal_status gpuhal_write_now(gpuhal_buffer *to, uint64_t to_offset,
                                                                            const void *from, uint64_t bytes)
{
    gpuhal_status status = gpuhal_range_check_written(to, to_offset, bytes);
    if (status || bytes == 0) {
        return status;
    }
    uint64_t begin_ns = gpuhal_count_from(bytes);
    to_offset += to->begin;
    to = to->whole;
    status = gpuhal_buffer_enter(to, true);
    if (!status) {
        status = gpuhal_move(GPUHAL_TO_DEVICE, to->device, &to->memory, to_offset, (void *)(uintptr_t)from, bytes);
        status = status ? status : gpuhal_buffer_written(to, to_offset, bytes);
        gpuhal_buffer_leave(to, true);
    }
    if (!status) {
        gpuhal_count(&to->device->written, bytes, begin_ns);
    }
    return status;
}

static inline __attribute__((always_inline)) gpuhal_status gpuhal_read_now(void *to, gpuhal_buffer *from,
                                                                           uint64_t from_offset, uint64_t bytes)
{
    gpuhal_status status = gpuhal_range_check(from, from_offset, bytes);
    if (status || bytes == 0) {
        return status;
    }
    uint64_t begin_ns = gpuhal_count_from(bytes);
    from_offset += from->begin;
    from = from->whole;
    status = gpuhal_buffer_enter(from, false);
    if (!status) {
        status = gpuhal_move(GPUHAL_FROM_DEVICE, from->device, &from->memory, from_offset, to, bytes);
        gpuhal_buffer_leave(from, false);
    }
    if (!status) {
        gpuhal_count(&from->device->read, bytes, begin_ns);
    }
    return status;
}

static inline gpuhal_status gpuhal_copy_inside(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from,
                                               uint64_t from_offset, uint64_t bytes)
{
    if (bytes >= GPUHAL_TIMED_FROM_BYTES) {
        return gpuhal_copy_timed(&(gpuhal_buffer_copy){to, from, to_offset, from_offset, bytes});
    }
    gpuhal_status status = gpuhal_memory_copy(to->device, &to->memory, to_offset, &from->memory, from_offset, bytes);
    if (!status) {
        gpuhal_count(&to->device->copied, bytes, 0);
    }
    return status;
}

static inline __attribute__((always_inline)) gpuhal_status
gpuhal_copy_now(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes)
{
    gpuhal_status status = gpuhal_copy_check(to, to_offset, from, from_offset, bytes);
    if (status || bytes == 0) {
        return status;
    }
    to_offset += to->begin, from_offset += from->begin;
    to = to->whole, from = from->whole;
    status = gpuhal_buffer_enter(to, true);
    if (status) {
        return status;
    }
    status = gpuhal_buffer_enter(from, false);
    if (!status) {
        status = to->device == from->device
                     ? gpuhal_copy_inside(to, to_offset, from, from_offset, bytes)
                     : gpuhal_copy_between_devices(&(gpuhal_buffer_copy){to, from, to_offset, from_offset, bytes});
        status = status ? status : gpuhal_buffer_written(to, to_offset, bytes);
        gpuhal_buffer_leave(from, false);
    }
    gpuhal_buffer_leave(to, true);
    return status;
}

/* Out-of-line versions for all other callers. */
gpuhal_status gpuhal_write_blocking(gpuhal_buffer *to, uint64_t to_offset, const void *from, uint64_t bytes);
gpuhal_status gpuhal_read_blocking(void *to, gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes);
gpuhal_status gpuhal_copy_blocking(gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset,
                                   uint64_t bytes);
/* In fill.c. The pattern has 1, 2 or 4 bytes, and `bytes` must be a multiple of the pattern's size. */
gpuhal_status gpuhal_fill_blocking(gpuhal_buffer *to, uint64_t to_offset, uint64_t bytes, uint32_t pattern,
                                   uint32_t pattern_bytes);

#endif
