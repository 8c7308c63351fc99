/* fakes/vulkan/commands.c: command pools, and recording. Errors of the call itself are checked here. Errors that
 * depend on the time of execution are checked in execute.c. */
#include "fake.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic unsigned recorded;

unsigned fake_recorded(void)
{
    return atomic_load(&recorded);
}

static void forget_commands(fake_command_buffer *commands)
{
    atomic_fetch_sub(&recorded, commands->count);
    commands->count = 0;
    fake_forget_launches(commands);
    commands->bound = (fake_launch){0};
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateCommandPool(VkDevice handle, const VkCommandPoolCreateInfo *info,
                                                        const VkAllocationCallbacks *allocator, VkCommandPool *out_pool)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateCommandPool);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateCommandPool");
    if (result || !device) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    bool has_family = false;
    for (unsigned q = 0; q < device->queue_count; q++) {
        has_family = has_family || fake_queue_family(device->queues[q]) == info->queueFamilyIndex;
    }
    if (!has_family) {
        fake_violation("vkCreateCommandPool: the device has no queue of family %u", info->queueFamilyIndex);
    }
    fake_command_pool *pool = fake_make(device, A_COMMAND_POOL, sizeof *pool);
    if (!pool) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    pool->family = info->queueFamilyIndex;
    pool->flags = info->flags;
    *out_pool = (VkCommandPool)pool;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyCommandPool(VkDevice handle, VkCommandPool object,
                                                     const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyCommandPool);
    fake_command_pool *pool = fake_destroy(object, A_COMMAND_POOL, "vkDestroyCommandPool");
    for (fake_command_buffer *one = pool ? pool->first : NULL; one; one = one->next_in_pool) {
        if (fake_destroy(one, A_COMMAND_BUFFER, "vkDestroyCommandPool")) {
            forget_commands(one);
            free(one->commands);
            one->commands = NULL;
        }
    }
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkAllocateCommandBuffers(VkDevice handle, const VkCommandBufferAllocateInfo *info,
                                                             VkCommandBuffer *out_commands)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkAllocateCommandBuffers);
    fake_command_pool *pool = fake_find(info->commandPool, A_COMMAND_POOL, "vkAllocateCommandBuffers");
    if (result || !pool) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    for (uint32_t i = 0; i < info->commandBufferCount; i++) {
        fake_command_buffer *one = fake_make(pool->object.device, A_COMMAND_BUFFER, sizeof *one);
        if (!one) {
            return VK_ERROR_OUT_OF_HOST_MEMORY;
        }
        one->pool = pool;
        one->next_in_pool = pool->first;
        pool->first = one;
        out_commands[i] = (VkCommandBuffer)one;
    }
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkBeginCommandBuffer(VkCommandBuffer object, const VkCommandBufferBeginInfo *info)
{
    VkResult result = fake_enter(FN_vkBeginCommandBuffer);
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkBeginCommandBuffer");
    if (result || !commands) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    pthread_mutex_lock(&fake_lock);
    const bool resets = commands->pool->flags & VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    if (commands->object.in_use || commands->state == RECORDING || (commands->state != INITIAL && !resets)) {
        fake_violation(
            "vkBeginCommandBuffer: the command buffer is pending, is recording, or its pool allows no reset");
        result = VK_ERROR_UNKNOWN;
    } else {
        commands->state = RECORDING;
        commands->usage = info->flags;
        forget_commands(commands);
    }
    pthread_mutex_unlock(&fake_lock);
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkResetCommandBuffer(VkCommandBuffer object, VkCommandBufferResetFlags flags)
{
    (void)flags;
    VkResult result = fake_enter(FN_vkResetCommandBuffer);
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkResetCommandBuffer");
    if (result || !commands) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    pthread_mutex_lock(&fake_lock);
    if (commands->object.in_use || !(commands->pool->flags & VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT)) {
        fake_violation("vkResetCommandBuffer: the command buffer is pending, or its pool allows no reset");
        result = VK_ERROR_UNKNOWN;
    } else {
        commands->state = INITIAL;
        forget_commands(commands);
    }
    pthread_mutex_unlock(&fake_lock);
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkEndCommandBuffer(VkCommandBuffer object)
{
    VkResult result = fake_enter(FN_vkEndCommandBuffer);
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkEndCommandBuffer");
    if (!commands) {
        return VK_ERROR_UNKNOWN;
    }
    pthread_mutex_lock(&fake_lock);
    if (commands->state != RECORDING) {
        fake_violation("vkEndCommandBuffer: the command buffer is not recording");
    }
    commands->state = result ? INVALID : EXECUTABLE;
    pthread_mutex_unlock(&fake_lock);
    return result;
}

fake_command *fake_record(VkCommandBuffer object, const char *call)
{
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, call);
    if (!commands || commands->state != RECORDING) {
        fake_violation("%s: the command buffer is not recording", call);
        return NULL;
    }
    if (commands->count == commands->room) {
        uint32_t room = commands->room ? 2 * commands->room : 16;
        fake_command *more = realloc(commands->commands, room * sizeof *more);
        if (!more) {
            return NULL;
        }
        commands->commands = more;
        commands->room = room;
    }
    fake_command *command = &commands->commands[commands->count++];
    atomic_fetch_add(&recorded, 1);
    *command = (fake_command){0};
    return command;
}

static bool is_inside(const fake_buffer *buffer, VkDeviceSize offset, VkDeviceSize bytes)
{
    return offset < buffer->bytes && bytes <= buffer->bytes - offset;
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdCopyBuffer(VkCommandBuffer object, VkBuffer from_object, VkBuffer to_object,
                                                uint32_t count, const VkBufferCopy *regions)
{
    fake_count(FN_vkCmdCopyBuffer);
    fake_buffer *from = fake_find(from_object, A_BUFFER, "vkCmdCopyBuffer"),
                *to = fake_find(to_object, A_BUFFER, "vkCmdCopyBuffer");
    if (!from || !to) {
        return;
    }
    if (!(from->usage & VK_BUFFER_USAGE_TRANSFER_SRC_BIT) || !(to->usage & VK_BUFFER_USAGE_TRANSFER_DST_BIT)) {
        fake_violation("vkCmdCopyBuffer: a buffer was not made for copies");
    }
    for (uint32_t r = 0; r < count; r++) {
        const VkBufferCopy *region = &regions[r];
        const VkDeviceSize apart = region->srcOffset > region->dstOffset ? region->srcOffset - region->dstOffset
                                                                         : region->dstOffset - region->srcOffset;
        if (region->size == 0 || !is_inside(from, region->srcOffset, region->size) ||
            !is_inside(to, region->dstOffset, region->size) ||
            (from->memory == to->memory && from->memory_offset == to->memory_offset && apart < region->size)) {
            fake_violation("vkCmdCopyBuffer: %llu bytes from %llu of %llu to %llu of %llu are outside, or overlap",
                           (unsigned long long)region->size, (unsigned long long)region->srcOffset,
                           (unsigned long long)from->bytes, (unsigned long long)region->dstOffset,
                           (unsigned long long)to->bytes);
            continue;
        }
        fake_command *command = fake_record(object, "vkCmdCopyBuffer");
        if (command) {
            *command = (fake_command){.what = COPY, .from = from, .to = to, .from_offset = region->srcOffset,
                                      .to_offset = region->dstOffset, .bytes = region->size};
        }
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdFillBuffer(VkCommandBuffer object, VkBuffer to_object, VkDeviceSize offset,
                                                VkDeviceSize bytes, uint32_t data)
{
    fake_count(FN_vkCmdFillBuffer);
    fake_buffer *to = fake_find(to_object, A_BUFFER, "vkCmdFillBuffer");
    if (!to) {
        return;
    }
    if (bytes == VK_WHOLE_SIZE) {
        bytes = (to->bytes - offset) / 4 * 4;
    }
    if (offset % 4 || bytes % 4 || bytes == 0 || !is_inside(to, offset, bytes) ||
        !(to->usage & VK_BUFFER_USAGE_TRANSFER_DST_BIT)) {
        fake_violation("vkCmdFillBuffer: %llu bytes from %llu of %llu are outside, or no whole words",
                       (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)to->bytes);
        return;
    }
    fake_command *command = fake_record(object, "vkCmdFillBuffer");
    if (command) {
        *command = (fake_command){.what = FILL, .to = to, .to_offset = offset, .bytes = bytes, .data = data};
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdPipelineBarrier(VkCommandBuffer object, VkPipelineStageFlags from,
                                                     VkPipelineStageFlags to, VkDependencyFlags flags,
                                                     uint32_t memory_count, const VkMemoryBarrier *memory,
                                                     uint32_t buffer_count, const VkBufferMemoryBarrier *buffers,
                                                     uint32_t image_count, const VkImageMemoryBarrier *images)
{
    (void)flags, (void)memory_count, (void)memory, (void)image_count, (void)images;
    fake_count(FN_vkCmdPipelineBarrier);
    if (!from || !to) {
        fake_violation("vkCmdPipelineBarrier: no stages");
    }
    const VkPipelineStageFlags launches = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
    const fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkCmdPipelineBarrier");
    if (commands && ((from | to) & launches) &&
        !(fake_get_script()->families[commands->pool->family].queueFlags & VK_QUEUE_COMPUTE_BIT)) {
        fake_violation("vkCmdPipelineBarrier: a stage of launches in a family without");
    }
    fake_command *command = fake_record(object, "vkCmdPipelineBarrier");
    if (command) {
        command->what = BARRIER;
        command->earlier = from;
        command->later = to;
    }
    for (uint32_t b = 0; b < buffer_count && command; b++) {
        fake_buffer *buffer = fake_find(buffers[b].buffer, A_BUFFER, "vkCmdPipelineBarrier");
        if (buffer && buffers[b].srcQueueFamilyIndex != buffers[b].dstQueueFamilyIndex) {
            command = fake_record(object, "vkCmdPipelineBarrier");
            *command = (fake_command){.what = TRANSFER_OWNER,
                                      .to = buffer,
                                      .from_family = (int)buffers[b].srcQueueFamilyIndex,
                                      .to_family = (int)buffers[b].dstQueueFamilyIndex};
        }
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdWriteTimestamp(VkCommandBuffer object, VkPipelineStageFlagBits stage,
                                                    VkQueryPool pool_object, uint32_t query)
{
    fake_count(FN_vkCmdWriteTimestamp);
    fake_query_pool *pool = fake_find(pool_object, A_QUERY_POOL, "vkCmdWriteTimestamp");
    const fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkCmdWriteTimestamp");
    if (!pool || !commands) {
        return;
    }
    if (!stage || query >= pool->count || fake_get_script()->families[commands->pool->family].timestampValidBits == 0) {
        fake_violation("vkCmdWriteTimestamp: query %u is not there, or the family has no timestamps", query);
        return;
    }
    fake_command *command = fake_record(object, "vkCmdWriteTimestamp");
    if (command) {
        *command = (fake_command){.what = TIMESTAMP, .pool = pool, .query = query};
    }
}
