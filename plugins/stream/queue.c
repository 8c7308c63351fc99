/* stream/queue.c: a queue is a stream, an event is a vendor event.
 *
 * The streams that this file creates do not wait for the default stream. No work is deferred, so flush has nothing to
 * do. cuLaunchHostFunc and hipLaunchHostFunc are not used for notifications, because they stall the stream while the
 * host function runs, and never call this function after an error. A thread in event_block() avoids both problems.
 * Each plugin's event.c creates and records events.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <stdlib.h>

/* In gpuhal a higher number means a higher priority; in the vendors' APIs a lower number does. Values outside the
 * device's range are clamped. */
static int stream_priority(int32_t priority)
{
    int least = 0, greatest = 0;
    const vendor_code code = GPUHAL_VENDOR_PRIORITY_RANGE(&least, &greatest);
    if (code != GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(ignore)(code);
        return 0;
    }
    /* 64 bits, because negating INT32_MIN would overflow. */
    const int64_t wanted = -(int64_t)priority;
    return wanted > least ? least : wanted < greatest ? greatest : (int)wanted;
}

static gpuhal_status make_stream(gpuhal_plugin_queue *queue, int32_t priority, const gpuhal_native *adopt)
{
    gpuhal_plugin_device *device = queue->device;
    gpuhal_stream_scope scope;
    gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (adopt) {
        queue->stream = (vendor_stream)(uintptr_t)adopt->values[0];
        queue->adopted = true;
        status = GPUHAL_OWN(check_stream)(device, queue->stream);
    } else {
        const vendor_code code = GPUHAL_VENDOR(StreamCreateWithPriority)(&queue->stream, GPUHAL_VENDOR_NON_BLOCKING,
                                                                         stream_priority(priority));
        status = GPUHAL_OWN(result)(device, GPUHAL_VENDOR_CALL(StreamCreateWithPriority), code);
    }
    GPUHAL_OWN(leave)(&scope);
    return status;
}

static gpuhal_status queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                  gpuhal_plugin_queue **out_queue)
{
    /* `flags` is not needed, because every stream can be timed. */
    *out_queue = NULL;
    if (desc->adopt && (desc->adopt->type != GPUHAL_VENDOR_NATIVE(STREAM) ||
                        !GPUHAL_VENDOR_MAY_ADOPT_STREAM(desc->adopt->values[0]))) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "a queue adopts a " GPUHAL_VENDOR_STREAM_SENTENCE);
    }
    if (desc->adopt && desc->adopt->values[0] == GPUHAL_VENDOR_PER_THREAD) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "a queue is used by several threads, and " GPUHAL_VENDOR_PER_THREAD_NAME
                                    " is another stream on each");
    }
    gpuhal_plugin_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    queue->device = device;
    gpuhal_status status = make_stream(queue, desc->priority, desc->adopt);
    if (status != GPUHAL_OK) {
        free(queue);
        return status;
    }
    *out_queue = queue;
    return GPUHAL_OK;
}

/* Reports the loss of the device if a call has detected the loss. */
static gpuhal_status flush(gpuhal_plugin_queue *queue)
{
    return GPUHAL_OWN(result)(queue->device, NULL, GPUHAL_OWN(lost_code)(queue->device));
}

static gpuhal_status event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                  gpuhal_plugin_event **out_event)
{
    *out_event = NULL;
    gpuhal_plugin_event *event = calloc(1, sizeof *event);
    if (!event) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    event->device = device;
    gpuhal_stream_scope scope;
    gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status == GPUHAL_OK) {
        const vendor_code code = GPUHAL_OWN(create_events)(event, desc->flags & GPUHAL_TIMED);
        GPUHAL_OWN(leave)(&scope);
        status = GPUHAL_OWN(result)(device, GPUHAL_VENDOR_EVENT_CALL, code);
    }
    if (status != GPUHAL_OK) {
        free(event);
        return status;
    }
    *out_event = event;
    return GPUHAL_OK;
}

static gpuhal_status event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(queue->device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    /* An application may be capturing a graph in a stream of the plugin through native access. */
    const char *name;
    vendor_code code = GPUHAL_OWN(may_record)(queue->stream, &name);
    if (code == GPUHAL_VENDOR_OK) {
        name = GPUHAL_VENDOR_CALL(EventRecord);
        code = GPUHAL_OWN(record)(queue, event);
    }
    GPUHAL_OWN(leave)(&scope);
    return GPUHAL_OWN(result)(queue->device, name, code);
}

/* "Not ready" is not an error and is not reported. */
static gpuhal_status event_query(gpuhal_plugin_event *event)
{
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(event->device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const vendor_code code = GPUHAL_VENDOR(EventQuery)(event->event);
    GPUHAL_OWN(leave)(&scope);
    if (code == GPUHAL_VENDOR_NOT_READY) {
        GPUHAL_OWN(ignore)(code);
        return GPUHAL_NOT_READY;
    }
    return GPUHAL_OWN(result)(event->device, GPUHAL_VENDOR_CALL(EventQuery), code);
}

/* The driver has no timeout, and plugin.h permits waits longer than @p timeout_ns. The core calls this function on a
 * separate thread and abandons that thread if the device hangs. A thread that sleeps in the driver uses no CPU and
 * wakes up immediately; polling cannot do both. */
static gpuhal_status event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    if (timeout_ns == 0) {
        return event_query(event);
    }
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(event->device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const vendor_code code = GPUHAL_VENDOR(EventSynchronize)(GPUHAL_VENDOR_SLEPT_FOR(event));
    GPUHAL_OWN(leave)(&scope);
    return GPUHAL_OWN(result)(event->device, GPUHAL_VENDOR_CALL(EventSynchronize), code);
}

/* The queue and the event may belong to different devices. The event of a lost or reset device may have been destroyed,
 * so it is not passed to the driver; the driver would dereference it. */
static gpuhal_status queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_stream_scope scope;
    vendor_code code = event->device == queue->device ? GPUHAL_VENDOR_OK : GPUHAL_VENDOR_LOST(event->device);
    if (code != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(result)(event->device, NULL, code);
    }
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(queue->device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    code = GPUHAL_VENDOR(StreamWaitEvent)(queue->stream, event->event, 0);
    GPUHAL_OWN(leave)(&scope);
    return GPUHAL_OWN(result_of_two)(queue->device, event->device, GPUHAL_VENDOR_CALL(StreamWaitEvent), code);
}

/* The driver returns milliseconds with a resolution of about half a microsecond. */
static gpuhal_status elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    float milliseconds = 0;
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(from->device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const vendor_code code = GPUHAL_VENDOR(EventElapsedTime)(&milliseconds, from->event, to->event);
    GPUHAL_OWN(leave)(&scope);
    if (code == GPUHAL_VENDOR_NOT_READY) {
        GPUHAL_OWN(ignore)(code);
        return GPUHAL_NOT_READY;
    }
    /* The negated comparison also rejects NaN. Converting NaN or a negative number to an unsigned integer is
     * undefined. */
    if (code == GPUHAL_VENDOR_OK && !(milliseconds >= 0)) {
        return from->device->host->report(from->device->host, GPUHAL_ERROR_INVALID_ARGUMENT,
                                          GPUHAL_VENDOR_CALL(EventElapsedTime), 0,
                                          "the second event was recorded before the first");
    }
    *out_ns = (uint64_t)((double)milliseconds * 1e6);
    return GPUHAL_OWN(result)(from->device, GPUHAL_VENDOR_CALL(EventElapsedTime), code);
}

gpuhal_status GPUHAL_OWN(native_queue)(gpuhal_plugin_queue *queue, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_VENDOR_NATIVE(STREAM);
    out_native->values[0] = (uintptr_t)queue->stream;
    return GPUHAL_OK;
}

/* No public function calls this slot yet. */
gpuhal_status GPUHAL_OWN(native_event)(gpuhal_plugin_event *event, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_VENDOR_NATIVE(EVENT);
    out_native->values[0] = (uintptr_t)event->event;
    return GPUHAL_OK;
}

void GPUHAL_OWN(describe_queue)(gpuhal_ops *ops)
{
    static const gpuhal_queue_ops queues = {
        .size = sizeof queues,
        .version = GPUHAL_QUEUES_VERSION,
        .queue_create = queue_create,
        .queue_destroy = GPUHAL_OWN(queue_destroy),
        .queue_flush = flush,
        .event_create = event_create,
        .event_destroy = GPUHAL_OWN(event_destroy),
        .event_record = event_record,
        .event_query = event_query,
        .event_block = event_block,
        .queue_wait = queue_wait,
        .elapsed = elapsed,
    };
    ops->queues = &queues;
}
