/* fakes/vulkan/program.c: shader modules, pipelines and dispatches. The driver recognizes the two modules of
 * tests/system/shaders and runs them on the CPU. All other modules do nothing. Descriptors are in descriptor.c. */
#include "fake.h"

#include "../../system/shaders/saxpy_spirv.h"
#include "../../system/shaders/scale_spirv.h"

#include <string.h>

typedef struct fake_module {
    fake_object object;
    size_t bytes;
    uint32_t *words;
} fake_module;

enum { CACHE_HEADER = 32, GROUPS_MAX = 65535, SCALE_GROUP = 64, SCALE_ADDED = 304, SCALE_FACTOR = 320 };

typedef struct fake_cache {
    fake_object object;
    uint64_t pipelines; /* number in the initial data, plus those created with this cache */
} fake_cache;

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateShaderModule(VkDevice handle, const VkShaderModuleCreateInfo *info,
                                                         const VkAllocationCallbacks *allocator,
                                                         VkShaderModule *out_module)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateShaderModule);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateShaderModule");
    if (result || !device) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    if (info->codeSize == 0 || info->codeSize % 4 || info->pCode[0] != 0x07230203) {
        fake_violation("vkCreateShaderModule: no SPIR-V");
        return VK_ERROR_UNKNOWN;
    }
    fake_module *module = fake_make(device, A_SHADER_MODULE, sizeof *module);
    uint32_t *words = malloc(info->codeSize);
    if (!module || !words) {
        free(words);
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    memcpy(words, info->pCode, info->codeSize);
    module->words = words;
    module->bytes = info->codeSize;
    *out_module = (VkShaderModule)module;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyShaderModule(VkDevice handle, VkShaderModule object,
                                                      const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyShaderModule);
    fake_module *module = fake_destroy(object, A_SHADER_MODULE, "vkDestroyShaderModule");
    if (module) {
        free(module->words);
        module->words = NULL;
    }
}

/* ---- caches. The data is the header that the specification requires, followed by the number of pipelines if it is not
 * 0. */

static void write_header(unsigned char data[CACHE_HEADER])
{
    VkPhysicalDeviceProperties properties;
    const fake_plan *plan = &fake_get_script()->plans[0];
    const uint32_t numbers[4] = {CACHE_HEADER, VK_PIPELINE_CACHE_HEADER_VERSION_ONE, plan->vendor, plan->id};
    memcpy(properties.pipelineCacheUUID, "fake cache uuid", VK_UUID_SIZE);
    for (unsigned n = 0; n < 4; n++) {
        for (unsigned b = 0; b < 4; b++) {
            data[4 * n + b] = (unsigned char)(numbers[n] >> 8 * b);
        }
    }
    memcpy(data + 16, properties.pipelineCacheUUID, VK_UUID_SIZE);
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreatePipelineCache(VkDevice handle, const VkPipelineCacheCreateInfo *info,
                                                          const VkAllocationCallbacks *allocator,
                                                          VkPipelineCache *out_cache)
{
    (void)allocator;
    unsigned char header[CACHE_HEADER];
    VkResult result = fake_enter(FN_vkCreatePipelineCache);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreatePipelineCache");
    if (result || !device) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    write_header(header);
    if (info->initialDataSize > 0 &&
        (info->initialDataSize < sizeof header || memcmp(info->pInitialData, header, sizeof header) != 0)) {
        fake_violation("vkCreatePipelineCache: the data of another device, another driver, or none");
    }
    fake_cache *cache = fake_make(device, A_PIPELINE_CACHE, sizeof *cache);
    if (!cache) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (info->initialDataSize >= sizeof header + sizeof cache->pipelines) {
        memcpy(&cache->pipelines, (const char *)info->pInitialData + sizeof header, sizeof cache->pipelines);
    }
    *out_cache = (VkPipelineCache)cache;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyPipelineCache(VkDevice handle, VkPipelineCache object,
                                                       const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyPipelineCache);
    (void)fake_destroy(object, A_PIPELINE_CACHE, "vkDestroyPipelineCache");
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetPipelineCacheData(VkDevice handle, VkPipelineCache object, size_t *bytes,
                                                           void *data)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkGetPipelineCacheData);
    fake_cache *cache = fake_find(object, A_PIPELINE_CACHE, "vkGetPipelineCacheData");
    unsigned char all[CACHE_HEADER + sizeof cache->pipelines];
    if (result || !cache) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    pthread_mutex_lock(&fake_lock);
    memcpy(all + CACHE_HEADER, &cache->pipelines, sizeof cache->pipelines);
    const size_t size = cache->pipelines > 0 ? sizeof all : CACHE_HEADER;
    pthread_mutex_unlock(&fake_lock);
    if (data && *bytes < size) {
        *bytes = 0;
        return VK_INCOMPLETE;
    }
    if (data) {
        write_header(all);
        memcpy(data, all, size);
    }
    *bytes = size;
    return VK_SUCCESS;
}

/* ---- pipelines */

static void specialize(fake_pipeline *pipeline, const VkSpecializationInfo *info)
{
    for (uint32_t e = 0; info && e < info->mapEntryCount; e++) {
        const VkSpecializationMapEntry *entry = &info->pMapEntries[e];
        uint32_t value = 0;
        if (entry->size > info->dataSize || entry->offset > info->dataSize - entry->size) {
            fake_violation("vkCreateComputePipelines: constant %u lies outside of the data", entry->constantID);
            continue;
        }
        for (uint32_t other = 0; other < e; other++) {
            if (info->pMapEntries[other].constantID == entry->constantID) {
                fake_violation("vkCreateComputePipelines: constant %u is given twice", entry->constantID);
            }
        }
        memcpy(&value, (const char *)info->pData + entry->offset, entry->size < 4 ? entry->size : 4);
        pipeline->threads = entry->constantID == 0 ? value : pipeline->threads;
        pipeline->repeat = entry->constantID == 1 ? value : pipeline->repeat;
    }
}

static bool is_code(const fake_module *module, const uint32_t *words, size_t bytes)
{
    return module->bytes == bytes && memcmp(module->words, words, bytes) == 0;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateComputePipelines(VkDevice handle, VkPipelineCache cache_object,
                                                             uint32_t count, const VkComputePipelineCreateInfo *infos,
                                                             const VkAllocationCallbacks *allocator,
                                                             VkPipeline *out_pipelines)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateComputePipelines);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateComputePipelines");
    fake_cache *cache = cache_object ? fake_find(cache_object, A_PIPELINE_CACHE, "vkCreateComputePipelines") : NULL;
    memset(out_pipelines, 0, count * sizeof *out_pipelines);
    for (uint32_t i = 0; i < count && !result; i++) {
        const fake_module *module = fake_find(infos[i].stage.module, A_SHADER_MODULE, "vkCreateComputePipelines");
        fake_pipeline_layout *layout = fake_find(infos[i].layout, A_PIPELINE_LAYOUT, "vkCreateComputePipelines");
        fake_pipeline *pipeline = fake_make(device, A_PIPELINE, sizeof *pipeline);
        if (!module || !layout || !pipeline) {
            return pipeline ? VK_ERROR_UNKNOWN : VK_ERROR_OUT_OF_HOST_MEMORY;
        }
        pipeline->layout = layout;
        pipeline->code = is_code(module, saxpy_spirv, sizeof saxpy_spirv)   ? SAXPY
                         : is_code(module, scale_spirv, sizeof scale_spirv) ? SCALE
                                                                            : UNKNOWN_CODE;
        pipeline->threads = pipeline->code == SAXPY ? 64 : SCALE_GROUP;
        pipeline->repeat = 1;
        pipeline->has_base = infos[i].flags & VK_PIPELINE_CREATE_DISPATCH_BASE_BIT;
        specialize(pipeline, infos[i].stage.pSpecializationInfo);
        pthread_mutex_lock(&fake_lock);
        if (cache) {
            cache->pipelines++;
        }
        pthread_mutex_unlock(&fake_lock);
        out_pipelines[i] = (VkPipeline)pipeline;
    }
    return result;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyPipeline(VkDevice handle, VkPipeline object,
                                                  const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyPipeline);
    (void)fake_destroy(object, A_PIPELINE, "vkDestroyPipeline");
}

/* ---- recording */

VKAPI_ATTR void VKAPI_CALL fake_vkCmdBindPipeline(VkCommandBuffer object, VkPipelineBindPoint point,
                                                  VkPipeline pipeline_object)
{
    fake_count(FN_vkCmdBindPipeline);
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkCmdBindPipeline");
    fake_pipeline *pipeline = fake_find(pipeline_object, A_PIPELINE, "vkCmdBindPipeline");
    if (!commands || commands->state != RECORDING || point != VK_PIPELINE_BIND_POINT_COMPUTE) {
        fake_violation("vkCmdBindPipeline: not recording, or no pipeline for compute work");
        return;
    }
    commands->bound.pipeline = pipeline;
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdPushConstants(VkCommandBuffer object, VkPipelineLayout layout_object,
                                                   VkShaderStageFlags stages, uint32_t offset, uint32_t bytes,
                                                   const void *values)
{
    fake_count(FN_vkCmdPushConstants);
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkCmdPushConstants");
    const fake_pipeline_layout *layout = fake_find(layout_object, A_PIPELINE_LAYOUT, "vkCmdPushConstants");
    if (!commands || !layout) {
        return;
    }
    if (commands->state != RECORDING || stages != VK_SHADER_STAGE_COMPUTE_BIT || bytes == 0 || bytes % 4 ||
        offset % 4 || offset > layout->constant_bytes || bytes > layout->constant_bytes - offset) {
        fake_violation("vkCmdPushConstants: %u bytes at %u of %u", bytes, offset, layout->constant_bytes);
        return;
    }
    memcpy(commands->bound.constants + offset, values, bytes);
}

static const char *fault_of_launch(const fake_launch *launch)
{
    if (!launch->pipeline) {
        return "no pipeline is bound";
    }
    for (unsigned s = 0; s < FAKE_SETS; s++) {
        const fake_set_layout *set = launch->pipeline->layout->sets[s];
        for (uint32_t b = 0; set && b < set->count; b++) {
            if (!launch->bindings[s][b].buffer) {
                return "a binding of the pipeline's layout is not filled";
            }
        }
    }
    for (unsigned d = 0; d < 3; d++) {
        if (launch->base[d] >= GROUPS_MAX || launch->groups[d] > GROUPS_MAX - launch->base[d]) {
            return "more groups than maxComputeWorkGroupCount";
        }
        if (launch->base[d] > 0 && !launch->pipeline->has_base) {
            return "a base, and the pipeline was made without one";
        }
    }
    const fake_buffer *indirect = launch->indirect;
    if (indirect && (!(indirect->usage & VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT) || launch->indirect_offset % 4 ||
                     launch->indirect_offset > indirect->bytes || indirect->bytes - launch->indirect_offset < 12)) {
        return "the groups are not inside of a buffer that was made for this, or not at a multiple of 4";
    }
    return NULL;
}

/* @p how has the groups. */
static void record_launch(VkCommandBuffer object, const char *call, const fake_launch *how)
{
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, call);
    fake_launch *launch = malloc(sizeof *launch);
    if (!commands || !launch) {
        free(launch);
        return;
    }
    *launch = commands->bound;
    memcpy(launch->base, how->base, sizeof launch->base);
    memcpy(launch->groups, how->groups, sizeof launch->groups);
    launch->indirect = how->indirect;
    launch->indirect_offset = how->indirect_offset;
    const char *fault = fault_of_launch(launch);
    if (!(fake_get_script()->families[commands->pool->family].queueFlags & VK_QUEUE_COMPUTE_BIT)) {
        fault = "the family of the command buffer does not compute";
    }
    fake_command *command = fault ? NULL : fake_record(object, call);
    if (!command) {
        fake_violation("%s: %s", call, fault ? fault : "no memory");
        free(launch);
        return;
    }
    launch->next = commands->launches;
    commands->launches = launch;
    *command = (fake_command){.what = DISPATCH, .launch = launch};
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdDispatch(VkCommandBuffer object, uint32_t x, uint32_t y, uint32_t z)
{
    fake_count(FN_vkCmdDispatch);
    record_launch(object, "vkCmdDispatch", &(fake_launch){.groups = {x, y, z}});
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdDispatchBase(VkCommandBuffer object, uint32_t base_x, uint32_t base_y,
                                                  uint32_t base_z, uint32_t x, uint32_t y, uint32_t z)
{
    fake_count(FN_vkCmdDispatchBase);
    record_launch(object, "vkCmdDispatchBase", &(fake_launch){.base = {base_x, base_y, base_z}, .groups = {x, y, z}});
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdDispatchIndirect(VkCommandBuffer object, VkBuffer buffer_object,
                                                      VkDeviceSize offset)
{
    fake_count(FN_vkCmdDispatchIndirect);
    fake_buffer *buffer = fake_find(buffer_object, A_BUFFER, "vkCmdDispatchIndirect");
    if (buffer) {
        record_launch(object, "vkCmdDispatchIndirect", &(fake_launch){.indirect = buffer, .indirect_offset = offset});
    }
}

void fake_forget_launches(fake_command_buffer *commands)
{
    while (commands->launches) {
        fake_launch *launch = commands->launches;
        commands->launches = launch->next;
        free(launch);
    }
}

/* ---- executing */

bool fake_may_launch_locked(const fake_launch *launch, uint32_t family, bool is_usable(fake_buffer *, uint32_t))
{
    bool good = !launch->pipeline->object.dead && (!launch->indirect || is_usable(launch->indirect, family));
    for (uint32_t i = 0; i < FAKE_SETS * FAKE_BINDINGS && good; i++) {
        const fake_descriptor_set *set = launch->sets[i / FAKE_BINDINGS];
        fake_buffer *buffer = launch->bindings[i / FAKE_BINDINGS][i % FAKE_BINDINGS].buffer;
        good = (!set || !set->object.dead) && (!buffer || is_usable(buffer, family));
    }
    return good;
}

void fake_hold_launch(const fake_launch *launch, int change, void hold_buffer(fake_buffer *, int))
{
    launch->pipeline->object.in_use += (unsigned)change;
    hold_buffer(launch->indirect, change);
    for (unsigned s = 0; s < FAKE_SETS; s++) {
        if (launch->sets[s]) {
            launch->sets[s]->object.in_use += (unsigned)change;
        }
        for (uint32_t b = 0; b < FAKE_BINDINGS; b++) {
            hold_buffer(launch->bindings[s][b].buffer, change);
        }
    }
}

static unsigned char *bytes_of(const fake_binding *binding)
{
    return binding->buffer->memory->device_bytes + binding->buffer->memory_offset + binding->offset;
}

/* Both run the threads from @p first up to @p end. */
static void run_saxpy(const fake_launch *launch, uint64_t first, uint64_t end)
{
    const fake_binding *x = &launch->bindings[0][0], *y = &launch->bindings[0][1];
    uint32_t count = 0;
    float a = 0;
    memcpy(&count, launch->constants, sizeof count);
    memcpy(&a, launch->constants + 4, sizeof a);
    for (uint64_t i = first; i < count && i < end; i++) {
        float from = 0, sum = 0;
        if (4 * (i + 1) > x->bytes || 4 * (i + 1) > y->bytes) {
            fake_violation("vkCmdDispatch: word %llu lies outside of a binding", (unsigned long long)i);
            return;
        }
        memcpy(&from, bytes_of(x) + 4 * i, 4);
        memcpy(&sum, bytes_of(y) + 4 * i, 4);
        for (uint32_t r = 0; r < launch->pipeline->repeat; r++) {
            sum = a * from + sum;
        }
        memcpy(bytes_of(y) + 4 * i, &sum, 4);
    }
}

static void run_scale(const fake_launch *launch, uint64_t first, uint64_t end)
{
    const fake_binding *words = &launch->bindings[0][0], *values = &launch->bindings[0][1];
    uint32_t factor = 0, added = 0;
    if (values->bytes < SCALE_FACTOR + 4) {
        fake_violation("vkCmdDispatch: the uniform block is too small");
        return;
    }
    memcpy(&factor, bytes_of(values) + SCALE_FACTOR, 4);
    memcpy(&added, bytes_of(values) + SCALE_ADDED, 4);
    for (uint64_t i = first; i < end && 4 * (i + 1) <= words->bytes; i++) {
        uint32_t word = 0;
        memcpy(&word, bytes_of(words) + 4 * i, 4);
        word = word * factor + added;
        memcpy(bytes_of(words) + 4 * i, &word, 4);
    }
}

void fake_run_launch(const fake_launch *launch)
{
    uint32_t groups[3];
    memcpy(groups, launch->groups, sizeof groups);
    if (launch->indirect) {
        const fake_binding at = {.buffer = launch->indirect, .offset = launch->indirect_offset};
        memcpy(groups, bytes_of(&at), sizeof groups);
    }
    if (groups[0] > GROUPS_MAX || groups[1] > GROUPS_MAX || groups[2] > GROUPS_MAX) {
        fake_violation("vkCmdDispatchIndirect: more groups than maxComputeWorkGroupCount");
        return;
    }
    const uint64_t threads = launch->pipeline->threads, first = launch->base[0] * threads,
                   end = first + (uint64_t)groups[0] * groups[1] * groups[2] * threads;
    if (launch->pipeline->code == SAXPY) {
        run_saxpy(launch, first, end);
    } else if (launch->pipeline->code == SCALE) {
        run_scale(launch, first, end);
    }
}
