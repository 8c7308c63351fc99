/* vulkan/memory.c: allocates and frees memory, and synchronizes host and device writes.
 *
 * An allocation is one VkBuffer on one VkDeviceMemory, mapped if it is host-visible. The size and type of the
 * VkDeviceMemory depend only on kind, size, alignment and export kinds, since the importer of an opaque descriptor has
 * to use the same size and type.
 *
 * GPU drivers commit memory when they allocate it. Software drivers use malloc(), so the plugin commits the pages of
 * their memory.
 */
#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define LEAST_PAGE          4096u
#define LEAST_MAP_ALIGNMENT 64u                  /* lower limit of minMemoryMapAlignment */
#define POPULATE_FROM       (UINT64_C(64) << 10) /* for fewer bytes, the system call costs more than it saves */

#define COHERENT VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
#define CACHED   VK_MEMORY_PROPERTY_HOST_CACHED_BIT
#define LOCAL    VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT

/* Sizes are rounded up to whole words, so that shaders can bind the last word. */
static gpuhal_status create_buffer(gpuhal_plugin_device *device, gpuhal_vulkan_request *request)
{
    const VkExternalMemoryBufferCreateInfo external = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                                                       .handleTypes = request->named};
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .pNext = request->named ? &external : NULL,
        .size = (request->alloc->bytes + 3) & ~UINT64_C(3),
        .usage = gpuhal_vulkan_usage(device->enabled),
        .sharingMode = device->family_count > 1 ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
        .queueFamilyIndexCount = device->family_count > 1 ? device->family_count : 0,
        .pQueueFamilyIndices = device->families,
    };
    VkResult code = device->api.vkCreateBuffer(device->handle, &info, NULL, &request->buffer->buffer);
    if (code != VK_SUCCESS) {
        request->buffer->buffer = VK_NULL_HANDLE;
        return gpuhal_vulkan_result(device, "vkCreateBuffer", code);
    }
    VkMemoryDedicatedRequirements dedicated = {.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    VkMemoryRequirements2 answer = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, .pNext = &dedicated};
    const VkBufferMemoryRequirementsInfo2 question = {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2,
                                                      .buffer = request->buffer->buffer};
    device->api.vkGetBufferMemoryRequirements2(device->handle, &question, &answer);
    request->requirements = answer.memoryRequirements;
    request->requirements.alignment += request->requirements.alignment == 0; /* used as a divisor */
    const bool plain = request->alloc->alignment <= request->requirements.alignment &&
                       request->alloc->handle.kind != GPUHAL_HANDLE_HOST_POINTER && request->alloc->import_offset == 0;
    request->dedicated =
        request->dedicated || dedicated.requiresDedicatedAllocation || (dedicated.prefersDedicatedAllocation && plain);
    return GPUHAL_OK;
}

/* Vulkan requires the buffer to be destroyed before its memory. */
static void destroy(gpuhal_plugin_device *device, gpuhal_vulkan_buffer *buffer)
{
    if (buffer->buffer) {
        device->api.vkDestroyBuffer(device->handle, buffer->buffer, NULL);
    }
    if (buffer->memory) {
        device->api.vkFreeMemory(device->handle, buffer->memory, NULL); /* also unmaps the memory */
        atomic_fetch_sub(&device->allocation_count, 1);
    }
    free(buffer);
}

/* lavapipe 25 returns VK_SUCCESS with MAP_FAILED if it runs out of address space. Valid mappings are aligned to at
 * least 64 bytes. */
static bool is_mapping(const void *start)
{
    return start && (uintptr_t)start % LEAST_MAP_ALIGNMENT == 0;
}

/* Imported host memory already has its address. A GPU's device memory is usable even if mapping fails; on a software
 * device the mapping is the memory itself. */
static gpuhal_status map(gpuhal_plugin_device *device, const gpuhal_vulkan_request *request, void **out_start)
{
    const gpuhal_alloc *alloc = request->alloc;
    *out_start = NULL;
    if (alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER) {
        *out_start = (char *)alloc->handle.as.pointer + alloc->import_offset;
        return GPUHAL_OK;
    }
    if (!gpuhal_vulkan_shows_host(alloc->kind, request->buffer->type_flags)) {
        return GPUHAL_OK;
    }
    VkResult code = device->api.vkMapMemory(device->handle, request->buffer->memory, 0, VK_WHOLE_SIZE, 0, out_start);
    const bool mapped = code == VK_SUCCESS && is_mapping(*out_start);
    if (mapped) {
        return GPUHAL_OK;
    }
    *out_start = NULL;
    if (alloc->kind == GPUHAL_MEMORY_DEVICE && !device->hardware.software) {
        return GPUHAL_OK;
    }
    if (code == VK_SUCCESS || (code == VK_ERROR_OUT_OF_HOST_MEMORY && device->hardware.software)) {
        return device->host->report(
            device->host, GPUHAL_ERROR_OUT_OF_MEMORY, "vkMapMemory", code,
            "the memory could not be mapped: the address space or the memory of the host is short");
    }
    return gpuhal_vulkan_result(device, "vkMapMemory", code);
}

static gpuhal_status misaligned(gpuhal_plugin_device *device, const gpuhal_vulkan_request *request)
{
    char text[160];
    snprintf(text, sizeof text,
             "this memory cannot have an alignment of %" PRIu64 "; Vulkan guarantees %" PRIu64 " here",
             request->alloc->alignment, (uint64_t)request->requirements.alignment);
    return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, text);
}

/* Imported memory has no space after the buffer, so it is never moved. The device address, if any, is known only after
 * binding. Its alignment is checked, not assumed. */
static gpuhal_status place(gpuhal_plugin_device *device, gpuhal_vulkan_request *request, gpuhal_memory *out_memory)
{
    gpuhal_vulkan_buffer *buffer = request->buffer;
    const uint64_t alignment = request->alloc->alignment, own = request->requirements.alignment;
    const uint64_t mask = alignment > 1 ? alignment - 1 : 0;
    void *start = NULL;
    gpuhal_status status = map(device, request, &start);
    if (status != GPUHAL_OK) {
        return status;
    }
    /* slack_of() has reserved space for rounding up the host address. Without a host address the offset is
     * unchanged. */
    const uintptr_t first = (uintptr_t)start + (uintptr_t)buffer->memory_offset;
    const uint64_t offset = buffer->memory_offset + (start ? ((first + mask) & ~mask) - first : 0);
    const bool fits = (offset & (own - 1)) == 0 && offset <= buffer->memory_bytes &&
                      request->requirements.size <= buffer->memory_bytes - offset;
    if (!fits || (alignment > own && !start && !(device->enabled & GPUHAL_VULKAN_BUFFER_ADDRESS))) {
        return misaligned(device, request);
    }
    buffer->memory_offset = offset;
    VkResult code =
        device->api.vkBindBufferMemory(device->handle, buffer->buffer, buffer->memory, buffer->memory_offset);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkBindBufferMemory", code);
    }
    if (device->enabled & GPUHAL_VULKAN_BUFFER_ADDRESS) {
        const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                                .buffer = buffer->buffer};
        out_memory->address = device->api.vkGetBufferDeviceAddress(device->handle, &info);
    }
    if (out_memory->address & mask) {
        return misaligned(device, request);
    }
    out_memory->host = start ? (char *)start + offset : NULL;
    return GPUHAL_OK;
}

/* Commits the pages of a software device's memory, which contain no data yet. One system call for all pages takes half
 * the time of touching each page. The call also returns an error if touching would kill the process. */
static gpuhal_status commit(gpuhal_plugin_device *device, void *start, uint64_t bytes)
{
    volatile char *at = start;
    if (bytes >= POPULATE_FROM) {
        const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        const uint64_t before = (uintptr_t)start & (page - 1);
        const uint64_t length = (before + bytes + page - 1) & ~(page - 1);
        if (madvise((char *)start - before, (size_t)length, MADV_POPULATE_WRITE) == 0) {
            return GPUHAL_OK;
        }
        if (errno != EINVAL) { /* Linux before 5.14 */
            return device->host->report(device->host, GPUHAL_ERROR_OUT_OF_MEMORY, "madvise", errno,
                                        "the system has no pages for this much memory");
        }
    }
    for (uint64_t i = 0; i < bytes; i += LEAST_PAGE) {
        at[i] = 0;
    }
    at[bytes - 1] = 0;
    return GPUHAL_OK;
}

static gpuhal_status check(gpuhal_plugin_device *device, gpuhal_vulkan_request *request)
{
    const gpuhal_alloc *alloc = request->alloc;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (alloc->kind > GPUHAL_MEMORY_DEVICE_MAPPED || !(device->hardware.memory_kinds >> alloc->kind & 1) ||
        alloc->peer_count != 0 || (alloc->flags & ~(uint32_t)GPUHAL_IMPORT_READ_ONLY) != 0) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    /* A driver says only for a VkBuffer of an opened device which types of memory it exports, so the list of devices
     * cannot have the other kinds. */
    if (alloc->export_kinds != 0 && alloc->kind != GPUHAL_MEMORY_DEVICE) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (alloc->bytes == 0 || (alloc->alignment & (alloc->alignment - 1)) != 0) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    status = gpuhal_vulkan_read_handles(device, request);
    if (status != GPUHAL_OK) {
        return status;
    }
    const uint64_t most = device->hardware.allocation_max;
    return alloc->bytes > most ? gpuhal_vulkan_too_large(device, alloc->bytes, most) : GPUHAL_OK;
}

static uint32_t memory_flags(VkMemoryPropertyFlags flags)
{
    return (flags & COHERENT ? GPUHAL_MEMORY_HOST_COHERENT : 0) | (flags & CACHED ? GPUHAL_MEMORY_HOST_CACHED : 0) |
           (flags & LOCAL ? GPUHAL_MEMORY_DEVICE_LOCAL : 0);
}

gpuhal_status gpuhal_vulkan_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                     gpuhal_memory *out_memory)
{
    gpuhal_vulkan_request request = {.alloc = alloc};
    gpuhal_memory made = *out_memory;
    gpuhal_status status = check(device, &request);
    if (status != GPUHAL_OK) {
        return status;
    }
    /* Uses malloc instead of calloc, because glibc's per-thread cache serves only malloc. */
    request.buffer = malloc(sizeof *request.buffer);
    if (!request.buffer) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    *request.buffer = (gpuhal_vulkan_buffer){.export_kinds = request.exported ? alloc->export_kinds : 0};
    status = create_buffer(device, &request);
    if (status == GPUHAL_OK) {
        status = alloc->handle.kind ? gpuhal_vulkan_import(device, &request) : gpuhal_vulkan_take_own(device, &request);
    }
    if (status == GPUHAL_OK) {
        status = place(device, &request, &made);
    }
    /* Skip imports, because committing writes to the memory, and imported memory contains the caller's data. */
    if (status == GPUHAL_OK && made.host && !alloc->handle.kind && device->hardware.software) {
        status = commit(device, made.host, alloc->bytes);
    }
    if (status != GPUHAL_OK) {
        destroy(device, request.buffer);
        return status;
    }
    if (alloc->handle.kind == GPUHAL_HANDLE_OPAQUE_FD || alloc->handle.kind == GPUHAL_HANDLE_DMABUF_FD) {
        close((int)alloc->handle.as.os); /* the driver owns a duplicate */
    }
    /* *out_memory is written last, because it must be unchanged after a failure. */
    made.object = request.buffer;
    made.bytes = alloc->bytes;
    made.flags = memory_flags(request.buffer->type_flags);
    *out_memory = made;
    return GPUHAL_OK;
}

/* If some work never finished, it may still use the memory, so the memory is leaked. */
void gpuhal_vulkan_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    gpuhal_vulkan_buffer *buffer = gpuhal_vulkan_buffer_of(memory);
    if (buffer->wrapped || atomic_load(&device->stuck)) {
        free(buffer);
    } else {
        destroy(device, buffer);
    }
}

/* Flushes or invalidates the whole atoms around these bytes of the memory object. Vulkan requires whole atoms. Only an
 * atom at the end of the memory object may be incomplete; VK_WHOLE_SIZE stands for such a range. */
static gpuhal_status move_atoms(gpuhal_plugin_device *device, const gpuhal_vulkan_buffer *buffer, uint64_t begin,
                                uint64_t end, bool invalidate)
{
    const uint64_t mask = device->hardware.properties.limits.nonCoherentAtomSize - 1, first = begin & ~mask;
    const uint64_t size = (end - first + mask) & ~mask;
    const VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                       .memory = buffer->memory,
                                       .offset = first,
                                       .size = size < buffer->memory_bytes - first ? size : VK_WHOLE_SIZE};
    if (invalidate) {
        return gpuhal_vulkan_result(device, "vkInvalidateMappedMemoryRanges",
                                    device->api.vkInvalidateMappedMemoryRanges(device->handle, 1, &range));
    }
    return gpuhal_vulkan_result(device, "vkFlushMappedMemoryRanges",
                                device->api.vkFlushMappedMemoryRanges(device->handle, 1, &range));
}

/* Flushing the atom that contains @p at would also write the host's stale bytes outside the range to the device. So
 * this function first reads these bytes from the device. */
static gpuhal_status refresh_edge(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t at,
                                  uint64_t begin, uint64_t end)
{
    const gpuhal_vulkan_buffer *buffer = gpuhal_vulkan_buffer_of(memory);
    const uint64_t atom = device->hardware.properties.limits.nonCoherentAtomSize, first = at & ~(atom - 1);
    const uint64_t inside = first > begin ? first : begin, inside_end = first + atom < end ? first + atom : end;
    unsigned char kept[GPUHAL_VULKAN_ATOM_MAX];
    if (inside_end - inside == atom) {
        return GPUHAL_OK;
    }
    unsigned char *host = (unsigned char *)memory->host + (inside - buffer->memory_offset);
    memcpy(kept, host, (size_t)(inside_end - inside));
    gpuhal_status status = move_atoms(device, buffer, inside, inside_end, true);
    memcpy(host, kept, (size_t)(inside_end - inside));
    return status;
}

/* Invalidating reads whole atoms from the device. The host's stale bytes outside the range are not restored, because
 * they could be written to the device at any time and overwrite its data. */
static gpuhal_status make_coherent(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                   uint64_t bytes, bool invalidate)
{
    const gpuhal_vulkan_buffer *buffer = gpuhal_vulkan_buffer_of(memory);
    if (!memory->host || (buffer->type_flags & COHERENT)) {
        return GPUHAL_OK;
    }
    const uint64_t begin = buffer->memory_offset + offset, end = begin + bytes;
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status == GPUHAL_OK && !invalidate) {
        status = refresh_edge(device, memory, begin, begin, end);
        status = status == GPUHAL_OK ? refresh_edge(device, memory, end - 1, begin, end) : status;
    }
    return status == GPUHAL_OK ? move_atoms(device, buffer, begin, end, invalidate) : status;
}

static gpuhal_status vulkan_memory_flush(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                         uint64_t bytes)
{
    return make_coherent(device, memory, offset, bytes, false);
}

static gpuhal_status vulkan_memory_invalidate(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                              uint64_t offset, uint64_t bytes)
{
    return make_coherent(device, memory, offset, bytes, true);
}

gpuhal_status gpuhal_vulkan_native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                          gpuhal_native *out_native)
{
    const gpuhal_vulkan_buffer *buffer = gpuhal_vulkan_buffer_of(memory);
    out_native->type = GPUHAL_NATIVE_VULKAN_BUFFER;
    out_native->values[0] = (uint64_t)(uintptr_t)buffer->buffer;
    out_native->values[1] = (uint64_t)(uintptr_t)buffer->memory;
    out_native->values[2] = buffer->memory_offset;
    out_native->values[3] = buffer->wrapped ? buffer->wrapped_usage : gpuhal_vulkan_usage(device->enabled);
    return GPUHAL_OK;
}

/* Returns the fault, or NULL. Vulkan does not report the size of a buffer, but the size in the buffer's memory
 * requirements is at least as large. */
static const char *wrap_fault(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes)
{
    const VkBufferUsageFlags needed = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    if (native->type != GPUHAL_NATIVE_VULKAN_BUFFER || native->values[0] == 0) {
        return "not a VkBuffer (GPUHAL_NATIVE_VULKAN_BUFFER)";
    }
    if ((native->values[3] & needed) != needed) {
        return "the usage in values[3] lacks VK_BUFFER_USAGE_TRANSFER_SRC_BIT or VK_BUFFER_USAGE_TRANSFER_DST_BIT";
    }
    VkMemoryRequirements2 answer = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    const VkBufferMemoryRequirementsInfo2 question = {.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2,
                                                      .buffer = (VkBuffer)(uintptr_t)native->values[0]};
    device->api.vkGetBufferMemoryRequirements2(device->handle, &question, &answer);
    return answer.memoryRequirements.size < bytes ? "the VkBuffer is smaller than the stated size" : NULL;
}

gpuhal_status gpuhal_vulkan_wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                        gpuhal_memory *out_memory)
{
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *fault = wrap_fault(device, native, bytes);
    if (fault) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, fault);
    }
    gpuhal_vulkan_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    buffer->buffer = (VkBuffer)(uintptr_t)native->values[0];
    buffer->memory = (VkDeviceMemory)(uintptr_t)native->values[1];
    buffer->memory_offset = native->values[2];
    buffer->memory_bytes = native->values[2] + bytes;
    buffer->wrapped = true;
    buffer->wrapped_usage = native->values[3];
    out_memory->flags = (native->values[3] & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT ? 0 : GPUHAL_MEMORY_NO_KERNELS) |
                        (native->values[3] & VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT ? 0 : GPUHAL_MEMORY_NO_INDIRECT);
    out_memory->object = buffer;
    out_memory->bytes = bytes;
    if ((device->enabled & GPUHAL_VULKAN_BUFFER_ADDRESS) &&
        (native->values[3] & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)) {
        const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                                .buffer = buffer->buffer};
        out_memory->address = device->api.vkGetBufferDeviceAddress(device->handle, &info);
    }
    return GPUHAL_OK;
}

void gpuhal_vulkan_describe_memory(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops)
{
    ops->allocate = gpuhal_vulkan_allocate;
    ops->release = gpuhal_vulkan_release;
    ops->memory_flush = vulkan_memory_flush;
    ops->memory_invalidate = vulkan_memory_invalidate;
    if (hardware->offered & (GPUHAL_VULKAN_OPAQUE_FD | GPUHAL_VULKAN_DMABUF_FD)) {
        ops->export_memory = gpuhal_vulkan_export;
    }
}
