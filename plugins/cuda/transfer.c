/* cuda/transfer.c: moving bytes.
 *
 * A side is memory of the device, or host memory that is known by gpuhal_memory.host. Copies between host and device name the
 * direction, which spares the driver to look the address up; pageable memory of the caller is staged by the driver.
 * Without a queue, what only the host is needed for is done by the host. With one, copies for which the driver waits
 * are refused.
 */
#include "device.h"

#include <string.h>

enum { TAKEN_AT_ONCE = 64 << 10 }; /* pageable bytes */

/* The host alone may do it: nothing that the device has been given comes before. */
static bool host_may(const gpuhal_plugin_device *device, const gpuhal_plugin_queue *queue, const gpuhal_memory *memory)
{
    return memory->host && !queue && !device->foreign;
}

static char *host_at(const gpuhal_memory *memory, uint64_t offset)
{
    return (char *)memory->host + offset;
}

/* Host to host, by unified addresses. */
static CUresult move_host(CUstream stream, const void *to, const void *from, uint64_t bytes)
{
    return gpuhal_cuda_api.cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, (size_t)bytes, stream);
}

/* ---- what the driver waits for */

/* Inside the context. Memory that the driver does not know is INVALID_VALUE; other codes are for the copy itself to
 * report. */
static bool is_unknown(const void *address)
{
    CUmemorytype type = 0;
    const CUdeviceptr at = (uintptr_t)address;
    const CUresult code = gpuhal_cuda_api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
    return code == CUDA_ERROR_INVALID_VALUE || (code == CUDA_SUCCESS && type == 0);
}

static bool is_pageable(gpuhal_plugin_device *device, const void *host, uint64_t bytes)
{
    bool pageable = false;
    gpuhal_cuda_visit visit;
    if (gpuhal_cuda_enter(device, &visit) == CUDA_SUCCESS) {
        pageable = is_unknown(host) || is_unknown((const char *)host + (bytes - 1));
        gpuhal_cuda_leave(&visit);
    }
    return pageable;
}

/* "API synchronization behavior" in the driver's manual: host to host is fully synchronous, and a copy to pageable
 * memory returns once it has completed; one from pageable memory "might be synchronous", but for 64 KiB or less, which
 * are taken over at once. */
bool gpuhal_cuda_waits(gpuhal_plugin_device *device, const void *to, const void *from, uint64_t bytes)
{
    if (to && from) {
        return true;
    }
    return to ? is_pageable(device, to, bytes) : from && bytes > TAKEN_AT_ONCE && is_pageable(device, from, bytes);
}

/* ---- copies */

static gpuhal_status write_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t offset, const void *from, uint64_t bytes)
{
    if (host_may(device, queue, to)) {
        const gpuhal_status status = gpuhal_cuda_check_host(device);
        if (status == GPUHAL_OK) {
            memcpy(host_at(to, offset), from, (size_t)bytes);
        }
        return status;
    }
    gpuhal_cuda_call call;
    CUresult code = gpuhal_cuda_begin(device, queue, &call);
    if (code == CUDA_SUCCESS) {
        code = to->host ? move_host(call.stream, host_at(to, offset), from, bytes)
                        : gpuhal_cuda_api.cuMemcpyHtoDAsync_v2(to->address + offset, from, (size_t)bytes, call.stream);
        code = gpuhal_cuda_end(&call, code, bytes);
    }
    return gpuhal_cuda_result(device, "cuMemcpyHtoDAsync", code);
}

static gpuhal_status read_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    if (host_may(device, queue, from)) {
        const gpuhal_status status = gpuhal_cuda_check_host(device);
        if (status == GPUHAL_OK) {
            memcpy(to, host_at(from, offset), (size_t)bytes);
        }
        return status;
    }
    gpuhal_cuda_call call;
    CUresult code = gpuhal_cuda_begin(device, queue, &call);
    if (code == CUDA_SUCCESS) {
        code = from->host ? move_host(call.stream, to, host_at(from, offset), bytes)
                          : gpuhal_cuda_api.cuMemcpyDtoHAsync_v2(to, from->address + offset, (size_t)bytes, call.stream);
        code = gpuhal_cuda_end(&call, code, bytes);
    }
    return gpuhal_cuda_result(device, "cuMemcpyDtoHAsync", code);
}

/* The slots for the caller's memory. */
static gpuhal_status cuda_write(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                uint64_t offset, const void *from, uint64_t bytes)
{
    const bool waits = queue && gpuhal_cuda_waits(device, to->host, from, bytes);
    return waits ? GPUHAL_ERROR_NOT_SUPPORTED : write_bytes(device, queue, to, offset, from, bytes);
}

static gpuhal_status cuda_read(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                               const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    const bool waits = queue && gpuhal_cuda_waits(device, to, from->host, bytes);
    return waits ? GPUHAL_ERROR_NOT_SUPPORTED : read_bytes(device, queue, to, from, offset, bytes);
}

static gpuhal_status cuda_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                               uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    if (queue && to->host && from->host) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (from->host) {
        return write_bytes(device, queue, to, to_offset, host_at(from, from_offset), bytes);
    }
    if (to->host) {
        return read_bytes(device, queue, host_at(to, to_offset), from, from_offset, bytes);
    }
    gpuhal_cuda_call call;
    CUresult code = gpuhal_cuda_begin(device, queue, &call);
    if (code == CUDA_SUCCESS) {
        code = gpuhal_cuda_api.cuMemcpyDtoDAsync_v2(to->address + to_offset, from->address + from_offset, (size_t)bytes,
                                                    call.stream);
        code = gpuhal_cuda_end(&call, code, bytes);
    }
    return gpuhal_cuda_result(device, "cuMemcpyDtoDAsync", code);
}

/* ---- fill */

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

/* Single bytes at the ends. */
static CUresult fill_bytes(CUstream stream, CUdeviceptr at, const unsigned char *pattern, uint64_t count)
{
    CUresult code = CUDA_SUCCESS;
    for (uint64_t i = 0; i < count && code == CUDA_SUCCESS; i++) {
        code = gpuhal_cuda_api.cuMemsetD8Async(at + i, pattern[i], 1, stream);
    }
    return code;
}

/* @p at is a multiple of the pattern's size, and the bytes too. */
static CUresult fill_whole(CUstream stream, CUdeviceptr at, const unsigned char *pattern, uint32_t pattern_bytes, uint64_t bytes)
{
    uint32_t word;
    uint16_t half;
    switch (pattern_bytes) {
    case 4:
        memcpy(&word, pattern, sizeof word);
        return gpuhal_cuda_api.cuMemsetD32Async(at, word, (size_t)(bytes / 4), stream);
    case 2:
        memcpy(&half, pattern, sizeof half);
        return gpuhal_cuda_api.cuMemsetD16Async(at, half, (size_t)(bytes / 2), stream);
    default:
        return gpuhal_cuda_api.cuMemsetD8Async(at, pattern[0], (size_t)bytes, stream);
    }
}

/* CUDA fills from multiples of the pattern's size on. From elsewhere, the bytes up to the next multiple and those after the last
 * one are set one by one, and the middle with the pattern turned by as much. @p twice holds the pattern two times. */
static CUresult fill_device(CUstream stream, CUdeviceptr at, uint64_t bytes, const unsigned char *twice, uint32_t pattern_bytes)
{
    const uint64_t tail = at % pattern_bytes;
    const uint64_t head = tail > 0 ? pattern_bytes - tail : 0;
    const uint64_t middle = bytes - head - tail;
    CUresult code = fill_bytes(stream, at, twice, head);
    if (code == CUDA_SUCCESS && middle > 0) {
        code = fill_whole(stream, at + head, twice + head, pattern_bytes, middle);
    }
    return code == CUDA_SUCCESS ? fill_bytes(stream, at + head + middle, twice + head, tail) : code;
}

static gpuhal_status cuda_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                               uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    unsigned char twice[8];
    const uint16_t half = (uint16_t)pattern;
    const unsigned char quarter = (unsigned char)pattern;
    const void *source = pattern_bytes == 4 ? (const void *)&pattern : pattern_bytes == 2 ? (const void *)&half : &quarter;
    memcpy(twice, source, pattern_bytes);
    memcpy(twice + pattern_bytes, source, pattern_bytes);
    if (host_may(device, queue, memory)) {
        const gpuhal_status status = gpuhal_cuda_check_host(device);
        if (status == GPUHAL_OK) {
            fill_host(host_at(memory, offset), bytes, twice, pattern_bytes);
        }
        return status;
    }
    gpuhal_cuda_call call;
    CUresult code = gpuhal_cuda_begin(device, queue, &call);
    if (code == CUDA_SUCCESS) {
        code = fill_device(call.stream, memory->address + offset, bytes, twice, pattern_bytes);
        code = gpuhal_cuda_end(&call, code, bytes);
    }
    return gpuhal_cuda_result(device, "cuMemsetAsync", code);
}

void gpuhal_cuda_describe_transfer(gpuhal_ops *ops)
{
    ops->copy = cuda_copy;
    ops->write = cuda_write;
    ops->read = cuda_read;
    ops->fill = cuda_fill;
}
