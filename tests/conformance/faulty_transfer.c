/* faulty_transfer.c: transfers of the misbehaving plugin. Each transfer is split into copies of contiguous rows. The
 * copies run immediately or in a queue. */
#include "../support/pattern.h"
#include "faulty.h"

#include <fenv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct row {
    unsigned char *to;
    const unsigned char *from;
    uint64_t bytes;
} row;

/* Waits long enough for the other threads of a check to reach the same point, even on a busy machine. */
static void let_others_work(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL);
}

static void through_scratch(const row *one)
{
    static unsigned char scratch[4 << 20];
    if (one->bytes > sizeof scratch) {
        memcpy(one->to, one->from, one->bytes);
        return;
    }
    memcpy(scratch, one->from, one->bytes);
    let_others_work();
    memcpy(one->to, scratch, one->bytes);
}

/* Imitates a device that copies whole blocks. The bytes after the range are read and later written back. */
static void with_neighbours(const row *one)
{
    unsigned char behind[32];
    memcpy(behind, one->to + one->bytes, sizeof behind);
    memcpy(one->to, one->from, one->bytes);
    let_others_work();
    memcpy(one->to + one->bytes, behind, sizeof behind);
}

static void move_row(const void *arguments)
{
    const row *one = arguments;
    if (is(scratch_shared) || is(scratch_of_all_openings)) {
        through_scratch(one);
    } else {
        memcpy(one->to, one->from, one->bytes);
    }
}

/* A large queued copy lasts some time, during which the queue's thread sleeps. gpuhal-check repeats copies until the
 * queued work takes long enough. */
static void move_row_later(const void *arguments)
{
    const row *one = arguments;
    if (one->bytes >= 256 << 10) {
        nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL);
    }
    move_row(one);
}

/* With `at_once`, does not wait for earlier work in the queue. */
static gpuhal_status move_early(gpuhal_plugin_queue *queue, unsigned char *to, const unsigned char *from,
                                uint64_t bytes, bool at_once)
{
    const row one = {to, from, bytes};
    if (queue != NULL && !at_once) {
        return gpuhal_faulty_enqueue(queue, move_row_later, &one, sizeof one);
    }
    move_row(&one);
    return GPUHAL_OK;
}

static gpuhal_status move(gpuhal_plugin_queue *queue, unsigned char *to, const unsigned char *from, uint64_t bytes)
{
    return move_early(queue, to, from, bytes, false);
}

static unsigned char *at(const gpuhal_memory *memory, uint64_t offset)
{
    return gpuhal_faulty_of(memory)->bytes + (is(offset_32) ? (uint32_t)offset : offset);
}

/* Returns the number of bytes that a driver copies if it stops at the end of a range's granule. Transfers of a whole
 * granule or more stay correct. */
static uint64_t before_border(const gpuhal_memory *memory, uint64_t offset, uint64_t bytes)
{
    const bool of_range = (memory->flags & GPUHAL_MEMORY_DEVICE_LOCAL) != 0;
    const uint64_t left = GRANULE - offset % GRANULE;
    return of_range && bytes < GRANULE && bytes > left ? left : bytes;
}

/* The core must align the values if the plugin reports an alignment. */
static bool aligned(uint64_t a, uint64_t b, uint64_t c)
{
    return !is(good_minimal) || ((a | b | c) & 3) == 0;
}

static gpuhal_status faulty_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    (void)device;
    if (!aligned(to_offset, from_offset, bytes)) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    if (is(copy_nothing)) {
        return GPUHAL_OK;
    }
    if (is(copy_crashes)) {
        raise(SIGSEGV);
    }
    if (is(changes_rounding)) {
        fesetround(FE_TOWARDZERO);
    }
    if (is(copy_backwards) && to->object == from->object) {
        return move(queue, at(from, from_offset), at(to, to_offset), bytes);
    }
    if ((is(copy_short) || is(copy_past_end)) && bytes > 1 && to_offset + bytes < to->bytes &&
        from_offset + bytes < from->bytes) {
        bytes = is(copy_short) ? bytes - 1 : bytes + 1;
    }
    bytes = is(copy_64k) && bytes > 65536 ? 65536 : is(size_32) ? (uint32_t)bytes : bytes;
    if (is(neighbours_rewritten) && queue == NULL && to_offset + bytes + 32 <= to->bytes) {
        with_neighbours(&(const row){at(to, to_offset), at(from, from_offset), bytes});
        return GPUHAL_OK;
    }
    bytes = is(range_copy_to_stops) ? before_border(to, to_offset, bytes) : bytes;
    bytes = is(range_copy_from_stops) ? before_border(from, from_offset, bytes) : bytes;
    if (is(scratch_of_all_openings)) {
        pthread_mutex_lock(&device->scratch);
    }
    const bool ignored =
        is(copy_from_offset) || (is(copy_from_readback) && gpuhal_faulty_of(from)->kind == GPUHAL_MEMORY_READBACK);
    gpuhal_status status =
        move(queue, at(to, is(copy_to_offset) ? 0 : to_offset), at(from, ignored ? 0 : from_offset), bytes);
    if (is(scratch_of_all_openings)) {
        pthread_mutex_unlock(&device->scratch);
    }
    return status;
}

static gpuhal_status faulty_write(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                  uint64_t offset, const void *from, uint64_t bytes)
{
    (void)device;
    if (is(write_exits)) {
        exit(3);
    }
    if (is(write_waits) && queue != NULL) {
        gpuhal_faulty_drain(queue);
    }
    if (is(write_beyond)) {
        gpuhal_faulty_read_behind(from, (unsigned)bytes);
    }
    bytes -= is(write_short) && bytes > 1;
    bytes = is(range_write_stops) ? before_border(to, offset, bytes) : bytes;
    return move_early(queue, at(to, is(write_offset) ? 0 : offset), from, bytes, is(write_at_once));
}

/* A cache of the bytes of the memory object `stale_of`, which copies do not invalidate. */
static const void *stale_of;
static unsigned char *stale;

void gpuhal_faulty_drop_stale(const void *object)
{
    stale_of = stale_of == object ? NULL : stale_of;
}

static const unsigned char *stale_bytes(const gpuhal_memory *from)
{
    if (stale_of != from->object) {
        stale = realloc(stale, from->bytes);
        memcpy(stale, at(from, 0), from->bytes);
        stale_of = from->object;
    }
    return stale;
}

static gpuhal_status faulty_read(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                 const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    if (device->lost) {
        return GPUHAL_ERROR_DEVICE_LOST;
    }
    while (is(read_hangs)) {
        pause();
    }
    if (is(read_waits) && queue != NULL) {
        gpuhal_faulty_drain(queue);
    }
    if (is(read_stale)) {
        return move(queue, to, stale_bytes(from) + offset, bytes);
    }
    bytes += is(read_past_end) && offset + bytes < from->bytes;
    bytes = is(range_read_stops) ? before_border(from, offset, bytes) : bytes;
    bytes -= is(read_short_large) && bytes >= 1048575 ? 3 : 0;
    if (is(read_long)) {
        memset((unsigned char *)to + bytes, 0, 1);
    }
    return move_early(queue, to, at(from, offset), bytes, is(read_at_once));
}

typedef struct filling {
    unsigned char *to;
    uint64_t bytes;
    uint32_t pattern, pattern_bytes;
} filling;

static void fill_now(const void *arguments)
{
    const filling *one = arguments;
    for (uint64_t i = 0; i < one->bytes; i++) {
        one->to[i] = pattern_byte(one->pattern, one->pattern_bytes, i);
    }
}

static gpuhal_status faulty_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                                 uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    (void)device;
    if (is(fill_waits) && queue != NULL) {
        gpuhal_faulty_drain(queue);
    }
    if (is(fill_aborts)) {
        abort();
    }
    bytes = is(range_fill_stops) ? before_border(memory, offset, bytes) : bytes;
    const uint64_t rounded = (bytes + 3) & ~UINT64_C(3);
    const filling one = {.to = at(memory, offset),
                         .bytes = is(fill_past_end) && offset + rounded <= memory->bytes ? rounded : bytes,
                         .pattern = pattern,
                         .pattern_bytes = is(fill_one_byte) ? 1 : pattern_bytes};
    if (queue != NULL && !is(fill_at_once)) {
        return gpuhal_faulty_enqueue(queue, fill_now, &one, sizeof one);
    }
    fill_now(&one);
    return GPUHAL_OK;
}

static unsigned char *rect_start(const gpuhal_plugin_rect *rect)
{
    if (rect->memory != NULL) {
        return at(rect->memory, rect->offset);
    }
    return (unsigned char *)rect->host + (is(rect_host_offset) ? 0 : rect->offset);
}

static gpuhal_status faulty_copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue,
                                      const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from,
                                      const uint64_t extent[3])
{
    (void)device;
    gpuhal_status status = GPUHAL_OK;
    const uint64_t to_row = is(rect_row_pitch) ? from->row_pitch : to->row_pitch;
    const bool shortened = is(rect_to_host) && to->memory == NULL && extent[1] > 1;
    const uint64_t to_slice = is(rect_slice_pitch) ? to->row_pitch * extent[1] : to->slice_pitch;
    const uint64_t narrower = to->row_pitch < from->row_pitch ? to->row_pitch : from->row_pitch;
    for (uint64_t z = 0; z < extent[2]; z++) {
        for (uint64_t y = 0; status == GPUHAL_OK && y < extent[1] - shortened; y++) {
            status = move_early(queue, rect_start(to) + z * to_slice + y * to_row,
                                rect_start(from) + z * from->slice_pitch + y * from->row_pitch,
                                is(rect_gaps) ? narrower : extent[0], is(rect_at_once));
        }
    }
    return status;
}

/* ---- peers */

static gpuhal_status faulty_peer_enable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    if (is(peer_leaks)) {
        gpuhal_faulty_lose_descriptor();
    }
    return device->index == other->index ? GPUHAL_ERROR_NOT_SUPPORTED : GPUHAL_OK;
}

static void faulty_peer_disable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    (void)device, (void)other;
}

static gpuhal_status faulty_peer_copy(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device,
                                      const gpuhal_memory *to, uint64_t to_offset, gpuhal_plugin_device *from_device,
                                      const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    (void)to_device, (void)from_device;
    if (is(peer_reversed)) {
        return move(queue, at(from, from_offset), at(to, to_offset), bytes);
    }
    bytes -= is(peer_short) && bytes > 1 ? 1 : 0;
    return move_early(queue, at(to, is(peer_offset) ? 0 : to_offset), at(from, from_offset), bytes, is(peer_at_once));
}

static const gpuhal_peer_ops peers = {
    .size = sizeof peers,
    .version = GPUHAL_PEERS_VERSION,
    .peer_enable = faulty_peer_enable,
    .peer_disable = faulty_peer_disable,
    .peer_copy = faulty_peer_copy,
};

void gpuhal_faulty_describe_transfer(gpuhal_ops *ops)
{
    ops->copy = faulty_copy;
    if (is(good_minimal)) {
        return;
    }
    ops->write = faulty_write;
    ops->read = faulty_read;
    ops->fill = faulty_fill;
    ops->copy_rect = faulty_copy_rect;
    if (is(peers_unknown)) {
        return;
    }
    ops->peers = &peers;
}
