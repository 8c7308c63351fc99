/* faulty_transfer.c: transfers of the misbehaving plugin. Each becomes moves of plain rows, done at once or handed to a queue. */
#include "faulty.h"

#include <fenv.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct row {
    unsigned char *to;
    const unsigned char *from;
    uint64_t bytes;
} row;

static void through_scratch(const row *one)
{
    static unsigned char scratch[4 << 20];
    if (one->bytes > sizeof scratch) {
        memcpy(one->to, one->from, one->bytes);
        return;
    }
    memcpy(scratch, one->from, one->bytes);
    for (int i = 0; i < 4; i++) {
        sched_yield();
    }
    memcpy(one->to, scratch, one->bytes);
}

static void move_row(const void *arguments)
{
    const row *one = arguments;
    if (is(scratch_shared)) {
        through_scratch(one);
    } else {
        memcpy(one->to, one->from, one->bytes);
    }
}

static gpuhal_status move(gpuhal_plugin_queue *queue, unsigned char *to, const unsigned char *from, uint64_t bytes)
{
    const row one = {to, from, bytes};
    if (queue != NULL) {
        return gpuhal_faulty_enqueue(queue, move_row, &one, sizeof one);
    }
    move_row(&one);
    return GPUHAL_OK;
}

static unsigned char *at(const gpuhal_memory *memory, uint64_t offset)
{
    return gpuhal_faulty_of(memory)->bytes + (is(offset_32) ? (uint32_t)offset : offset);
}

/* A plugin that states an alignment may rely on it. */
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
    return move(queue, at(to, is(copy_to_offset) ? 0 : to_offset), at(from, is(copy_from_offset) ? 0 : from_offset), bytes);
}

static gpuhal_status faulty_write(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                  uint64_t offset, const void *from, uint64_t bytes)
{
    (void)device;
    if (is(write_exits)) {
        exit(3);
    }
    bytes -= is(write_short) && bytes > 1;
    return move(queue, at(to, is(write_offset) ? 0 : offset), from, bytes);
}

/* What a cache would give that nobody tells about copies. */
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

static gpuhal_status faulty_read(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to, const gpuhal_memory *from,
                                 uint64_t offset, uint64_t bytes)
{
    (void)device;
    while (is(read_hangs)) {
        pause();
    }
    if (is(read_stale)) {
        return move(queue, to, stale_bytes(from) + offset, bytes);
    }
    bytes += is(read_past_end) && offset + bytes < from->bytes;
    return move(queue, to, at(from, offset), bytes);
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
        one->to[i] = (unsigned char)(one->pattern >> 8 * (i % one->pattern_bytes));
    }
}

static gpuhal_status faulty_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                                 uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    (void)device;
    if (is(fill_aborts)) {
        abort();
    }
    const uint64_t rounded = (bytes + 3) & ~UINT64_C(3);
    const filling one = {.to = at(memory, offset),
                         .bytes = is(fill_past_end) && offset + rounded <= memory->bytes ? rounded : bytes,
                         .pattern = pattern,
                         .pattern_bytes = is(fill_one_byte) ? 1 : pattern_bytes};
    if (queue != NULL) {
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

static gpuhal_status faulty_copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                                      const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    (void)device;
    gpuhal_status status = GPUHAL_OK;
    const uint64_t to_row = is(rect_row_pitch) ? from->row_pitch : to->row_pitch;
    const uint64_t to_slice = is(rect_slice_pitch) ? to->row_pitch * extent[1] : to->slice_pitch;
    const uint64_t narrower = to->row_pitch < from->row_pitch ? to->row_pitch : from->row_pitch;
    for (uint64_t z = 0; z < extent[2]; z++) {
        for (uint64_t y = 0; status == GPUHAL_OK && y < extent[1]; y++) {
            status = move(queue, rect_start(to) + z * to_slice + y * to_row,
                          rect_start(from) + z * from->slice_pitch + y * from->row_pitch, is(rect_gaps) ? narrower : extent[0]);
        }
    }
    return status;
}

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
}
