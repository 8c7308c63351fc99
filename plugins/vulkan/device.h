/* vulkan/device.h: declarations that the files of this plugin share.
 *
 * Hardware is the record of one VkPhysicalDevice; an entry is hardware of the plugin's instance, kept for the life of
 * the process under the index that it got first. An opened device is a new VkDevice or an adopted one, with the
 * VkQueues that it may use. Each VkQueue has a queue wrapper, with the lock that Vulkan requires around submissions.
 *
 * Transfers with a NULL queue take an internal stream: a command buffer with a fence that no other call uses. Queues of
 * plugin.h are command buffers in flight on a wrapper, one timeline semaphore each; several queues may share a wrapper.
 *
 * Memory is one VkBuffer per allocation, bound to a separate VkDeviceMemory, shared (CONCURRENT) over the families of
 * all wrappers, and mapped as long as it lives if the host can see it.
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
/* The largest nonCoherentAtomSize that a driver may state. */
#define GPUHAL_VULKAN_ATOM_MAX 256u

/* How long one wait for an event lasts before the caller checks whether another thread has found the device lost. */
#define GPUHAL_VULKAN_SLICE_NS UINT64_C(1000000000)
/* Waiting may run out of memory, which says nothing about the work: the number of further tries, a millisecond
 * apart. */
#define GPUHAL_VULKAN_WAIT_TRIES 1000u
/* How long destroying a queue, or closing, waits for work that never ends. */
#define GPUHAL_VULKAN_PATIENCE_NS UINT64_C(3000000000)

/* Bits of features and extensions: of hardware that offers them, or of a device that was made with them. */
enum {
    GPUHAL_VULKAN_TIMELINE = 1u << 0,         /* feature timelineSemaphore */
    GPUHAL_VULKAN_HOST_QUERY_RESET = 1u << 1, /* feature hostQueryReset */
    GPUHAL_VULKAN_BUFFER_ADDRESS = 1u << 2,   /* feature bufferDeviceAddress */
    GPUHAL_VULKAN_MEMORY_BUDGET = 1u << 3,    /* VK_EXT_memory_budget */
    GPUHAL_VULKAN_HOST_IMPORT = 1u << 4,      /* VK_EXT_external_memory_host */
    GPUHAL_VULKAN_OPAQUE_FD =
        1u << 5, /* VK_KHR_external_memory_fd, and the plugin's buffers can be exported and imported */
    GPUHAL_VULKAN_DMABUF_FD = 1u << 6,        /* the same with VK_EXT_external_memory_dma_buf */
    GPUHAL_VULKAN_PCI_BUS_INFO = 1u << 7,     /* VK_EXT_pci_bus_info */
    GPUHAL_VULKAN_DRM = 1u << 8,              /* VK_EXT_physical_device_drm */
    GPUHAL_VULKAN_SUBGROUP_SIZE = 1u << 9,    /* feature subgroupSizeControl */
    GPUHAL_VULKAN_MAINTENANCE4 = 1u << 10,    /* feature maintenance4 */
    GPUHAL_VULKAN_PUSH_DESCRIPTOR = 1u << 11, /* VK_KHR_push_descriptor */
    GPUHAL_VULKAN_SPIRV_1_4 = 1u << 12        /* VK_KHR_spirv_1_4, or a version that has it */
};
/* The bits that are features, and so have to be enabled by name. */
#define GPUHAL_VULKAN_FEATURE_BITS                                                                                    \
    (GPUHAL_VULKAN_TIMELINE | GPUHAL_VULKAN_HOST_QUERY_RESET | GPUHAL_VULKAN_BUFFER_ADDRESS |                         \
     GPUHAL_VULKAN_SUBGROUP_SIZE | GPUHAL_VULKAN_MAINTENANCE4)

/* The properties of a physical device. */
typedef struct gpuhal_vulkan_hardware {
    VkPhysicalDevice handle;
    uint32_t api_version; /* the lower one of instance and device */
    uint32_t offered;     /* GPUHAL_VULKAN_… bits */
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceDriverProperties driver; /* driverName is empty if the driver does not report it */
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t family_count;
    VkQueueFamilyProperties families[GPUHAL_VULKAN_FAMILIES];
    uint64_t allocation_max;                    /* largest single allocation */
    uint64_t import_alignment;                  /* of host pointers; 0: none */
    uint32_t pci[4];                            /* domain, bus, device, function, with PCI_BUS_INFO */
    int64_t drm_render[2];                      /* major, minor; -1: none */
    uint32_t compute_units;                     /* 0: not reported */
    bool software;                              /* a program on the host's processor */
    bool unified;                               /* device and host share one memory */
    uint32_t subgroup_min, subgroup_max;        /* 0: not reported */
    uint32_t subgroup_size;                     /* without a choice; 0: not reported */
    uint32_t subgroups_max;                     /* of a group whose subgroup size was chosen; 0: it cannot be */
    VkSubgroupFeatureFlags subgroup_operations; /* in compute shaders */
    uint32_t push_descriptors;                  /* of a layout at most; 0: none */
    uint32_t data_types;                        /* GPUHAL_DATA_ bits */
    uint32_t memory_kinds;                      /* bit 1 << gpuhal_memory_kind for each that a memory type suits */
} gpuhal_vulkan_hardware;

/* One device of the process. Constant once it can be found. */
typedef struct gpuhal_vulkan_entry {
    uint32_t index;
    uint32_t native_index; /* place in vkEnumeratePhysicalDevices when it was first seen */
    gpuhal_vulkan_hardware hardware;
} gpuhal_vulkan_entry;

/* The extensions that a physical device offers, malloc'ed. */
typedef struct gpuhal_vulkan_extensions {
    VkExtensionProperties *list;
    uint32_t count;
} gpuhal_vulkan_extensions;

/* The VkQueues of a new VkDevice, compute first. */
typedef struct gpuhal_vulkan_plan {
    uint32_t count; /* wrappers */
    uint32_t copy_wrapper;
    struct {
        uint32_t family, index;
    } wrappers[GPUHAL_VULKAN_WRAPPERS];
} gpuhal_vulkan_plan;

/* A VkQueue. */
typedef struct gpuhal_vulkan_wrapper {
    struct gpuhal_vulkan_wrapper *next; /* of extra_wrappers */
    VkQueue queue;
    uint32_t family, index;
    /* Held around submissions; for adopted devices the caller's lock comes inside it. Protects `taken`. */
    pthread_mutex_t mutex;
    pthread_cond_t freed; /* with mutex: `taken` is false again */
    bool taken;           /* by native access */
    uint64_t taker;       /* the thread that began it */
} gpuhal_vulkan_wrapper;

/* An internal stream: a command buffer for one blocking call. */
typedef struct gpuhal_vulkan_stream {
    VkCommandPool pools[2]; /* of the family for copies, and of the one for launches, if it is another */
    VkCommandBuffer buffers[2];
    uint32_t wrapper;         /* of the call */
    VkCommandBuffer commands; /* of the call */
    VkFence fence;
    gpuhal_vulkan_arena arena;
    bool broken; /* its last submission was never seen to end */
} gpuhal_vulkan_stream;

typedef struct gpuhal_vulkan_features gpuhal_vulkan_features;

/* One opened device. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_vulkan_hardware hardware; /* from the adopted instance, if the device is adopted */
    VkInstance instance;
    PFN_vkGetInstanceProcAddr get_proc;
    gpuhal_vulkan_instance_functions instance_api;
    gpuhal_vulkan_device_functions api;
    VkDevice handle;
    bool adopted;
    uint32_t enabled;       /* GPUHAL_VULKAN_… bits that the VkDevice was made with */
    uint32_t wrapper_count; /* compute wrapper first; at least one */
    gpuhal_vulkan_wrapper wrappers[GPUHAL_VULKAN_WRAPPERS];
    uint32_t copy_wrapper; /* for blocking copies: of a dedicated transfer family if there is one */
    uint32_t family_count; /* distinct families of the wrappers, which share the buffers */
    uint32_t families[GPUHAL_VULKAN_WRAPPERS];
    _Atomic uint32_t next_wrapper;         /* for the next queue */
    void (*lock)(void *user, void *queue); /* of an adopted device, or NULL */
    void (*unlock)(void *user, void *queue);
    void *lock_user;
    gpuhal_vulkan_device described; /* for native_device */
    gpuhal_vulkan_queue described_queues[GPUHAL_VULKAN_WRAPPERS];
    const char **extensions; /* enabled ones */
    uint32_t extension_count;
    gpuhal_vulkan_features *features; /* enabled in the VkDevice; described.features points to it */

    /* Internal streams: made in gpuhal_vulkan_streams_start() with their mutex and condition, all freed in
     * gpuhal_vulkan_streams_stop(). */
    pthread_mutex_t growing;     /* protects stream_count and the streams above it, extra_wrappers, idle_timelines */
    pthread_cond_t stream_freed; /* with `growing`: a stream became idle, or there is none to wait for */
    uint32_t stream_count;
    gpuhal_vulkan_stream streams[GPUHAL_VULKAN_INTERNAL_STREAMS];
    _Atomic uint32_t idle_streams;                 /* bit i: streams[i] exists and no call uses it */
    _Atomic uint32_t stream_waiters;               /* callers that wait for one */
    gpuhal_vulkan_wrapper *extra_wrappers;         /* VkQueues of an adopted device that were adopted one by one */
    struct gpuhal_vulkan_timeline *idle_timelines; /* without references, kept for the next queue */
    _Atomic bool lost;                             /* a call reported it; it stays so */
    _Atomic bool stuck;                /* work never ended: its objects, and so the VkDevice, stay for ever */
    _Atomic uint64_t allocation_count; /* alive, against maxMemoryAllocationCount */
};

/* The object of a gpuhal_memory. */
typedef struct gpuhal_vulkan_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t memory_offset;
    uint64_t memory_bytes; /* of the VkDeviceMemory; for the ranges of flush and invalidate */
    VkMemoryPropertyFlags type_flags;
    uint32_t export_kinds;  /* bits 1 << gpuhal_handle_kind that it was allocated with */
    bool wrapped;           /* buffer and memory are the caller's */
    uint64_t wrapped_usage; /* VkBufferUsageFlags, from the caller */
} gpuhal_vulkan_buffer;

/* discovery.c */
gpuhal_status gpuhal_vulkan_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
gpuhal_status gpuhal_vulkan_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
/* Returns the entry with this index, or NULL. */
const gpuhal_vulkan_entry *gpuhal_vulkan_find(uint32_t index);

/* hardware.c: reads all properties of a physical device; false with a sentence when this plugin cannot use it. */
bool gpuhal_vulkan_survey(const gpuhal_vulkan_instance_functions *api, VkPhysicalDevice physical,
                          uint32_t instance_version, gpuhal_vulkan_hardware *out_hardware, char *out_why,
                          size_t why_size);
/* Returns whether the heap is part of the device's total memory. */
bool gpuhal_vulkan_counts_heap(const gpuhal_vulkan_hardware *hardware, uint32_t heap);
gpuhal_vulkan_plan gpuhal_vulkan_plan_wrappers(const gpuhal_vulkan_hardware *hardware);
/* Returns whether queues of the family run launches. */
bool gpuhal_vulkan_computes(const gpuhal_vulkan_hardware *hardware, uint32_t family);

/* Returns the usage of every buffer of the plugin; wrapped ones have the caller's. */
VkBufferUsageFlags gpuhal_vulkan_usage(uint32_t enabled);

/* features.c: the names of the extensions that a device offers, and its feature structures in one piece of memory, a
 * VkPhysicalDeviceFeatures2 with its chain at the start. */

VkResult gpuhal_vulkan_list_extensions(const gpuhal_vulkan_instance_functions *api, VkPhysicalDevice physical,
                                       gpuhal_vulkan_extensions *out_extensions);
bool gpuhal_vulkan_offers(const gpuhal_vulkan_extensions *extensions, const char *name);

/* Returns every feature for compute work that the device reports; NULL without memory. Owner: caller, free(). */
gpuhal_vulkan_features *gpuhal_vulkan_features_ask(const gpuhal_vulkan_instance_functions *api,
                                                   VkPhysicalDevice physical, uint32_t version,
                                                   const gpuhal_vulkan_extensions *extensions);
/* Copies the known structures of a caller's chain; NULL without memory. Owner: caller, free(). */
gpuhal_vulkan_features *gpuhal_vulkan_features_copy(const void *chain);
const VkPhysicalDeviceFeatures2 *gpuhal_vulkan_features_chain(const gpuhal_vulkan_features *features);
/* Returns the GPUHAL_VULKAN_FEATURE_BITS that are switched on. */
uint32_t gpuhal_vulkan_features_bits(const gpuhal_vulkan_features *features);
/* Return whether features decide about this capability, and whether a module may have it. */
bool gpuhal_vulkan_features_know(uint32_t capability);
bool gpuhal_vulkan_features_allow(const gpuhal_vulkan_features *features, uint32_t capability);
/* Returns the GPUHAL_DATA_ bits of the features that are switched on. */
uint32_t gpuhal_vulkan_features_data_types(const gpuhal_vulkan_features *features);
/* Gives the names of the extensions of a device with these features, at most GPUHAL_VULKAN_EXTENSIONS; returns their
 * number. */
#define GPUHAL_VULKAN_EXTENSIONS 64u
uint32_t gpuhal_vulkan_features_extensions(const gpuhal_vulkan_features *features, uint32_t version,
                                           const gpuhal_vulkan_extensions *offered, const char **out_names);

/* facts.c and identity.c */
void gpuhal_vulkan_list_facts(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_entry *entry);
/* compute.c: limits and features of shaders. */
void gpuhal_vulkan_list_compute(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware);
/* Writes a 16-byte UUID in its canonical form; false when it is empty. */
bool gpuhal_vulkan_write_uuid(const uint8_t *uuid, char out_text[37]);
void gpuhal_vulkan_list_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware);

/* adopt.c: checks the description, and fills the opened device with the caller's device, its queues and the bits that
 * it was made with. */
gpuhal_status gpuhal_vulkan_adopt(gpuhal_plugin_device *device, const gpuhal_vulkan_entry *entry,
                                  const gpuhal_native *native);

/* open.c */
gpuhal_status gpuhal_vulkan_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops);
void gpuhal_vulkan_close(gpuhal_plugin_device *device);

/* context.c */

/* Returns OK for VK_SUCCESS; else reports the error, and records that the device is lost. */
gpuhal_status gpuhal_vulkan_result(gpuhal_plugin_device *device, const char *call, VkResult code);
/* Returns OK, or DEVICE_LOST with its report. Every slot that would call the vendor begins with it. */
gpuhal_status gpuhal_vulkan_alive(gpuhal_plugin_device *device);

/* type.c: returns the kinds that the memory types suit, for the survey. */
uint32_t gpuhal_vulkan_memory_kinds(const gpuhal_vulkan_hardware *hardware);

/* wrapper.c: submissions. */

void gpuhal_vulkan_wrapper_init(gpuhal_vulkan_wrapper *wrapper);
void gpuhal_vulkan_wrapper_finish(gpuhal_vulkan_wrapper *wrapper);
/* Takes the right to submit once, on this thread. False: native access has the wrapper, and this thread may not wait
 * for its end. */
bool gpuhal_vulkan_wrapper_enter(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper, bool may_wait);
/* Reports BUSY for a call that would have to wait. */
gpuhal_status gpuhal_vulkan_wrapper_busy(const gpuhal_plugin_device *device);
void gpuhal_vulkan_wrapper_leave(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper);
/* Takes the wrapper for native access, which any thread may end. NOT_READY when the time is over; BUSY, with its
 * report, on the thread whose own native access has the wrapper. */
gpuhal_status gpuhal_vulkan_wrapper_take(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper,
                                         uint64_t timeout_ns);
void gpuhal_vulkan_wrapper_give(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper);
/* Calls vkQueueSubmit with the required locks; waits for native access to end. */
VkResult gpuhal_vulkan_submit(gpuhal_plugin_device *device, gpuhal_vulkan_wrapper *wrapper, const VkSubmitInfo *submit,
                              VkFence fence);

/* internal_stream.c: blocking submissions. */

/* Returns whether a wait that returned this is worth another try, number @p tries; sleeps a little first. */
bool gpuhal_vulkan_wait_again(VkResult code, uint32_t tries);
/* Every command buffer of the plugin begins with a barrier that orders it after all earlier submissions to its VkQueue,
 * also by others. It ends with a barrier that orders all of them before later work, on the device and on the host. */
gpuhal_status gpuhal_vulkan_open_commands(gpuhal_plugin_device *device, VkCommandBuffer commands);
gpuhal_status gpuhal_vulkan_close_commands(gpuhal_plugin_device *device, VkCommandBuffer commands);
/* Adds the barrier between two commands of one command buffer that touch the same bytes: transfers, and with @p
 * dispatches launches.
 */
void gpuhal_vulkan_order_commands(gpuhal_plugin_device *device, VkCommandBuffer commands, bool dispatches);
/* Takes an internal stream whose command buffer has been begun and holds the barrier against earlier work; on the
 * wrapper for copies, or with @p dispatches on the first one, which computes. */
gpuhal_status gpuhal_vulkan_begin(gpuhal_plugin_device *device, bool dispatches, gpuhal_vulkan_stream **out_stream);
/* Ends it with the barrier towards the host, submits, waits, and gives the stream back. */
gpuhal_status gpuhal_vulkan_finish(gpuhal_plugin_device *device, gpuhal_vulkan_stream *stream);
/* Makes the first internal stream when the device opens, after its wrappers; on failure nothing is left. */
gpuhal_status gpuhal_vulkan_streams_start(gpuhal_plugin_device *device);
/* Frees all internal streams except broken ones. If there is a broken one, `stuck` is set, and vkDestroyDevice would be
 * wrong and could hang.
 */
void gpuhal_vulkan_streams_stop(gpuhal_plugin_device *device);
/* Waits until all earlier submissions to every VkQueue have ended. False: some VkQueue does not end its work, and its
 * objects have to stay. */
bool gpuhal_vulkan_drain(gpuhal_plugin_device *device);
/* Returns the wrapper of a VkQueue to adopt: of the opened device or, on an adopted device, of one of its families.
 * NULL: neither, or no memory; *out_status is INVALID_ARGUMENT or HOST_MEMORY then, and reported. */
gpuhal_vulkan_wrapper *gpuhal_vulkan_wrapper_of(gpuhal_plugin_device *device, const gpuhal_native *native,
                                                gpuhal_status *out_status);

/* timeline.c: frees the idle timelines when the device closes, before its internal streams; sets `stuck` if that is not
 * possible. */
void gpuhal_vulkan_timelines_stop(gpuhal_plugin_device *device);

/* transfer.c, queue.c, event.c and memory.c: fill their slots, as far as the hardware has them; open.c clears the slots
 * that an adopted device lacks. */
void gpuhal_vulkan_describe_context(gpuhal_ops *ops);
void gpuhal_vulkan_describe_memory(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops);
void gpuhal_vulkan_describe_transfer(gpuhal_ops *ops);
void gpuhal_vulkan_describe_queues(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops);
void gpuhal_vulkan_describe_events(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops);
void gpuhal_vulkan_describe_programs(const gpuhal_vulkan_hardware *hardware, gpuhal_ops *ops); /* program.c */

/* queue.c: prepares a queue for a piece that transfer.c or launch.c records. Begins a command buffer when none is open,
 * and orders the piece after earlier commands that touch the same bytes (a NULL buffer touches none). The caller
 * records right after, and nothing else. Returns NOT_READY, with nothing done, if that would wait for the device or for
 * native access; never for a piece of a transfer that has begun. */
typedef struct gpuhal_vulkan_span {
    VkBuffer buffer;
    uint64_t begin, end;
} gpuhal_vulkan_span;
typedef struct gpuhal_vulkan_touch {
    gpuhal_vulkan_span span;
    bool writes;
} gpuhal_vulkan_touch;
typedef enum gpuhal_vulkan_piece {
    GPUHAL_VULKAN_TRANSFER,
    GPUHAL_VULKAN_TRANSFER_BEGUN, /* one more command of the same transfer */
    GPUHAL_VULKAN_DISPATCH
} gpuhal_vulkan_piece;
gpuhal_status gpuhal_vulkan_queue_record(gpuhal_plugin_queue *queue, gpuhal_vulkan_piece piece,
                                         const gpuhal_vulkan_touch *touches, uint32_t count,
                                         VkCommandBuffer *out_commands);
/* Returns whether all enqueued work is done, so that the host may touch memory in order with it. */
bool gpuhal_vulkan_queue_is_idle(gpuhal_plugin_queue *queue);

static inline gpuhal_vulkan_buffer *gpuhal_vulkan_buffer_of(const gpuhal_memory *memory)
{
    return memory->object;
}

#endif
