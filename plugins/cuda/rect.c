/* cuda/rect.c: copies of rectangles: one command for each slice, or for all where the slices lie like rows.
 *
 * The driver refuses pitches above a limit of the device (2 GiB), and may refuse some below it inside one device, since only what
 * cuMemAllocPitch chose is promised to work. Then rows are copied one by one.
 */
#include "device.h"

#include <string.h>

/* One side: an address of the device, or of the host. */
typedef struct side {
    CUdeviceptr device;
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

static CUresult copy_row(CUstream stream, const side *to, const side *from, uint64_t bytes)
{
    if (to->host && from->host) {
        return gpuhal_cuda_api.cuMemcpyAsync((uintptr_t)to->host, (uintptr_t)from->host, (size_t)bytes, stream);
    }
    if (to->host) {
        return gpuhal_cuda_api.cuMemcpyDtoHAsync_v2(to->host, from->device, (size_t)bytes, stream);
    }
    if (from->host) {
        return gpuhal_cuda_api.cuMemcpyHtoDAsync_v2(to->device, from->host, (size_t)bytes, stream);
    }
    return gpuhal_cuda_api.cuMemcpyDtoDAsync_v2(to->device, from->device, (size_t)bytes, stream);
}

static CUresult copy_rows(CUstream stream, const side *to, const side *from, uint64_t bytes, uint64_t rows)
{
    CUresult code = CUDA_SUCCESS;
    for (uint64_t y = 0; y < rows && code == CUDA_SUCCESS; y++) {
        const side to_row = moved(to, y * to->row_pitch), from_row = moved(from, y * from->row_pitch);
        code = copy_row(stream, &to_row, &from_row, bytes);
    }
    return code;
}

/* Rows of one slice, or of all when they lie evenly. */
static CUresult copy_slice(gpuhal_plugin_device *device, CUstream stream, const side *to, const side *from, uint64_t bytes,
                           uint64_t rows)
{
    const uint64_t pitch_max = device->entry->pitch_max;
    if (to->row_pitch > pitch_max || from->row_pitch > pitch_max) {
        return copy_rows(stream, to, from, bytes, rows);
    }
    const CUDA_MEMCPY2D copy = {
        .srcMemoryType = from->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .srcHost = from->host,
        .srcDevice = from->device,
        .srcPitch = (size_t)from->row_pitch,
        .dstMemoryType = to->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
        .dstHost = to->host,
        .dstDevice = to->device,
        .dstPitch = (size_t)to->row_pitch,
        .WidthInBytes = (size_t)bytes,
        .Height = (size_t)rows,
    };
    const CUresult code = gpuhal_cuda_api.cuMemcpy2DAsync_v2(&copy, stream);
    return code == CUDA_ERROR_INVALID_VALUE ? copy_rows(stream, to, from, bytes, rows) : code;
}

static bool is_even(const side *one, const uint64_t extent[3])
{
    return one->slice_pitch == one->row_pitch * extent[1];
}

static CUresult copy_box(gpuhal_plugin_device *device, CUstream stream, side to, side from, const uint64_t extent[3])
{
    if (extent[1] == 1) {
        to.row_pitch = to.slice_pitch;
        from.row_pitch = from.slice_pitch;
    }
    if (extent[1] == 1 || (is_even(&to, extent) && is_even(&from, extent))) {
        return copy_slice(device, stream, &to, &from, extent[0], extent[1] * extent[2]);
    }
    CUresult code = CUDA_SUCCESS;
    for (uint64_t z = 0; z < extent[2] && code == CUDA_SUCCESS; z++) {
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

static gpuhal_status cuda_copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                                    const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    const side to_side = resolve(to), from_side = resolve(from);
    const uint64_t bytes = span(to_side.host ? &to_side : &from_side, extent);
    if (queue && gpuhal_cuda_waits(device, to_side.host, from_side.host, bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (to_side.host && from_side.host && !queue && !device->foreign) {
        const gpuhal_status status = gpuhal_cuda_check_host(device);
        if (status == GPUHAL_OK) {
            rect_on_host(&to_side, &from_side, extent);
        }
        return status;
    }
    gpuhal_cuda_call call;
    CUresult code = gpuhal_cuda_begin(device, queue, &call);
    if (code == CUDA_SUCCESS) {
        code = copy_box(device, call.stream, to_side, from_side, extent);
        code = gpuhal_cuda_end(&call, code, extent[0] * extent[1] * extent[2]);
    }
    return gpuhal_cuda_result(device, "cuMemcpy2DAsync", code);
}

void gpuhal_cuda_describe_rect(gpuhal_ops *ops)
{
    ops->copy_rect = cuda_copy_rect;
}
