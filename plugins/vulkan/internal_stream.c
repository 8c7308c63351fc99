/* vulkan/lane.c: the lanes that blocking calls use.
 *
 * A lane belongs to one caller from begin to finish. Idle ones are bits in a word, so taking and giving back costs no lock while
 * there is one; callers that find none sleep. Lanes wait with fences, which every VkDevice has, so blocking copies
 * work on an adopted device without timeline semaphores too.
 *
 * The answer VK_ERROR_DEVICE_LOST to a wait means, by the specification, that the work counts as ended: its objects may be reset
 * and destroyed. A lane whose work was not seen to end in either way is broken: it is never used again, and never freed. That
 * happens on a device that counts as lost alone.
 */
#include "device.h"

#include <stdlib.h>
#include <time.h>

bool gpuhal_vulkan_wait_again(VkResult code, uint32_t tries)
{
    if ((code != VK_ERROR_OUT_OF_HOST_MEMORY && code != VK_ERROR_OUT_OF_DEVICE_MEMORY) || tries >= GPUHAL_VULKAN_WAIT_TRIES) {
        return false;
    }
    nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
    return true;
}

static void free_lane(gpuhal_plugin_device *device, gpuhal_vulkan_lane *lane)
{
    device->api.vkDestroyFence(device->handle, lane->fence, NULL);
    device->api.vkDestroyCommandPool(device->handle, lane->pool, NULL);
    *lane = (gpuhal_vulkan_lane){0};
}

/* A pool of its own, because recording locks nothing then. */
static gpuhal_status make_lane(gpuhal_plugin_device *device, gpuhal_vulkan_lane *lane)
{
    const gpuhal_vulkan_device_functions *api = &device->api;
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT | VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = device->ports[device->copy_port].family,
    };
    *lane = (gpuhal_vulkan_lane){0};
    VkResult code = api->vkCreateCommandPool(device->handle, &pool, NULL, &lane->pool);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkCreateCommandPool", code);
    }
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = lane->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    const char *call = "vkAllocateCommandBuffers";
    code = api->vkAllocateCommandBuffers(device->handle, &allocate, &lane->commands);
    if (code == VK_SUCCESS) {
        call = "vkCreateFence";
        code = api->vkCreateFence(device->handle, &fence, NULL, &lane->fence);
    }
    if (code != VK_SUCCESS) {
        api->vkDestroyCommandPool(device->handle, lane->pool, NULL);
        *lane = (gpuhal_vulkan_lane){0};
        return gpuhal_vulkan_result(device, call, code);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_vulkan_lanes_start(gpuhal_plugin_device *device)
{
    gpuhal_status status = make_lane(device, &device->lanes[0]);
    if (status != GPUHAL_OK) {
        return status;
    }
    pthread_mutex_init(&device->growing, NULL);
    pthread_cond_init(&device->lane_freed, NULL);
    device->lane_count = 1;
    atomic_store(&device->idle_lanes, 1u);
    return GPUHAL_OK;
}

void gpuhal_vulkan_lanes_stop(gpuhal_plugin_device *device)
{
    for (uint32_t i = 0; i < device->lane_count; i++) {
        if (!device->lanes[i].broken) {
            free_lane(device, &device->lanes[i]);
        }
    }
    device->lane_count = 0;
    while (device->extra_ports) {
        gpuhal_vulkan_port *port = device->extra_ports;
        device->extra_ports = port->next;
        gpuhal_vulkan_port_finish(port);
        free(port);
    }
    pthread_cond_destroy(&device->lane_freed);
    pthread_mutex_destroy(&device->growing);
}

/* Acquire and release: whoever takes a lane sees what the last user and its maker have put there. */
static gpuhal_vulkan_lane *take_idle(gpuhal_plugin_device *device)
{
    uint32_t idle = atomic_load(&device->idle_lanes);
    while (idle != 0) {
        uint32_t rest = idle & (idle - 1);
        if (atomic_compare_exchange_weak(&device->idle_lanes, &idle, rest)) {
            return &device->lanes[__builtin_ctz(idle & ~rest)];
        }
    }
    return NULL;
}

/* Sleepers count themselves before they look at the idle bits, and givers set a bit before they look at the count: one of the two
 * sees the other, as both orders are sequentially consistent. */
static void wake(gpuhal_plugin_device *device)
{
    if (atomic_load(&device->lane_waiters) > 0) {
        pthread_mutex_lock(&device->growing);
        pthread_cond_broadcast(&device->lane_freed);
        pthread_mutex_unlock(&device->growing);
    }
}

static void give(gpuhal_plugin_device *device, const gpuhal_vulkan_lane *lane)
{
    if (!lane->broken) {
        atomic_fetch_or(&device->idle_lanes, 1u << (lane - device->lanes));
    }
    wake(device);
}

/* No lane is idle: makes another one, or sleeps until one is. There is always one to wait for, since lanes break on a lost device
 * alone; so one that cannot be made is no error. */
static gpuhal_status grow_or_wait(gpuhal_plugin_device *device, gpuhal_vulkan_lane **out_lane)
{
    gpuhal_status status = GPUHAL_OK;
    gpuhal_vulkan_lane *lane = NULL;
    bool may_grow = true;
    pthread_mutex_lock(&device->growing);
    atomic_fetch_add(&device->lane_waiters, 1);
    while (status == GPUHAL_OK && !lane) {
        lane = take_idle(device);
        if (!lane && may_grow && device->lane_count < GPUHAL_VULKAN_LANES) {
            may_grow = make_lane(device, &device->lanes[device->lane_count]) == GPUHAL_OK;
            lane = may_grow ? &device->lanes[device->lane_count++] : NULL;
        }
        if (!lane && (status = gpuhal_vulkan_alive(device)) == GPUHAL_OK) {
            pthread_cond_wait(&device->lane_freed, &device->growing);
        }
    }
    atomic_fetch_sub(&device->lane_waiters, 1);
    pthread_mutex_unlock(&device->growing);
    *out_lane = lane;
    return status;
}

static void barrier(gpuhal_plugin_device *device, VkCommandBuffer commands, const VkMemoryBarrier *memory,
                    VkPipelineStageFlags before, VkPipelineStageFlags after)
{
    device->api.vkCmdPipelineBarrier(commands, before, after, 0, 1, memory, 0, NULL, 0, NULL);
}

gpuhal_status gpuhal_vulkan_open_commands(gpuhal_plugin_device *device, VkCommandBuffer commands)
{
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkResult code = device->api.vkBeginCommandBuffer(commands, &begin);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkBeginCommandBuffer", code);
    }
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    };
    barrier(device, commands, &memory, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT);
    return GPUHAL_OK;
}

/* The first scope is all commands, so that it covers what an engine has submitted to the same VkQueue before. */
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

void gpuhal_vulkan_order_commands(gpuhal_plugin_device *device, VkCommandBuffer commands)
{
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    };
    barrier(device, commands, &memory, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT);
}

gpuhal_status gpuhal_vulkan_begin(gpuhal_plugin_device *device, gpuhal_vulkan_lane **out_lane)
{
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_lane *lane = take_idle(device);
    if (!lane && (status = grow_or_wait(device, &lane)) != GPUHAL_OK) {
        return status;
    }
    status = gpuhal_vulkan_open_commands(device, lane->commands);
    if (status != GPUHAL_OK) {
        give(device, lane);
        return status;
    }
    *out_lane = lane;
    return GPUHAL_OK;
}

static VkResult wait_fence(gpuhal_plugin_device *device, const gpuhal_vulkan_lane *lane, uint64_t timeout_ns)
{
    VkResult code;
    uint32_t tries = 0;
    do {
        code = device->api.vkWaitForFences(device->handle, 1, &lane->fence, VK_TRUE, timeout_ns);
    } while (gpuhal_vulkan_wait_again(code, tries++));
    return code;
}

/* The device is lost, and this submission not known to have ended. Drivers say that it has as soon as they are asked; one that
 * does not may still be at work in the caller's memory, so nothing is freed any more. */
static void abandon(gpuhal_plugin_device *device, gpuhal_vulkan_lane *lane)
{
    uint64_t patience = atomic_load(&device->stuck) ? 0 : GPUHAL_VULKAN_PATIENCE_NS;
    VkResult code = wait_fence(device, lane, patience);
    if (code != VK_SUCCESS && code != VK_ERROR_DEVICE_LOST) {
        lane->broken = true;
        atomic_store(&device->stuck, true);
    }
}

/* Without a time limit, which Vulkan promises to end when the device is lost; with one, a short copy takes longer by a timer. A
 * wait that fails otherwise than by a lost device says nothing about the work: the device counts as lost from then on, since
 * nobody could tell any more when the caller's memory is free. */
static gpuhal_status await(gpuhal_plugin_device *device, gpuhal_vulkan_lane *lane)
{
    VkResult code = wait_fence(device, lane, UINT64_MAX);
    if (code == VK_SUCCESS) {
        return GPUHAL_OK;
    }
    gpuhal_status status = gpuhal_vulkan_result(device, "vkWaitForFences", code);
    if (status != GPUHAL_ERROR_DEVICE_LOST) {
        atomic_store(&device->lost, true);
        abandon(device, lane);
    }
    return status;
}

/* With the fence of the first lane, which nobody uses any more: the device closes. A submission that the driver refuses leaves nothing
 * to wait for. */
static bool drain_port(gpuhal_plugin_device *device, gpuhal_vulkan_port *port)
{
    gpuhal_vulkan_lane *lane = &device->lanes[0];
    const VkSubmitInfo nothing = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    if (device->api.vkResetFences(device->handle, 1, &lane->fence) != VK_SUCCESS ||
        gpuhal_vulkan_submit(device, port, &nothing, lane->fence) != VK_SUCCESS) {
        return true;
    }
    VkResult code = wait_fence(device, lane, GPUHAL_VULKAN_PATIENCE_NS);
    lane->broken = code != VK_SUCCESS && code != VK_ERROR_DEVICE_LOST;
    return !lane->broken;
}

bool gpuhal_vulkan_drain(gpuhal_plugin_device *device)
{
    bool drained = !atomic_load(&device->stuck);
    for (uint32_t i = 0; i < device->port_count && drained; i++) {
        drained = drain_port(device, &device->ports[i]);
    }
    for (gpuhal_vulkan_port *port = device->extra_ports; port && drained; port = port->next) {
        drained = drain_port(device, port);
    }
    return drained;
}

static gpuhal_status submit_and_await(gpuhal_plugin_device *device, gpuhal_vulkan_lane *lane)
{
    VkResult code = device->api.vkResetFences(device->handle, 1, &lane->fence);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkResetFences", code);
    }
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &lane->commands,
    };
    code = gpuhal_vulkan_submit(device, &device->ports[device->copy_port], &submit, lane->fence);
    if (code == VK_SUCCESS) {
        return await(device, lane);
    }
    if (code == VK_NOT_READY) {
        return gpuhal_vulkan_port_busy(device);
    }
    gpuhal_status status = gpuhal_vulkan_result(device, "vkQueueSubmit", code);
    if (status == GPUHAL_ERROR_DEVICE_LOST) {
        abandon(device, lane); /* it may run all the same */
    }
    return status;
}

gpuhal_status gpuhal_vulkan_finish(gpuhal_plugin_device *device, gpuhal_vulkan_lane *lane)
{
    gpuhal_status status = gpuhal_vulkan_close_commands(device, lane->commands);
    if (status == GPUHAL_OK) {
        status = submit_and_await(device, lane);
    }
    give(device, lane);
    return status;
}

/* Two queues that adopt the same VkQueue have to use the same mutex, so each VkQueue has one port, which lives as long as the
 * opening. Vulkan cannot be asked whether a handle is a queue of the device; a wrong family is all that can be seen. */
static gpuhal_vulkan_port *extra_port(gpuhal_plugin_device *device, VkQueue queue, uint32_t family, uint32_t index)
{
    gpuhal_vulkan_port *port = device->extra_ports;
    while (port && port->queue != queue) {
        port = port->next;
    }
    if (!port && (port = calloc(1, sizeof *port))) {
        port->queue = queue;
        port->family = family;
        port->index = index;
        gpuhal_vulkan_port_init(port);
        port->next = device->extra_ports;
        device->extra_ports = port;
    }
    return port;
}

gpuhal_vulkan_port *gpuhal_vulkan_port_of(gpuhal_plugin_device *device, const gpuhal_native *native, gpuhal_status *out_status)
{
    const VkQueue queue = (VkQueue)(uintptr_t)native->values[0];
    bool known_family = false;
    for (uint32_t i = 0; i < device->port_count && native->type == GPUHAL_NATIVE_VULKAN_QUEUE; i++) {
        if (device->ports[i].queue == queue) {
            return &device->ports[i];
        }
    }
    for (uint32_t i = 0; i < device->family_count; i++) {
        known_family = known_family || device->families[i] == native->values[1];
    }
    if (native->type != GPUHAL_NATIVE_VULKAN_QUEUE || !queue || !device->adopted || !known_family) {
        *out_status = device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                           "not a VkQueue of this opening, nor one of its queue families on an adopted VkDevice");
        return NULL;
    }
    pthread_mutex_lock(&device->growing);
    gpuhal_vulkan_port *port = extra_port(device, queue, (uint32_t)native->values[1], (uint32_t)native->values[2]);
    pthread_mutex_unlock(&device->growing);
    if (!port) {
        *out_status = device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    return port;
}
