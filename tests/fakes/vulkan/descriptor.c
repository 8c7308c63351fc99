/* fakes/vulkan/descriptor.c: descriptor set layouts, pools, sets, and the bindings of the next dispatch. */
#include "fake.h"

#include <string.h>

typedef struct fake_descriptor_pool {
    fake_object object;
    uint32_t sets_left, storage_left, uniform_left;
    VkDescriptorPoolCreateInfo info;
    uint32_t storage, uniform; /* as at creation */
    fake_descriptor_set *first;
} fake_descriptor_pool;

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateDescriptorSetLayout(VkDevice handle,
                                                                const VkDescriptorSetLayoutCreateInfo *info,
                                                                const VkAllocationCallbacks *allocator,
                                                                VkDescriptorSetLayout *out_layout)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateDescriptorSetLayout);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateDescriptorSetLayout");
    if (result || !device) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    const bool pushed = info->flags & VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
    uint32_t count = 0;
    for (uint32_t b = 0; b < info->bindingCount; b++) {
        count += info->pBindings[b].descriptorCount;
    }
    if (count > FAKE_BINDINGS || (pushed && count > 32) || (pushed && !(device->extensions >> PUSH_DESCRIPTOR & 1))) {
        fake_violation("vkCreateDescriptorSetLayout: %u descriptors, or pushed ones without the extension", count);
        return VK_ERROR_UNKNOWN;
    }
    fake_set_layout *layout = fake_make(device, A_SET_LAYOUT, sizeof *layout);
    if (!layout) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    layout->pushed = pushed;
    for (uint32_t b = 0; b < info->bindingCount; b++) {
        const VkDescriptorSetLayoutBinding *binding = &info->pBindings[b];
        if (b > 0 && binding->binding <= info->pBindings[b - 1].binding) {
            fake_violation("vkCreateDescriptorSetLayout: this driver wants its bindings in order");
        }
        for (uint32_t e = 0; e < binding->descriptorCount; e++) {
            layout->descriptors[layout->count].binding = binding->binding;
            layout->descriptors[layout->count].element = e;
            layout->descriptors[layout->count++].type = binding->descriptorType;
        }
    }
    *out_layout = (VkDescriptorSetLayout)layout;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyDescriptorSetLayout(VkDevice handle, VkDescriptorSetLayout object,
                                                             const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyDescriptorSetLayout);
    (void)fake_destroy(object, A_SET_LAYOUT, "vkDestroyDescriptorSetLayout");
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreatePipelineLayout(VkDevice handle, const VkPipelineLayoutCreateInfo *info,
                                                           const VkAllocationCallbacks *allocator,
                                                           VkPipelineLayout *out_layout)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreatePipelineLayout);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreatePipelineLayout");
    if (result || !device) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    const uint32_t bytes = info->pushConstantRangeCount ? info->pPushConstantRanges[0].size : 0;
    if (info->setLayoutCount > FAKE_SETS || info->pushConstantRangeCount > 1 || bytes > FAKE_CONSTANTS || bytes % 4 ||
        (info->pushConstantRangeCount && bytes == 0)) {
        fake_violation("vkCreatePipelineLayout: %u sets, more than one range, or %u bytes of constants",
                       info->setLayoutCount, bytes);
        return VK_ERROR_UNKNOWN;
    }
    fake_pipeline_layout *layout = fake_make(device, A_PIPELINE_LAYOUT, sizeof *layout);
    if (!layout) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    unsigned pushed = 0;
    for (uint32_t set = 0; set < info->setLayoutCount; set++) {
        layout->sets[set] = fake_find(info->pSetLayouts[set], A_SET_LAYOUT, "vkCreatePipelineLayout");
        pushed += layout->sets[set] && layout->sets[set]->pushed;
    }
    if (pushed > 1) {
        fake_violation("vkCreatePipelineLayout: %u sets with pushed descriptors", pushed);
    }
    layout->constant_bytes = bytes;
    *out_layout = (VkPipelineLayout)layout;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyPipelineLayout(VkDevice handle, VkPipelineLayout object,
                                                        const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyPipelineLayout);
    (void)fake_destroy(object, A_PIPELINE_LAYOUT, "vkDestroyPipelineLayout");
}

/* ---- pools */

static void refill(fake_descriptor_pool *pool)
{
    pool->sets_left = pool->info.maxSets;
    pool->storage_left = pool->storage;
    pool->uniform_left = pool->uniform;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateDescriptorPool(VkDevice handle, const VkDescriptorPoolCreateInfo *info,
                                                           const VkAllocationCallbacks *allocator,
                                                           VkDescriptorPool *out_pool)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateDescriptorPool);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateDescriptorPool");
    fake_descriptor_pool *pool = result || !device ? NULL : fake_make(device, A_DESCRIPTOR_POOL, sizeof *pool);
    if (!pool) {
        return result ? result : VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    pool->info = *info;
    for (uint32_t s = 0; s < info->poolSizeCount; s++) {
        const bool storage = info->pPoolSizes[s].type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        *(storage ? &pool->storage : &pool->uniform) += info->pPoolSizes[s].descriptorCount;
    }
    refill(pool);
    *out_pool = (VkDescriptorPool)pool;
    return VK_SUCCESS;
}

static void empty(fake_descriptor_pool *pool, const char *call)
{
    for (fake_descriptor_set *set = pool->first, *next = NULL; set; set = next) {
        next = set->next;
        (void)fake_destroy(set, A_DESCRIPTOR_SET, call);
    }
    pool->first = NULL;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyDescriptorPool(VkDevice handle, VkDescriptorPool object,
                                                        const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyDescriptorPool);
    fake_descriptor_pool *pool = fake_find(object, A_DESCRIPTOR_POOL, "vkDestroyDescriptorPool");
    if (pool) {
        empty(pool, "vkDestroyDescriptorPool");
        (void)fake_destroy(object, A_DESCRIPTOR_POOL, "vkDestroyDescriptorPool");
    }
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkResetDescriptorPool(VkDevice handle, VkDescriptorPool object,
                                                          VkDescriptorPoolResetFlags flags)
{
    (void)handle, (void)flags;
    VkResult result = fake_enter(FN_vkResetDescriptorPool);
    fake_descriptor_pool *pool = fake_find(object, A_DESCRIPTOR_POOL, "vkResetDescriptorPool");
    if (result || !pool) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    empty(pool, "vkResetDescriptorPool");
    refill(pool);
    return VK_SUCCESS;
}

static bool take(fake_descriptor_pool *pool, const fake_set_layout *layout)
{
    uint32_t storage = 0, uniform = 0;
    for (uint32_t d = 0; d < layout->count; d++) {
        storage += layout->descriptors[d].type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        uniform += layout->descriptors[d].type != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    }
    if (pool->sets_left == 0 || storage > pool->storage_left || uniform > pool->uniform_left) {
        return false;
    }
    pool->sets_left--;
    pool->storage_left -= storage;
    pool->uniform_left -= uniform;
    return true;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkAllocateDescriptorSets(VkDevice handle, const VkDescriptorSetAllocateInfo *info,
                                                             VkDescriptorSet *out_sets)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkAllocateDescriptorSets);
    fake_descriptor_pool *pool = fake_find(info->descriptorPool, A_DESCRIPTOR_POOL, "vkAllocateDescriptorSets");
    const fake_set_layout *layout = fake_find(info->pSetLayouts[0], A_SET_LAYOUT, "vkAllocateDescriptorSets");
    if (result || !pool || !layout) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    if (layout->pushed || info->descriptorSetCount != 1 || !take(pool, layout)) {
        fake_violation("vkAllocateDescriptorSets: a layout for pushed descriptors, several sets, or an empty pool");
        return VK_ERROR_OUT_OF_POOL_MEMORY;
    }
    fake_descriptor_set *set = fake_make(pool->object.device, A_DESCRIPTOR_SET, sizeof *set);
    if (!set) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    set->layout = layout;
    set->next = pool->first;
    pool->first = set;
    out_sets[0] = (VkDescriptorSet)set;
    return VK_SUCCESS;
}

/* ---- updates */

/* Returns the layout's descriptor for element @p at of the write, or `count`. A write that is longer than its binding
 * goes on in the binding with the next number. */
static uint32_t find(const fake_set_layout *layout, const VkWriteDescriptorSet *write, uint32_t at)
{
    uint32_t first = 0;
    while (first < layout->count && (layout->descriptors[first].binding != write->dstBinding ||
                                     layout->descriptors[first].element != write->dstArrayElement)) {
        first++;
    }
    for (uint32_t d = first; d < first + at && d + 1 < layout->count; d++) {
        if (layout->descriptors[d + 1].binding > layout->descriptors[d].binding + 1) {
            return layout->count;
        }
    }
    return first + at < layout->count ? first + at : layout->count;
}

static const char *fault_of(const fake_set_layout *layout, const VkWriteDescriptorSet *write, uint32_t at,
                            const fake_buffer *buffer)
{
    const VkDescriptorBufferInfo *info = &write->pBufferInfo[at];
    const uint32_t place = find(layout, write, at);
    const bool storage = write->descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    const VkBufferUsageFlags needed = storage ? VK_BUFFER_USAGE_STORAGE_BUFFER_BIT : VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
    if (place == layout->count || layout->descriptors[place].type != write->descriptorType) {
        return "the layout has no such binding";
    }
    if (!buffer || !(buffer->usage & needed)) {
        return "the buffer was not made for this";
    }
    if (info->offset % 64 || info->offset >= buffer->bytes || info->range == 0 ||
        (info->range != VK_WHOLE_SIZE && info->range > buffer->bytes - info->offset) ||
        (info->range != VK_WHOLE_SIZE && info->range > (storage ? 128u << 20 : 16384u))) {
        return "the range is not aligned, outside of the buffer, or too large";
    }
    return NULL;
}

static void fill(const fake_set_layout *layout, fake_binding *bindings, uint32_t count,
                 const VkWriteDescriptorSet *writes, const char *call)
{
    for (uint32_t w = 0; w < count; w++) {
        for (uint32_t i = 0; i < writes[w].descriptorCount; i++) {
            const VkDescriptorBufferInfo *info = &writes[w].pBufferInfo[i];
            fake_buffer *buffer = fake_find(info->buffer, A_BUFFER, call);
            const char *fault = fault_of(layout, &writes[w], i, buffer);
            if (fault) {
                fake_violation("%s: %s", call, fault);
                return;
            }
            bindings[find(layout, &writes[w], i)] =
                (fake_binding){.buffer = buffer,
                               .offset = info->offset,
                               .bytes = info->range == VK_WHOLE_SIZE ? buffer->bytes - info->offset : info->range};
        }
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkUpdateDescriptorSets(VkDevice handle, uint32_t count,
                                                       const VkWriteDescriptorSet *writes, uint32_t copy_count,
                                                       const VkCopyDescriptorSet *copies)
{
    (void)handle, (void)copy_count, (void)copies;
    fake_count(FN_vkUpdateDescriptorSets);
    for (uint32_t w = 0; w < count; w++) {
        fake_descriptor_set *set = fake_find(writes[w].dstSet, A_DESCRIPTOR_SET, "vkUpdateDescriptorSets");
        if (!set || set->object.in_use) {
            fake_violation("vkUpdateDescriptorSets: no such set, or it is in use");
            return;
        }
        fill(set->layout, set->bindings, 1, &writes[w], "vkUpdateDescriptorSets");
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdPushDescriptorSetKHR(VkCommandBuffer object, VkPipelineBindPoint point,
                                                          VkPipelineLayout layout_object, uint32_t number,
                                                          uint32_t count, const VkWriteDescriptorSet *writes)
{
    fake_count(FN_vkCmdPushDescriptorSetKHR);
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkCmdPushDescriptorSetKHR");
    const fake_pipeline_layout *layout = fake_find(layout_object, A_PIPELINE_LAYOUT, "vkCmdPushDescriptorSetKHR");
    if (!commands || commands->state != RECORDING || !layout || number >= FAKE_SETS || !layout->sets[number] ||
        !layout->sets[number]->pushed || point != VK_PIPELINE_BIND_POINT_COMPUTE) {
        fake_violation("vkCmdPushDescriptorSetKHR: not recording, or a layout without pushed descriptors");
        return;
    }
    commands->bound.sets[number] = NULL;
    memset(commands->bound.bindings[number], 0, sizeof commands->bound.bindings[number]);
    fill(layout->sets[number], commands->bound.bindings[number], count, writes, "vkCmdPushDescriptorSetKHR");
}

VKAPI_ATTR void VKAPI_CALL fake_vkCmdBindDescriptorSets(VkCommandBuffer object, VkPipelineBindPoint point,
                                                        VkPipelineLayout layout_object, uint32_t first, uint32_t count,
                                                        const VkDescriptorSet *sets, uint32_t offset_count,
                                                        const uint32_t *offsets)
{
    (void)offset_count, (void)offsets;
    fake_count(FN_vkCmdBindDescriptorSets);
    fake_command_buffer *commands = fake_find(object, A_COMMAND_BUFFER, "vkCmdBindDescriptorSets");
    const fake_pipeline_layout *layout = fake_find(layout_object, A_PIPELINE_LAYOUT, "vkCmdBindDescriptorSets");
    fake_descriptor_set *set = count == 1 ? fake_find(sets[0], A_DESCRIPTOR_SET, "vkCmdBindDescriptorSets") : NULL;
    if (!commands || commands->state != RECORDING || !layout || !set || first >= FAKE_SETS ||
        layout->sets[first] != set->layout || point != VK_PIPELINE_BIND_POINT_COMPUTE) {
        fake_violation("vkCmdBindDescriptorSets: not recording, or a set of another layout");
        return;
    }
    commands->bound.sets[first] = set;
    memcpy(commands->bound.bindings[first], set->bindings, sizeof set->bindings);
}
