/* fakes/vulkan/memory.c: device memory. Memory that is not host-visible cannot be mapped. Non-coherent memory has two
 * copies of its bytes. Only vkFlush… and vkInvalidate… synchronize the copies, always in whole atoms, as with CPU
 * caches. Memory that can be exported as a descriptor is a memfd whose name describes the memory. */
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FRESH_BYTE = 0xa5, STALE_BYTE = 0xcd, FRESH_MOST = 1 << 20 };

/* The fields of a memfd's name: "gpuhal-fake-opaque:65536:2". */
typedef struct label {
    unsigned long long bytes;
    uint32_t type;
} label;

static VkDeviceSize heap_used[FAKE_DEVICES][VK_MAX_MEMORY_HEAPS]; /* under fake_lock */

static size_t whole_pages(VkDeviceSize bytes)
{
    return (size_t)((bytes + PAGE - 1) / PAGE * PAGE);
}

static const VkPhysicalDeviceMemoryProperties *properties_of(const fake_device *device)
{
    return &fake_get_script()->plans[device->physical->index].memory;
}

static const VkMemoryType *type_of(const fake_memory *memory)
{
    return &properties_of(memory->object.device)->memoryTypes[memory->type];
}

static bool counts_for_heap(const fake_memory *memory)
{
    return memory->imported == 0;
}

VkDeviceSize fake_heap_used(unsigned device, uint32_t heap)
{
    pthread_mutex_lock(&fake_lock);
    VkDeviceSize used = heap_used[device][heap];
    pthread_mutex_unlock(&fake_lock);
    return used;
}

static const char *fd_name(VkExternalMemoryHandleTypeFlags kind)
{
    return kind & VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT ? "gpuhal-fake-opaque" : "gpuhal-fake-dmabuf";
}

/* Reads the label of a descriptor. Returns false if this driver did not create the descriptor, or if it has another
 * kind. */
static bool read_fd(int fd, VkExternalMemoryHandleTypeFlags kind, label *out_label)
{
    char link[64], target[128] = "", wanted[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const int length = snprintf(wanted, sizeof wanted, "/memfd:%s:", fd_name(kind));
    return readlink(link, target, sizeof target - 1) > 0 && strncmp(target, wanted, (size_t)length) == 0 &&
           sscanf(target + length, "%llu:%u", &out_label->bytes, &out_label->type) == 2;
}

/* ---- allocating */

static VkResult back_by_fd(fake_memory *memory)
{
    char name[64];
    snprintf(name, sizeof name, "%s:%llu:%u", fd_name(memory->exportable), (unsigned long long)memory->bytes,
             memory->type);
    memory->fd = memfd_create(name, MFD_CLOEXEC);
    if (memory->fd < 0 || ftruncate(memory->fd, (off_t)whole_pages(memory->bytes))) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    return VK_SUCCESS;
}

static VkResult take_fd(fake_memory *memory, const VkImportMemoryFdInfoKHR *import)
{
    label tag;
    if (!read_fd(import->fd, import->handleType, &tag)) {
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    }
    /* An import of a dma-buf may have a smaller size than the dma-buf, or a size rounded up to a whole page. */
    const bool opaque = import->handleType == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    if (opaque ? tag.bytes != memory->bytes || tag.type != memory->type
               : whole_pages(memory->bytes) > whole_pages(tag.bytes)) {
        fake_violation("vkAllocateMemory: imports %llu bytes of type %u as %llu bytes of type %u", tag.bytes, tag.type,
                       (unsigned long long)memory->bytes, memory->type);
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    }
    memory->imported = import->handleType;
    memory->fd = import->fd;
    return VK_SUCCESS;
}

static VkResult map_bytes(fake_memory *memory)
{
    const VkMemoryPropertyFlags flags = type_of(memory)->propertyFlags;
    const size_t size = whole_pages(memory->bytes);
    const int sharing = memory->fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, sharing, memory->fd, 0);
    if (bytes == MAP_FAILED) {
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    memory->device_bytes = bytes;
    /* The contents of new memory are undefined. */
    if (!memory->imported) {
        memset(bytes, FRESH_BYTE, size < FRESH_MOST ? size : FRESH_MOST);
    }
    if (!(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT)) {
        return VK_SUCCESS;
    }
    if (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) {
        memory->host_bytes = memory->device_bytes;
        return VK_SUCCESS;
    }
    bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    memory->host_bytes = bytes;
    memset(bytes, STALE_BYTE, size < FRESH_MOST ? size : FRESH_MOST);
    return VK_SUCCESS;
}

static void unmap_bytes(fake_memory *memory)
{
    const size_t size = whole_pages(memory->bytes);
    if (memory->imported & VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT) {
        return;
    }
    if (memory->host_bytes && memory->host_bytes != memory->device_bytes) {
        munmap(memory->host_bytes, size);
    }
    if (memory->device_bytes) {
        munmap(memory->device_bytes, size);
    }
    if (memory->fd >= 0) {
        close(memory->fd);
    }
}

static VkResult fill_in(fake_memory *memory, const VkMemoryAllocateInfo *info)
{
    const VkImportMemoryFdInfoKHR *fd = fake_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);
    const VkImportMemoryHostPointerInfoEXT *host =
        fake_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
    const VkExportMemoryAllocateInfo *export = fake_chained(info->pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
    const VkMemoryAllocateFlagsInfo *flags = fake_chained(info->pNext, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    const VkMemoryDedicatedAllocateInfo *dedicated =
        fake_chained(info->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO);
    memory->addressable = flags && flags->flags & VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    memory->dedicated_to = dedicated ? (fake_object *)dedicated->buffer : NULL;
    memory->exportable = export ? export->handleTypes : 0;
    if (memory->exportable && !(memory->object.device->extensions >> EXTERNAL_MEMORY_FD & 1)) {
        fake_violation("vkAllocateMemory: exportable memory without VK_KHR_external_memory_fd");
    }
    if (fake_get_script()->dedicated_fds && (memory->exportable || fd) && !memory->dedicated_to) {
        fake_violation("vkAllocateMemory: descriptors of this driver are of dedicated memory alone");
    }
    if (host) {
        const VkDeviceSize alignment = fake_get_script()->import_alignment;
        if ((uintptr_t)host->pHostPointer % alignment || memory->bytes % alignment) {
            fake_violation("vkAllocateMemory: %p with %llu bytes is not aligned for import", host->pHostPointer,
                           (unsigned long long)memory->bytes);
            return VK_ERROR_INVALID_EXTERNAL_HANDLE;
        }
        memory->imported = host->handleType;
        memory->host_bytes = memory->device_bytes = host->pHostPointer;
        return VK_SUCCESS;
    }
    /* A structure without a handle type counts as absent. */
    if (fd && fd->handleType) {
        VkResult result = take_fd(memory, fd);
        if (result) {
            return result;
        }
    } else if (memory->exportable) {
        VkResult result = back_by_fd(memory);
        if (result) {
            return result;
        }
    }
    return map_bytes(memory);
}

static VkResult reserve(fake_device *device, const fake_memory *memory)
{
    const fake_script *script = fake_get_script();
    const uint32_t heap = type_of(memory)->heapIndex;
    const VkDeviceSize size = properties_of(device)->memoryHeaps[heap].size;
    VkResult result = VK_SUCCESS;
    if (memory->bytes > size) {
        fake_violation("vkAllocateMemory: %llu bytes are more than heap %u has", (unsigned long long)memory->bytes,
                       heap);
    }
    pthread_mutex_lock(&fake_lock);
    VkDeviceSize *used = &heap_used[device->physical->index][heap];
    if (device->allocations >= script->allocation_count) {
        result = VK_ERROR_TOO_MANY_OBJECTS;
    } else if (memory->bytes > script->allocation_size || (counts_for_heap(memory) && memory->bytes > size - *used)) {
        result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    } else {
        device->allocations++;
        *used += counts_for_heap(memory) ? memory->bytes : 0;
    }
    pthread_mutex_unlock(&fake_lock);
    if (result == VK_ERROR_TOO_MANY_OBJECTS) {
        fake_violation("vkAllocateMemory: more than maxMemoryAllocationCount allocations");
    }
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkAllocateMemory(VkDevice handle, const VkMemoryAllocateInfo *info,
                                                     const VkAllocationCallbacks *allocator, VkDeviceMemory *out_memory)
{
    (void)allocator;
    VkResult result = fake_enter(FN_vkAllocateMemory);
    fake_device *device = fake_find(handle, A_DEVICE, "vkAllocateMemory");
    if (result || !device) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    if (info->memoryTypeIndex >= properties_of(device)->memoryTypeCount || info->allocationSize == 0) {
        fake_violation("vkAllocateMemory: %llu bytes of type %u", (unsigned long long)info->allocationSize,
                       info->memoryTypeIndex);
        return VK_ERROR_UNKNOWN;
    }
    fake_memory *memory = fake_make(device, A_MEMORY, sizeof *memory);
    if (!memory) {
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    memory->bytes = info->allocationSize;
    memory->type = info->memoryTypeIndex;
    memory->fd = -1;
    result = fill_in(memory, info);
    if (!result) {
        result = reserve(device, memory);
    }
    if (result) {
        /* If the import fails, the caller keeps the descriptor. */
        memory->fd = memory->imported ? -1 : memory->fd;
        unmap_bytes(memory);
        (void)fake_destroy(memory, A_MEMORY, "vkAllocateMemory");
        return result;
    }
    *out_memory = (VkDeviceMemory)memory;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkFreeMemory(VkDevice handle, VkDeviceMemory object,
                                             const VkAllocationCallbacks *allocator)
{
    (void)handle, (void)allocator;
    fake_count(FN_vkFreeMemory);
    fake_memory *memory = fake_destroy(object, A_MEMORY, "vkFreeMemory");
    if (!memory) {
        return;
    }
    pthread_mutex_lock(&fake_lock);
    memory->object.device->allocations--;
    if (counts_for_heap(memory)) {
        heap_used[memory->object.device->physical->index][type_of(memory)->heapIndex] -= memory->bytes;
    }
    pthread_mutex_unlock(&fake_lock);
    unmap_bytes(memory);
}

/* ---- mapping */

VKAPI_ATTR VkResult VKAPI_CALL fake_vkMapMemory(VkDevice handle, VkDeviceMemory object, VkDeviceSize offset,
                                                VkDeviceSize size, VkMemoryMapFlags flags, void **out_pointer)
{
    (void)handle, (void)flags;
    VkResult result = fake_enter(FN_vkMapMemory);
    fake_memory *memory = fake_find(object, A_MEMORY, "vkMapMemory");
    if (result || !memory) {
        return result ? result : VK_ERROR_MEMORY_MAP_FAILED;
    }
    const VkDeviceSize end = size == VK_WHOLE_SIZE ? memory->bytes : offset + size;
    if (!(type_of(memory)->propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) || memory->mapped_end ||
        end > memory->bytes || offset >= end) {
        fake_violation("vkMapMemory: the memory is not host visible, is mapped already, or is smaller");
        return VK_ERROR_MEMORY_MAP_FAILED;
    }
    memory->mapped_begin = offset;
    memory->mapped_end = end;
    *out_pointer = fake_get_script()->maps_nowhere ? MAP_FAILED : memory->host_bytes + offset;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL fake_vkUnmapMemory(VkDevice handle, VkDeviceMemory object)
{
    (void)handle;
    fake_count(FN_vkUnmapMemory);
    fake_memory *memory = fake_find(object, A_MEMORY, "vkUnmapMemory");
    if (memory && !memory->mapped_end) {
        fake_violation("vkUnmapMemory: the memory is not mapped");
    }
    if (memory) {
        memory->mapped_end = 0;
    }
}

static void bring_together(const char *call, uint32_t count, const VkMappedMemoryRange *ranges, bool to_device)
{
    const VkDeviceSize atom = fake_get_script()->atom;
    for (uint32_t r = 0; r < count; r++) {
        fake_memory *memory = fake_find(ranges[r].memory, A_MEMORY, call);
        if (!memory) {
            continue;
        }
        const VkDeviceSize begin = ranges[r].offset;
        const VkDeviceSize end = ranges[r].size == VK_WHOLE_SIZE ? memory->mapped_end : begin + ranges[r].size;
        if (begin < memory->mapped_begin || end > memory->mapped_end || begin >= end || begin % atom ||
            (end % atom && end != memory->bytes)) {
            fake_violation("%s: bytes %llu to %llu are not mapped, or no whole atoms", call, (unsigned long long)begin,
                           (unsigned long long)end);
            continue;
        }
        if (memory->host_bytes != memory->device_bytes) {
            unsigned char *to = to_device ? memory->device_bytes : memory->host_bytes;
            memcpy(to + begin, (to_device ? memory->host_bytes : memory->device_bytes) + begin, (size_t)(end - begin));
        }
    }
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkFlushMappedMemoryRanges(VkDevice handle, uint32_t count,
                                                              const VkMappedMemoryRange *ranges)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkFlushMappedMemoryRanges);
    if (!result) {
        bring_together("vkFlushMappedMemoryRanges", count, ranges, true);
    }
    return result;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkInvalidateMappedMemoryRanges(VkDevice handle, uint32_t count,
                                                                   const VkMappedMemoryRange *ranges)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkInvalidateMappedMemoryRanges);
    if (!result) {
        bring_together("vkInvalidateMappedMemoryRanges", count, ranges, false);
    }
    return result;
}

/* ---- exporting and importing */

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetMemoryFdKHR(VkDevice handle, const VkMemoryGetFdInfoKHR *info, int *out_fd)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkGetMemoryFdKHR);
    const fake_memory *memory = fake_find(info->memory, A_MEMORY, "vkGetMemoryFdKHR");
    if (result || !memory) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    if (!(memory->exportable & info->handleType)) {
        fake_violation("vkGetMemoryFdKHR: the memory was not made for this kind of handle");
        return VK_ERROR_UNKNOWN;
    }
    *out_fd = fcntl(memory->fd, F_DUPFD_CLOEXEC, 3);
    return *out_fd < 0 ? VK_ERROR_TOO_MANY_OBJECTS : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetMemoryFdPropertiesKHR(VkDevice handle, VkExternalMemoryHandleTypeFlagBits type,
                                                               int fd, VkMemoryFdPropertiesKHR *properties)
{
    (void)handle;
    VkResult result = fake_enter(FN_vkGetMemoryFdPropertiesKHR);
    if (result) {
        return result;
    }
    if (type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT) {
        fake_violation("vkGetMemoryFdPropertiesKHR: asked for an opaque descriptor");
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    }
    label tag;
    if (!read_fd(fd, type, &tag)) {
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    }
    properties->memoryTypeBits = 1u << tag.type;
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetMemoryHostPointerPropertiesEXT(VkDevice handle,
                                                                        VkExternalMemoryHandleTypeFlagBits type,
                                                                        const void *pointer,
                                                                        VkMemoryHostPointerPropertiesEXT *properties)
{
    (void)type;
    VkResult result = fake_enter(FN_vkGetMemoryHostPointerPropertiesEXT);
    const fake_device *device = fake_find(handle, A_DEVICE, "vkGetMemoryHostPointerPropertiesEXT");
    unsigned char present = 0;
    if (result || !device) {
        return result ? result : VK_ERROR_UNKNOWN;
    }
    if ((uintptr_t)pointer % fake_get_script()->import_alignment) {
        fake_violation("vkGetMemoryHostPointerPropertiesEXT: %p is not aligned", pointer);
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    }
    if (mincore((void *)(uintptr_t)pointer, 1, &present)) {
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    }
    const VkPhysicalDeviceMemoryProperties *memory = properties_of(device);
    properties->memoryTypeBits = 0;
    for (uint32_t t = 0; t < memory->memoryTypeCount; t++) {
        const VkMemoryPropertyFlags both = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        properties->memoryTypeBits |= (memory->memoryTypes[t].propertyFlags & both) == both ? 1u << t : 0;
    }
    return VK_SUCCESS;
}
