/* device/device.h: the gpuhal object and its devices, as the layers above see them.
 *
 * All members except the marked ones are written while gpuhal_open() runs, before a device is published, or while it
 * opens, and are only read afterwards. Once `state` is GPUHAL_DEVICE_IS_OPEN, the device stays open as long as the
 * gpuhal object.
 */
#ifndef GPUHAL_DEVICE_DEVICE_H
#define GPUHAL_DEVICE_DEVICE_H

#include "base/call.h"
#include "base/job.h"
#include "device/worker.h"
#include "loader/loader.h"
#include "os/os.h"
#include "registry/registry.h"

#include <gpuhal/device.h>

#include <stdatomic.h>

struct gpuhal_staging;       /* transfer/staging.h */
struct gpuhal_device_snapshot;       /* snapshot.h */
struct gpuhal_link;          /* link.h */
struct gpuhal_fault_log;         /* fault_log.h */
struct gpuhal_buffer;        /* memory/buffer.h */
struct gpuhal_queue;         /* queue/queue.h */
struct gpuhal_pools;         /* pool/pool.h */
struct gpuhal_leases;        /* schedule/leases.h */
struct gpuhal_relief;        /* memory/buffer.h */
struct gpuhal_telemetry;     /* telemetry/telemetry.h */
struct gpuhal_strategies;    /* schedule/strategy.h */
struct gpuhal_timeline;      /* queue/timeline.h */
struct gpuhal_view;          /* view.h */

struct gpuhal_sample;

/* A part above the core, which may be left out of a build. Each has one state in the gpuhal object; gpuhal.c calls
 * these functions for it. */
typedef struct gpuhal_attachment {
    void *(*create)(void);       /* NULL without memory */
    void (*opened)(gpuhal *gpu); /* the devices are listed; NULL: nothing to do */
    void (*end)(gpuhal *gpu);    /* the application closes the object; ends waits, callbacks and threads */
    void (*destroy)(void *state); /* no call is in progress, and the devices are gone; NULL does nothing */
    /* adds its sources to a view, for the flags of gpuhal_view_of(), or fails; NULL: it has none */
    gpuhal_status (*view)(const gpuhal *gpu, uint32_t flags, struct gpuhal_view *view);
} gpuhal_attachment;
typedef enum gpuhal_attachment_place {
    GPUHAL_ATTACHED_NODE = 0,
    GPUHAL_ATTACHED_SCHEDULE,
    GPUHAL_ATTACHMENTS
} gpuhal_attachment_place;
extern const gpuhal_attachment gpuhal_node_attachment;     /* node/sampler.c */
extern const gpuhal_attachment gpuhal_schedule_attachment; /* schedule/schedule.c */

/* The state of the layers above in the object, and their functions that this layer and `memory` call. Set by gpuhal.c,
 * the only file that sees all layers. */
typedef struct gpuhal_layers {
    struct gpuhal_telemetry *telemetry;     /* telemetry/telemetry.h */
    struct gpuhal_address_index *addresses; /* memory/address_index.h */
    _Atomic(struct gpuhal_thread_pool *) thread_pool;     /* created and ended by transfer/thread_pool.c */
    struct gpuhal_service *service;             /* queue/completion_service.h: shared by all queues */
    struct gpuhal_timeline *timeline;           /* queue/timeline.h */
    struct gpuhal_notifier *notifier;           /* hotplug/change.h */
    struct gpuhal_pools *pools;                 /* pool/pool.h */
    void *attached[GPUHAL_ATTACHMENTS];         /* the state of each; NULL: this build does not have it */

    void (*destroy)(gpuhal *gpu); /* after the last reference was released */
    /* Frees memory in steps for an allocation that the device refused, and tries the allocation again after each
     * step. */
    gpuhal_status (*relieve)(struct gpuhal_relief *relief);
    /* For parts of a pool's memory: release_part: the last reference was released; use_part: a queue is about to use it
     * (HOST_MEMORY); find_part: returns the part at an offset of a segment, retained, with the offset in the part
     * (NULL: none), and releases the caller's reference to the segment. */
    void (*release_part)(struct gpuhal_buffer *buffer);
    void (*released_twice)(struct gpuhal_buffer *buffer); /* a part without references was released */
    gpuhal_status (*use_part)(struct gpuhal_buffer *buffer, struct gpuhal_queue *queue);
    struct gpuhal_buffer *(*find_part)(struct gpuhal_buffer *segment, uint64_t *offset);
    /* Callbacks run on the service thread. `serve` starts it, and returns 0 or errno. After that `serve_released` makes
     * it call gpuhal_buffer_end(), and `serve_call` makes it call `call` (false: no memory, no call). */
    int (*serve)(gpuhal *gpu);
    void (*serve_released)(struct gpuhal_buffer *buffer);
    bool (*serve_call)(gpuhal *gpu, void (*call)(void *user, gpuhal_status status), void *user);
    /* gpuhal_sample_all(). Calls plugins. */
    gpuhal_status (*sample_all)(gpuhal *gpu, struct gpuhal_sample *samples, uint32_t count, uint64_t timeout_ns);
    /* of the attachment with a view; NULL: none has one */
    gpuhal_status (*view)(const gpuhal *gpu, uint32_t flags, struct gpuhal_view *view);
    /* called once when a device is lost, with the reason as this thread's last error; must not call a plugin */
    void (*on_lost)(gpuhal_device *device);
    /* Begin and end the watch over calls for the device; `unwatch` does nothing for a device that is not watched. */
    void (*watch)(gpuhal_device *device);
    void (*unwatch)(gpuhal_device *device);
    /* Called when the plugin in this process lists the device with other facts than the snapshot; must not call a
     * plugin. */
    void (*on_changed)(gpuhal_device *device, const char *sentence);
} gpuhal_layers;

struct gpuhal {
    gpuhal_job ending;           /* comes first; gpuhal.c */
    _Atomic uint64_t references; /* the caller's, one for each buffer, and one for all workers */
    uint32_t generation;         /* fork generation of its opening: see gpuhal_check() */
    gpuhal_workers workers;
    gpuhal_settings settings;
    gpuhal_log *log;
    gpuhal_registry *registry;
    struct gpuhal_fault_log *fault_log;
    _Atomic bool cache_warned; /* a warning that programs cannot be cached was logged; program/cache.c */
    _Atomic(char *) processor; /* malloc'ed: its capabilities, read once; NULL: not yet; program/key.c */
    /* the newest; NULL before the first. gpuhal_device_count() and _at() walk the devices */
    _Atomic(struct gpuhal_device_snapshot *) snapshot;
    gpuhal_layers layers;
};

/* The plugin returned DEVICE_LOST; or a call hung, and the plugin is not called any more; or the device is no longer
 * listed. */
enum { GPUHAL_NOT_LOST = 0, GPUHAL_LOST = 1, GPUHAL_LOST_HUNG = 2, GPUHAL_LOST_VANISHED = 3 };

typedef enum { GPUHAL_DEVICE_CLOSED = 0, GPUHAL_DEVICE_OPENING, GPUHAL_DEVICE_IS_OPEN } gpuhal_device_state;

/* Faults of one kind that are not yet in the registry; device/fault_log.c. */
typedef struct gpuhal_fault_note {
    _Atomic uint64_t count;
    _Atomic bool reported; /* the first one has been written at once */
    _Atomic int words; /* which thread may use `detail` */
    char detail[256];
} gpuhal_fault_note;
/* kinds of fault that a device has */
enum { GPUHAL_FAULT_NOTES = GPUHAL_FAULT_OUT_OF_MEMORY - GPUHAL_FAULT_HANG + 1 };

/* The purpose of buffers as a text, with the number of these buffers, without parts of pools; memory/tag.c. */
typedef struct gpuhal_tag {
    struct gpuhal_tag *next; /* tags stay as long as their device; protected by its mutex */
    _Atomic uint64_t buffers, bytes;
    uint64_t parts, part_bytes; /* for pool/left.c alone */
    char text[64];              /* "": of buffers without a tag */
} gpuhal_tag;

/* The transfers in one direction. Those above a certain size are timed as well. */
typedef struct gpuhal_counter {
    _Atomic uint64_t operations, bytes, timed_operations, timed_bytes, timed_ns;
} gpuhal_counter;

/* For how long queues of the device had work; device/busy.c. */
typedef struct gpuhal_busy {
    _Atomic bool wanted; /* the value was read; nothing is counted before */
    gpuhal_mutex mutex;  /* protects the members below */
    uint32_t queues;     /* that have work now */
    uint64_t since_ns;   /* when the first of them got work */
    uint64_t total_ns;   /* until since_ns */
} gpuhal_busy;

/* A device whose calls are watched; queue/watchdog.c. */
typedef struct gpuhal_watched {
    gpuhal_device *next;
    const gpuhal_plugin *plugin;
    bool goes_on;     /* the driver has reported progress since the last look */
    bool answered;    /* it had reported progress before that look */
    bool kept;        /* one more reference to the object, while a thread is stuck in the driver */
    bool probe;       /* the driver must be asked for progress */
    gpuhal_worker ask, report;
} gpuhal_watched;

struct gpuhal_device {
    gpuhal *gpu;
    const gpuhal_candidate *candidate;
    const gpuhal_listed_device *listed;
    char id[48];
    /* in the id: the backend's index when the device was first listed, unless another device has that id */
    uint32_t index;
    uint64_t vanished; /* when it was found missing, in seconds since 1970; written before `lost` */
    /* as the driver in this process lists it; NULL: it was not asked yet */
    _Atomic(const gpuhal_listed_device *) here;
    uint32_t physical_number, interface_number; /* stable numbers of the registry; 0 above its limit */
    uint32_t position;         /* among the visible devices */
    /* during a rescan: some of several equal devices are gone, and it is unknown which; match.c */
    bool unsure;
    _Atomic(struct gpuhal_link *) links[32]; /* rows of links, one to each visible device */

    gpuhal_mutex mutex;         /* protects opening; unlocked during calls of the plugin */
    gpuhal_condition condition; /* `state` changed */
    _Atomic int state;          /* gpuhal_device_state, written with `mutex` locked */
    const void *opener;          /* that thread, by gpuhal_job_caller() */
    gpuhal_job *closing;   /* while the object ends; NULL: none */
    gpuhal_job *abandoned; /* an opening that exceeded its deadline; NULL: none. Used by the opening thread */

    /* Set by opening. */
    gpuhal_backend *backend;
    const gpuhal_plugin *plugin;
    gpuhal_plugin_device *handle;
    _Atomic uint32_t lost; /* GPUHAL_NOT_LOST … */
    /* The driver's call, or code, that first reported the loss: written by the thread that sets the first flag, read
     * once the second is set. That is before `lost`, unless another thread found the loss at the same time. */
    _Atomic bool has_loss, has_loss_call;
    int64_t loss_code;
    char loss_call[64];
    char lacks[160];       /* the plugin's note about features that the adopted device lacks; "": none */
    uint32_t memory_kinds;
    uint64_t copy_mask, fill_mask; /* alignment - 1 */
    uint64_t allocation_max_bytes;
    struct gpuhal_staging *staging[2]; /* to the device, from it; created and freed by transfer/staging.c */
    union {
        gpuhal_ops ops;
        unsigned char ops_space[GPUHAL_OPS_SPACE];
    };
    gpuhal_ops *traced; /* the plugin's slots, if `ops` are those of trace.c; NULL: not traced */

    gpuhal_watched watched;
    _Atomic uint32_t native_accesses; /* queues with native access of the caller */
    /* calls that may compile in the driver, and kernels that it may be compiling for their first launch */
    _Atomic uint32_t compiling;
    _Atomic bool compared;            /* with the list of the plugin in this process */
    /* the driver never released some object of this device, so the device must not be closed */
    _Atomic bool stuck;
    /* bit i: the plugin does not have the value 0x1000 + i, so it is not asked for it on behalf of other interfaces */
    _Atomic uint64_t unsupported;
    _Atomic uint64_t allocated_bytes; /* by this gpuhal object, including requests under way */
    _Atomic uint64_t allocated_in, allocated_out, allocated_peak; /* bytes allocated and released since it opened */
    _Atomic uint64_t limit_bytes;     /* 0: none */
    _Atomic uint64_t lease_bytes;     /* of the object's leases on the device; 0: none limits it */
    _Atomic uint64_t lease_number;    /* of one of them */
    _Atomic uint32_t group_state;     /* group_limit.c */
    gpuhal_tag untagged;              /* the first of all tags */
    gpuhal_fault_note faults[GPUHAL_FAULT_NOTES];
    gpuhal_busy busy;
    gpuhal_counter written, read, filled, copied; /* transfers of this device alone; transfer/account.h */
};

/* Creates a closed device; does not call the plugin. NULL without memory. */
gpuhal_device *gpuhal_device_create(gpuhal *gpu, const gpuhal_candidate *candidate, const gpuhal_listed_device *listed,
                                    uint32_t index);
/* Closes the device if it is open, and frees it. */
void gpuhal_device_destroy(gpuhal_device *device);
/* Closes and frees all devices; staging must have been freed before. */
void gpuhal_devices_destroy(gpuhal *gpu);

/* Loads the plugin into this process if needed, and finds the device in its list. Differences from the snapshot are
 * written to the registry and reported to on_changed, once for each device. */
gpuhal_status gpuhal_device_start_backend(gpuhal_device *device, gpuhal_backend **out_backend,
                                          const gpuhal_listed_device **out_listed);
/* Returns the current facts of the device: as listed by the driver in this process, else by the newest snapshot. Lives
 * as long as the gpuhal object. */
const gpuhal_listed_device *gpuhal_device_current(const gpuhal_device *device);
/* For the parts: their state in the object, and callbacks on its service thread (see gpuhal_layers). */
static inline void *gpuhal_attached(const gpuhal *gpu, gpuhal_attachment_place place)
{
    return gpu->layers.attached[place];
}
static inline int gpuhal_serve(gpuhal *gpu)
{
    return gpu->layers.serve(gpu);
}
static inline bool gpuhal_serve_call(gpuhal *gpu, void (*call)(void *user, gpuhal_status status), void *user)
{
    return gpu->layers.serve_call(gpu, call, user);
}

/* The rule for forks: in the child no call touches an object of the parent's, nor one of its locks. Every public call
 * that returns a status first returns FORKED; a call that releases an object does nothing. */
static inline bool gpuhal_is_inherited(const gpuhal *gpu)
{
    return __builtin_expect(gpu->generation != gpuhal_os_fork_generation(), 0);
}
static inline gpuhal_status gpuhal_check(const gpuhal *gpu)
{
    return gpuhal_is_inherited(gpu) ? gpuhal_error_forked() : GPUHAL_OK;
}
/* Returns the error of a call with `what`, which belong to two gpuhal objects: FORKED if one is a parent's, else
 * INVALID_ARGUMENT. */
gpuhal_status gpuhal_two_objects(const char *call, const char *what, const gpuhal *one, const gpuhal *other);
/* Returns whether calls may go to the plugin now: OK, FORKED or DEVICE_LOST with its detail. */
gpuhal_status gpuhal_device_unusable(const gpuhal_device *device);
static inline gpuhal_status gpuhal_device_check(const gpuhal_device *device)
{
    uint32_t lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    if (__builtin_expect(lost != 0, 0) || gpuhal_is_inherited(device->gpu)) {
        return gpuhal_device_unusable(device);
    }
    return GPUHAL_OK;
}
/* Returns whether objects of the device may be released by its plugin: not once it hangs, nor by a thread that forked
 * in a call of the plugin, in the child. */
static inline bool gpuhal_device_is_reachable(const gpuhal_device *device)
{
    return !gpuhal_is_inherited(device->gpu) &&
           atomic_load_explicit(&device->lost, memory_order_relaxed) != GPUHAL_LOST_HUNG;
}
/* Marks the device as lost (hung) for every caller, because a call exceeded its deadline. Returns true the first time:
 * then the caller must report it. Two stores, no lock. */
bool gpuhal_device_give_up(gpuhal_device *device);
/* Reports the hang to queues, listeners, the log and the registry. Calls no plugin. */
void gpuhal_device_report_hang(gpuhal_device *device);
/* Returns DEVICE_LOST for a call that returned after its device was given up, also if the plugin returned OK. */
gpuhal_status gpuhal_device_late(void);
/* Ends a call of the plugin and returns its status. */
static inline gpuhal_status gpuhal_device_result(const gpuhal_device *device, gpuhal_call call, gpuhal_status status)
{
    gpuhal_call_end(call);
    bool late = atomic_load_explicit(&device->lost, memory_order_relaxed) == GPUHAL_LOST_HUNG;
    return __builtin_expect(late, 0) ? gpuhal_device_late() : status;
}
/* Begin and end a call that may compile in the driver. It has no deadline, and other calls of the driver may wait for
 * it. */
static inline gpuhal_call gpuhal_device_begin_compiling(gpuhal_device *device)
{
    atomic_fetch_add_explicit(&device->compiling, 1, memory_order_relaxed);
    return gpuhal_call_timed(device, UINT64_MAX);
}
static inline gpuhal_status gpuhal_device_end_compiling(gpuhal_device *device, gpuhal_call call, gpuhal_status status)
{
    atomic_fetch_sub_explicit(&device->compiling, 1, memory_order_relaxed);
    return gpuhal_device_result(device, call, status);
}
/* Returns the timeout of the driver for one value, or one link. */
uint64_t gpuhal_device_query_ns(const gpuhal_device *device);
/* Returns how many bytes the object may allocate on the device, by its limit and by its leases; 0: no limit. */
static inline uint64_t gpuhal_device_limit(const gpuhal_device *device)
{
    const uint64_t limit = atomic_load(&device->limit_bytes), leased = atomic_load(&device->lease_bytes);
    return limit == 0 || (leased > 0 && leased < limit) ? leased : limit;
}
/* Returns how many bytes of the device's memory the control groups of this process may still allocate, and their limit
 * (dmem.max of the kernel); UINT64_MAX for both: the kernel sets no limit. Reads files. */
uint64_t gpuhal_device_group_left(gpuhal_device *device, uint64_t *out_limit);
/* Note that a queue of the device has work, and that it has no more. Only for a device whose `busy.wanted` is set. */
void gpuhal_busy_begin(gpuhal_device *device);
void gpuhal_busy_end(gpuhal_device *device);
/* Returns for how long queues had work since this was first called. */
uint64_t gpuhal_busy_ns(gpuhal_device *device);
/* Copies a plugin's result, up to the size of the caller's structure, which must not be 0. */
void gpuhal_native_give(gpuhal_native *out_native, gpuhal_native native);
/* Returns INVALID_ARGUMENT with its detail if the size is 0. */
gpuhal_status gpuhal_native_check(const char *call, const gpuhal_native *out_native);
/* Returns whether the device accepts such a native object: OK, INVALID_ARGUMENT or NOT_SUPPORTED with its detail. */
gpuhal_status gpuhal_device_takes(const gpuhal_device *device, const gpuhal_native *native);
/* Returns NOT_SUPPORTED for `what`, which the plugin does not offer on adopted devices, with the plugin's note about
 * this one. */
gpuhal_status gpuhal_device_lacks(gpuhal_device *device, const char *what);
/* Turns a plugin's status into the detail "opencl:1: <what>: …", and marks a lost device. `format` names the action.
 */
gpuhal_status gpuhal_device_failed(gpuhal_device *device, gpuhal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Releases one reference; the last one frees everything. In the child of a fork the parent's object stays. */
static inline void gpuhal_unreference(gpuhal *gpu)
{
    if (atomic_fetch_sub_explicit(&gpu->references, 1, memory_order_acq_rel) == 1 && !gpuhal_is_inherited(gpu)) {
        gpu->layers.destroy(gpu);
    }
}

/* Returns whether the two are interfaces of the same partition of one physical device, so that one may replace the
 * other; or at least of the same physical device. physical.c. */
bool gpuhal_devices_same_part(const gpuhal_device *a, const gpuhal_device *b);
bool gpuhal_devices_same_piece(const gpuhal_device *a, const gpuhal_device *b);
/* Returns the PCI address that an interface of the device's physical device states; NULL when none does. */
const char *gpuhal_device_hardware_address(const gpuhal_device *device);

#endif
