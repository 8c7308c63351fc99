/* schedule/leases.h: the leases and work slots of one gpuhal object, for the files of this folder.
 *
 * `mutex` of gpuhal_leases protects the lists, the phases of leases and the samples. It may be locked inside the
 * ledger's critical section (ledger.h). A thread that has locked it must not acquire another lock, except for the
 * completion service's mutex in gpuhal_serve_call().
 */
#ifndef GPUHAL_SCHEDULE_LEASES_H
#define GPUHAL_SCHEDULE_LEASES_H

#include "schedule/schedule.h"
#include "schedule/ledger.h"

#include <gpuhal/schedule/lease.h>

enum { GPUHAL_LEASE_PROCESSES = 32, GPUHAL_LEASE_COMMAND_BYTES = 64 };

typedef struct gpuhal_lease_reading {
    uint64_t when_ns, used_bytes; /* when_ns is 0 before the first sample, and to request a new one */
    uint64_t own_bytes;           /* bytes of used_bytes that this object has allocated */
    uint64_t limit_bytes;         /* limit of this process's control group in the kernel or driver, or all ones if
                                   * unlimited */
    char limit_source[16];        /* as in gpuhal_value */
    uint32_t busy_permille;       /* UINT32_MAX if unknown */
    uint32_t ailments;            /* GPUHAL_AILMENT_… */
    bool asked_busy;
    bool lost;            /* the driver reports the loss */
    bool taken;           /* the device's compute mode allows only one process, and another process uses the device */
    bool known;           /* used_bytes is valid */
    bool late;            /* the driver did not return in time */
    bool wants_processes; /* the process list is needed: other processes have leases with bytes on the device or may
                           * have exclusive access, or `lists_processes` of the device is set */
    bool asked_processes; /* the process list was queried */
    bool has_processes;   /* the process list is complete */
    uint32_t process_count;
    struct {
        uint32_t pid;
        uint64_t bytes;
    } processes[GPUHAL_LEASE_PROCESSES];
} gpuhal_lease_reading;

typedef enum {
    GPUHAL_LEASE_TAKES_IT = 0,
    GPUHAL_LEASE_IS_LOST,
    GPUHAL_LEASE_NEEDS_RESET,
    GPUHAL_LEASE_IS_PROHIBITED,
    GPUHAL_LEASE_FAILED_TEST, /* failed the self-test; leased anyway if the caller names the device */
    GPUHAL_LEASE_IS_LIMITED,  /* this process may use fewer bytes than requested */
    GPUHAL_LEASE_IS_TAKEN,    /* another process has exclusive access; requests wait until this ends */
    GPUHAL_LEASE_REASONS
} gpuhal_lease_left_out;

typedef struct gpuhal_lease_device {
    gpuhal_device *device;
    gpuhal_ledger_device described;
    gpuhal_lease_reading sample;
    gpuhal_lease_left_out left_out;
    bool lists_processes; /* the process list is always needed */
    bool named;           /* the caller named the device; false if the request is for any GPU */
    uint32_t index;       /* index in the ledger; valid only within one critical section */
    uint64_t bytes;       /* requested or leased bytes */
    uint32_t slots;
    bool leased;
    uint8_t place; /* position in the order of preference */
    bool lesser;   /* ranks below the device at the previous place; false if both rank equally */
} gpuhal_lease_device;

/* A process that has the descriptor of a lease. */
typedef struct gpuhal_lease_holder {
    int64_t pid;    /* in this process's pid namespace */
    uint32_t place; /* index of the lease's byte */
} gpuhal_lease_holder;
typedef struct gpuhal_lease_holders {
    gpuhal_lease_holder *list;
    uint32_t count, capacity;
    bool failed; /* out of memory */
} gpuhal_lease_holders;

/* A copy of the ledger for display. */
typedef struct gpuhal_lease_view {
    gpuhal_ledger_state *state;
    gpuhal_lease_device *devices; /* this object's devices; `index` is GPUHAL_LEDGER_DEVICES if no request has named the
                                   * device yet */
    uint32_t device_count;
    uint64_t epoch, inode;
    gpuhal_ledger_use use;
    gpuhal_lease_holders holders;
} gpuhal_lease_view;

typedef enum {
    GPUHAL_LEASE_IS_WAITING = 0,
    GPUHAL_LEASE_IS_HELD,
    GPUHAL_LEASE_IS_OVER /* failed, cancelled or released */
} gpuhal_lease_phase;

struct gpuhal_lease {
    gpuhal *gpu;
    gpuhal_lease *next; /* protected by the mutex */
    gpuhal_lease_device *devices;
    uint32_t device_count;
    gpuhal_ledger_record record; /* the request; ticket and place are valid once the request waits */
    intptr_t file;               /* file with the locked byte, or -1 */
    const void *words;           /* mapped words to wait on; the wait detects that a change of epoch has unmapped them
                                  */
    uint64_t epoch;              /* epoch of `file` and `words` */
    uint64_t deadline_ns;        /* deadline of the wait, or UINT64_MAX */
    bool waits_not;              /* return BUSY instead of waiting */
    _Atomic bool cancelled;
    /* For requests: */
    struct gpuhal_lease_call *due; /* pending callback, or NULL */
    _Atomic uint32_t references;   /* of the user, the waiting worker, and gpuhal_leases_end() */
    /* Protected by the mutex: */
    bool released;
    gpuhal_lease_phase phase;
    gpuhal_status status; /* result of a lease that is over */
    uint64_t expires_ns;
    intptr_t notifier; /* -1 until requested */
};

typedef struct gpuhal_work_slots gpuhal_work_slots;

typedef struct gpuhal_leases {
    gpuhal_mutex mutex;
    gpuhal_lease *list;
    gpuhal_work_slots *slots;
    bool closing;
    bool opened; /* the ledger was initialised */
    gpuhal_ledger ledger;
    uint32_t known_count;
    struct gpuhal_known_device {
        const gpuhal_device *device;
        bool is_described;
        gpuhal_ledger_device described;
        gpuhal_lease_reading sample;
        uint64_t adopted_bytes; /* bytes of a lease held by a parent process, or 0 */
    } known[GPUHAL_LEDGER_DEVICES];
} gpuhal_leases;

/* ---- lease.c; called by schedule.c */
gpuhal_leases *gpuhal_leases_create(void);
/* For gpuhal_close(): cancels requests and releases leases. */
void gpuhal_leases_end(gpuhal *gpu);
/* Accepts NULL. */
void gpuhal_leases_destroy(gpuhal_leases *leases);
/* If a parent process holds a lease for this process (GPUHAL_LEASE), limits the object's allocations to this lease. */
void gpuhal_leases_adopt(gpuhal *gpu);

/* ---- lease_asked.c: one lease. */

/* The lease has one reference, and is not in any list yet. */
gpuhal_status gpuhal_lease_make(gpuhal *gpu, const gpuhal_lease_desc *given, uint64_t timeout_ns,
                                gpuhal_lease **out_lease);
void gpuhal_lease_unreference(gpuhal_lease *lease);

/* ---- lease_order.c: the devices' order of preference. */

/* Sets `place` and `lesser` of the request's devices by their order in gpuhal_rank(), by the rule of gpuhal_select().
 */
gpuhal_status gpuhal_lease_order(gpuhal_lease *lease);

/* ---- lease_ledger.c: one lease in the ledger. */

/* Initialises the ledger on first use. Returns NOT_SUPPORTED if leases are disabled. */
gpuhal_status gpuhal_leases_open(gpuhal *gpu);
/* Enters the request in the ledger. Sets *out_held if it was granted immediately. If a device must be sampled again,
 * because other processes have leases on it, sets *out_again instead, unless `out_again` is NULL. */
gpuhal_status gpuhal_lease_enter(gpuhal_lease *lease, bool *out_held, bool *out_again);
/* Sets *out_held if the request was granted. Removes leases and requests of ended processes. *out_before is the result
 * of gpuhal_ledger_sweep(). */
gpuhal_status gpuhal_lease_look(gpuhal_lease *lease, bool *out_held, uint32_t *out_before, uint32_t *out_word);
/* Removes the lease or request from the ledger. With `unless_held`, keeps a granted lease and sets *out_held. */
gpuhal_status gpuhal_lease_leave(gpuhal_lease *lease, bool unless_held, bool *out_held);
/* Closes this process's descriptor of an inherited lease. Removes the lease if no other process has a descriptor. */
gpuhal_status gpuhal_lease_leave_to_others(gpuhal_lease *lease);

/* ---- lease_device.c: devices in the ledger. */

/* Returns the object's record of the device, or NULL if there are too many devices. The caller holds the mutex. */
struct gpuhal_known_device *gpuhal_lease_known(gpuhal_leases *leases, const gpuhal_device *device);
/* Fills in the ledger entry of the device's physical device or partition. */
void gpuhal_lease_describe(gpuhal_device *device, gpuhal_ledger_device *out);
uint32_t gpuhal_lease_default_slots(const gpuhal_device *device);
/* Returns whether the device is the preferred interface of a GPU or accelerator and not a software device. If a request
 * names no devices, such devices are leased if they are healthy. */
bool gpuhal_lease_is_candidate(const gpuhal_device *device);
/* Returns whether the device is the preferred interface of its physical device or partition. */
bool gpuhal_lease_is_preferred(const gpuhal_device *device);
/* Returns whether the device's type is CPU: the CPU itself, or a software device that reports this type. */
bool gpuhal_lease_is_processor(const gpuhal_device *device);
/* Limits the object's allocations on each device to the bytes that the object has leased there. */
void gpuhal_leases_limit(gpuhal *gpu);
/* Returns the bytes that this object has allocated on the device, through all its interfaces. */
uint64_t gpuhal_lease_allocated(gpuhal_device *device);

/* ---- lease_sample.c: samples of devices. */

/* Samples the devices without a recent sample, all at the same time. With `compares`, also samples the load, which is
 * needed to choose among the devices. Returns OK or HOST_MEMORY. Gives drivers time until `deadline_ns`, but at
 * least one second. If the deadline is 0 or distant, waits as long as gpuhal_sample_all() does. */
gpuhal_status gpuhal_lease_sample(gpuhal *gpu, gpuhal_lease_device *devices, uint32_t count, bool compares,
                                  uint64_t deadline_ns);

/* ---- lease_health.c: excludes unhealthy devices. */

/* Returns why the device is excluded, according to its last sample and its state, or GPUHAL_LEASE_TAKES_IT. */
gpuhal_lease_left_out gpuhal_lease_why_left_out(const gpuhal_lease_device *device);
/* The JSON name, such as "reset_needed". */
const char *gpuhal_lease_left_out_name(gpuhal_lease_left_out reason);
/* Sets `left_out` of each device. Returns OK if enough devices of the request can be leased. Otherwise, returns
 * INFEASIBLE if the request exceeds the bytes that this process may use, NO_DEVICE if the request is for any device, or
 * DEVICE_LOST. The message of NO_DEVICE and DEVICE_LOST names the excluded devices and the reasons. */
gpuhal_status gpuhal_lease_check_health(gpuhal_lease *lease);
/* Writes which named devices of the request are used exclusively by other processes, as "; cuda:0 is exclusive, and
 * another process has it", truncated to the buffer. Writes "" if there are none. */
void gpuhal_lease_name_taken(const gpuhal_lease *lease, char *to, size_t bytes);

/* ---- lease_memory.c: memory that other programs use. */

/* Called in the critical section. Updates the device's load in the ledger and its number of bytes used beyond leases.
 * Returns whether a value has changed. If the result depends on a process list that was not queried, the next call of
 * gpuhal_lease_sample() samples the device again. */
bool gpuhal_lease_state_foreign(gpuhal *gpu, gpuhal_ledger *ledger, gpuhal_lease_device *device);

/* Computes the bytes used by processes without a lease on a device in the copy of the ledger. Returns false if the
 * number is unknown, for example because a holder uses the device without a limit and no plugin lists the processes. */
bool gpuhal_lease_find_foreign(gpuhal *gpu, const gpuhal_lease_view *view, const gpuhal_lease_device *device,
                               uint64_t *out_bytes);

/* ---- lease_processes.c: the processes that have a lease. */

/* Lists the processes with a descriptor of `liveness` (the file with this inode) that locks a byte. Omits processes
 * that this user may not inspect. The list must be finished even on failure. Returns OK or HOST_MEMORY. */
gpuhal_status gpuhal_lease_holders_read(uint64_t inode, gpuhal_lease_holders *out_holders);
void gpuhal_lease_holders_finish(gpuhal_lease_holders *holders);
/* Returns the lease's next holder after `last`, or the first if `last` is NULL. Returns NULL if there are no more. */
const gpuhal_lease_holder *gpuhal_lease_holder_next(const gpuhal_ledger *ledger, const gpuhal_lease_holders *holders,
                                                    const gpuhal_ledger_record *record,
                                                    const gpuhal_lease_holder *last);
/* Returns whether the process or one of its ancestors has the lease. */
bool gpuhal_lease_is_of_holder(const gpuhal_ledger *ledger, const gpuhal_lease_holders *holders,
                               const gpuhal_ledger_record *record, int64_t pid);
/* Returns false if the process has ended. The name may contain control characters. */
bool gpuhal_lease_holder_name(int64_t pid, char out_name[GPUHAL_LEASE_COMMAND_BYTES]);

/* ---- lease_view.c: snapshots of the ledger. */

/* Reads the ledger and samples the devices. The view must be finished even on failure. */
gpuhal_status gpuhal_lease_view_read(gpuhal *gpu, gpuhal_lease_view *out_view);
void gpuhal_lease_view_finish(gpuhal_lease_view *view);

/* ---- slots.c */
void gpuhal_work_slots_end(gpuhal *gpu);
void gpuhal_work_slots_destroy(gpuhal_leases *leases);

#endif
