/* fakes/vulkan/fake.h: declarations that the files of the fake driver share.
 *
 * Devices and their objects begin with a fake_object. The memory of a destroyed object is kept for a while, so that a
 * later use of the object can be reported instead of crashing. fake_lock protects the state that threads share, except
 * the bytes of memory and the counters of report.c, which have a separate lock. Functions whose names end in `_locked`
 * require fake_lock, in report.c the counters' lock. Queues execute on their own threads, unless the script contains
 * `inline`. They release fake_lock while they execute the commands of a submission; only a timestamp acquires it. */
#ifndef GPUHAL_FAKE_VULKAN_FAKE_H
#define GPUHAL_FAKE_VULKAN_FAKE_H

#include "script.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vk_icd.h>

#include <pthread.h>
#include <stdlib.h>

typedef enum fake_level { LEVEL_GLOBAL, LEVEL_INSTANCE, LEVEL_DEVICE } fake_level;
#define NEVER UINT32_MAX /* requires the extension in all Vulkan versions */

/* A number and a type-checked declaration for each function. */
typedef enum fake_function {
#define FUNCTION(name, level, version, extension) FN_##name,
#define ALIAS(name, target, extension)
#include "functions.inc"
    FUNCTION_COUNT
} fake_function;
#undef FUNCTION
#define FUNCTION(name, level, version, extension) VKAPI_ATTR __typeof__(*(PFN_##name)0) fake_##name;
#include "functions.inc"
#undef FUNCTION
#undef ALIAS

typedef enum fake_kind {
    A_DEVICE,
    A_QUEUE,
    A_BUFFER,
    A_MEMORY,
    A_FENCE,
    A_SEMAPHORE,
    A_QUERY_POOL,
    A_COMMAND_POOL,
    A_COMMAND_BUFFER,
    A_SHADER_MODULE,
    A_PIPELINE_CACHE,
    A_SET_LAYOUT,
    A_PIPELINE_LAYOUT,
    A_PIPELINE,
    A_DESCRIPTOR_POOL,
    A_DESCRIPTOR_SET,
    KIND_COUNT
} fake_kind;

typedef struct fake_device fake_device;

typedef struct fake_object {
    VK_LOADER_DATA loader; /* must be first: the loader writes into dispatchable objects here */
    fake_kind kind;
    bool dead;
    unsigned in_use; /* number of uses by unfinished submissions */
    fake_device *device;
    struct fake_object *next; /* next object in the same bucket of object.c */
} fake_object;

typedef struct fake_physical {
    VK_LOADER_DATA loader;
    unsigned index;
    uint32_t api; /* the lower of the device's and the application's versions */
} fake_physical;

typedef struct fake_instance {
    VK_LOADER_DATA loader;
    uint32_t api;
    fake_physical physical[FAKE_DEVICES];
} fake_instance;

typedef struct fake_memory {
    fake_object object;
    VkDeviceSize bytes;
    uint32_t type;
    unsigned char *device_bytes;           /* the device's copy */
    unsigned char *host_bytes;             /* the host's copy; the same memory if coherent */
    VkDeviceSize mapped_begin, mapped_end; /* end is 0 if not mapped */
    VkExternalMemoryHandleTypeFlags exportable, imported;
    int fd; /* -1 unless the memory is exportable, or imported by descriptor */
    bool addressable;
    fake_object *dedicated_to;
} fake_memory;

enum { OWNER_NONE = -1 };

typedef struct fake_buffer {
    fake_object object;
    VkDeviceSize bytes;
    VkBufferUsageFlags usage;
    VkExternalMemoryHandleTypeFlags external;
    bool concurrent;
    uint32_t families; /* CONCURRENT buffers: bits 1 << family */
    int owner;         /* EXCLUSIVE buffers: the family that last used or acquired the buffer, or OWNER_NONE */
    fake_memory *memory;
    VkDeviceSize memory_offset;
} fake_buffer;

typedef struct fake_fence {
    fake_object object;
    bool signaled;
} fake_fence;

typedef struct fake_semaphore {
    fake_object object;
    bool timeline, signaled;
    uint64_t value, promised; /* promised: the highest value that a submitted signal will set */
} fake_semaphore;

typedef struct fake_query_pool {
    fake_object object;
    uint32_t count;
    struct fake_query {
        enum { QUERY_UNKNOWN, QUERY_RESET, QUERY_WRITTEN } state;
        unsigned in_use;
        uint64_t value;
    } *queries;
} fake_query_pool;

enum { FAKE_SETS = 4, FAKE_BINDINGS = 40, FAKE_CONSTANTS = 128 };

typedef struct fake_binding {
    fake_buffer *buffer;
    VkDeviceSize offset, bytes;
} fake_binding;

typedef struct fake_set_layout {
    fake_object object;
    bool pushed;
    uint32_t count; /* descriptors, in the order of the bindings */
    struct {
        uint32_t binding, element;
        VkDescriptorType type;
    } descriptors[FAKE_BINDINGS];
} fake_set_layout;

typedef struct fake_pipeline_layout {
    fake_object object;
    fake_set_layout *sets[FAKE_SETS]; /* NULL if there is none */
    uint32_t constant_bytes;
} fake_pipeline_layout;

typedef struct fake_pipeline {
    fake_object object;
    fake_pipeline_layout *layout;
    enum { UNKNOWN_CODE, SAXPY, SCALE } code; /* tests/system/shaders */
    uint32_t threads, repeat;                 /* of saxpy: specialization constants 0 and 1 */
    bool has_base;                            /* VK_PIPELINE_CREATE_DISPATCH_BASE_BIT */
} fake_pipeline;

typedef struct fake_descriptor_set {
    fake_object object;
    struct fake_descriptor_set *next; /* in the same pool */
    const fake_set_layout *layout;
    fake_binding bindings[FAKE_BINDINGS];
} fake_descriptor_set;

/* A dispatch and its state. */
typedef struct fake_launch {
    struct fake_launch *next; /* in the same command buffer */
    fake_pipeline *pipeline;
    fake_descriptor_set *sets[FAKE_SETS]; /* NULL if pushed */
    fake_binding bindings[FAKE_SETS][FAKE_BINDINGS];
    unsigned char constants[FAKE_CONSTANTS];
    uint32_t base[3], groups[3];
    fake_buffer *indirect; /* has the groups, from `indirect_offset` on; NULL for a dispatch with numbers */
    VkDeviceSize indirect_offset;
} fake_launch;

typedef struct fake_command {
    enum { COPY, FILL, BARRIER, TRANSFER_OWNER, TIMESTAMP, DISPATCH } what;
    fake_launch *launch;
    VkPipelineStageFlags earlier, later; /* the stage masks of a barrier */
    fake_buffer *from, *to;
    VkDeviceSize from_offset, to_offset, bytes;
    uint32_t data;
    int from_family, to_family;
    fake_query_pool *pool;
    uint32_t query;
} fake_command;

typedef struct fake_command_buffer fake_command_buffer;

typedef struct fake_command_pool {
    fake_object object;
    uint32_t family;
    VkCommandPoolCreateFlags flags;
    fake_command_buffer *first;
} fake_command_pool;

struct fake_command_buffer {
    fake_object object;
    fake_command_pool *pool;
    fake_command_buffer *next_in_pool;
    enum { INITIAL, RECORDING, EXECUTABLE, INVALID } state;
    VkCommandBufferUsageFlags usage;
    uint32_t count, room;
    fake_command *commands;
    fake_launch *launches; /* of the commands */
    fake_launch bound;     /* the state for the next dispatch */
};

typedef struct fake_queue fake_queue;

struct fake_device {
    fake_object object;
    fake_physical *physical;
    uint32_t api;
    uint32_t enabled;    /* bits 1 << fake_extension; core features count as their extension */
    uint32_t extensions; /* bits 1 << fake_extension: enabled by name at device creation */
    bool lost, closing;
    unsigned alive[KIND_COUNT];
    unsigned allocations;
    unsigned queue_count;
    fake_queue *queues[FAKE_FAMILIES * FAKE_QUEUES];
};

/* report.c */
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed; /* signaled on every change that a thread may wait for */

void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Counts a call. Returns the code that the call must return immediately, or VK_SUCCESS. */
VkResult fake_enter(fake_function function);
/* Counts a call of a function that cannot fail. */
void fake_count(fake_function function);
bool fake_submission_hangs(uint32_t family, bool *out_loses); /* counts one submission with commands */
bool fake_hangs(void);

/* object.c. fake_make() returns NULL if memory is short. fake_find() and fake_destroy() look up the program's objects
 * and report invalid handles. */
unsigned fake_alive(void); /* all except queues */
void fake_lose_all(void);  /* every device */
void *fake_make(fake_device *device, fake_kind kind, size_t size);
void *fake_find(const void *handle, fake_kind kind, const char *call);
/* Marks the object as destroyed and returns it. Returns NULL for NULL, for a handle that is not an existing object of
 * this kind, and for an object that unfinished work uses. */
void *fake_destroy(const void *handle, fake_kind kind, const char *call);
const char *fake_kind_name(fake_kind kind);
/* Waits for fake_changed until this time of the monotonic clock, or without a limit for UINT64_MAX. Returns false if
 * the time has passed. */
bool fake_wait_locked(uint64_t until_ns);
uint64_t fake_now_ns(void);
uint64_t fake_deadline_ns(uint64_t timeout_ns);

/* icd.c: returns the function of this name, or NULL if neither the version nor the extensions include it, if its level
 * is above @p most, or if the script removes it. */
PFN_vkVoidFunction fake_function_named(const char *name, fake_level most, uint32_t api, uint32_t extensions);

/* physical.c: reads the new device's features as bits of fake_extension. Returns false if a feature is not
 * supported. */
bool fake_read_features(const void *chain, uint32_t *out_enabled);
const void *fake_chained(const void *chain, VkStructureType type);

/* memory.c: bytes in use per heap, for VK_EXT_memory_budget. */
VkDeviceSize fake_heap_used(unsigned device, uint32_t heap);

/* queue.c */
fake_queue *fake_queue_start(fake_device *device, uint32_t family);
void fake_queue_stop(fake_queue *queue);
uint32_t fake_queue_family(const fake_queue *queue);
void fake_lose_locked(fake_device *device);
/* If queues have no threads, executes all work that is ready. */
void fake_progress_locked(fake_device *device);

/* commands.c: the first function appends a command and returns it, or NULL on failure. The second one returns the
 * number of commands in all command buffers. */
fake_command *fake_record(VkCommandBuffer object, const char *call);
unsigned fake_recorded(void);

/* program.c */
bool fake_may_launch_locked(const fake_launch *launch, uint32_t family, bool is_usable(fake_buffer *, uint32_t));
void fake_hold_launch(const fake_launch *launch, int change, void hold_buffer(fake_buffer *, int));
void fake_run_launch(const fake_launch *launch);
void fake_forget_launches(fake_command_buffer *commands);

/* execute.c: runs the commands of a submission's command buffers. With `stop_halfway` runs only the first half of the
 * commands, and the last of them only halfway; with `reorder` all commands of the last reordered group. A dispatch
 * runs completely. */
void fake_execute(fake_command_buffer *const *buffers, uint32_t count, bool stop_halfway);
/* Reports the errors of a command that is executed on this queue family. Returns false if the command cannot be
 * executed. */
bool fake_may_execute_locked(fake_command *command, uint32_t family);

#endif
