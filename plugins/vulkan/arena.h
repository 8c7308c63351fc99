/* vulkan/arena.h: resources that the launches of one command buffer need until they have ended: descriptor sets, if
 * they cannot be pushed, and the values of uniform blocks.
 *
 * An arena is a list of pages, each with a descriptor pool and memory that the host writes, made when first needed. It
 * belongs to a batch of a queue or to an internal stream, and is emptied when the command buffer is begun again: by
 * then the device no longer uses it.
 */
#ifndef GPUHAL_VULKAN_ARENA_H
#define GPUHAL_VULKAN_ARENA_H

#include "driver.h"

typedef struct gpuhal_vulkan_page {
    struct gpuhal_vulkan_page *next;
    VkDescriptorPool pool; /* NULL: none yet */
    uint32_t sets, buffers;
    gpuhal_memory uniform; /* object NULL: none yet */
    uint64_t bytes;        /* taken of it */
} gpuhal_vulkan_page;

/* All zero: empty. */
typedef struct gpuhal_vulkan_arena {
    gpuhal_vulkan_page *first;
    gpuhal_vulkan_page *current; /* those before it are full; NULL: the first */
} gpuhal_vulkan_arena;

/* The place of a launch's values. */
typedef struct gpuhal_vulkan_values {
    VkBuffer buffer;
    uint64_t offset;
    void *host;
} gpuhal_vulkan_values;

/* Empties the arena. Nothing of it may be in use. */
gpuhal_status gpuhal_vulkan_arena_reset(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena);
void gpuhal_vulkan_arena_finish(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena);
/* Takes the resources of one launch of the kernel: a set (NULL if its descriptors are pushed) and room for its values
 * (if they are in a uniform block). */
gpuhal_status gpuhal_vulkan_arena_take(gpuhal_plugin_device *device, gpuhal_vulkan_arena *arena,
                                       const gpuhal_plugin_kernel *kernel, VkDescriptorSet *out_set,
                                       gpuhal_vulkan_values *out_values);

#endif
