/* vulkan/program.h: declarations of program.c, kernel_check.c, kernel.c, launch.c and recording.c.
 *
 * A program is a shader module with a pipeline cache that all its kernels share. A kernel is a pipeline with its
 * layout, compiled when the kernel is created. A launch records the pipeline, its descriptors, its values and the
 * dispatch. Descriptors are pushed if the device supports pushing them and the kernel uses one set. Otherwise they are
 * allocated in the arena of the batch, internal stream or recording that records the launch. Uniform block values are
 * also allocated in this arena.
 */
#ifndef GPUHAL_VULKAN_PROGRAM_H
#define GPUHAL_VULKAN_PROGRAM_H

#include "queue.h"
#include "spirv.h"

/* Maximum size of push constants; few devices support more. */
#define GPUHAL_VULKAN_PUSH_BYTES 256u

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    gpuhal_vulkan_module code;
    VkShaderModule module;
    VkPipelineCache cache;
};

/* Descriptors of consecutive bindings of one type, which one write fills. */
typedef struct gpuhal_vulkan_run {
    VkDescriptorType type;
    uint32_t set, binding, count;
    uint32_t first; /* number of the first buffer or uniform block */
} gpuhal_vulkan_run;

static inline VkDescriptorType gpuhal_vulkan_descriptor_type(gpuhal_vulkan_binding_kind kind)
{
    return kind == GPUHAL_VULKAN_UNIFORM ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

/* The location of a value parameter. */
typedef struct gpuhal_vulkan_place {
    uint32_t block, offset;
} gpuhal_vulkan_place;

struct gpuhal_plugin_kernel {
    gpuhal_plugin_device *device;
    VkDescriptorSetLayout set_layouts[GPUHAL_VULKAN_SETS]; /* also of unused sets below the last */
    uint32_t set_count;
    uint32_t used_sets; /* a bit for each set with bindings */
    VkPipelineLayout layout;
    VkPipeline pipeline;
    uint32_t buffer_count;  /* buffer parameters that the code can use */
    uint32_t storage_count; /* storage descriptors, without those of unused bindings */
    uint32_t block_count;   /* uniform blocks */
    struct {
        uint32_t offset;                /* in the launch's part of the arena */
        uint32_t bytes;                 /* in whole words */
    } blocks[GPUHAL_VULKAN_BLOCKS + 1]; /* the push constants are blocks[block_count] */
    uint32_t uniform_bytes;             /* of all uniform blocks in the arena */
    bool pushes;                        /* descriptors are pushed */
    uint32_t run_count, parameter_count;
    gpuhal_vulkan_run *runs;
    gpuhal_vulkan_place *places; /* of each parameter that is a value */
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

/* The part of an arena that one launch uses. */
typedef struct gpuhal_vulkan_resources {
    VkDescriptorSet sets[GPUHAL_VULKAN_SETS];
    gpuhal_vulkan_values values;
} gpuhal_vulkan_resources;

/* Allocates the resources of one launch, if the kernel needs any. */
gpuhal_status gpuhal_vulkan_launch_resources(const gpuhal_plugin_kernel *kernel, gpuhal_vulkan_arena *arena,
                                             gpuhal_vulkan_resources *out_resources);
/* Records everything except barriers and the pipeline, which must be bound. The device must not be using the
 * resources. */
void gpuhal_vulkan_record_launch(const gpuhal_plugin_kernel *kernel, const gpuhal_plugin_launch *launch,
                                 VkCommandBuffer commands, const gpuhal_vulkan_resources *resources);
/* Lists the bytes that the launch accesses. Returns their number, which is larger than GPUHAL_VULKAN_HAZARDS if they
 * do not fit. */
uint32_t gpuhal_vulkan_launch_touches(const gpuhal_plugin_launch *launch,
                                      gpuhal_vulkan_touch out_touches[GPUHAL_VULKAN_HAZARDS]);
gpuhal_status gpuhal_vulkan_launch(gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel,
                                   const gpuhal_plugin_launch *launch);

/* recording.c */
gpuhal_status gpuhal_vulkan_recording_create(gpuhal_plugin_device *device, const gpuhal_plugin_step *steps,
                                             uint32_t count, gpuhal_plugin_recording **out_recording);
gpuhal_status gpuhal_vulkan_recording_set(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps,
                                          uint32_t count);
gpuhal_status gpuhal_vulkan_recording_run(gpuhal_plugin_queue *queue, gpuhal_plugin_recording *recording);
void gpuhal_vulkan_recording_destroy(gpuhal_plugin_recording *recording);

#endif
