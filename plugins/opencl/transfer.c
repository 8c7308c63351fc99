/* opencl/transfer.c: moving bytes.
 *
 * A side is either a buffer of the device or a host address: ordinary memory of the caller, or page-locked memory of ours, whose
 * buffer takes part in no command (device.h). Which of the two decides the command: copy between buffers, read or write between a
 * buffer and the host, memcpy on the host. A call returns when its bytes are there.
 */
#include "device.h"

#include <string.h>

static char *host_at(const gpuhal_memory *memory, uint64_t offset)
{
    return (char *)memory->host + offset;
}

static gpuhal_status opencl_write(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                  uint64_t offset, const void *from, uint64_t bytes)
{
    (void)queue;
    if (gpuhal_opencl_mapped(to)) {
        memcpy(host_at(to, offset), from, (size_t)bytes);
        return GPUHAL_OK;
    }
    gpuhal_opencl_lane lane = gpuhal_opencl_take_lane(device);
    cl_int code = gpuhal_opencl_api.clEnqueueWriteBuffer(lane.queue, gpuhal_opencl_mem(to), CL_TRUE, (size_t)offset,
                                                         (size_t)bytes, from, 0, NULL, NULL);
    gpuhal_opencl_give_lane(device, lane);
    return gpuhal_opencl_result(device, "clEnqueueWriteBuffer", code);
}

static gpuhal_status opencl_read(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to, const gpuhal_memory *from,
                                 uint64_t offset, uint64_t bytes)
{
    (void)queue;
    if (gpuhal_opencl_mapped(from)) {
        memcpy(to, host_at(from, offset), (size_t)bytes);
        return GPUHAL_OK;
    }
    gpuhal_opencl_lane lane = gpuhal_opencl_take_lane(device);
    cl_int code = gpuhal_opencl_api.clEnqueueReadBuffer(lane.queue, gpuhal_opencl_mem(from), CL_TRUE, (size_t)offset,
                                                        (size_t)bytes, to, 0, NULL, NULL);
    gpuhal_opencl_give_lane(device, lane);
    return gpuhal_opencl_result(device, "clEnqueueReadBuffer", code);
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
    gpuhal_opencl_lane lane = gpuhal_opencl_take_lane(device);
    cl_event event = NULL;
    cl_int code = gpuhal_opencl_api.clEnqueueCopyBuffer(lane.queue, gpuhal_opencl_mem(from), gpuhal_opencl_mem(to),
                                                        (size_t)from_offset, (size_t)to_offset, (size_t)bytes, 0, NULL, &event);
    code = gpuhal_opencl_finish(code, event);
    gpuhal_opencl_give_lane(device, lane);
    return gpuhal_opencl_result(device, "clEnqueueCopyBuffer", code);
}

/* Doubles what is there already: the pattern runs on, since each piece copied begins at a multiple of it. */
static void fill_host(char *to, uint64_t bytes, const unsigned char *pattern, uint32_t pattern_bytes)
{
    memcpy(to, pattern, pattern_bytes);
    for (uint64_t done = pattern_bytes; done < bytes;) {
        uint64_t piece = done < bytes - done ? done : bytes - done;
        memcpy(to + done, to, (size_t)piece);
        done += piece;
    }
}

/* OpenCL fills from multiples of the pattern's size on. From elsewhere, the first bytes up to such a multiple and the last ones
 * after it are written, and the middle is filled with the pattern turned by as much. */
static gpuhal_status opencl_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                                 uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    unsigned char twice[8]; /* the pattern two times, so that it can be read from any of its bytes on */
    const uint16_t half = (uint16_t)pattern;
    const unsigned char quarter = (unsigned char)pattern;
    const void *source = pattern_bytes == 4 ? (const void *)&pattern : pattern_bytes == 2 ? (const void *)&half : &quarter;
    memcpy(twice, source, pattern_bytes);
    memcpy(twice + pattern_bytes, source, pattern_bytes);
    if (gpuhal_opencl_mapped(memory)) {
        fill_host(host_at(memory, offset), bytes, twice, pattern_bytes);
        return GPUHAL_OK;
    }

    uint64_t tail = offset % pattern_bytes;
    uint64_t head = tail > 0 ? pattern_bytes - tail : 0;
    uint64_t middle = bytes - head - tail;
    gpuhal_status status = GPUHAL_OK;
    if (head > 0) {
        status = opencl_write(device, queue, memory, offset, twice, head);
    }
    if (status == GPUHAL_OK && tail > 0) {
        status = opencl_write(device, queue, memory, offset + head + middle, twice + head, tail);
    }
    if (status != GPUHAL_OK || middle == 0) {
        return status;
    }
    gpuhal_opencl_lane lane = gpuhal_opencl_take_lane(device);
    cl_event event = NULL;
    cl_int code = gpuhal_opencl_api.clEnqueueFillBuffer(lane.queue, gpuhal_opencl_mem(memory), twice + head, pattern_bytes,
                                                        (size_t)(offset + head), (size_t)middle, 0, NULL, &event);
    code = gpuhal_opencl_finish(code, event);
    gpuhal_opencl_give_lane(device, lane);
    return gpuhal_opencl_result(device, "clEnqueueFillBuffer", code);
}

/* One side of a rectangular copy: with a buffer, or with a host address. */
typedef struct side {
    cl_mem mem;
    char *host;
    uint64_t offset, row_pitch, slice_pitch;
} side;

/* Page-locked memory of ours counts as host memory here. */
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
            memcpy(to->host + z * to->slice_pitch + y * to->row_pitch, from->host + z * from->slice_pitch + y * from->row_pitch,
                   (size_t)extent[0]);
        }
    }
}

/* One command for @p slices slices from slice @p z on. A slice pitch of 0 lets OpenCL compute it, which suits a single slice. */
static cl_int rect_command(cl_command_queue queue, const side *to, const side *from, const uint64_t extent[3], uint64_t z,
                           uint64_t slices, cl_event *out_event)
{
    const size_t region[3] = {(size_t)extent[0], (size_t)extent[1], (size_t)slices};
    const size_t start[3] = {0, 0, 0};
    const size_t to_start[3] = {(size_t)(to->offset + z * to->slice_pitch), 0, 0};
    const size_t from_start[3] = {(size_t)(from->offset + z * from->slice_pitch), 0, 0};
    const size_t to_slice = slices > 1 ? (size_t)to->slice_pitch : 0, from_slice = slices > 1 ? (size_t)from->slice_pitch : 0;
    const size_t to_row = (size_t)to->row_pitch, from_row = (size_t)from->row_pitch;
    if (to->host) {
        return gpuhal_opencl_api.clEnqueueReadBufferRect(queue, from->mem, CL_FALSE, from_start, start, region, from_row,
                                                         from_slice, to_row, to_slice, to->host + z * to->slice_pitch, 0, NULL,
                                                         out_event);
    }
    if (from->host) {
        return gpuhal_opencl_api.clEnqueueWriteBufferRect(queue, to->mem, CL_FALSE, to_start, start, region, to_row, to_slice,
                                                          from_row, from_slice, from->host + z * from->slice_pitch, 0, NULL,
                                                          out_event);
    }
    return gpuhal_opencl_api.clEnqueueCopyBufferRect(queue, from->mem, to->mem, from_start, to_start, region, from_row,
                                                     from_slice, to_row, to_slice, 0, NULL, out_event);
}

/* Row number @p row of all slices; only between buffers. */
static cl_int row_command(cl_command_queue queue, const side *to, const side *from, const uint64_t extent[3], uint64_t row,
                          cl_event *out_event)
{
    uint64_t y = row % extent[1], z = row / extent[1];
    return gpuhal_opencl_api.clEnqueueCopyBuffer(
        queue, from->mem, to->mem, (size_t)(from->offset + z * from->slice_pitch + y * from->row_pitch),
        (size_t)(to->offset + z * to->slice_pitch + y * to->row_pitch), (size_t)extent[0], 0, NULL, out_event);
}

/* What one rectangular copy is made of: the whole box, slices, or rows. */
typedef enum { BY_BOX, BY_SLICES, BY_ROWS } rect_way;

/* OpenCL takes a whole box where the slice pitches are multiples of the row pitches, and within one buffer only where both sides
 * have the same pitches. */
static rect_way choose_way(const side *to, const side *from, const uint64_t extent[3])
{
    bool several = extent[2] > 1;
    bool same_pitches = to->row_pitch == from->row_pitch && (!several || to->slice_pitch == from->slice_pitch);
    if (to->mem && to->mem == from->mem && !same_pitches) {
        return BY_ROWS;
    }
    bool multiples = to->slice_pitch % to->row_pitch == 0 && from->slice_pitch % from->row_pitch == 0;
    return several && !multiples ? BY_SLICES : BY_BOX;
}

/* Enqueues all commands and waits for the last: a lane keeps their order. After a failed enqueue those before it are waited for,
 * since they use the caller's memory. */
static cl_int run_commands(cl_command_queue queue, rect_way way, const side *to, const side *from, const uint64_t extent[3])
{
    uint64_t count = way == BY_ROWS ? extent[1] * extent[2] : way == BY_SLICES ? extent[2] : 1;
    cl_event last = NULL;
    cl_int code = CL_SUCCESS;
    for (uint64_t i = 0; i < count && code == CL_SUCCESS; i++) {
        cl_event event = NULL;
        code = way == BY_ROWS ? row_command(queue, to, from, extent, i, &event)
                              : rect_command(queue, to, from, extent, i, way == BY_SLICES ? 1 : extent[2], &event);
        if (code == CL_SUCCESS && last) {
            gpuhal_opencl_api.clReleaseEvent(last);
        }
        last = code == CL_SUCCESS ? event : last;
    }
    cl_int waited = last ? gpuhal_opencl_finish(CL_SUCCESS, last) : CL_SUCCESS;
    return code != CL_SUCCESS ? code : waited;
}

static gpuhal_status opencl_copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                                      const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    (void)queue;
    const side to_side = resolve(to), from_side = resolve(from);
    if (to_side.host && from_side.host) {
        rect_on_host(&to_side, &from_side, extent);
        return GPUHAL_OK;
    }
    rect_way way = choose_way(&to_side, &from_side, extent);
    gpuhal_opencl_lane lane = gpuhal_opencl_take_lane(device);
    cl_int code = run_commands(lane.queue, way, &to_side, &from_side, extent);
    if (code == CL_MEM_COPY_OVERLAP && way != BY_ROWS) {
        /* Drivers take boxes whose rows interleave for overlapping; the core knows that no byte is in both. */
        code = run_commands(lane.queue, BY_ROWS, &to_side, &from_side, extent);
    }
    gpuhal_opencl_give_lane(device, lane);
    return gpuhal_opencl_result(device, "clEnqueueCopyBufferRect", code);
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
    if (entry->version >= 101 && api->clEnqueueReadBufferRect && api->clEnqueueWriteBufferRect && api->clEnqueueCopyBufferRect) {
        ops->copy_rect = opencl_copy_rect;
    }
}
