/* vulkan/import.c: imports and exports memory.
 *
 * A successful vkAllocateMemory transfers ownership of the descriptor to the driver; after a failure the caller still
 * owns the descriptor. Some drivers violate this rule (lavapipe closes a descriptor that it rejects), so drivers get a
 * duplicate. Drivers also do not check the descriptor: lavapipe reads from it, and reading a pipe blocks. So this file
 * rejects descriptors that cannot be memory.
 *
 * The specification requires shared buffers to be transferred to VK_QUEUE_FAMILY_EXTERNAL and back. The plugin omits
 * these transfers, because no known driver needs them for buffers, each would cost a submission, and the other side may
 * not use Vulkan. Commands must have finished before the other side accesses the memory. Blocking calls and events
 * ensure this.
 */
#include "memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

VkExternalMemoryHandleTypeFlagBits gpuhal_vulkan_handle_type(const gpuhal_plugin_device *device,
                                                             gpuhal_handle_kind kind)
{
    const struct {
        gpuhal_handle_kind kind;
        uint32_t bit;
        VkExternalMemoryHandleTypeFlagBits type;
    } all[] = {
        {GPUHAL_HANDLE_HOST_POINTER, GPUHAL_VULKAN_HOST_IMPORT,
         VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT},
        {GPUHAL_HANDLE_OPAQUE_FD, GPUHAL_VULKAN_OPAQUE_FD, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT},
        {GPUHAL_HANDLE_DMABUF_FD, GPUHAL_VULKAN_DMABUF_FD, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].kind == kind && (device->enabled & all[i].bit)) {
            return all[i].type;
        }
    }
    return 0;
}

static gpuhal_status not_offered(gpuhal_plugin_device *device, const char *why)
{
    return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, why);
}

/* One VkBuffer can have several handle types only if the driver reports them as compatible. Some types also require
 * dedicated memory.
 */
static bool fit_together(const gpuhal_plugin_device *device, gpuhal_vulkan_request *request)
{
    const VkExternalMemoryHandleTypeFlags types = request->named;
    bool fit = true;
    for (VkExternalMemoryHandleTypeFlags rest = types; rest; rest &= rest - 1) {
        const VkPhysicalDeviceExternalBufferInfo info = {
            .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
            .usage = gpuhal_vulkan_usage(device->enabled),
            .handleType = (VkExternalMemoryHandleTypeFlagBits)(rest & ~(rest - 1)),
        };
        VkExternalBufferProperties answer = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
        device->instance_api.vkGetPhysicalDeviceExternalBufferProperties(device->hardware.handle, &info, &answer);
        request->dedicated |= (answer.externalMemoryProperties.externalMemoryFeatures &
                               VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0;
        fit = fit && (types & ~(answer.externalMemoryProperties.compatibleHandleTypes | info.handleType)) == 0;
    }
    return fit;
}

gpuhal_status gpuhal_vulkan_read_handles(gpuhal_plugin_device *device, gpuhal_vulkan_request *request)
{
    const gpuhal_alloc *alloc = request->alloc;
    for (gpuhal_handle_kind kind = 0; kind < 32 && alloc->export_kinds >> kind != 0; kind++) {
        const bool wanted = alloc->export_kinds >> kind & 1;
        const VkExternalMemoryHandleTypeFlags type = wanted ? gpuhal_vulkan_handle_type(device, kind) : 0;
        if (wanted && (!type || kind == GPUHAL_HANDLE_HOST_POINTER)) {
            return not_offered(device,
                               "the driver, or the VkDevice that was adopted, cannot export memory in that form");
        }
        request->exported |= type;
    }
    request->named = request->exported;
    if (alloc->handle.kind != 0) {
        const VkExternalMemoryHandleTypeFlags type = gpuhal_vulkan_handle_type(device, alloc->handle.kind);
        if (!type) {
            return not_offered(device,
                               "the driver, or the VkDevice that was adopted, cannot import memory in that form");
        }
        request->named |= type;
        request->exported = 0; /* the caller duplicates the descriptor to share it further */
    }
    return fit_together(device, request)
               ? GPUHAL_OK
               : not_offered(device, "the driver cannot share one memory in all these forms");
}

static gpuhal_status refuse(gpuhal_plugin_device *device, const char *why)
{
    return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, why);
}

static gpuhal_status no_type(gpuhal_plugin_device *device)
{
    return not_offered(device, "the driver has no memory type that such memory can be imported as");
}

/* Flushing non-coherent memory would require a mapping, but the host must use the caller's address. */
static uint32_t coherent_bits(const gpuhal_vulkan_hardware *hardware)
{
    const VkMemoryPropertyFlags needed = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t bits = 0;
    for (uint32_t i = 0; i < hardware->memory.memoryTypeCount; i++) {
        bits |= (hardware->memory.memoryTypes[i].propertyFlags & needed) == needed ? 1u << i : 0;
    }
    return bits;
}

/* The requested kind does not apply to existing memory. A type with fast host reads matches host memory best. */
static uint32_t type_for_host(gpuhal_plugin_device *device, const gpuhal_vulkan_request *request,
                              uint32_t pointer_bits)
{
    const uint32_t bits = request->requirements.memoryTypeBits & pointer_bits & coherent_bits(&device->hardware);
    return gpuhal_vulkan_pick_type(&device->hardware, GPUHAL_MEMORY_READBACK, bits);
}

static gpuhal_status import_host(gpuhal_plugin_device *device, gpuhal_vulkan_request *request)
{
    const gpuhal_alloc *alloc = request->alloc;
    const uint64_t alignment = device->hardware.import_alignment;
    void *pointer = (char *)alloc->handle.as.pointer + alloc->import_offset;
    if (!alloc->handle.as.pointer || (uintptr_t)pointer % alignment != 0 || alloc->bytes % alignment != 0) {
        char text[128];
        snprintf(text, sizeof text,
                 "address and size of host memory must be multiples of import_alignment_bytes, which is %" PRIu64,
                 alignment);
        return refuse(device, text);
    }
    VkMemoryHostPointerPropertiesEXT answer = {.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkResult code = device->api.vkGetMemoryHostPointerPropertiesEXT(
        device->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, pointer, &answer);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkGetMemoryHostPointerPropertiesEXT", code);
    }
    const uint32_t type = type_for_host(device, request, answer.memoryTypeBits);
    if (request->requirements.size > alloc->bytes) {
        return not_offered(device, "the driver needs more bytes for such a buffer than the host memory has");
    }
    if (type == GPUHAL_VULKAN_NO_TYPE) {
        return no_type(device);
    }
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = pointer,
    };
    code = gpuhal_vulkan_take_memory(device, request, type, alloc->bytes, &import);
    return code == VK_SUCCESS ? GPUHAL_OK : gpuhal_vulkan_memory_refused(device, code);
}

static const char *const too_small =
    "the memory behind the file descriptor is smaller than requested, or does not exist";

/* Returns the reason why the descriptor cannot be exported memory, or NULL. Software drivers export memory files, and a
 * file's size is known. Without the size check lavapipe would report out of memory for a file that is too small. */
static const char *descriptor_fault(const gpuhal_plugin_device *device, const gpuhal_vulkan_request *request,
                                    struct stat *out_state)
{
    const gpuhal_os_handle handle = request->alloc->handle.as.os;
    const bool software = device->hardware.software;
    if (handle < 0 || handle > INT32_MAX || fstat((int)handle, out_state) != 0) {
        return "not an open file descriptor";
    }
    const mode_t format = out_state->st_mode & S_IFMT;
    const bool never =
        format == S_IFIFO || format == S_IFSOCK || format == S_IFDIR || format == S_IFBLK || format == S_IFLNK;
    if (never || (software && format != S_IFREG)) {
        return "a file descriptor of another kind, not of exported memory";
    }
    return software && (uint64_t)out_state->st_size < request->requirements.size ? too_small : NULL;
}

/* The driver may have closed the duplicate, and its number may already refer to another file. */
static void close_duplicate(int duplicate, const struct stat *original)
{
    struct stat state;
    if (fstat(duplicate, &state) == 0 && state.st_dev == original->st_dev && state.st_ino == original->st_ino) {
        close(duplicate);
    }
}

/* For an opaque descriptor the exporter's request determines the type; a dma-buf reports its own types. */
static uint32_t type_for_descriptor(gpuhal_plugin_device *device, const gpuhal_vulkan_request *request, int fd,
                                    VkResult *out_code)
{
    const uint32_t bits = request->requirements.memoryTypeBits;
    *out_code = VK_SUCCESS;
    if (request->alloc->handle.kind == GPUHAL_HANDLE_OPAQUE_FD) {
        return gpuhal_vulkan_pick_type(&device->hardware, request->alloc->kind, bits);
    }
    VkMemoryFdPropertiesKHR answer = {.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
    *out_code = device->api.vkGetMemoryFdPropertiesKHR(device->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT,
                                                       fd, &answer);
    return gpuhal_vulkan_pick_type(&device->hardware, request->alloc->kind, bits & answer.memoryTypeBits);
}

/* The end of a dma-buf is its size; the size of an opaque descriptor is unknown. */
static bool is_too_short(const gpuhal_vulkan_request *request, int fd, uint64_t bytes)
{
    const off_t end = request->alloc->handle.kind == GPUHAL_HANDLE_DMABUF_FD ? lseek(fd, 0, SEEK_END) : -1;
    return end > 0 && (uint64_t)end < bytes;
}

static gpuhal_status import_duplicate(gpuhal_plugin_device *device, gpuhal_vulkan_request *request, int fd,
                                      bool *out_taken)
{
    VkResult code;
    const uint32_t type = type_for_descriptor(device, request, fd, &code);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkGetMemoryFdPropertiesKHR", code);
    }
    if (type == GPUHAL_VULKAN_NO_TYPE) {
        return no_type(device);
    }
    /* Cannot overflow, because offset and bytes are at most allocation_max (checked by import_descriptor() and
     * check()). */
    const uint64_t bytes = request->alloc->import_offset + request->requirements.size;
    if (is_too_short(request, fd, bytes)) {
        return refuse(device, too_small);
    }
    const VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .handleType = gpuhal_vulkan_handle_type(device, request->alloc->handle.kind),
        .fd = fd,
    };
    code = gpuhal_vulkan_take_memory(device, request, type, bytes, &import);
    *out_taken = code == VK_SUCCESS;
    if (code == VK_SUCCESS) {
        request->buffer->memory_offset = request->alloc->import_offset;
        return GPUHAL_OK;
    }
    return gpuhal_vulkan_memory_refused(device, code);
}

/* Leaves the caller's descriptor open. gpuhal_vulkan_allocate() closes it only after binding and mapping, because these
 * steps may still fail. */
static gpuhal_status import_descriptor(gpuhal_plugin_device *device, gpuhal_vulkan_request *request)
{
    const gpuhal_alloc *alloc = request->alloc;
    struct stat state;
    const char *fault = descriptor_fault(device, request, &state);
    if (fault) {
        return refuse(device, fault);
    }
    const int fd = (int)alloc->handle.as.os;
    if (alloc->handle.kind == GPUHAL_HANDLE_OPAQUE_FD && alloc->import_offset != 0) {
        return refuse(device, "memory behind an opaque descriptor of Vulkan begins at offset 0");
    }
    if (alloc->handle.kind == GPUHAL_HANDLE_DMABUF_FD &&
        (alloc->import_offset > device->hardware.allocation_max ||
         alloc->import_offset % request->requirements.alignment != 0)) {
        return refuse(device, "the offset in the dma-buf is not a multiple of the alignment of buffers, or too large");
    }
    if (request->dedicated && alloc->import_offset != 0) {
        return not_offered(device, "the driver imports memory of a single buffer only, which must begin at offset 0");
    }
    const int duplicate = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (duplicate < 0) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "fcntl", 0, "no free file descriptor");
    }
    bool taken = false;
    gpuhal_status status = import_duplicate(device, request, duplicate, &taken);
    if (!taken) {
        close_duplicate(duplicate, &state);
    }
    return status;
}

gpuhal_status gpuhal_vulkan_import(gpuhal_plugin_device *device, gpuhal_vulkan_request *request)
{
    return request->alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER ? import_host(device, request)
                                                                     : import_descriptor(device, request);
}

gpuhal_status gpuhal_vulkan_export(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                   gpuhal_handle *out_handle, uint64_t *out_offset)
{
    const gpuhal_vulkan_buffer *buffer = gpuhal_vulkan_buffer_of(memory);
    gpuhal_status status = gpuhal_vulkan_alive(device);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (kind > 31 || !(buffer->export_kinds >> kind & 1)) {
        return not_offered(device, "the memory was imported, or not allocated for export in that form");
    }
    const VkMemoryGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
        .memory = buffer->memory,
        .handleType = gpuhal_vulkan_handle_type(device, kind),
    };
    int fd = -1;
    VkResult code = device->api.vkGetMemoryFdKHR(device->handle, &info, &fd);
    if (code != VK_SUCCESS) {
        return gpuhal_vulkan_result(device, "vkGetMemoryFdKHR", code);
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* lavapipe's descriptors stay open across exec */
    out_handle->kind = kind;
    out_handle->as.os = fd;
    *out_offset = buffer->memory_offset;
    return GPUHAL_OK;
}
