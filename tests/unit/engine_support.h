/* tests/unit/engine_support.h: the mock with queues, events and links. Like the slowest permitted driver, the mock runs
 * work only when a thread waits for the work. A test can make the slots in the enumeration `slot` fail. */
#ifndef GPUHAL_TEST_ENGINE_SUPPORT_H
#define GPUHAL_TEST_ENGINE_SUPPORT_H

#include "transfer_support.h"

#include "base/error.h"
#include "transfer/staging.h"

#include <pthread.h>

enum { PENDING = 16 };

typedef struct work {
    gpuhal_plugin_device *device;
    gpuhal_memory to, from;
    uint64_t to_offset, from_offset, bytes;
} work;

struct gpuhal_plugin_queue {
    pthread_mutex_t mutex; /* locked while work runs; one per queue, since a forked child has no queues of the parent */
    work pending[PENDING];
    uint32_t count;
    bool stuck;
    _Atomic int64_t events; /* events last recorded in this queue */
};

/* As in many drivers, an event points to its queue. */
struct gpuhal_plugin_event {
    gpuhal_plugin_queue *queue;
    _Atomic uint32_t asked;
    uint64_t time;
};

typedef enum { QUEUE, EVENT, RECORD, BLOCK, COPY, PEER, SLOTS } slot;

static struct {
    const gpuhal_plugin *mock;
    gpuhal_ops ops;                           /* slots of the mock's device */
    gpuhal_queue_ops queue_slots;
    _Atomic int64_t queues, events, accesses; /* existing objects */
    _Atomic int64_t peer_copies;
    _Atomic int calls[SLOTS];
    int fail_at[SLOTS]; /* number of the call that fails, or 0 */
    _Atomic gpuhal_status failure;
    _Atomic bool records_nothing; /* event_record fails */
    bool peers, peers_get_stuck, peers_take_no_queue, peers_take_nothing;
    _Atomic bool never_done;  /* event_query always returns NOT_READY */
    _Atomic bool query_fails; /* the next event_query fails */
    _Atomic bool block_lies;  /* event_block returns OK although the work is not done */
    _Atomic gpuhal_status block_says; /* result of event_block after its timeout; with OK it runs the work */
    _Atomic int busy;         /* number of records and queued copies that return NOT_READY */
    _Atomic bool says_busy;   /* `busy` calls return BUSY instead of NOT_READY */
    bool honors_timeouts;
    bool notifies, refuses_to; /* event_notify exists; event_notify fails */
    void (*_Atomic notify)(void *user, gpuhal_status status);
    void *notify_user;
    bool waits;               /* queues can wait for events of other queues */
    _Atomic bool block_holds; /* the next thread in event_block blocks while this is true */
    _Atomic bool is_held;
    bool ring;                /* event_record runs the work; PENDING copies since the last record fill the ring */
} engine;

static bool fails(slot which)
{
    return ++engine.calls[which] == engine.fail_at[which];
}

static gpuhal_status failed(const char *call)
{
    return gpuhal_error_report(engine.failure, call, 77, "made to fail");
}

static gpuhal_status not_now(void)
{
    return engine.says_busy ? gpuhal_error_report(GPUHAL_ERROR_BUSY, "engineQueue", 78, "captured") : GPUHAL_NOT_READY;
}

static void perform(const work *w)
{
    assert_int_equal(engine.ops.copy(w->device, NULL, &w->to, w->to_offset, &w->from, w->from_offset, w->bytes),
                     GPUHAL_OK);
}

/* Locks, because several threads may query one event. A lost device does no work. */
static void finish(gpuhal_plugin_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    for (uint32_t i = 0; i < queue->count && engine.failure != GPUHAL_ERROR_DEVICE_LOST; i++) {
        perform(&queue->pending[i]);
    }
    queue->count = 0;
    pthread_mutex_unlock(&queue->mutex);
}

static gpuhal_status queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                  gpuhal_plugin_queue **out_queue)
{
    (void)device, (void)desc;
    if (fails(QUEUE)) {
        return failed("engineQueue");
    }
    *out_queue = calloc(1, sizeof **out_queue);
    engine.queues += *out_queue != NULL;
    if (*out_queue) {
        pthread_mutex_init(&(*out_queue)->mutex, NULL);
    }
    return *out_queue ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static void queue_destroy(gpuhal_plugin_queue *queue)
{
    assert_false(queue->stuck);
    assert_int_equal(queue->events, 0);
    finish(queue);
    engine.queues--;
    free(queue);
}

static gpuhal_status flush(gpuhal_plugin_queue *queue)
{
    (void)queue;
    return GPUHAL_OK;
}

static gpuhal_status event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                  gpuhal_plugin_event **out_event)
{
    (void)device, (void)desc;
    if (fails(EVENT)) {
        return failed("engineEvent");
    }
    *out_event = calloc(1, sizeof **out_event);
    engine.events += *out_event != NULL;
    return *out_event ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static void event_destroy(gpuhal_plugin_event *event)
{
    if (event->queue) {
        event->queue->events--;
    }
    engine.events--;
    free(event);
}

static gpuhal_status event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    if (fails(RECORD) || engine.records_nothing) {
        return failed("engineRecord");
    }
    if (engine.busy > 0) {
        engine.busy--;
        return not_now();
    }
    if (engine.ring) {
        finish(queue);
    }
    if (event->queue) {
        event->queue->events--;
    }
    static _Atomic uint64_t clock;
    queue->events++;
    event->queue = queue;
    event->asked = 0;
    event->time = ++clock;
    return GPUHAL_OK;
}

static gpuhal_status event_query(gpuhal_plugin_event *event)
{
    if (atomic_exchange(&engine.query_fails, false)) {
        return failed("engineQuery");
    }
    if (event->queue->stuck || engine.never_done || ++event->asked < 3) {
        return GPUHAL_NOT_READY;
    }
    finish(event->queue);
    return GPUHAL_OK;
}

static gpuhal_status event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    if (fails(BLOCK)) {
        return failed("engineBlock");
    }
    if (engine.block_lies) {
        return GPUHAL_OK;
    }
    if (engine.block_holds && !atomic_exchange(&engine.is_held, true)) {
        while (engine.block_holds) {
            gpuhal_os_sleep(1000000);
        }
        engine.is_held = false;
    }
    if (engine.block_says) {
        gpuhal_os_sleep(timeout_ns);
        return engine.block_says;
    }
    finish(event->queue);
    event->asked = 2; /* the next query completes it */
    return GPUHAL_OK;
}

static gpuhal_status event_notify(gpuhal_plugin_event *event, void (*notify)(void *user, gpuhal_status status),
                                  void *user)
{
    (void)event;
    if (engine.refuses_to) {
        return failed("engineNotify");
    }
    engine.notify_user = user;
    engine.notify = notify;
    return GPUHAL_OK;
}

static gpuhal_status queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    return queue->stuck || event->queue->stuck ? failed("engineWait") : GPUHAL_OK;
}

static gpuhal_status elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    assert_true(from->queue->events > 0 && to->queue->events > 0);
    *out_ns = to->time - from->time;
    return GPUHAL_OK;
}

static gpuhal_status begin(gpuhal_plugin_queue *queue, const work *w)
{
    if (!queue) {
        perform(w);
        return GPUHAL_OK;
    }
    if (engine.busy > 0) {
        engine.busy--;
        return not_now();
    }
    if (engine.ring && queue->count == PENDING) {
        return GPUHAL_NOT_READY;
    }
    assert_true(queue->count < PENDING);
    queue->pending[queue->count++] = *w;
    return GPUHAL_OK;
}

static gpuhal_status copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                          uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    if (fails(COPY)) {
        return failed("engineCopy");
    }
    return begin(queue, &(work){device, *to, *from, to_offset, from_offset, bytes});
}

static gpuhal_status peer_enable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    (void)device, (void)other;
    engine.accesses++;
    return GPUHAL_OK;
}

static void peer_disable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    (void)device, (void)other;
    engine.accesses--;
}

static gpuhal_status peer_copy(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device, const gpuhal_memory *to,
                               uint64_t to_offset, gpuhal_plugin_device *from_device, const gpuhal_memory *from,
                               uint64_t from_offset, uint64_t bytes)
{
    (void)from_device;
    if (engine.peers_take_nothing || (queue && engine.peers_take_no_queue)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (fails(PEER)) {
        return failed("enginePeer");
    }
    engine.peer_copies++;
    if (queue && engine.peers_get_stuck) {
        queue->stuck = true;
        return GPUHAL_OK;
    }
    return begin(queue, &(work){to_device, *to, *from, to_offset, from_offset, bytes});
}

static const gpuhal_peer_ops peers = {
    .size = sizeof peers,
    .version = GPUHAL_PEERS_VERSION,
    .peer_enable = peer_enable,
    .peer_disable = peer_disable,
    .peer_copy = peer_copy,
};

static gpuhal_status describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              gpuhal_ops *out_ops)
{
    gpuhal_status status = engine.mock->describe(host, instance, index, out_ops);
    engine.ops = *out_ops;
    out_ops->copy = copy;
    out_ops->queues = &engine.queue_slots;
    out_ops->peers = engine.peers ? &peers : NULL;
    return status;
}

static const gpuhal_plugin *query(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin plugin;
    engine.mock = gpuhal_mock_query(host_abi, host);
    plugin = *engine.mock;
    plugin.describe = describe;
    engine.queue_slots = (gpuhal_queue_ops){
        .size = sizeof engine.queue_slots,
        .version = GPUHAL_QUEUES_VERSION,
        .queue_create = queue_create,
        .queue_destroy = queue_destroy,
        .queue_flush = flush,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_record = event_record,
        .event_query = event_query,
        .event_block = event_block,
        .event_notify = engine.notifies ? event_notify : NULL,
        .queue_wait = engine.waits ? queue_wait : NULL,
        .elapsed = elapsed,
    };
    plugin.flags |= engine.honors_timeouts ? GPUHAL_PLUGIN_HONORS_TIMEOUTS : 0;
    return &plugin;
}

/* Opens two devices whose memory the host cannot access. Transfers need the copy slot. */
static inline gpuhal *open_engine(void)
{
    static gpuhal_builtin_fn *const builtins[] = {query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .builtins = builtins,
                                  .staging_limit_bytes = 1 << 20};
    gpuhal *gpu = NULL;
    gpuhal_mock.count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_mock.devices[i].hidden = gpuhal_mock.devices[i].no_read_write = gpuhal_mock.devices[i].no_rect = 1;
    }
    engine.failure = engine.failure ? engine.failure : GPUHAL_ERROR_DRIVER;
    if (gpuhal_open(&config, &gpu)) {
        fail_msg("gpuhal_open: %s", gpuhal_last_error()->sentence);
    }
    return gpu;
}

static void expect_engine_closed(void)
{
    assert_int_equal(engine.queues, 0);
    assert_int_equal(engine.events, 0);
    assert_int_equal(engine.accesses, 0);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(gpuhal_mock.devices[i].allocations, 0);
        assert_int_equal(gpuhal_mock.devices[i].openings, 0);
    }
    assert_int_equal(gpuhal_staging_process_bytes(), 0);
}

static inline void close_engine(gpuhal *gpu)
{
    gpuhal_close(gpu);
    expect_engine_closed();
}

#endif
