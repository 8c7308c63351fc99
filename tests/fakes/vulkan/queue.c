/* fakes/vulkan/queue.c: submissions. A queue executes its submissions in order, and waits for each submission's
 * semaphores first. Submissions run on a thread of the driver or, with `inline` in the script, inside the calls that
 * submit and wait. An object counts as in use until all submissions that use it have ended. */
#include "fake.h"

#include <string.h>

typedef struct fake_point {
    fake_semaphore *semaphore;
    uint64_t value;
} fake_point;

typedef struct fake_submission {
    struct fake_submission *next;
    uint32_t wait_count, signal_count, command_count;
    fake_point *waits, *signals;
    fake_command_buffer **commands;
    fake_fence *fence;
    bool hangs, loses;
} fake_submission;

struct fake_queue {
    fake_object object;
    uint32_t family;
    bool has_thread, stop, busy;
    pthread_t thread;
    fake_submission *first, **end;
    fake_submission *late; /* with `late_waits`: the last submission; its wait semaphores still count as in use */
};

static void free_submission(fake_submission *submission)
{
    if (submission) {
        free(submission->waits);
        free(submission->signals);
        free(submission->commands);
        free(submission);
    }
}

static void hold(fake_object *object, int change)
{
    object->in_use += (unsigned)change;
}

static void hold_buffer(fake_buffer *buffer, int change)
{
    if (buffer) {
        hold(&buffer->object, change);
        if (buffer->memory) {
            hold(&buffer->memory->object, change);
        }
    }
}

/* Adds or removes one use of every object of a submission. */
static void hold_all_locked(fake_submission *submission, int change)
{
    for (uint32_t c = 0; c < submission->command_count; c++) {
        fake_command_buffer *commands = submission->commands[c];
        hold(&commands->object, change);
        hold(&commands->pool->object, change);
        for (uint32_t i = 0; i < commands->count; i++) {
            fake_command *command = &commands->commands[i];
            hold_buffer(command->from, change);
            hold_buffer(command->to, change);
            if (command->launch) {
                fake_hold_launch(command->launch, change, hold_buffer);
            }
            if (command->pool) {
                hold(&command->pool->object, change);
                command->pool->queries[command->query].in_use += (unsigned)change;
            }
        }
    }
    for (uint32_t s = 0; s < submission->wait_count; s++) {
        hold(&submission->waits[s].semaphore->object, change);
    }
    for (uint32_t s = 0; s < submission->signal_count; s++) {
        hold(&submission->signals[s].semaphore->object, change);
    }
    if (submission->fence) {
        hold(&submission->fence->object, change);
    }
}

static void end_commands_locked(fake_submission *submission)
{
    for (uint32_t c = 0; c < submission->command_count; c++) {
        fake_command_buffer *commands = submission->commands[c];
        commands->state = commands->usage & VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT ? INVALID : EXECUTABLE;
    }
}

static void complete_locked(fake_submission *submission)
{
    for (uint32_t s = 0; s < submission->signal_count; s++) {
        fake_semaphore *semaphore = submission->signals[s].semaphore;
        if (semaphore->timeline && submission->signals[s].value <= semaphore->value) {
            fake_violation("vkQueueSubmit: a semaphore at %llu is signaled with %llu",
                           (unsigned long long)semaphore->value, (unsigned long long)submission->signals[s].value);
        }
        semaphore->value = semaphore->timeline ? submission->signals[s].value : 0;
        semaphore->signaled = true;
    }
    if (submission->fence) {
        submission->fence->signaled = true;
    }
}

static bool is_ready_locked(const fake_submission *submission)
{
    for (uint32_t s = 0; s < submission->wait_count; s++) {
        const fake_semaphore *semaphore = submission->waits[s].semaphore;
        if (semaphore->timeline ? semaphore->value < submission->waits[s].value : !semaphore->signaled) {
            return false;
        }
    }
    return !submission->hangs || !fake_hangs();
}

static fake_submission *take_locked(fake_queue *queue)
{
    fake_submission *submission = queue->first;
    queue->first = submission->next;
    if (!queue->first) {
        queue->end = &queue->first;
    }
    return submission;
}

static void drop_locked(fake_submission *submission)
{
    end_commands_locked(submission);
    hold_all_locked(submission, -1);
    free_submission(submission);
}

/* With `late_waits`, the queue's thread may write to a submission's wait semaphores even after the submission has
 * visibly ended, until the thread begins the next submission or a caller waits for the whole queue. Mesa 22.3's
 * emulated timelines do this (vk_sync_timeline_point_release). */
static void leave_late_locked(fake_queue *queue)
{
    for (uint32_t s = 0; queue->late && s < queue->late->wait_count; s++) {
        hold(&queue->late->waits[s].semaphore->object, -1);
    }
    free_submission(queue->late);
    queue->late = NULL;
}

static void end_locked(fake_queue *queue, fake_submission *submission)
{
    if (!fake_get_script()->late_waits || submission->wait_count == 0 || queue->object.device->lost) {
        drop_locked(submission);
        return;
    }
    for (uint32_t s = 0; s < submission->wait_count; s++) {
        hold(&submission->waits[s].semaphore->object, 1);
    }
    end_commands_locked(submission);
    hold_all_locked(submission, -1);
    queue->late = submission;
}

static bool any_busy_locked(const fake_device *device)
{
    for (unsigned q = 0; q < device->queue_count; q++) {
        if (device->queues[q]->busy) {
            return true;
        }
    }
    return false;
}

/* Loses the device. Returns only after the device has stopped reading and writing memory. */
void fake_lose_locked(fake_device *device)
{
    device->lost = true;
    for (unsigned q = 0; q < device->queue_count; q++) {
        while (device->queues[q]->first) {
            drop_locked(take_locked(device->queues[q]));
        }
        leave_late_locked(device->queues[q]);
    }
    pthread_cond_broadcast(&fake_changed);
    while (any_busy_locked(device)) {
        (void)fake_wait_locked(UINT64_MAX);
    }
}

/* Executes one submission if one is ready. Releases the lock while it copies bytes. */
static bool step_locked(fake_queue *queue)
{
    fake_device *device = queue->object.device;
    if (!queue->first || queue->busy || !is_ready_locked(queue->first)) {
        return false;
    }
    fake_submission *submission = take_locked(queue);
    leave_late_locked(queue);
    for (uint32_t s = 0; s < submission->wait_count; s++) {
        submission->waits[s].semaphore->signaled = false;
    }
    queue->busy = true;
    pthread_mutex_unlock(&fake_lock);
    fake_execute(submission->commands, submission->command_count, submission->loses);
    pthread_mutex_lock(&fake_lock);
    const bool loses = submission->loses;
    if (!loses && !device->lost) {
        complete_locked(submission);
    }
    end_locked(queue, submission);
    queue->busy = false;
    if (loses) {
        fake_lose_locked(device);
    }
    pthread_cond_broadcast(&fake_changed);
    return true;
}

static void *serve(void *user)
{
    fake_queue *queue = user;
    pthread_mutex_lock(&fake_lock);
    while (!queue->stop) {
        if (!step_locked(queue)) {
            (void)fake_wait_locked(UINT64_MAX);
        }
    }
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}

void fake_progress_locked(fake_device *device)
{
    bool moved = fake_get_script()->run_inline;
    while (moved) {
        moved = false;
        for (unsigned q = 0; q < device->queue_count; q++) {
            moved = step_locked(device->queues[q]) || moved;
        }
    }
}

fake_queue *fake_queue_start(fake_device *device, uint32_t family)
{
    fake_queue *queue = fake_make(device, A_QUEUE, sizeof *queue);
    if (!queue) {
        return NULL;
    }
    queue->family = family;
    queue->end = &queue->first;
    queue->has_thread = !fake_get_script()->run_inline;
    if (queue->has_thread && pthread_create(&queue->thread, NULL, serve, queue)) {
        (void)fake_destroy(queue, A_QUEUE, "vkCreateDevice");
        return NULL;
    }
    return queue;
}

void fake_queue_stop(fake_queue *queue)
{
    pthread_mutex_lock(&fake_lock);
    if (queue->first || queue->busy) {
        fake_violation("vkDestroyDevice: a queue still has work");
    }
    while (queue->first) {
        drop_locked(take_locked(queue));
    }
    leave_late_locked(queue);
    queue->stop = true;
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
    if (queue->has_thread) {
        pthread_join(queue->thread, NULL);
    }
    (void)fake_destroy(queue, A_QUEUE, "vkDestroyDevice");
}

uint32_t fake_queue_family(const fake_queue *queue)
{
    return queue->family;
}

/* ---- submitting */

static fake_point *read_points(uint32_t count, const VkSemaphore *semaphores, uint32_t value_count,
                               const uint64_t *values, bool signals)
{
    fake_point *points = calloc(count + 1, sizeof *points);
    for (uint32_t s = 0; s < count && points; s++) {
        points[s].semaphore = fake_find(semaphores[s], A_SEMAPHORE, "vkQueueSubmit");
        points[s].value = values && s < value_count ? values[s] : 0;
        fake_semaphore *semaphore = points[s].semaphore;
        if (!semaphore || (semaphore->timeline && s >= value_count)) {
            fake_violation("vkQueueSubmit: no such semaphore, or no value for it");
            free(points);
            return NULL;
        }
        pthread_mutex_lock(&fake_lock);
        if (signals && semaphore->timeline) {
            if (points[s].value <= semaphore->promised) {
                fake_violation("vkQueueSubmit: a semaphore is to become %llu after %llu",
                               (unsigned long long)points[s].value, (unsigned long long)semaphore->promised);
            }
            semaphore->promised = points[s].value;
        }
        pthread_mutex_unlock(&fake_lock);
    }
    return points;
}

static bool read_commands(fake_submission *submission, const VkSubmitInfo *info, uint32_t family)
{
    submission->commands = calloc(info->commandBufferCount + 1, sizeof *submission->commands);
    for (uint32_t c = 0; c < info->commandBufferCount && submission->commands; c++) {
        fake_command_buffer *commands = fake_find(info->pCommandBuffers[c], A_COMMAND_BUFFER, "vkQueueSubmit");
        if (!commands) {
            return false;
        }
        pthread_mutex_lock(&fake_lock);
        bool pending = commands->object.in_use && !(commands->usage & VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
        bool good = commands->state == EXECUTABLE && !pending && commands->pool->family == family;
        for (uint32_t i = 0; i < commands->count && good; i++) {
            good = fake_may_execute_locked(&commands->commands[i], family);
        }
        pthread_mutex_unlock(&fake_lock);
        if (!good) {
            fake_violation("vkQueueSubmit: a command buffer that is pending, not executable, of another family, or "
                           "uses what is gone");
            return false;
        }
        submission->commands[submission->command_count++] = commands;
    }
    return submission->commands != NULL;
}

static fake_submission *read_submission(const VkSubmitInfo *info, uint32_t family)
{
    const VkTimelineSemaphoreSubmitInfo *values =
        fake_chained(info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    fake_submission *submission = calloc(1, sizeof *submission);
    if (!submission) {
        return NULL;
    }
    submission->wait_count = info->waitSemaphoreCount;
    submission->signal_count = info->signalSemaphoreCount;
    submission->waits =
        read_points(info->waitSemaphoreCount, info->pWaitSemaphores, values ? values->waitSemaphoreValueCount : 0,
                    values ? values->pWaitSemaphoreValues : NULL, false);
    submission->signals =
        read_points(info->signalSemaphoreCount, info->pSignalSemaphores, values ? values->signalSemaphoreValueCount : 0,
                    values ? values->pSignalSemaphoreValues : NULL, true);
    if (!submission->waits || !submission->signals || !read_commands(submission, info, family)) {
        free_submission(submission);
        return NULL;
    }
    if (submission->command_count > 0) {
        submission->hangs = fake_submission_hangs(family, &submission->loses);
    }
    return submission;
}

static void append_locked(fake_queue *queue, fake_submission *submission)
{
    hold_all_locked(submission, 1);
    *queue->end = submission;
    queue->end = &submission->next;
}

static bool is_fence_free(fake_fence *fence)
{
    pthread_mutex_lock(&fake_lock);
    bool is_free = !fence->signaled && !fence->object.in_use;
    pthread_mutex_unlock(&fake_lock);
    if (!is_free) {
        fake_violation("vkQueueSubmit: the fence is signaled or in use");
    }
    return is_free;
}

/* Parses the whole submission before appending it, so no command of a refused submission is executed. */
VKAPI_ATTR VkResult VKAPI_CALL fake_vkQueueSubmit(VkQueue handle, uint32_t count, const VkSubmitInfo *infos,
                                                  VkFence fence_object)
{
    VkResult result = fake_enter(FN_vkQueueSubmit);
    fake_queue *queue = fake_find(handle, A_QUEUE, "vkQueueSubmit");
    fake_fence *fence = fence_object ? fake_find(fence_object, A_FENCE, "vkQueueSubmit") : NULL;
    if (result || !queue || (fence && !is_fence_free(fence))) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    fake_device *device = queue->object.device;
    for (uint32_t i = 0; i < count || (i == 0 && fence); i++) {
        const VkSubmitInfo nothing = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
        fake_submission *submission = read_submission(count ? &infos[i] : &nothing, queue->family);
        if (!submission) {
            return VK_ERROR_UNKNOWN;
        }
        submission->fence = i + 1 >= count ? fence : NULL;
        pthread_mutex_lock(&fake_lock);
        const bool lost = device->lost;
        if (!lost) {
            append_locked(queue, submission);
            pthread_cond_broadcast(&fake_changed);
            fake_progress_locked(device);
        }
        pthread_mutex_unlock(&fake_lock);
        if (lost) {
            free_submission(submission);
            return VK_ERROR_DEVICE_LOST;
        }
    }
    return VK_SUCCESS;
}

static VkResult wait_idle(fake_device *device, const fake_queue *only)
{
    pthread_mutex_lock(&fake_lock);
    for (unsigned q = 0; q < device->queue_count && !device->lost; q++) {
        fake_queue *queue = device->queues[q];
        if (only != NULL && only != queue) {
            continue;
        }
        while ((queue->first || queue->busy) && !device->lost) {
            fake_progress_locked(device);
            (void)fake_wait_locked(fake_deadline_ns(1000000));
        }
        leave_late_locked(queue);
    }
    const bool lost = device->lost;
    pthread_mutex_unlock(&fake_lock);
    return lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkQueueWaitIdle(VkQueue handle)
{
    VkResult result = fake_enter(FN_vkQueueWaitIdle);
    fake_queue *queue = fake_find(handle, A_QUEUE, "vkQueueWaitIdle");
    return result || !queue ? result : wait_idle(queue->object.device, queue);
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkDeviceWaitIdle(VkDevice handle)
{
    VkResult result = fake_enter(FN_vkDeviceWaitIdle);
    fake_device *device = fake_find(handle, A_DEVICE, "vkDeviceWaitIdle");
    return result || !device ? result : wait_idle(device, NULL);
}
