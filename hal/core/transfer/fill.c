/* transfer/fill.c: fills a range with a repeated pattern. Uses the plugin's fill, if any, for the aligned part, and
 * writes blocks of the pattern to the rest. */
#include "base/error.h"
#include "transfer/copy.h"

#include <inttypes.h>
#include <stdlib.h>

#define BLOCK_BYTES (64u << 10)

/* Writes the pattern from host memory. `phase` is the pattern offset at the beginning of the range. */
static gpuhal_status fill_by_writing(gpuhal_buffer *to, uint64_t offset, uint64_t bytes, uint32_t pattern,
                                     uint32_t pattern_bytes, uint64_t phase)
{
    uint64_t block_bytes = bytes < BLOCK_BYTES ? bytes : BLOCK_BYTES;
    unsigned char *block = malloc((size_t)block_bytes);
    if (!block) {
        return gpuhal_error_host_memory();
    }
    const uint16_t half = (uint16_t)pattern;
    const unsigned char quarter = (unsigned char)pattern;
    const void *number = pattern_bytes == 4   ? (const void *)&pattern
                         : pattern_bytes == 2 ? (const void *)&half
                                              : &quarter;
    for (uint64_t i = 0; i < block_bytes; i++) {
        block[i] = ((const unsigned char *)number)[(i + phase) % pattern_bytes];
    }
    gpuhal_status status = GPUHAL_OK;
    for (uint64_t done = 0; done < bytes && !status;) {
        /* BLOCK_BYTES is a multiple of every pattern size, so each block begins at the same phase. */
        uint64_t piece = bytes - done < block_bytes ? bytes - done : block_bytes;
        status = gpuhal_move(GPUHAL_TO_DEVICE, to->device, &to->memory, offset + done, block, piece);
        done += piece;
    }
    free(block);
    return status;
}

/* Fills the aligned middle with the plugin, and head and tail by writing. If the middle would be empty or begin inside
 * a pattern, writes everything. The middle consists of whole patterns, so the tail begins with the pattern's first
 * byte. */
static gpuhal_status fill_now(gpuhal_buffer *to, uint64_t offset, uint64_t bytes, uint32_t pattern,
                              uint32_t pattern_bytes)
{
    gpuhal_device *device = to->device;
    uint64_t head = (0 - offset) & device->fill_mask;
    if (!device->ops.fill || head >= bytes || bytes - head <= device->fill_mask || head % pattern_bytes != 0) {
        return fill_by_writing(to, offset, bytes, pattern, pattern_bytes, 0);
    }
    uint64_t middle = (bytes - head) & ~device->fill_mask;
    middle -= middle % pattern_bytes;
    const gpuhal_call call = gpuhal_call_blocking(device, middle);
    gpuhal_status status = gpuhal_device_result(
        device, call,
        device->ops.fill(device->handle, NULL, &to->memory, offset + head, middle, pattern, pattern_bytes));
    if (status) {
        return gpuhal_device_failed(device, status, "filling %" PRIu64 " bytes", middle);
    }
    status = head > 0 ? fill_by_writing(to, offset, head, pattern, pattern_bytes, 0) : GPUHAL_OK;
    uint64_t tail = bytes - head - middle;
    return status || tail == 0 ? status
                               : fill_by_writing(to, offset + head + middle, tail, pattern, pattern_bytes,
                                                 (head + middle) % pattern_bytes);
}

gpuhal_status gpuhal_fill_blocking(gpuhal_buffer *to, uint64_t to_offset, uint64_t bytes, uint32_t pattern,
                                   uint32_t pattern_bytes)
{
    gpuhal_status status = gpuhal_range_check_written(to, to_offset, bytes);
    if (status || bytes == 0) {
        return status;
    }
    uint64_t begin_ns = gpuhal_count_from(bytes);
    to_offset += to->begin;
    to = to->whole;
    status = gpuhal_buffer_enter(to, true);
    if (status) {
        return status;
    }
    status = fill_now(to, to_offset, bytes, pattern, pattern_bytes);
    status = status ? status : gpuhal_buffer_written(to, to_offset, bytes);
    gpuhal_buffer_leave(to, true);
    if (!status) {
        gpuhal_count(&to->device->filled, bytes, begin_ns);
    }
    return status;
}
