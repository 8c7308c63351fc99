/* vulkan/kernel.c: creates one pipeline for each kernel, and one for each other group size that is prepared. The driver
 * compiles a pipeline when it is created, so that launches do not compile. Only lavapipe compiles at the first
 * dispatch. An empty dispatch would trigger this compilation (Mesa 22.3), but would have to wait for all work in the
 * driver's only VkQueue. */
#include "program.h"

#include <stdlib.h>
#include <string.h>

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
static gpuhal_status make_pipeline(const gpuhal_plugin_kernel *kernel, const gpuhal_vulkan_kernel_plan *plan,
                                   VkPipeline *out_pipeline)
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
        .flags = VK_PIPELINE_CREATE_DISPATCH_BASE_BIT,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = plan->required_subgroup ? &subgroup : NULL,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = plan->program->module,
                  .pName = plan->desc->name,
                  .pSpecializationInfo = plan->entry_count ? &constants : NULL},
        .layout = kernel->layout,
    };
    VkResult code =
        device->api.vkCreateComputePipelines(device->handle, plan->program->cache, 1, &info, NULL, out_pipeline);
    if (code == VK_SUCCESS && *out_pipeline) {
        return GPUHAL_OK;
    }
    *out_pipeline = VK_NULL_HANDLE;
    const gpuhal_status status = gpuhal_vulkan_status(code);
    if (status == GPUHAL_ERROR_HOST_MEMORY || status == GPUHAL_ERROR_OUT_OF_MEMORY ||
        status == GPUHAL_ERROR_DEVICE_LOST) {
        return gpuhal_vulkan_result(device, "vkCreateComputePipelines", code);
    }
    return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "vkCreateComputePipelines", code,
                                "the driver does not compile this code: it is invalid, or uses a feature that the "
                                "device lacks; spirv-val says more");
}

/* If work never finished, the pipelines may still be in use, so they are leaked like the VkDevice. */
void gpuhal_vulkan_kernel_destroy(gpuhal_plugin_kernel *kernel)
{
    gpuhal_plugin_device *device = kernel->device;
    const bool stuck = atomic_load(&device->stuck);
    for (gpuhal_vulkan_size *next, *one = atomic_load(&kernel->sizes); one; one = next) {
        next = one->next;
        if (!stuck) {
            device->api.vkDestroyPipeline(device->handle, one->pipeline, NULL);
        }
        free(one);
    }
    if (!stuck) {
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
    free(kernel->desc);
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
    info->flags = GPUHAL_VULKAN_FORMS | (kernel->desc ? GPUHAL_VULKAN_SIZES : 0);
}

static gpuhal_status build(gpuhal_vulkan_kernel_plan *plan, gpuhal_kernel_info *out_info,
                           gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_plugin_device *device = plan->program->device;
    gpuhal_plugin_kernel *kernel = gpuhal_vulkan_kernel_plan_make(plan) ? gpuhal_vulkan_kernel_plan_kernel(plan) : NULL;
    if (!kernel) {
        return device->host->report(device->host, plan->fault.status, NULL, 0, plan->fault.text);
    }
    gpuhal_status status = make_set_layouts(kernel, &plan->interface);
    status = status == GPUHAL_OK ? make_layout(kernel) : status;
    status = status == GPUHAL_OK ? make_pipeline(kernel, plan, &kernel->pipeline) : status;
    if (status != GPUHAL_OK) {
        gpuhal_vulkan_kernel_destroy(kernel);
        return status;
    }
    describe(kernel, plan, out_info);
    *out_kernel = kernel;
    return GPUHAL_OK;
}

/* The plan is allocated on the heap because it is too large for a small stack. */
static gpuhal_vulkan_kernel_plan *make_plan(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                            gpuhal_status *out_status)
{
    const gpuhal_host *host = program->device->host;
    gpuhal_vulkan_kernel_plan *plan = NULL;
    *out_status = gpuhal_vulkan_alive(program->device);
    if (*out_status == GPUHAL_OK && !(plan = calloc(1, sizeof *plan))) {
        *out_status = host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    if (plan) {
        plan->program = program;
        plan->desc = desc;
    }
    return plan;
}

static void free_plan(gpuhal_vulkan_kernel_plan *plan)
{
    free(plan->entries);
    free(plan->data);
    free(plan);
}

gpuhal_status gpuhal_vulkan_kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                          gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel)
{
    *out_kernel = NULL;
    gpuhal_status status;
    gpuhal_vulkan_kernel_plan *plan = make_plan(program, desc, &status);
    if (plan) {
        status = build(plan, out_info, out_kernel);
        free_plan(plan);
    }
    return status;
}

/* ---- other group sizes */

VkPipeline gpuhal_vulkan_find_pipeline(const gpuhal_plugin_kernel *kernel, const uint32_t group_size[3])
{
    if (memcmp(kernel->group, group_size, sizeof kernel->group) == 0) {
        return kernel->pipeline;
    }
    const gpuhal_vulkan_size *one = atomic_load_explicit(&kernel->sizes, memory_order_acquire);
    while (one && memcmp(one->group, group_size, sizeof one->group) != 0) {
        one = one->next;
    }
    return one ? one->pipeline : VK_NULL_HANDLE;
}

/* Threads that prepare the same size at once add it several times, and launches use one of its pipelines. */
static void add_size(gpuhal_plugin_kernel *kernel, gpuhal_vulkan_size *size)
{
    size->next = atomic_load(&kernel->sizes);
    while (!atomic_compare_exchange_weak(&kernel->sizes, &size->next, size)) {
    }
}

static gpuhal_status build_size(gpuhal_vulkan_kernel_plan *plan, gpuhal_plugin_kernel *kernel)
{
    gpuhal_plugin_device *device = kernel->device;
    if (!gpuhal_vulkan_kernel_plan_make(plan) || !gpuhal_vulkan_kernel_plan_fits(plan, kernel)) {
        /* the rest of the description was right when the kernel was created, so the code fixes a dimension */
        const gpuhal_status status =
            plan->fault.status == GPUHAL_ERROR_INVALID_ARGUMENT ? GPUHAL_ERROR_NOT_SUPPORTED : plan->fault.status;
        return device->host->report(device->host, status, NULL, 0, plan->fault.text);
    }
    gpuhal_vulkan_size *size = calloc(1, sizeof *size);
    if (!size) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    memcpy(size->group, plan->group, sizeof size->group);
    const gpuhal_status status = make_pipeline(kernel, plan, &size->pipeline);
    if (status == GPUHAL_OK) {
        add_size(kernel, size);
    } else {
        free(size);
    }
    return status;
}

gpuhal_status gpuhal_vulkan_kernel_prepare(gpuhal_plugin_kernel *kernel, const uint32_t group_size[3])
{
    if (gpuhal_vulkan_find_pipeline(kernel, group_size)) {
        return GPUHAL_OK;
    }
    if (!kernel->desc) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_kernel_desc desc = *kernel->desc;
    memcpy(desc.group_size, group_size, sizeof desc.group_size);
    gpuhal_status status;
    gpuhal_vulkan_kernel_plan *plan = make_plan(kernel->program, &desc, &status);
    if (plan) {
        status = build_size(plan, kernel);
        free_plan(plan);
    }
    return status;
}
