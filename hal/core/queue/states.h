/* queue/states.h: the states of a queue, and the places where threads wait for the queue. states.inc describes both. */
#ifndef GPUHAL_QUEUE_STATES_H
#define GPUHAL_QUEUE_STATES_H

typedef enum gpuhal_queue_state {
#define STATE(region, name, meaning) GPUHAL_QUEUE_##name,
#define CHANGE(from, to, reason)
#define PLACE(name, who, until)
#include "queue/states.inc"
#undef STATE
#undef CHANGE
#undef PLACE
} gpuhal_queue_state;

typedef enum gpuhal_queue_place {
#define STATE(region, name, meaning)
#define CHANGE(from, to, reason)
#define PLACE(name, who, until) GPUHAL_WAITS_##name,
#include "queue/states.inc"
#undef STATE
#undef CHANGE
#undef PLACE
    GPUHAL_WAITING_PLACES
} gpuhal_queue_place;

_Static_assert(GPUHAL_WAITS_WORK + 1 == GPUHAL_WAITING_PLACES,
               "gpuhal_queue_has_waiters() counts all places before the last one");

/* Aborts the process if states.inc does not contain the change. */
void gpuhal_queue_check_change(gpuhal_queue_state from, gpuhal_queue_state to);

static inline void gpuhal_queue_change(gpuhal_queue_state *state, gpuhal_queue_state to)
{
#ifdef GPUHAL_CHECK_STATES
    gpuhal_queue_check_change(*state, to);
#endif
    *state = to;
}

#endif
