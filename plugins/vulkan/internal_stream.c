/* vulkan/internal_stream.c: the internal streams of blocking calls.
 *
 * A call owns an internal stream from begin to finish. Idle streams are bits in one word, so a call needs no lock while
 * a stream is idle. Otherwise the call creates a stream or sleeps. Internal streams wait with fences, which every
 * VkDevice supports. So blocking copies work on an adopted device without timeline semaphores as well.
 *
 * If a wait returns VK_ERROR_DEVICE_LOST, the specification treats the work as finished, so its objects may be reset
 * and destroyed. If the work has neither finished nor been reported as lost, the stream is broken. Broken streams are
 * never reused or freed. Until the device is closed, streams break only on a device that counts as lost.
 */
#include "device.h"

#include <stdlib.h>
#include <time.h>

bool gpuhal_vulkan_wait_again(VkResult code, uint32_t tries)
{
    if ((code != VK_ERROR_OUT_OF_HOST_MEMORY && code != VK_ERROR_OUT_OF_DEVICE_MEMORY) ||
        tries >= GPUHAL_VULKAN_WAIT_TRIES) {
        return false;
    }
    nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
    return true;
}

static void free_stream(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream)
{
    device->api.vkDestroyFence(device->handle, stream->fence, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        if (stream->pools[i]) {
            device->api.vkDestroyCommandPool(device->handle, stream->pools[i], NULL);
        }
    }
    gpuhal_vulkan_arena_finish(device, &stream->arena);
    *stream = (gpuhal_vulkan_stream){0};
}

/* Each stream has its own pool, so recording needs no lock. */
static gpuhal_status make_commands(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream, uint32_t place,
                                   uint32_t wrapper)
{
    const gpuhal_vulkan_device_functions *api = &device->api;
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = device->wrappers[wrapper].family,
    };
    VkCommandPool made = VK_NULL_HANDLE;
    VkResult code = api->vkCreateCommandPool(device->handle, &pool, NULL, &made);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkCreateCommandPool", code);
    }
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = made,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    code = api->vkAllocateCommandBuffers(device->handle, &allocate, &stream->buffers[place]);
    if (code != VK_SUCCESS) {
        api->vkDestroyCommandPool(device->handle, made, NULL);
        return gpuhal_vulkan_result(device, "vkAllocateCommandBuffers", code);
    }
    stream->pools[place] = made;
    return GPUHAL_OK;
}

static gpuhal_status make_stream(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream)
{
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    *stream = (gpuhal_vulkan_stream){0};
    gpuhal_status status = make_commands(device, stream, 0, device->copy_wrapper);
    if (status != GPUHAL_OK) {
        return status;
    }
    VkResult code = device->api.vkCreateFence(device->handle, &fence, NULL, &stream->fence);
    if (code != VK_SUCCESS) {
        device->api.vkDestroyCommandPool(device->handle, stream->pools[0], NULL);
        *stream = (gpuhal_vulkan_stream){0};
        return gpuhal_vulkan_result(device, "vkCreateFence", code);
    }
    return GPUHAL_OK;
}

/* Selects the wrapper of a call and the command buffer for its family. The command buffer for launches is created on
 * first use. */
static gpuhal_status choose_commands(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream, bool dispatches)
{
    stream->wrapper = dispatches ? 0 : device->copy_wrapper;
    const uint32_t place = stream->wrapper != device->copy_wrapper;
    const gpuhal_status status =
        stream->pools[place] ? GPUHAL_OK : make_commands(device, stream, place, stream->wrapper);
    stream->commands = stream->buffers[place];
    return status;
}

/* Creates the first stream, so that later calls always have a stream to wait for. */
gpuhal_status gpuhal_vulkan_streams_start(gpuhal_plugin_device *device)
{
    gpuhal_status status = make_stream(device, &device->streams[0]);
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_init(&device->growing, NULL);
    pthread_cond_init(&device->stream_freed, NULL);
    device->stream_count = 1;
    atomic_store(&device->idle_streams, 1u);
    return GPUHAL_OK;
}

void gpuhal_vulkan_streams_stop(gpuhal_plugin_device *device)
{
    for (uint32_t i = 0; i < device->stream_count; i++) {
        if (!device->streams[i].broken) {
            free_stream(device, &device->streams[i]);
        }
    }
    device->stream_count = 0;
    while (device->extra_wrappers) {
        gpuhal_vulkan_wrapper *wrapper = device->extra_wrappers;
        device->extra_wrappers = wrapper->next;
        gpuhal_vulkan_wrapper_finish(wrapper);
        free(wrapper);
    }
    pthread_cond_destroy(&device->stream_freed);
    pthread_mutex_destroy(&device->growing);
}

/* The atomics are sequentially consistent, so a thread that takes a stream sees the stores of the stream's creator and
 * of its previous user. */
static gpuhal_vulkan_stream *take_idle(gpuhal_plugin_device *device)
{
    uint32_t idle = atomic_load(&device->idle_streams);
    while (idle != 0) {
        uint32_t rest = idle & (idle - 1);
        if (atomic_compare_exchange_weak(&device->idle_streams, &idle, rest)) {
            return &device->streams[__builtin_ctz(idle & ~rest)];
        }
    }
    return NULL;
}

/* A waiter increments the count before it reads the idle bits; a releasing thread sets a bit before it reads the
 * count. All four operations are sequentially consistent, so at least one thread sees the other thread's store. The
 * mutex is needed only for the broadcast. A waiter holds it between its check and its sleep, and so cannot miss the
 * broadcast. */
static void wake(gpuhal_plugin_device *device)
{
    if (atomic_load(&device->stream_waiters) > 0) {
        pthread_mutex_lock(&device->growing);
        pthread_cond_broadcast(&device->stream_freed);
        pthread_mutex_unlock(&device->growing);
    }
}

/* Wakes waiters for a broken stream as well, because they must notice that the device is lost. */
static void give(gpuhal_plugin_device *device, const gpuhal_vulkan_stream *stream)
{
    if (!stream->broken) {
        atomic_fetch_or(&device->idle_streams, 1u << (stream - device->streams));
    }
    wake(device);
}

/* Creates another internal stream, or sleeps until one is idle. There is always a stream to wait for, since streams
 * break only on a lost device. So it is not an error if creating a stream fails. */
static gpuhal_status grow_or_wait(gpuhal_plugin_device *device, gpuhal_vulkan_stream **out_stream)
{
    gpuhal_status status = GPUHAL_OK;
    gpuhal_vulkan_stream *stream = NULL;
    bool may_grow = true;
    pthread_mutex_lock(&device->growing);
    atomic_fetch_add(&device->stream_waiters, 1); /* before the first check; see wake() */
    while (status == GPUHAL_OK && !stream) {
        stream = take_idle(device);
        if (!stream && may_grow && device->stream_count < GPUHAL_VULKAN_INTERNAL_STREAMS) {
            may_grow = make_stream(device, &device->streams[device->stream_count]) == GPUHAL_OK;
            stream = may_grow ? &device->streams[device->stream_count++] : NULL;
        }
        /* On a lost device all streams may be broken, and broken streams never become idle, so waiting might block
         * forever. */
        if (!stream && (status = gpuhal_vulkan_alive(device)) == GPUHAL_OK) {
            pthread_cond_wait(&device->stream_freed, &device->growing);
        }
    }
    atomic_fetch_sub(&device->stream_waiters, 1);
    pthread_mutex_unlock(&device->growing);
    *out_stream = stream;
    return status;
}

static void barrier(gpuhal_plugin_device *device, VkCommandBuffer commands, const VkMemoryBarrier *memory,
                    VkPipelineStageFlags before, VkPipelineStageFlags after)
{
    device->api.vkCmdPipelineBarrier(commands, before, after, 0, 1, memory, 0, NULL, 0, NULL);
}

/* The first scope is all commands, so it covers all earlier submissions to the VkQueue. */
gpuhal_status gpuhal_vulkan_open_commands(gpuhal_plugin_device *device, VkCommandBuffer commands,
                                          VkCommandBufferUsageFlags usage)
{
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = usage};
    VkResult code = device->api.vkBeginCommandBuffer(commands, &begin);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkBeginCommandBuffer", code);
    }
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
    };
    barrier(device, commands, &memory, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    return GPUHAL_OK;
}

/* Makes writes visible to later submissions and to the host. A fence or a semaphore alone does not make writes visible
 * to the host. */
gpuhal_status gpuhal_vulkan_close_commands(gpuhal_plugin_device *device, VkCommandBuffer commands)
{
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT,
    };
    barrier(device, commands, &memory, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
            VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT);
    VkResult code = device->api.vkEndCommandBuffer(commands);
    return code == VK_SUCCESS ? GPUHAL_OK : gpuhal_vulkan_result(device, "vkEndCommandBuffer", code);
}

/* The stages of launches are named only if there are launches, because transfer-only queues do not support them, and
 * that of indirect launches only if there are such launches, because it may make the device wait longer. */
void gpuhal_vulkan_order_commands(gpuhal_plugin_device *device, VkCommandBuffer commands, gpuhal_vulkan_piece most)
{
    const bool dispatches = most >= GPUHAL_VULKAN_DISPATCH, indirect = most >= GPUHAL_VULKAN_DISPATCH_INDIRECT;
    const VkAccessFlags reads = VK_ACCESS_TRANSFER_READ_BIT | (dispatches ? VK_ACCESS_SHADER_READ_BIT : 0u) |
                                (indirect ? VK_ACCESS_INDIRECT_COMMAND_READ_BIT : 0u),
                        writes = VK_ACCESS_TRANSFER_WRITE_BIT | (dispatches ? VK_ACCESS_SHADER_WRITE_BIT : 0u);
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_TRANSFER_BIT |
                                        (dispatches ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : 0u) |
                                        (indirect ? VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT : 0u);
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = writes,
        .dstAccessMask = reads | writes,
    };
    barrier(device, commands, &memory, stages, stages);
}

gpuhal_status gpuhal_vulkan_begin(gpuhal_plugin_device *device, bool dispatches, gpuhal_vulkan_stream **out_stream)
{
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_stream *stream = take_idle(device);
    if (!stream && (status = grow_or_wait(device, &stream)) != GPUHAL_OK) {
        return status;
    }
    status = choose_commands(device, stream, dispatches);
    status = status == GPUHAL_OK ? gpuhal_vulkan_arena_reset(device, &stream->arena) : status;
    status = status == GPUHAL_OK
                 ? gpuhal_vulkan_open_commands(device, stream->commands, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT)
                 : status;
    if (status != GPUHAL_OK) {
        give(device, stream);
        return status;
    }
    *out_stream = stream;
    return GPUHAL_OK;
}

static VkResult wait_fence(gpuhal_plugin_device *device, const gpuhal_vulkan_stream *stream, uint64_t timeout_ns)
{
    VkResult code;
    uint32_t tries = 0;
    do {
        code = device->api.vkWaitForFences(device->handle, 1, &stream->fence, VK_TRUE, timeout_ns);
    } while (gpuhal_vulkan_wait_again(code, tries++));
    return code;
}

/* The device is lost, but this submission may not have finished. If the driver does not report its end when queried,
 * the device may still use the caller's memory, so nothing is freed from now on. */
static void abandon(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream)
{
    uint64_t patience = atomic_load(&device->stuck) ? 0 : GPUHAL_VULKAN_PATIENCE_NS;
    VkResult code = wait_fence(device, stream, patience);
    if (code != VK_SUCCESS && code != VK_ERROR_DEVICE_LOST) {
        stream->broken = true;
        atomic_store(&device->stuck, true);
    }
}

/* Waits without a timeout, because Vulkan guarantees that the wait ends if the device is lost, and a timeout would add
 * a timer to every short copy. If the wait fails with another error, the state of the work is unknown. The device then
 * counts as lost, because the end of its accesses to the caller's memory cannot be detected. */
static gpuhal_status await(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream)
{
    VkResult code = wait_fence(device, stream, UINT64_MAX);
    if (code == VK_SUCCESS) {
        return GPUHAL_OK;
    }
    gpuhal_status status = gpuhal_vulkan_result(device, "vkWaitForFences", code);
    if (status != GPUHAL_ERROR_DEVICE_LOST) {
        atomic_store(&device->lost, true);
        abandon(device, stream);
    }
    return status;
}

/* Uses the first stream's fence, which is unused because the device is being closed. If the driver rejects the
 * submission, there is nothing to wait for. */
static bool drain_wrapper(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper)
{
    gpuhal_vulkan_stream *stream = &device->streams[0];
    const VkSubmitInfo nothing = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    if (device->api.vkResetFences(device->handle, 1, &stream->fence) != VK_SUCCESS ||
        gpuhal_vulkan_submit(device, wrapper, &nothing, stream->fence) != VK_SUCCESS) {
        return true;
    }
    VkResult code = wait_fence(device, stream, GPUHAL_VULKAN_PATIENCE_NS);
    stream->broken = code != VK_SUCCESS && code != VK_ERROR_DEVICE_LOST;
    return !stream->broken;
}

bool gpuhal_vulkan_drain(gpuhal_plugin_device *device)
{
    bool drained = !atomic_load(&device->stuck);
    for (uint32_t i = 0; i < device->wrapper_count && drained; i++) {
        drained = drain_wrapper(device, &device->wrappers[i]);
    }
    for (gpuhal_vulkan_wrapper *wrapper = device->extra_wrappers; wrapper && drained; wrapper = wrapper->next) {
        drained = drain_wrapper(device, wrapper);
    }
    return drained;
}

/* Resets the fence before the submission rather than after the wait, because an earlier use may have ended without a
 * wait. If a submission fails without losing the device, nothing runs and the stream is reusable. */
static gpuhal_status submit_and_await(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream)
{
    VkResult code = device->api.vkResetFences(device->handle, 1, &stream->fence);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkResetFences", code);
    }
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &stream->commands,
    };
    code = gpuhal_vulkan_submit(device, &device->wrappers[stream->wrapper], &submit, stream->fence);
    if (code == VK_SUCCESS) {
        return await(device, stream);
    }
    if (code == VK_NOT_READY) { /* nothing was submitted: the native access of this thread owns the VkQueue */
        return gpuhal_vulkan_wrapper_busy(device);
    }
    gpuhal_status status = gpuhal_vulkan_result(device, "vkQueueSubmit", code);
    if (status == GPUHAL_ERROR_DEVICE_LOST) {
        abandon(device, stream); /* it may still run */
    }
    return status;
}

/* Always gives the stream back, as idle or, if its work has not finished, as broken. */
gpuhal_status gpuhal_vulkan_finish(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream)
{
    gpuhal_status status = gpuhal_vulkan_close_commands(device, stream->commands);
    if (status == GPUHAL_OK) {
        status = submit_and_await(device, stream);
    }
    give(device, stream);
    return status;
}

/* Queues that adopt the same VkQueue must use the same mutex, so each VkQueue has one wrapper until the device is
 * closed. Vulkan cannot report whether a handle is a queue of the device, so only a wrong family is detected. */
static gpuhal_vulkan_wrapper *extra_wrapper(gpuhal_plugin_device *device, VkQueue queue, uint32_t family,
                                            uint32_t index)
{
    gpuhal_vulkan_wrapper *wrapper = device->extra_wrappers;
    while (wrapper && wrapper->queue != queue) {
        wrapper = wrapper->next;
    }
    if (!wrapper && (wrapper = calloc(1, sizeof *wrapper))) {
        wrapper->queue = queue;
        wrapper->family = family;
        wrapper->index = index;
        gpuhal_vulkan_wrapper_init(wrapper);
        wrapper->next = device->extra_wrappers;
        device->extra_wrappers = wrapper;
    }
    return wrapper;
}

gpuhal_vulkan_wrapper *gpuhal_vulkan_wrapper_of(gpuhal_plugin_device *device, const gpuhal_native *native,
                                                gpuhal_status *out_status)
{
    const VkQueue queue = (VkQueue)(uintptr_t)native->values[0];
    bool known_family = false;
    for (uint32_t i = 0; i < device->wrapper_count && native->type == GPUHAL_NATIVE_VULKAN_QUEUE; i++) {
        if (device->wrappers[i].queue == queue) {
            return &device->wrappers[i];
        }
    }
    for (uint32_t i = 0; i < device->family_count; i++) {
        known_family = known_family || device->families[i] == native->values[1];
    }
    if (native->type != GPUHAL_NATIVE_VULKAN_QUEUE || !queue || !device->adopted || !known_family) {
        *out_status = device->host->report(
            device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
            "not a VkQueue of the opened device, nor one of its queue families on an adopted VkDevice");
        return NULL;
    }
    pthread_mutex_lock(&device->growing);
    gpuhal_vulkan_wrapper *wrapper =
        extra_wrapper(device, queue, (uint32_t)native->values[1], (uint32_t)native->values[2]);
    pthread_mutex_unlock(&device->growing);
    if (!wrapper) {
        *out_status = device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    return wrapper;
}
