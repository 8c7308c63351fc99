/* base/call.c: see call.h. */
#include "base/call.h"

#include "os/os.h"

#include <stdlib.h>

enum { ASKED_AT_ONCE = 16 };

/* Slots are only added, in front, and never freed: the watchdog walks the list without a lock while threads start and
 * end. */
static _Atomic(gpuhal_call_slot *) first;
/* for threads without memory for a slot: the watchdog ignores it */
static _Thread_local gpuhal_call_slot nowhere;

gpuhal_call_slot *gpuhal_call_slots(void)
{
    return atomic_load_explicit(&first, memory_order_acquire);
}

/* The forking thread has another number in the child, so numbers of an earlier generation mean nothing. */
bool gpuhal_call_slot_is_alive(const gpuhal_call_slot *slot)
{
    return slot->generation != gpuhal_os_fork_generation() ||
           gpuhal_os_thread_is_alive(atomic_load_explicit(&slot->thread, memory_order_relaxed));
}

/* Takes over a slot whose thread has ended: the system has given its number to this thread, or no thread has it. If
 * several threads find it free, the exchange gives it to one of them. The generation is compared first: the number of a
 * parent's thread may be another thread's here. */
static bool take_over(gpuhal_call_slot *slot, uint64_t thread)
{
    uint64_t owner = atomic_load_explicit(&slot->thread, memory_order_relaxed);
    if (slot->generation != gpuhal_os_fork_generation() || (owner != thread && gpuhal_os_thread_is_alive(owner))) {
        return false;
    }
    if (!atomic_compare_exchange_strong(&slot->thread, &owner, thread)) {
        return false;
    }
    atomic_store(&slot->call, 0); /* a thread may have been cancelled in a call */
    return true;
}

/* Finds the slot of an ended thread, first one with this thread's number; NULL: none. It asks the system about a few
 * slots at a time, so that the first call of a thread stays cheap even if thousands have slots. */
static gpuhal_call_slot *find_free(uint64_t thread)
{
    static _Atomic(gpuhal_call_slot *) next; /* the next slot to check; NULL: the first */
    for (gpuhal_call_slot *slot = gpuhal_call_slots(); slot; slot = slot->next) {
        if (atomic_load_explicit(&slot->thread, memory_order_relaxed) == thread && take_over(slot, thread)) {
            return slot;
        }
    }
    gpuhal_call_slot *slot = atomic_load(&next), *begun = NULL;
    for (int i = 0; i < ASKED_AT_ONCE; i++) {
        slot = slot ? slot : gpuhal_call_slots();
        if (!slot || slot == begun) {
            return NULL; /* all were checked */
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

/* The slot is filled in before the exchange makes it the first; from then on others read it, and its `next` stays. */
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

/* Runs in the child of a fork, in its only thread: the marks of the parent's watchdog are of calls that no thread here
 * is in. The forking thread's slot keeps its old generation, so no other thread takes it over. */
void gpuhal_call_slots_inherit(void)
{
    for (gpuhal_call_slot *slot = gpuhal_call_slots(); slot; slot = slot->next) {
        if (slot->generation != gpuhal_os_fork_generation()) {
            atomic_store(&slot->call, 0);
            slot->waited_ns = 0;
        }
    }
}
