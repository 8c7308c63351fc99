/* vulkan/device.h: declarations that the files of this plugin share.
 *
 * A gpuhal_vulkan_hardware describes one VkPhysicalDevice. An entry describes a VkPhysicalDevice of the plugin's
 * instance. An opened device is a new or an adopted VkDevice with the VkQueues that the plugin may use. Each VkQueue
 * has a queue wrapper with the lock that Vulkan requires around submissions.
 *
 * A transfer with a NULL queue uses an internal stream: a command buffer with a fence that no other call uses. A
 * plugin.h queue is a series of command buffers in flight on one wrapper, with its own timeline semaphore.
 *
 * Each allocation is one VkBuffer bound to its own VkDeviceMemory. It is shared (CONCURRENT) between the queue families
 * of all wrappers. If it is host-visible, it stays mapped until it is freed.
 */
#ifndef GPUHAL_VULKAN_DEVICE_H
#define GPUHAL_VULKAN_DEVICE_H

#include "arena.h"

#include <gpuhal/native.h>

#include <pthread.h>
#include <stdatomic.h>

#define GPUHAL_VULKAN_FAMILIES         16u
#define GPUHAL_VULKAN_WRAPPERS         8u
#define GPUHAL_VULKAN_INTERNAL_STREAMS 8u
/* The largest nonCoherentAtomSize that Vulkan allows. */
#define GPUHAL_VULKAN_ATOM_MAX 256u

/* Maximum duration of one Vulkan call that waits for an event. After each call the thread checks whether another thread
 * has found the device lost. */
#define GPUHAL_VULKAN_SLICE_NS UINT64_C(1000000000)
/* Number of retries, one millisecond apart, if a wait runs out of memory. This error does not mean that the work
 * failed. */
#define GPUHAL_VULKAN_WAIT_TRIES 1000u
/* Maximum duration of one wait for work that may never finish, when a queue is destroyed, a device is closed, or a
 * blocking call fails. */
#define GPUHAL_VULKAN_PATIENCE_NS UINT64_C(3000000000)

/* Features and extensions. A bit in `offered` means that the hardware supports the feature or extension, a bit in
 * `enabled` that it was enabled for the VkDevice. */
enum {
    GPUHAL_VULKAN_TIMELINE = 1u << 0,         /* feature timelineSemaphore */
    GPUHAL_VULKAN_HOST_QUERY_RESET = 1u << 1, /* feature hostQueryReset */
    GPUHAL_VULKAN_BUFFER_ADDRESS = 1u << 2,   /* feature bufferDeviceAddress */
    GPUHAL_VULKAN_MEMORY_BUDGET = 1u << 3,    /* VK_EXT_memory_budget */
    GPUHAL_VULKAN_HOST_IMPORT = 1u << 4,      /* VK_EXT_external_memory_host */
    GPUHAL_VULKAN_OPAQUE_FD =
        1u << 5, /* VK_KHR_external_memory_fd; the plugin's buffers can be exported and imported */
    GPUHAL_VULKAN_DMABUF_FD = 1u << 6,        /* VK_EXT_external_memory_dma_buf; the plugin's buffers can be exported
                                               * and imported as dma-bufs */
    GPUHAL_VULKAN_PCI_BUS_INFO = 1u << 7,     /* VK_EXT_pci_bus_info */
    GPUHAL_VULKAN_DRM = 1u << 8,              /* VK_EXT_physical_device_drm */
    GPUHAL_VULKAN_SUBGROUP_SIZE = 1u << 9,    /* feature subgroupSizeControl */
    GPUHAL_VULKAN_MAINTENANCE4 = 1u << 10,    /* feature maintenance4 */
    GPUHAL_VULKAN_PUSH_DESCRIPTOR = 1u << 11, /* VK_KHR_push_descriptor */
    GPUHAL_VULKAN_SPIRV_1_4 = 1u << 12        /* VK_KHR_spirv_1_4 or Vulkan 1.2 */
};
/* Bits for features. They have to be enabled in the feature structures. */
#define GPUHAL_VULKAN_FEATURE_BITS                                                                                    \
    (GPUHAL_VULKAN_TIMELINE | GPUHAL_VULKAN_HOST_QUERY_RESET | GPUHAL_VULKAN_BUFFER_ADDRESS |                         \
     GPUHAL_VULKAN_SUBGROUP_SIZE | GPUHAL_VULKAN_MAINTENANCE4)

typedef struct gpuhal_vulkan_hardware {
    VkPhysicalDevice handle;
    uint32_t api_version; /* the lower of the instance's and the device's versions */
    uint32_t offered;     /* GPUHAL_VULKAN_… bits */
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceDriverProperties driver; /* driverName is empty if the driver does not report it */
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t family_count;
    VkQueueFamilyProperties families[GPUHAL_VULKAN_FAMILIES];
    uint64_t allocation_max;
    uint64_t import_alignment;                  /* alignment of host pointers; 0 if import is not supported */
    uint32_t pci[4];                            /* domain, bus, device, function, with PCI_BUS_INFO */
    int64_t drm_render[2];                      /* major, minor; -1 if there is no render node */
    uint32_t compute_units;                     /* 0 if not reported */
    bool software;                              /* a software implementation on the CPU */
    bool unified;                               /* device and host share one memory */
    uint32_t subgroup_min, subgroup_max;        /* 0 if not reported */
    uint32_t subgroup_size;                     /* default size; 0 if not reported */
    uint32_t subgroups_max;                     /* maximum per group with a required subgroup size; 0 if not
                                                 * selectable */
    VkSubgroupFeatureFlags subgroup_operations; /* in compute shaders */
    uint32_t push_descriptors;                  /* maximum per set layout; 0 if not supported */
    uint32_t data_types;                        /* GPUHAL_DATA_ bits */
    uint32_t memory_kinds;                      /* bit 1 << gpuhal_memory_kind for each supported kind */
} gpuhal_vulkan_hardware;

/* Immutable once gpuhal_vulkan_find() returns it. */
typedef struct gpuhal_vulkan_entry {
    uint32_t index;
    uint32_t native_index; /* index in vkEnumeratePhysicalDevices when the device was first seen */
    gpuhal_vulkan_hardware hardware;
} gpuhal_vulkan_entry;

/* The extensions that a physical device supports, malloc'ed. */
typedef struct gpuhal_vulkan_extensions {
    VkExtensionProperties *list;
    uint32_t count;
} gpuhal_vulkan_extensions;

/* The VkQueues of a new VkDevice, compute queues first. */
typedef struct gpuhal_vulkan_plan {
    uint32_t count;
    uint32_t copy_wrapper;
    struct {
        uint32_t family, index;
    } wrappers[GPUHAL_VULKAN_WRAPPERS];
} gpuhal_vulkan_plan;

typedef struct gpuhal_vulkan_wrapper {
    struct gpuhal_vulkan_wrapper *next; /* next in extra_wrappers */
    VkQueue queue;
    uint32_t family, index;
    /* Held around submissions. For adopted devices, the caller's lock is acquired after this mutex. Protects
     * `taken`. */
    pthread_mutex_t mutex;
    pthread_cond_t freed; /* used with `mutex`; signalled when `taken` becomes false */
    bool taken;           /* native access owns the VkQueue */
    uint64_t taker;       /* the thread that began the native access */
} gpuhal_vulkan_wrapper;

typedef struct gpuhal_vulkan_stream {
    VkCommandPool pools[2]; /* [0]: copy family; [1]: launch family, if different */
    VkCommandBuffer buffers[2];
    uint32_t wrapper;         /* wrapper of the current call */
    VkCommandBuffer commands; /* command buffer of the current call */
    VkFence fence;
    gpuhal_vulkan_arena arena;
    bool broken; /* its last submission may never have finished */
} gpuhal_vulkan_stream;

typedef struct gpuhal_vulkan_features gpuhal_vulkan_features;

struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_vulkan_hardware hardware; /* for an adopted device, queried through the caller's instance */
    VkInstance instance;
    PFN_vkGetInstanceProcAddr get_proc;
    gpuhal_vulkan_instance_functions instance_api;
    gpuhal_vulkan_device_functions api;
    VkDevice handle;
    bool adopted;
    uint32_t enabled;       /* GPUHAL_VULKAN_… bits of the VkDevice */
    uint32_t wrapper_count; /* at least one; if any wrapper computes, the first does */
    gpuhal_vulkan_wrapper wrappers[GPUHAL_VULKAN_WRAPPERS];
    uint32_t copy_wrapper; /* for blocking copies; uses a dedicated transfer family if the device has one */
    uint32_t family_count; /* distinct families of the wrappers */
    uint32_t families[GPUHAL_VULKAN_WRAPPERS];
    _Atomic uint32_t next_wrapper;         /* round-robin position for new queues */
    void (*lock)(void *user, void *queue); /* the adopting caller's lock functions, or NULL */
    void (*unlock)(void *user, void *queue);
    void *lock_user;
    gpuhal_vulkan_device described; /* returned by native_device */
    gpuhal_vulkan_queue described_queues[GPUHAL_VULKAN_WRAPPERS];
    const char **extensions;
    uint32_t extension_count;
    gpuhal_vulkan_features *features; /* enabled features; described.features points to it */

    /* Internal streams. gpuhal_vulkan_streams_start() creates the mutex and the condition; gpuhal_vulkan_streams_stop()
     * frees everything. */
    pthread_mutex_t growing;     /* protects stream_count, streams beyond it, extra_wrappers and idle_timelines */
    pthread_cond_t stream_freed; /* used with `growing`; a stream became idle or broken */
    uint32_t stream_count;
    gpuhal_vulkan_stream streams[GPUHAL_VULKAN_INTERNAL_STREAMS];
    _Atomic uint32_t idle_streams; /* bit i: streams[i] exists and is unused */
    _Atomic uint32_t stream_waiters;
    gpuhal_vulkan_wrapper *extra_wrappers;         /* VkQueues adopted individually on an adopted device */
    struct gpuhal_vulkan_timeline *idle_timelines; /* unreferenced timelines, reused for new queues */
    _Atomic bool lost;                 /* a call returned DEVICE_LOST, a wait failed, or work is stuck; never reset */
    _Atomic bool stuck;                /* some work never finished, so its objects and the VkDevice are leaked */
    _Atomic uint64_t allocation_count; /* live allocations, limited by maxMemoryAllocationCount */
};

/* The object of a gpuhal_memory. */
typedef struct gpuhal_vulkan_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t memory_offset;
    uint64_t memory_bytes; /* size of the VkDeviceMemory, where flushed and invalidated ranges end at the latest; for
                            * wrapped memory, the end of the buffer */
    VkMemoryPropertyFlags type_flags;
    uint32_t export_kinds;  /* bit 1 << gpuhal_handle_kind for each kind of handle that the memory can be exported as */
    bool wrapped;           /* the caller owns buffer and memory */
    uint64_t wrapped_usage; /* VkBufferUsageFlags that the caller specified */
} gpuhal_vulkan_buffer;

/* discovery.c */
gpuhal_status gpuhal_vulkan_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
gpuhal_status gpuhal_vulkan_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
/* Returns the entry with this index, or NULL. */
const gpuhal_vulkan_entry *gpuhal_vulkan_find(uint32_t index);

/* hardware.c: reads all properties of a physical device. Returns false with a reason if this plugin cannot use the
 * device. */
bool gpuhal_vulkan_survey(const gpuhal_vulkan_instance_functions *api, VkPhysicalDevice physical,
                          uint32_t instance_version, gpuhal_vulkan_hardware *out_hardware, char *out_why,
                          size_t why_size);
/* Returns whether the heap counts towards the device's total memory. */
bool gpuhal_vulkan_counts_heap(const gpuhal_vulkan_hardware *hardware, uint32_t heap);
gpuhal_vulkan_plan gpuhal_vulkan_plan_wrappers(const gpuhal_vulkan_hardware *hardware);
/* Returns whether queues of the family can run launches. */
bool gpuhal_vulkan_computes(const gpuhal_vulkan_hardware *hardware, uint32_t family);

/* Returns the usage flags of all buffers that the plugin creates. Wrapped buffers have the caller's flags instead. */
VkBufferUsageFlags gpuhal_vulkan_usage(uint32_t enabled);

/* features.c: the names of a device's extensions, and its feature structures in one allocation. The allocation begins
 * with the VkPhysicalDeviceFeatures2 at the head of the chain. */

VkResult gpuhal_vulkan_list_extensions(const gpuhal_vulkan_instance_functions *api, VkPhysicalDevice physical,
                                       gpuhal_vulkan_extensions *out_extensions);
bool gpuhal_vulkan_offers(const gpuhal_vulkan_extensions *extensions, const char *name);

/* Returns all compute features that the device reports, or NULL if out of memory. Owner: caller, free(). */
gpuhal_vulkan_features *gpuhal_vulkan_features_ask(const gpuhal_vulkan_instance_functions *api,
                                                   VkPhysicalDevice physical, uint32_t version,
                                                   const gpuhal_vulkan_extensions *extensions);
/* Copies the known structures of a caller's chain. Returns NULL if out of memory. Owner: caller, free(). */
gpuhal_vulkan_features *gpuhal_vulkan_features_copy(const void *chain);
const VkPhysicalDeviceFeatures2 *gpuhal_vulkan_features_chain(const gpuhal_vulkan_features *features);
uint32_t gpuhal_vulkan_features_bits(const gpuhal_vulkan_features *features);
/* For the SPIR-V capabilities in the table of features.c; program.c decides about those for subgroups and float
 * controls. The first function returns whether the capability is in the table, the second whether a module may declare
 * it with these features. */
bool gpuhal_vulkan_features_know(uint32_t capability);
bool gpuhal_vulkan_features_allow(const gpuhal_vulkan_features *features, uint32_t capability);
uint32_t gpuhal_vulkan_features_data_types(const gpuhal_vulkan_features *features);
/* Writes the names of the extensions to enable with these features, at most GPUHAL_VULKAN_EXTENSIONS. Returns their
 * number. */
#define GPUHAL_VULKAN_EXTENSIONS 64u
uint32_t gpuhal_vulkan_features_extensions(const gpuhal_vulkan_features *features, uint32_t version,
                                           const gpuhal_vulkan_extensions *offered, const char **out_names);

/* facts.c and identity.c */
void gpuhal_vulkan_list_facts(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_entry *entry);
/* compute.c: shader limits and features. */
void gpuhal_vulkan_list_compute(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware);
/* Writes a 16-byte UUID in its canonical form. Returns false if all bytes are zero. */
bool gpuhal_vulkan_write_uuid(const uint8_t *uuid, char out_text[37]);
void gpuhal_vulkan_list_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware);

/* adopt.c: checks the description, then fills in the opened device: the caller's VkDevice, its queues and its enabled
 * features. */
gpuhal_status gpuhal_vulkan_adopt(gpuhal_plugin_device *device, const gpuhal_vulkan_entry *entry,
                                  const gpuhal_native *native);

/* open.c */
gpuhal_status gpuhal_vulkan_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
void gpuhal_vulkan_close(gpuhal_plugin_device *device);

/* context.c */

/* Returns OK for VK_SUCCESS. Otherwise reports the error and, if the device was lost, records that. */
gpuhal_status gpuhal_vulkan_result(gpuhal_plugin_device *device, const char *call, VkResult code);
/* Returns OK, or reports DEVICE_LOST. Every slot that calls Vulkan calls this function first, unless the slot destroys
 * or releases an object. */
gpuhal_status gpuhal_vulkan_alive(gpuhal_plugin_device *device);

/* type.c: returns the memory kinds that the memory types support. */
uint32_t gpuhal_vulkan_memory_kinds(const gpuhal_vulkan_hardware *hardware);

/* wrapper.c: submissions. */

void gpuhal_vulkan_wrapper_init(gpuhal_vulkan_wrapper *wrapper);
void gpuhal_vulkan_wrapper_finish(gpuhal_vulkan_wrapper *wrapper);
/* Acquires the wrapper for one submission on this thread. Returns false if native access owns the wrapper and this
 * thread may not wait. */
bool gpuhal_vulkan_wrapper_enter(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper, bool may_wait);
/* Reports BUSY for a call that would have to wait. */
gpuhal_status gpuhal_vulkan_wrapper_busy(const gpuhal_plugin_device *device);
void gpuhal_vulkan_wrapper_leave(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper);
/* Acquires the wrapper for native access, which any thread may end. Returns NOT_READY after the timeout. Reports BUSY
 * if the calling thread's own native access already owns the wrapper. */
gpuhal_status gpuhal_vulkan_wrapper_take(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper,
                                         uint64_t timeout_ns);
void gpuhal_vulkan_wrapper_give(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper);
/* Calls vkQueueSubmit with the required locks held. Waits for native access to end, but returns VK_NOT_READY if it is
 * the calling thread's own. */
VkResult gpuhal_vulkan_submit(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper, const VkSubmitInfo *submit,
                              VkFence fence);

/* A command, in the order of the stages that it needs. */
typedef enum gpuhal_vulkan_piece {
    GPUHAL_VULKAN_TRANSFER,
    GPUHAL_VULKAN_TRANSFER_BEGUN, /* a later command of the same transfer */
    GPUHAL_VULKAN_DISPATCH,
    GPUHAL_VULKAN_DISPATCH_INDIRECT
} gpuhal_vulkan_piece;

/* internal_stream.c: blocking submissions. */

/* Returns whether to retry a wait that returned @p code, after a short sleep. @p tries is the number of retries so
 * far. */
bool gpuhal_vulkan_wait_again(VkResult code, uint32_t tries);
/* Begin and end a command buffer. @p usage are flags for vkBeginCommandBuffer. The opening barrier orders the command
 * buffer after all earlier submissions to its VkQueue, including other submitters' submissions. The closing barrier
 * orders all this work before later work on the device and the host. */
gpuhal_status gpuhal_vulkan_open_commands(gpuhal_plugin_device *device, VkCommandBuffer commands,
                                          VkCommandBufferUsageFlags usage);
gpuhal_status gpuhal_vulkan_close_commands(gpuhal_plugin_device *device, VkCommandBuffer commands);
/* Adds the barrier between two commands of one command buffer that access the same bytes. It covers the commands up to
 * @p most. */
void gpuhal_vulkan_order_commands(gpuhal_plugin_device *device, VkCommandBuffer commands, gpuhal_vulkan_piece most);
/* Acquires an internal stream and begins its command buffer with the barrier against earlier work. The stream uses the
 * copy wrapper. With @p dispatches, it uses the first wrapper, because that wrapper supports compute. */
gpuhal_status gpuhal_vulkan_begin(gpuhal_plugin_device *device, bool dispatches, gpuhal_vulkan_stream **out_stream);
/* Records the barrier towards the host, submits, waits, and releases the stream. */
gpuhal_status gpuhal_vulkan_finish(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream);
/* Creates the first internal stream when the device is opened, after its wrappers. On failure nothing remains
 * allocated. */
gpuhal_status gpuhal_vulkan_streams_start(gpuhal_plugin_device *device);
/* Frees all internal streams except broken ones. If a stream is broken, `stuck` is already set, because vkDestroyDevice
 * would be invalid and could hang.
 */
void gpuhal_vulkan_streams_stop(gpuhal_plugin_device *device);
/* Waits until all earlier submissions to every VkQueue have finished. Returns false if a VkQueue does not finish; the
 * objects that it uses must then be leaked. */
bool gpuhal_vulkan_drain(gpuhal_plugin_device *device);
/* Returns the wrapper of a VkQueue to adopt. The VkQueue must be a queue of the opened device or, on an adopted device,
 * belong to one of its queue families. Otherwise, or if out of memory, reports INVALID_ARGUMENT or HOST_MEMORY in
 * *out_status and returns NULL. */
gpuhal_vulkan_wrapper *gpuhal_vulkan_wrapper_of(gpuhal_plugin_device *device, const gpuhal_native *native,
                                                gpuhal_status *out_status);

/* timeline.c: frees the idle timelines when the device is closed, before its internal streams. Sets `stuck` if the
 * timelines cannot be freed. */
void gpuhal_vulkan_timelines_stop(gpuhal_plugin_device *device);

/* Slots for the tables of tables.c, in context.c, memory.c, queue.c, event.c and program.c. */
gpuhal_status gpuhal_vulkan_native_device(gpuhal_plugin_device *device, gpuhal_native *out_native);
gpuhal_status gpuhal_vulkan_native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                          gpuhal_native *out_native);
gpuhal_status gpuhal_vulkan_wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                        gpuhal_memory *out_memory);
gpuhal_status gpuhal_vulkan_queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                         gpuhal_plugin_queue **out_queue);
void gpuhal_vulkan_queue_destroy(gpuhal_plugin_queue *queue);
gpuhal_status gpuhal_vulkan_queue_flush(gpuhal_plugin_queue *queue);
gpuhal_status gpuhal_vulkan_queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
gpuhal_status gpuhal_vulkan_native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native);
gpuhal_status gpuhal_vulkan_native_lock(gpuhal_plugin_queue *queue, uint64_t timeout_ns);
void gpuhal_vulkan_native_unlock(gpuhal_plugin_queue *queue);
gpuhal_status gpuhal_vulkan_event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                         gpuhal_plugin_event **out_event);
void gpuhal_vulkan_event_destroy(gpuhal_plugin_event *event);
gpuhal_status gpuhal_vulkan_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
gpuhal_status gpuhal_vulkan_event_query(gpuhal_plugin_event *event);
gpuhal_status gpuhal_vulkan_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns);
gpuhal_status gpuhal_vulkan_elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns);
gpuhal_status gpuhal_vulkan_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native);
gpuhal_status gpuhal_vulkan_program_load(gpuhal_plugin_device *device, const gpuhal_code *code,
                                         gpuhal_plugin_build *build, gpuhal_plugin_program **out_program);
void gpuhal_vulkan_program_unload(gpuhal_plugin_program *program);
gpuhal_status gpuhal_vulkan_program_compiled(gpuhal_plugin_program *program, void *to, uint64_t *bytes);

/* Fill in slots, as far as the hardware supports them. memory.c also fills in the slot of import.c. */
void gpuhal_vulkan_describe_context(gpuhal_ops *ops);
void gpuhal_vulkan_describe_memory(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops);
void gpuhal_vulkan_describe_transfer(gpuhal_ops *ops);
void gpuhal_vulkan_describe_groups(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops); /* tables.c */
/* tables.c: clears the slots that an opened device, which may be adopted, does not support. */
void gpuhal_vulkan_clear_slots(const gpuhal_plugin_device *device, gpuhal_ops *ops);

/* queue.c: prepares a queue for one command of transfer.c or launch.c. Begins a command buffer if none is open, and
 * orders the command after earlier commands that access the same bytes. A touch with a NULL buffer accesses no bytes.
 * The caller must record the command next, and nothing else. Returns NOT_READY, without opening a batch or recording,
 * if the call would have to wait for the device or for native access. Never returns NOT_READY for the later commands of
 * a transfer in progress. */
typedef struct gpuhal_vulkan_span {
    VkBuffer buffer;
    uint64_t begin, end;
} gpuhal_vulkan_span;
typedef struct gpuhal_vulkan_touch {
    gpuhal_vulkan_span span;
    bool writes;
} gpuhal_vulkan_touch;
gpuhal_status gpuhal_vulkan_queue_record(gpuhal_plugin_queue *queue, gpuhal_vulkan_piece piece,
                                         const gpuhal_vulkan_touch *touches, uint32_t count,
                                         VkCommandBuffer *out_commands);
/* Returns whether all enqueued work has finished, so that an immediate access by the host is in order with the
 * queue. */
bool gpuhal_vulkan_queue_is_idle(gpuhal_plugin_queue *queue);

/* transfer.c: record a copy or a fill without barriers. */
void gpuhal_vulkan_record_copy(gpuhal_plugin_device *device, VkCommandBuffer commands, const gpuhal_memory *to,
                               uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);
void gpuhal_vulkan_record_fill(gpuhal_plugin_device *device, VkCommandBuffer commands, const gpuhal_memory *memory,
                               uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes);

static inline gpuhal_vulkan_buffer *gpuhal_vulkan_buffer_of(const gpuhal_memory *memory)
{
    return memory->object;
}

static inline gpuhal_vulkan_span gpuhal_vulkan_span_of(const gpuhal_memory *memory, uint64_t offset, uint64_t bytes)
{
    return (gpuhal_vulkan_span){
        .buffer = gpuhal_vulkan_buffer_of(memory)->buffer, .begin = offset, .end = offset + bytes};
}

#endif
