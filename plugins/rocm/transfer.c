/* rocm/transfer.c: moving bytes.
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
static hipError_t move_host(hipStream_t stream, void *to, const void *from, uint64_t bytes)
{
    return gpuhal_rocm_api.hipMemcpyAsync(to, from, (size_t)bytes, hipMemcpyHostToHost, stream);
}

/* ---- memory that is mapped in several pieces */

/* How many of the bytes HIP takes at once at the address. */
static uint64_t piece_of(uint64_t address, uint64_t bytes)
{
    uint64_t piece = 0;
    return gpuhal_rocm_is_known(address, &piece) && piece > 0 && piece < bytes ? piece : bytes;
}

/* HIP 6.1 compares the bytes of a copy, and HIP 6.2 those of a fill, with the piece of physical memory in which they begin, however
 * much is mapped behind it (hip_memory.cpp, ihipMemcpy_validate and ihipMemset_validate). */
static bool ended_with_a_piece(hipError_t code)
{
    const bool ended = code == hipErrorInvalidValue && gpuhal_rocm_runtime.ends_with_pieces;
    if (ended) {
        gpuhal_rocm_ignore(code);
    }
    return ended;
}

/* A copy between two devices, or within one in the direction of its kind. */
typedef struct move {
    void *to;
    const void *from;
    hipMemcpyKind kind;
    bool between;
    int to_device, from_device; /* ordinals, of a copy between two */
} move;

static hipError_t copy_part(hipStream_t stream, const move *what, uint64_t offset, uint64_t bytes)
{
    char *to = (char *)what->to + offset;
    const char *from = (const char *)what->from + offset;
    const int to_device = what->to_device, from_device = what->from_device;
    return what->between ? gpuhal_rocm_api.hipMemcpyPeerAsync(to, to_device, from, from_device, (size_t)bytes, stream)
                         : gpuhal_rocm_api.hipMemcpyAsync(to, from, (size_t)bytes, what->kind, stream);
}

static hipError_t copy_whole(hipStream_t stream, const move *what, uint64_t bytes)
{
    hipError_t code = copy_part(stream, what, 0, bytes);
    if (!ended_with_a_piece(code)) {
        return code;
    }
    code = hipSuccess;
    for (uint64_t done = 0; done < bytes && code == hipSuccess;) {
        const uint64_t there = piece_of((uintptr_t)what->to + done, bytes - done);
        const uint64_t piece = piece_of((uintptr_t)what->from + done, there);
        code = copy_part(stream, what, done, piece);
        done += piece;
    }
    return code;
}

hipError_t gpuhal_rocm_copy_bytes(hipStream_t stream, void *to, const void *from, uint64_t bytes, hipMemcpyKind kind)
{
    return copy_whole(stream, &(move){.to = to, .from = from, .kind = kind}, bytes);
}

hipError_t gpuhal_rocm_copy_between(hipStream_t stream, void *to, int to_device, const void *from, int from_device,
                                    uint64_t bytes)
{
    const move what = {.to = to, .from = from, .between = true, .to_device = to_device, .from_device = from_device};
    return copy_whole(stream, &what, bytes);
}

/* ---- what the driver waits for */

/* What a lost device answers is for the copy itself to report. */
static bool is_pageable(gpuhal_plugin_device *device, const void *host, uint64_t bytes)
{
    bool pageable = false;
    gpuhal_rocm_visit visit;
    if (gpuhal_rocm_enter(device, &visit) == hipSuccess) {
        uint64_t known = 0;
        pageable = !gpuhal_rocm_is_known((uintptr_t)host, &known) || known < bytes;
        gpuhal_rocm_leave(&visit);
    }
    return pageable;
}

/* hip_memory.cpp, ihipMemcpy: host to host is waited for. rocblit.cpp, readBuffer and writeBuffer: pageable memory goes
 * through a staging buffer, for which reading waits, and writing more than it holds. Some versions wait for the stream
 * before writing less, too. */
bool gpuhal_rocm_waits(gpuhal_plugin_device *device, const void *to, const void *from, uint64_t bytes)
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
        const gpuhal_status status = gpuhal_rocm_check_host(device);
        if (status == GPUHAL_OK) {
            memcpy(host_at(to, offset), from, (size_t)bytes);
        }
        return status;
    }
    gpuhal_rocm_call call;
    hipError_t code = gpuhal_rocm_begin(device, queue, &call);
    if (code == hipSuccess) {
        code = to->host ? move_host(call.stream, host_at(to, offset), from, bytes)
                        : gpuhal_rocm_copy_bytes(call.stream, gpuhal_rocm_at(to->address + offset), from, bytes,
                                                 hipMemcpyHostToDevice);
        code = gpuhal_rocm_end(&call, code, bytes);
    }
    return gpuhal_rocm_result(device, "hipMemcpyAsync", code);
}

static gpuhal_status read_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    if (host_may(device, queue, from)) {
        const gpuhal_status status = gpuhal_rocm_check_host(device);
        if (status == GPUHAL_OK) {
            memcpy(to, host_at(from, offset), (size_t)bytes);
        }
        return status;
    }
    gpuhal_rocm_call call;
    hipError_t code = gpuhal_rocm_begin(device, queue, &call);
    if (code == hipSuccess) {
        code = from->host ? move_host(call.stream, to, host_at(from, offset), bytes)
                          : gpuhal_rocm_copy_bytes(call.stream, to, gpuhal_rocm_at(from->address + offset), bytes,
                                                   hipMemcpyDeviceToHost);
        code = gpuhal_rocm_end(&call, code, bytes);
    }
    return gpuhal_rocm_result(device, "hipMemcpyAsync", code);
}

/* The slots for the caller's memory. */
static gpuhal_status rocm_write(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                uint64_t offset, const void *from, uint64_t bytes)
{
    const bool waits = queue && gpuhal_rocm_waits(device, to->host, from, bytes);
    return waits ? GPUHAL_ERROR_NOT_SUPPORTED : write_bytes(device, queue, to, offset, from, bytes);
}

static gpuhal_status rocm_read(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                               const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    const bool waits = queue && gpuhal_rocm_waits(device, to, from->host, bytes);
    return waits ? GPUHAL_ERROR_NOT_SUPPORTED : read_bytes(device, queue, to, from, offset, bytes);
}

static gpuhal_status rocm_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
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
    gpuhal_rocm_call call;
    hipError_t code = gpuhal_rocm_begin(device, queue, &call);
    if (code == hipSuccess) {
        code = gpuhal_rocm_copy_bytes(call.stream, gpuhal_rocm_at(to->address + to_offset),
                                      gpuhal_rocm_at(from->address + from_offset), bytes, hipMemcpyDeviceToDevice);
        code = gpuhal_rocm_end(&call, code, bytes);
    }
    return gpuhal_rocm_result(device, "hipMemcpyAsync", code);
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
static hipError_t fill_bytes(hipStream_t stream, uint64_t at, const unsigned char *pattern, uint64_t count)
{
    hipError_t code = hipSuccess;
    for (uint64_t i = 0; i < count && code == hipSuccess; i++) {
        code = gpuhal_rocm_api.hipMemsetD8Async(gpuhal_rocm_at(at + i), pattern[i], 1, stream);
    }
    return code;
}

/* @p at is a multiple of the pattern's size, and the bytes too. */
static hipError_t fill_piece(hipStream_t stream, uint64_t at, const unsigned char *pattern, uint32_t pattern_bytes,
                             uint64_t bytes)
{
    uint32_t word;
    uint16_t half;
    switch (pattern_bytes) {
    case 4:
        memcpy(&word, pattern, sizeof word);
        return gpuhal_rocm_api.hipMemsetD32Async(gpuhal_rocm_at(at), (int)word, (size_t)(bytes / 4), stream);
    case 2:
        memcpy(&half, pattern, sizeof half);
        return gpuhal_rocm_api.hipMemsetD16Async(gpuhal_rocm_at(at), half, (size_t)(bytes / 2), stream);
    default:
        return gpuhal_rocm_api.hipMemsetD8Async(gpuhal_rocm_at(at), pattern[0], (size_t)bytes, stream);
    }
}

/* Pieces of physical memory end at pages, and so at multiples of the pattern's size. */
static hipError_t fill_whole(hipStream_t stream, uint64_t at, const unsigned char *pattern, uint32_t pattern_bytes,
                             uint64_t bytes)
{
    hipError_t code = fill_piece(stream, at, pattern, pattern_bytes, bytes);
    if (!ended_with_a_piece(code)) {
        return code;
    }
    code = hipSuccess;
    for (uint64_t done = 0; done < bytes && code == hipSuccess;) {
        const uint64_t piece = piece_of(at + done, bytes - done);
        code = fill_piece(stream, at + done, pattern, pattern_bytes, piece);
        done += piece;
    }
    return code;
}

/* HIP fills from multiples of the pattern's size on. From elsewhere, the bytes up to the next multiple and those after the last
 * one are set one by one, and the middle with the pattern turned by as much. @p twice holds the pattern two times. */
static hipError_t fill_device(hipStream_t stream, uint64_t at, uint64_t bytes, const unsigned char *twice, uint32_t pattern_bytes)
{
    const uint64_t tail = at % pattern_bytes;
    const uint64_t head = tail > 0 ? pattern_bytes - tail : 0;
    const uint64_t middle = bytes - head - tail;
    hipError_t code = fill_bytes(stream, at, twice, head);
    if (code == hipSuccess && middle > 0) {
        code = fill_whole(stream, at + head, twice + head, pattern_bytes, middle);
    }
    return code == hipSuccess ? fill_bytes(stream, at + head + middle, twice + head, tail) : code;
}

static gpuhal_status rocm_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                               uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    unsigned char twice[8];
    const uint16_t half = (uint16_t)pattern;
    const unsigned char quarter = (unsigned char)pattern;
    const void *source = pattern_bytes == 4 ? (const void *)&pattern : pattern_bytes == 2 ? (const void *)&half : &quarter;
    memcpy(twice, source, pattern_bytes);
    memcpy(twice + pattern_bytes, source, pattern_bytes);
    if (host_may(device, queue, memory)) {
        const gpuhal_status status = gpuhal_rocm_check_host(device);
        if (status == GPUHAL_OK) {
            fill_host(host_at(memory, offset), bytes, twice, pattern_bytes);
        }
        return status;
    }
    gpuhal_rocm_call call;
    hipError_t code = gpuhal_rocm_begin(device, queue, &call);
    if (code == hipSuccess) {
        code = fill_device(call.stream, memory->address + offset, bytes, twice, pattern_bytes);
        code = gpuhal_rocm_end(&call, code, bytes);
    }
    return gpuhal_rocm_result(device, "hipMemsetAsync", code);
}

void gpuhal_rocm_describe_transfer(gpuhal_ops *ops)
{
    ops->copy = rocm_copy;
    ops->write = rocm_write;
    ops->read = rocm_read;
    ops->fill = rocm_fill;
}
