/* transfer/plugin_event.h: plugin calls on events. */
#ifndef GPUHAL_TRANSFER_PLUGIN_EVENT_H
#define GPUHAL_TRANSFER_PLUGIN_EVENT_H

#include "device/device.h"

/* Maximum time that a library thread spends in one event_block call. */
#define GPUHAL_BLOCK_NS UINT64_C(100000000)
/* Pause before the next query of a plugin that wrongly reported an event as done. */
#define GPUHAL_DOUBT_NS UINT64_C(1000000)

/* Increasing pauses between queries of a plugin that can neither block nor call back, or that is not ready. For a pause
 * of 0, returns the first pause. */
#define GPUHAL_POLL_LEAST_NS UINT64_C(20000)
#define GPUHAL_POLL_MOST_NS  UINT64_C(1000000)
static inline uint64_t gpuhal_poll_longer(uint64_t pause_ns)
{
    return pause_ns == 0                        ? GPUHAL_POLL_LEAST_NS
           : pause_ns < GPUHAL_POLL_MOST_NS / 2 ? pause_ns * 2
                                                : GPUHAL_POLL_MOST_NS;
}

static inline gpuhal_status gpuhal_plugin_event_create(gpuhal_device *device, uint32_t flags,
                                                       gpuhal_plugin_event **out_event)
{
    const gpuhal_plugin_event_desc desc = {.size = sizeof desc, .flags = flags};
    const gpuhal_call call = gpuhal_call_prompt(device);
    return gpuhal_device_result(device, call, device->queues.event_create(device->handle, &desc, out_event));
}

static inline void gpuhal_plugin_event_destroy(gpuhal_device *device, gpuhal_plugin_event *event)
{
    const gpuhal_call call = gpuhal_call_prompt(device);
    device->queues.event_destroy(event);
    gpuhal_call_end(call);
}

static inline gpuhal_status gpuhal_plugin_event_record(gpuhal_device *device, gpuhal_plugin_queue *queue,
                                                       gpuhal_plugin_event *event)
{
    const gpuhal_call call = gpuhal_call_small(device); /* some drivers block while their ring is full */
    return gpuhal_device_result(device, call, device->queues.event_record(queue, event));
}

static inline gpuhal_status gpuhal_plugin_event_query(gpuhal_device *device, gpuhal_plugin_event *event)
{
    const gpuhal_call call = gpuhal_call_prompt(device);
    return gpuhal_device_result(device, call, device->queues.event_query(event));
}

/* Records an event, with pauses and retries as long as the plugin returns NOT_READY; for threads that may block. A
 * plugin that returns NOT_READY has recorded nothing. Each iteration checks the device, because a lost device would
 * otherwise be polled forever. */
static inline gpuhal_status gpuhal_plugin_event_record_blocking(gpuhal_device *device, gpuhal_plugin_queue *queue,
                                                                gpuhal_plugin_event *event)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    uint64_t pause_ns = 0;
    while (status == GPUHAL_NOT_READY) {
        status = gpuhal_plugin_event_record(device, queue, event);
        if (status == GPUHAL_NOT_READY) {
            pause_ns = gpuhal_poll_longer(pause_ns);
            gpuhal_os_sleep(pause_ns);
            status = gpuhal_device_check(device) ? GPUHAL_ERROR_DEVICE_LOST : status;
        }
    }
    return status;
}

/* Blocks until the event is done. Returns NOT_READY at the timeout, even if the plugin returns TIMEOUT. Returns OK only
 * if event_query also reports the event as done. If the plugin contradicts itself, pauses, so that callers do not loop
 * without a pause. */
static inline gpuhal_status gpuhal_plugin_event_block(gpuhal_device *device, gpuhal_plugin_event *event,
                                                      uint64_t timeout_ns)
{
    const gpuhal_call call = gpuhal_call_timed(device, timeout_ns);
    gpuhal_status status = gpuhal_device_result(device, call, device->queues.event_block(event, timeout_ns));
    if (status == GPUHAL_OK && (status = gpuhal_plugin_event_query(device, event)) == GPUHAL_NOT_READY) {
        gpuhal_os_sleep(timeout_ns < GPUHAL_DOUBT_NS ? timeout_ns : GPUHAL_DOUBT_NS);
    }
    return status == GPUHAL_ERROR_TIMEOUT ? GPUHAL_NOT_READY : status;
}

#endif
