/* base/call.h: records which plugin call each thread is in, for the watchdog (queue/watchdog.c).
 *
 * Every call of a plugin function must be enclosed by one of the begin functions below and by gpuhal_call_end() or
 * gpuhal_device_result() (device/device.h). A rule test checks this. Begin stores the call's subject and its time limit
 * in the calling thread's slot; end restores the previous contents, so calls may nest. After a thread's first call,
 * neither reads a clock, takes a lock, or writes a cache line that another calling thread writes. The watchdog marks
 * the calls that it sees. Begin stores no mark, so a call that is still marked at the next check is the same call.
 *
 * Slots are in a linked list on the heap. They are never removed, so the list can be read without a lock. A new thread
 * can reuse an ended thread's slot; no thread-exit destructor is needed. In the child of a fork, the slots of the
 * parent's other threads stay unused.
 */
#ifndef GPUHAL_BASE_CALL_H
#define GPUHAL_BASE_CALL_H

#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Flags in gpuhal_call_slot.call. The other bits are the address of the call's subject, a device or a gpuhal_plugin. */
enum {
    GPUHAL_CALL_MARKED = 1,  /* set by the watchdog */
    GPUHAL_CALL_BLOCKS = 2,  /* may wait for work in progress */
    GPUHAL_CALL_EXTRA = 4,   /* `extra_ns` is valid */
    GPUHAL_CALL_BITS = 7
};

enum { GPUHAL_CALL_NS_PER_BYTE = 20, GPUHAL_CALL_SMALL_BYTES = 1 << 20 };

typedef struct gpuhal_call_slot {
    _Alignas(64) _Atomic uintptr_t call; /* 0 if the thread is not in a plugin call */
    _Atomic uint64_t extra_ns;           /* time limit of this call beyond hang_ns; UINT64_MAX if unlimited */
    _Atomic uint64_t thread;             /* gpuhal_os_thread_id() */
    uint32_t generation;                 /* fork generation of `thread` */
    /* Watchdog data about the marked call: how long the call has been observed (waited_ns), whether it may be waiting
     * for other work (is_behind), and for how long the driver has reported no progress of the other work
     * (silent_ns). */
    uint64_t waited_ns, silent_ns;
    bool is_behind;
    struct gpuhal_call_slot *next;
} gpuhal_call_slot;

/* Per-thread data in one block, so that one TLS lookup finds both members. The block is static and has no destructor
 * (base/error.c). */
typedef struct gpuhal_thread_own {
    gpuhal_call_slot *slot; /* NULL before the first call */
    gpuhal_error_detail error;
} gpuhal_thread_own;
extern _Thread_local __attribute__((visibility("hidden"))) gpuhal_thread_own gpuhal_own;

/* Adds a slot for this thread, which must not have a slot yet. Never returns NULL. */
gpuhal_call_slot *gpuhal_call_slot_add(void);
/* Returns this thread's slot, never NULL. Inline, like all begin and end functions, so that a small copy costs few
 * instructions. */
static inline gpuhal_call_slot *gpuhal_call_slot_of(const gpuhal_thread_own *own)
{
    return __builtin_expect(own->slot != NULL, 1) ? own->slot : gpuhal_call_slot_add();
}
static inline gpuhal_call_slot *gpuhal_call_slot_own(void)
{
    return gpuhal_call_slot_of(&gpuhal_own);
}
/* Also discards the report of an earlier plugin call (base/error.h). */
static inline gpuhal_call_slot *gpuhal_call_slot_fresh(void)
{
    gpuhal_thread_own *own = &gpuhal_own;
    own->error.report_status = GPUHAL_OK;
    return gpuhal_call_slot_of(own);
}
gpuhal_call_slot *gpuhal_call_slots(void);
/* Runs once in the child of a fork, because the parent's calls are not watched in the child. */
void gpuhal_call_slots_inherit(void);
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

/* Begins a call that must return promptly. */
static inline gpuhal_call gpuhal_call_prompt(const void *subject)
{
    return gpuhal_call_begin_in(gpuhal_call_slot_fresh(), subject, 0);
}

/* Begins a prompt call without discarding an earlier failed call's report. */
static inline gpuhal_call gpuhal_call_aside(const void *subject)
{
    return gpuhal_call_begin_in(gpuhal_call_slot_own(), subject, 0);
}

/* Begins a call that may wait for the device's work and then handles at most 1 MiB, in negligible time. */
static inline gpuhal_call gpuhal_call_small(const void *subject)
{
    return gpuhal_call_begin_in(gpuhal_call_slot_fresh(), subject, GPUHAL_CALL_BLOCKS);
}

/* Begins a blocking call that handles `bytes` bytes. The time limit assumes 50 MB/s. Every device is faster, and the
 * kernel also clears pages faster. */
static inline gpuhal_call gpuhal_call_blocking(const void *subject, uint64_t bytes)
{
    uint64_t extra_ns = bytes < UINT64_MAX / GPUHAL_CALL_NS_PER_BYTE ? bytes * GPUHAL_CALL_NS_PER_BYTE : UINT64_MAX;
    return gpuhal_call_begin_extra(subject, GPUHAL_CALL_BLOCKS, extra_ns);
}

/* Begins a call that waits for the device's work with a timeout. Some drivers ignore the timeout and return only when
 * the work has completed. */
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
