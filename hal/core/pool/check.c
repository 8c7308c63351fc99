/* pool/check.c: checking mode. The pool fills its buffers and the bytes after each buffer with patterns, and checks the
 * bytes after a buffer before it reuses the memory. The functions use blocking transfers when no work uses the memory:
 * before the pool returns a new buffer, and once the work behind which the buffer was released has ended. The caller
 * does not hold the pool's mutex. */
#include "pool/pool.h"

#include "base/error.h"
#include "base/log.h"
#include "queue/queue.h"

#include <gpuhal/transfer.h>

#include <inttypes.h>

/* Patterns of new buffers, of released memory, and of the bytes after each buffer. */
enum { NEW = 0xc5, OLD = 0xd9, BEHIND = 0xa7 };

/* Maximum number of bytes that are checked after a buffer. */
enum { GUARD_MOST = 1024 };

static uint64_t guard_bytes(uint64_t block_bytes, uint64_t bytes)
{
    return block_bytes - bytes < GUARD_MOST ? block_bytes - bytes : GUARD_MOST;
}

gpuhal_status gpuhal_check_begin(gpuhal_buffer *buffer, gpuhal_queue *queue)
{
    const uint64_t end = buffer->begin + buffer->bytes, guard = guard_bytes(buffer->memory.bytes, buffer->bytes);
    gpuhal_status status = gpuhal_fill(NULL, buffer->whole, buffer->begin, buffer->bytes, NEW, 1);
    status = status ? status : gpuhal_fill(NULL, buffer->whole, end, guard, BEHIND, 1);
    if (status) {
        return status;
    }
    /* From here on, a release triggers a check. */
    gpuhal_part *part = (gpuhal_part *)buffer;
    gpuhal_mutex_lock(&part->pool->mutex);
    const bool begun = gpuhal_part_begin_uses(part, queue);
    gpuhal_mutex_unlock(&part->pool->mutex);
    return begun ? GPUHAL_OK : gpuhal_error_host_memory();
}

static void report_damage(const gpuhal_pool *pool, const gpuhal_pending *pending, uint64_t begin, uint64_t index)
{
    const char *tag = pending->tag ? pending->tag->text : "";
    gpuhal_log_line(pool->device->gpu->log, GPUHAL_LEVEL_ERROR,
                    "%s: byte %" PRIu64 " of a pool's buffer of %" PRIu64 " bytes%s%s%s was written, beyond its end; "
                    "it begins at byte %" PRIu64 " of its segment",
                    pool->device->id, index, pending->bytes, *tag ? ", tagged \"" : "", tag, *tag ? "\"," : "", begin);
}

/* Checks the bytes after the buffer, then overwrites all of its memory. */
static gpuhal_status look(const gpuhal_pool *pool, const gpuhal_pending *pending, const gpuhal_block *block,
                          gpuhal_buffer *whole)
{
    unsigned char behind[GUARD_MOST];
    const uint64_t guard = guard_bytes(block->bytes, pending->bytes);
    gpuhal_status status = gpuhal_read(NULL, behind, whole, block->offset + pending->bytes, guard);
    uint64_t first = 0;
    while (!status && first < guard && behind[first] == BEHIND) {
        first++;
    }
    if (!status && first < guard) {
        report_damage(pool, pending, block->offset, pending->bytes + first);
    }
    return status ? status : gpuhal_fill(NULL, whole, block->offset, block->bytes, OLD, 1);
}

void gpuhal_check_end(gpuhal_pool *pool, gpuhal_pending *pending)
{
    if (pending->bytes == 0) {
        return;
    }
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_mutex_lock(&pool->mutex);
    const gpuhal_block block = *gpuhal_block_at(&pool->blocks, pending->block);
    gpuhal_buffer *whole = pool->segments[block.region].buffer;
    gpuhal_mutex_unlock(&pool->mutex);
    if (look(pool, pending, &block, whole)) {
        gpuhal_log_line(pool->device->gpu->log, GPUHAL_LEVEL_WARNING,
                        "%s: a released buffer of a pool was not checked: %s", pool->device->id,
                        gpuhal_last_error()->sentence);
    }
    pending->bytes = 0;
    gpuhal_error_restore(&before);
}

void gpuhal_check_released_twice(gpuhal_buffer *buffer)
{
    const gpuhal_tag *tag = atomic_load_explicit(&buffer->tag, memory_order_relaxed);
    const char *text = tag ? tag->text : "";
    gpuhal_log_line(buffer->device->gpu->log, GPUHAL_LEVEL_ERROR,
                    "%s: a pool's buffer of %" PRIu64 " bytes%s%s%s was released again; it "
                    "began at byte %" PRIu64 " of its segment",
                    buffer->device->id, buffer->bytes, *text ? ", tagged \"" : "", text, *text ? "\"," : "",
                    buffer->begin);
}
