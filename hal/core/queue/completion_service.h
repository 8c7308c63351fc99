/* queue/completion_service.h: the shared parts of all queues of one gpuhal object: their list, the thread that calls
 * back, and the list of gpuhal_next_completion(). That thread, gpuhal-serve, makes all calls to the application that
 * are not made inside one of its calls: completion callbacks, those of released buffers, of samplers, and listeners
 * (hotplug/notifier.c). */
#ifndef GPUHAL_QUEUE_COMPLETION_SERVICE_H
#define GPUHAL_QUEUE_COMPLETION_SERVICE_H

#include "device/device.h"
#include "queue/timepoint.h"

typedef struct gpuhal_service gpuhal_service;

/* Made and freed by gpuhal.c. Destroying waits for the thread that calls back, unless it is that thread. */
gpuhal_service *gpuhal_service_create(void);
void gpuhal_service_destroy(gpuhal_service *service);

/* Add a queue to the list, and remove it. */
void gpuhal_service_add(gpuhal_queue *queue);
void gpuhal_service_remove(gpuhal_queue *queue);
/* Returns the queues of one device, or of all (NULL), each with a reference; malloc'ed. NULL without memory, and
 * none. */
gpuhal_queue **gpuhal_service_queues(gpuhal *gpu, const gpuhal_device *device, size_t *out_count);
/* Returns whether a queue of the device has work that is not known to have ended. Allocates nothing. */
bool gpuhal_service_has_unfinished(const gpuhal_device *device);

/* Starts the thread that calls back, unless it exists, before a callback is promised. Returns 0 or errno. */
int gpuhal_service_serve(gpuhal *gpu);
/* Makes that thread call gpuhal_buffer_end(). It exists: importing with a callback started it. */
void gpuhal_service_released(struct gpuhal_buffer *buffer);
/* Makes that thread make a call, with GPUHAL_OK; returns false without memory. It exists. */
bool gpuhal_service_call(gpuhal *gpu, void (*call)(void *user, gpuhal_status status), void *user);
/* Takes a completion that is a callback, or listed, when its timepoint has ended. */
void gpuhal_service_ended(gpuhal_completion *completion);

#endif
