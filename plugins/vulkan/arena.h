/* vulkan/arena.h: resources that launches need until they finish. These are uniform block values and, if descriptors
 * cannot be pushed, descriptor sets.
 *
 * An arena is a list of pages. Each page has a descriptor pool and host-visible memory, which are created on first use.
 * An arena belongs to a queue's batch, to an internal stream or to a recording. Those of batches and streams are reset
 * when the command buffer is begun again, because the device has stopped using it by then. That of a recording is never
 * reset, because each of its command buffers keeps its resources.
 */
#ifndef GPUHAL_VULKAN_ARENA_H
#define GPUHAL_VULKAN_ARENA_H

#include "driver.h"

typedef struct gpuhal_vulkan_page {
    struct gpuhal_vulkan_page *next;
    VkDescriptorPool pool;          /* NULL if not created yet */
    uint32_t sets, buffers, blocks; /* used descriptors of `pool` */
    gpuhal_memory uniform;          /* object NULL: not allocated yet */
    uint64_t bytes;                 /* bytes of `uniform` in use */
} gpuhal_vulkan_page;

/* A zero-initialized arena is empty. */
typedef struct gpuhal_vulkan_arena {
    gpuhal_vulkan_page *first;
    gpuhal_vulkan_page *current; /* all earlier pages are full; NULL means the first page */
} gpuhal_vulkan_arena;

typedef struct gpuhal_vulkan_values {
    VkBuffer buffer;
    uint64_t offset;
    void *host;
} gpuhal_vulkan_values;

/* The device must not be using the arena's resources. */
gpuhal_status gpuhal_vulkan_arena_reset(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena);
void gpuhal_vulkan_arena_finish(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena);
/* Allocates the resources for one launch: the descriptor sets that the kernel uses (unless descriptors are pushed),
 * each at its number, and space for the values (if the kernel has a uniform block). */
gpuhal_status gpuhal_vulkan_arena_take(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena,
                                       const gpuhal_plugin_kernel *kernel, VkDescriptorSet *out_sets,
                                       gpuhal_vulkan_values *out_values);

#endif
