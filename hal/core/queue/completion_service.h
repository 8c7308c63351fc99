/* queue/completion_service.h: the part that all queues of one gpuhal object share: the list of queues, the thread that
 * makes callbacks, and the list behind gpuhal_next_completion(). That thread, gpuhal-serve, makes every call to the
 * application that is not made inside one of the application's own calls: completion callbacks, callbacks of released
 * buffers and samplers, and listeners (hotplug/notifier.c). */
#ifndef GPUHAL_QUEUE_COMPLETION_SERVICE_H
#define GPUHAL_QUEUE_COMPLETION_SERVICE_H

#include "device/device.h"
#include "queue/timepoint.h"

typedef struct gpuhal_service gpuhal_service;

/* Called by gpuhal.c. Destroying joins the callback thread, unless that thread is the caller. */
gpuhal_service *gpuhal_service_create(void);
void gpuhal_service_destroy(gpuhal_service *service);

void gpuhal_service_add(gpuhal_queue *queue);
void gpuhal_service_remove(gpuhal_queue *queue);
/* Returns the queues of one device, or of all devices if @device is NULL. Each has a reference; the caller frees the
 * array. Returns NULL and a count of 0 if out of memory. */
gpuhal_queue **gpuhal_service_queues(gpuhal *gpu, const gpuhal_device *device, size_t *out_count);
/* Returns whether a queue of the device has work that is not known to have ended. Allocates nothing. */
bool gpuhal_service_has_unfinished(const gpuhal_device *device);

/* Starts the callback thread unless it is running. Must be called before a callback is promised. Returns 0 or errno. */
int gpuhal_service_serve(gpuhal *gpu);
/* Makes the callback thread call gpuhal_buffer_end(). The thread is running already: importing with a callback started
 * it. */
void gpuhal_service_released(struct gpuhal_buffer *buffer);
/* Makes the callback thread, which must be running, call the function with GPUHAL_OK. Returns false if out of
 * memory. */
bool gpuhal_service_call(gpuhal *gpu, void (*call)(void *user, gpuhal_status status), void *user);
/* Takes ownership of a callback or listed completion whose timepoint has ended. */
void gpuhal_service_ended(gpuhal_completion *completion);

#endif
