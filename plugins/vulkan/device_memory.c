/* vulkan/device_memory.c: allocates VkDeviceMemory from the best memory type with enough space. */
#include "memory.h"

#include <inttypes.h>
#include <stdio.h>

gpuhal_status gpuhal_vulkan_memory_refused(gpuhal_plugin_device *device, VkResult code)
{
    const gpuhal_host *host = device->host;
    if (code == VK_ERROR_TOO_MANY_OBJECTS) {
        char text[128];
        snprintf(text, sizeof text, "the number of allocations has reached maxMemoryAllocationCount, %" PRIu32,
                 device->hardware.properties.limits.maxMemoryAllocationCount);
        return host->report(host, GPUHAL_ERROR_OUT_OF_MEMORY, "vkAllocateMemory", code, text);
    }
    if (code == VK_ERROR_OUT_OF_HOST_MEMORY && device->hardware.software) {
        /* On software devices host and device memory are the same, so report that the buffer did not fit. */
        return host->report(host, GPUHAL_ERROR_OUT_OF_MEMORY, "vkAllocateMemory", code, "VK_ERROR_OUT_OF_HOST_MEMORY");
    }
    if (code == VK_ERROR_INVALID_EXTERNAL_HANDLE) {
        return host->report(
            host, GPUHAL_ERROR_INVALID_ARGUMENT, "vkAllocateMemory", code,
            "the driver cannot import this memory: the driver did not export it, or it is too small, or not mapped");
    }
    return gpuhal_vulkan_result(device, "vkAllocateMemory", code);
}

/* Counts the allocation before the call and uncounts it on failure, so that two threads cannot both make the last
 * allowed allocation. Above maxMemoryAllocationCount Vulkan guarantees nothing, not even an error code. */
VkResult gpuhal_vulkan_take_memory(gpuhal_plugin_device *device, gpuhal_vulkan_request *request, uint32_t type,
                                   uint64_t bytes, const void *import)
{
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .pNext = import,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                           .handleTypes = request->exported};
    VkMemoryDedicatedAllocateInfo dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
                                               .buffer = request->buffer->buffer};
    const void *chain = device->enabled & GPUHAL_VULKAN_BUFFER_ADDRESS ? &flags : import;
    if (request->exported) {
        exported.pNext = chain;
        chain = &exported;
    }
    if (request->dedicated) {
        dedicated.pNext = chain;
        chain = &dedicated;
    }
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = chain,
                                       .allocationSize = bytes,
                                       .memoryTypeIndex = type};
    VkResult code = VK_ERROR_TOO_MANY_OBJECTS;
    if (atomic_fetch_add(&device->allocation_count, 1) < device->hardware.properties.limits.maxMemoryAllocationCount) {
        code = device->api.vkAllocateMemory(device->handle, &info, NULL, &request->buffer->memory);
    }
    if (code != VK_SUCCESS) {
        atomic_fetch_sub(&device->allocation_count, 1);
        request->buffer->memory = VK_NULL_HANDLE;
        return code;
    }
    request->buffer->memory_bytes = bytes;
    request->buffer->type_flags = device->hardware.memory.memoryTypes[type].propertyFlags;
    return VK_SUCCESS;
}

gpuhal_status gpuhal_vulkan_too_large(gpuhal_plugin_device *device, uint64_t bytes, uint64_t most)
{
    const char *limit = most == device->hardware.allocation_max ? "allocation_max_bytes, which is"
                                                                : "the whole memory heap for this kind,";
    char text[160];
    snprintf(text, sizeof text, "%" PRIu64 " bytes, with alignment, are above %s %" PRIu64, bytes, limit, most);
    return device->host->report(device->host, GPUHAL_ERROR_TOO_LARGE, NULL, 0, text);
}

/* Vulkan aligns memory to the buffer's requirement only. For a larger alignment the plugin allocates more bytes and
 * binds the buffer at an offset. This requires mapped memory, because only the mapped address shows the alignment. It
 * is not done for exported memory, because the importer would have to find the buffer's start, nor for dedicated
 * memory. */
static uint64_t slack_of(const gpuhal_vulkan_request *request, VkMemoryPropertyFlags flags)
{
    const bool room =
        gpuhal_vulkan_shows_host(request->alloc->kind, flags) && !request->exported && !request->dedicated;
    return room && request->alloc->alignment > request->requirements.alignment ? request->alloc->alignment : 0;
}

static uint32_t type_for(const gpuhal_plugin_device *device, const gpuhal_vulkan_request *request, uint32_t bits)
{
    return request->exported ? gpuhal_vulkan_pick_type(&device->hardware, request->alloc->kind, bits)
                             : gpuhal_vulkan_next_type(&device->hardware, request->alloc->kind, bits);
}

/* A substitute type is slower but correct. Exported memory never uses a substitute, because the importer of an opaque
 * descriptor has to use the same type. Vulkan forbids allocations larger than the type's heap. */
gpuhal_status gpuhal_vulkan_take_own(gpuhal_plugin_device *device, gpuhal_vulkan_request *request)
{
    const VkPhysicalDeviceMemoryProperties *memory = &device->hardware.memory;
    const uint64_t size = request->requirements.size, limit = device->hardware.allocation_max;
    uint32_t bits = request->requirements.memoryTypeBits, type = type_for(device, request, bits);
    gpuhal_status status = GPUHAL_ERROR_TOO_LARGE;
    uint64_t most = 0;
    if (type == GPUHAL_VULKAN_NO_TYPE) {
        return device->host->report(
            device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
            "none of the memory types that the driver allows for such a buffer suits this kind");
    }
    for (; type != GPUHAL_VULKAN_NO_TYPE; type = type_for(device, request, bits)) {
        const uint64_t heap = memory->memoryHeaps[memory->memoryTypes[type].heapIndex].size,
                       room = heap < limit ? heap : limit;
        const uint64_t slack = slack_of(request, memory->memoryTypes[type].propertyFlags);
        if (size <= room && slack <= room - size) {
            VkResult code = gpuhal_vulkan_take_memory(device, request, type, size + slack, NULL);
            status = code == VK_SUCCESS ? GPUHAL_OK : gpuhal_vulkan_memory_refused(device, code);
        }
        if (status != GPUHAL_ERROR_TOO_LARGE && status != GPUHAL_ERROR_OUT_OF_MEMORY) {
            return status;
        }
        most = room > most ? room : most;
        /* Each iteration removes a type, so the loop ends. */
        bits = request->exported ? 0 : bits & ~(1u << type);
    }
    return status == GPUHAL_ERROR_TOO_LARGE ? gpuhal_vulkan_too_large(device, size, most) : status;
}
