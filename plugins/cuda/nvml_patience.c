/* cuda/nvml_patience.c: calls NVML while devices are listed. Listing has only one deadline for the whole plugin, and
 * NVML may hang forever (nvml.h). So NVML is called on a separate thread that is abandoned after a timeout. */
#include "../common/clock.h"
#include "../common/thread.h"
#include "nvml.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (2 * GPUHAL_PLUGIN_SECOND_NS)

typedef struct question {
    nvmlReturn_t (*work)(void *request);
    void *request; /* a copy, because the caller's request may have been freed */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended, is_given_up; /* the abandoned thread frees the object if is_given_up, otherwise the waiting thread
                                  * does */
} question;

static void destroy(question *own)
{
    pthread_cond_destroy(&own->ended);
    pthread_mutex_destroy(&own->lock);
    free(own->request);
    free(own);
}

static void *run(void *argument)
{
    question *own = argument;
    (void)gpuhal_cuda_nvml_run(own->work, own->request);
    pthread_mutex_lock(&own->lock);
    own->has_ended = true;
    const bool is_given_up = own->is_given_up;
    pthread_cond_signal(&own->ended);
    pthread_mutex_unlock(&own->lock);
    if (is_given_up) {
        destroy(own);
    }
    return NULL;
}

/* Returns whether the thread has ended; if it has not, that thread will free @p own. */
static bool wait_for(question *own)
{
    const struct timespec until = gpuhal_plugin_time(gpuhal_plugin_now_ns() + PATIENCE_NS);
    pthread_mutex_lock(&own->lock);
    for (int waited = 0; !own->has_ended && waited != ETIMEDOUT;) {
        waited = pthread_cond_timedwait(&own->ended, &own->lock, &until);
    }
    const bool has_ended = own->has_ended;
    own->is_given_up = !has_ended;
    pthread_mutex_unlock(&own->lock);
    return has_ended;
}

bool gpuhal_cuda_nvml_ask(nvmlReturn_t (*work)(void *request), void *request, size_t bytes)
{
    question *own = calloc(1, sizeof *own);
    void *copy = malloc(bytes);
    pthread_t thread;
    if (!own || !copy) {
        free(own);
        free(copy);
        return false;
    }
    memcpy(copy, request, bytes);
    *own = (question){.work = work, .request = copy};
    pthread_mutex_init(&own->lock, NULL);
    gpuhal_plugin_condition_init(&own->ended);
    if (gpuhal_plugin_thread_start(&thread, run, own) != 0) {
        destroy(own);
        return false;
    }
    pthread_detach(thread);
    const bool has_ended = wait_for(own);
    if (has_ended) {
        memcpy(request, copy, bytes);
        destroy(own);
    }
    return has_ended;
}
