/* vulkan/memory.h: declarations of memory.c, device_memory.c, type.c and import.c, with the state of an allocation in
 * progress. */
#ifndef GPUHAL_VULKAN_MEMORY_H
#define GPUHAL_VULKAN_MEMORY_H

#include "device.h"

typedef struct gpuhal_vulkan_request {
    const gpuhal_alloc *alloc;
    VkExternalMemoryHandleTypeFlags exported; /* handle types to export */
    VkExternalMemoryHandleTypeFlags named;    /* all handle types of the VkBuffer: `exported` and the imported type */
    VkMemoryRequirements requirements;
    bool dedicated;
    gpuhal_vulkan_buffer *buffer; /* the VkBuffer already exists, the memory does not */
} gpuhal_vulkan_request;

#define GPUHAL_VULKAN_NO_TYPE UINT32_MAX

/* type.c */

/* Returns the best memory type for the kind among the types in @p bits, or GPUHAL_VULKAN_NO_TYPE. */
uint32_t gpuhal_vulkan_pick_type(const gpuhal_vulkan_hardware *hardware, gpuhal_memory_kind kind, uint32_t bits);
/* Like gpuhal_vulkan_pick_type(), but with unified memory falls back to the best type for upload memory. */
uint32_t gpuhal_vulkan_next_type(const gpuhal_vulkan_hardware *hardware, gpuhal_memory_kind kind, uint32_t bits);
/* Returns whether memory of this kind is mapped if its type has these flags. */
bool gpuhal_vulkan_shows_host(gpuhal_memory_kind kind, VkMemoryPropertyFlags flags);

/* device_memory.c */

/* Allocates the VkDeviceMemory and counts it against the limit. @p import is a structure to chain, or NULL if nothing
 * is imported. */
VkResult gpuhal_vulkan_take_memory(gpuhal_plugin_device *device, gpuhal_vulkan_request *request, uint32_t type,
                                   uint64_t bytes, const void *import);
/* Report why the VkDeviceMemory could not be allocated. */
gpuhal_status gpuhal_vulkan_memory_refused(gpuhal_plugin_device *device, VkResult code);
gpuhal_status gpuhal_vulkan_too_large(gpuhal_plugin_device *device, uint64_t bytes, uint64_t most);
/* Allocates the memory of a request without an import. */
gpuhal_status gpuhal_vulkan_take_own(gpuhal_plugin_device *device, gpuhal_vulkan_request *request);

/* memory.c: the slots. */

gpuhal_status gpuhal_vulkan_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                     gpuhal_memory *out_memory);
void gpuhal_vulkan_release(gpuhal_plugin_device *device, gpuhal_memory *memory);

/* import.c */

/* Fills in `exported`, `named` and `dedicated`. Reports NOT_SUPPORTED for handle kinds that the opened device cannot
 * share, or cannot combine in one memory.
 */
gpuhal_status gpuhal_vulkan_read_handles(gpuhal_plugin_device *device, gpuhal_vulkan_request *request);
/* Imports the memory of a request whose alloc->handle has a kind. On success the driver owns a duplicate of the file
 * descriptor. */
gpuhal_status gpuhal_vulkan_import(gpuhal_plugin_device *device, gpuhal_vulkan_request *request);
gpuhal_status gpuhal_vulkan_export(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                   gpuhal_handle *out_handle, uint64_t *out_offset);
/* Returns the Vulkan handle type for a kind, or 0 if there is none or the device was opened without support for it. */
VkExternalMemoryHandleTypeFlagBits gpuhal_vulkan_handle_type(const gpuhal_plugin_device *device,
                                                             gpuhal_handle_kind kind);

#endif
