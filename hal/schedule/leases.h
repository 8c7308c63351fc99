/* schedule/leases.h: the leases and work slots of one gpuhal object, as the files of this folder share them.
 *
 * `mutex` of gpuhal_leases protects the lists, the phases of leases and what is sampled. It may be taken inside the
 * ledger's critical section (ledger.h), and nothing is locked inside of it.
 */
#ifndef GPUHAL_SCHEDULE_LEASES_H
#define GPUHAL_SCHEDULE_LEASES_H

#include "device/device.h"
#include "schedule/ledger.h"

#include <gpuhal/lease.h>

enum { GPUHAL_LEASE_PROCESSES = 32 };

/* What is used of a device's memory, as it was sampled. */
typedef struct gpuhal_memory_sample {
    uint64_t when_ns, used_bytes; /* 0: not sampled yet */
    uint64_t own_bytes;           /* of them, allocated by this object */
    bool known;                   /* used_bytes */
    bool wants_processes;         /* other processes have leases on the device */
    bool asked_processes;         /* those that use the memory were to be listed */
    bool has_processes;           /* all of them are listed */
    uint32_t process_count;
    struct {
        uint32_t pid;
        uint64_t bytes;
    } processes[GPUHAL_LEASE_PROCESSES];
} gpuhal_memory_sample;

/* A device of the object that a request names, as the ledger knows it. */
typedef struct gpuhal_lease_device {
    gpuhal_device *device;
    gpuhal_ledger_device described;
    gpuhal_memory_sample sample;
    uint32_t index;       /* in the ledger; valid inside one critical section */
    uint64_t bytes;       /* requested of it, or leased */
    uint32_t slots;
    bool leased;
} gpuhal_lease_device;

typedef enum {
    GPUHAL_LEASE_IS_WAITING = 0,
    GPUHAL_LEASE_IS_HELD,
    GPUHAL_LEASE_IS_OVER     /* failed, withdrawn or released */
} gpuhal_lease_phase;

struct gpuhal_lease {
    gpuhal *gpu;
    gpuhal_lease *next; /* in the list; protected by the mutex */
    gpuhal_lease_device *devices;
    uint32_t device_count;
    gpuhal_ledger_record record; /* what is asked for; ticket and place once it waits */
    intptr_t file;               /* with the byte; -1: none */
    const void *words;           /* where it waits; another epoch may have unmapped them, which the wait notices */
    uint64_t epoch;              /* of the files that it is of */
    uint64_t deadline_ns;        /* of the wait; UINT64_MAX: none */
    bool waits_not;              /* BUSY instead of waiting */
    _Atomic bool cancelled;
    /* Of a request: */
    struct gpuhal_lease_call *due; /* the callback that is to be made; NULL: none */
    _Atomic uint32_t references; /* the user's, and that of the worker that waits */
    /* protected by the mutex: */
    bool released;               /* by its user */
    gpuhal_lease_phase phase;
    gpuhal_status status;        /* why it is over */
    uint64_t expires_ns;
    intptr_t notifier;           /* -1: not requested */
};

/* The work slots of a device; slots.c. */
typedef struct gpuhal_work_slots gpuhal_work_slots;

typedef struct gpuhal_leases {
    gpuhal_mutex mutex;
    gpuhal_lease *list;
    gpuhal_work_slots *slots;
    bool closing;
    bool opened;                /* the ledger was initialised */
    gpuhal_status opened_status;
    gpuhal_ledger ledger;
    uint32_t known_count;
    struct gpuhal_known_device {
        const gpuhal_device *device;
        bool is_described;
        gpuhal_ledger_device described;
        gpuhal_memory_sample sample;
        uint64_t adopted_bytes; /* of the lease that a parent holds; 0: none */
    } known[GPUHAL_LEDGER_DEVICES];
} gpuhal_leases;

/* ---- lease.c: made and freed by gpuhal.c. */
gpuhal_leases *gpuhal_leases_create(void);
/* For gpuhal_close(): withdraws requests and releases what is held. */
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

/* ---- lease_ledger.c: what is done to the ledger for one lease. */

/* Makes the ledger ready at the first use. NOT_SUPPORTED where there is to be none. */
gpuhal_status gpuhal_leases_open(gpuhal *gpu);
/* Enters the request in the ledger, where it may be granted at once: *out_held. Does nothing, with *out_again, where a
 * device must be sampled once more, since other processes have leases on it; NULL: it is not. */
gpuhal_status gpuhal_lease_enter(gpuhal_lease *lease, bool *out_held, bool *out_again);
/* Looks whether it was granted; removes leases of dead processes. *out_held; *out_before: how many requests wait in
 * front of it. */
gpuhal_status gpuhal_lease_look(gpuhal_lease *lease, bool *out_held, uint32_t *out_before, uint32_t *out_word);
/* Takes it out, held or not. With `unless_held`, one that was granted stays: *out_held. */
gpuhal_status gpuhal_lease_leave(gpuhal_lease *lease, bool unless_held, bool *out_held);

/* ---- lease_device.c: devices as the ledger knows them. */

/* Returns what the object knows of the device; NULL where it has too many. With the mutex held. */
struct gpuhal_known_device *gpuhal_lease_known(gpuhal_leases *leases, const gpuhal_device *device);
/* Describes the device's part of its physical device. */
void gpuhal_lease_describe(gpuhal_device *device, gpuhal_ledger_device *out);
/* Returns how many slots a device has by default. */
uint32_t gpuhal_lease_default_slots(const gpuhal_device *device);
/* Returns whether the device is one that is leased where none is named. */
bool gpuhal_lease_is_candidate(const gpuhal_device *device);
/* Limits allocations on each device of the object to what its leases have there. */
void gpuhal_leases_limit(gpuhal *gpu);
/* Adds up what this object has allocated on the device, through all its interfaces. */
uint64_t gpuhal_lease_allocated(gpuhal_device *device);

/* ---- lease_memory.c: memory that others use. */

/* Samples the device, unless that was done a moment ago. Blocks for a driver. */
void gpuhal_lease_sample(gpuhal *gpu, gpuhal_lease_device *device);
/* In the critical section: states in the ledger what processes without leases use of the device. Returns whether that
 * has changed. Where it depends on the list of processes, which was not asked for, the device's sample is made anew the
 * next time. */
bool gpuhal_lease_state_foreign(gpuhal *gpu, gpuhal_ledger *ledger, gpuhal_lease_device *device);

/* ---- slots.c */
void gpuhal_work_slots_end(gpuhal *gpu);
void gpuhal_work_slots_destroy(gpuhal_leases *leases);

#endif
