/* transfer/rect.c: rectangular copies. A copy within one device, or between a device and host memory, is a single
 * plugin call if the plugin supports it, otherwise one copy per row. Copies between two devices use the host address of
 * one side if possible, else move batches of rows through host memory. */
#include "transfer/rect.h"

#include "base/error.h"
#include "device/link.h"
#include "transfer/copy.h"

#include <inttypes.h>
#include <stdlib.h>

#define BATCH_BYTES (1u << 20)

/* One side with its pitches computed. */
typedef struct side {
    gpuhal_buffer *buffer;
    char *host;
    uint64_t offset, row_pitch, slice_pitch;
} side;

typedef struct box {
    uint64_t width, rows, slices;
} box;

static gpuhal_status invalid(const char *what)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_copy_rect: %s", what);
}

/* Computes the pitches that are 0, and sets *out_span to the number of bytes from the first to the last byte of the
 * box. Fails on overflow and if rows would overlap. */
static gpuhal_status take_side(const gpuhal_rect *rect, const box *extent, side *out, uint64_t *out_span)
{
    *out = (side){rect->buffer, rect->host, rect->offset, rect->row_pitch, rect->slice_pitch};
    out->row_pitch = out->row_pitch ? out->row_pitch : extent->width;
    uint64_t least_slice = 0, rows_span = 0, slices_span = 0, span = 0;
    if (!rect->buffer && !rect->host) {
        return invalid("a side has neither buffer nor host memory");
    }
    if (out->row_pitch < extent->width || __builtin_mul_overflow(out->row_pitch, extent->rows, &least_slice)) {
        return invalid("a row pitch is less than the width, or too large");
    }
    /* The slice pitch of a single slice has no effect. */
    out->slice_pitch = out->slice_pitch && extent->slices > 1 ? out->slice_pitch : least_slice;
    if (out->slice_pitch < least_slice) {
        return invalid("a slice pitch is less than the rows of a slice");
    }
    rows_span = least_slice - out->row_pitch;
    if (__builtin_mul_overflow(out->slice_pitch, extent->slices - 1, &slices_span) ||
        __builtin_add_overflow(rows_span, slices_span, &span) || __builtin_add_overflow(span, extent->width, &span)) {
        return gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE, "gpuhal_copy_rect: the box exceeds the address space");
    }
    *out_span = span;
    return GPUHAL_OK;
}

/* Rows are numbered across all slices. */
static uint64_t row_offset(const side *s, const box *extent, uint64_t row)
{
    return s->offset + row / extent->rows * s->slice_pitch + row % extent->rows * s->row_pitch;
}

/* Returns whether two boxes in one buffer share a byte. The rows of each box are in ascending order, so one pass over
 * both boxes is enough. If the current two rows do not overlap, the lower row cannot overlap any later row of the other
 * box, so it is skipped. */
static bool overlap(const side *a, const side *b, const box *extent)
{
    uint64_t rows = extent->rows * extent->slices;
    for (uint64_t i = 0, j = 0; i < rows && j < rows;) {
        uint64_t one = row_offset(a, extent, i), other = row_offset(b, extent, j);
        uint64_t distance = one > other ? one - other : other - one;
        if (distance < extent->width) {
            return true;
        }
        if (one < other) {
            i++;
        } else {
            j++;
        }
    }
    return false;
}

/* Returns whether every row is aligned at both ends; otherwise the plugin would have to split rows. */
static bool is_aligned(const gpuhal_device *device, const side *s, const box *extent)
{
    return ((s->offset | s->row_pitch | s->slice_pitch | extent->width) & device->copy_mask) == 0;
}

static gpuhal_plugin_rect plugin_rect(const side *s)
{
    return (gpuhal_plugin_rect){.offset = s->offset,
                                .row_pitch = s->row_pitch,
                                .slice_pitch = s->slice_pitch,
                                .memory = s->buffer ? &s->buffer->memory : NULL,
                                .host = s->host};
}

/* Returns NOT_SUPPORTED without an error detail if the plugin has no slot or the slot cannot copy this box. With a
 * queue it may also return NOT_READY without an error detail. */
static gpuhal_status by_plugin(gpuhal_device *device, gpuhal_plugin_queue *queue, const side *to, const side *from,
                               const box *extent)
{
    /* OpenCL requires equal pitches within one memory object, and plugin.h adopts that rule. */
    bool same_object = to->buffer && to->buffer == from->buffer;
    bool pitches_fit = !same_object || (to->row_pitch == from->row_pitch && to->slice_pitch == from->slice_pitch);
    bool fits = (!to->buffer || is_aligned(device, to, extent)) && (!from->buffer || is_aligned(device, from, extent));
    if (!device->ops.copy_rect || !pitches_fit || !fits) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    const gpuhal_plugin_rect to_rect = plugin_rect(to), from_rect = plugin_rect(from);
    const uint64_t size[3] = {extent->width, extent->rows, extent->slices};
    const gpuhal_call call = gpuhal_call_blocking(device, size[0] * size[1] * size[2]);
    gpuhal_status status =
        gpuhal_device_result(device, call, device->ops.copy_rect(device->handle, queue, &to_rect, &from_rect, size));
    bool failed = status && status != GPUHAL_ERROR_NOT_SUPPORTED && !(queue && status == GPUHAL_NOT_READY);
    return failed ? gpuhal_device_failed(device, status, "copying a rectangle") : status;
}

/* At least one side is a buffer. If both sides are buffers, they belong to the same device. */
static gpuhal_status copy_row(const side *to, uint64_t to_offset, const side *from, uint64_t from_offset,
                              uint64_t bytes)
{
    if (!to->buffer) {
        return gpuhal_move(GPUHAL_FROM_DEVICE, from->buffer->device, &from->buffer->memory, from_offset,
                           to->host + to_offset, bytes);
    }
    if (!from->buffer) {
        return gpuhal_move(GPUHAL_TO_DEVICE, to->buffer->device, &to->buffer->memory, to_offset,
                           from->host + from_offset, bytes);
    }
    return gpuhal_memory_copy(to->buffer->device, &to->buffer->memory, to_offset, &from->buffer->memory, from_offset,
                              bytes);
}

static gpuhal_status copy_on_one_device(gpuhal_device *device, const side *to, const side *from, const box *extent)
{
    gpuhal_status status = by_plugin(device, NULL, to, from, extent);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        return status;
    }
    status = GPUHAL_OK;
    for (uint64_t row = 0; row < extent->rows * extent->slices && !status; row++) {
        status = copy_row(to, row_offset(to, extent, row), from, row_offset(from, extent, row), extent->width);
    }
    return status;
}

/* Copies `rows` rows of one slice through packed host memory. */
static gpuhal_status copy_batch(const side *to, const side *from, uint64_t width, uint64_t rows, char *packed)
{
    const box extent = {width, rows, 1};
    const side middle = {NULL, packed, 0, width, width * rows};
    gpuhal_status status = copy_on_one_device(from->buffer->device, &middle, from, &extent);
    return status ? status : copy_on_one_device(to->buffer->device, to, &middle, &extent);
}

/* Copies if the host address of neither side can be used. Packs rows into a bounded host buffer. Rows that are too long
 * for it are copied one by one through staging memory. */
static gpuhal_status copy_between_devices(const side *to, const side *from, const box *extent)
{
    uint64_t batch_rows = extent->width <= BATCH_BYTES ? BATCH_BYTES / extent->width : 0;
    uint64_t rows_at_once = batch_rows < extent->rows ? batch_rows : extent->rows;
    char *packed = batch_rows > 0 ? malloc((size_t)(rows_at_once * extent->width)) : NULL;
    gpuhal_status status = batch_rows > 0 && !packed ? gpuhal_error_host_memory() : GPUHAL_OK;
    for (uint64_t slice = 0; slice < extent->slices && !status; slice++) {
        for (uint64_t row = 0; row < extent->rows && !status;) {
            side to_part = *to, from_part = *from;
            uint64_t first = slice * extent->rows + row;
            to_part.offset = row_offset(to, extent, first);
            from_part.offset = row_offset(from, extent, first);
            if (batch_rows == 0) {
                status = gpuhal_memory_copy_between(to->buffer->device, &to->buffer->memory, to_part.offset,
                                                    from->buffer->device, &from->buffer->memory, from_part.offset,
                                                    extent->width);
                row++;
                continue;
            }
            uint64_t rows = extent->rows - row < rows_at_once ? extent->rows - row : rows_at_once;
            status = copy_batch(&to_part, &from_part, extent->width, rows, packed);
            row += rows;
        }
    }
    free(packed);
    return status;
}

/* Returns a side that describes the buffer as host memory, for the other device to read or write. */
static side host_side(const side *s)
{
    return (side){NULL, s->buffer->memory.host, s->offset, s->row_pitch, s->slice_pitch};
}

static gpuhal_status copy_now(const side *to, const side *from, const box *extent)
{
    if (to->buffer && from->buffer && to->buffer->device != from->buffer->device) {
        if (gpuhal_host_reads(&from->buffer->memory)) {
            const side host = host_side(from);
            return copy_on_one_device(to->buffer->device, to, &host, extent);
        }
        if (gpuhal_host_writes(&to->buffer->memory)) {
            const side host = host_side(to);
            return copy_on_one_device(from->buffer->device, &host, from, extent);
        }
        return copy_between_devices(to, from, extent);
    }
    return copy_on_one_device(to->buffer ? to->buffer->device : from->buffer->device, to, from, extent);
}

/* Returns the counter of the path that copy_now() takes. */
static gpuhal_counter *counter_of(const side *to, const side *from)
{
    if (!to->buffer) {
        return &from->buffer->device->read;
    }
    if (!from->buffer) {
        return &to->buffer->device->written;
    }
    gpuhal_device *to_device = to->buffer->device, *from_device = from->buffer->device;
    if (to_device == from_device) {
        return &to_device->copied;
    }
    bool shared = gpuhal_host_reads(&from->buffer->memory) || gpuhal_host_writes(&to->buffer->memory);
    return &gpuhal_link_between(from_device, to_device)->traffic[shared ? GPUHAL_PATH_SHARED : GPUHAL_PATH_STAGED];
}

/* Makes the bytes visible row by row, since other threads may have changed bytes between the rows. */
static gpuhal_status publish_rows(const side *to, const box *extent)
{
    gpuhal_status status = GPUHAL_OK;
    bool needs_clean = to->buffer->needs_clean;
    for (uint64_t row = 0; row < extent->rows * extent->slices && needs_clean && !status; row++) {
        status = gpuhal_buffer_clean(to->buffer, row_offset(to, extent, row), extent->width, true);
    }
    return status;
}

static gpuhal_status check(const side *to, const side *from, const box *extent, uint64_t to_span, uint64_t from_span)
{
    gpuhal_status status = to->buffer ? gpuhal_range_check_written(to->buffer, to->offset, to_span) : GPUHAL_OK;
    if (!status && from->buffer) {
        status = gpuhal_range_check(from->buffer, from->offset, from_span);
    }
    if (status) {
        return status;
    }
    uint64_t end = 0;
    if ((!to->buffer && __builtin_add_overflow(to->offset, to_span, &end)) ||
        (!from->buffer && __builtin_add_overflow(from->offset, from_span, &end))) {
        return gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE, "gpuhal_copy_rect: the box exceeds the address space");
    }
    if (to->buffer && from->buffer && to->buffer->device->gpu != from->buffer->device->gpu) {
        return invalid("the buffers belong to two gpuhal objects");
    }
    bool one_memory = to->buffer && from->buffer && to->buffer->root == from->buffer->root;
    side to_whole = *to, from_whole = *from;
    to_whole.offset += to->buffer ? to->buffer->begin : 0;
    from_whole.offset += from->buffer ? from->buffer->begin : 0;
    if (one_memory && overlap(&to_whole, &from_whole, extent)) {
        return invalid("source and destination overlap in one piece of memory");
    }
    return GPUHAL_OK;
}

/* Returns the side with its pitches computed and its offset in the whole buffer. */
static gpuhal_rect whole_rect(const side *s)
{
    gpuhal_buffer *whole = s->buffer ? s->buffer->whole : NULL;
    const uint64_t begin = s->buffer ? s->buffer->begin : 0;
    return (gpuhal_rect){whole, s->host, begin + s->offset, s->row_pitch, s->slice_pitch};
}

static side side_of(const gpuhal_rect *whole)
{
    return (side){whole->buffer, whole->host, whole->offset, whole->row_pitch, whole->slice_pitch};
}

gpuhal_status gpuhal_rect_check(gpuhal_rect *to_rect, gpuhal_rect *from_rect, const uint64_t extent[3])
{
    const box size = {extent[0], extent[1], extent[2]};
    side to, from;
    uint64_t to_span = 0, from_span = 0;
    gpuhal_status status = take_side(to_rect, &size, &to, &to_span);
    status = status ? status : take_side(from_rect, &size, &from, &from_span);
    status = status ? status : check(&to, &from, &size, to_span, from_span);
    if (!status) {
        *to_rect = whole_rect(&to);
        *from_rect = whole_rect(&from);
    }
    return status;
}

gpuhal_status gpuhal_rect_submit(gpuhal_plugin_queue *queue, const gpuhal_rect *to_rect, const gpuhal_rect *from_rect,
                                 const uint64_t extent[3])
{
    const side to = side_of(to_rect), from = side_of(from_rect);
    const box size = {extent[0], extent[1], extent[2]};
    gpuhal_device *device = to.buffer ? to.buffer->device : from.buffer->device;
    bool one_device = !to.buffer || !from.buffer || to.buffer->device == from.buffer->device;
    return one_device ? by_plugin(device, queue, &to, &from, &size) : GPUHAL_ERROR_NOT_SUPPORTED;
}

gpuhal_status gpuhal_rect_blocking(const gpuhal_rect *to_rect, const gpuhal_rect *from_rect, const uint64_t extent[3])
{
    const side to = side_of(to_rect), from = side_of(from_rect);
    const box size = {extent[0], extent[1], extent[2]};
    uint64_t bytes = size.width * size.rows * size.slices, begin_ns = gpuhal_count_from(bytes);
    gpuhal_status status = to.buffer ? gpuhal_device_check(to.buffer->device) : GPUHAL_OK;
    status = !status && from.buffer ? gpuhal_device_check(from.buffer->device) : status;
    status = status ? status : gpuhal_buffers_enter(to.buffer, from.buffer);
    if (status) {
        return status;
    }
    status = copy_now(&to, &from, &size);
    status = status || !to.buffer ? status : publish_rows(&to, &size);
    gpuhal_buffers_leave(to.buffer, from.buffer);
    if (!status) {
        gpuhal_count(counter_of(&to, &from), bytes, begin_ns);
    }
    return status;
}
