/* device/device.h: the gpuhal object and its devices, as the layers above see them.
 *
 * Everything but the marked members is set while gpuhal_open() runs, or before a device is published, or while it opens, and only read
 * afterwards. A device is open when `state` says so; it then stays open until the gpuhal object goes.
 */
#ifndef GPUHAL_DEVICE_DEVICE_H
#define GPUHAL_DEVICE_DEVICE_H

#include "core/call.h"
#include "core/job.h"
#include "loader/loader.h"
#include "os/os.h"
#include "registry/registry.h"

#include <gpuhal/device.h>

#include <stdatomic.h>

struct gpuhal_staging;       /* transfer/staging.h */
struct gpuhal_device_snapshot;       /* listing.h */
struct gpuhal_link;          /* link.h */
struct gpuhal_fault_log;         /* fault_log.h */
struct gpuhal_buffer;        /* memory/buffer.h */

/* What the layers above keep in the object, and what this layer and `memory` have them do. Set by gpuhal.c, which alone knows all layers. */
typedef struct gpuhal_layers {
    struct gpuhal_address_index *addresses; /* memory/address_index.h */
    _Atomic(struct gpuhal_thread_pool *) thread_pool;     /* made and ended by transfer/thread_pool.c */
    struct gpuhal_service *service;             /* queue/completion_service.h: what all queues share */
    struct gpuhal_notifier *notifier;           /* hotplug/change.h */

    void (*destroy)(gpuhal *gpu); /* the last reference is gone */
    /* Gives back what completed work still holds. *out_pending: bytes of the device that come free once queued work has ended. */
    void (*reclaim)(gpuhal_device *device, uint64_t *out_pending);
    /* The service thread calls back for buffers that the application imported: `serve` starts the thread, and returns 0 or errno;
     * `serve_released` has it call gpuhal_buffer_end(). */
    int (*serve)(gpuhal *gpu);
    void (*serve_released)(struct gpuhal_buffer *buffer);
    void (*on_lost)(gpuhal_device *device); /* called once when a device is lost, with the reason as this thread's last error; calls no plugin */
    /* Around the time in which calls for the device are watched; the second also does nothing for one that is not. */
    void (*watch)(gpuhal_device *device);
    void (*unwatch)(gpuhal_device *device);
    /* Called when the plugin, loaded into this process, tells something else of the device than was listed; calls no plugin. */
    void (*on_changed)(gpuhal_device *device, const char *sentence);
} gpuhal_layers;

struct gpuhal {
    gpuhal_job ending;           /* comes first; gpuhal.c */
    _Atomic uint64_t references; /* the caller's one, and one for each buffer */
    gpuhal_settings settings;
    gpuhal_log *log;
    gpuhal_registry *registry;
    struct gpuhal_fault_log *fault_log;
    _Atomic(struct gpuhal_device_snapshot *) snapshot; /* the newest, NULL before the first; who walks the devices asks gpuhal_device_count() and _at() */
    gpuhal_layers layers;
};

/* The plugin answered DEVICE_LOST; or it did not come back from a call, and is not called any more; or the device is not listed any more. */
enum { GPUHAL_NOT_LOST = 0, GPUHAL_LOST = 1, GPUHAL_LOST_HUNG = 2, GPUHAL_LOST_VANISHED = 3 };

typedef enum { GPUHAL_DEVICE_CLOSED = 0, GPUHAL_DEVICE_OPENING, GPUHAL_DEVICE_IS_OPEN } gpuhal_device_state;

/* Faults of one kind that the registry does not have yet; device/fault_log.c. */
typedef struct gpuhal_fault_note {
    _Atomic uint64_t count;
    _Atomic bool told; /* the first was worth a write of its own */
    _Atomic int words; /* whose turn it is with `detail` */
    char detail[256];
} gpuhal_fault_note;
enum { GPUHAL_FAULT_NOTES = GPUHAL_FAULT_OUT_OF_MEMORY - GPUHAL_FAULT_HANG + 1 }; /* kinds of which a device can be the cause */

/* What has gone one way. Those above a certain size are timed as well. */
typedef struct gpuhal_counter {
    _Atomic uint64_t operations, bytes, timed_operations, timed_bytes, timed_ns;
} gpuhal_counter;

/* How large writes from pageable memory go. By rule: nothing is measured, facts decide. */
enum {
    GPUHAL_WRITE_UNKNOWN = 0,
    GPUHAL_WRITE_MEASURING,
    GPUHAL_WRITE_BY_PLUGIN,
    GPUHAL_WRITE_STAGED,
    GPUHAL_WRITE_BY_RULE
};
typedef struct gpuhal_write_path {
    _Atomic uint32_t choice; /* GPUHAL_WRITE_…; transfer/write_path.c */
    /* Written once, by the thread that measures, before `unwritten` says so. */
    uint64_t plugin_bytes_per_second, staged_bytes_per_second, measured_seconds;
    _Atomic uint32_t unwritten; /* the registry does not have it yet; fault_log.c */
} gpuhal_write_path;

/* Of a device for which calls are watched; queue/watchdog.c. */
typedef struct gpuhal_watched {
    gpuhal_device *next;
    const gpuhal_plugin *plugin;
    bool goes_on;     /* the driver has answered since the last look that work does */
    bool answered;    /* it had before that look */
    bool kept;        /* the object has a reference more, since a thread is stuck in the driver */
    bool probe;       /* the driver is to be asked whether work goes on */
    bool asking;      /* a thread does */
} gpuhal_watched;

struct gpuhal_device {
    gpuhal *gpu;
    const gpuhal_candidate *candidate;
    const gpuhal_listed_device *listed;
    char id[48];
    uint32_t index; /* in the id: what the backend counted when it was first listed, unless another device has that */
    uint64_t vanished; /* when it was found to be gone, in seconds since 1970; written before `lost` says so */
    _Atomic(const gpuhal_listed_device *) here; /* as the driver in this process lists it; NULL: nobody has asked that one */
    uint32_t physical_number, interface_number; /* numbers that stay, of the registry; 0 beyond what it numbers */
    uint32_t position;         /* among the visible devices */
    bool unsure;               /* during a look: which of several alike devices are gone is not known; match.c */
    _Atomic(struct gpuhal_link *) links[32]; /* rows of them, to each visible device */

    gpuhal_mutex mutex;         /* protects opening; not held while the plugin works */
    gpuhal_condition condition; /* `state` changed */
    _Atomic int state;          /* gpuhal_device_state, written with `mutex` held */
    _Atomic uint32_t opening_generation; /* fork generation of the thread that opens */
    const void *opener;          /* that thread, by gpuhal_job_caller() */
    gpuhal_job *closing;   /* while the object ends; NULL: none */
    gpuhal_job *abandoned; /* an opening that did not come back in time; NULL: none. Used by the thread that opens */

    /* Set by opening. */
    gpuhal_backend *backend;
    const gpuhal_plugin *plugin;
    gpuhal_plugin_device *handle;
    uint32_t generation; /* fork generation that may use it; 0: every one */
    _Atomic uint32_t lost; /* GPUHAL_NOT_LOST … */
    char lacks[160];       /* what the plugin said of the caller's object that it took over, "": nothing */
    uint32_t memory_kinds;
    uint64_t copy_mask, fill_mask; /* alignment - 1 */
    uint64_t allocation_max_bytes;
    struct gpuhal_staging *staging[2]; /* to the device, from it; made and freed by transfer/staging.c */
    union {
        gpuhal_ops ops;
        unsigned char ops_space[GPUHAL_OPS_SPACE];
    };
    gpuhal_ops *traced; /* the plugin's own slots, where `ops` are those of trace.c; NULL: they are not */

    gpuhal_watched watched;
    _Atomic uint32_t native_accesses; /* the caller has native access to so many of its queues */
    _Atomic bool compared;            /* with what its plugin lists in this process */
    _Atomic bool stuck;               /* the driver never gave back something of this opening, which therefore is not closed */
    _Atomic uint64_t allocated_bytes; /* by this gpuhal object */
    _Atomic uint64_t limit_bytes;     /* 0: none */
    gpuhal_fault_note faults[GPUHAL_FAULT_NOTES];
    gpuhal_write_path write_path;
    gpuhal_counter written, read, filled, copied; /* by transfers that have this device alone; transfer/account.h */
};

/* Makes a closed device; nothing of the plugin is touched. NULL without memory. */
gpuhal_device *gpuhal_device_create(gpuhal *gpu, const gpuhal_candidate *candidate, const gpuhal_listed_device *listed, uint32_t index);
/* Closes it where it is open, and frees it. */
void gpuhal_device_destroy(gpuhal_device *device);
/* Closes what is open and frees the objects; staging has been freed before. */
void gpuhal_devices_destroy(gpuhal *gpu);

/* Loads the plugin into this process when it was not, and finds the device in what it lists here. What differs from the listing goes to the
 * registry and to on_changed, once for each device. */
gpuhal_status gpuhal_device_start_backend(gpuhal_device *device, gpuhal_backend **out_backend, const gpuhal_listed_device **out_listed);
/* What is told of the device: as the driver in this process lists it, else as it was listed last. Lives as long as the gpuhal object. */
const gpuhal_listed_device *gpuhal_device_current(const gpuhal_device *device);
/* Whether calls may go to the plugin now: OK, FORKED or DEVICE_LOST with its detail. */
gpuhal_status gpuhal_device_unusable(const gpuhal_device *device);
static inline gpuhal_status gpuhal_device_check(const gpuhal_device *device)
{
    uint32_t lost = atomic_load_explicit(&device->lost, memory_order_relaxed);
    if (__builtin_expect(lost != 0 || (device->generation != 0 && device->generation != gpuhal_os_fork_generation()), 0)) {
        return gpuhal_device_unusable(device);
    }
    return GPUHAL_OK;
}
/* Whether what the device gave can be given back to its plugin: not in the child of a fork, and not once it hangs. */
static inline bool gpuhal_device_is_reachable(const gpuhal_device *device)
{
    bool ours = device->generation == 0 || device->generation == gpuhal_os_fork_generation();
    return ours && atomic_load_explicit(&device->lost, memory_order_relaxed) != GPUHAL_LOST_HUNG;
}
/* A call does not come back: the device is lost (hung) for every caller from now on. True the first time, for the caller to report it. Two
 * stores, no lock. */
bool gpuhal_device_give_up(gpuhal_device *device);
/* Brings that to queues, listeners, the log and the registry. Calls no plugin. */
void gpuhal_device_report_hang(gpuhal_device *device);
/* A call that comes back to a device that was given up because of it, or of another one: DEVICE_LOST, whatever the plugin returned. */
gpuhal_status gpuhal_device_late(void);
/* Ends a call of the plugin: what it returned. */
static inline gpuhal_status gpuhal_device_result(const gpuhal_device *device, gpuhal_call call, gpuhal_status status)
{
    gpuhal_call_end(call);
    bool late = atomic_load_explicit(&device->lost, memory_order_relaxed) == GPUHAL_LOST_HUNG;
    return __builtin_expect(late, 0) ? gpuhal_device_late() : status;
}
/* The driver did not come back from a call: the device counts as lost (hung) for every caller, which listeners and the registry learn once.
 * Leaves the last error as it is. */
void gpuhal_device_hangs(gpuhal_device *device);
/* How long the driver may take for one value, or one link. */
uint64_t gpuhal_device_query_ns(const gpuhal_device *device);
/* What a plugin gave, cut to what the caller knows of the structure, whose size is not 0. */
void gpuhal_native_give(gpuhal_native *out_native, gpuhal_native native);
/* INVALID_ARGUMENT with its detail where the size is 0. */
gpuhal_status gpuhal_native_check(const char *call, const gpuhal_native *out_native);
/* Whether the device states that it takes such a native object: OK, INVALID_ARGUMENT or NOT_SUPPORTED with its detail. */
gpuhal_status gpuhal_device_takes(const gpuhal_device *device, const gpuhal_native *native);
/* NOT_SUPPORTED for `what`, which the plugin would offer on a device of its own: with what it said of the one that it took over. */
gpuhal_status gpuhal_device_lacks(gpuhal_device *device, const char *what);
/* Turns a plugin's status into the detail "opencl:1: <what>: …", and remembers a lost device. `format` tells what was tried. */
gpuhal_status gpuhal_device_failed(gpuhal_device *device, gpuhal_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Drops one reference; the last one frees everything. */
static inline void gpuhal_unreference(gpuhal *gpu)
{
    if (atomic_fetch_sub_explicit(&gpu->references, 1, memory_order_acq_rel) == 1) {
        gpu->layers.destroy(gpu);
    }
}

/* Finds the visible devices that a selector names, `auto` and `gpu` not resolved. selector.c reads it, select.c
 * matches it. */
typedef enum gpuhal_selector_form {
    GPUHAL_SELECT_AUTO,
    GPUHAL_SELECT_GPU,
    GPUHAL_SELECT_BACKEND,
    GPUHAL_SELECT_ID,
    GPUHAL_SELECT_PCI,
    GPUHAL_SELECT_UUID,
    GPUHAL_SELECT_NAME
} gpuhal_selector_form;
typedef struct gpuhal_selector {
    gpuhal_selector_form form;
    uint32_t index; /* ID */
    char text[256]; /* backend, address or UUID in lower case, or glob */
} gpuhal_selector;
/* As globs and what they are compared with are spelled. */
void gpuhal_selector_lower(char *text);
/* `source` names where the selector came from, in messages. INVALID_ARGUMENT for a malformed one. */
gpuhal_status gpuhal_selector_parse(const char *text, const char *source, gpuhal_selector *out_selector);
/* As the listing sees the device, which is not NOWHERE in it. */
bool gpuhal_selector_matches(const gpuhal_selector *selector, const struct gpuhal_device_snapshot *snapshot, const gpuhal_device *device);
/* NOT_FOUND, with a sentence that begins with `source`, "" for none. */
gpuhal_status gpuhal_selector_unmatched(const struct gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector, const char *text, const char *source);

/* Whether the two are faces of the same part of the same hardware, so that one may stand for the other; or at least of the same hardware.
 * physical.c. */
bool gpuhal_devices_same_part(const gpuhal_device *a, const gpuhal_device *b);
bool gpuhal_devices_same_piece(const gpuhal_device *a, const gpuhal_device *b);
/* Whether the device's hardware has this PCI address, or its part this UUID, whichever face states it. */
bool gpuhal_device_at_pci(const struct gpuhal_device_snapshot *snapshot, const gpuhal_device *device, const char *address);
bool gpuhal_device_has_uuid(const struct gpuhal_device_snapshot *snapshot, const gpuhal_device *device, const char *uuid);
/* The PCI address of the device's hardware, whichever face states it; NULL when none does. */
const char *gpuhal_device_hardware_address(const gpuhal_device *device);

#endif
