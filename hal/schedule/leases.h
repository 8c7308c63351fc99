/* schedule/leases.h: the leases and work slots of one gpuhal object, as the files of this folder share them.
 *
 * `mutex` of gpuhal_leases protects the lists, the phases of leases and the samples. It may be taken inside the
 * ledger's critical section (ledger.h), and nothing is locked inside of it.
 */
#ifndef GPUHAL_SCHEDULE_LEASES_H
#define GPUHAL_SCHEDULE_LEASES_H

#include "schedule/schedule.h"
#include "schedule/ledger.h"

#include <gpuhal/schedule/lease.h>

enum { GPUHAL_LEASE_PROCESSES = 32, GPUHAL_LEASE_COMMAND_BYTES = 64 };

/* The last reading of a device: its use and its health. */
typedef struct gpuhal_lease_reading {
    uint64_t when_ns, used_bytes; /* 0: not sampled yet */
    uint64_t own_bytes;           /* of them, allocated by this object */
    uint64_t limit_bytes;         /* allowed to this process's group by the kernel or driver; all ones: no limit */
    char limit_source[16];        /* as in gpuhal_value */
    uint32_t busy_permille;       /* UINT32_MAX: unknown */
    uint32_t ailments;            /* GPUHAL_AILMENT_… */
    bool asked_busy;
    bool lost;            /* its driver says so */
    bool taken;           /* its compute mode admits one process alone, and another one computes on it */
    bool known;           /* used_bytes is known */
    bool late;            /* its driver did not answer in time */
    bool wants_processes; /* other processes have leases on the device, or may have it alone */
    bool asked_processes; /* the processes that use the memory were to be listed */
    bool has_processes;   /* all of them are listed */
    uint32_t process_count;
    struct {
        uint32_t pid;
        uint64_t bytes;
    } processes[GPUHAL_LEASE_PROCESSES];
} gpuhal_lease_reading;

/* Why a device is left out. */
typedef enum {
    GPUHAL_LEASE_TAKES_IT = 0,
    GPUHAL_LEASE_IS_LOST,
    GPUHAL_LEASE_NEEDS_RESET,
    GPUHAL_LEASE_IS_PROHIBITED,
    GPUHAL_LEASE_FAILED_TEST, /* the self-test; a device that the caller names is leased all the same */
    GPUHAL_LEASE_IS_LIMITED,  /* this process may have fewer bytes of it than the request wants */
    GPUHAL_LEASE_IS_TAKEN,    /* while a process has it alone: requests wait for the end of that */
    GPUHAL_LEASE_REASONS
} gpuhal_lease_left_out;

/* A device of the object that a request names, as the ledger knows it. */
typedef struct gpuhal_lease_device {
    gpuhal_device *device;
    gpuhal_ledger_device described;
    gpuhal_lease_reading sample;
    gpuhal_lease_left_out left_out;
    bool lists_processes; /* its processes are to be read in any case */
    bool named;           /* by the caller, not one of all GPUs */
    uint32_t index;       /* in the ledger; valid inside one critical section */
    uint64_t bytes;       /* requested of it, or leased */
    uint32_t slots;
    bool leased;
    uint8_t place; /* in the order of leasing if several devices will do */
    bool lesser;   /* than the device at the place before; else they are equal */
} gpuhal_lease_device;

/* A process with the descriptor of a lease. */
typedef struct gpuhal_lease_holder {
    int64_t pid;    /* in the namespace of this process */
    uint32_t place; /* of the lease's byte */
} gpuhal_lease_holder;
typedef struct gpuhal_lease_holders {
    gpuhal_lease_holder *list;
    uint32_t count, capacity;
    bool failed; /* without memory */
} gpuhal_lease_holders;

/* A copy of the ledger that can be shown. */
typedef struct gpuhal_lease_view {
    gpuhal_ledger_state *state;   /* a copy */
    gpuhal_lease_device *devices; /* of this object; `index` is GPUHAL_LEDGER_DEVICES if no request named one yet */
    uint32_t device_count;
    uint64_t epoch, inode;
    gpuhal_ledger_use use;
    gpuhal_lease_holders holders;
} gpuhal_lease_view;

typedef enum {
    GPUHAL_LEASE_IS_WAITING = 0,
    GPUHAL_LEASE_IS_HELD,
    GPUHAL_LEASE_IS_OVER /* failed, withdrawn or released */
} gpuhal_lease_phase;

struct gpuhal_lease {
    gpuhal *gpu;
    gpuhal_lease *next; /* in the list; protected by the mutex */
    gpuhal_lease_device *devices;
    uint32_t device_count;
    gpuhal_ledger_record record; /* the request; ticket and place once it waits */
    intptr_t file;               /* with the byte; -1: none */
    const void *words;           /* to wait on; another epoch may have unmapped them: the wait notices that */
    uint64_t epoch;              /* of its files */
    uint64_t deadline_ns;        /* of the wait; UINT64_MAX: none */
    bool waits_not;              /* BUSY instead of waiting */
    _Atomic bool cancelled;
    /* Of a request: */
    struct gpuhal_lease_call *due; /* the callback that is to be made; NULL: none */
    _Atomic uint32_t references;   /* the user's, and that of the waiting worker */
    /* protected by the mutex: */
    bool released; /* by its user */
    gpuhal_lease_phase phase;
    gpuhal_status status; /* why it is over */
    uint64_t expires_ns;
    intptr_t notifier; /* -1: not requested */
};

/* The work slots of a device; slots.c. */
typedef struct gpuhal_work_slots gpuhal_work_slots;

typedef struct gpuhal_leases {
    gpuhal_mutex mutex;
    gpuhal_lease *list;
    gpuhal_work_slots *slots;
    bool closing;
    bool opened; /* the ledger was initialised */
    gpuhal_status opened_status;
    gpuhal_ledger ledger;
    uint32_t known_count;
    struct gpuhal_known_device {
        const gpuhal_device *device;
        bool is_described;
        gpuhal_ledger_device described;
        gpuhal_lease_reading sample;
        uint64_t adopted_bytes; /* of the lease that a parent holds; 0: none */
    } known[GPUHAL_LEDGER_DEVICES];
} gpuhal_leases;

/* ---- lease.c: called by schedule.c. */
gpuhal_leases *gpuhal_leases_create(void);
/* For gpuhal_close(): withdraws requests and releases held leases. */
void gpuhal_leases_end(gpuhal *gpu);
/* NULL does nothing. */
void gpuhal_leases_destroy(gpuhal_leases *leases);
/* Limits the object's allocations to the lease that a parent holds for it (GPUHAL_LEASE). */
void gpuhal_leases_adopt(gpuhal *gpu);

/* ---- lease_asked.c: one lease. */

/* Makes a lease of a description, with one reference; it is in no list yet. */
gpuhal_status gpuhal_lease_make(gpuhal *gpu, const gpuhal_lease_desc *given, uint64_t timeout_ns,
                                gpuhal_lease **out_lease);
/* Gives a reference back, and frees the lease with the last one. */
void gpuhal_lease_unreference(gpuhal_lease *lease);

/* ---- lease_order.c: which of the devices come first. */

/* Gives each device of the request its place: that of gpuhal_rank(), by the rule of gpuhal_select(). */
gpuhal_status gpuhal_lease_order(gpuhal_lease *lease);

/* ---- lease_ledger.c: one lease in the ledger. */

/* Makes the ledger ready at the first use. NOT_SUPPORTED if there is to be none. */
gpuhal_status gpuhal_leases_open(gpuhal *gpu);
/* Enters the request in the ledger. It may be granted at once: *out_held. Does nothing, with *out_again, if a device
 * must be sampled once more, since other processes have leases on it; NULL: it is not. */
gpuhal_status gpuhal_lease_enter(gpuhal_lease *lease, bool *out_held, bool *out_again);
/* Looks whether the request was granted: *out_held. Removes leases and requests of dead processes. *out_before: as
 * gpuhal_ledger_sweep() returns it. */
gpuhal_status gpuhal_lease_look(gpuhal_lease *lease, bool *out_held, uint32_t *out_before, uint32_t *out_word);
/* Takes the lease out, held or not. With `unless_held`, a granted one stays: *out_held. */
gpuhal_status gpuhal_lease_leave(gpuhal_lease *lease, bool unless_held, bool *out_held);
/* Closes this process's descriptor of an inherited lease, and takes the lease out if no other process has one. */
gpuhal_status gpuhal_lease_leave_to_others(gpuhal_lease *lease);

/* ---- lease_device.c: devices as the ledger knows them. */

/* Returns the object's record of the device; NULL: it has too many. With the mutex held. */
struct gpuhal_known_device *gpuhal_lease_known(gpuhal_leases *leases, const gpuhal_device *device);
/* Describes the device's part of its physical device. */
void gpuhal_lease_describe(gpuhal_device *device, gpuhal_ledger_device *out);
/* Returns how many slots a device has by default. */
uint32_t gpuhal_lease_default_slots(const gpuhal_device *device);
/* Returns whether the device is the preferred interface of a GPU or accelerator, and no program on the processor. If no
 * device is named, such a device is leased if it is well. */
bool gpuhal_lease_is_candidate(const gpuhal_device *device);
/* Returns whether it is the preferred interface of its part of a physical device. */
bool gpuhal_lease_is_preferred(const gpuhal_device *device);
/* Returns whether the device is a processor, or a program on it. */
bool gpuhal_lease_is_processor(const gpuhal_device *device);
/* Limits allocations on each device of the object to the bytes of its leases there. */
void gpuhal_leases_limit(gpuhal *gpu);
/* Adds up the bytes that this object has allocated on the device, through all its interfaces. */
uint64_t gpuhal_lease_allocated(gpuhal_device *device);

/* ---- lease_sample.c: readings of devices. */

/* Samples the devices that were not sampled a moment ago, all at once; `compares`: also how busy they are, as some of
 * them are to be chosen. Returns HOST_MEMORY. Blocks for drivers, until one second after `deadline_ns` at most; with 0,
 * or a deadline that is far off, as long as gpuhal_sample_all() does. */
gpuhal_status gpuhal_lease_sample(gpuhal *gpu, gpuhal_lease_device *devices, uint32_t count, bool compares,
                                  uint64_t deadline_ns);

/* ---- lease_health.c: devices that are not leased because they are not well. */

/* Returns the reason by the last sample. */
gpuhal_lease_left_out gpuhal_lease_why_left_out(const gpuhal_lease_device *device);
/* Returns the reason as JSON has it, "reset_needed". */
const char *gpuhal_lease_left_out_name(gpuhal_lease_left_out reason);
/* Returns OK if enough devices of the request can be leased. Else INFEASIBLE, if more bytes are wanted than this
 * process may have; DEVICE_LOST, or NO_DEVICE if any device would do, with the devices that are left out and why. */
gpuhal_status gpuhal_lease_check_health(gpuhal_lease *lease);
/* Writes the named devices of the request that other processes have alone: "; cuda:0 is exclusive, and another process
 * has it", cut to the space; "": none. */
void gpuhal_lease_name_taken(const gpuhal_lease *lease, char *to, size_t bytes);

/* ---- lease_memory.c: memory that others use. */

/* In the critical section: states in the ledger how many bytes of the device are used beyond its leases, and how busy
 * it is. Returns whether that has changed. If it depends on a list of processes that was not asked for, the device is
 * sampled again the next time. */
bool gpuhal_lease_state_foreign(gpuhal *gpu, gpuhal_ledger *ledger, gpuhal_lease_device *device);

/* Returns whether the strangers' bytes on a device in the copy of the ledger are known: not if a holder uses it without
 * a limit, and no source lists the processes. */
bool gpuhal_lease_find_foreign(gpuhal *gpu, const gpuhal_lease_view *view, const gpuhal_lease_device *device,
                               uint64_t *out_bytes);

/* ---- lease_processes.c: the processes that have a lease. */

/* Lists the processes with a descriptor of `liveness`, the file with this inode, that locks a byte, as far as this user
 * may look at them. Finish in any case. Returns HOST_MEMORY. */
gpuhal_status gpuhal_lease_holders_read(uint64_t inode, gpuhal_lease_holders *out_holders);
void gpuhal_lease_holders_finish(gpuhal_lease_holders *holders);
/* Finds the lease's holder after `last`, with NULL the first; NULL: none is left. */
const gpuhal_lease_holder *gpuhal_lease_holder_next(const gpuhal_ledger *ledger, const gpuhal_lease_holders *holders,
                                                    const gpuhal_ledger_record *record,
                                                    const gpuhal_lease_holder *last);
/* Returns whether the process, or one that it descends from, has the lease. */
bool gpuhal_lease_is_of_holder(const gpuhal_ledger *ledger, const gpuhal_lease_holders *holders,
                               const gpuhal_ledger_record *record, int64_t pid);
/* Reads the name of a process's program; false: it has ended. The name may have bytes that a terminal would
 * interpret. */
bool gpuhal_lease_holder_name(int64_t pid, char out_name[GPUHAL_LEASE_COMMAND_BYTES]);

/* ---- lease_view.c: views of the ledger. */

/* Reads the ledger and samples the devices; finish in any case. */
gpuhal_status gpuhal_lease_view_read(gpuhal *gpu, gpuhal_lease_view *out_view);
void gpuhal_lease_view_finish(gpuhal_lease_view *view);

/* ---- slots.c */
void gpuhal_work_slots_end(gpuhal *gpu);
void gpuhal_work_slots_destroy(gpuhal_leases *leases);

#endif
