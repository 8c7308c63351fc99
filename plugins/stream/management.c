/* stream/management.c: lets one thread at a time call the vendor's management library (NVML, AMD SMI, ROCm SMI).
 *
 * These calls have been seen to hang forever while a GPU is being reset, or after it has fallen off the bus. The core
 * can abandon a thread that hangs in sample(), processes() or link(), so only these functions call the library
 * directly. The cuda plugin's discovery calls NVML on a separate thread that it can abandon (nvml_patience.c). While
 * one thread hangs in the library, other threads return "timed out". So at most one thread of the process hangs in the
 * library.
 */
#include "../common/clock.h"
#include "device.h"

#include <errno.h>
#include <stdio.h>

/* Shorter than the core's timeout for a call. The first query about a GPU may take seconds, because it may initialise
 * that GPU or all GPUs of the machine. */
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

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER; /* protects `inside` and `until` */
static pthread_cond_t turn_ended;
static pthread_once_t turn_once = PTHREAD_ONCE_INIT;
static bool inside;           /* a thread is inside the library */
static struct timespec until; /* deadline for the threads that wait for the thread inside */

static void make_condition(void)
{
    gpuhal_plugin_condition_init(&turn_ended);
}

/* Copy the deadline before waiting, because another thread may take the turn and change it. A thread that wakes before
 * the copied deadline while another thread has the turn waits until the new turn's deadline; otherwise it gives up. A
 * thread that hung and later returns ends its turn normally, even long after the core abandoned it, because no other
 * thread could enter in the meantime. */
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
    pthread_cond_signal(&turn_ended); /* wakes one thread; a thread that times out at this moment checks `inside` before
                                       * it gives up */
    pthread_mutex_unlock(&turn_lock);
}
