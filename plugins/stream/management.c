/* stream/management.c: calls of the vendor's management library (NVML, AMD SMI, ROCm SMI), one thread at a time.
 *
 * Such calls have been seen to hang for good while a GPU is reset or after it has fallen off the bus. The core
 * abandons a thread that hangs in sample() or link(), so the library is called in those alone. While one thread hangs
 * in it the others return with "timed out": the process keeps at most one such thread.
 */
#include "../common/clock.h"
#include "device.h"

#include <errno.h>
#include <stdio.h>

/* Less than the time after which the core abandons a call. The first question about a GPU may initialise it, or all
 * GPUs of the machine, which takes seconds. */
#define PATIENCE_NS (4 * GPUHAL_PLUGIN_SECOND_NS)

gpuhal_stream_why GPUHAL_OWN(because)(gpuhal_missing reason, const char *text)
{
    gpuhal_stream_why why = {.reason = reason};
    snprintf(why.text, sizeof why.text, "%s", text);
    return why;
}

bool GPUHAL_OWN(wants)(const gpuhal_key *keys, uint32_t count, gpuhal_key key)
{
    bool found = count == 0;
    for (uint32_t i = 0; i < count; i++) {
        found = found || keys[i] == key;
    }
    return found;
}

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the two below */
static pthread_cond_t turn_ended;
static pthread_once_t turn_once = PTHREAD_ONCE_INIT;
static bool inside;           /* a thread is in the library */
static struct timespec until; /* from then on others do not wait for it any more */

static void make_condition(void)
{
    gpuhal_plugin_condition_init(&turn_ended);
}

/* The end of the turn is copied before waiting: another thread may have the next turn when this one wakes, with a later
 * end, which is waited for in its place. A thread that hung and comes back ends its turn like any other, however long
 * ago the core abandoned it: until then no other thread was inside. */
bool GPUHAL_OWN(take_turn)(void)
{
    int waited = 0;
    pthread_once(&turn_once, make_condition);
    pthread_mutex_lock(&turn_lock);
    while (inside && waited != ETIMEDOUT) {
        const struct timespec of_this_one = until;
        waited = pthread_cond_timedwait(&turn_ended, &turn_lock, &of_this_one);
    }
    const bool ours = !inside;
    if (ours) {
        inside = true;
        until = gpuhal_plugin_time(gpuhal_plugin_now_ns() + PATIENCE_NS);
    }
    pthread_mutex_unlock(&turn_lock);
    return ours;
}

void GPUHAL_OWN(give_turn)(void)
{
    pthread_mutex_lock(&turn_lock);
    inside = false;
    pthread_cond_signal(&turn_ended); /* one can have it; one that gives up at this moment looks first */
    pthread_mutex_unlock(&turn_lock);
}
