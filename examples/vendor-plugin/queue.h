/* queue.h: what the example plugin needs of queue.c. */
#ifndef EXAMPLE_QUEUE_H
#define EXAMPLE_QUEUE_H

#include <gpuhal/plugin.h>

#include <stddef.h>

extern const gpuhal_queue_ops example_queues;

/* Enqueues a copy. */
gpuhal_status example_enqueue(gpuhal_plugin_queue *queue, void *to, const void *from, size_t bytes);

#endif
