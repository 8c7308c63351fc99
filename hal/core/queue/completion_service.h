/* queue/completion_service.h: the state that all queues of one gpuhal object share: the list of queues, the callback
 * thread, and the list that gpuhal_next_completion() reads. The callback thread, gpuhal-serve, makes these asynchronous
 * calls to the application: completion callbacks, callbacks of released buffers, samplers, slots and leases, and
 * listeners (hotplug/notifier.c). */
#ifndef GPUHAL_QUEUE_COMPLETION_SERVICE_H
#define GPUHAL_QUEUE_COMPLETION_SERVICE_H

#include "device/device.h"
#include "queue/timepoint.h"

typedef struct gpuhal_service gpuhal_service;

/* Called by gpuhal.c. gpuhal_service_destroy() joins the callback thread, unless the callback thread itself calls
 * it. */
gpuhal_service *gpuhal_service_create(void);
void gpuhal_service_destroy(gpuhal_service *service);

void gpuhal_service_add(gpuhal_queue *queue);
void gpuhal_service_remove(gpuhal_queue *queue);
/* Returns the next queue of one device, or of all devices if `device` is NULL, with a reference, and releases
 * `previous`, the queue that the last call returned. Begins with a `previous` of NULL, and returns NULL after the last
 * queue. Skips queues that were created after the first call. Allocates no memory. */
gpuhal_queue *gpuhal_service_next(gpuhal *gpu, const gpuhal_device *device, gpuhal_queue *previous);
/* Returns the queues of one device, or of all devices if `device` is NULL. The caller must release each queue and free
 * the array. Returns NULL and a count of 0 if out of memory. */
gpuhal_queue **gpuhal_service_queues(gpuhal *gpu, const gpuhal_device *device, size_t *out_count);
/* Returns whether a queue of the device has submitted work that may not have ended. Allocates no memory. */
bool gpuhal_service_has_unfinished(const gpuhal_device *device);

/* Starts the callback thread unless it is running. Must be called before a call that requests a callback can succeed.
 * Returns 0 or errno. */
int gpuhal_service_serve(gpuhal *gpu);
/* Makes the callback thread call gpuhal_buffer_end(). The thread must be running; an import with a callback starts
 * it. */
void gpuhal_service_released(struct gpuhal_buffer *buffer);
/* Makes the callback thread, which must be running, call the function with GPUHAL_OK. Returns false if out of
 * memory. */
bool gpuhal_service_call(gpuhal *gpu, void (*call)(void *user, gpuhal_status status), void *user);
/* Takes ownership of a callback or listed completion whose timepoint has ended. */
void gpuhal_service_ended(gpuhal_completion *completion);

#endif
