/** gpuhal/schedule/lease.h: the right to use a device: work slots within a process, leases across processes.
 *
 *  A **work slot** is the right to run one work item on a device. Each device has a limited number of slots; further
 *  requests wait, ordered by priority, then by arrival. Waiting for 0.5 s raises a request by one priority, so that no
 *  request overtakes a request of the lowest priority that arrived 3 s earlier. Slots are counted for each gpuhal
 *  object, for all interfaces of a physical device together; each partition has its own slots.
 *
 *  A **lease** is a process's claim to slots and bytes of one or several devices. It is granted for all of these
 *  devices or for none. For leases, a device has as many slots as for work, but at least 8. The leases of all processes
 *  are recorded in a ledger, which consists of two files. They are in the folder that GPUHAL_LEDGER names, otherwise in
 *  /run/gpuhal if an administrator has created this folder and the user may write to it, otherwise in the user's
 *  runtime folder, with the leases of this user alone. Leases are advisory: a process without a lease can still use a
 *  device. But the memory used by such processes is sampled and subtracted, and this gpuhal object itself allocates no
 *  more than the bytes of its leases.
 *
 *      gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
 *      desc.count = 2;                                  // any two GPUs,
 *      desc.bytes = (uint64_t)8 << 30;                  // 8 GiB and a slot of each
 *      gpuhal_lease *lease = NULL;
 *      gpuhal_lease_acquire(gpu, &desc, UINT64_MAX, &lease);
 *      gpuhal_device *first = gpuhal_lease_device_at(lease, 0);
 *
 *  A lease ends when it is released, when it expires, when its gpuhal object is closed, or when its process ends in any
 *  way. If a process is killed, waiting processes are delayed by less than 100 ms, or by up to two seconds if the four
 *  longest-waiting processes are killed with it or are stopped. A process that is stopped (SIGSTOP) keeps its leases
 *  until they expire. Expiry counts time since the machine was started, so setting the clock does not affect it.
 *
 *  A request for any GPUs gets the first GPUs by the rule of gpuhal_select(), regardless of their use. Among equal
 *  GPUs, GPUs without a warning of gpuhal_ailments() come first, then GPUs with the least load (see gpuhal_rank());
 *  leased slots count as work. The values for others' use are at most 100 ms old. A device that is lost, needs a reset
 *  or is GPUHAL_COMPUTE_PROHIBITED is never leased: a request for it returns DEVICE_LOST, and a request for any GPUs
 *  skips it. A request for any GPUs also skips GPUs that failed their self-test. A device with an exclusive compute
 *  mode is not leased while another process computes on it.
 *
 *  Requests are granted by priority, which waiting raises as for slots, then by arrival. At most 8 later, smaller
 *  requests may overtake a request that does not fit; after that, its devices are kept for it. A process that ends
 *  while it waits does not delay others.
 *
 *  With GPUHAL_LEASE_INHERIT, programs that this process starts from then on share the lease. The lease lasts until the
 *  last of these programs has ended, it expires, or this process releases it. gpuhal_lease_hand_down() leaves the lease
 *  to the programs. Every other lease ends with its process, even if forked children continue; in these children, every
 *  call with objects of the parent returns FORKED.
 *
 *  Slots and bytes of an expired lease are granted to others. Allocations of gpuhal objects that had the lease stay
 *  limited to the lease's bytes: in the holder until the lease is released, in objects that were opened under the lease
 *  (GPUHAL_LEASE) until they are closed. If an object is opened under the lease after the expiry, the object has no
 *  lease and no limit, and logs a warning.
 */
#ifndef GPUHAL_LEASE_H
#define GPUHAL_LEASE_H

#include <gpuhal/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Priorities range from -GPUHAL_LEASE_PRIORITY_MAX to this. */
enum { GPUHAL_LEASE_PRIORITY_MAX = 3 };
/** Bytes of the longest label, without the NUL at its end. */
enum { GPUHAL_LEASE_LABEL_MAX = 47 };

/* ---- work slots */

/** A work slot, or a request that waits for one. */
typedef struct gpuhal_work_slot gpuhal_work_slot;

/** Receives the end of a wait: GPUHAL_OK if the request was granted, CANCELLED if the gpuhal object was closed
 *  before, or why the request failed. Called once, on the thread that serves all callbacks of the gpuhal object,
 *  even if the request was released before (only the release of a waiting request for a work slot prevents the
 *  call), and even after gpuhal_close() has returned: @p user must stay valid until then. May call the library, but
 *  not gpuhal_close(). */
typedef void gpuhal_granted_fn(void *user, gpuhal_status status);

/** Sets the number of work slots of the device, for all its interfaces. A @p count of 0 restores the default, which is
 *  the number of CPUs that the process may use. For GPUs and accelerators, this number is divided by the number of
 *  these devices and rounded up. Taken slots stay taken.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_work_slots_set(gpuhal_device *device, uint32_t count);

/** Counts the device's work slots, its taken slots, and the waiting requests. Each output may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_work_slots_count(gpuhal_device *device, uint32_t *out_total, uint32_t *out_taken,
                                                 uint32_t *out_waiting);

/** Takes a work slot, and waits for it up to @p timeout_ns; 0 means not at all, UINT64_MAX without a limit.
 *  @return GPUHAL_OK; BUSY when none is free and @p timeout_ns is 0; TIMEOUT; INVALID_ARGUMENT (also for a priority out
 *  of range), HOST_MEMORY, FORKED
 *  Owner: caller, gpuhal_work_slot_release(); gpuhal_close() frees the remaining ones. Threads: any. Blocks: up to
 *  @p timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_work_slot_acquire(gpuhal_device *device, int32_t priority, uint64_t timeout_ns,
                                                  gpuhal_work_slot **out_slot);

/** Requests a work slot and returns immediately. @p callback, which may be NULL, is called once when the wait ends,
 *  possibly before this call returns; it is not called if host memory is exhausted at that moment.
 *  gpuhal_work_slot_descriptor() and gpuhal_work_slot_state() also show the end of the wait.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: caller, gpuhal_work_slot_release(), granted or not; a release before the grant withdraws the request, and
 *  @p callback is not called. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_work_slot_request(gpuhal_device *device, int32_t priority, gpuhal_granted_fn *callback,
                                                  void *user, gpuhal_work_slot **out_slot);

/** Returns whether a request was granted.
 *  @return GPUHAL_OK; NOT_READY while it waits; CANCELLED when the gpuhal object was closed; INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_work_slot_state(gpuhal_work_slot *slot);

/** Returns a descriptor that is readable as soon as the request no longer waits. The caller must not read from it.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED, DRIVER when the system provides no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_work_slot_descriptor(gpuhal_work_slot *slot, gpuhal_os_handle *out_descriptor);

/** Releases the slot to the next request, or withdraws a waiting request. NULL does nothing.
 *  Owner: @p slot is invalid afterwards. Threads: any, with no other call on @p slot in progress. Blocks: no. */
GPUHAL_API void gpuhal_work_slot_release(gpuhal_work_slot *slot);

/* ---- leases */

/** A lease, or a request that waits for one. */
typedef struct gpuhal_lease gpuhal_lease;

/** Flags of leases. */
enum {
    /** Programs that this process starts share the lease. */
    GPUHAL_LEASE_INHERIT = 1u
};

/** In place of a number of slots: all slots of a device, if no other lease has a slot of the device. */
#define GPUHAL_LEASE_ALL_SLOTS UINT32_MAX

/** The part of a lease on one specific device. */
typedef struct gpuhal_lease_part {
    gpuhal_device *device; /**< Any interface of the device. */
    uint64_t bytes; /**< Bytes of memory, up to 2^62. If 0, no bytes are counted, and allocations are not limited. */
    uint32_t slots;        /**< 0 means one. */
    uint32_t reserved;     /**< 0. */
} gpuhal_lease_part;

/** The description of a lease: specific devices (`parts`), or `count` of several. Unused members are zero. */
typedef struct gpuhal_lease_desc {
    uint32_t size;         /**< sizeof(gpuhal_lease_desc). */
    uint32_t flags;        /**< GPUHAL_LEASE_ bits. */
    /** If not 0, the lease is for exactly the devices in `parts`, and the next five members are not used. */
    uint32_t part_count;
    uint32_t count;        /**< Number of devices; 0 means one. */
    uint32_t device_count; /**< 0 means any visible GPU or accelerator that is not a software device. */
    uint32_t slots;        /**< Slots of each device; 0 means one. */
    /** Bytes of each device, up to 2^62. If 0, no bytes are counted, and allocations are not limited. */
    uint64_t bytes;
    gpuhal_device *const *devices; /**< The devices to choose from; `count` of them are leased. */
    const gpuhal_lease_part *parts;
    uint64_t duration_ns;  /**< Counted from the grant. If 0, the lease does not expire. */
    int32_t priority;
    uint32_t reserved;     /**< 0. */
    /** For display: UTF-8, up to GPUHAL_LEASE_LABEL_MAX bytes; longer labels are INVALID_ARGUMENT. Characters that a
     *  terminal would interpret or cannot show are replaced by blanks or `?`. NULL for no label. */
    const char *label;
} gpuhal_lease_desc;

/** Leases devices, and waits for them up to @p timeout_ns; 0 means not at all, UINT64_MAX without a limit. A buffer
 *  that would exceed the bytes of the gpuhal object's leases on a device is refused with OUT_OF_MEMORY, and the detail
 *  names the lease.
 *  @return GPUHAL_OK; BUSY when the lease cannot be granted now and @p timeout_ns is 0, or when others had the ledger
 *  locked, or the ledger had no room, for the whole timeout (two seconds if it is 0); TIMEOUT; INFEASIBLE when the
 *  lease could not be granted even on an idle machine, or the kernel or a driver allows this process less; NO_DEVICE
 *  when there are too few devices to choose from, or too few that can be leased; DEVICE_LOST when a specific device is
 *  lost, needs a reset or is GPUHAL_COMPUTE_PROHIBITED; INVALID_ARGUMENT; FILE for an error of the ledger, with the
 *  remedy; NOT_SUPPORTED without a ledger; CANCELLED when the object is being closed; HOST_MEMORY; FORKED
 *  Owner: caller, gpuhal_lease_release(); gpuhal_close() releases the remaining ones. Threads: any. Blocks: up to
 *  @p timeout_ns, up to a second more for drivers that do not return their free memory (with 0: as long as
 *  gpuhal_sample_all() with 0), and up to two seconds more while another process has the ledger locked. */
GPUHAL_API gpuhal_status gpuhal_lease_acquire(gpuhal *gpu, const gpuhal_lease_desc *desc, uint64_t timeout_ns,
                                              gpuhal_lease **out_lease);

/** Does the same as gpuhal_lease_acquire() without waiting: for each request, a thread of the library waits. @p
 *  callback, which may be NULL, is called once when the wait has ended, with the status that gpuhal_lease_acquire()
 *  would have returned; gpuhal_lease_state() and gpuhal_lease_descriptor() also show the end.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, NO_DEVICE, NOT_SUPPORTED, HOST_MEMORY, FORKED
 *  Owner: caller, gpuhal_lease_release(), granted or not; a release before the grant withdraws the request, and @p
 *  callback receives CANCELLED. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_lease_request(gpuhal *gpu, const gpuhal_lease_desc *desc, uint64_t timeout_ns,
                                              gpuhal_granted_fn *callback, void *user, gpuhal_lease **out_lease);

/** Returns the state of a lease, without reading the ledger.
 *  @return GPUHAL_OK while the lease is held; NOT_READY while the request waits; TIMEOUT when the lease has expired;
 *  otherwise the failure of the request; INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_lease_state(gpuhal_lease *lease);

/** Returns a descriptor that is readable as soon as the request no longer waits. The caller must not read from it.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED, DRIVER when the system provides no descriptor
 *  Owner: caller closes @p out_descriptor with gpuhal_os_handle_close(), at any time. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_lease_descriptor(gpuhal_lease *lease, gpuhal_os_handle *out_descriptor);

/** Returns the number of the lease in its ledger. The ledger never reuses a number.
 *  @return the number; 0 for NULL, and unless the lease was granted
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint64_t gpuhal_lease_number(const gpuhal_lease *lease);

/** Returns device number @p index of a granted lease, counted from 0, in the order of gpuhal_device_at() or of the
 *  parts.
 *  @return the device; NULL past the last, and while the request waits
 *  Owner: the gpuhal object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_lease_device_at(const gpuhal_lease *lease, uint32_t index);

/** Makes a lease expire @p duration_ns from now, or never if @p duration_ns is 0.
 *  @return GPUHAL_OK; TIMEOUT when the lease has already expired; NOT_READY while the request waits; INVALID_ARGUMENT,
 *  BUSY, FILE, FORKED
 *  Owner: nothing. Threads: any. Blocks: briefly, for the lock on the ledger. */
GPUHAL_API gpuhal_status gpuhal_lease_renew(gpuhal_lease *lease, uint64_t duration_ns);

/** Releases the lease, or withdraws a waiting request. Existing buffers stay. NULL does nothing.
 *  Owner: @p lease is invalid afterwards. Threads: any, with no other call on @p lease in progress. Blocks: briefly,
 *  for the lock on the ledger. */
GPUHAL_API void gpuhal_lease_release(gpuhal_lease *lease);

/** Leaves a lease to the programs that were started under it (GPUHAL_LEASE_INHERIT): the lease ends with the last of
 *  these programs, or immediately if there is none. A lease without that flag, or a waiting request, is released. NULL
 *  does nothing.
 *  Owner: @p lease is invalid afterwards. Threads: any, with no other call on @p lease in progress. Blocks: briefly,
 *  for the lock on the ledger. */
GPUHAL_API void gpuhal_lease_hand_down(gpuhal_lease *lease);

/** Ends a lease of any process, or withdraws its request, by the number in the ledger. Only the user of the lease and
 *  root may do this. Its processes are neither terminated nor notified, and their allocations stay, next to those of
 *  the next holder. A waiting request fails with FILE. With @p force 1, the call ends any lease. With 0, it does not
 *  end a lease that a process still has; a lease that no process has any more is removed, and counts as not found.
 *  @return GPUHAL_OK; BUSY when processes still have the lease and @p force is 0; the detail names them; NOT_FOUND when
 *  no lease or request of a living process has that number; NO_PERMISSION for another user's lease; INVALID_ARGUMENT,
 *  FILE, NOT_SUPPORTED, HOST_MEMORY, FORKED
 *  Owner: nothing. Threads: any. Blocks: briefly, for the lock on the ledger. */
GPUHAL_API gpuhal_status gpuhal_lease_revoke(gpuhal *gpu, uint64_t number, uint32_t force);

/** Returns the folder of the ledger, and in @p out_shared whether the ledger may contain leases of other users: 1 for a
 *  configured folder and for the machine's folder, 0 if it contains only leases of this user.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, FILE when there is no folder, NOT_SUPPORTED without a ledger, HOST_MEMORY,
 *  FORKED
 *  Owner: the gpuhal object. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_lease_ledger(gpuhal *gpu, const char **out_folder, uint32_t *out_shared);

/** Writes the ledger as JSON, schema gpuhal.lease/1 (docs/gpuhal.lease-1.schema.json): the devices with their leased
 *  part, others' current use and the reason if a device is excluded, the leases, and the waiting requests. At most @p
 *  bytes are written, including the terminating NUL; @p out_needed, which may be NULL, is the size of the whole text,
 *  including the NUL. @p out_text may be NULL if @p bytes is 0.
 *  @return GPUHAL_OK; OUT_OF_RANGE when the text did not fit; INVALID_ARGUMENT, BUSY, FILE, NOT_SUPPORTED, HOST_MEMORY,
 *  FORKED
 *  Owner: caller. Threads: any. Blocks: for the lock on the ledger, and as gpuhal_sample_all() for values that were not
 *  read in the last 100 ms. */
GPUHAL_API gpuhal_status gpuhal_lease_json(gpuhal *gpu, char *out_text, uint64_t bytes, uint64_t *out_needed);

#ifdef __cplusplus
}
#endif
#endif
