/* transfer/hang.c: noticing that a driver does not come back from a call, and giving up what it holds.
 *
 * Whoever waits looks at all queues of the object now and then, also at those of other devices, since one queue may wait for another; for
 * descriptors and callbacks the thread that calls back does. So no thread of its own has to watch, and the way into the driver reads no
 * clock. Nothing here calls a plugin. */
#include "core/error.h"
#include "device/diary.h"
#include "memory/buffer.h"
#include "transfer/async.h"
#include "transfer/change.h"
#include "transfer/queue.h"

#include <stdlib.h>

/* Time counts only while somebody looks: a process that was stopped for a minute has not waited for a minute. */
#define COUNTED_NS (2 * GPUHAL_LOOK_NS)

static bool is_busy(const gpuhal_queue *queue)
{
    return ((gpuhal_queue_is_called(queue) && !queue->in_section) || queue->running) && !queue->given_up;
}

/* With the mutex held. */
static bool hangs(gpuhal_queue *queue)
{
    uint64_t now = gpuhal_os_monotonic_ns();
    uint64_t passed = now - queue->looked_ns;
    uint64_t step = queue->steps + queue->submitted;
    queue->looked_ns = now;
    if (!is_busy(queue) || queue->looked_step != step) {
        queue->looked_step = step;
        queue->stuck_ns = 0;
        return false;
    }
    queue->stuck_ns += passed < COUNTED_NS ? passed : COUNTED_NS;
    return queue->stuck_ns > queue->allowance_ns;
}

/* A thread that is stuck keeps what it works on; nothing below it may go, so the object stays for good. */
static void give_up(gpuhal_queue *queue, gpuhal_cause *cause)
{
    gpuhal_watcher *told = NULL;
    gpuhal_queue_lock(queue);
    bool stuck = queue->has_thread && is_busy(queue);
    queue->given_up = queue->given_up || stuck;
    gpuhal_queue_fail(queue, cause, true, &told);
    gpuhal_mutex_unlock(&queue->mutex);
    gpuhal_watchers_tell(told);
    if (stuck) {
        atomic_fetch_add(&queue->device->gpu->references, 1);
        gpuhal_async_worker_ends(queue->device->gpu);
    }
}

static void for_queues_of(gpuhal_device *device, bool hung)
{
    gpuhal_cause *cause = gpuhal_cause_create();
    size_t count = 0;
    gpuhal_queue **queues = gpuhal_async_queues(device->gpu, device, &count);
    for (size_t i = 0; i < count; i++) {
        if (hung) {
            give_up(queues[i], cause);
        } else {
            gpuhal_queue_break(queues[i], cause, true);
        }
        gpuhal_queue_release(queues[i]);
    }
    free(queues);
    gpuhal_cause_release(cause);
}

void gpuhal_queues_lost(gpuhal_device *device)
{
    for_queues_of(device, false);
}

static void device_hangs(gpuhal_device *device)
{
    bool first = atomic_exchange(&device->lost, (uint32_t)GPUHAL_LOST_HUNG) != GPUHAL_LOST_HUNG;
    (void)gpuhal_device_unusable(device);
    if (first) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s", gpuhal_last_error()->sentence);
        for_queues_of(device, true);
        (void)gpuhal_device_unusable(device);
        gpuhal_diary_fault(device, GPUHAL_FAULT_HANG);
        gpuhal_change_tell(device, GPUHAL_CHANGE_LOST, gpuhal_last_error()->sentence);
    }
}

/* A piece that the queue's thread does may be in the driver of any device that it touches. One without a driver, which also works in the
 * child of a fork, is not to blame where there is another. With the mutex held. */
static uint32_t suspects_of(const gpuhal_queue *queue, gpuhal_device *suspects[3])
{
    const gpuhal_op *op = queue->running && queue->held ? &queue->held->op : NULL;
    gpuhal_device *all[3] = {queue->device, op && op->to ? op->to->device : NULL, op && op->from ? op->from->device : NULL};
    uint32_t count = 0;
    for (size_t i = 0; i < 3; i++) {
        if (all[i] && all[i]->generation != 0) {
            suspects[count++] = all[i];
        }
    }
    if (count == 0) {
        suspects[count++] = queue->device;
    }
    return count;
}

static void look_at(gpuhal_queue *queue)
{
    gpuhal_device *suspects[3];
    gpuhal_queue_lock(queue);
    uint32_t count = hangs(queue) ? suspects_of(queue, suspects) : 0;
    gpuhal_mutex_unlock(&queue->mutex);
    for (uint32_t i = 0; i < count; i++) {
        device_hangs(suspects[i]);
    }
    if (count > 0) {
        gpuhal_cause *cause = gpuhal_cause_create();
        give_up(queue, cause);
        gpuhal_cause_release(cause);
    }
}

void gpuhal_queues_look(gpuhal *gpu)
{
    size_t count = 0;
    if (!gpuhal_async_may_look(gpu)) {
        return;
    }
    gpuhal_queue **queues = gpuhal_async_queues(gpu, NULL, &count);
    for (size_t i = 0; i < count; i++) {
        look_at(queues[i]);
        gpuhal_queue_release(queues[i]);
    }
    free(queues);
}
