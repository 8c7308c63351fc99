/* vulkan/program.c: loads SPIR-V. Modules are checked before they are passed to a driver, since drivers trust them. */
#include "program.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_NON_UNIFORM  61u   /* the first subgroup capability; the others follow in the order of Vulkan's bits */
#define FLOAT_CONTROLS     4464u /* the first of five capabilities */
#define CACHE_HEADER_BYTES 32u

static uint32_t newest_of(const gpuhal_plugin_device *device)
{
    const uint32_t version = device->hardware.api_version;
    if (version >= VK_API_VERSION_1_3) {
        return 0x00010600u;
    }
    if (version >= VK_API_VERSION_1_2) {
        return 0x00010500u;
    }
    return device->enabled & GPUHAL_VULKAN_SPIRV_1_4 ? 0x00010400u : 0x00010300u;
}

static bool allows(const gpuhal_plugin_device *device, uint32_t capability)
{
    const uint32_t subgroup = capability - GROUP_NON_UNIFORM, floats = capability - FLOAT_CONTROLS;
    if (subgroup < 8) {
        return device->hardware.subgroup_operations >> subgroup & 1;
    }
    if (floats < 5) { /* VK_KHR_spirv_1_4 requires the extension that adds the float controls */
        return device->enabled & GPUHAL_VULKAN_SPIRV_1_4;
    }
    return gpuhal_vulkan_features_allow(device->features, capability);
}

/* Returns whether the plugin accepts the capability on a device that supports it. */
static bool knows(uint32_t capability)
{
    return capability - GROUP_NON_UNIFORM < 8 || capability - FLOAT_CONTROLS < 5 ||
           gpuhal_vulkan_features_know(capability);
}

static bool refuse_capability(uint32_t capability, gpuhal_vulkan_fault *fault)
{
    const char *name = gpuhal_vulkan_capability_name(capability);
    return gpuhal_vulkan_fault_set(
        fault, GPUHAL_ERROR_NOT_SUPPORTED, "the SPIR-V module needs capability %s (%" PRIu32 "), which %s",
        name ? name : "without a known name", capability,
        knows(capability)                                ? "the device, as it was opened, does not have"
        : gpuhal_vulkan_capability_is_opencl(capability) ? "is OpenCL's: Vulkan has no such kernels"
                                                         : "this library does not take: its kernels have buffers "
                                                           "and values, and no images or samplers");
}

static bool check_capabilities(const gpuhal_plugin_device *device, const gpuhal_vulkan_module *code,
                               gpuhal_vulkan_fault *fault)
{
    const uint32_t wanted = GPUHAL_SPIRV_CAPABILITY;
    for (uint32_t at = gpuhal_vulkan_module_find(code, GPUHAL_SPIRV_HEADER_WORDS, wanted); at < code->count;
         at = gpuhal_vulkan_module_find(code, at + gpuhal_vulkan_module_length(code, at), wanted)) {
        if (!allows(device, code->words[at + 1])) {
            return refuse_capability(code->words[at + 1], fault);
        }
    }
    return true;
}

/* Rejects instruction sets that Vulkan does not support. */
static bool check_imports(const gpuhal_vulkan_module *code, gpuhal_vulkan_fault *fault)
{
    const uint32_t wanted = GPUHAL_SPIRV_EXT_INST_IMPORT;
    for (uint32_t at = gpuhal_vulkan_module_find(code, GPUHAL_SPIRV_HEADER_WORDS, wanted); at < code->count;
         at = gpuhal_vulkan_module_find(code, at + gpuhal_vulkan_module_length(code, at), wanted)) {
        const char *name = (const char *)&code->words[at + 2];
        const size_t room = (size_t)(gpuhal_vulkan_module_length(code, at) - 2) * sizeof(uint32_t);
        const size_t length = strnlen(name, room);
        if (length == room ||
            (strcmp(name, "GLSL.std.450") != 0 && strncmp(name, "NonSemantic.", strlen("NonSemantic.")) != 0)) {
            return gpuhal_vulkan_fault_set(fault, GPUHAL_ERROR_NOT_SUPPORTED,
                                           "the SPIR-V module uses the instructions \"%.*s\", which are not Vulkan's",
                                           (int)(length < 64 ? length : 64), name);
        }
    }
    return true;
}

/* The specification stores header numbers with the lowest byte first. */
static uint32_t number_at(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* Returns whether this driver wrote the data for this device, and the data contains more than a header. Vulkan requires
 * drivers to check the header themselves, but some drivers do not check thoroughly. */
static bool is_ours(const gpuhal_plugin_device *device, const gpuhal_plugin_build *build)
{
    const VkPhysicalDeviceProperties *properties = &device->hardware.properties;
    const unsigned char *bytes = build->compiled;
    return bytes && build->compiled_bytes > CACHE_HEADER_BYTES && number_at(bytes) == CACHE_HEADER_BYTES &&
           number_at(bytes + 4) == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
           number_at(bytes + 8) == properties->vendorID && number_at(bytes + 12) == properties->deviceID &&
           memcmp(bytes + 16, properties->pipelineCacheUUID, VK_UUID_SIZE) == 0;
}

/* Cache data that the driver rejects is ignored, because it is only a hint. */
static gpuhal_status make_cache(gpuhal_plugin_program *program, gpuhal_plugin_build *build)
{
    gpuhal_plugin_device *device = program->device;
    const bool known = is_ours(device, build);
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                      .initialDataSize = known ? (size_t)build->compiled_bytes : 0,
                                      .pInitialData = known ? build->compiled : NULL};
    VkResult code = device->api.vkCreatePipelineCache(device->handle, &info, NULL, &program->cache);
    build->used_compiled = known && code == VK_SUCCESS;
    if (known && code != VK_SUCCESS && code != VK_ERROR_DEVICE_LOST) {
        info.initialDataSize = 0;
        info.pInitialData = NULL;
        code = device->api.vkCreatePipelineCache(device->handle, &info, NULL, &program->cache);
    }
    if (code != VK_SUCCESS) {
        program->cache = VK_NULL_HANDLE;
        return gpuhal_vulkan_result(device, "vkCreatePipelineCache", code);
    }
    return GPUHAL_OK;
}

void gpuhal_vulkan_program_unload(gpuhal_plugin_program *program)
{
    gpuhal_plugin_device *device = program->device;
    if (program->cache) {
        device->api.vkDestroyPipelineCache(device->handle, program->cache, NULL);
    }
    if (program->module) {
        device->api.vkDestroyShaderModule(device->handle, program->module, NULL);
    }
    gpuhal_vulkan_module_finish(&program->code);
    free(program);
}

static gpuhal_status fill_program(gpuhal_plugin_program *program, const gpuhal_code *code, gpuhal_plugin_build *build)
{
    gpuhal_plugin_device *device = program->device;
    gpuhal_vulkan_fault fault;
    if (!gpuhal_vulkan_module_read(code->code, code->bytes, newest_of(device), &program->code, &fault) ||
        !check_capabilities(device, &program->code, &fault) || !check_imports(&program->code, &fault)) {
        return device->host->report(device->host, fault.status, NULL, 0, fault.text);
    }
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = (size_t)code->bytes,
                                           .pCode = program->code.words};
    VkResult result = device->api.vkCreateShaderModule(device->handle, &info, NULL, &program->module);
    if (result != VK_SUCCESS) {
        program->module = VK_NULL_HANDLE;
        return gpuhal_vulkan_result(device, "vkCreateShaderModule", result);
    }
    return make_cache(program, build);
}

gpuhal_status gpuhal_vulkan_program_load(gpuhal_plugin_device *device, const gpuhal_code *code,
                                         gpuhal_plugin_build *build, gpuhal_plugin_program **out_program)
{
    *out_program = NULL;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (strcmp(code->format, "spirv") != 0) {
        return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                                    "Vulkan takes code in the format spirv alone");
    }
    if (code->target) {
        char text[200];
        snprintf(text, sizeof text, "the code is for %.64s; SPIR-V for Vulkan is for every device, and has no target",
                 code->target);
        return device->host->report(device->host, GPUHAL_ERROR_INCOMPATIBLE, NULL, 0, text);
    }
    gpuhal_plugin_program *program = calloc(1, sizeof *program);
    if (!program) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    program->device = device;
    status = fill_program(program, code, build);
    if (status != GPUHAL_OK) {
        gpuhal_vulkan_program_unload(program);
        return status;
    }
    *out_program = program;
    return GPUHAL_OK;
}

/* The cache may grow between the calls if another thread creates a kernel. If the data no longer fits, its size is read
 * again. A cache that has no pipelines consists of only a header and would not save a compilation. Some drivers never
 * store pipelines (lavapipe of Mesa 22.3). */
gpuhal_status gpuhal_vulkan_program_compiled(gpuhal_plugin_program *program, void *to, uint64_t *bytes)
{
    gpuhal_plugin_device *device = program->device;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    const uint64_t room = to ? *bytes : 0;
    size_t size = 0;
    if (status != GPUHAL_OK) {
        return status;
    }
    VkResult code = device->api.vkGetPipelineCacheData(device->handle, program->cache, &size, NULL);
    if (code == VK_SUCCESS && size > 0 && size <= room) {
        code = device->api.vkGetPipelineCacheData(device->handle, program->cache, &size, to);
        if (code == VK_INCOMPLETE) {
            code = device->api.vkGetPipelineCacheData(device->handle, program->cache, &size, NULL);
        }
    }
    *bytes = size;
    return code != VK_SUCCESS           ? gpuhal_vulkan_result(device, "vkGetPipelineCacheData", code)
           : size <= CACHE_HEADER_BYTES ? GPUHAL_ERROR_NOT_SUPPORTED
                                        : GPUHAL_OK;
}
