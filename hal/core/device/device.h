/* device/device.h: the gpuhal object and its devices, for the layers above.
 *
 * Unless a comment says otherwise, members are written while gpuhal_open() runs, before a device is published, or while
 * it is being opened. Afterwards they are only read. Once `state` is GPUHAL_DEVICE_IS_OPEN, the device stays open as
 * long as the gpuhal object.
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
#include <gpuhal/direct.h>

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

/* An optional part of the library above the core, with one state in the gpuhal object. gpuhal.c calls its functions;
 * gpuhal_view_of() calls `view`. */
typedef struct gpuhal_attachment {
    void *(*create)(void);       /* NULL if out of memory */
    void (*opened)(gpuhal *gpu); /* after the devices were listed; may be NULL */
    void (*end)(gpuhal *gpu);    /* when the application closes the object; ends waits, callbacks and threads */
    void (*destroy)(void *state); /* when no calls are in progress and all devices are freed; accepts NULL */
    /* Adds the attachment's sources to a view for the flags of gpuhal_view_of(), or fails. NULL if it has none. */
    gpuhal_status (*view)(const gpuhal *gpu, uint32_t flags, struct gpuhal_view *view);
} gpuhal_attachment;
typedef enum gpuhal_attachment_place {
    GPUHAL_ATTACHED_NODE = 0,
    GPUHAL_ATTACHED_SCHEDULE,
    GPUHAL_ATTACHMENTS
} gpuhal_attachment_place;
extern const gpuhal_attachment gpuhal_node_attachment;     /* node/sampler.c */
extern const gpuhal_attachment gpuhal_schedule_attachment; /* schedule/schedule.c */

/* The state of the layers above, and their functions that this layer and `memory` call. Set by gpuhal.c, the only file
 * that includes headers of all layers. */
typedef struct gpuhal_layers {
    struct gpuhal_telemetry *telemetry;     /* telemetry/telemetry.h */
    struct gpuhal_address_index *addresses; /* memory/address_index.h */
    _Atomic(struct gpuhal_thread_pool *) thread_pool;     /* created and destroyed by transfer/thread_pool.c */
    struct gpuhal_service *service;             /* queue/completion_service.h: shared by all queues */
    struct gpuhal_timeline *timeline;           /* queue/timeline.h */
    struct gpuhal_notifier *notifier;           /* hotplug/change.h */
    struct gpuhal_pools *pools;                 /* pool/pool.h */
    void *attached[GPUHAL_ATTACHMENTS];         /* the state of each attachment; NULL if not in this build */

    void (*destroy)(gpuhal *gpu); /* after the last reference was released */
    /* Frees memory step by step after the device refused an allocation, and retries the allocation after each step. */
    gpuhal_status (*relieve)(struct gpuhal_relief *relief);
    /* For parts, which are suballocations of a pool. release_part is called after the last reference was released.
     * use_part is called before a queue uses the part, and may return HOST_MEMORY, INVALID_ARGUMENT or FORKED.
     * find_part returns the part at an offset of a segment, with a new reference, and sets the offset in the part; it
     * returns NULL if there is none. It also releases the caller's reference to the segment. */
    void (*release_part)(struct gpuhal_buffer *buffer);
    void (*released_twice)(struct gpuhal_buffer *buffer); /* called if a part without references is released */
    gpuhal_status (*use_part)(struct gpuhal_buffer *buffer, struct gpuhal_queue *queue);
    struct gpuhal_buffer *(*find_part)(struct gpuhal_buffer *segment, uint64_t *offset);
    /* Callbacks on the service thread. `serve` starts the thread and returns 0 or an errno. Then `serve_released` makes
     * the thread call gpuhal_buffer_end(), and `serve_call` makes it call `call`, or returns false if out of memory. */
    int (*serve)(gpuhal *gpu);
    void (*serve_released)(struct gpuhal_buffer *buffer);
    bool (*serve_call)(gpuhal *gpu, void (*call)(void *user, gpuhal_status status), void *user);
    /* Calls plugins. */
    gpuhal_status (*sample_all)(gpuhal *gpu, struct gpuhal_sample *samples, uint32_t count, uint64_t timeout_ns);
    /* `view` of the attachment that has sources; NULL if none has */
    gpuhal_status (*view)(const gpuhal *gpu, uint32_t flags, struct gpuhal_view *view);
    /* Called when a device is lost in a plugin call or hangs, and again if a lost device then hangs, with the reason as
     * this thread's last error. Not called when a device vanishes. Must not call a plugin. */
    void (*on_lost)(gpuhal_device *device);
    /* `unwatch` does nothing if the device is not watched. */
    void (*watch)(gpuhal_device *device);
    void (*unwatch)(gpuhal_device *device);
    /* Called if the plugin in this process reports other facts than the snapshot, or does not list the device. Must not
     * call a plugin. */
    void (*on_changed)(gpuhal_device *device, const char *sentence);
} gpuhal_layers;

struct gpuhal {
    gpuhal_job ending;           /* must be first; gpuhal.c */
    _Atomic uint64_t references; /* one for the caller, one for each buffer, queue and other object, and one for all
                                  * workers together */
    uint32_t generation;         /* fork generation at gpuhal_open(): see gpuhal_check() */
    gpuhal_workers workers;
    gpuhal_settings settings;
    gpuhal_log *log;
    gpuhal_registry *registry;
    struct gpuhal_fault_log *fault_log;
    /* Runs whose recordings and steps a worker frees; program/recording_run.c. */
    _Atomic(struct gpuhal_uses *) ended_runs;
    gpuhal_worker freeing;
    gpuhal_atomic_flag cache_warned; /* a warning that programs cannot be cached was logged; program/cache.c */
    _Atomic(char *) processor; /* the CPU's capabilities, malloc'ed; NULL until read; program/key.c */
    /* The newest snapshot; NULL before the first enumeration. gpuhal_device_count() and _at() read its devices. */
    _Atomic(struct gpuhal_device_snapshot *) snapshot;
    gpuhal_layers layers;
};

/* LOST means that the plugin returned DEVICE_LOST. HUNG means that a call hung, and the plugin is no longer called.
 * VANISHED means that the device is no longer listed. */
enum { GPUHAL_NOT_LOST = 0, GPUHAL_LOST = 1, GPUHAL_LOST_HUNG = 2, GPUHAL_LOST_VANISHED = 3 };

typedef enum { GPUHAL_DEVICE_CLOSED = 0, GPUHAL_DEVICE_OPENING, GPUHAL_DEVICE_IS_OPEN } gpuhal_device_state;

/* Faults of one kind that are not yet in the registry; device/fault_log.c. */
typedef struct gpuhal_fault_note {
    _Atomic uint64_t count;
    gpuhal_atomic_flag reported; /* the worker was requested to write the first fault immediately */
    _Atomic int words; /* state of `detail`; device/fault_log.c */
    char detail[256];
} gpuhal_fault_note;
enum { GPUHAL_FAULT_NOTES = GPUHAL_FAULT_OUT_OF_MEMORY - GPUHAL_FAULT_HANG + 1 };

/* A string that states the purpose of buffers, with statistics of these buffers, without pool parts; memory/tag.c. */
typedef struct gpuhal_tag {
    struct gpuhal_tag *next; /* tags exist as long as their device; protected by the device's mutex */
    _Atomic uint64_t buffers, bytes;
    uint64_t parts, part_bytes; /* only for pool/left.c */
    char text[64];              /* "" for buffers without a tag */
} gpuhal_tag;

/* Counts the transfers in one direction. Those above a certain size are also timed. */
typedef struct gpuhal_counter {
    _Atomic uint64_t operations, bytes, timed_operations, timed_bytes, timed_ns;
} gpuhal_counter;

/* Measures for how long queues of the device had work; device/busy.c. */
typedef struct gpuhal_busy {
    _Atomic bool wanted; /* the value was read; before that, no time is measured */
    gpuhal_mutex mutex;  /* protects the members below */
    uint32_t queues;     /* number of queues that have work */
    uint64_t since_ns;   /* start of the latest busy period */
    uint64_t total_ns;   /* duration of all busy periods that have ended */
} gpuhal_busy;

/* A device whose calls are watched; queue/watchdog.c. */
typedef struct gpuhal_watched {
    gpuhal_device *next;
    const gpuhal_plugin *plugin;
    bool goes_on;     /* the driver has reported progress since the last check */
    bool answered;    /* the driver reported progress between the last two checks */
    bool kept;        /* the object has an extra reference while a thread hangs in the driver */
    bool probe;       /* the driver must be queried for progress */
    gpuhal_worker ask, report;
} gpuhal_watched;

struct gpuhal_device {
    gpuhal *gpu;
    const gpuhal_candidate *candidate;
    const gpuhal_listed_device *listed;
    char id[48];
    /* The number in the device's id: the backend's index when the device was first listed, unless another device had
     * that id. */
    uint32_t index;
    uint64_t vanished; /* time when the device was found missing, in seconds since 1970; written before `lost` */
    /* as listed by the driver in this process; NULL until queried, or if absent there */
    _Atomic(const gpuhal_listed_device *) here;
    uint32_t physical_number, interface_number; /* the registry's stable numbers; 0 above its limit */
    uint32_t position;         /* position among the visible devices */
    /* Set during a rescan if some of several identical devices are missing, and it is unknown which of them;
     * match.c. */
    bool unsure;
    _Atomic(struct gpuhal_link *) links[32]; /* rows of links, with one link for each visible device */

    gpuhal_mutex mutex;         /* protects opening; unlocked during plugin calls */
    gpuhal_condition condition; /* signals changes of `state` */
    _Atomic int state;          /* a gpuhal_device_state, written with `mutex` locked */
    const void *opener;          /* gpuhal_job_caller() of the thread that opens the device */
    gpuhal_job *closing;   /* while the object is being destroyed; otherwise NULL */
    gpuhal_job *abandoned; /* an opening job that exceeded its deadline, or NULL; accessed only by the opening thread,
                            * and released with the device */

    /* Set when the device is opened. */
    gpuhal_backend *backend;
    const gpuhal_plugin *plugin;
    gpuhal_plugin_device *handle;
    _Atomic uint32_t lost; /* GPUHAL_NOT_LOST … */
    /* The driver's call or code that first reported the loss. Written by the thread that sets has_loss, and read only
     * after has_loss_call is set. has_loss_call is set before `lost`, unless two threads detect the loss at the same
     * time. */
    gpuhal_atomic_flag has_loss;
    _Atomic bool has_loss_call;
    int64_t loss_code;
    char loss_call[64];
    char lacks[160];       /* the plugin's note about features missing from the adopted device, or "" */
    uint32_t memory_kinds;
    uint64_t copy_mask, fill_mask; /* alignment - 1 */
    uint64_t allocation_max_bytes;
    struct gpuhal_staging *staging[2]; /* for transfers to and from the device; created and freed by
                                        * transfer/staging.c */
    /* Copies of the plugin's tables, so that a call loads only the slot. The struct has the members of gpuhal_slots. */
    union {
        gpuhal_slots slots;
        struct {
            gpuhal_ops ops;
            gpuhal_queue_ops queues;
            gpuhal_peer_ops peers;
            gpuhal_range_ops ranges;
            gpuhal_program_ops programs;
            gpuhal_native_ops native;
            gpuhal_recording_ops recordings;
        };
    };
    gpuhal_slots *traced; /* the plugin's slots if `slots` contains those of trace.c; otherwise NULL */

    gpuhal_watched watched;
    _Atomic uint32_t native_accesses; /* number of queues with native access by the caller */
    /* Number of calls that may compile in the driver, plus number of launches and recording runs whose kernels the
     * driver may be compiling for their first launch. */
    _Atomic uint32_t compiling;
    gpuhal_atomic_flag compared; /* the device was compared with the plugin's list in this process, or the plugin's
                                  * failed start was recorded */
    /* The driver never released an object of this device, so the device must not be closed. */
    _Atomic bool stuck;
    /* Bit i means that the plugin does not have value 0x1000 + i, so it is not queried for other interfaces. */
    _Atomic uint64_t unsupported;
    _Atomic uint64_t allocated_bytes; /* allocated by this gpuhal object, including pending requests */
    _Atomic uint64_t allocated_in, allocated_out, allocated_peak; /* bytes allocated and released since opening; peak */
    _Atomic uint64_t limit_bytes;     /* 0 if none */
    _Atomic uint64_t lease_bytes;     /* limit of the object's leases on the device; 0 if none */
    _Atomic uint64_t lease_number;    /* number of one of these leases */
    _Atomic uint32_t group_state;     /* group_limit.c */
    gpuhal_tag untagged;              /* head of the list of all tags */
    gpuhal_fault_note faults[GPUHAL_FAULT_NOTES];
    gpuhal_busy busy;
    gpuhal_counter written, read, filled, copied; /* transfers of this device only; transfer/account.h */
};

/* Creates a closed device without calling the plugin. Returns NULL if out of memory. */
gpuhal_device *gpuhal_device_create(gpuhal *gpu, const gpuhal_candidate *candidate, const gpuhal_listed_device *listed,
                                    uint32_t index);
/* Frees the device without closing it. */
void gpuhal_device_destroy(gpuhal_device *device);
/* Closes and frees all devices. Staging must be freed first. */
void gpuhal_devices_destroy(gpuhal *gpu);

/* Loads the plugin into this process if necessary, and finds the device in its list. Writes differences from the
 * snapshot to the registry and reports them to on_changed, once for each device. */
gpuhal_status gpuhal_device_start_backend(gpuhal_device *device, gpuhal_backend **out_backend,
                                          const gpuhal_listed_device **out_listed);
/* Returns the device's facts from the driver in this process, otherwise from the newest snapshot, or from the first
 * listing if the device is gone. They are valid as long as the gpuhal object exists. */
const gpuhal_listed_device *gpuhal_device_current(const gpuhal_device *device);
/* These functions give attachments access to their state in the object, and to callbacks on its service thread (see
 * gpuhal_layers). */
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

/* The rule for forks: in a child process, no call accesses the parent's objects or their locks. A public call that
 * returns a status returns FORKED before it uses the object. A call that releases an object does nothing. */
static inline bool gpuhal_is_inherited(const gpuhal *gpu)
{
    return __builtin_expect(gpu->generation != gpuhal_os_fork_generation(), 0);
}
static inline gpuhal_status gpuhal_check(const gpuhal *gpu)
{
    return gpuhal_is_inherited(gpu) ? gpuhal_error_forked() : GPUHAL_OK;
}
/* Returns the error for a call whose arguments (`what`) belong to two gpuhal objects: FORKED if one belongs to the
 * parent process, otherwise INVALID_ARGUMENT. */
gpuhal_status gpuhal_two_objects(const char *call, const char *what, const gpuhal *one, const gpuhal *other);
/* These functions return FORKED or DEVICE_LOST, with the detail, if the plugin must not be called now.
 * gpuhal_device_check() returns OK otherwise. */
gpuhal_status gpuhal_device_unusable(const gpuhal_device *device);
static inline gpuhal_status gpuhal_device_check(const gpuhal_device *device)
{
    uint32_t lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    if (__builtin_expect(lost != 0, 0) || gpuhal_is_inherited(device->gpu)) {
        return gpuhal_device_unusable(device);
    }
    return GPUHAL_OK;
}
/* Returns whether the plugin may release objects of the device: not if the device hangs, and not in a forked child. */
static inline bool gpuhal_device_is_reachable(const gpuhal_device *device)
{
    return !gpuhal_is_inherited(device->gpu) &&
           atomic_load_explicit(&device->lost, memory_order_relaxed) != GPUHAL_LOST_HUNG;
}
/* Marks the device as lost (hung) for every caller, because a call exceeded its deadline. Returns true the first time;
 * that caller must report the hang. Takes no lock. */
bool gpuhal_device_give_up(gpuhal_device *device);
/* Reports the hang to queues, listeners, the log and the registry. Calls no plugin. */
void gpuhal_device_report_hang(gpuhal_device *device);
/* Returns DEVICE_LOST for a call that ended after its device was given up, even if the plugin returned OK. */
gpuhal_status gpuhal_device_late(void);
/* Ends a plugin call and returns its status. */
static inline gpuhal_status gpuhal_device_result(const gpuhal_device *device, gpuhal_call call, gpuhal_status status)
{
    gpuhal_call_end(call);
    bool late = atomic_load_explicit(&device->lost, memory_order_relaxed) == GPUHAL_LOST_HUNG;
    return __builtin_expect(late, 0) ? gpuhal_device_late() : status;
}
/* A call that may compile in the driver has no deadline, and may make other driver calls wait. */
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
/* Returns the driver's timeout for one value or one link. */
uint64_t gpuhal_device_query_ns(const gpuhal_device *device);
/* Returns how many bytes the object may allocate on the device by its limit and leases; 0 means no limit. */
static inline uint64_t gpuhal_device_limit(const gpuhal_device *device)
{
    const uint64_t limit = atomic_load(&device->limit_bytes), leased = atomic_load(&device->lease_bytes);
    return limit == 0 || (leased > 0 && leased < limit) ? leased : limit;
}
/* Returns how many bytes of the device's memory this process's control groups may still allocate. *out_limit is their
 * limit (the kernel's dmem.max). Both values are UINT64_MAX if the kernel sets no limit. Reads files. */
uint64_t gpuhal_device_group_left(gpuhal_device *device, uint64_t *out_limit);
/* Record that a queue of the device has got work, or has finished its work. Only for a device with `busy.wanted`
 * set. */
void gpuhal_busy_begin(gpuhal_device *device);
void gpuhal_busy_end(gpuhal_device *device);
/* Returns for how long queues have had work since the first call of this function. */
uint64_t gpuhal_busy_ns(gpuhal_device *device);
/* Copies a plugin's result, up to the size in the caller's structure, which must not be 0. */
void gpuhal_native_give(gpuhal_native *out_native, gpuhal_native native);
/* Returns INVALID_ARGUMENT with its detail if the size is 0. */
gpuhal_status gpuhal_native_check(const char *call, const gpuhal_native *out_native);
/* Returns INVALID_ARGUMENT or NOT_SUPPORTED, with its detail, if the device accepts no native object of this type. */
gpuhal_status gpuhal_device_takes(const gpuhal_device *device, const gpuhal_native *native);
/* Returns NOT_SUPPORTED for `what`. The detail contains the plugin's note about features missing from an adopted
 * device. */
gpuhal_status gpuhal_device_lacks(gpuhal_device *device, const char *what);
/* Converts a plugin's status to the detail "opencl:1: <what>: …", and marks the device as lost if the status says so.
 * `format` names the action. */
gpuhal_status gpuhal_device_failed(gpuhal_device *device, gpuhal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Releases one reference. The last release frees everything. A forked child does not free the parent's object. */
static inline void gpuhal_unreference(gpuhal *gpu)
{
    if (atomic_fetch_sub_explicit(&gpu->references, 1, memory_order_acq_rel) == 1 && !gpuhal_is_inherited(gpu)) {
        gpu->layers.destroy(gpu);
    }
}

/* Return whether both devices are interfaces of the same partition of one physical device, so that they are
 * interchangeable; or of the same physical device. physical.c. */
bool gpuhal_devices_same_part(const gpuhal_device *a, const gpuhal_device *b);
bool gpuhal_devices_same_piece(const gpuhal_device *a, const gpuhal_device *b);
/* Returns the PCI address that any interface of the device's physical device reports; NULL if none does, or if the
 * device is no longer listed. */
const char *gpuhal_device_hardware_address(const gpuhal_device *device);

#endif
