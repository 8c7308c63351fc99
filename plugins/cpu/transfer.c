/* cpu/transfer.c: copies and fills with the CPU.
 *
 * All memory of this plugin has a host address, so every slot uses memcpy or memset, and the work has finished when the
 * slot returns. The core has checked all ranges, and never passes a queue, since this plugin has no queues.
 */
#include "device.h"

#include <string.h>

static char *at(const gpuhal_memory *memory, uint64_t offset)
{
    return (char *)memory->host + offset;
}

static gpuhal_status cpu_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                              uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    (void)device, (void)queue;
    memcpy(at(to, to_offset), at(from, from_offset), (size_t)bytes);
    return GPUHAL_OK;
}

static gpuhal_status cpu_write(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                               uint64_t offset, const void *from, uint64_t bytes)
{
    (void)device, (void)queue;
    memcpy(at(to, offset), from, (size_t)bytes);
    return GPUHAL_OK;
}

static gpuhal_status cpu_read(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                              const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    (void)device, (void)queue;
    memcpy(to, at(from, offset), (size_t)bytes);
    return GPUHAL_OK;
}

/* A pattern of 2 or 4 bytes is repeated in a block that stays in the L1 cache, and the block is then copied, because
 * memcpy is faster than a loop over elements and handles odd offsets. */
static gpuhal_status cpu_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                              uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    (void)device, (void)queue;
    char *to = at(memory, offset);
    if (pattern_bytes == 1) {
        memset(to, (int)(pattern & 0xffu), (size_t)bytes);
        return GPUHAL_OK;
    }
    uint32_t word = pattern_bytes == 2 ? (pattern & 0xffffu) | pattern << 16 : pattern;
    uint32_t block[1024];
    size_t used = bytes < sizeof block ? (size_t)bytes : sizeof block;
    for (size_t i = 0; i < (used + 3) / 4; i++) {
        block[i] = word;
    }
    for (; bytes > used; bytes -= used, to += used) {
        memcpy(to, block, used);
    }
    memcpy(to, block, (size_t)bytes);
    return GPUHAL_OK;
}

static char *rect_start(const gpuhal_plugin_rect *rect)
{
    return (rect->memory != NULL ? (char *)rect->memory->host : (char *)rect->host) + rect->offset;
}

static gpuhal_status cpu_copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue,
                                   const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from,
                                   const uint64_t extent[3])
{
    (void)device, (void)queue;
    char *to_slice = rect_start(to);
    const char *from_slice = rect_start(from);
    for (uint64_t z = 0; z < extent[2]; z++) {
        char *to_row = to_slice + z * to->slice_pitch;
        const char *from_row = from_slice + z * from->slice_pitch;
        if (to->row_pitch == extent[0] && from->row_pitch == extent[0]) {
            memcpy(to_row, from_row, (size_t)(extent[0] * extent[1]));
            continue;
        }
        for (uint64_t y = 0; y < extent[1]; y++) {
            memcpy(to_row + y * to->row_pitch, from_row + y * from->row_pitch, (size_t)extent[0]);
        }
    }
    return GPUHAL_OK;
}

void gpuhal_cpu_describe_transfer(gpuhal_ops *ops)
{
    ops->copy = cpu_copy;
    ops->write = cpu_write;
    ops->read = cpu_read;
    ops->fill = cpu_fill;
    ops->copy_rect = cpu_copy_rect;
}
