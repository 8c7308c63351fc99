/* stream/transfer.c: moves bytes.
 *
 * A side is memory of the device, or host memory that gpuhal_memory.host names. Copies between host and device name the
 * direction, so the driver need not look the address up. The driver stages pageable memory of the caller. Without a
 * queue, the host does the copies that need only the host. With a queue, copies that make the driver wait are
 * refused.
 */
#include "../common/fill.h"
#include "device.h"

#include <string.h>

enum { TAKEN_AT_ONCE = 64 << 10 }; /* pageable bytes */

/* Returns whether the host alone may copy between host memory: no earlier work of the device must come first. Without a
 * queue no order is promised (plugin.h), except after the stream of an adopted device. */
static bool host_may(const gpuhal_plugin_device *device, const gpuhal_plugin_queue *queue)
{
    return !queue && !device->foreign;
}

/* ---- copies that make the driver wait */

/* The copy itself reports the code of a lost device. */
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

/* "API synchronization behavior" in CUDA's manual: host to host is fully synchronous, and a copy to pageable memory
 * returns once it has completed; one from pageable memory "might be synchronous", except for 64 KiB or less, which are
 * taken over at once. HIP, hip_memory.cpp, ihipMemcpy: host to host is waited for. rocblit.cpp, readBuffer and
 * writeBuffer: pageable memory goes through a staging buffer. Reading waits for it, and so does writing more than it
 * holds. Some versions also wait for the stream before writing less. */
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

/* Before the host copies, it checks the context: page-locked memory of a context that is gone is not mapped any more,
 * and touching it would end the process. */
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

/* The slots for the caller's memory refuse copies that would make the driver wait before anything is enqueued, so that
 * the core can copy on the queue's thread instead. */
static gpuhal_status write_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t offset, const void *from, uint64_t bytes)
{
    if (queue && GPUHAL_OWN(waits)(device, to->host, from, bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return move(device, queue, gpuhal_stream_place_in(to, offset),
                (gpuhal_stream_place){.host = (char *)(uintptr_t)from}, bytes);
}

static gpuhal_status read_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    if (queue && GPUHAL_OWN(waits)(device, to, from->host, bytes)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return move(device, queue, (gpuhal_stream_place){.host = to}, gpuhal_stream_place_in(from, offset), bytes);
}

static gpuhal_status copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                          uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    /* Our host memory is page-locked, so only this reason to wait remains, and the driver need not be asked. */
    if (queue && to->host && from->host) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return move(device, queue, gpuhal_stream_place_in(to, to_offset), gpuhal_stream_place_in(from, from_offset), bytes);
}

/* ---- fill */

/* Sets the single bytes at the ends. */
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

/* Fills with a whole number of patterns, from a multiple of its size on; @p host is the same memory's address on the
 * host, or NULL. */
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

/* CUDA and HIP fill from multiples of the pattern's size on. From elsewhere, the bytes up to the next multiple and
 * those after the last one are set one by one, and the middle with the pattern rotated by as many bytes. @p twice holds
 * the pattern two times. Head and tail are one pattern together, or nothing, and @p bytes is a multiple of the pattern,
 * at least one: the middle is not less than 0 and a multiple of the pattern. So the tail, as the middle, begins `head`
 * bytes into the pattern. */
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
    gpuhal_plugin_twice(pattern, pattern_bytes, twice);
    if (memory->host && host_may(device, queue)) {
        const gpuhal_status status = GPUHAL_OWN(check_host)(device);
        if (status == GPUHAL_OK) {
            gpuhal_plugin_fill_host((char *)memory->host + offset, bytes, twice, pattern_bytes);
        }
        return status;
    }
    gpuhal_stream_call call;
    const gpuhal_status status = GPUHAL_OWN(begin)(device, queue, &call);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *name;
    const char *host = memory->host ? (char *)memory->host + offset : NULL;
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
