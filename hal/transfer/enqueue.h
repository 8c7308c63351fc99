/* transfer/enqueue.h: the transfers of the application API with a queue. Arguments are checked as for those without one; here is only
 * looked whether the queue fits the buffers. */
#ifndef GPUHAL_TRANSFER_ENQUEUE_H
#define GPUHAL_TRANSFER_ENQUEUE_H

#include "memory/buffer.h"

#include <gpuhal/transfer.h>

gpuhal_status gpuhal_enqueue_write(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, const void *from, uint64_t bytes);
gpuhal_status gpuhal_enqueue_read(gpuhal_queue *queue, void *to, gpuhal_buffer *from, uint64_t from_offset, uint64_t bytes);
gpuhal_status gpuhal_enqueue_copy(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, gpuhal_buffer *from, uint64_t from_offset,
                                  uint64_t bytes);
gpuhal_status gpuhal_enqueue_fill(gpuhal_queue *queue, gpuhal_buffer *to, uint64_t to_offset, uint64_t bytes, uint32_t pattern,
                                  uint32_t pattern_bytes);
/* Pitches are filled in. `bytes` is what moves. */
gpuhal_status gpuhal_enqueue_rect(gpuhal_queue *queue, const gpuhal_rect *to, const gpuhal_rect *from, const uint64_t extent[3],
                                  uint64_t bytes);
/* A job that `run` does by blocking calls, on behalf of `buffer`; it is freed by `free_job` once done, also where this fails. */
gpuhal_status gpuhal_enqueue_job(gpuhal_queue *queue, gpuhal_buffer *buffer, uint64_t bytes, gpuhal_status (*run)(void *job), void *job,
                                 void (*free_job)(void *job));

/* rect.c: hands a checked box to the plugin's queue. NOT_SUPPORTED without a detail where it has no way for it. */
gpuhal_status gpuhal_rect_submit(gpuhal_plugin_queue *queue, const gpuhal_rect *to, const gpuhal_rect *from, const uint64_t extent[3]);

#endif
