/* vulkan/queue.c: queues collect commands in batches, submit them, and wait for each other.
 *
 * Several queues may share a wrapper; wrapper.c serializes their submissions. Each queue has its own command pool,
 * which needs no lock because the core makes only one call at a time on a queue. Within a batch the hazards determine
 * the barriers. The barriers at both ends of every command buffer order the batches.
 *
 * Waits for another queue are at the beginning of a batch: earlier commands are submitted first and do not wait. The
 * signal of an awaited value has always been submitted before the wait, so submissions cannot wait for each other in a
 * cycle.
 */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

/* A batch of this size is submitted automatically, so that long sequences of commands start early and use bounded
 * memory. */
#define BATCH_OPERATIONS 256u
/* Maximum number of command buffers per queue, and of operations in flight. At these limits the queue returns
 * NOT_READY. A driver's memory for a command buffer grows with each command, for example by about 1 KiB per launch in
 * lavapipe 22.3. */
#define BATCHES    64u
#define OPERATIONS (16u * BATCH_OPERATIONS)

/* Work that was enqueued after a dropped batch depends on it, so nothing in the queue may run anymore. */
gpuhal_status gpuhal_vulkan_queue_ready(gpuhal_plugin_queue *queue)
{
    gpuhal_status status = gpuhal_vulkan_alive(queue->device);
    if (status == GPUHAL_OK && queue->failed) {
        return queue->device->host->report(queue->device->host, GPUHAL_ERROR_CANCELLED, NULL, 0,
                                           "an earlier submission of this queue failed, and its work was dropped");
    }
    return status;
}

/* Recycles a batch that the device does not use: it was never submitted, its value was reached, or the device was lost.
 * Resets the command buffer now rather than on reuse, because most batches are needed only while many batches are in
 * flight. If the reset fails, beginning the command buffer again resets it. */
static void make_idle(gpuhal_plugin_queue *queue, gpuhal_vulkan_batch *batch)
{
    for (uint32_t i = 0; i < batch->awaited_count; i++) {
        gpuhal_vulkan_timeline_release(batch->awaited[i]);
    }
    gpuhal_vulkan_stamp_release(batch->stamp);
    if (batch->begun && batch->recorded > 0) {
        (void)queue->device->api.vkResetCommandBuffer(batch->commands, 0);
    }
    *batch = (gpuhal_vulkan_batch){.commands = batch->commands,
                                   .arena = batch->arena,
                                   .runs = batch->runs,
                                   .run_space = batch->run_space,
                                   .next = queue->idle};
    queue->idle = batch;
}

static gpuhal_vulkan_batch *take_first(gpuhal_plugin_queue *queue)
{
    gpuhal_vulkan_batch *batch = queue->first;
    queue->first = batch->next;
    queue->last = queue->first ? queue->last : NULL;
    queue->in_flight -= batch->recorded;
    return batch;
}

/* Retires completed batches. The values of a timeline are reached in order, so the search ends at the first unfinished
 * batch, without an error. */
static gpuhal_status take_back(gpuhal_plugin_queue *queue)
{
    gpuhal_status status = GPUHAL_OK;
    while (queue->first && (status = gpuhal_vulkan_timeline_query(queue->timeline, queue->first->value)) == GPUHAL_OK) {
        make_idle(queue, take_first(queue));
    }
    return status == GPUHAL_NOT_READY ? GPUHAL_OK : status;
}

static gpuhal_status make_batch(gpuhal_plugin_queue *queue)
{
    gpuhal_plugin_device *device = queue->device;
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = queue->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    gpuhal_vulkan_batch *batch = calloc(1, sizeof *batch);
    if (!batch) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    VkResult code = device->api.vkAllocateCommandBuffers(device->handle, &allocate, &batch->commands);
    if (code != VK_SUCCESS) {
        free(batch);
        return gpuhal_vulkan_result(device, "vkAllocateCommandBuffers", code);
    }
    queue->batch_count++;
    make_idle(queue, batch);
    return GPUHAL_OK;
}

/* Opens an idle or new batch, whose command buffer is begun only if something is recorded in it. */
static gpuhal_status open_batch(gpuhal_plugin_queue *queue)
{
    gpuhal_status status = take_back(queue);
    if (status == GPUHAL_OK && queue->in_flight >= OPERATIONS) {
        status = GPUHAL_NOT_READY;
    }
    if (status == GPUHAL_OK && !queue->idle) {
        status = queue->batch_count < BATCHES ? make_batch(queue) : GPUHAL_NOT_READY;
    }
    if (status != GPUHAL_OK) {
        return status;
    }
    queue->open = queue->idle;
    queue->idle = queue->open->next;
    queue->open->next = NULL;
    gpuhal_vulkan_hazards_clear(&queue->hazards);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_queue_open(gpuhal_plugin_queue *queue)
{
    gpuhal_status status = queue->open ? GPUHAL_OK : open_batch(queue);
    if (status != GPUHAL_OK || queue->open->begun || queue->open->run_count > 0) {
        return status;
    }
    gpuhal_vulkan_batch *batch = queue->open;
    status = gpuhal_vulkan_arena_reset(queue->device, &batch->arena);
    status = status == GPUHAL_OK ? gpuhal_vulkan_open_commands(queue->device, batch->commands,
                                                               VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)
                                 : status;
    batch->begun = status == GPUHAL_OK;
    if (status != GPUHAL_OK) { /* nothing is lost, because the batch is empty */
        make_idle(queue, batch);
        queue->open = NULL;
    }
    return status;
}

/* Requires ownership of the wrapper. No stage of the batch starts before the awaited values are reached. A fence is not
 * needed: when @p value is reached, the batch has finished. */
static VkResult submit_batch(gpuhal_plugin_queue *queue, const gpuhal_vulkan_batch *batch, uint64_t value)
{
    VkPipelineStageFlags stages[GPUHAL_VULKAN_AWAITED];
    VkSemaphore semaphores[GPUHAL_VULKAN_AWAITED];
    for (uint32_t i = 0; i < batch->awaited_count; i++) {
        stages[i] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
        semaphores[i] = batch->awaited[i]->semaphore;
    }
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = batch->awaited_count,
        .pWaitSemaphoreValues = batch->awaited_values,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &value,
    };
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = batch->awaited_count,
        .pWaitSemaphores = semaphores,
        .pWaitDstStageMask = stages,
        .commandBufferCount = batch->begun + batch->run_count,
        .pCommandBuffers = batch->run_count == 0 ? &batch->commands
                           : batch->begun        ? batch->runs
                                                 : batch->runs + 1,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &queue->timeline->semaphore,
    };
    return queue->device->api.vkQueueSubmit(queue->wrapper->queue, 1, &submit, VK_NULL_HANDLE);
}

gpuhal_status gpuhal_vulkan_queue_enter(gpuhal_plugin_queue *queue)
{
    return gpuhal_vulkan_wrapper_enter(queue->device, queue->wrapper, false) ? GPUHAL_OK : GPUHAL_NOT_READY;
}

/* Returns NOT_READY instead of waiting for native access to end. */
static gpuhal_status enter_and_submit(gpuhal_plugin_queue *queue)
{
    gpuhal_status status = queue->open ? gpuhal_vulkan_queue_enter(queue) : GPUHAL_OK;
    if (status == GPUHAL_OK && queue->open) {
        status = gpuhal_vulkan_queue_submit(queue);
        gpuhal_vulkan_wrapper_leave(queue->device, queue->wrapper);
    }
    return status;
}

/* If submitting a batch fails, the batch is dropped and the queue becomes unusable, because later work would run
 * without the batch. On a lost device the batch may still run, so it counts as submitted. */
gpuhal_status gpuhal_vulkan_queue_submit(gpuhal_plugin_queue *queue)
{
    gpuhal_vulkan_batch *batch = queue->open;
    if (!batch) {
        return GPUHAL_OK;
    }
    /* Clear `open` first, because nothing may be recorded in the batch after a failure below. */
    queue->open = NULL;
    gpuhal_status status = batch->begun ? gpuhal_vulkan_close_commands(queue->device, batch->commands) : GPUHAL_OK;
    if (status == GPUHAL_OK) {
        VkResult code = submit_batch(queue, batch, queue->submitted + 1);
        status = code == VK_SUCCESS ? GPUHAL_OK : gpuhal_vulkan_result(queue->device, "vkQueueSubmit", code);
    }
    if (status != GPUHAL_OK) {
        queue->failed = true;
    }
    if (status != GPUHAL_OK && status != GPUHAL_ERROR_DEVICE_LOST) {
        atomic_store(&queue->timeline->dropped, queue->submitted + 1);
        make_idle(queue, batch);
        return status;
    }
    /* From here on the device may use the batch and its objects, until its value is reached. */
    batch->value = ++queue->submitted;
    atomic_store(&queue->timeline->submitted, batch->value);
    queue->in_flight += batch->recorded;
    if (queue->last) {
        queue->last->next = batch;
    } else {
        queue->first = batch;
    }
    queue->last = batch;
    /* The application may submit to an adopted VkQueue at any time, so assume that it does so immediately. */
    queue->foreign = queue->adopted;
    return status;
}

/* A transfer in progress stays in its batch, even if the batch becomes large. Submitting the batch could return
 * NOT_READY, but plugin.h allows this status only before any side effect. */
gpuhal_status gpuhal_vulkan_queue_record(gpuhal_plugin_queue *queue, gpuhal_vulkan_piece piece,
                                         const gpuhal_vulkan_touch *touches, uint32_t count,
                                         VkCommandBuffer *out_commands)
{
    const bool begun = piece == GPUHAL_VULKAN_TRANSFER_BEGUN;
    gpuhal_status status = gpuhal_vulkan_queue_ready(queue);
    if (status == GPUHAL_OK && !begun && queue->open &&
        (queue->open->recorded >= BATCH_OPERATIONS || queue->open->run_count > 0)) {
        status = enter_and_submit(queue);
    }
    status = status == GPUHAL_OK ? gpuhal_vulkan_queue_open(queue) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    /* The hazards belong to the open batch, because opening a batch clears them. They do not have the commands before
     * the last barrier, but that barrier does not order the first launch, or the first indirect launch, after them. */
    gpuhal_vulkan_batch *batch = queue->open;
    if (piece > batch->most) {
        queue->hazards.all = queue->hazards.all || (batch->ordered && piece >= GPUHAL_VULKAN_DISPATCH);
        batch->most = piece;
    }
    if (gpuhal_vulkan_hazards_add(&queue->hazards, touches, count)) {
        gpuhal_vulkan_order_commands(queue->device, batch->commands, batch->most);
        batch->ordered = true;
    }
    batch->recorded++;
    *out_commands = batch->commands;
    return GPUHAL_OK;
}

static gpuhal_status make_room(gpuhal_plugin_queue *queue, gpuhal_vulkan_batch *batch, uint32_t count)
{
    const uint32_t wanted = 1 + batch->run_count + count;
    if (wanted <= batch->run_space) {
        return GPUHAL_OK;
    }
    VkCommandBuffer *runs = realloc(batch->runs, 2 * (size_t)wanted * sizeof *runs);
    if (!runs) {
        return queue->device->host->report(queue->device->host, GPUHAL_ERROR_HOST_MEMORY, "realloc", 0, NULL);
    }
    runs[0] = batch->commands;
    batch->runs = runs;
    batch->run_space = 2 * wanted;
    return GPUHAL_OK;
}

/* The command buffers of a recording begin and end with barriers, as batches do. */
gpuhal_status gpuhal_vulkan_queue_run(gpuhal_plugin_queue *queue, const VkCommandBuffer *commands, uint32_t count,
                                      uint32_t operations, uint64_t *out_value)
{
    gpuhal_status status = gpuhal_vulkan_queue_ready(queue);
    if (status == GPUHAL_OK && queue->open && queue->open->recorded >= BATCH_OPERATIONS) {
        status = enter_and_submit(queue);
    }
    status = status == GPUHAL_OK && !queue->open ? open_batch(queue) : status;
    status = status == GPUHAL_OK ? make_room(queue, queue->open, count) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_batch *batch = queue->open;
    memcpy(batch->runs + 1 + batch->run_count, commands, count * sizeof *commands);
    batch->run_count += count;
    batch->recorded += operations;
    *out_value = queue->submitted + 1;
    return GPUHAL_OK;
}

/* The caller's submissions to the VkQueue have no timeline value, so they may still be running. */
bool gpuhal_vulkan_queue_is_idle(gpuhal_plugin_queue *queue)
{
    return !queue->open && !queue->foreign && !queue->failed &&
           gpuhal_vulkan_timeline_query(queue->timeline, queue->submitted) == GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_queue_flush(gpuhal_plugin_queue *queue)
{
    gpuhal_status status = gpuhal_vulkan_queue_ready(queue);
    return status == GPUHAL_OK ? enter_and_submit(queue) : status;
}

/* Chooses VkQueues of compute families in turn, because applications may submit kernels to the chosen VkQueue. With
 * GPUHAL_TIMED, families that write timestamps are preferred. The priorities of VkQueues are fixed when the VkDevice is
 * created, so the queue's priority is ignored. */
static gpuhal_vulkan_wrapper *choose_wrapper(gpuhal_plugin_device *device, uint32_t flags)
{
    uint32_t turn = atomic_fetch_add(&device->next_wrapper, 1);
    gpuhal_vulkan_wrapper *second_best = NULL;
    for (uint32_t i = 0; i < device->wrapper_count; i++) {
        gpuhal_vulkan_wrapper *wrapper = &device->wrappers[(turn + i) % device->wrapper_count];
        const VkQueueFamilyProperties *family = &device->hardware.families[wrapper->family];
        if (!(family->queueFlags & VK_QUEUE_COMPUTE_BIT)) {
            continue;
        }
        if (!(flags & GPUHAL_TIMED) || family->timestampValidBits > 0) {
            return wrapper;
        }
        second_best = second_best ? second_best : wrapper;
    }
    return second_best ? second_best : &device->wrappers[0];
}

static gpuhal_status fill_queue(gpuhal_plugin_queue *queue, uint32_t flags, const gpuhal_native *adopt)
{
    gpuhal_plugin_device *device = queue->device;
    gpuhal_status status = GPUHAL_OK;
    queue->adopted = adopt != NULL;
    queue->foreign = queue->adopted;
    queue->wrapper = adopt ? gpuhal_vulkan_wrapper_of(device, adopt, &status) : choose_wrapper(device, flags);
    if (!queue->wrapper || !(queue->timeline = gpuhal_vulkan_timeline_take(device, &status))) {
        return status;
    }
    /* A reused timeline continues from its value, which may only increase. */
    queue->submitted = atomic_load(&queue->timeline->reached);
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = queue->wrapper->family,
    };
    VkResult code = device->api.vkCreateCommandPool(device->handle, &pool, NULL, &queue->pool);
    if (code != VK_SUCCESS) {
        gpuhal_vulkan_timeline_release(queue->timeline);
        return gpuhal_vulkan_result(device, "vkCreateCommandPool", code);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                         gpuhal_plugin_queue **out_queue)
{
    *out_queue = NULL;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_plugin_queue *queue = calloc(1, sizeof *queue);
    if (!queue) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    queue->device = device;
    status = fill_queue(queue, desc->flags, desc->adopt);
    if (status != GPUHAL_OK) {
        free(queue);
        return status;
    }
    *out_queue = queue;
    return GPUHAL_OK;
}

/* VK_ERROR_DEVICE_LOST counts as the end of the work. Once a submission is known to be stuck, later calls do not wait.
 * The timeline stores the reached value, because the next queue that uses the timeline continues from this value. No
 * value may be signalled twice. */
static bool has_ended(const gpuhal_plugin_queue *queue)
{
    if (!queue->first) {
        return true;
    }
    uint64_t patience = atomic_load(&queue->device->stuck) ? 0 : GPUHAL_VULKAN_PATIENCE_NS;
    VkResult code = gpuhal_vulkan_timeline_await(queue->timeline, queue->submitted, patience);
    if (code == VK_SUCCESS) {
        gpuhal_vulkan_timeline_advance(queue->timeline, queue->submitted);
    }
    return code == VK_SUCCESS || code == VK_ERROR_DEVICE_LOST;
}

/* If work never finishes, its objects are leaked, because Vulkan forbids destroying objects that the device may still
 * use. */
void gpuhal_vulkan_queue_destroy(gpuhal_plugin_queue *queue)
{
    gpuhal_plugin_device *device = queue->device;
    if (queue->open && !atomic_load(&device->lost) && !queue->failed) {
        /* If this thread owns the VkQueue through native access to another queue, it may submit without entering. */
        const bool entered = gpuhal_vulkan_wrapper_enter(device, queue->wrapper, true);
        (void)gpuhal_vulkan_queue_submit(queue);
        if (entered) {
            gpuhal_vulkan_wrapper_leave(device, queue->wrapper);
        }
    }
    if (!has_ended(queue)) {
        device->host->log(device->host, GPUHAL_LOG_ERROR,
                          "work of a Vulkan queue does not end; the device counts as lost");
        atomic_store(&device->stuck, true);
        atomic_store(&device->lost, true);
        return;
    }
    if (queue->open) {
        make_idle(queue, queue->open);
    }
    while (queue->first) {
        make_idle(queue, take_first(queue));
    }
    while (queue->idle) {
        gpuhal_vulkan_batch *batch = queue->idle;
        queue->idle = batch->next;
        gpuhal_vulkan_arena_finish(device, &batch->arena);
        free(batch->runs);
        free(batch);
    }
    /* Destroying the pool frees the command buffers of all batches. The timeline is released last, because another
     * queue may use it immediately. */
    device->api.vkDestroyCommandPool(device->handle, queue->pool, NULL);
    gpuhal_vulkan_timeline_release(queue->timeline);
    free(queue);
}

/* Events of this queue need no wait, because they precede later commands in submission order. Events that were never
 * recorded need no wait either. The batch retains the awaited timeline, because the event may be destroyed or recorded
 * again before the batch has finished. */
gpuhal_status gpuhal_vulkan_queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    gpuhal_status status = gpuhal_vulkan_queue_ready(queue);
    if (status != GPUHAL_OK || !event->timeline || event->timeline == queue->timeline) {
        return status;
    }
    if (event->device != queue->device) {
        return queue->device->host->report(
            queue->device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
            "the event belongs to another VkDevice, whose semaphores this one cannot wait for");
    }
    if (queue->open && (queue->open->recorded > 0 || queue->open->awaited_count == GPUHAL_VULKAN_AWAITED)) {
        status = enter_and_submit(queue);
    }
    status = status == GPUHAL_OK ? gpuhal_vulkan_queue_open(queue) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_batch *batch = queue->open;
    batch->awaited_values[batch->awaited_count] = event->value;
    batch->awaited[batch->awaited_count++] = gpuhal_vulkan_timeline_retain(event->timeline);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_VULKAN_QUEUE;
    out_native->values[0] = (uint64_t)(uintptr_t)queue->wrapper->queue;
    out_native->values[1] = queue->wrapper->family;
    out_native->values[2] = queue->wrapper->index;
    return GPUHAL_OK;
}

/* Acquires the wrapper before submitting the open batch. The recorded commands must precede the caller's submissions,
 * without commands of other queues in between. */
gpuhal_status gpuhal_vulkan_native_lock(gpuhal_plugin_queue *queue, uint64_t timeout_ns)
{
    gpuhal_status status = gpuhal_vulkan_queue_ready(queue);
    if (status != GPUHAL_OK) {
        return status;
    }
    status = gpuhal_vulkan_wrapper_take(queue->device, queue->wrapper, timeout_ns);
    if (status != GPUHAL_OK) {
        return status;
    }
    status = gpuhal_vulkan_queue_submit(queue);
    if (status != GPUHAL_OK) {
        gpuhal_vulkan_wrapper_give(queue->device, queue->wrapper);
    }
    return status;
}

void gpuhal_vulkan_native_unlock(gpuhal_plugin_queue *queue)
{
    queue->foreign = true; /* set before another thread can submit, so that the next event record sees the flag */
    gpuhal_vulkan_wrapper_give(queue->device, queue->wrapper);
}
