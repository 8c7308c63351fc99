/* queue/async.h: what all queues of one gpuhal object share: the list of them, the thread that calls back, and the list behind
 * gpuhal_take_done(). In the child of a fork it has no threads, and what the parent's threads were to do stays theirs. */
#ifndef GPUHAL_QUEUE_ASYNC_H
#define GPUHAL_QUEUE_ASYNC_H

#include "device/device.h"
#include "queue/point.h"

typedef struct gpuhal_async gpuhal_async;

/* Made and freed by gpuhal.c. Destroying waits for the thread that calls back, unless it is that thread. */
gpuhal_async *gpuhal_async_create(void);
void gpuhal_async_destroy(gpuhal_async *async);

/* The list of queues. */
void gpuhal_async_add(gpuhal_queue *queue);
void gpuhal_async_remove(gpuhal_queue *queue);
/* Queues of one device, or of all (NULL), each with a reference; malloc'ed. NULL without memory, and none. */
gpuhal_queue **gpuhal_async_queues(gpuhal *gpu, const gpuhal_device *device, size_t *out_count);
/* Whether a queue of the device has work that is not known to have ended. Allocates nothing. */
bool gpuhal_async_has_unfinished(const gpuhal_device *device);

/* Threads of queues: the object stays as long as there is one. */
void gpuhal_async_worker_begins(gpuhal *gpu);
void gpuhal_async_worker_ends(gpuhal *gpu);
/* This thread is one of them: a function that a queue calls does not wait for the end of its own. */
void gpuhal_async_worker_is_this(const gpuhal *gpu);
/* The user has one queue more, or fewer. */
void gpuhal_async_user(gpuhal *gpu, int change);
/* The user lets go of the object (`closing`), or, after that, of a queue. With the last of them: waits until no queue that was given up
 * still works, at most as long as a driver may take, so that no thread is in a driver when the program ends. */
void gpuhal_async_settle(gpuhal *gpu, bool closing);

/* Starts the thread that calls back, unless it is there: before a callback is promised. Returns 0 or errno. */
int gpuhal_async_serve(gpuhal *gpu);
/* Has that thread call gpuhal_buffer_end(). The thread is there: whoever imports with a callback has made it. */
void gpuhal_async_released(struct gpuhal_buffer *buffer);
/* A callback or a watch whose point has ended; taken over. */
void gpuhal_async_ended(gpuhal_watcher *watcher);

#endif
