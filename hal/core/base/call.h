/* base/call.h: records the call into a plugin that each thread is in, for the watchdog (queue/watchdog.c).
 *
 * Every call of a function of a plugin must stand between one of the functions below that begin a call and
 * gpuhal_call_end(), or gpuhal_device_result() of device/device.h. A rule test finds calls that do not. Beginning
 * stores the subject of the call and its time limit in the calling thread's slot; ending restores the previous
 * contents, so that calls may nest. This takes no clock, no lock, and no cache line that two threads write. The
 * watchdog marks the calls that it sees: a call that still has the mark at its next check is the same one, since every
 * store of the thread itself removes the mark.
 *
 * Slots are in one list on the heap, and none is ever removed, so that the list may be read without a lock. The slot of
 * a thread that has ended serves a new one; no destructor runs with a thread. In the child of a fork the slots of the
 * parent's threads stay unused, except that of the forking thread.
 */
#ifndef GPUHAL_BASE_CALL_H
#define GPUHAL_BASE_CALL_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The bits of gpuhal_call_slot.call beside the address of the call's subject: the device, or the gpuhal_plugin. */
enum {
    GPUHAL_CALL_MARKED = 1,  /* the watchdog has seen it */
    GPUHAL_CALL_BLOCKS = 2,  /* may wait for work in progress */
    GPUHAL_CALL_EXTRA = 4,   /* `extra_ns` is valid */
    GPUHAL_CALL_BITS = 7
};

enum { GPUHAL_CALL_NS_PER_BYTE = 20, GPUHAL_CALL_SMALL_BYTES = 1 << 20 };

typedef struct gpuhal_call_slot {
    _Alignas(64) _Atomic uintptr_t call; /* 0: the thread is in no plugin */
    _Atomic uint64_t extra_ns;           /* the call's own time beyond hang_ns; UINT64_MAX: unlimited */
    _Atomic uint64_t thread;             /* gpuhal_os_thread_id() */
    uint32_t generation;                 /* fork generation of `thread` */
    /* The watchdog's data about the marked call: how long it has been seen; whether it may wait for other work, and
     * how long the driver has reported no progress meanwhile. */
    uint64_t waited_ns, silent_ns;
    bool is_behind;
    struct gpuhal_call_slot *next;
} gpuhal_call_slot;

/* The data of one thread in one block, so that one look-up finds both. The block is static, without a destructor;
 * base/error.c. */
typedef struct gpuhal_thread_own {
    gpuhal_call_slot *slot; /* NULL: none yet */
    gpuhal_error_detail error;
} gpuhal_thread_own;
extern _Thread_local __attribute__((visibility("hidden"))) gpuhal_thread_own gpuhal_own;

/* Adds a slot for this thread, which has none. Never NULL. */
gpuhal_call_slot *gpuhal_call_slot_add(void);
/* Returns this thread's slot, never NULL. Inline, like all functions that begin and end a call: a small copy must cost
 * few instructions. */
static inline gpuhal_call_slot *gpuhal_call_slot_of(const gpuhal_thread_own *own)
{
    return __builtin_expect(own->slot != NULL, 1) ? own->slot : gpuhal_call_slot_add();
}
static inline gpuhal_call_slot *gpuhal_call_slot_own(void)
{
    return gpuhal_call_slot_of(&gpuhal_own);
}
/* Returns this thread's slot, and drops the report of an earlier call of a plugin (base/error.h). */
static inline gpuhal_call_slot *gpuhal_call_slot_fresh(void)
{
    gpuhal_thread_own *own = &gpuhal_own;
    own->error.report_status = GPUHAL_OK;
    return gpuhal_call_slot_of(own);
}
/* Returns the list of all slots; NULL: none. */
gpuhal_call_slot *gpuhal_call_slots(void);
/* Runs once in the child of a fork: calls of the parent's threads are not in progress here. */
void gpuhal_call_slots_inherit(void);
/* Returns whether the slot's thread exists. */
bool gpuhal_call_slot_is_alive(const gpuhal_call_slot *slot);

typedef struct gpuhal_call {
    gpuhal_call_slot *slot;
    uintptr_t before;
    uint64_t extra_before;
    bool has_extra;
} gpuhal_call;

static inline gpuhal_call gpuhal_call_begin_in(gpuhal_call_slot *slot, const void *subject, uintptr_t bits)
{
    const gpuhal_call call = {.slot = slot, .before = atomic_load_explicit(&slot->call, memory_order_relaxed)};
    atomic_store_explicit(&slot->call, (uintptr_t)subject | bits, memory_order_relaxed);
    return call;
}

static inline gpuhal_call gpuhal_call_begin_extra(const void *subject, uintptr_t bits, uint64_t extra_ns)
{
    gpuhal_call_slot *slot = gpuhal_call_slot_fresh();
    const gpuhal_call call = {.slot = slot,
                              .before = atomic_load_explicit(&slot->call, memory_order_relaxed),
                              .extra_before = atomic_load_explicit(&slot->extra_ns, memory_order_relaxed),
                              .has_extra = true};
    atomic_store_explicit(&slot->extra_ns, extra_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->call, (uintptr_t)subject | bits | GPUHAL_CALL_EXTRA, memory_order_release);
    return call;
}

/* Begins a call that must be prompt. */
static inline gpuhal_call gpuhal_call_prompt(const void *subject)
{
    return gpuhal_call_begin_in(gpuhal_call_slot_fresh(), subject, 0);
}

/* Begins a prompt call between a failed call and the use of its report. */
static inline gpuhal_call gpuhal_call_aside(const void *subject)
{
    return gpuhal_call_begin_in(gpuhal_call_slot_own(), subject, 0);
}

/* Begins a call that may wait for the device's work and then handles less than a MiB; the time for that does not
 * matter. */
static inline gpuhal_call gpuhal_call_small(const void *subject)
{
    return gpuhal_call_begin_in(gpuhal_call_slot_fresh(), subject, GPUHAL_CALL_BLOCKS);
}

/* Begins a blocking call for any number of bytes. It allows for 50 MB/s: any device is faster, and so is the system
 * when it clears pages. */
static inline gpuhal_call gpuhal_call_blocking(const void *subject, uint64_t bytes)
{
    uint64_t extra_ns = bytes < UINT64_MAX / GPUHAL_CALL_NS_PER_BYTE ? bytes * GPUHAL_CALL_NS_PER_BYTE : UINT64_MAX;
    return gpuhal_call_begin_extra(subject, GPUHAL_CALL_BLOCKS, extra_ns);
}

/* Begins a call that waits for the device's work with a timeout. Some drivers have no timeout, and return when the
 * work has ended. */
static inline gpuhal_call gpuhal_call_timed(const void *subject, uint64_t timeout_ns)
{
    return gpuhal_call_begin_extra(subject, GPUHAL_CALL_BLOCKS, timeout_ns);
}

static inline void gpuhal_call_end(gpuhal_call call)
{
    atomic_store_explicit(&call.slot->call, call.before, memory_order_relaxed);
    if (call.has_extra) {
        atomic_store_explicit(&call.slot->extra_ns, call.extra_before, memory_order_relaxed);
    }
}

#endif
