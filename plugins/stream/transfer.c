/* stream/transfer.c: moves bytes.
 *
 * A side of a copy is device memory, or host memory with gpuhal_memory.host set. Calls for copies between host and
 * device specify the direction, so the driver does not have to look up the addresses. The driver stages copies from and
 * to pageable memory. Without a queue, copies between host memories run on the CPU.
 */
#include "../common/fill.h"
#include "device.h"

#include <string.h>

enum { TAKEN_AT_ONCE = 64 << 10 }; /* pageable bytes */

/* Returns whether the CPU may copy between host memories, or fill host memory, because no earlier device work has to
 * finish first. Without a queue no order is guaranteed (plugin.h), except after the stream of an adopted device. */
static bool host_may(const gpuhal_plugin_device *device, const gpuhal_plugin_queue *queue)
{
    return !queue && !device->foreign;
}

/* ---- copies that make the driver wait */

/* If the device is lost, the copy itself reports the loss. */
static bool is_pageable(gpuhal_plugin_device *device, const void *host, uint64_t bytes)
{
    bool pageable = false;
    gpuhal_stream_scope scope;
    if (GPUHAL_OWN(enter)(device, &scope) == GPUHAL_VENDOR_OK) {
        pageable = GPUHAL_OWN(is_pageable)(host, bytes);
        GPUHAL_OWN(leave)(&scope);
    }
    return pageable;
}

/* "API synchronization behavior" in the CUDA manual: host-to-host copies are fully synchronous, and a copy to pageable
 * memory returns once it has completed. A copy from pageable memory "might be synchronous", except for 64 KiB or less,
 * which are staged immediately. HIP, hip_memory.cpp, ihipMemcpy: waits for host-to-host copies. rocblit.cpp, readBuffer
 * and writeBuffer: pageable memory is copied through a staging buffer. Reads wait for it, and so do writes larger than
 * the buffer. Some versions also wait for the stream before smaller writes. */
bool GPUHAL_OWN(waits)(gpuhal_plugin_device *device, const void *to, const void *from, uint64_t bytes)
{
    if (to && from) {
        return true;
    }
    return to ? is_pageable(device, to, bytes) : from && bytes > TAKEN_AT_ONCE && is_pageable(device, from, bytes);
}

/* ---- copies */

vendor_code GPUHAL_OWN(copy_pieces)(vendor_stream stream, gpuhal_stream_place to, gpuhal_stream_place from,
                                    uint64_t bytes)
{
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint64_t left = bytes; left > 0 && code == GPUHAL_VENDOR_OK;) {
        const uint64_t piece = gpuhal_stream_piece(from.host, gpuhal_stream_piece(to.host, left));
        code = GPUHAL_OWN(copy_bytes)(stream, &to, &from, piece);
        to = gpuhal_stream_place_behind(to, piece);
        from = gpuhal_stream_place_behind(from, piece);
        left -= piece;
    }
    return code;
}

/* Check the context before the CPU copies. Page-locked memory of a destroyed context is unmapped, and accessing it
 * would crash the process. */
static gpuhal_status move(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, gpuhal_stream_place to,
                          gpuhal_stream_place from, uint64_t bytes)
{
    if (to.host && from.host && host_may(device, queue)) {
        const gpuhal_status status = GPUHAL_OWN(check_host)(device);
        if (status == GPUHAL_OK) {
            memcpy(to.host, from.host, (size_t)bytes);
        }
        return status;
    }
    gpuhal_stream_call call;
    const gpuhal_status status = GPUHAL_OWN(begin)(device, queue, &call);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *name = GPUHAL_OWN(copy_call)(&to, &from);
    vendor_code code = GPUHAL_OWN(copy_pieces)(call.stream, to, from, bytes);
    code = GPUHAL_OWN(end)(&call, code, bytes, &name);
    return GPUHAL_OWN(result)(device, name, code);
}

/* The slots for the caller's memory refuse copies that would make the driver wait, before anything is enqueued. The
 * core then copies on the queue's thread instead. */
static gpuhal_status write_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t offset, const void *from, uint64_t bytes)
{
    if (queue && GPUHAL_OWN(waits)(device, gpuhal_stream_host_of(to), from, bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return move(device, queue, gpuhal_stream_place_in(to, offset),
                (gpuhal_stream_place){.host = (char *)(uintptr_t)from}, bytes);
}

static gpuhal_status read_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    if (queue && GPUHAL_OWN(waits)(device, to, gpuhal_stream_host_of(from), bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return move(device, queue, (gpuhal_stream_place){.host = to}, gpuhal_stream_place_in(from, offset), bytes);
}

static gpuhal_status copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                          uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    /* The plugin's host memory is page-locked, so only host-to-host copies make the driver wait. */
    if (queue && gpuhal_stream_host_of(to) && gpuhal_stream_host_of(from)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return move(device, queue, gpuhal_stream_place_in(to, to_offset), gpuhal_stream_place_in(from, from_offset), bytes);
}

/* ---- fill */

static vendor_code fill_bytes(vendor_stream stream, uint64_t at, const unsigned char *pattern, uint64_t count,
                              const char **out_name)
{
    *out_name = GPUHAL_VENDOR_CALL(MemsetD8Async);
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint64_t i = 0; i < count && code == GPUHAL_VENDOR_OK; i++) {
        code = GPUHAL_VENDOR(MemsetD8Async)(GPUHAL_VENDOR_AT(at + i), pattern[i], 1, stream);
    }
    return code;
}

/* Fills @p bytes, a multiple of the pattern's size, beginning at an aligned address. @p host is the host address of the
 * same memory, or NULL. */
static vendor_code fill_pieces(vendor_stream stream, uint64_t at, const char *host, const unsigned char *pattern,
                               uint32_t pattern_bytes, uint64_t bytes)
{
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint64_t done = 0; done < bytes && code == GPUHAL_VENDOR_OK;) {
        const uint64_t piece = gpuhal_stream_piece(host ? host + done : NULL, bytes - done);
        code = GPUHAL_OWN(fill_whole)(stream, at + done, pattern, pattern_bytes, piece);
        done += piece;
    }
    return code;
}

/* CUDA and HIP fill only from addresses that are multiples of the pattern's size. For other addresses, the head (the
 * bytes before the first multiple) and the tail (those after the last multiple) are set byte by byte. The middle is
 * filled with the pattern rotated by the length of the head. @p twice contains the pattern two times. Head and tail are
 * either both empty or together as long as one pattern, and @p bytes is a positive multiple of the pattern's size.
 * Therefore the middle's size is also a multiple, possibly 0. The tail, like the middle, begins `head` bytes into the
 * pattern. */
static vendor_code fill_device(vendor_stream stream, uint64_t at, const char *host, uint64_t bytes,
                               const unsigned char *twice, uint32_t pattern_bytes, const char **out_name)
{
    const uint64_t tail = at % pattern_bytes;
    const uint64_t head = tail > 0 ? pattern_bytes - tail : 0;
    const uint64_t middle = bytes - head - tail;
    vendor_code code = fill_bytes(stream, at, twice, head, out_name);
    if (code == GPUHAL_VENDOR_OK && middle > 0) {
        *out_name = pattern_bytes == 4   ? GPUHAL_VENDOR_CALL(MemsetD32Async)
                    : pattern_bytes == 2 ? GPUHAL_VENDOR_CALL(MemsetD16Async)
                                         : GPUHAL_VENDOR_CALL(MemsetD8Async);
        code = fill_pieces(stream, at + head, host ? host + head : NULL, twice + head, pattern_bytes, middle);
    }
    return code == GPUHAL_VENDOR_OK ? fill_bytes(stream, at + head + middle, twice + head, tail, out_name) : code;
}

static gpuhal_status fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                          uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    unsigned char twice[8];
    char *const start = gpuhal_stream_host_of(memory), *const host = start ? start + offset : NULL;
    gpuhal_plugin_twice(pattern, pattern_bytes, twice);
    if (host && host_may(device, queue)) {
        const gpuhal_status status = GPUHAL_OWN(check_host)(device);
        if (status == GPUHAL_OK) {
            gpuhal_plugin_fill_host(host, bytes, twice, pattern_bytes);
        }
        return status;
    }
    gpuhal_stream_call call;
    const gpuhal_status status = GPUHAL_OWN(begin)(device, queue, &call);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *name;
    vendor_code code = fill_device(call.stream, memory->address + offset, host, bytes, twice, pattern_bytes, &name);
    code = GPUHAL_OWN(end)(&call, code, bytes, &name);
    return GPUHAL_OWN(result)(device, name, code);
}

void GPUHAL_OWN(describe_transfer)(gpuhal_ops *ops)
{
    ops->copy = copy;
    ops->write = write_bytes;
    ops->read = read_bytes;
    ops->fill = fill;
}
