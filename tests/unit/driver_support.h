/* tests/unit/driver_support.h: the mock with queues whose work runs on a driver thread. Work of one queue runs in
 * order; a seed determines the order between queues. Only flushed work runs. A test chooses the optional parts of the
 * driver. */
#ifndef GPUHAL_TEST_DRIVER_SUPPORT_H
#define GPUHAL_TEST_DRIVER_SUPPORT_H

#include "support/mock.h"
#include "support/random.h"
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { DRIVER_RING = 10 };

typedef enum { MOVE, FILL, RECORD, WAIT } command_kind;

/* One recording of an event. The event, the command that records the event, and each command or thread that waits for
 * the event hold references. */
typedef struct recording {
    uint32_t references;
    bool done;
    void (*notify)(void *user, gpuhal_status status);
    void *user;
} recording;

typedef struct command {
    struct command *next;
    command_kind kind;
    gpuhal_plugin_device *device;
    gpuhal_memory to, from;
    uint64_t to_offset, from_offset, bytes;
    uint32_t pattern, pattern_bytes;
    recording *recorded;
} command;

struct gpuhal_plugin_queue {
    gpuhal_plugin_queue *next;
    command *first, **end;
    uint32_t count, flushed, events; /* numbers of commands, flushed commands, and events last recorded here */
};

struct gpuhal_plugin_event {
    gpuhal_plugin_queue *queue;
    recording *newest;
};

static struct {
    bool waits, notifies, blocks, peers, has_ring; /* the optional parts; a ring is full at DRIVER_RING commands */
    uint64_t seed;
    const gpuhal_plugin *mock;
    gpuhal_ops ops; /* slots of the mock's device */
    gpuhal_queue_ops queue_slots;
    pthread_mutex_t mutex; /* protects all members below */
    pthread_cond_t changed;
    pthread_t thread;
    gpuhal_plugin_queue *queues;
    bool ends;
} driver = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Can be called on any thread. A failed cmocka assertion calls longjmp(), which is only allowed on the test's
 * thread. */
static inline void demand(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static inline uint32_t driver_chance(uint32_t end)
{
    return (uint32_t)(next_word(&driver.seed) % end);
}

/* ---- with the mutex held */

static void put_back(recording *one)
{
    if (one && --one->references == 0) {
        free(one);
    }
}

static gpuhal_status append(gpuhal_plugin_queue *queue, const command *given)
{
    if (driver.has_ring && queue->count >= DRIVER_RING) {
        queue->flushed = queue->count; /* like a driver whose ring is full */
        pthread_cond_broadcast(&driver.changed);
        return GPUHAL_NOT_READY;
    }
    command *added = malloc(sizeof *added);
    demand(added != NULL, "memory");
    *added = *given;
    added->next = NULL;
    *queue->end = added;
    queue->end = &added->next;
    queue->count++;
    return GPUHAL_OK;
}

static void flush_queue(gpuhal_plugin_queue *queue)
{
    queue->flushed = queue->count;
    pthread_cond_broadcast(&driver.changed);
}

static bool can_go_on(const gpuhal_plugin_queue *queue)
{
    return queue->flushed > 0 && (queue->first->kind != WAIT || queue->first->recorded->done);
}

static gpuhal_plugin_queue *choose_queue(void)
{
    uint32_t count = 0;
    gpuhal_plugin_queue *chosen = NULL;
    for (gpuhal_plugin_queue *queue = driver.queues; queue; queue = queue->next) {
        if (can_go_on(queue) && driver_chance(++count) == 0) {
            chosen = queue;
        }
    }
    return chosen;
}

/* Releases the mutex during the notification of the core. */
static void end_recording_unlocks(recording *one)
{
    one->done = true;
    if (one->notify) {
        pthread_mutex_unlock(&driver.mutex);
        one->notify(one->user, GPUHAL_OK);
        pthread_mutex_lock(&driver.mutex);
    }
    put_back(one);
}

static void do_first_unlocks(gpuhal_plugin_queue *queue)
{
    command *one = queue->first;
    gpuhal_status status = GPUHAL_OK;
    if (one->kind == MOVE) {
        status = driver.ops.copy(one->device, NULL, &one->to, one->to_offset, &one->from, one->from_offset, one->bytes);
    } else if (one->kind == FILL) {
        status = driver.ops.fill(one->device, NULL, &one->to, one->to_offset, one->bytes, one->pattern,
                                 one->pattern_bytes);
    }
    demand(status == GPUHAL_OK, "the core gave work that breaks a rule of plugin.h");
    queue->first = one->next;
    queue->end = queue->first ? queue->end : &queue->first;
    queue->count--;
    queue->flushed--;
    if (one->kind == RECORD) {
        end_recording_unlocks(one->recorded); /* the queue may be destroyed in the meantime */
    } else if (one->kind == WAIT) {
        put_back(one->recorded);
    }
    free(one);
    pthread_cond_broadcast(&driver.changed);
}

static void *run_driver(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&driver.mutex);
    while (!driver.ends) {
        gpuhal_plugin_queue *queue = choose_queue();
        if (queue) {
            do_first_unlocks(queue);
        } else {
            pthread_cond_wait(&driver.changed, &driver.mutex);
        }
        if (driver_chance(4) == 0) { /* lets the application's threads run ahead */
            pthread_mutex_unlock(&driver.mutex);
            sched_yield();
            pthread_mutex_lock(&driver.mutex);
        }
    }
    pthread_mutex_unlock(&driver.mutex);
    return NULL;
}

/* ---- slots */

static gpuhal_status driver_queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                         gpuhal_plugin_queue **out_queue)
{
    (void)device, (void)desc;
    gpuhal_plugin_queue *queue = calloc(1, sizeof *queue);
    demand(queue != NULL, "memory");
    queue->end = &queue->first;
    pthread_mutex_lock(&driver.mutex);
    queue->next = driver.queues;
    driver.queues = queue;
    pthread_mutex_unlock(&driver.mutex);
    *out_queue = queue;
    return GPUHAL_OK;
}

static void driver_queue_destroy(gpuhal_plugin_queue *queue)
{
    pthread_mutex_lock(&driver.mutex);
    demand(queue->count == 0, "a queue was destroyed before its work had ended");
    demand(queue->events == 0, "an event outlives its queue");
    gpuhal_plugin_queue **link = &driver.queues;
    while (*link != queue) {
        link = &(*link)->next;
    }
    *link = queue->next;
    pthread_mutex_unlock(&driver.mutex);
    free(queue);
}

static gpuhal_status driver_queue_flush(gpuhal_plugin_queue *queue)
{
    pthread_mutex_lock(&driver.mutex);
    flush_queue(queue);
    pthread_mutex_unlock(&driver.mutex);
    return GPUHAL_OK;
}

static gpuhal_status driver_event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                         gpuhal_plugin_event **out_event)
{
    (void)device, (void)desc;
    *out_event = calloc(1, sizeof **out_event);
    return *out_event ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

/* Call with the mutex held. */
static void forget_newest(gpuhal_plugin_event *event)
{
    if (event->queue) {
        event->queue->events--;
    }
    put_back(event->newest);
}

static void driver_event_destroy(gpuhal_plugin_event *event)
{
    pthread_mutex_lock(&driver.mutex);
    forget_newest(event);
    pthread_mutex_unlock(&driver.mutex);
    free(event);
}

static gpuhal_status driver_event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    recording *fresh = calloc(1, sizeof *fresh);
    demand(fresh != NULL, "memory");
    fresh->references = 2;
    pthread_mutex_lock(&driver.mutex);
    const gpuhal_status status = append(queue, &(command){.kind = RECORD, .recorded = fresh});
    if (status == GPUHAL_OK) {
        forget_newest(event);
        event->newest = fresh;
        event->queue = queue;
        queue->events++;
        flush_queue(queue);
    } else {
        free(fresh);
    }
    pthread_mutex_unlock(&driver.mutex);
    return status;
}

static gpuhal_status driver_event_query(gpuhal_plugin_event *event)
{
    pthread_mutex_lock(&driver.mutex);
    const bool done = event->newest->done;
    pthread_mutex_unlock(&driver.mutex);
    return done ? GPUHAL_OK : GPUHAL_NOT_READY;
}

static gpuhal_status driver_event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t ns = (uint64_t)until.tv_nsec + (timeout_ns < 1000000000u ? timeout_ns : 1000000000u);
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&driver.mutex);
    recording *awaited = event->newest;
    awaited->references++;
    int ended = 0;
    while (!awaited->done && ended == 0) {
        ended = pthread_cond_timedwait(&driver.changed, &driver.mutex, &until);
    }
    const bool done = awaited->done;
    put_back(awaited);
    pthread_mutex_unlock(&driver.mutex);
    return done ? GPUHAL_OK : GPUHAL_NOT_READY;
}

static gpuhal_status driver_event_notify(gpuhal_plugin_event *event, void (*notify)(void *user, gpuhal_status status),
                                         void *user)
{
    pthread_mutex_lock(&driver.mutex);
    recording *newest = event->newest;
    const bool done = newest->done;
    demand(done || !newest->notify, "one recording has two callbacks");
    if (!done) {
        newest->notify = notify;
        newest->user = user;
    }
    pthread_mutex_unlock(&driver.mutex);
    if (done) {
        notify(user, GPUHAL_OK);
    }
    return GPUHAL_OK;
}

static gpuhal_status driver_queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    pthread_mutex_lock(&driver.mutex);
    gpuhal_status status = driver_chance(8) == 0 ? GPUHAL_ERROR_NOT_SUPPORTED : GPUHAL_OK;
    status = status ? status : append(queue, &(command){.kind = WAIT, .recorded = event->newest});
    if (status == GPUHAL_OK) {
        event->newest->references++;
    }
    pthread_mutex_unlock(&driver.mutex);
    return status;
}

/* The queue is not NULL: without a queue, the callers run the work immediately. */
static gpuhal_status enqueue(gpuhal_plugin_queue *queue, const command *work)
{
    pthread_mutex_lock(&driver.mutex);
    const gpuhal_status status = append(queue, work);
    pthread_mutex_unlock(&driver.mutex);
    return status;
}

static gpuhal_status driver_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    const command work = {.kind = MOVE, .device = device, .to = *to, .from = *from, .to_offset = to_offset,
                          .from_offset = from_offset, .bytes = bytes};
    return queue ? enqueue(queue, &work)
                 : driver.ops.copy(device, NULL, to, to_offset, from, from_offset, bytes);
}

static gpuhal_status driver_fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                                 uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    const command work = {.kind = FILL, .device = device, .to = *memory, .to_offset = offset, .bytes = bytes,
                          .pattern = pattern, .pattern_bytes = pattern_bytes};
    return queue ? enqueue(queue, &work)
                 : driver.ops.fill(device, NULL, memory, offset, bytes, pattern, pattern_bytes);
}

static gpuhal_status driver_peer_enable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    (void)device, (void)other;
    return GPUHAL_OK;
}

static void driver_peer_disable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    (void)device, (void)other;
}

static gpuhal_status driver_peer_copy(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device,
                                      const gpuhal_memory *to, uint64_t to_offset, gpuhal_plugin_device *from_device,
                                      const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    (void)from_device;
    return driver_copy(to_device, queue, to, to_offset, from, from_offset, bytes);
}

static const gpuhal_peer_ops driver_peers = {
    .size = sizeof driver_peers,
    .version = GPUHAL_PEERS_VERSION,
    .peer_enable = driver_peer_enable,
    .peer_disable = driver_peer_disable,
    .peer_copy = driver_peer_copy,
};

static gpuhal_status describe_driver(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                     gpuhal_ops *out_ops)
{
    const gpuhal_status status = driver.mock->describe(host, instance, index, out_ops);
    driver.ops = *out_ops;
    out_ops->copy = driver_copy;
    out_ops->fill = driver_fill;
    out_ops->queues = &driver.queue_slots;
    out_ops->peers = driver.peers ? &driver_peers : NULL;
    return status;
}

static const gpuhal_plugin *query_driver(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin plugin;
    driver.mock = gpuhal_mock_query(host_abi, host);
    plugin = *driver.mock;
    plugin.describe = describe_driver;
    driver.queue_slots = (gpuhal_queue_ops){
        .size = sizeof driver.queue_slots,
        .version = GPUHAL_QUEUES_VERSION,
        .queue_create = driver_queue_create,
        .queue_destroy = driver_queue_destroy,
        .queue_flush = driver_queue_flush,
        .event_create = driver_event_create,
        .event_destroy = driver_event_destroy,
        .event_record = driver_event_record,
        .event_query = driver_event_query,
        .event_block = driver.blocks ? driver_event_block : NULL,
        .event_notify = driver.notifies ? driver_event_notify : NULL,
        .queue_wait = driver.waits ? driver_queue_wait : NULL,
    };
    plugin.flags |= driver.blocks ? GPUHAL_PLUGIN_HONORS_TIMEOUTS : 0;
    return &plugin;
}

/* Two devices whose memory the host cannot access. */
static inline gpuhal *open_driver(void)
{
    static gpuhal_builtin_fn *const builtins[] = {query_driver, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .builtins = builtins};
    gpuhal *gpu = NULL;
    gpuhal_mock.count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_mock.devices[i].hidden = gpuhal_mock.devices[i].no_read_write = gpuhal_mock.devices[i].no_rect = 1;
    }
    driver.ends = false;
    assert_int_equal(pthread_create(&driver.thread, NULL, run_driver, NULL), 0);
    assert_ok(gpuhal_open(&config, &gpu));
    return gpu;
}

static inline void close_driver(gpuhal *gpu)
{
    gpuhal_close(gpu);
    pthread_mutex_lock(&driver.mutex);
    driver.ends = true;
    pthread_cond_broadcast(&driver.changed);
    pthread_mutex_unlock(&driver.mutex);
    pthread_join(driver.thread, NULL);
    assert_null(driver.queues);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(gpuhal_mock.devices[i].allocations, 0);
        assert_int_equal(gpuhal_mock.devices[i].openings, 0);
    }
}

#endif
