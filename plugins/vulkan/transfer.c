/* vulkan/transfer.c: copies and fills.
 *
 * The device copies between buffers, in an internal stream for blocking calls, otherwise in the open batch of the
 * queue. If device memory is host-visible and its flags permit (host_may()), the CPU copies between it and host memory
 * in blocking calls. On a queue the CPU makes only small copies, and only if no work is unfinished, since an immediate
 * copy is then in order. All other transfers of host memory return NOT_SUPPORTED, and the core stages them.
 *
 * Later submissions see host writes automatically. The barrier at the end of each command buffer makes device writes
 * visible to the host.
 */
#include "device.h"

#include <string.h>

/* lavapipe stores the size of a region in an int. */
#define REGION_BYTES (UINT64_C(1) << 30)
/* Maximum number of bytes that an enqueueing call copies with the CPU. The core's queue thread makes larger copies. */
#define QUEUED_HOST_BYTES (UINT64_C(256) << 10)
/* Maximum number of rows that one command copies. */
#define REGIONS 256u
/* Maximum number of commands in one submission of an internal stream, so that a rectangle with many rows uses bounded
 * memory.
 */
#define COMMANDS 64u

static VkBuffer handle(const gpuhal_memory *memory)
{
    return gpuhal_vulkan_buffer_of(memory)->buffer;
}

static char *host_at(const gpuhal_memory *memory, uint64_t offset)
{
    return (char *)memory->host + offset;
}

typedef struct target {
    gpuhal_plugin_device *device;
    gpuhal_plugin_queue *queue;   /* NULL to use an internal stream */
    gpuhal_vulkan_stream *stream; /* NULL if no command buffer has begun */
    gpuhal_vulkan_piece piece;    /* passed to the queue for the next command */
} target;

/* On a queue the spans determine the barriers. An internal stream contains the commands of only one call, which access
 * no byte twice, because the core rejects overlapping sides. */
static gpuhal_status next_commands(target *to, gpuhal_vulkan_span written, gpuhal_vulkan_span read,
                                   VkCommandBuffer *out_commands)
{
    if (to->queue) {
        const gpuhal_vulkan_touch touches[] = {{.span = written, .writes = true}, {.span = read}};
        const gpuhal_status recorded = gpuhal_vulkan_queue_record(to->queue, to->piece, touches, 2, out_commands);
        to->piece = recorded == GPUHAL_OK ? GPUHAL_VULKAN_TRANSFER_BEGUN : to->piece;
        return recorded;
    }
    gpuhal_status status = to->stream ? GPUHAL_OK : gpuhal_vulkan_begin(to->device, false, &to->stream);
    *out_commands = status == GPUHAL_OK ? to->stream->commands : VK_NULL_HANDLE;
    return status;
}

/* Submits the internal stream, if any, and waits for it. */
static gpuhal_status end_commands(target *to)
{
    gpuhal_vulkan_stream *stream = to->stream;
    to->stream = NULL;
    return stream ? gpuhal_vulkan_finish(to->device, stream) : GPUHAL_OK;
}

void gpuhal_vulkan_record_copy(gpuhal_plugin_device *device, VkCommandBuffer commands, const gpuhal_memory *to,
                               uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes; done += REGION_BYTES) {
        const VkBufferCopy region = {
            .srcOffset = from_offset + done,
            .dstOffset = to_offset + done,
            .size = bytes - done < REGION_BYTES ? bytes - done : REGION_BYTES,
        };
        device->api.vkCmdCopyBuffer(commands, handle(from), handle(to), 1, &region);
    }
}

static gpuhal_status vulkan_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    target where = {.device = device, .queue = queue};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    gpuhal_status status = next_commands(&where, gpuhal_vulkan_span_of(to, to_offset, bytes),
                                         gpuhal_vulkan_span_of(from, from_offset, bytes), &commands);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_record_copy(device, commands, to, to_offset, from, from_offset, bytes);
    return end_commands(&where);
}

/* Vulkan repeats a four-byte pattern. Shorter patterns are repeated within these four bytes. The reported fill
 * alignment ensures that both ends of the range are multiples of four. */
void gpuhal_vulkan_record_fill(gpuhal_plugin_device *device, VkCommandBuffer commands, const gpuhal_memory *memory,
                               uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    uint32_t word = pattern;
    if (pattern_bytes == 1) {
        word = (pattern & 0xffu) * 0x01010101u;
    } else if (pattern_bytes == 2) {
        word = (pattern & 0xffffu) * 0x00010001u;
    }
    device->api.vkCmdFillBuffer(commands, handle(memory), offset, bytes, word);
}

static gpuhal_status vulkan_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                                 uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    target where = {.device = device, .queue = queue};
    VkCommandBuffer commands = VK_NULL_HANDLE;
    gpuhal_status status =
        next_commands(&where, gpuhal_vulkan_span_of(memory, offset, bytes), (gpuhal_vulkan_span){0}, &commands);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_record_fill(device, commands, memory, offset, bytes, pattern, pattern_bytes);
    return end_commands(&where);
}

/* Returns whether the host may access these bytes now. Non-coherent memory is transferred in whole atoms, and another
 * thread could concurrently change other bytes of the same atom. So only ranges of whole atoms are safe. */
static bool host_may(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                     uint64_t offset, uint64_t bytes, uint32_t wanted_flags)
{
    if (!memory->host || (memory->flags & wanted_flags) != wanted_flags) {
        return false;
    }
    if (!(memory->flags & GPUHAL_MEMORY_HOST_COHERENT)) {
        uint64_t atom = device->hardware.properties.limits.nonCoherentAtomSize;
        uint64_t first = gpuhal_vulkan_buffer_of(memory)->memory_offset + offset;
        if (first % atom != 0 || bytes % atom != 0) {
            return false;
        }
    }
    return !queue || (bytes <= QUEUED_HOST_BYTES && gpuhal_vulkan_queue_is_idle(queue));
}

/* Must be called before the host reads. */
static gpuhal_status invalidate_host(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                     uint64_t bytes)
{
    if (memory->flags & GPUHAL_MEMORY_HOST_COHERENT) {
        return GPUHAL_OK;
    }
    const gpuhal_vulkan_buffer *buffer = gpuhal_vulkan_buffer_of(memory);
    const VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                       .memory = buffer->memory,
                                       .offset = buffer->memory_offset + offset,
                                       .size = bytes};
    return gpuhal_vulkan_result(device, "vkInvalidateMappedMemoryRanges",
                                device->api.vkInvalidateMappedMemoryRanges(device->handle, 1, &range));
}

static gpuhal_status vulkan_write(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                  uint64_t offset, const void *from, uint64_t bytes)
{
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (!host_may(device, queue, to, offset, bytes, GPUHAL_MEMORY_HOST_COHERENT)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    memcpy(host_at(to, offset), from, (size_t)bytes);
    return GPUHAL_OK;
}

/* The CPU reads uncached memory over the bus a few bytes at a time. A copy by the device is faster. */
static gpuhal_status vulkan_read(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                 const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (!host_may(device, queue, from, offset, bytes, GPUHAL_MEMORY_HOST_CACHED)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    status = invalidate_host(device, from, offset, bytes);
    if (status == GPUHAL_OK) {
        memcpy(to, host_at(from, offset), (size_t)bytes);
    }
    return status;
}

static uint64_t row_at(const gpuhal_plugin_rect *side, const uint64_t extent[3], uint64_t row)
{
    return side->offset + row / extent[1] * side->slice_pitch + row % extent[1] * side->row_pitch;
}

static void rect_on_host(const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    char *target_start = to->memory ? to->memory->host : to->host;
    const char *source_start = from->memory ? from->memory->host : from->host;
    for (uint64_t row = 0; row < extent[1] * extent[2]; row++) {
        memcpy(target_start + row_at(to, extent, row), source_start + row_at(from, extent, row), (size_t)extent[0]);
    }
}

/* One side is ordinary host memory. Accepts only coherent memory on the other side, because other threads may write to
 * the gaps between rows. Passes the number of copied bytes rather than the span, because host_may() limits the bytes
 * that the CPU copies on a queue. */
static gpuhal_status rect_with_host(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue,
                                    const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from,
                                    const uint64_t extent[3])
{
    const gpuhal_memory *memory = to->memory ? to->memory : from->memory;
    uint32_t wanted = GPUHAL_MEMORY_HOST_COHERENT | (to->memory ? 0 : GPUHAL_MEMORY_HOST_CACHED);
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (!host_may(device, queue, memory, 0, extent[0] * extent[1] * extent[2], wanted)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    rect_on_host(to, from, extent);
    return GPUHAL_OK;
}

/* Merges rows that are contiguous on both sides into one row, and slices likewise. */
static void merge_rows(const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from, uint64_t extent[3])
{
    if (extent[1] > 1 && (to->row_pitch != extent[0] || from->row_pitch != extent[0])) {
        return;
    }
    extent[0] *= extent[1];
    extent[1] = 1;
    if (extent[2] > 1 && (to->slice_pitch != extent[0] || from->slice_pitch != extent[0])) {
        return;
    }
    extent[0] *= extent[2];
    extent[2] = 1;
}

/* Copies up to REGIONS rows, starting with row @p first, in one command. Row offsets increase, so the spans of two
 * commands for one rectangle are disjoint, unless both sides are in the same buffer. */
static gpuhal_status copy_rows(target *where, const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from,
                               const uint64_t extent[3], uint64_t first)
{
    VkBufferCopy regions[REGIONS];
    uint64_t rest = extent[1] * extent[2] - first;
    uint32_t count = rest < REGIONS ? (uint32_t)rest : REGIONS;
    for (uint32_t i = 0; i < count; i++) {
        regions[i] = (VkBufferCopy){
            .srcOffset = row_at(from, extent, first + i),
            .dstOffset = row_at(to, extent, first + i),
            .size = extent[0],
        };
    }
    const VkBufferCopy *last = &regions[count - 1];
    const gpuhal_vulkan_span written =
        gpuhal_vulkan_span_of(to->memory, regions[0].dstOffset, last->dstOffset + extent[0] - regions[0].dstOffset);
    const gpuhal_vulkan_span read =
        gpuhal_vulkan_span_of(from->memory, regions[0].srcOffset, last->srcOffset + extent[0] - regions[0].srcOffset);
    VkCommandBuffer commands = VK_NULL_HANDLE;
    gpuhal_status status = next_commands(where, written, read, &commands);
    if (status == GPUHAL_OK) {
        where->device->api.vkCmdCopyBuffer(commands, handle(from->memory), handle(to->memory), count, regions);
    }
    return status;
}

static gpuhal_status vulkan_copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue,
                                      const gpuhal_plugin_rect *to, const gpuhal_plugin_rect *from,
                                      const uint64_t extent[3])
{
    if (!to->memory || !from->memory) {
        return rect_with_host(device, queue, to, from, extent);
    }
    uint64_t merged[3] = {extent[0], extent[1], extent[2]};
    merge_rows(to, from, merged);
    uint64_t rows = merged[1] * merged[2];
    if (rows == 1) {
        return vulkan_copy(device, queue, to->memory, to->offset, from->memory, from->offset, merged[0]);
    }
    target where = {.device = device, .queue = queue};
    gpuhal_status status = GPUHAL_OK;
    for (uint64_t first = 0; first < rows && status == GPUHAL_OK; first += REGIONS) {
        status = copy_rows(&where, to, from, merged, first);
        /* On a queue end_commands() does nothing, because the batch contains the whole transfer. */
        if (status == GPUHAL_OK && (first / REGIONS + 1) % COMMANDS == 0) {
            status = end_commands(&where);
        }
    }
    return status == GPUHAL_OK ? end_commands(&where) : status;
}

void gpuhal_vulkan_describe_transfer(gpuhal_ops *ops)
{
    ops->copy = vulkan_copy;
    ops->write = vulkan_write;
    ops->read = vulkan_read;
    ops->fill = vulkan_fill;
    ops->copy_rect = vulkan_copy_rect;
}
