/* vulkan/program.h: declarations of program.c, kernel_check.c, kernel.c and launch.c.
 *
 * A program is a shader module with a pipeline cache that all its kernels share. A kernel is a pipeline with its
 * layout, compiled when the kernel is created. A launch records the pipeline, its descriptors, its values and the
 * dispatch. Descriptors are pushed if the device supports pushing them. Otherwise they are allocated in the arena of
 * the batch or internal stream that records the launch. Uniform block values are also allocated in this arena.
 */
#ifndef GPUHAL_VULKAN_PROGRAM_H
#define GPUHAL_VULKAN_PROGRAM_H

#include "device.h"
#include "spirv.h"

/* Maximum size of push constants; few devices support more. */
#define GPUHAL_VULKAN_PUSH_BYTES 256u

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    gpuhal_vulkan_module code;
    VkShaderModule module;
    VkPipelineCache cache;
};

struct gpuhal_plugin_kernel {
    gpuhal_plugin_device *device;
    VkDescriptorSetLayout set_layout; /* NULL if the kernel has no descriptors */
    VkPipelineLayout layout;
    VkPipeline pipeline;
    uint32_t buffer_count;
    uint32_t value_bytes; /* size of the push constants or of the uniform block, in whole words */
    bool pushes;          /* descriptors are pushed */
    bool uniform;         /* values are in a uniform block, at binding `buffer_count` */
    uint32_t *offsets;    /* offset of each value parameter within the values */
    uint32_t parameter_count;
    gpuhal_parameter parameters[];
};

/* kernel_check.c */

/* A kernel that is being created. */
typedef struct gpuhal_vulkan_kernel_plan {
    gpuhal_plugin_program *program;
    const gpuhal_kernel_desc *desc;
    gpuhal_vulkan_interface interface;
    uint32_t group[3];
    uint32_t required_subgroup; /* 0 for any */
    /* The specialization constants that the code declares. Each constant has 8 bytes in `data`. `entries` and `data`
     * are malloc'ed and must be freed, even after a fault. */
    VkSpecializationMapEntry *entries;
    uint64_t *data;
    uint32_t entry_count;
    gpuhal_vulkan_fault fault;
} gpuhal_vulkan_kernel_plan;

/* Finds the entry point, and checks that code, description and device fit together. Returns false with the fault. */
bool gpuhal_vulkan_kernel_plan_make(gpuhal_vulkan_kernel_plan *plan);
/* Allocates the kernel with its parameters, without Vulkan objects. Returns NULL with the fault. Owner: caller,
 * free(). */
gpuhal_plugin_kernel *gpuhal_vulkan_kernel_plan_kernel(gpuhal_vulkan_kernel_plan *plan);

/* kernel.c */
gpuhal_status gpuhal_vulkan_kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                          gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel);
void gpuhal_vulkan_kernel_destroy(gpuhal_plugin_kernel *kernel);

/* launch.c */
gpuhal_status gpuhal_vulkan_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch);

#endif
