/* vulkan/event.c: events, the timelines that they are values of, and the time between two of them.
 *
 * Semaphores are not destroyed before the device closes: Mesa's emulated timelines (22.3.6,
 * vk_sync_timeline_point_release) are written to by the queue's thread after everyone has seen the end of the
 * submission that awaited them, although the specification ends its use there. So a timeline without references goes
 * to the next queue.
 *
 * A value that was seen once is kept, so that asking again costs no call. Waiting is cut into slices, after each of
 * which a device that another thread has found lost ends it: drivers whose device hangs do not always say so to
 * everybody.
 */
#include "queue.h"

#include <stdlib.h>

static gpuhal_vulkan_timeline *create_timeline(gpuhal_plugin_device *device, gpuhal_status *out_status)
{
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo create = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    gpuhal_vulkan_timeline *timeline = calloc(1, sizeof *timeline);
    if (!timeline) {
        *out_status = device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
        return NULL;
    }
    VkResult code = device->api.vkCreateSemaphore(device->handle, &create, NULL, &timeline->semaphore);
    if (code != VK_SUCCESS) {
        free(timeline);
        *out_status = gpuhal_vulkan_result(device, "vkCreateSemaphore", code);
        return NULL;
    }
    timeline->device = device;
    atomic_init(&timeline->references, 1);
    return timeline;
}

gpuhal_vulkan_timeline *gpuhal_vulkan_timeline_take(gpuhal_plugin_device *device, gpuhal_status *out_status)
{
    pthread_mutex_lock(&device->growing);
    gpuhal_vulkan_timeline *timeline = device->idle_timelines;
    device->idle_timelines = timeline ? timeline->next : NULL;
    pthread_mutex_unlock(&device->growing);
    if (!timeline) {
        return create_timeline(device, out_status);
    }
    /* It had none, and the thread that takes it out of the list is alone with it. */
    atomic_store(&timeline->references, 1);
    return timeline;
}

/* Relaxed: the caller has a reference, so the count cannot become 0 meanwhile. */
gpuhal_vulkan_timeline *gpuhal_vulkan_timeline_retain(gpuhal_vulkan_timeline *timeline)
{
    atomic_fetch_add_explicit(&timeline->references, 1, memory_order_relaxed);
    return timeline;
}

/* The last reference makes it idle for the next queue, and never destroys it. No batch in flight uses it then: batches
 * keep what they wait for, and a queue is destroyed once its own work has ended. */
void gpuhal_vulkan_timeline_release(gpuhal_vulkan_timeline *timeline)
{
    if (timeline && atomic_fetch_sub(&timeline->references, 1) == 1) {
        gpuhal_plugin_device *device = timeline->device;
        pthread_mutex_lock(&device->growing);
        timeline->next = device->idle_timelines;
        device->idle_timelines = timeline;
        pthread_mutex_unlock(&device->growing);
    }
}

/* Every VkQueue is drained first: only then has an emulation's own thread done with the semaphores. Where that is not
 * possible they are leaked with the VkDevice. */
void gpuhal_vulkan_timelines_stop(gpuhal_plugin_device *device)
{
    if (!device->idle_timelines) {
        return;
    }
    if (!gpuhal_vulkan_drain(device)) {
        atomic_store(&device->stuck, true);
        return;
    }
    while (device->idle_timelines) {
        gpuhal_vulkan_timeline *timeline = device->idle_timelines;
        device->idle_timelines = timeline->next;
        device->api.vkDestroySemaphore(device->handle, timeline->semaphore, NULL);
        free(timeline);
    }
}

/* Never goes back: threads may report what they saw in another order than it came. The load may be relaxed: an old
 * value only costs one more turn of the loop, since the exchange compares. */
void gpuhal_vulkan_timeline_advance(gpuhal_vulkan_timeline *timeline, uint64_t value)
{
    uint64_t known = atomic_load_explicit(&timeline->reached, memory_order_relaxed);
    while (known < value && !atomic_compare_exchange_weak(&timeline->reached, &known, value)) {
    }
}

/* A lost device is lost for values that were reached before, too: memory that the work wrote may be gone. */
gpuhal_status gpuhal_vulkan_timeline_query(gpuhal_vulkan_timeline *timeline, uint64_t value)
{
    gpuhal_plugin_device *device = timeline->device;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK || atomic_load(&timeline->reached) >= value) {
        return status;
    }
    uint64_t now = 0;
    VkResult code = device->api.vkGetSemaphoreCounterValue(device->handle, timeline->semaphore, &now);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkGetSemaphoreCounterValue", code);
    }
    gpuhal_vulkan_timeline_advance(timeline, now);
    return now >= value ? GPUHAL_OK : GPUHAL_NOT_READY;
}

VkResult gpuhal_vulkan_timeline_await(const gpuhal_vulkan_timeline *timeline, uint64_t value, uint64_t timeout_ns)
{
    const VkSemaphoreWaitInfo wait = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &timeline->semaphore,
        .pValues = &value,
    };
    VkResult code;
    uint32_t tries = 0;
    do {
        code = timeline->device->api.vkWaitSemaphores(timeline->device->handle, &wait, timeout_ns);
    } while (gpuhal_vulkan_wait_again(code, tries++));
    return code;
}

/* Slices end early for a device that another thread has found lost; only the last one ends the time. */
gpuhal_status gpuhal_vulkan_timeline_wait(gpuhal_vulkan_timeline *timeline, uint64_t value, uint64_t timeout_ns)
{
    gpuhal_plugin_device *device = timeline->device;
    for (;;) {
        gpuhal_status status = gpuhal_vulkan_alive(device);
        if (status != GPUHAL_OK || atomic_load(&timeline->reached) >= value) {
            return status;
        }
        uint64_t slice = timeout_ns < GPUHAL_VULKAN_SLICE_NS ? timeout_ns : GPUHAL_VULKAN_SLICE_NS;
        VkResult code = gpuhal_vulkan_timeline_await(timeline, value, slice);
        if (code == VK_SUCCESS) {
            gpuhal_vulkan_timeline_advance(timeline, value);
            return GPUHAL_OK;
        }
        if (code != VK_TIMEOUT) {
            return gpuhal_vulkan_result(device, "vkWaitSemaphores", code);
        }
        timeout_ns -= slice;
        if (timeout_ns == 0) {
            return GPUHAL_NOT_READY;
        }
    }
}

static gpuhal_vulkan_stamp *create_stamp(gpuhal_plugin_device *device, gpuhal_status *out_status)
{
    const VkQueryPoolCreateInfo create = {
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
        .queryType = VK_QUERY_TYPE_TIMESTAMP,
        .queryCount = 1,
    };
    gpuhal_vulkan_stamp *stamp = calloc(1, sizeof *stamp);
    if (!stamp) {
        *out_status = device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
        return NULL;
    }
    VkResult code = device->api.vkCreateQueryPool(device->handle, &create, NULL, &stamp->pool);
    if (code != VK_SUCCESS) {
        free(stamp);
        *out_status = gpuhal_vulkan_result(device, "vkCreateQueryPool", code);
        return NULL;
    }
    stamp->device = device;
    atomic_init(&stamp->references, 1);
    return stamp;
}

void gpuhal_vulkan_stamp_release(gpuhal_vulkan_stamp *stamp)
{
    if (stamp && atomic_fetch_sub(&stamp->references, 1) == 1) {
        stamp->device->api.vkDestroyQueryPool(stamp->device->handle, stamp->pool, NULL);
        free(stamp);
    }
}

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

static gpuhal_status vulkan_event_create(gpuhal_plugin_device *device, uint32_t flags, gpuhal_plugin_event **out_event)
{
    *out_event = NULL;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if ((flags & GPUHAL_TIMED) && !can_stamp(device)) {
        return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                                    "no queue of this device writes timestamps, or they cannot be reset by the host");
    }
    gpuhal_plugin_event *event = calloc(1, sizeof *event);
    if (!event) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    event->device = device;
    event->timed = (flags & GPUHAL_TIMED) != 0;
    *out_event = event;
    return GPUHAL_OK;
}

static void vulkan_event_destroy(gpuhal_plugin_event *event)
{
    gpuhal_vulkan_stamp_release(event->stamp);
    free(event);
}

/* Makes the open batch write a timestamp. A stamp that a batch in flight may still write cannot be reset: the event
 * gets another one then, and the batch drops the old one. Two references, the event's and the batch's: that of the
 * batch goes when its value was reached, so a count of 1 says that the device has done with the pool. */
static gpuhal_status write_stamp(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_plugin_device *device = queue->device;
    gpuhal_status status = gpuhal_vulkan_queue_open(queue);
    if (status != GPUHAL_OK) {
        return status;
    }
    /* Whatever fails below, the event does not keep the time of an earlier record. */
    event->valid_bits = 0;
    if (event->stamp && atomic_load(&event->stamp->references) > 1) {
        gpuhal_vulkan_stamp_release(event->stamp);
        event->stamp = NULL;
    }
    if (!event->stamp && !(event->stamp = create_stamp(device, &status))) {
        return status;
    }
    device->api.vkResetQueryPool(device->handle, event->stamp->pool, 0, 1);
    device->api.vkCmdWriteTimestamp(queue->open->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, event->stamp->pool,
                                    0);
    atomic_fetch_add(&event->stamp->references, 1);
    queue->open->stamp = event->stamp;
    return GPUHAL_OK;
}

/* With the right to submit. What the caller submitted by itself has no value yet: an empty batch behind it gets one.
 */
static gpuhal_status submit_end(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event, uint32_t bits)
{
    gpuhal_status status = bits > 0         ? write_stamp(queue, event)
                           : queue->foreign ? gpuhal_vulkan_queue_open(queue)
                                            : GPUHAL_OK;
    return status == GPUHAL_OK ? gpuhal_vulkan_queue_submit(queue) : status;
}

/* With nothing new in the queue the event is the last submission's value, and nothing is submitted. */
static gpuhal_status vulkan_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_status status = gpuhal_vulkan_queue_ready(queue);
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

static gpuhal_status vulkan_event_query(gpuhal_plugin_event *event)
{
    return event->timeline ? gpuhal_vulkan_timeline_query(event->timeline, event->value)
                           : gpuhal_vulkan_alive(event->device);
}

static gpuhal_status vulkan_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
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

/* Counters with fewer than 64 bits run over: the difference within their bits is right as long as they do so at most
 * once. Stamps of two queues may be a few ticks out of order, which is no time at all. */
static uint64_t ticks_between(uint64_t from, uint64_t to, uint32_t bits)
{
    if (bits >= 64) {
        return to > from ? to - from : 0;
    }
    return (to - from) & ((UINT64_C(1) << bits) - 1);
}

static gpuhal_status vulkan_elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    *out_ns = 0;
    gpuhal_plugin_device *device = from->device;
    if (!from->stamp || !to->stamp || from->valid_bits == 0 || to->valid_bits == 0) {
        return device->host->report(
            device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
            "an event was not made for timing, or not recorded in a queue that writes timestamps");
    }
    uint64_t began = 0, ended = 0;
    gpuhal_status status = vulkan_event_query(from);
    status = status == GPUHAL_OK ? vulkan_event_query(to) : status;
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

/* No public function reaches this slot yet. */
static gpuhal_status vulkan_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native)
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

void gpuhal_vulkan_describe_events(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < hardware->family_count; i++) {
        bits |= stamp_bits(hardware, i);
    }
    ops->event_create = vulkan_event_create;
    ops->event_destroy = vulkan_event_destroy;
    ops->event_record = vulkan_event_record;
    ops->event_query = vulkan_event_query;
    ops->event_block = vulkan_event_block;
    ops->native_event = vulkan_native_event;
    if (bits > 0 && (hardware->offered & GPUHAL_VULKAN_HOST_QUERY_RESET)) {
        ops->elapsed = vulkan_elapsed;
    }
}
