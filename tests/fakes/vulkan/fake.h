/* fakes/vulkan/fake.h: declarations that the files of the fake driver share.
 *
 * Every object begins with a fake_object. Destroying an object marks it, and it stays in memory for a while, so that a
 * later use is reported instead of crashing. One lock protects all state except the bytes of memory; functions whose
 * name ends in `_locked` are called with it held. Queues execute on threads of their own and hold the lock only between
 * commands.
 */
#ifndef GPUHAL_FAKE_VULKAN_FAKE_H
#define GPUHAL_FAKE_VULKAN_FAKE_H

#include "script.h"

#define VK_NO_PROTOTYPES
#include <vulkan/vk_icd.h>

#include <pthread.h>
#include <stdlib.h>

typedef enum fake_level { LEVEL_GLOBAL, LEVEL_INSTANCE, LEVEL_DEVICE } fake_level;
#define NEVER UINT32_MAX /* no version of Vulkan has it without the extension */

/* One number and one checked declaration for each function. */
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
    VK_LOADER_DATA loader; /* first: the loader writes here for objects that it dispatches */
    fake_kind kind;
    bool dead;
    unsigned in_use; /* by submissions that are not done */
    fake_device *device;
    struct fake_object *next; /* of its bucket in object.c */
} fake_object;

typedef struct fake_physical {
    VK_LOADER_DATA loader;
    unsigned index;
    uint32_t api; /* the lower of the device's and the application's */
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
    unsigned char *device_bytes; /* as the device sees it */
    unsigned char *host_bytes;   /* as the host sees it: the same if coherent, else a copy */
    VkDeviceSize mapped_begin, mapped_end; /* end 0: not mapped */
    VkExternalMemoryHandleTypeFlags exportable, imported;
    int fd; /* of exportable or imported memory, else -1 */
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
    uint32_t families; /* bit 1 << family of a CONCURRENT one */
    int owner;         /* family of an EXCLUSIVE one that used it last */
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
    uint64_t value, promised; /* promised: the highest value that a submission will signal */
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

enum { FAKE_BINDINGS = 40, FAKE_CONSTANTS = 128 };

typedef struct fake_binding {
    fake_buffer *buffer;
    VkDeviceSize offset, bytes;
} fake_binding;

typedef struct fake_set_layout {
    fake_object object;
    bool pushed;
    uint32_t count;
    VkDescriptorType types[FAKE_BINDINGS];
} fake_set_layout;

typedef struct fake_pipeline_layout {
    fake_object object;
    fake_set_layout *set; /* NULL: none */
    uint32_t constant_bytes;
} fake_pipeline_layout;

typedef struct fake_pipeline {
    fake_object object;
    fake_pipeline_layout *layout;
    enum { UNKNOWN_CODE, SAXPY, SCALE } code; /* tests/system/shaders */
    uint32_t threads, repeat;                 /* of saxpy: its constants 0 and 1 */
} fake_pipeline;

typedef struct fake_descriptor_set {
    fake_object object;
    struct fake_descriptor_set *next; /* of its pool */
    const fake_set_layout *layout;
    fake_binding bindings[FAKE_BINDINGS];
} fake_descriptor_set;

/* A dispatch, with everything it reads. */
typedef struct fake_launch {
    struct fake_launch *next; /* of its command buffer */
    fake_pipeline *pipeline;
    fake_descriptor_set *set; /* NULL: pushed */
    fake_binding bindings[FAKE_BINDINGS];
    unsigned char constants[FAKE_CONSTANTS];
    uint32_t groups[3];
} fake_launch;

typedef struct fake_command {
    enum { COPY, FILL, BARRIER, TRANSFER_OWNER, TIMESTAMP, DISPATCH } what;
    fake_launch *launch;
    bool orders_launches; /* a barrier */
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
    uint32_t enabled;    /* bit 1 << fake_extension; feature bits of core count as those of their extension */
    uint32_t extensions; /* bit 1 << fake_extension: named at creation */
    bool lost, closing;
    unsigned alive[KIND_COUNT];
    unsigned allocations;
    unsigned queue_count;
    fake_queue *queues[FAKE_FAMILIES * FAKE_QUEUES];
};

/* report.c */
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed; /* signaled for every change that a thread may wait for */

void fake_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Counts a call; returns the code that the call must return at once, or VK_SUCCESS. */
VkResult fake_enter(fake_function function);
/* The same for functions that cannot fail. */
void fake_count(fake_function function);
bool fake_submission_hangs(uint32_t family, bool *out_loses); /* counts one submission with commands */
bool fake_hangs(void);

/* object.c. fake_make() returns NULL without memory; the others take objects of the program, and report invalid
 * ones. */
unsigned fake_alive(void); /* all except queues */
void fake_lose_all(void);  /* every device */
void *fake_make(fake_device *device, fake_kind kind, size_t size);
void *fake_find(const void *handle, fake_kind kind, const char *call);
/* NULL for NULL, and for a handle that is no object or in use by unfinished work; otherwise counts it as destroyed. */
void *fake_destroy(const void *handle, fake_kind kind, const char *call);
const char *fake_kind_name(fake_kind kind);
/* Waits for fake_changed until this time of the monotonic clock; false if that has passed. UINT64_MAX: for ever. */
bool fake_wait_locked(uint64_t until_ns);
uint64_t fake_now_ns(void);
uint64_t fake_deadline_ns(uint64_t timeout_ns);

/* icd.c: the function of this name, or NULL if neither version nor extensions have it. */
PFN_vkVoidFunction fake_function_named(const char *name, fake_level most, uint32_t api, uint32_t extensions);

/* physical.c: the features of the new device, as bits of fake_extension; false for a feature that is not offered. */
bool fake_read_features(const void *chain, uint32_t *out_enabled);
const void *fake_chained(const void *chain, VkStructureType type);

/* memory.c: bytes taken of each heap, for VK_EXT_memory_budget. */
VkDeviceSize fake_heap_used(unsigned device, uint32_t heap);

/* queue.c */
fake_queue *fake_queue_start(fake_device *device, uint32_t family); /* NULL without memory or thread */
void fake_queue_stop(fake_queue *queue);
uint32_t fake_queue_family(const fake_queue *queue);
void fake_lose_locked(fake_device *device);
/* If queues have no thread, does the work that can be done. */
void fake_progress_locked(fake_device *device);

/* commands.c: room for one more command, or NULL; and the number of commands in all command buffers. */
fake_command *fake_record(VkCommandBuffer object, const char *call);
unsigned fake_recorded(void);

/* program.c */
bool fake_may_launch_locked(const fake_launch *launch, uint32_t family, bool is_usable(fake_buffer *, uint32_t));
void fake_hold_launch(const fake_launch *launch, int change, void hold_buffer(fake_buffer *, int));
void fake_run_launch(const fake_launch *launch);
void fake_forget_launches(fake_command_buffer *commands);

/* execute.c: runs the commands of one command buffer. With `stop_halfway`, only the first half of them, and only half
 * of the last one. */
void fake_execute(fake_command_buffer *commands, bool stop_halfway);
/* Reports errors of a command on this family of queues; false if it cannot be executed at all. */
bool fake_may_execute_locked(fake_command *command, uint32_t family);

#endif
