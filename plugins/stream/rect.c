/* stream/rect.c: copies rectangles with one command for each slice, or with one command in total if all rows have a
 * constant pitch.
 *
 * The driver refuses pitches above a device limit (2 GiB). For copies within one device it may also refuse lower
 * pitches: only pitches chosen by cuMemAllocPitch (hipMemAllocPitch) are guaranteed to work. Some drivers do not
 * support copies with a pitch at all (ZLUDA returns 801). In all these cases the rows are copied one by one.
 */
#include "device.h"

#include <string.h>

typedef struct side {
    gpuhal_stream_place at;
    uint64_t row_pitch, slice_pitch;
} side;

static side resolve(const gpuhal_plugin_rect *rect)
{
    return (side){.at = rect->memory ? gpuhal_stream_place_in(rect->memory, rect->offset)
                                     : (gpuhal_stream_place){.host = (char *)rect->host + rect->offset},
                  .row_pitch = rect->row_pitch,
                  .slice_pitch = rect->slice_pitch};
}

static side moved(const side *from, uint64_t bytes)
{
    side result = *from;
    result.at = gpuhal_stream_place_behind(from->at, bytes);
    return result;
}

static void rect_on_host(const side *to, const side *from, const uint64_t extent[3])
{
    for (uint64_t z = 0; z < extent[2]; z++) {
        for (uint64_t y = 0; y < extent[1]; y++) {
            memcpy(to->at.host + z * to->slice_pitch + y * to->row_pitch,
                   from->at.host + z * from->slice_pitch + y * from->row_pitch, (size_t)extent[0]);
        }
    }
}

static vendor_code copy_row_by_row(vendor_stream stream, const side *to, const side *from, uint64_t bytes,
                                   uint64_t rows, const char **out_name)
{
    *out_name = GPUHAL_OWN(copy_call)(&to->at, &from->at);
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint64_t y = 0; y < rows && code == GPUHAL_VENDOR_OK; y++) {
        code = GPUHAL_OWN(copy_pieces)(stream, gpuhal_stream_place_behind(to->at, y * to->row_pitch),
                                       gpuhal_stream_place_behind(from->at, y * from->row_pitch), bytes);
    }
    return code;
}

/* Returns whether the rows lie in more than one piece of page-locked memory. One command must stay within one piece. */
static bool crosses(const side *one, uint64_t bytes, uint64_t rows)
{
    const uint64_t span = (rows - 1) * one->row_pitch + bytes;
    return gpuhal_stream_piece(one->at.host, span) < span;
}

/* Copies the rows of one slice, or of all slices if the pitch is constant. */
static vendor_code copy_slice(gpuhal_plugin_device *device, vendor_stream stream, const side *to, const side *from,
                              uint64_t bytes, uint64_t rows, const char **out_name)
{
    const uint64_t pitch_max = device->entry->pitch_max;
    if (to->row_pitch > pitch_max || from->row_pitch > pitch_max || crosses(to, bytes, rows) ||
        crosses(from, bytes, rows)) {
        return copy_row_by_row(stream, to, from, bytes, rows, out_name);
    }
    *out_name = GPUHAL_VENDOR_CALL(Memcpy2DAsync);
    const vendor_code code =
        GPUHAL_OWN(copy_rows)(stream, &to->at, to->row_pitch, &from->at, from->row_pitch, bytes, rows);
    if (!GPUHAL_VENDOR_REFUSES_PITCH(code) && code != GPUHAL_VENDOR_NOT_SUPPORTED) {
        return code;
    }
    GPUHAL_OWN(ignore)(code);
    return copy_row_by_row(stream, to, from, bytes, rows, out_name);
}

static bool is_even(const side *one, const uint64_t extent[3])
{
    return one->slice_pitch == one->row_pitch * extent[1];
}

static vendor_code copy_box(gpuhal_plugin_device *device, vendor_stream stream, side to, side from,
                            const uint64_t extent[3], const char **out_name)
{
    /* Slices with a single row each form one sequence of rows, so one command copies all slices. */
    if (extent[1] == 1) {
        to.row_pitch = to.slice_pitch;
        from.row_pitch = from.slice_pitch;
    }
    if (extent[1] == 1 || (is_even(&to, extent) && is_even(&from, extent))) {
        return copy_slice(device, stream, &to, &from, extent[0], extent[1] * extent[2], out_name);
    }
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint64_t z = 0; z < extent[2] && code == GPUHAL_VENDOR_OK; z++) {
        const side to_slice = moved(&to, z * to.slice_pitch), from_slice = moved(&from, z * from.slice_pitch);
        code = copy_slice(device, stream, &to_slice, &from_slice, extent[0], extent[1], out_name);
    }
    return code;
}

/* Returns the number of bytes from the rectangle's first byte to its last. The core has checked that the rectangle lies
 * within its memory, so nothing overflows. */
static uint64_t span(const side *one, const uint64_t extent[3])
{
    return (extent[2] - 1) * one->slice_pitch + (extent[1] - 1) * one->row_pitch + extent[0];
}

static gpuhal_status copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                               const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    const side to_side = resolve(to), from_side = resolve(from);
    const uint64_t bytes = span(to_side.at.host ? &to_side : &from_side, extent);
    if (queue && GPUHAL_OWN(waits)(device, to_side.at.host, from_side.at.host, bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (to_side.at.host && from_side.at.host && !queue && !device->foreign) {
        const gpuhal_status status = GPUHAL_OWN(check_host)(device);
        if (status == GPUHAL_OK) {
            rect_on_host(&to_side, &from_side, extent);
        }
        return status;
    }
    gpuhal_stream_call call;
    const gpuhal_status status = GPUHAL_OWN(begin)(device, queue, &call);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *name = NULL; /* the failed call; set by the first slice, which always exists */
    vendor_code code = copy_box(device, call.stream, to_side, from_side, extent, &name);
    code = GPUHAL_OWN(end)(&call, code, extent[0] * extent[1] * extent[2], &name);
    return GPUHAL_OWN(result)(device, name, code);
}

void GPUHAL_OWN(describe_rect)(gpuhal_ops *ops)
{
    ops->copy_rect = copy_rect;
}
