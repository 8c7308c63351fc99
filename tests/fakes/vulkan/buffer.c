/* fakes/vulkan/buffer.c: buffers and their binding to memory. */
#include "fake.h"

enum { ALIGNMENT = 64 };

static uint32_t family_bits(const VkBufferCreateInfo *info)
{
    uint32_t bits = 0;
    for (uint32_t f = 0; f < info->queueFamilyIndexCount; f++) {
        const uint32_t family = info->pQueueFamilyIndices[f];
        if (family >= fake_get_script()->family_count || bits >> family & 1) {
            fake_violation("vkCreateBuffer: family %u is not there or named twice", family);
            continue;
        }
        bits |= 1u << family;
    }
    if (info->queueFamilyIndexCount < 2) {
        fake_violation("vkCreateBuffer: CONCURRENT over fewer than two families");
    }
    return bits;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateBuffer(VkDevice handle, const VkBufferCreateInfo *info,
                                                   const VkAllocationCallbacks *allocator, VkBuffer *out_buffer)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkCreateBuffer);
    fake_device *device = fake_find(handle, A_DEVICE, "vkCreateBuffer");
    if (result || !device) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    if (info->size == 0 || info->usage == 0) {
        fake_violation("vkCreateBuffer: no bytes or no usage");
        return VK_ERROR_UNKNOWN;
    }
    if (info->size > fake_get_script()->allocation_size) {
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (info->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT && !(device->enabled >> BUFFER_DEVICE_ADDRESS & 1)) {
        fake_violation("vkCreateBuffer: an address without the feature bufferDeviceAddress");
    }
    fake_buffer *buffer = fake_make(device, A_BUFFER, sizeof *buffer);
    if (!buffer) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    const VkExternalMemoryBufferCreateInfo *external =
        fake_chained(info->pNext, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
    buffer->bytes = info->size;
    buffer->usage = info->usage;
    buffer->external = external ? external->handleTypes : 0;
    buffer->concurrent = info->sharingMode == VK_SHARING_MODE_CONCURRENT;
    buffer->families = buffer->concurrent ? family_bits(info) : 0;
    buffer->owner = OWNER_NONE;
    *out_buffer = (VkBuffer)buffer;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkDestroyBuffer(VkDevice handle, VkBuffer buffer,
                                                const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkDestroyBuffer);
    (void)fake_destroy(buffer, A_BUFFER, "vkDestroyBuffer");
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetBufferMemoryRequirements(VkDevice handle, VkBuffer object,
                                                              VkMemoryRequirements *requirements)
{
    (void)handle;
    fake_count(FN_vkGetBufferMemoryRequirements);
    const fake_buffer *buffer = fake_find(object, A_BUFFER, "vkGetBufferMemoryRequirements");
    *requirements = (VkMemoryRequirements){.alignment = ALIGNMENT};
    if (buffer) {
        requirements->size = (buffer->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        requirements->memoryTypeBits =
            (1u << fake_get_script()->plans[buffer->object.device->physical->index].memory.memoryTypeCount) - 1;
    }
}

VKAPI_ATTR void VKAPI_CALL fake_vkGetBufferMemoryRequirements2(VkDevice handle,
                                                               const VkBufferMemoryRequirementsInfo2 *info,
                                                               VkMemoryRequirements2 *requirements)
{
    fake_count(FN_vkGetBufferMemoryRequirements2);
    fake_vkGetBufferMemoryRequirements(handle, info->buffer, &requirements->memoryRequirements);
    for (VkBaseOutStructure *link = requirements->pNext; link; link = link->pNext) {
        if (link->sType == VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS) {
            VkMemoryDedicatedRequirements *dedicated = (VkMemoryDedicatedRequirements *)link;
            dedicated->prefersDedicatedAllocation = dedicated->requiresDedicatedAllocation =
                fake_get_script()->dedicated;
        }
    }
}

static const char *fault_of_binding(const fake_buffer *buffer, const fake_memory *memory, VkDeviceSize offset)
{
    if (buffer->memory) {
        return "the buffer is bound already";
    }
    if (offset % ALIGNMENT || offset > memory->bytes ||
        (buffer->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT > memory->bytes - offset) {
        return "the offset is not aligned, or the memory too small";
    }
    if ((memory->exportable | memory->imported) & ~buffer->external) {
        return "memory for sharing, but the buffer was made without that kind of handle";
    }
    if (fake_get_script()->dedicated && memory->dedicated_to != &buffer->object &&
        !(memory->imported & VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT)) {
        return "the buffer needs memory of its own (dedicated)";
    }
    if (memory->dedicated_to && memory->bytes != (buffer->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT) {
        return "the memory is dedicated and has another size than the buffer needs";
    }
    if (memory->dedicated_to && (memory->dedicated_to != &buffer->object || offset)) {
        return "the memory is dedicated to another buffer";
    }
    if (buffer->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT && !memory->addressable) {
        return "memory without VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT for a buffer with an address";
    }
    return NULL;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkBindBufferMemory(VkDevice handle, VkBuffer object, VkDeviceMemory memory_object,
                                                       VkDeviceSize offset)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkBindBufferMemory);
    fake_buffer *buffer = fake_find(object, A_BUFFER, "vkBindBufferMemory");
    fake_memory *memory = fake_find(memory_object, A_MEMORY, "vkBindBufferMemory");
    if (result || !buffer || !memory) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    const char *fault = fault_of_binding(buffer, memory, offset);
    if (fault) {
        fake_violation("vkBindBufferMemory: %s", fault);
        return VK_ERROR_UNKNOWN;
    }
    buffer->memory = memory;
    buffer->memory_offset = offset;
    return VK_SUCCESS;
}

VKAPI_ATTR VkDeviceAddress VKAPI_CALL fake_vkGetBufferDeviceAddress(VkDevice handle,
                                                                    const VkBufferDeviceAddressInfo *info)
{
    (void)handle;
    fake_count(FN_vkGetBufferDeviceAddress);
    const fake_buffer *buffer = fake_find(info->buffer, A_BUFFER, "vkGetBufferDeviceAddress");
    if (!buffer || !buffer->memory || !(buffer->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)) {
        fake_violation("vkGetBufferDeviceAddress: a buffer without memory, or made without an address");
        return 0;
    }
    return (VkDeviceAddress)(uintptr_t)(buffer->memory->device_bytes + buffer->memory_offset);
}
