/* queue/queue.c: creates and destroys queues, and implements the calls that apply to a whole queue. */
#include "queue/queue.h"

#include "base/error.h"
#include "queue/completion_service.h"
#include "transfer/plugin_event.h"

#include <stdlib.h>
#include <string.h>

/* Pause before retrying a flush that the plugin cannot do now. */
#define RETRY_NS UINT64_C(1000000)
/* How long destroying an idle queue waits for the worker to finish the queue. */
#define NOTICE_NS UINT64_C(1000000000)

static gpuhal_status null_error(const char *call)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: an argument is NULL", call);
}

static gpuhal_queue *queue_blank(gpuhal_device *device, const gpuhal_queue_desc *desc)
{
    gpuhal_queue *queue = calloc(1, sizeof *queue);
    if (queue) {
        atomic_init(&queue->references, 1);
        queue->device = device;
        queue->priority = desc->priority;
        queue->flags = desc->flags;
        queue->thread = gpuhal_queue_thread;
        queue->life = GPUHAL_QUEUE_OPEN;
        queue->health = GPUHAL_QUEUE_USABLE;
        queue->right = GPUHAL_QUEUE_FREE;
        queue->worker = GPUHAL_QUEUE_UNATTENDED;
        queue->adopted = desc->adopt != NULL;
        queue->adopt = desc->adopt ? *desc->adopt : (gpuhal_native){0};
        queue->deferred_end = &queue->deferred;
        queue->timepoints_end = &queue->timepoints;
        gpuhal_timeline_observe(queue);
        atomic_init(&queue->fast_path, GPUHAL_FAST_PATH_CLOSED);
        gpuhal_mutex_init(&queue->mutex);
        gpuhal_condition_init(&queue->condition);
    }
    return queue;
}

/* Copies those members of the caller's structures that this library version knows. */
static gpuhal_status take_desc(const gpuhal_queue_desc *given, gpuhal_queue_desc *desc, gpuhal_native *adopt)
{
    *desc = (gpuhal_queue_desc){.size = sizeof *desc};
    if (given && given->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_queue_create: the size of the description is 0");
    }
    if (given) {
        memcpy(desc, given, given->size < sizeof *desc ? given->size : sizeof *desc);
    }
    if (desc->flags & ~(uint32_t)GPUHAL_QUEUE_TIMED) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_queue_create: unknown flags 0x%x",
                                (unsigned)desc->flags);
    }
    if (desc->adopt) {
        uint32_t size = desc->adopt->size;
        if (size == 0) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_queue_create: the size of adopt is 0");
        }
        memcpy(adopt, desc->adopt, size < sizeof *adopt ? size : sizeof *adopt);
        adopt->size = sizeof *adopt;
        desc->adopt = adopt;
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_queue_create(gpuhal_device *device, const gpuhal_queue_desc *given, gpuhal_queue **out_queue)
{
    if (out_queue) {
        *out_queue = NULL;
    }
    if (!device || !out_queue) {
        return null_error("gpuhal_queue_create");
    }
    gpuhal_queue_desc desc;
    gpuhal_native adopt = {0};
    gpuhal_status status = take_desc(given, &desc, &adopt);
    status = status ? status : gpuhal_device_open(device);
    if (status) {
        return status;
    }
    gpuhal_queue *queue = queue_blank(device, &desc);
    if (!queue) {
        return gpuhal_error_host_memory();
    }
    status = gpuhal_queue_make_vendor(queue, &queue->counted);
    if (status) {
        gpuhal_queue_release(queue);
        return status;
    }
    queue->vendor = queue->counted ? queue->counted->queue : NULL;
    atomic_fetch_add(&device->gpu->references, 1);
    gpuhal_service_add(queue);
    gpuhal_workers_queue(device->gpu, 1);
    *out_queue = queue;
    return GPUHAL_OK;
}

/* Lets the worker finish the queue's work, and waits if the queue is idle. Without a worker, this thread finishes the
 * queue. */
static void end_queue(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    bool idle = gpuhal_queue_is_idle(queue) && !gpuhal_queue_follows(queue);
    bool with_thread = queue->worker != GPUHAL_QUEUE_UNATTENDED || (!idle && gpuhal_queue_need_thread(queue) == 0);
    gpuhal_queue_change(&queue->life, GPUHAL_QUEUE_CLOSING);
    if (!with_thread) { /* from now on this thread acts as the worker, and no other thread starts a worker */
        gpuhal_queue_change(&queue->worker, GPUHAL_QUEUE_ATTENDED);
        queue->uncounted = true;
    }
    gpuhal_condition_signal_all(&queue->condition);
    uint64_t deadline = idle ? gpuhal_deadline(NOTICE_NS) : 0;
    while (with_thread && queue->life != GPUHAL_QUEUE_FINISHED && gpuhal_os_monotonic_ns() < deadline) {
        gpuhal_queue_wait_at(queue, GPUHAL_WAITS_FINISH, deadline);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    if (!with_thread) {
        gpuhal_queue_work(queue);
    }
}

/* A thread that is stuck in a call on the queue may return later and use it, so the structure is not freed. */
static bool is_stuck(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    bool stuck = gpuhal_queue_is_called(queue) && !gpuhal_device_is_reachable(queue->device);
    gpuhal_mutex_unlock(&queue->mutex);
    return stuck;
}

static bool has_native_access(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    bool native = queue->right == GPUHAL_QUEUE_NATIVE;
    gpuhal_mutex_unlock(&queue->mutex);
    return native;
}

void gpuhal_queue_destroy(gpuhal_queue *queue)
{
    if (!queue || gpuhal_is_inherited(queue->device->gpu)) {
        return;
    }
    gpuhal *gpu = queue->device->gpu;
    if (has_native_access(queue)) {
        (void)gpuhal_queue_native_end(queue);
    }
    bool stays = is_stuck(queue);
    end_queue(queue);
    if (!stays) {
        gpuhal_queue_release(queue);
    }
    gpuhal_workers_queue(gpu, -1);
    gpuhal_workers_settle(gpu, false);
    gpuhal_unreference(gpu);
}

gpuhal_status gpuhal_queue_flush(gpuhal_queue *queue)
{
    if (!queue) {
        return null_error("gpuhal_queue_flush");
    }
    /* Recording a timepoint flushes. The timepoint also makes the queue notice when its buffers can be released. */
    gpuhal_timepoint *timepoint = NULL;
    gpuhal_status status = gpuhal_queue_record(queue, false, &timepoint);
    gpuhal_timepoint_release(timepoint);
    return status;
}

gpuhal_status gpuhal_queue_synchronize(gpuhal_queue *queue, uint64_t timeout_ns)
{
    if (!queue) {
        return null_error("gpuhal_queue_synchronize");
    }
    gpuhal_timepoint *timepoint = NULL;
    uint64_t deadline = gpuhal_deadline(timeout_ns);
    gpuhal_status status = gpuhal_queue_record_to_wait(queue, deadline, &timepoint);
    status = status ? status : gpuhal_timepoint_wait(timepoint, deadline);
    gpuhal_timepoint_release(timepoint);
    return status;
}

gpuhal_status gpuhal_device_synchronize(gpuhal_device *device, uint64_t timeout_ns)
{
    if (!device) {
        return null_error("gpuhal_device_synchronize");
    }
    size_t count = 0;
    uint64_t deadline = gpuhal_deadline(timeout_ns);
    gpuhal_status first = gpuhal_device_check(device);
    if (first) {
        return first;
    }
    gpuhal_queue **queues = gpuhal_service_queues(device->gpu, device, &count);
    if (!queues) {
        return gpuhal_error_host_memory();
    }
    gpuhal_timepoint **timepoints = calloc(count + 1, sizeof *timepoints);
    first = timepoints ? GPUHAL_OK : gpuhal_error_host_memory();
    gpuhal_error_detail detail;
    /* Other queues may wait for the queue that is calling a function on this thread. */
    for (size_t i = 0; i < count && !first; i++) {
        first = gpuhal_queue_own_call(queues[i]);
    }
    bool waits = !first;
    gpuhal_error_save(&detail);
    /* All timepoints are recorded before the first wait. The first failure is returned, but only after the wait for all
     * other timepoints. */
    for (size_t pass = 0; waits && pass < 2; pass++) {
        for (size_t i = 0; i < count; i++) {
            gpuhal_status status = pass == 0       ? gpuhal_queue_record_to_wait(queues[i], deadline, &timepoints[i])
                                   : timepoints[i] ? gpuhal_timepoint_wait(timepoints[i], deadline)
                                                   : GPUHAL_OK;
            if (status && !first) {
                first = status;
                gpuhal_error_save(&detail);
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        gpuhal_timepoint_release(timepoints ? timepoints[i] : NULL);
        gpuhal_queue_release(queues[i]);
    }
    free(timepoints);
    free(queues);
    return first && timepoints ? gpuhal_error_restore(&detail) : first;
}

static gpuhal_status drain_unlocks(gpuhal_queue *queue, uint64_t deadline)
{
    gpuhal_status status = GPUHAL_OK;
    while (!status && !gpuhal_queue_has_failed(queue) &&
           (gpuhal_queue_has_deferred(queue) || gpuhal_queue_is_called(queue))) {
        status = gpuhal_queue_wait_for_call(queue, GPUHAL_WAITS_DRAIN, deadline);
    }
    return status;
}

/* Tries once to lock the vendor's queue, which other queues may share. `timeout_ns` is the time limit, and the watchdog
 * allows the call this much more time. */
static gpuhal_status try_native(gpuhal_queue *queue, uint64_t timeout_ns)
{
    gpuhal_device *device = queue->device;
    const gpuhal_call call = gpuhal_call_timed(device, timeout_ns);
    gpuhal_status status = device->native.native_lock ? device->native.native_lock(queue->vendor, timeout_ns)
                                                      : device->queues.queue_flush(queue->vendor);
    status = gpuhal_device_result(device, call, status);
    if (status == GPUHAL_NOT_READY && !device->native.native_lock) {
        gpuhal_os_sleep(timeout_ns < RETRY_NS ? timeout_ns : RETRY_NS);
    }
    return status;
}

/* The caller has the right to call. Returns NOT_READY at the deadline. */
static gpuhal_status lock_native(gpuhal_queue *queue, uint64_t deadline)
{
    gpuhal_status status = GPUHAL_NOT_READY;
    for (uint64_t now = 0; status == GPUHAL_NOT_READY;) {
        now = gpuhal_os_monotonic_ns();
        uint64_t rest = deadline > now ? deadline - now : 0;
        status = try_native(queue, rest < GPUHAL_BLOCK_NS ? rest : GPUHAL_BLOCK_NS);
        if (status == GPUHAL_NOT_READY && rest == 0) {
            break;
        }
        status = status == GPUHAL_NOT_READY && gpuhal_queue_check(queue) ? GPUHAL_ERROR_DEVICE_LOST : status;
    }
    return status;
}

static gpuhal_status section_failed(gpuhal_queue *queue, gpuhal_status status)
{
    return gpuhal_queue_refused(queue, gpuhal_device_failed(queue->device, status, "beginning native access"));
}

/* If this thread already has native access to the vendor's queue through another queue, any wait would deadlock, even a
 * wait for deferred work. */
static gpuhal_status refuse_second_section_unlocks(gpuhal_queue *queue, uint64_t deadline)
{
    gpuhal_device *device = queue->device;
    if (atomic_load(&device->native_accesses) == 0 || !device->native.native_lock || gpuhal_queue_has_failed(queue)) {
        return GPUHAL_OK;
    }
    gpuhal_status status = gpuhal_queue_begin_call_unlocks(queue, deadline);
    if (status) {
        return status;
    }
    gpuhal_mutex_unlock(&queue->mutex);
    status = try_native(queue, 0);
    if (status == GPUHAL_OK) {
        const gpuhal_call call = gpuhal_call_prompt(device);
        device->native.native_unlock(queue->vendor);
        gpuhal_call_end(call);
    } else if (status != GPUHAL_NOT_READY) {
        status = section_failed(queue, status);
    }
    gpuhal_queue_lock(queue);
    gpuhal_queue_end_call(queue);
    return status == GPUHAL_NOT_READY ? GPUHAL_OK : status;
}

gpuhal_status gpuhal_queue_native_begin(gpuhal_queue *queue, uint64_t timeout_ns, gpuhal_native *out_native)
{
    if (!queue || !out_native) {
        return null_error("gpuhal_queue_native_begin");
    }
    gpuhal_device *device = queue->device;
    uint64_t deadline = gpuhal_deadline(timeout_ns);
    gpuhal_native native = {.size = sizeof native};
    gpuhal_status status = gpuhal_native_check("gpuhal_queue_native_begin", out_native);
    status = status ? status : gpuhal_queue_check(queue);
    status = status ? status : gpuhal_queue_own_call(queue);
    if (status) {
        return status;
    }
    if (!gpuhal_queue_has_native(queue)) {
        return gpuhal_device_lacks(device, "beginning native access: the queue has no vendor's object");
    }
    gpuhal_queue_lock(queue);
    status = refuse_second_section_unlocks(queue, deadline);
    status = status ? status : drain_unlocks(queue, deadline);
    status = status                           ? status
             : gpuhal_queue_has_failed(queue) ? gpuhal_failure_status(queue->failure)
                                              : gpuhal_queue_begin_call_unlocks(queue, deadline);
    gpuhal_mutex_unlock(&queue->mutex);
    if (status) {
        return status;
    }
    const gpuhal_call call = gpuhal_call_prompt(device);
    status = device->native.native_queue(queue->vendor, &native);
    status = gpuhal_device_result(device, call, status);
    status = status ? status : lock_native(queue, deadline);
    if (status == GPUHAL_NOT_READY) {
        status = gpuhal_error_set(GPUHAL_ERROR_TIMEOUT, "%s: the vendor's queue was not free in time", device->id);
    } else if (status) {
        status = section_failed(queue, status);
    }
    gpuhal_native_give(out_native, status ? (gpuhal_native){0} : native);
    gpuhal_queue_lock(queue);
    if (status) {
        gpuhal_queue_end_call(queue);
    } else {
        gpuhal_queue_change(&queue->right, GPUHAL_QUEUE_NATIVE);
        atomic_fetch_add(&device->native_accesses, 1);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    return status;
}

gpuhal_status gpuhal_queue_native_end(gpuhal_queue *queue)
{
    if (!queue) {
        return null_error("gpuhal_queue_native_end");
    }
    gpuhal_status status = gpuhal_queue_check(queue);
    if (status == GPUHAL_ERROR_FORKED) {
        return status;
    }
    gpuhal_queue_lock(queue);
    bool native = queue->right == GPUHAL_QUEUE_NATIVE;
    if (native) {
        gpuhal_queue_change(&queue->right, GPUHAL_QUEUE_CALLED);
    }
    gpuhal_mutex_unlock(&queue->mutex);
    if (!native) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_queue_native_end: the queue is not in native access");
    }
    atomic_fetch_sub(&queue->device->native_accesses, 1);
    if (queue->device->native.native_unlock) {
        const gpuhal_call call = gpuhal_call_prompt(queue->device);
        queue->device->native.native_unlock(queue->vendor);
        gpuhal_call_end(call);
        status = status ? status : gpuhal_queue_check(queue);
    }
    gpuhal_queue_lock(queue);
    queue->submitted++; /* one number for all submissions of the application */
    gpuhal_queue_note_busy(queue);
    if (!status && gpuhal_queue_records_access(queue)) {
        gpuhal_queue_record_own_unlocks(queue, true);
    }
    gpuhal_queue_end_call(queue);
    gpuhal_mutex_unlock(&queue->mutex);
    return status ? status : gpuhal_queue_check(queue);
}
