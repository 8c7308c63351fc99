/* queue/completion_service.h: what all queues of one gpuhal object share: the list of them, the thread that calls back,
 * and the list behind gpuhal_next_completion(). That thread, gpuhal-serve, makes all calls to the application that are
 * not made inside a call of its own: completion callbacks, those of released buffers, of samplers, and listeners
 * (hotplug/notifier.c). */
#ifndef GPUHAL_QUEUE_COMPLETION_SERVICE_H
#define GPUHAL_QUEUE_COMPLETION_SERVICE_H

#include "device/device.h"
#include "queue/timepoint.h"

typedef struct gpuhal_service gpuhal_service;

/* Made and freed by gpuhal.c. Destroying waits for the thread that calls back, unless it is that thread. */
gpuhal_service *gpuhal_service_create(void);
void gpuhal_service_destroy(gpuhal_service *service);

/* The list of queues. */
void gpuhal_service_add(gpuhal_queue *queue);
void gpuhal_service_remove(gpuhal_queue *queue);
/* Queues of one device, or of all (NULL), each with a reference; malloc'ed. NULL without memory, and none. */
gpuhal_queue **gpuhal_service_queues(gpuhal *gpu, const gpuhal_device *device, size_t *out_count);
/* Whether a queue of the device has work that is not known to have ended. Allocates nothing. */
bool gpuhal_service_has_unfinished(const gpuhal_device *device);

/* Starts the thread that calls back, unless it is there: before a callback is promised. Returns 0 or errno. */
int gpuhal_service_serve(gpuhal *gpu);
/* Has that thread call gpuhal_buffer_end(). The thread exists: importing with a callback started it. */
void gpuhal_service_released(struct gpuhal_buffer *buffer);
/* Has that thread make a call, with GPUHAL_OK; false without memory. The thread exists. */
bool gpuhal_service_call(gpuhal *gpu, void (*call)(void *user, gpuhal_status status), void *user);
/* Takes a completion that is a callback, or listed, whose timepoint has ended. */
void gpuhal_service_ended(gpuhal_completion *completion);

#endif
