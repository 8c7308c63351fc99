/* vulkan/kernel.c: creates one pipeline for each kernel. The driver compiles the pipeline when the kernel is created,
 * so that launches do not compile. Only lavapipe compiles at the first dispatch. An empty dispatch would trigger this
 * compilation (Mesa 22.3), but would have to wait for all work in the driver's only VkQueue. */
#include "program.h"

#include <stdlib.h>

/* Creates the layout of the set, which has no bindings if the kernel does not use the set. */
static gpuhal_status make_set_layout(gpuhal_plugin_kernel *kernel, const gpuhal_vulkan_interface *interface,
                                     uint32_t set)
{
    gpuhal_plugin_device *device = kernel->device;
    VkDescriptorSetLayoutBinding bindings[GPUHAL_VULKAN_BUFFERS + GPUHAL_VULKAN_BLOCKS];
    uint32_t count = 0;
    for (uint32_t b = 0; b < interface->binding_count; b++) {
        const gpuhal_vulkan_binding *binding = &interface->bindings[b];
        if (binding->set == set) {
            bindings[count++] =
                (VkDescriptorSetLayoutBinding){.binding = binding->number,
                                               .descriptorType = gpuhal_vulkan_descriptor_type(binding->kind),
                                               .descriptorCount = binding->count,
                                               .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
        }
    }
    const VkDescriptorSetLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .flags = kernel->pushes && count > 0 ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR : 0,
        .bindingCount = count,
        .pBindings = bindings,
    };
    VkDescriptorSetLayout *layout = &kernel->set_layouts[set];
    VkResult code = device->api.vkCreateDescriptorSetLayout(device->handle, &info, NULL, layout);
    *layout = code == VK_SUCCESS ? *layout : VK_NULL_HANDLE;
    return gpuhal_vulkan_result(device, "vkCreateDescriptorSetLayout", code);
}

/* Vulkan pushes the descriptors of at most one set. */
static gpuhal_status make_set_layouts(gpuhal_plugin_kernel *kernel, const gpuhal_vulkan_interface *interface)
{
    const gpuhal_plugin_device *device = kernel->device;
    const bool one_set = kernel->used_sets && (kernel->used_sets & (kernel->used_sets - 1)) == 0;
    kernel->pushes = one_set && (device->enabled & GPUHAL_VULKAN_PUSH_DESCRIPTOR) &&
                     kernel->storage_count + kernel->block_count <= device->hardware.push_descriptors;
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t set = 0; set < kernel->set_count && status == GPUHAL_OK; set++) {
        status = make_set_layout(kernel, interface, set);
    }
    return status;
}

static gpuhal_status make_layout(gpuhal_plugin_kernel *kernel)
{
    gpuhal_plugin_device *device = kernel->device;
    const VkPushConstantRange range = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                       .size = kernel->blocks[kernel->block_count].bytes};
    const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = kernel->set_count,
        .pSetLayouts = kernel->set_layouts,
        .pushConstantRangeCount = range.size > 0,
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
        for (uint32_t set = 0; set < kernel->set_count && kernel->set_layouts[set]; set++) {
            device->api.vkDestroyDescriptorSetLayout(device->handle, kernel->set_layouts[set], NULL);
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
    gpuhal_status status = make_set_layouts(kernel, &plan->interface);
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
