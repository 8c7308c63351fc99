/* vulkan/event.c: events, and the elapsed time between two events. */
#include "queue.h"

#include <stdlib.h>

static uint32_t stamp_bits(const gpuhal_vulkan_hardware *hardware, uint32_t family)
{
    return family < hardware->family_count ? hardware->families[family].timestampValidBits : 0;
}

static bool can_stamp(const gpuhal_plugin_device *device)
{
    bool found = false;
    for (uint32_t i = 0; i < device->wrapper_count; i++) {
        found = found || stamp_bits(&device->hardware, device->wrappers[i].family) > 0;
    }
    return found && (device->enabled & GPUHAL_VULKAN_HOST_QUERY_RESET) && device->api.vkResetQueryPool;
}

gpuhal_status gpuhal_vulkan_event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                         gpuhal_plugin_event **out_event)
{
    *out_event = NULL;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if ((desc->flags & GPUHAL_TIMED) && !can_stamp(device)) {
        return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                                    "no queue of this device writes timestamps, or they cannot be reset by the host");
    }
    gpuhal_plugin_event *event = calloc(1, sizeof *event);
    if (!event) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    event->device = device;
    event->timed = (desc->flags & GPUHAL_TIMED) != 0;
    *out_event = event;
    return GPUHAL_OK;
}

void gpuhal_vulkan_event_destroy(gpuhal_plugin_event *event)
{
    gpuhal_vulkan_stamp_release(event->stamp);
    free(event);
}

/* Makes the open batch write a timestamp, or a new batch if the open batch has runs. A stamp cannot be reset while a
 * batch in flight may still write it. In that case the event gets a new stamp, and the batch releases the old stamp.
 * The event and the batch hold one reference each. The batch releases its reference after its value was reached, so a
 * count of 1 means that the device no longer uses the query pool. */
static gpuhal_status write_stamp(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_plugin_device *device = queue->device;
    gpuhal_status status = queue->open && queue->open->run_count > 0 ? gpuhal_vulkan_queue_submit(queue) : GPUHAL_OK;
    status = status == GPUHAL_OK ? gpuhal_vulkan_queue_open(queue) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    /* If a step below fails, the event must not keep the time of an earlier recording. */
    event->valid_bits = 0;
    if (event->stamp && atomic_load(&event->stamp->references) > 1) {
        gpuhal_vulkan_stamp_release(event->stamp);
        event->stamp = NULL;
    }
    if (!event->stamp && !(event->stamp = gpuhal_vulkan_stamp_create(device, &status))) {
        return status;
    }
    device->api.vkResetQueryPool(device->handle, event->stamp->pool, 0, 1);
    device->api.vkCmdWriteTimestamp(queue->open->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, event->stamp->pool, 0);
    atomic_fetch_add(&event->stamp->references, 1);
    queue->open->stamp = event->stamp;
    return GPUHAL_OK;
}

/* Requires gpuhal_vulkan_queue_enter(). The caller's own submissions have no timeline value, so an empty batch is
 * submitted after them. */
static gpuhal_status submit_end(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event, uint32_t bits)
{
    gpuhal_status status = bits > 0         ? write_stamp(queue, event)
                           : queue->foreign ? gpuhal_vulkan_queue_open(queue)
                                            : GPUHAL_OK;
    return status == GPUHAL_OK ? gpuhal_vulkan_queue_submit(queue) : status;
}

/* If the queue has no new work and no timestamp is to be written, the event uses the value of the last submission, and
 * nothing is submitted. A queue that has failed has no open batch, and its event shows the end of the earlier
 * submissions. */
gpuhal_status gpuhal_vulkan_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_status status = gpuhal_vulkan_alive(queue->device);
    uint32_t bits = event->timed ? stamp_bits(&queue->device->hardware, queue->wrapper->family) : 0;
    bool submits = bits > 0 || queue->foreign || queue->open;
    if (status == GPUHAL_OK && submits && (status = gpuhal_vulkan_queue_enter(queue)) == GPUHAL_OK) {
        status = submit_end(queue, event, bits);
        gpuhal_vulkan_wrapper_leave(queue->device, queue->wrapper);
    }
    if (status != GPUHAL_OK) {
        return status;
    }
    event->timeline = queue->timeline;
    event->value = queue->submitted;
    event->valid_bits = bits;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_event_query(gpuhal_plugin_event *event)
{
    return event->timeline ? gpuhal_vulkan_timeline_query(event->timeline, event->value)
                           : gpuhal_vulkan_alive(event->device);
}

gpuhal_status gpuhal_vulkan_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    return event->timeline ? gpuhal_vulkan_timeline_wait(event->timeline, event->value, timeout_ns)
                           : gpuhal_vulkan_alive(event->device);
}

static gpuhal_status read_stamp(const gpuhal_plugin_event *event, uint64_t *out_ticks)
{
    gpuhal_plugin_device *device = event->device;
    VkResult code = device->api.vkGetQueryPoolResults(device->handle, event->stamp->pool, 0, 1, sizeof *out_ticks,
                                                      out_ticks, sizeof *out_ticks, VK_QUERY_RESULT_64_BIT);
    return code == VK_NOT_READY ? GPUHAL_NOT_READY : gpuhal_vulkan_result(device, "vkGetQueryPoolResults", code);
}

/* Counters with fewer than 64 bits may overflow. The difference modulo their range is correct if they overflow at most
 * once. Stamps of two queues may be a few ticks out of order. Such differences count as 0, so the longest measurable
 * time is 15/16 of the range: 55 minutes with the 36 bits and 52 ns of Intel's drivers. */
static uint64_t ticks_between(uint64_t from, uint64_t to, uint32_t bits)
{
    const uint64_t range = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    const uint64_t ticks = (to - from) & range;
    return ticks > range - (range >> 4) ? 0 : ticks;
}

gpuhal_status gpuhal_vulkan_elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    *out_ns = 0;
    gpuhal_plugin_device *device = from->device;
    if (!from->stamp || !to->stamp || from->valid_bits == 0 || to->valid_bits == 0) {
        return device->host->report(
            device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
            "an event was not made for timing, or not recorded in a queue that writes timestamps");
    }
    uint64_t began = 0, ended = 0;
    gpuhal_status status = gpuhal_vulkan_event_query(from);
    status = status == GPUHAL_OK ? gpuhal_vulkan_event_query(to) : status;
    status = status == GPUHAL_OK ? read_stamp(from, &began) : status;
    status = status == GPUHAL_OK ? read_stamp(to, &ended) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    uint32_t bits = from->valid_bits < to->valid_bits ? from->valid_bits : to->valid_bits;
    uint64_t ticks = ticks_between(began, ended, bits);
    *out_ns = (uint64_t)((double)ticks * (double)device->hardware.properties.limits.timestampPeriod);
    return GPUHAL_OK;
}

/* No public function calls this slot yet. */
gpuhal_status gpuhal_vulkan_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native)
{
    if (!event->timeline) {
        return event->device->host->report(event->device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                           "the event was never recorded, so no semaphore stands for it");
    }
    out_native->type = GPUHAL_NATIVE_VULKAN_SEMAPHORE;
    out_native->values[0] = (uint64_t)(uintptr_t)event->timeline->semaphore;
    out_native->values[1] = event->value;
    return GPUHAL_OK;
}
