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

/* What launches of all kernels may have, and of those whose code does not fix the group size. */
#define GPUHAL_VULKAN_FORMS (GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_INDIRECT)
#define GPUHAL_VULKAN_SIZES (GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_PREPARED_SIZES)

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

/* Another group size of a kernel. */
typedef struct gpuhal_vulkan_size {
    struct gpuhal_vulkan_size *next;
    uint32_t group[3];
    VkPipeline pipeline;
} gpuhal_vulkan_size;

struct gpuhal_plugin_kernel {
    gpuhal_plugin_device *device;
    gpuhal_plugin_program *program;
    gpuhal_kernel_desc *desc; /* a copy, malloc'ed; NULL if the code fixes the group size */
    uint32_t group[3];
    _Atomic(gpuhal_vulkan_size *) sizes; /* that were prepared; sizes are added at the front, and not removed */
    VkDescriptorSetLayout set_layouts[GPUHAL_VULKAN_SETS]; /* also of unused sets below the last */
    uint32_t set_count;
    uint32_t used_sets; /* a bit for each set with bindings */
    VkPipelineLayout layout;
    VkPipeline pipeline;    /* of its own group size */
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
    bool sizes;                 /* the kernel can have other group sizes */
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
/* Checks that the layout and the arguments of @p kernel also fit the plan's group size. Returns false with the
 * fault. */
bool gpuhal_vulkan_kernel_plan_fits(gpuhal_vulkan_kernel_plan *plan, const gpuhal_plugin_kernel *kernel);

/* kernel.c */
gpuhal_status gpuhal_vulkan_kernel_create(gpuhal_plugin_program *program, const gpuhal_kernel_desc *desc,
                                          gpuhal_kernel_info *out_info, gpuhal_plugin_kernel **out_kernel);
void gpuhal_vulkan_kernel_destroy(gpuhal_plugin_kernel *kernel);
gpuhal_status gpuhal_vulkan_kernel_prepare(gpuhal_plugin_kernel *kernel, const uint32_t group_size[3]);
/* Finds the pipeline of the kernel's own size or of a prepared size. */
VkPipeline gpuhal_vulkan_find_pipeline(const gpuhal_plugin_kernel *kernel, const uint32_t group_size[3]);

/* Returns the pipeline of a launch, whose size is the kernel's own unless sizes were prepared. */
static inline VkPipeline gpuhal_vulkan_pipeline(const gpuhal_plugin_kernel *kernel, const uint32_t group_size[3])
{
    return atomic_load_explicit(&kernel->sizes, memory_order_relaxed) ? gpuhal_vulkan_find_pipeline(kernel, group_size)
                                                                      : kernel->pipeline;
}

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
