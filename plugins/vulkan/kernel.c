/* vulkan/kernel.c: creates one pipeline for each kernel. The driver compiles the pipeline when the kernel is created,
 * so that launches do not compile. Only lavapipe compiles at the first dispatch. An empty dispatch would trigger this
 * compilation (Mesa 22.3), but would have to wait for all work in the driver's only VkQueue. */
#include "program.h"

#include <stdlib.h>

/* Binding k is the k-th buffer, and the uniform block follows the buffers. Bindings of the same type are consecutive,
 * so that one descriptor write fills all of them. */
static gpuhal_status make_set_layout(gpuhal_plugin_kernel *kernel)
{
    gpuhal_plugin_device *device = kernel->device;
    VkDescriptorSetLayoutBinding bindings[GPUHAL_VULKAN_BINDINGS + 1];
    const uint32_t count = kernel->buffer_count + kernel->uniform;
    for (uint32_t b = 0; b < count; b++) {
        bindings[b] = (VkDescriptorSetLayoutBinding){.binding = b,
                                                     .descriptorType = b < kernel->buffer_count
                                                                           ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                                           : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
                                                     .descriptorCount = 1,
                                                     .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    }
    if (count == 0) {
        return GPUHAL_OK;
    }
    kernel->pushes = (device->enabled & GPUHAL_VULKAN_PUSH_DESCRIPTOR) && count <= device->hardware.push_descriptors;
    const VkDescriptorSetLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .flags = kernel->pushes ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR : 0,
        .bindingCount = count,
        .pBindings = bindings,
    };
    VkResult code = device->api.vkCreateDescriptorSetLayout(device->handle, &info, NULL, &kernel->set_layout);
    kernel->set_layout = code == VK_SUCCESS ? kernel->set_layout : VK_NULL_HANDLE;
    return gpuhal_vulkan_result(device, "vkCreateDescriptorSetLayout", code);
}

static gpuhal_status make_layout(gpuhal_plugin_kernel *kernel)
{
    gpuhal_plugin_device *device = kernel->device;
    const bool constants = kernel->value_bytes > 0 && !kernel->uniform;
    const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = kernel->value_bytes};
    const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = kernel->set_layout ? 1 : 0,
        .pSetLayouts = &kernel->set_layout,
        .pushConstantRangeCount = constants,
        .pPushConstantRanges = &range,
    };
    VkResult code = device->api.vkCreatePipelineLayout(device->handle, &info, NULL, &kernel->layout);
    kernel->layout = code == VK_SUCCESS ? kernel->layout : VK_NULL_HANDLE;
    return gpuhal_vulkan_result(device, "vkCreatePipelineLayout", code);
}

/* Drivers report a failed compilation with various error codes. SPIR-V that a validator would reject may cause any of
 * these errors. */
static gpuhal_status make_pipeline(gpuhal_plugin_kernel *kernel, const gpuhal_vulkan_kernel_plan *plan)
{
    gpuhal_plugin_device *device = kernel->device;
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = plan->required_subgroup};
    const VkSpecializationInfo constants = {.mapEntryCount = plan->entry_count,
                                            .pMapEntries = plan->entries,
                                            .dataSize = plan->entry_count * sizeof *plan->data,
                                            .pData = plan->data};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = plan->required_subgroup ? &subgroup : NULL,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = plan->program->module,
                  .pName = plan->desc->name,
                  .pSpecializationInfo = plan->entry_count ? &constants : NULL},
        .layout = kernel->layout,
    };
    VkResult code =
        device->api.vkCreateComputePipelines(device->handle, plan->program->cache, 1, &info, NULL, &kernel->pipeline);
    if (code == VK_SUCCESS && kernel->pipeline) {
        return GPUHAL_OK;
    }
    kernel->pipeline = VK_NULL_HANDLE;
    const gpuhal_status status = gpuhal_vulkan_status(code);
    if (status == GPUHAL_ERROR_HOST_MEMORY || status == GPUHAL_ERROR_OUT_OF_MEMORY ||
        status == GPUHAL_ERROR_DEVICE_LOST) {
        return gpuhal_vulkan_result(device, "vkCreateComputePipelines", code);
    }
    return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "vkCreateComputePipelines", code,
                                "the driver does not compile this code: it is invalid, or uses a feature that the "
                                "device lacks; spirv-val says more");
}

/* If work never finished, the pipeline may still be in use, so it is leaked like the VkDevice. */
void gpuhal_vulkan_kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    gpuhal_plugin_device *device = kernel->device;
    if (!atomic_load(&device->stuck)) {
        if (kernel->pipeline) {
            device->api.vkDestroyPipeline(device->handle, kernel->pipeline, NULL);
        }
        if (kernel->layout) {
            device->api.vkDestroyPipelineLayout(device->handle, kernel->layout, NULL);
        }
        if (kernel->set_layout) {
            device->api.vkDestroyDescriptorSetLayout(device->handle, kernel->set_layout, NULL);
        }
    }
    free(kernel);
}

static void describe(const gpuhal_plugin_kernel *kernel, const gpuhal_vulkan_kernel_plan *plan,
                     gpuhal_kernel_info *info)
{
    const gpuhal_vulkan_hardware *hardware = &kernel->device->hardware;
    const VkPhysicalDeviceLimits *limits = &hardware->properties.limits;
    info->parameter_count = kernel->parameter_count;
    info->parameters = kernel->parameters;
    info->group_size_max = limits->maxComputeWorkGroupInvocations;
    info->subgroup_size = plan->desc->subgroup_size ? plan->desc->subgroup_size : hardware->subgroup_size;
    info->group_multiple = info->subgroup_size;
    for (uint32_t d = 0; d < 3; d++) {
        info->group_size[d] = plan->group[d];
        info->groups_max[d] = limits->maxComputeWorkGroupCount[d];
    }
    info->local_bytes = plan->interface.local_bytes;
    info->local_max_bytes = limits->maxComputeSharedMemorySize;
}

static gpuhal_status build(gpuhal_vulkan_kernel_plan *plan, gpuhal_kernel_info *out_info,
                           gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_plugin_device *device = plan->program->device;
    gpuhal_plugin_kernel *kernel =
        gpuhal_vulkan_kernel_plan_make(plan) ? gpuhal_vulkan_kernel_plan_kernel(plan) : NULL;
    if (!kernel) {
        return device->host->report(device->host, plan->fault.status, NULL, 0, plan->fault.text);
    }
    gpuhal_status status = make_set_layout(kernel);
    status = status == GPUHAL_OK ? make_layout(kernel) : status;
    status = status == GPUHAL_OK ? make_pipeline(kernel, plan) : status;
    if (status != GPUHAL_OK) {
        gpuhal_vulkan_kernel_destroy(kernel);
        return status;
    }
    describe(kernel, plan, out_info);
    *out_kernel = kernel;
    return GPUHAL_OK;
}

/* The plan is allocated on the heap because it is too large for a small stack. */
gpuhal_status gpuhal_vulkan_kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                          gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    *out_kernel = NULL;
    gpuhal_plugin_device *device = program->device;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_vulkan_kernel_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    plan->program = program;
    plan->desc = desc;
    status = build(plan, out_info, out_kernel);
    free(plan->entries);
    free(plan->data);
    free(plan);
    return status;
}
