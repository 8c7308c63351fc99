/* vulkan/launch.c: records launches. A launch on a queue is recorded in the queue's open batch, with the barriers that
 * its arguments require. A launch without a queue is recorded in an internal stream.
 */
#include "program.h"
#include "queue.h"

#include <string.h>

typedef struct bindings {
    VkDescriptorBufferInfo buffers[GPUHAL_VULKAN_BINDINGS];
    VkDescriptorBufferInfo values;
} bindings;

/* Reads one buffer for each binding of the code. The code does not use any further buffers of the description. */
static void read_buffers(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch, bindings *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < launch->argument_count && count < kernel->buffer_count; i++) {
        const gpuhal_plugin_argument *argument = &launch->arguments[i];
        if (argument->kind == GPUHAL_PARAMETER_BUFFER) {
            to->buffers[count++] = (VkDescriptorBufferInfo){.buffer = gpuhal_vulkan_buffer_of(argument->memory)->buffer,
                                                            .offset = argument->offset,
                                                            .range = argument->bytes};
        }
    }
}

static void read_values(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch, unsigned char *to)
{
    memset(to, 0, kernel->value_bytes);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const gpuhal_plugin_argument *argument = &launch->arguments[i];
        if (argument->kind == GPUHAL_PARAMETER_VALUE) {
            memcpy(to + kernel->offsets[i], argument->value, (size_t)argument->bytes);
        }
    }
}

static void write_descriptors(const gpuhal_plugin_kernel *kernel, VkCommandBuffer commands, VkDescriptorSet set,
                              const bindings *from)
{
    const gpuhal_vulkan_device_functions *api = &kernel->device->api;
    VkWriteDescriptorSet writes[2];
    uint32_t count = 0;
    if (kernel->buffer_count > 0) {
        writes[count++] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                                 .dstSet = set,
                                                 .descriptorCount = kernel->buffer_count,
                                                 .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                 .pBufferInfo = from->buffers};
    }
    if (kernel->uniform) {
        writes[count++] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                                 .dstSet = set,
                                                 .dstBinding = kernel->buffer_count,
                                                 .descriptorCount = 1,
                                                 .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                                                 .pBufferInfo = &from->values};
    }
    if (kernel->pushes) {
        api->vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, count, writes);
        return;
    }
    api->vkUpdateDescriptorSets(kernel->device->handle, count, writes, 0, NULL);
    api->vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, 1, &set, 0, NULL);
}

/* Records everything except the pipeline. On failure nothing is recorded. */
static gpuhal_status record(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch,
                            VkCommandBuffer commands, gpuhal_vulkan_arena *arena, bindings *from)
{
    gpuhal_plugin_device *device = kernel->device;
    VkDescriptorSet set = VK_NULL_HANDLE;
    gpuhal_vulkan_values values = {0};
    if (kernel->uniform || (kernel->set_layout && !kernel->pushes)) {
        gpuhal_status status = gpuhal_vulkan_arena_take(device, arena, kernel, &set, &values);
        if (status != GPUHAL_OK) {
            return status;
        }
    }
    if (kernel->uniform) {
        read_values(kernel, launch, values.host);
        from->values =
            (VkDescriptorBufferInfo){.buffer = values.buffer, .offset = values.offset, .range = kernel->value_bytes};
    } else if (kernel->value_bytes > 0) {
        unsigned char constants[GPUHAL_VULKAN_PUSH_BYTES];
        read_values(kernel, launch, constants);
        device->api.vkCmdPushConstants(commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->value_bytes,
                                       constants);
    }
    if (kernel->set_layout) {
        write_descriptors(kernel, commands, set, from);
    }
    device->api.vkCmdDispatch(commands, launch->groups[0], launch->groups[1], launch->groups[2]);
    return GPUHAL_OK;
}

/* A launch may access any byte of memory that it reaches by address (launch->uses). A launch with more spans than the
 * hazard lists can store is ordered against all commands. */
static uint32_t list_touches(const gpuhal_plugin_launch *launch, gpuhal_vulkan_touch out_touches[GPUHAL_VULKAN_HAZARDS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const gpuhal_plugin_argument *argument = &launch->arguments[i];
        if (argument->kind == GPUHAL_PARAMETER_BUFFER && count++ < GPUHAL_VULKAN_HAZARDS) {
            out_touches[count - 1] =
                (gpuhal_vulkan_touch){.span = {gpuhal_vulkan_buffer_of(argument->memory)->buffer, argument->offset,
                                               argument->offset + argument->bytes},
                                      .writes = (argument->access & GPUHAL_ACCESS_WRITE) != 0};
        }
    }
    for (uint32_t i = 0; i < launch->uses_count; i++) {
        if (count++ < GPUHAL_VULKAN_HAZARDS) {
            out_touches[count - 1] = (gpuhal_vulkan_touch){
                .span = {gpuhal_vulkan_buffer_of(launch->uses[i])->buffer, 0, launch->uses[i]->bytes}, .writes = true};
        }
    }
    return count;
}

static gpuhal_status launch_queued(gpuhal_plugin_queue *queue, const gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch, bindings *from)
{
    gpuhal_vulkan_touch touches[GPUHAL_VULKAN_HAZARDS];
    VkCommandBuffer commands = VK_NULL_HANDLE;
    const uint32_t count = list_touches(launch, touches);
    gpuhal_status status = gpuhal_vulkan_queue_record(queue, GPUHAL_VULKAN_DISPATCH, touches, count, &commands);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_batch *batch = queue->open;
    if (batch->pipeline != kernel->pipeline) {
        queue->device->api.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
        batch->pipeline = kernel->pipeline;
    }
    return record(kernel, launch, commands, &batch->arena, from);
}

/* The stream records nothing else, so its opening and closing barriers suffice. */
static gpuhal_status launch_and_wait(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch,
                                     bindings *from)
{
    gpuhal_plugin_device *device = kernel->device;
    gpuhal_vulkan_stream *stream = NULL;
    gpuhal_status status = gpuhal_vulkan_begin(device, true, &stream);
    if (status != GPUHAL_OK) {
        return status;
    }
    device->api.vkCmdBindPipeline(stream->commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
    status = record(kernel, launch, stream->commands, &stream->arena, from);
    const gpuhal_status ended = gpuhal_vulkan_finish(device, stream);
    return status == GPUHAL_OK ? ended : status;
}

/* An adopted queue may belong to a copy-only family. The core then launches without a queue. */
gpuhal_status gpuhal_vulkan_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    bindings from; /* only the used entries are initialized */
    const gpuhal_status status = gpuhal_vulkan_alive(kernel->device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (queue && !gpuhal_vulkan_computes(&kernel->device->hardware, queue->wrapper->family)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    read_buffers(kernel, launch, &from);
    return queue ? launch_queued(queue, kernel, launch, &from) : launch_and_wait(kernel, launch, &from);
}
