/* rocm/rect.c: copies of rectangles: one command for each slice, or for all where the slices lie like rows.
 *
 * The driver refuses pitches above a limit of the device (2 GiB), and may refuse some below it inside one device, since only what
 * hipMemAllocPitch chose is promised to work. Then rows are copied one by one.
 */
#include "device.h"

#include <string.h>

/* One side: an address of the device, or of the host. */
typedef struct side {
    uint64_t device;
    char *host; /* NULL: the other one counts */
    uint64_t row_pitch, slice_pitch;
} side;

static side resolve(const gpuhal_plugin_rect *rect)
{
    side result = {.row_pitch = rect->row_pitch, .slice_pitch = rect->slice_pitch};
    if (!rect->memory) {
        result.host = (char *)rect->host + rect->offset;
    } else if (rect->memory->host) {
        result.host = (char *)rect->memory->host + rect->offset;
    } else {
        result.device = rect->memory->address + rect->offset;
    }
    return result;
}

static side moved(const side *from, uint64_t bytes)
{
    side result = *from;
    if (result.host) {
        result.host += bytes;
    } else {
        result.device += bytes;
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

/* HIP wants the direction named, and spares itself the looking up. */
static hipMemcpyKind direction(const side *to, const side *from)
{
    if (to->host) {
        return from->host ? hipMemcpyHostToHost : hipMemcpyDeviceToHost;
    }
    return from->host ? hipMemcpyHostToDevice : hipMemcpyDeviceToDevice;
}

static void *place(const side *one)
{
    return one->host ? one->host : gpuhal_rocm_at(one->device);
}

static hipError_t copy_rows(hipStream_t stream, const side *to, const side *from, uint64_t bytes, uint64_t rows)
{
    hipError_t code = hipSuccess;
    for (uint64_t y = 0; y < rows && code == hipSuccess; y++) {
        const side to_row = moved(to, y * to->row_pitch), from_row = moved(from, y * from->row_pitch);
        code = gpuhal_rocm_copy_bytes(stream, place(&to_row), place(&from_row), bytes, direction(to, from));
    }
    return code;
}

/* Rows of one slice, or of all when they lie evenly. */
static hipError_t copy_slice(gpuhal_plugin_device *device, hipStream_t stream, const side *to, const side *from, uint64_t bytes,
                             uint64_t rows)
{
    const uint64_t pitch_max = device->entry->pitch_max;
    if (to->row_pitch > pitch_max || from->row_pitch > pitch_max) {
        return copy_rows(stream, to, from, bytes, rows);
    }
    const hipError_t code =
        gpuhal_rocm_api.hipMemcpy2DAsync(place(to), (size_t)to->row_pitch, place(from), (size_t)from->row_pitch, (size_t)bytes,
                                         (size_t)rows, direction(to, from), stream);
    if (code != hipErrorInvalidValue && code != hipErrorInvalidPitchValue) {
        return code;
    }
    gpuhal_rocm_ignore(code);
    return copy_rows(stream, to, from, bytes, rows);
}

static bool is_even(const side *one, const uint64_t extent[3])
{
    return one->slice_pitch == one->row_pitch * extent[1];
}

static hipError_t copy_box(gpuhal_plugin_device *device, hipStream_t stream, side to, side from, const uint64_t extent[3])
{
    if (extent[1] == 1) {
        to.row_pitch = to.slice_pitch;
        from.row_pitch = from.slice_pitch;
    }
    if (extent[1] == 1 || (is_even(&to, extent) && is_even(&from, extent))) {
        return copy_slice(device, stream, &to, &from, extent[0], extent[1] * extent[2]);
    }
    hipError_t code = hipSuccess;
    for (uint64_t z = 0; z < extent[2] && code == hipSuccess; z++) {
        const side to_slice = moved(&to, z * to.slice_pitch), from_slice = moved(&from, z * from.slice_pitch);
        code = copy_slice(device, stream, &to_slice, &from_slice, extent[0], extent[1]);
    }
    return code;
}

/* From the first byte to the last. */
static uint64_t span(const side *one, const uint64_t extent[3])
{
    return (extent[2] - 1) * one->slice_pitch + (extent[1] - 1) * one->row_pitch + extent[0];
}

static gpuhal_status rocm_copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                                    const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    const side to_side = resolve(to), from_side = resolve(from);
    const uint64_t bytes = span(to_side.host ? &to_side : &from_side, extent);
    if (queue && gpuhal_rocm_waits(device, to_side.host, from_side.host, bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (to_side.host && from_side.host && !queue && !device->foreign) {
        const gpuhal_status status = gpuhal_rocm_check_host(device);
        if (status == GPUHAL_OK) {
            rect_on_host(&to_side, &from_side, extent);
        }
        return status;
    }
    gpuhal_rocm_call call;
    hipError_t code = gpuhal_rocm_begin(device, queue, &call);
    if (code == hipSuccess) {
        code = copy_box(device, call.stream, to_side, from_side, extent);
        code = gpuhal_rocm_end(&call, code, extent[0] * extent[1] * extent[2]);
    }
    return gpuhal_rocm_result(device, "hipMemcpy2DAsync", code);
}

void gpuhal_rocm_describe_rect(gpuhal_ops *ops)
{
    ops->copy_rect = rocm_copy_rect;
}
