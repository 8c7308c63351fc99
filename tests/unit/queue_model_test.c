/* Queues compared with a model. Random programs must have the same effect as their operations one after the other.
 *
 * Three threads share two queues, and each has a third queue and its own buffers. Before an operation in one queue uses
 * a buffer that another queue has used, an event orders the two queues. So a buffer's bytes must equal the result of
 * the same operations on host memory, in call order, regardless of the interleaving of queues and threads.
 *
 * The driver (driver_support.h) executes its queues in an order that depends on a seed. The program's number selects
 * the optional parts that the driver has. GPUHAL_TEST_QUEUE_PROGRAM selects a single program, and with
 * GPUHAL_TEST_QUEUE_EVERY=5 only every fifth program runs. */
#include "driver_support.h"

#include <inttypes.h>

enum {
    PROGRAMS = 64,
    STEPS = 150,
    THREADS = 3,
    QUEUES = 3,
    SHARED = 2,
    BUFFERS = 5,
    BYTES = 200,
    RESULTS = 20,
    EVENTS = 4
};
static const uint64_t patience_ns = UINT64_C(60) * 1000000000u;

typedef enum { SENT, READ, CALLED, COMPLETED } result_kind;

/* Host memory that a queue's work reads (SENT) or writes. This thread checks the bytes after a wait, unless a function
 * in the queue or a completion callback has checked them before. */
typedef struct result {
    result_kind kind;
    bool pending;
    _Atomic bool looked;
    uint32_t queue, bytes;
    uint64_t number; /* number of the operation */
    unsigned char host[BYTES], expected[BYTES];
} result;

typedef struct model_buffer {
    gpuhal_buffer *buffer;
    uint32_t device;
    bool used[QUEUES]; /* true if a queue's work uses the buffer and no later work waits for that work */
    unsigned char bytes[BYTES];
} model_buffer;

/* An event's newest recording. It covers the queue's operations up to `number`. */
typedef struct model_event {
    gpuhal_event *event;
    uint32_t queue;
    uint64_t number; /* 0 if not recorded */
} model_event;

typedef struct program {
    gpuhal *gpu;
    gpuhal_queue *shared[SHARED];
    uint32_t number;
} program;

typedef struct thread_model {
    const program *all;
    uint64_t seed, operations;
    gpuhal_queue *queues[QUEUES]; /* the first queue is on device 0, the second on device 1 */
    uint32_t own_device;          /* device of the third queue */
    model_buffer buffers[BUFFERS];
    model_event events[EVENTS];
    result results[RESULTS];
    pthread_t thread;
} thread_model;

static uint32_t chance(thread_model *m, uint32_t end)
{
    return (uint32_t)(next_word(&m->seed) % end);
}

static void expect(const thread_model *m, bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "program %" PRIu32 ", operation %" PRIu64 ": %s: %s\n", m->all->number, m->operations, what,
                gpuhal_last_error()->sentence);
        abort();
    }
}

static void expect_ok(const thread_model *m, gpuhal_status status, const char *what)
{
    expect(m, status == GPUHAL_OK, what);
}

/* ---- results */

static void look(result *one)
{
    demand(memcmp(one->host, one->expected, one->bytes) == 0, "a read brought other bytes than the model has");
    one->looked = true;
}

static gpuhal_status look_in_queue(void *user)
{
    look(user);
    return GPUHAL_OK;
}

static void look_when_completed(void *user, gpuhal_status status)
{
    demand(status == GPUHAL_OK, "a recording failed");
    look(user);
}

/* Called when all operations of the queue up to `number` have ended, so sent bytes may be overwritten. */
static void settle(thread_model *m, uint32_t queue, uint64_t number)
{
    for (uint32_t i = 0; i < RESULTS; i++) {
        result *one = &m->results[i];
        if (!one->pending || one->queue != queue || one->number > number) {
            continue;
        }
        for (uint32_t ms = 0; one->kind == COMPLETED && !one->looked && ms < 60000; ms++) {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* callbacks run on a separate thread */
        }
        expect(m, one->kind < CALLED || one->looked, "what a queue calls was not called before its work had ended");
        if (one->kind == READ) {
            look(one);
        }
        memset(one->host, 0xee, sizeof one->host);
        one->pending = false;
    }
}

static void synchronize(thread_model *m, uint32_t queue)
{
    expect_ok(m, gpuhal_queue_synchronize(m->queues[queue], patience_ns), "synchronizing");
    settle(m, queue, m->operations);
}

static result *take_result(thread_model *m, result_kind kind, uint32_t queue, uint32_t bytes)
{
    for (;;) {
        for (uint32_t i = 0; i < RESULTS; i++) {
            result *one = &m->results[i];
            if (!one->pending) {
                one->kind = kind;
                one->pending = true;
                one->looked = false;
                one->queue = queue;
                one->bytes = bytes;
                one->number = m->operations;
                return one;
            }
        }
        for (uint32_t q = 0; q < QUEUES; q++) {
            synchronize(m, q);
        }
    }
}

/* ---- order */

static void record(thread_model *m, uint32_t which, uint32_t queue)
{
    model_event *event = &m->events[which];
    expect_ok(m, gpuhal_event_record(event->event, m->queues[queue]), "recording");
    event->queue = queue;
    event->number = m->operations;
}

/* Must be called before an operation of the queue uses the buffer. */
static void order(thread_model *m, model_buffer *b, uint32_t queue)
{
    for (uint32_t other = 0; other < QUEUES; other++) {
        if (other != queue && b->used[other]) {
            const uint32_t event = chance(m, EVENTS);
            record(m, event, other);
            expect_ok(m, gpuhal_queue_wait(m->queues[queue], m->events[event].event), "ordering two queues");
        }
        b->used[other] = other == queue;
    }
}

/* ---- operations */

static void create_buffer(thread_model *m, model_buffer *b)
{
    static const char *const selectors[] = {"mock:0", "mock:1"};
    gpuhal_device *device = NULL;
    b->device = chance(m, 2);
    expect_ok(m, gpuhal_select(m->all->gpu, selectors[b->device], 0, &device, NULL), "selecting");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    expect_ok(m, gpuhal_buffer_create(device, &desc, &b->buffer), "allocating");
    memset(b->used, 0, sizeof b->used);
    memset(b->bytes, (int)chance(m, 256), BYTES);
    expect_ok(m, gpuhal_fill(NULL, b->buffer, 0, BYTES, b->bytes[0], 1), "filling");
}

static void create_own_queue(thread_model *m)
{
    const model_buffer *b = &m->buffers[chance(m, BUFFERS)];
    m->own_device = b->device;
    expect_ok(m, gpuhal_queue_create(gpuhal_buffer_device(b->buffer), NULL, &m->queues[SHARED]), "making a queue");
}

static uint32_t any_queue(thread_model *m, const model_buffer *b)
{
    return m->own_device == b->device && chance(m, 2) ? SHARED : b->device;
}

typedef struct piece {
    uint32_t offset, bytes;
} piece;

static piece any_piece(thread_model *m)
{
    const uint32_t bytes = 1 + chance(m, chance(m, 2) ? BYTES : 16);
    return (piece){.offset = chance(m, BYTES - bytes + 1), .bytes = bytes};
}

static void write_piece(thread_model *m, model_buffer *b, uint32_t queue)
{
    const piece at = any_piece(m);
    result *one = take_result(m, SENT, queue, at.bytes);
    fill_randomly(one->host, at.bytes, next_word(&m->seed));
    memcpy(b->bytes + at.offset, one->host, at.bytes);
    order(m, b, queue);
    expect_ok(m, gpuhal_write(m->queues[queue], b->buffer, at.offset, one->host, at.bytes), "writing");
}

static void read_piece(thread_model *m, model_buffer *b, uint32_t queue, result_kind kind)
{
    const piece at = any_piece(m);
    result *one = take_result(m, kind, queue, at.bytes);
    memcpy(one->expected, b->bytes + at.offset, at.bytes);
    order(m, b, queue);
    expect_ok(m, gpuhal_read(m->queues[queue], one->host, b->buffer, at.offset, at.bytes), "reading");
    if (kind == CALLED) {
        expect_ok(m, gpuhal_queue_call(m->queues[queue], look_in_queue, one), "calling");
    } else if (kind == COMPLETED) {
        const uint32_t event = chance(m, EVENTS);
        record(m, event, queue);
        expect_ok(m, gpuhal_event_on_completion(m->events[event].event, look_when_completed, one), "a callback");
    }
}

static void fill_piece(thread_model *m, model_buffer *b, uint32_t queue)
{
    const piece at = any_piece(m);
    const uint8_t value = (uint8_t)chance(m, 256);
    memset(b->bytes + at.offset, value, at.bytes);
    order(m, b, queue);
    expect_ok(m, gpuhal_fill(m->queues[queue], b->buffer, at.offset, at.bytes, value, 1), "filling");
}

static void copy_piece(thread_model *m, model_buffer *to, model_buffer *from)
{
    const piece at = any_piece(m);
    const uint32_t queue = any_queue(m, chance(m, 2) ? to : from);
    const uint32_t from_offset = chance(m, BYTES - at.bytes + 1);
    if (to != from) {
        memcpy(to->bytes + at.offset, from->bytes + from_offset, at.bytes);
        order(m, from, queue);
        order(m, to, queue);
        expect_ok(m, gpuhal_copy(m->queues[queue], to->buffer, at.offset, from->buffer, from_offset, at.bytes),
                  "copying");
    }
}

/* Submits a wait for an event of the host, submits work, and signals the event. No thread waits. */
static void wait_for_host(thread_model *m, model_buffer *b, uint32_t queue)
{
    gpuhal_event *event = NULL;
    expect_ok(m, gpuhal_event_create(m->all->gpu, GPUHAL_EVENT_HOST, &event), "an event of the host");
    expect_ok(m, gpuhal_queue_wait(m->queues[queue], event), "waiting for the host");
    fill_piece(m, b, queue);
    expect_ok(m, gpuhal_event_signal(event, GPUHAL_OK), "signalling");
    gpuhal_event_destroy(event);
}

static void wait_for_event(thread_model *m, const model_event *event)
{
    const uint32_t queue = event->queue;
    const uint64_t number = event->number;
    gpuhal_status status = GPUHAL_NOT_READY;
    if (number > 0) {
        status = chance(m, 2) ? gpuhal_event_poll(event->event) : gpuhal_event_wait(event->event, patience_ns);
        expect(m, status == GPUHAL_OK || status == GPUHAL_NOT_READY, "waiting for an event");
    }
    if (status == GPUHAL_OK) {
        settle(m, queue, number);
    }
}

static void replace_event(thread_model *m, model_event *event)
{
    gpuhal_event_destroy(event->event);
    event->number = 0;
    expect_ok(m, gpuhal_event_create(m->all->gpu, 0, &event->event), "an event");
}

/* Replaces a buffer whose work may still run. */
static void replace_buffer(thread_model *m, model_buffer *b)
{
    gpuhal_buffer_release(b->buffer);
    create_buffer(m, b);
}

/* Replaces a queue that may have unfinished work. All work of the new queue is ordered after the old queue's work. */
static void replace_own_queue(thread_model *m)
{
    gpuhal_queue *old = m->queues[SHARED];
    create_own_queue(m);
    const uint32_t event = chance(m, EVENTS);
    expect_ok(m, gpuhal_event_record(m->events[event].event, old), "recording");
    m->events[event].queue = SHARED;
    m->events[event].number = m->operations;
    expect_ok(m, gpuhal_queue_wait(m->queues[SHARED], m->events[event].event), "ordering two queues");
    gpuhal_queue_destroy(old);
}

static void step(thread_model *m)
{
    model_buffer *b = &m->buffers[chance(m, BUFFERS)];
    const uint32_t queue = any_queue(m, b), what = chance(m, 100);
    m->operations++;
    if (what < 18) {
        write_piece(m, b, queue);
    } else if (what < 34) {
        read_piece(m, b, queue, READ);
    } else if (what < 44) {
        read_piece(m, b, queue, CALLED);
    } else if (what < 54) {
        read_piece(m, b, queue, COMPLETED);
    } else if (what < 74) {
        copy_piece(m, b, &m->buffers[chance(m, BUFFERS)]);
    } else if (what < 82) {
        fill_piece(m, b, queue);
    } else if (what < 85) {
        wait_for_host(m, b, queue);
    } else if (what < 90) {
        wait_for_event(m, &m->events[chance(m, EVENTS)]);
    } else if (what < 92) {
        replace_event(m, &m->events[chance(m, EVENTS)]);
    } else if (what < 94) {
        replace_buffer(m, b);
    } else if (what < 96) {
        replace_own_queue(m);
    } else if (what < 98) {
        expect_ok(m, gpuhal_queue_flush(m->queues[queue]), "flushing");
    } else {
        synchronize(m, queue);
    }
}

/* ---- programs */

static void begin(thread_model *m)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        create_buffer(m, &m->buffers[i]);
    }
    for (uint32_t i = 0; i < EVENTS; i++) {
        expect_ok(m, gpuhal_event_create(m->all->gpu, 0, &m->events[i].event), "an event");
    }
    memcpy(m->queues, m->all->shared, sizeof m->all->shared);
    create_own_queue(m);
}

static void end(thread_model *m)
{
    for (uint32_t i = 0; i < QUEUES; i++) {
        synchronize(m, i);
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        unsigned char got[BYTES];
        expect_ok(m, gpuhal_read(NULL, got, m->buffers[i].buffer, 0, BYTES), "reading");
        expect(m, memcmp(got, m->buffers[i].bytes, BYTES) == 0, "a buffer has other bytes than the model at the end");
        gpuhal_buffer_release(m->buffers[i].buffer);
    }
    for (uint32_t i = 0; i < EVENTS; i++) {
        gpuhal_event_destroy(m->events[i].event);
    }
    gpuhal_queue_destroy(m->queues[SHARED]);
}

static void *run_thread(void *user)
{
    thread_model *m = user;
    begin(m);
    for (uint32_t i = 0; i < STEPS; i++) {
        step(m);
    }
    end(m);
    return NULL;
}

static void run_program(uint32_t number)
{
    static thread_model threads[THREADS];
    driver.waits = number & 1;
    driver.notifies = number & 2;
    driver.blocks = number & 4;
    driver.peers = number & 8;
    driver.has_ring = number & 16;
    driver.seed = number;
    program all = {.gpu = open_driver(), .number = number};
    gpuhal_device *device = NULL;
    for (uint32_t i = 0; i < SHARED; i++) {
        assert_ok(gpuhal_select(all.gpu, i ? "mock:1" : "mock:0", 0, &device, NULL));
        assert_ok(gpuhal_queue_create(device, NULL, &all.shared[i]));
    }
    memset(threads, 0, sizeof threads);
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i].all = &all;
        threads[i].seed = number * THREADS + i;
        assert_int_equal(pthread_create(&threads[i].thread, NULL, run_thread, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
    }
    for (uint32_t i = 0; i < SHARED; i++) {
        gpuhal_queue_destroy(all.shared[i]);
    }
    close_driver(all.gpu);
}

TEST(random_programs_of_three_threads_have_the_effect_of_their_operations_in_order)
{
    const char *chosen = getenv("GPUHAL_TEST_QUEUE_PROGRAM");
    const char *every = getenv("GPUHAL_TEST_QUEUE_EVERY");
    const uint32_t first = chosen ? (uint32_t)strtoul(chosen, NULL, 10) : 0;
    const uint32_t step = every ? (uint32_t)strtoul(every, NULL, 10) : 1;
    assert_true(step > 0);
    for (uint32_t number = first; number < (chosen ? first + 1 : PROGRAMS); number += step) {
        run_program(number);
    }
}

#include "test_main.h"
