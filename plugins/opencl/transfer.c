/* opencl/transfer.c: copies and fills.
 *
 * Each side is either a device buffer or a host address. Host addresses belong to the caller's pageable memory or to
 * the plugin's page-locked memory, whose buffer no command uses (device.h). The two sides determine the operation: a
 * copy between buffers, a read or write between a buffer and the host, or memcpy on the host. Without a queue a call
 * returns when its bytes have arrived. With a queue it enqueues without flushing, and the core keeps the host memory
 * alive. OpenCL has no command for copies between host addresses, so such copies return NOT_SUPPORTED on a queue.
 */
#include "../common/fill.h"
#include "device.h"

#include <string.h>

gpuhal_opencl_track gpuhal_opencl_begin(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue)
{
    if (queue) {
        return (gpuhal_opencl_track){.queue = queue, .commands = queue->commands};
    }
    const gpuhal_opencl_stream stream = gpuhal_opencl_take_stream(device);
    return (gpuhal_opencl_track){.stream = stream, .commands = stream.queue};
}

/* Stores the event of a command. This event replaces the previous one, because the command queue is in-order. */
static void keep(gpuhal_opencl_track *t, cl_event event)
{
    if (event && t->last) {
        gpuhal_opencl_api.clReleaseEvent(t->last);
    }
    t->last = event ? event : t->last;
}

/* On success with a queue, the queue takes ownership of the event. If a command could not be enqueued, the call waits
 * for earlier commands, because they use the caller's memory. The stream is released last, with the result of its
 * commands. */
gpuhal_status gpuhal_opencl_end(gpuhal_plugin_device *device, gpuhal_opencl_track *t, const char *call, cl_int code)
{
    if (t->last && t->queue && code == CL_SUCCESS) {
        gpuhal_opencl_queue_keep(t->queue, t->last);
        return GPUHAL_OK;
    }
    const cl_int waited = t->last ? gpuhal_opencl_finish(CL_SUCCESS, t->last) : CL_SUCCESS;
    gpuhal_opencl_give_stream(device, t->stream, code != CL_SUCCESS ? code : waited);
    return code != CL_SUCCESS ? gpuhal_opencl_result(device, call, code) : gpuhal_opencl_executed(device, call, waited);
}

static char *host_at(const gpuhal_memory *memory, uint64_t offset)
{
    return (char *)memory->host + offset;
}

static gpuhal_status opencl_write(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                  uint64_t offset, const void *from, uint64_t bytes)
{
    if (gpuhal_opencl_mapped(to)) {
        if (queue) {
            return GPUHAL_ERROR_NOT_SUPPORTED;
        }
        memcpy(host_at(to, offset), from, (size_t)bytes);
        return GPUHAL_OK;
    }
    gpuhal_opencl_track t = gpuhal_opencl_begin(device, queue);
    const cl_int code =
        gpuhal_opencl_api.clEnqueueWriteBuffer(t.commands, gpuhal_opencl_mem(to), queue ? CL_FALSE : CL_TRUE,
                                               (size_t)offset, (size_t)bytes, from, 0, NULL, queue ? &t.last : NULL);
    return gpuhal_opencl_end(device, &t, "clEnqueueWriteBuffer", code);
}

static gpuhal_status opencl_read(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                 const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    if (gpuhal_opencl_mapped(from)) {
        if (queue) {
            return GPUHAL_ERROR_NOT_SUPPORTED;
        }
        memcpy(to, host_at(from, offset), (size_t)bytes);
        return GPUHAL_OK;
    }
    gpuhal_opencl_track t = gpuhal_opencl_begin(device, queue);
    const cl_int code =
        gpuhal_opencl_api.clEnqueueReadBuffer(t.commands, gpuhal_opencl_mem(from), queue ? CL_FALSE : CL_TRUE,
                                              (size_t)offset, (size_t)bytes, to, 0, NULL, queue ? &t.last : NULL);
    return gpuhal_opencl_end(device, &t, "clEnqueueReadBuffer", code);
}

static gpuhal_status opencl_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    if (gpuhal_opencl_mapped(from)) {
        return opencl_write(device, queue, to, to_offset, host_at(from, from_offset), bytes);
    }
    if (gpuhal_opencl_mapped(to)) {
        return opencl_read(device, queue, host_at(to, to_offset), from, from_offset, bytes);
    }
    gpuhal_opencl_track t = gpuhal_opencl_begin(device, queue);
    const cl_int code =
        gpuhal_opencl_api.clEnqueueCopyBuffer(t.commands, gpuhal_opencl_mem(from), gpuhal_opencl_mem(to),
                                              (size_t)from_offset, (size_t)to_offset, (size_t)bytes, 0, NULL, &t.last);
    return gpuhal_opencl_end(device, &t, "clEnqueueCopyBuffer", code);
}

static cl_int fill_command(gpuhal_opencl_track *t, cl_mem mem, const unsigned char *pattern, uint32_t pattern_bytes,
                           uint64_t offset, uint64_t bytes)
{
    cl_event event = NULL;
    const cl_int code = gpuhal_opencl_api.clEnqueueFillBuffer(t->commands, mem, pattern, pattern_bytes, (size_t)offset,
                                                              (size_t)bytes, 0, NULL, &event);
    keep(t, event);
    return code;
}

/* Fills a few bytes at the ends with one fill per byte. A write would not work, because the driver copies only the
 * pattern of a fill, not the source of a write. */
static cl_int fill_bytes(gpuhal_opencl_track *t, cl_mem mem, const unsigned char *pattern, uint64_t offset,
                         uint64_t bytes)
{
    cl_int code = CL_SUCCESS;
    for (uint64_t i = 0; i < bytes && code == CL_SUCCESS; i++) {
        code = fill_command(t, mem, pattern + i, 1, offset + i, 1);
    }
    return code;
}

/* OpenCL requires the offset of a fill to be a multiple of the pattern size. For another offset, head and tail are
 * filled byte by byte, and the middle with the pattern rotated by the length of the head. @p twice contains the pattern
 * twice. Head and tail are either both empty or together as long as one pattern, and @p bytes is at least one pattern
 * long, so the middle's length is not negative. */
static cl_int fill_device(gpuhal_opencl_track *t, cl_mem mem, uint64_t offset, uint64_t bytes,
                          const unsigned char *twice, uint32_t pattern_bytes)
{
    const uint64_t tail = offset % pattern_bytes;
    const uint64_t head = tail > 0 ? pattern_bytes - tail : 0;
    const uint64_t middle = bytes - head - tail;
    cl_int code = fill_bytes(t, mem, twice, offset, head);
    if (code == CL_SUCCESS && middle > 0) {
        code = fill_command(t, mem, twice + head, pattern_bytes, offset + head, middle);
    }
    return code == CL_SUCCESS ? fill_bytes(t, mem, twice + head, offset + head + middle, tail) : code;
}

static gpuhal_status opencl_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                                 uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    unsigned char twice[8];
    gpuhal_plugin_twice(pattern, pattern_bytes, twice);
    if (gpuhal_opencl_mapped(memory)) {
        if (queue) {
            return GPUHAL_ERROR_NOT_SUPPORTED;
        }
        gpuhal_plugin_fill_host(host_at(memory, offset), bytes, twice, pattern_bytes);
        return GPUHAL_OK;
    }
    gpuhal_opencl_track t = gpuhal_opencl_begin(device, queue);
    return gpuhal_opencl_end(device, &t, "clEnqueueFillBuffer",
                             fill_device(&t, gpuhal_opencl_mem(memory), offset, bytes, twice, pattern_bytes));
}

typedef struct side {
    cl_mem mem;
    char *host;
    uint64_t offset, row_pitch, slice_pitch;
} side;

static side resolve(const gpuhal_plugin_rect *rect)
{
    side result = {.row_pitch = rect->row_pitch, .slice_pitch = rect->slice_pitch};
    if (!rect->memory) {
        result.host = (char *)rect->host + rect->offset;
    } else if (gpuhal_opencl_mapped(rect->memory)) {
        result.host = host_at(rect->memory, rect->offset);
    } else {
        result.mem = gpuhal_opencl_mem(rect->memory);
        result.offset = rect->offset;
    }
    return result;
}

static void rect_on_host(const side *to, const side *from, const uint64_t extent[3])
{
    for (uint64_t z = 0; z < extent[2]; z++) {
        for (uint64_t y = 0; y < extent[1]; y++) {
            memcpy(to->host + z * to->slice_pitch + y * to->row_pitch,
                   from->host + z * from->slice_pitch + y * from->row_pitch, (size_t)extent[0]);
        }
    }
}

/* Enqueues one command for @p slices slices, starting with slice @p z. For a single slice passes 0
 * as the slice pitch, so that OpenCL computes it: the real pitch need not be a multiple of the row pitch. */
static cl_int rect_command(cl_command_queue queue, const side *to, const side *from, const uint64_t extent[3],
                           uint64_t z, uint64_t slices, cl_event *out_event)
{
    const size_t region[3] = {(size_t)extent[0], (size_t)extent[1], (size_t)slices};
    const size_t start[3] = {0, 0, 0};
    const size_t to_start[3] = {(size_t)(to->offset + z * to->slice_pitch), 0, 0};
    const size_t from_start[3] = {(size_t)(from->offset + z * from->slice_pitch), 0, 0};
    const size_t to_slice = slices > 1 ? (size_t)to->slice_pitch : 0,
                 from_slice = slices > 1 ? (size_t)from->slice_pitch : 0;
    const size_t to_row = (size_t)to->row_pitch, from_row = (size_t)from->row_pitch;
    if (to->host) {
        return gpuhal_opencl_api.clEnqueueReadBufferRect(queue, from->mem, CL_FALSE, from_start, start, region,
                                                         from_row, from_slice, to_row, to_slice,
                                                         to->host + z * to->slice_pitch, 0, NULL, out_event);
    }
    if (from->host) {
        return gpuhal_opencl_api.clEnqueueWriteBufferRect(queue, to->mem, CL_FALSE, to_start, start, region, to_row,
                                                          to_slice, from_row, from_slice,
                                                          from->host + z * from->slice_pitch, 0, NULL, out_event);
    }
    return gpuhal_opencl_api.clEnqueueCopyBufferRect(queue, from->mem, to->mem, from_start, to_start, region, from_row,
                                                     from_slice, to_row, to_slice, 0, NULL, out_event);
}

/* Enqueues row @p row, counted over all slices. Both sides must be buffers. */
static cl_int row_command(cl_command_queue queue, const side *to, const side *from, const uint64_t extent[3],
                          uint64_t row, cl_event *out_event)
{
    uint64_t y = row % extent[1], z = row / extent[1];
    return gpuhal_opencl_api.clEnqueueCopyBuffer(
        queue, from->mem, to->mem, (size_t)(from->offset + z * from->slice_pitch + y * from->row_pitch),
        (size_t)(to->offset + z * to->slice_pitch + y * to->row_pitch), (size_t)extent[0], 0, NULL, out_event);
}

/* How a rectangular copy is split into commands: one for the whole box, one per slice, or one per row. */
typedef enum { BY_BOX, BY_SLICES, BY_ROWS } rect_method;

/* OpenCL copies a whole box only if the slice pitches are multiples of the row pitches. Within one buffer both sides
 * must also have the same pitches. */
static rect_method choose_method(const side *to, const side *from, const uint64_t extent[3])
{
    bool several = extent[2] > 1;
    bool same_pitches = to->row_pitch == from->row_pitch && (!several || to->slice_pitch == from->slice_pitch);
    if (to->mem && to->mem == from->mem && !same_pitches) {
        return BY_ROWS;
    }
    bool multiples = to->slice_pitch % to->row_pitch == 0 && from->slice_pitch % from->row_pitch == 0;
    return several && !multiples ? BY_SLICES : BY_BOX;
}

static cl_int enqueue_rect(gpuhal_opencl_track *t, rect_method method, const side *to, const side *from,
                           const uint64_t extent[3])
{
    const uint64_t count = method == BY_ROWS ? extent[1] * extent[2] : method == BY_SLICES ? extent[2] : 1;
    cl_int code = CL_SUCCESS;
    for (uint64_t i = 0; i < count && code == CL_SUCCESS; i++) {
        cl_event event = NULL;
        code = method == BY_ROWS
                   ? row_command(t->commands, to, from, extent, i, &event)
                   : rect_command(t->commands, to, from, extent, i, method == BY_SLICES ? 1 : extent[2], &event);
        keep(t, event);
    }
    return code;
}

static gpuhal_status opencl_copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue,
                                      const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from,
                                      const uint64_t extent[3])
{
    const side to_side = resolve(to), from_side = resolve(from);
    if (to_side.host && from_side.host) {
        if (queue) {
            return GPUHAL_ERROR_NOT_SUPPORTED;
        }
        rect_on_host(&to_side, &from_side, extent);
        return GPUHAL_OK;
    }
    const rect_method method = choose_method(&to_side, &from_side, extent);
    gpuhal_opencl_track t = gpuhal_opencl_begin(device, queue);
    cl_int code = enqueue_rect(&t, method, &to_side, &from_side, extent);
    if (code == CL_MEM_COPY_OVERLAP && method != BY_ROWS) {
        /* Drivers treat boxes with interleaved rows as overlapping, but the core has checked that no byte belongs to
         * both. */
        code = enqueue_rect(&t, BY_ROWS, &to_side, &from_side, extent);
    }
    return gpuhal_opencl_end(device, &t, "clEnqueueCopyBufferRect", code);
}

void gpuhal_opencl_describe_transfer(const gpuhal_opencl_entry *entry, gpuhal_ops *ops)
{
    const gpuhal_opencl_functions *api = &gpuhal_opencl_api;
    ops->copy = opencl_copy;
    ops->write = opencl_write;
    ops->read = opencl_read;
    if (entry->version >= 102 && api->clEnqueueFillBuffer) {
        ops->fill = opencl_fill;
    }
    if (entry->version >= 101 && api->clEnqueueReadBufferRect && api->clEnqueueWriteBufferRect &&
        api->clEnqueueCopyBufferRect) {
        ops->copy_rect = opencl_copy_rect;
    }
}
