/* vulkan/launch.c: records launches. A launch on a queue is recorded in the queue's open batch, with the barriers that
 * its arguments require. A launch without a queue is recorded in an internal stream, and recording.c records the
 * launches of recordings.
 */
#include "program.h"

#include <string.h>

/* The buffers, then the uniform blocks. Only the entries that the code uses are initialized. */
typedef struct bindings {
    VkDescriptorBufferInfo infos[GPUHAL_VULKAN_BUFFERS + GPUHAL_VULKAN_BLOCKS];
} bindings;

/* The code does not use any further buffers of the description. */
static void read_buffers(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch, bindings *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < launch->argument_count && count < kernel->buffer_count; i++) {
        const gpuhal_plugin_argument *argument = &launch->arguments[i];
        if (argument->kind == GPUHAL_PARAMETER_BUFFER) {
            to->infos[count++] = (VkDescriptorBufferInfo){.buffer = gpuhal_vulkan_buffer_of(argument->memory)->buffer,
                                                          .offset = argument->offset,
                                                          .range = argument->bytes};
        }
    }
}

static void read_values(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch, unsigned char *uniform,
                        unsigned char *constants)
{
    if (kernel->uniform_bytes > 0) {
        memset(uniform, 0, kernel->uniform_bytes);
    }
    memset(constants, 0, kernel->blocks[kernel->block_count].bytes);
    for (uint32_t i = 0; i < launch->argument_count; i++) {
        const gpuhal_plugin_argument *argument = &launch->arguments[i];
        if (argument->kind == GPUHAL_PARAMETER_VALUE) {
            const gpuhal_vulkan_place *place = &kernel->places[i];
            unsigned char *block =
                place->block < kernel->block_count ? uniform + kernel->blocks[place->block].offset : constants;
            memcpy(block + place->offset, argument->value, (size_t)argument->bytes);
        }
    }
}

static void write_descriptors(const gpuhal_plugin_kernel *kernel, VkCommandBuffer commands, const VkDescriptorSet *sets,
                              const bindings *from)
{
    const gpuhal_vulkan_device_functions *api = &kernel->device->api;
    VkWriteDescriptorSet writes[GPUHAL_VULKAN_BUFFERS + GPUHAL_VULKAN_BLOCKS];
    for (uint32_t r = 0; r < kernel->run_count; r++) {
        const gpuhal_vulkan_run *run = &kernel->runs[r];
        const bool uniform = run->type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
        writes[r] =
            (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                   .dstSet = kernel->pushes ? VK_NULL_HANDLE : sets[run->set],
                                   .dstBinding = run->binding,
                                   .descriptorCount = run->count,
                                   .descriptorType = run->type,
                                   .pBufferInfo = &from->infos[run->first + (uniform ? kernel->buffer_count : 0)]};
    }
    if (kernel->pushes) {
        api->vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, kernel->set_count - 1,
                                       kernel->run_count, writes);
        return;
    }
    api->vkUpdateDescriptorSets(kernel->device->handle, kernel->run_count, writes, 0, NULL);
    for (uint32_t set = 0; set < kernel->set_count; set++) {
        if (kernel->used_sets >> set & 1) {
            api->vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, set, 1, &sets[set],
                                         0, NULL);
        }
    }
}

gpuhal_status gpuhal_vulkan_launch_resources(const gpuhal_plugin_kernel *kernel, gpuhal_vulkan_arena *arena,
                                             gpuhal_vulkan_resources *out_resources)
{
    const bool needs = kernel->block_count > 0 || (kernel->used_sets && !kernel->pushes);
    out_resources->values = (gpuhal_vulkan_values){0};
    return needs ? gpuhal_vulkan_arena_take(kernel->device, arena, kernel, out_resources->sets, &out_resources->values)
                 : GPUHAL_OK;
}

/* Not inlined, because most launches have only a number of groups. */
static __attribute__((noinline)) void dispatch_form(const gpuhal_plugin_device *device,
                                                    const gpuhal_plugin_launch *launch, VkCommandBuffer commands)
{
    const uint32_t *groups = launch->groups, *offset = launch->offset;
    if (launch->indirect) {
        /* lavapipe (Mesa 22.3) keeps the base of an earlier vkCmdDispatchBase until the next vkCmdDispatch */
        device->api.vkCmdDispatch(commands, 0, 0, 0);
        device->api.vkCmdDispatchIndirect(commands, gpuhal_vulkan_buffer_of(launch->indirect)->buffer,
                                          launch->indirect_offset);
    } else {
        device->api.vkCmdDispatchBase(commands, offset[0], offset[1], offset[2], groups[0], groups[1], groups[2]);
    }
}

void gpuhal_vulkan_record_launch(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch,
                                 VkCommandBuffer commands, const gpuhal_vulkan_resources *resources)
{
    gpuhal_plugin_device *device = kernel->device;
    const uint32_t constant_bytes = kernel->blocks[kernel->block_count].bytes;
    const gpuhal_vulkan_values *values = &resources->values;
    unsigned char constants[GPUHAL_VULKAN_PUSH_BYTES];
    bindings from;
    read_buffers(kernel, launch, &from);
    read_values(kernel, launch, values->host, constants);
    for (uint32_t b = 0; b < kernel->block_count; b++) {
        from.infos[kernel->buffer_count + b] =
            (VkDescriptorBufferInfo){.buffer = values->buffer,
                                     .offset = values->offset + kernel->blocks[b].offset,
                                     .range = kernel->blocks[b].bytes};
    }
    if (constant_bytes > 0) {
        device->api.vkCmdPushConstants(commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, constant_bytes,
                                       constants);
    }
    if (kernel->used_sets) {
        write_descriptors(kernel, commands, resources->sets, &from);
    }
    if (launch->indirect || launch->offset[0] | launch->offset[1] | launch->offset[2]) {
        dispatch_form(device, launch, commands);
    } else {
        device->api.vkCmdDispatch(commands, launch->groups[0], launch->groups[1], launch->groups[2]);
    }
}

/* A launch may access any byte of memory that it reaches by address (launch->uses). A launch with more spans than the
 * hazard lists can store is ordered against all commands. */
uint32_t gpuhal_vulkan_launch_touches(const gpuhal_plugin_launch *launch,
                                      gpuhal_vulkan_touch out_touches[GPUHAL_VULKAN_HAZARDS])
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
    if (launch->indirect && count++ < GPUHAL_VULKAN_HAZARDS) {
        out_touches[count - 1] =
            (gpuhal_vulkan_touch){.span = gpuhal_vulkan_span_of(launch->indirect, launch->indirect_offset,
                                                                sizeof(VkDispatchIndirectCommand))};
    }
    return count;
}

static gpuhal_status launch_queued(gpuhal_plugin_queue *queue, const gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    gpuhal_vulkan_touch touches[GPUHAL_VULKAN_HAZARDS];
    gpuhal_vulkan_resources resources;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    const uint32_t count = gpuhal_vulkan_launch_touches(launch, touches);
    const gpuhal_vulkan_piece piece = launch->indirect ? GPUHAL_VULKAN_DISPATCH_INDIRECT : GPUHAL_VULKAN_DISPATCH;
    gpuhal_status status = gpuhal_vulkan_queue_record(queue, piece, touches, count, &commands);
    status = status == GPUHAL_OK ? gpuhal_vulkan_launch_resources(kernel, &queue->open->arena, &resources) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_batch *batch = queue->open;
    const VkPipeline pipeline = gpuhal_vulkan_pipeline(kernel, launch->group_size);
    if (batch->pipeline != pipeline) {
        queue->device->api.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
        batch->pipeline = pipeline;
    }
    gpuhal_vulkan_record_launch(kernel, launch, commands, &resources);
    return GPUHAL_OK;
}

/* The stream records nothing else, so its opening and closing barriers suffice, also for an indirect launch. */
static gpuhal_status launch_and_wait(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch)
{
    gpuhal_plugin_device *device = kernel->device;
    gpuhal_vulkan_stream *stream = NULL;
    gpuhal_vulkan_resources resources;
    gpuhal_status status = gpuhal_vulkan_begin(device, true, &stream);
    if (status != GPUHAL_OK) {
        return status;
    }
    status = gpuhal_vulkan_launch_resources(kernel, &stream->arena, &resources);
    if (status == GPUHAL_OK) {
        device->api.vkCmdBindPipeline(stream->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                      gpuhal_vulkan_pipeline(kernel, launch->group_size));
        gpuhal_vulkan_record_launch(kernel, launch, stream->commands, &resources);
    }
    const gpuhal_status ended = gpuhal_vulkan_finish(device, stream);
    return status == GPUHAL_OK ? ended : status;
}

/* An adopted queue may belong to a copy-only family. The core then launches without a queue. */
gpuhal_status gpuhal_vulkan_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch)
{
    const gpuhal_status status = gpuhal_vulkan_alive(kernel->device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (queue && !gpuhal_vulkan_computes(&kernel->device->hardware, queue->wrapper->family)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return queue ? launch_queued(queue, kernel, launch) : launch_and_wait(kernel, launch);
}
