/* base/call.c: see call.h. */
#include "base/call.h"

#include "os/os.h"

#include <stdlib.h>

enum { ASKED_AT_ONCE = 16 };

static _Atomic(gpuhal_call_slot *) first;
/* slot for threads whose own slot could not be allocated; ignored by the watchdog */
static _Thread_local gpuhal_call_slot nowhere;

gpuhal_call_slot *gpuhal_call_slots(void)
{
    return atomic_load_explicit(&first, memory_order_acquire);
}

/* Thread ids change in the child of a fork, so ids of an earlier generation are meaningless. */
bool gpuhal_call_slot_is_alive(const gpuhal_call_slot *slot)
{
    return slot->generation != gpuhal_os_fork_generation() ||
           gpuhal_os_thread_is_alive(atomic_load_explicit(&slot->thread, memory_order_relaxed));
}

/* Takes over a slot whose thread has ended, so that the slot's thread id now belongs to this thread or to no thread. If
 * several threads try, the exchange succeeds in only one of them. The generation is compared first, since the id of a
 * parent's thread may belong to another thread in the child. */
static bool take_over(gpuhal_call_slot *slot, uint64_t thread)
{
    uint64_t owner = atomic_load_explicit(&slot->thread, memory_order_relaxed);
    if (slot->generation != gpuhal_os_fork_generation() || (owner != thread && gpuhal_os_thread_is_alive(owner))) {
        return false;
    }
    if (!atomic_compare_exchange_strong(&slot->thread, &owner, thread)) {
        return false;
    }
    atomic_store(&slot->call, 0); /* the old thread may have been cancelled during a call */
    return true;
}

/* Finds the slot of an ended thread, and prefers a slot with this thread's id. Asks the system about only a few other
 * slots each time, so that a thread's first call stays cheap even if thousands of threads have slots. Returns NULL if
 * none is found. */
static gpuhal_call_slot *find_free(uint64_t thread)
{
    static _Atomic(gpuhal_call_slot *) next; /* next slot to check; NULL for the first */
    for (gpuhal_call_slot *slot = gpuhal_call_slots(); slot; slot = slot->next) {
        if (atomic_load_explicit(&slot->thread, memory_order_relaxed) == thread && take_over(slot, thread)) {
            return slot;
        }
    }
    gpuhal_call_slot *slot = atomic_load(&next), *begun = NULL;
    for (int i = 0; i < ASKED_AT_ONCE; i++) {
        slot = slot ? slot : gpuhal_call_slots();
        if (!slot || slot == begun) {
            return NULL;
        }
        begun = begun ? begun : slot;
        if (take_over(slot, thread)) {
            return slot;
        }
        slot = slot->next;
        atomic_store(&next, slot);
    }
    return NULL;
}

/* The slot is complete before the exchange publishes it. From then on other threads read the slot, and `next` does not
 * change. */
static gpuhal_call_slot *find_or_make(void)
{
    uint64_t thread = gpuhal_os_thread_id();
    gpuhal_call_slot *slot = find_free(thread);
    if (slot) {
        return slot;
    }
    slot = gpuhal_os_aligned_alloc(_Alignof(gpuhal_call_slot), sizeof *slot);
    if (!slot) {
        return &nowhere;
    }
    *slot = (gpuhal_call_slot){.generation = gpuhal_os_fork_generation(), .next = gpuhal_call_slots()};
    atomic_init(&slot->thread, thread);
    while (!atomic_compare_exchange_weak(&first, &slot->next, slot)) {
    }
    return slot;
}

gpuhal_call_slot *gpuhal_call_slot_add(void)
{
    gpuhal_own.slot = find_or_make();
    return gpuhal_own.slot;
}

/* The forking thread's slot keeps its old generation, so no other thread takes it over. */
void gpuhal_call_slots_inherit(void)
{
    for (gpuhal_call_slot *slot = gpuhal_call_slots(); slot; slot = slot->next) {
        if (slot->generation != gpuhal_os_fork_generation()) {
            atomic_store(&slot->call, 0);
            slot->waited_ns = 0;
        }
    }
}
