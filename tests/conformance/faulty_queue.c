/* faulty_queue.c: queues and events of the misbehaving plugin. Each queue has a thread that runs the flushed work in
 * order. One lock protects all state of this file; work runs without the lock. */
#include "faulty.h"

#include <gpuhal/native.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct command {
    struct command *next;
    void (*work)(const void *arguments);
    gpuhal_plugin_event *signals; /* if set, the command completes this event instead of running work */
    gpuhal_plugin_event *awaits;  /* if set, the command waits for this event instead of running work */
    uint64_t generation;          /* number of the event's recording */
    unsigned char arguments[64];
} command;

enum { RING_PLACES = 284 };

struct gpuhal_plugin_queue {
    pthread_t thread;
    command *waiting, **waiting_end; /* enqueued but not yet flushed */
    command *flushed, **flushed_end; /* flushed but not yet executed */
    unsigned places;                 /* number of ring entries that unfinished commands use */
    command late;                    /* indirect_late: the next work overtakes this command */
    bool has_late;
    bool taken; /* locked with native_lock */
    bool ends;
};

struct gpuhal_plugin_event {
    uint64_t recorded, done; /* numbers of recordings */
    uint64_t time_ns;        /* time of the last completion */
    void (*notify)(void *user, gpuhal_status status);
    void *user;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void finish_event(gpuhal_plugin_event *event, uint64_t generation)
{
    pthread_mutex_lock(&lock);
    event->done = generation;
    event->time_ns = now_ns();
    void (*notify)(void *user, gpuhal_status status) = event->notify;
    void *user = event->user;
    event->notify = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; notify != NULL && i < (is(notify_twice) ? 2 : 1); i++) {
        notify(user, GPUHAL_OK);
    }
}

static void await_event(const gpuhal_plugin_event *event, uint64_t generation)
{
    pthread_mutex_lock(&lock);
    while (event->done < generation) {
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void run(command *one)
{
    if (one->work != NULL) {
        one->work(one->arguments);
    } else if (one->awaits != NULL) {
        await_event(one->awaits, one->generation);
    } else if (!is(event_early)) {
        finish_event(one->signals, one->generation);
    }
    free(one);
}

static void *serve(void *user)
{
    gpuhal_plugin_queue *queue = user;
    pthread_mutex_lock(&lock);
    while (!queue->ends || queue->flushed != NULL) {
        command *one = queue->flushed;
        if (one == NULL) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        queue->flushed = one->next;
        if (queue->flushed == NULL) {
            queue->flushed_end = &queue->flushed;
        }
        pthread_mutex_unlock(&lock);
        run(one);
        pthread_mutex_lock(&lock);
        queue->places--;
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* good_ring: the ring is full for every second command that records or awaits an event. Call with the lock held. */
static bool is_full(const gpuhal_plugin_queue *queue, const command *model)
{
    static uint32_t asked;
    if (model->work == NULL) {
        return is(good_ring) && asked++ % 2 == 0;
    }
    return queue->places >= RING_PLACES && (is(ring_busy) || is(ring_loses) || is(good_ring));
}

/* A refused command has no effects, so the event counts as recorded only after the command was appended. Call with the
 * lock held. */
static gpuhal_status append_locked(gpuhal_plugin_queue *queue, const command *model)
{
    if (is_full(queue, model)) {
        return is(ring_busy) ? GPUHAL_ERROR_BUSY : is(ring_loses) ? GPUHAL_OK : GPUHAL_NOT_READY;
    }
    command *one = malloc(sizeof *one);
    if (one == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *one = *model;
    if (one->signals != NULL) {
        one->generation = ++one->signals->recorded;
    }
    queue->places++;
    if (is(queue_backwards) && one->work != NULL) {
        one->next = queue->waiting;
        queue->waiting_end = queue->waiting == NULL ? &one->next : queue->waiting_end;
        queue->waiting = one;
    } else {
        *queue->waiting_end = one;
        queue->waiting_end = &one->next;
    }
    return GPUHAL_OK;
}

static gpuhal_status append(gpuhal_plugin_queue *queue, const command *model)
{
    pthread_mutex_lock(&lock);
    const bool overtakes = queue->has_late && model->work != NULL;
    if (queue->has_late && !overtakes) {
        (void)append_locked(queue, &queue->late);
    }
    const gpuhal_status status = append_locked(queue, model);
    if (overtakes) {
        (void)append_locked(queue, &queue->late);
    }
    queue->has_late = false;
    pthread_mutex_unlock(&lock);
    return status;
}

void gpuhal_faulty_enqueue_late(gpuhal_plugin_queue *queue, void (*work)(const void *arguments), const void *arguments,
                                uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    queue->late = (command){.work = work};
    memcpy(queue->late.arguments, arguments, bytes);
    queue->has_late = true;
    pthread_mutex_unlock(&lock);
}

gpuhal_status gpuhal_faulty_enqueue(gpuhal_plugin_queue *queue, void (*work)(const void *arguments),
                                    const void *arguments, uint64_t bytes)
{
    command one = {.work = work};
    memcpy(one.arguments, arguments, bytes);
    return append(queue, &one);
}

static gpuhal_status flush_now(gpuhal_plugin_queue *queue)
{
    pthread_mutex_lock(&lock);
    if (queue->waiting != NULL) {
        *queue->flushed_end = queue->waiting;
        queue->flushed_end = queue->waiting_end;
        queue->waiting = NULL;
        queue->waiting_end = &queue->waiting;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return GPUHAL_OK;
}

void gpuhal_faulty_drain(gpuhal_plugin_queue *queue)
{
    (void)flush_now(queue);
    pthread_mutex_lock(&lock);
    while (queue->places > 0) {
        pthread_mutex_unlock(&lock);
        nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
}

static gpuhal_status faulty_flush(gpuhal_plugin_queue *queue)
{
    if (is(flush_waits)) {
        gpuhal_faulty_drain(queue);
    }
    return flush_now(queue);
}

static gpuhal_status faulty_queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                         gpuhal_plugin_queue **out_queue)
{
    (void)device, (void)desc;
    if (desc->adopt != NULL) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (is(fork_no_queue) && gpuhal_faulty_is_forked()) {
        return GPUHAL_ERROR_DRIVER;
    }
    gpuhal_plugin_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    queue->waiting_end = &queue->waiting;
    queue->flushed_end = &queue->flushed;
    if (pthread_create(&queue->thread, NULL, serve, queue) != 0) {
        free(queue);
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *out_queue = queue;
    return GPUHAL_OK;
}

static void faulty_queue_destroy(gpuhal_plugin_queue *queue)
{
    if (is(queue_leaks)) {
        return;
    }
    faulty_flush(queue);
    pthread_mutex_lock(&lock);
    queue->ends = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(queue->thread, NULL);
    free(queue);
}

static gpuhal_status faulty_event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                         gpuhal_plugin_event **out_event)
{
    (void)device, (void)desc;
    *out_event = calloc(1, sizeof **out_event);
    return *out_event != NULL ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static void faulty_event_destroy(gpuhal_plugin_event *event)
{
    if (is(event_leaks)) {
        gpuhal_faulty_lose_memory(2048);
    }
    if (!is(leak_event)) {
        free(event);
    }
}

static gpuhal_status faulty_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    if (is(leak_record)) {
        gpuhal_faulty_lose_memory(24);
    }
    const gpuhal_status status = append(queue, &(const command){.signals = event});
    if (status == GPUHAL_OK && is(event_early)) {
        finish_event(event, event->recorded);
    }
    const gpuhal_status flushed = status != GPUHAL_OK ? status : flush_now(queue);
    if (flushed == GPUHAL_OK && is(good_held_up)) { /* the call waits until the work is done */
        await_event(event, event->recorded);
    }
    return flushed;
}

static bool is_done(const gpuhal_plugin_event *event)
{
    return event->done == event->recorded && !is(event_never);
}

static gpuhal_status faulty_event_query(gpuhal_plugin_event *event)
{
    if (is(query_finishes)) {
        await_event(event, event->recorded);
    }
    static atomic_flag held_up = ATOMIC_FLAG_INIT; /* only once, like a delay that another program causes */
    if (is(query_waits) || (is(good_held_up) && !atomic_flag_test_and_set(&held_up))) {
        nanosleep(&(const struct timespec){.tv_nsec = 600000000}, NULL);
    }
    pthread_mutex_lock(&lock);
    bool done = is_done(event);
    pthread_mutex_unlock(&lock);
    return done ? GPUHAL_OK : GPUHAL_NOT_READY;
}

static gpuhal_status faulty_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t nanoseconds = (uint64_t)until.tv_nsec + timeout_ns % 1000000000u;
    until.tv_sec += (time_t)(timeout_ns / 1000000000u + nanoseconds / 1000000000u);
    until.tv_nsec = (long)(nanoseconds % 1000000000u);
    int error = is(block_refuses) ? 1 : 0;
    if (is(block_finishes)) {
        await_event(event, event->recorded);
    }
    if (is(block_overruns)) {
        nanosleep(&(const struct timespec){.tv_nsec = 600000000}, NULL);
    }
    pthread_mutex_lock(&lock);
    while (!is_done(event) && error == 0) {
        error = pthread_cond_timedwait(&changed, &lock, &until);
    }
    pthread_mutex_unlock(&lock);
    return error == 0 || is(block_early) ? GPUHAL_OK : is(block_times_out) ? GPUHAL_ERROR_TIMEOUT : GPUHAL_NOT_READY;
}

static gpuhal_status faulty_event_notify(gpuhal_plugin_event *event, void (*done)(void *user, gpuhal_status status),
                                         void *user)
{
    pthread_mutex_lock(&lock);
    bool already = is_done(event) || is(notify_early);
    event->notify = already ? NULL : done;
    event->user = user;
    pthread_mutex_unlock(&lock);
    for (int i = 0; already && i < (is(notify_twice) ? 2 : 1); i++) {
        done(user, GPUHAL_OK);
    }
    return GPUHAL_OK;
}

static gpuhal_status faulty_queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    if (is(wait_nothing) || is(wait_refuses)) {
        return is(wait_nothing) ? GPUHAL_OK : GPUHAL_ERROR_BUSY;
    }
    pthread_mutex_lock(&lock);
    const command one = {.awaits = event, .generation = event->recorded};
    pthread_mutex_unlock(&lock);
    return append(queue, &one);
}

static gpuhal_status faulty_elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    pthread_mutex_lock(&lock);
    const bool wild = is(elapsed_wild) || (is(launch_clock) && gpuhal_faulty_launched());
    if (is(elapsed_long)) {
        gpuhal_faulty_write_behind(out_ns, sizeof *out_ns);
    }
    *out_ns = wild ? UINT64_C(3600000000000) : is(elapsed_zero) ? 0 : to->time_ns - from->time_ns;
    pthread_mutex_unlock(&lock);
    return GPUHAL_OK;
}

/* ---- native objects */

gpuhal_status gpuhal_faulty_native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native)
{
    out_native->type = is(native_of_opencl) ? 3 : FAULTY_QUEUE;
    out_native->values[0] = is(native_queue_empty) ? 0 : (uintptr_t)queue;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_faulty_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native)
{
    out_native->type = is(native_event_untyped) ? 0 : FAULTY_EVENT;
    out_native->values[0] = (uintptr_t)event;
    return GPUHAL_OK;
}

/* The plugin only pretends that its queues need a lock. */
gpuhal_status gpuhal_faulty_native_lock(gpuhal_plugin_queue *queue, uint64_t timeout_ns)
{
    const uint64_t end = now_ns() + timeout_ns;
    pthread_mutex_lock(&lock);
    while (queue->taken && now_ns() < end) {
        pthread_mutex_unlock(&lock);
        nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&lock);
    }
    const bool taken = !queue->taken;
    queue->taken = true;
    pthread_mutex_unlock(&lock);
    return !taken ? GPUHAL_NOT_READY : is(lock_keeps_work) ? GPUHAL_OK : faulty_flush(queue);
}

void gpuhal_faulty_native_unlock(gpuhal_plugin_queue *queue)
{
    pthread_mutex_lock(&lock);
    queue->taken = is(lock_is_kept);
    pthread_mutex_unlock(&lock);
}

void gpuhal_faulty_describe_queue(gpuhal_ops *ops)
{
    static const gpuhal_queue_ops queues = {
        .size = sizeof queues,
        .version = GPUHAL_QUEUES_VERSION,
        .queue_create = faulty_queue_create,
        .queue_destroy = faulty_queue_destroy,
        .queue_flush = faulty_flush,
        .event_create = faulty_event_create,
        .event_destroy = faulty_event_destroy,
        .event_record = faulty_event_record,
        .event_query = faulty_event_query,
        .event_block = faulty_event_block,
        .event_notify = faulty_event_notify,
        .queue_wait = faulty_queue_wait,
        .elapsed = faulty_elapsed,
    };
    ops->queues = &queues;
}
