/* Waits with a plugin that returns unexpected statuses or ignores timeouts. The plugin is the engine of
 * engine_support.h. */
#include "support/import_host.h"
#include "engine_support.h"

#include "os/os.h"
#include "queue/queue.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>

enum { PIECE = 4096 };
static const uint64_t second_ns = 1000000000;

typedef struct fixture {
    gpuhal *gpu;
    gpuhal_queue *queue;
    gpuhal_event *event;
    gpuhal_buffer *to, *from;
} fixture;

static fixture open_fixture(bool honors_timeouts)
{
    unsigned char pattern[PIECE];
    engine.honors_timeouts = honors_timeouts;
    fixture d = {.gpu = open_engine()};
    memset(pattern, 0x3c, PIECE);
    d.to = gpuhal_mock_buffer(d.gpu, 0, PIECE);
    d.from = gpuhal_mock_buffer(d.gpu, 0, PIECE);
    assert_int_equal(gpuhal_write(NULL, d.from, 0, pattern, PIECE), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_create(gpuhal_buffer_device(d.to), NULL, &d.queue), GPUHAL_OK);
    assert_int_equal(gpuhal_event_create(d.gpu, 0, &d.event), GPUHAL_OK);
    return d;
}

static void close_fixture(fixture *d)
{
    gpuhal_event_destroy(d->event);
    gpuhal_queue_destroy(d->queue);
    gpuhal_buffer_release(d->to);
    gpuhal_buffer_release(d->from);
    close_engine(d->gpu);
}

static void expect_copied(const fixture *d)
{
    unsigned char got[PIECE] = {0};
    assert_int_equal(gpuhal_read(NULL, got, d->to, 0, PIECE), GPUHAL_OK);
    for (int i = 0; i < PIECE; i++) {
        assert_int_equal(got[i], 0x3c);
    }
}

static void copy_and_record(const fixture *d)
{
    assert_int_equal(gpuhal_copy(d->queue, d->to, 0, d->from, 0, PIECE), GPUHAL_OK);
    assert_int_equal(gpuhal_event_record(d->event, d->queue), GPUHAL_OK);
}

TEST(ok_of_event_block_counts_only_once_event_query_confirms_it)
{
    for (int honors = 0; honors < 2; honors++) {
        fixture d = open_fixture(honors);
        engine.block_lies = true;
        copy_and_record(&d);
        assert_int_equal(gpuhal_event_wait(d.event, 10 * second_ns), GPUHAL_OK);
        expect_copied(&d);
        engine.block_lies = false;
        close_fixture(&d);
    }
}

TEST(a_wait_ends_in_its_time_with_either_status_of_event_block)
{
    const gpuhal_status says[] = {GPUHAL_NOT_READY, GPUHAL_ERROR_TIMEOUT};
    for (int i = 0; i < 4; i++) {
        fixture d = open_fixture(i & 1);
        engine.never_done = true;
        engine.block_says = says[i >> 1];
        copy_and_record(&d);
        uint64_t began = gpuhal_os_monotonic_ns();
        assert_int_equal(gpuhal_event_wait(d.event, second_ns / 4), GPUHAL_ERROR_TIMEOUT);
        assert_true(gpuhal_os_monotonic_ns() - began < 5 * second_ns);
        assert_int_equal(gpuhal_event_poll(d.event), GPUHAL_NOT_READY);
        engine.never_done = false;
        engine.block_says = GPUHAL_OK;
        assert_int_equal(gpuhal_event_wait(d.event, 10 * second_ns), GPUHAL_OK);
        expect_copied(&d);
        close_fixture(&d);
    }
}

TEST(work_that_a_plugin_is_not_ready_for_is_done_later_and_in_order)
{
    for (int honors = 0; honors < 2; honors++) {
        fixture d = open_fixture(honors);
        engine.busy = 5;
        copy_and_record(&d);
        assert_int_equal(gpuhal_event_wait(d.event, 10 * second_ns), GPUHAL_OK);
        assert_int_equal(engine.busy, 0);
        expect_copied(&d);
        assert_int_equal(gpuhal_copy(d.queue, d.from, 0, d.to, 0, PIECE), GPUHAL_OK);
        engine.busy = 5;
        assert_int_equal(gpuhal_queue_synchronize(d.queue, 10 * second_ns), GPUHAL_OK);
        assert_int_equal(engine.busy, 0);
        close_fixture(&d);
    }
}

/* A plugin is also busy while an engine captures the vendor's queue into a graph. */
TEST(a_queue_whose_thread_finds_the_plugin_busy_goes_on_later)
{
    fixture d = open_fixture(false);
    assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_OK);
    engine.says_busy = true;
    engine.busy = 5;
    assert_int_equal(gpuhal_queue_synchronize(d.queue, 10 * second_ns), GPUHAL_OK);
    assert_int_equal(engine.busy, 0);
    engine.says_busy = false;
    expect_copied(&d);
    close_fixture(&d);
}

/* Drivers batch commands until a flush. The recording of an event flushes the queue. */
TEST(a_full_ring_of_unflushed_work_is_flushed_while_more_is_deferred)
{
    fixture d = open_fixture(false);
    gpuhal_event *host = NULL;
    engine.ring = true;
    assert_int_equal(gpuhal_event_create(d.gpu, GPUHAL_EVENT_HOST, &host), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_wait(d.queue, host), GPUHAL_OK);
    for (int i = 0; i < 5 * PENDING; i++) {
        assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_OK);
    }
    assert_int_equal(gpuhal_event_signal(host, GPUHAL_OK), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_synchronize(d.queue, 10 * second_ns), GPUHAL_OK);
    engine.ring = false;
    expect_copied(&d);
    gpuhal_event_destroy(host);
    close_fixture(&d);
}

TEST(a_wait_keeps_its_time_while_a_plugin_is_not_ready_to_record)
{
    fixture d = open_fixture(true);
    assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_OK);
    engine.busy = 1000000;
    uint64_t began = gpuhal_os_monotonic_ns();
    assert_int_equal(gpuhal_queue_synchronize(d.queue, second_ns / 10), GPUHAL_ERROR_TIMEOUT);
    assert_true(gpuhal_os_monotonic_ns() - began < 5 * second_ns);
    engine.busy = 0;
    assert_int_equal(gpuhal_queue_synchronize(d.queue, 10 * second_ns), GPUHAL_OK);
    expect_copied(&d);
    close_fixture(&d);
}

TEST(a_reset_that_the_plugin_refuses_returns_why_and_a_later_one_succeeds)
{
    fixture d = open_fixture(false);
    engine.fail_at[COPY] = engine.calls[COPY] + 1;
    assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_ERROR_DRIVER);
    engine.failure = GPUHAL_ERROR_OUT_OF_MEMORY;
    engine.fail_at[QUEUE] = engine.calls[QUEUE] + 1;
    assert_int_equal(gpuhal_queue_reset(d.queue, 10 * second_ns), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_queue_reset(d.queue, 10 * second_ns), GPUHAL_OK);
    copy_and_record(&d);
    assert_int_equal(gpuhal_event_wait(d.event, 10 * second_ns), GPUHAL_OK);
    expect_copied(&d);
    engine.failure = GPUHAL_ERROR_DRIVER;
    close_fixture(&d);
}

/* Work that was submitted before the failure is still running, and nothing shows its end. */
TEST(a_reset_waits_while_the_plugin_is_busy_and_fails_without_an_event)
{
    fixture d = open_fixture(false);
    assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_OK);
    engine.fail_at[COPY] = engine.calls[COPY] + 1;
    assert_int_equal(gpuhal_copy(d.queue, d.from, 0, d.to, 0, PIECE), GPUHAL_ERROR_DRIVER);
    engine.failure = GPUHAL_ERROR_OUT_OF_MEMORY;
    engine.fail_at[EVENT] = engine.calls[EVENT] + 1;
    assert_int_equal(gpuhal_queue_reset(d.queue, 10 * second_ns), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_ERROR_DRIVER);
    engine.says_busy = true;
    engine.busy = 1000000;
    assert_int_equal(gpuhal_queue_reset(d.queue, second_ns / 10), GPUHAL_ERROR_TIMEOUT);
    engine.busy = 0;
    assert_int_equal(gpuhal_queue_reset(d.queue, 10 * second_ns), GPUHAL_OK);
    expect_copied(&d);
    engine.says_busy = false;
    engine.failure = GPUHAL_ERROR_DRIVER;
    close_fixture(&d);
}

typedef struct waiter {
    gpuhal_event *event;
    _Atomic bool ended;
} waiter;

static void *wait_for_event(void *user)
{
    waiter *own = user;
    assert_int_equal(gpuhal_event_wait(own->event, UINT64_MAX), GPUHAL_OK);
    own->ended = true;
    return NULL;
}

static bool has_waiter(gpuhal_queue *queue)
{
    gpuhal_queue_lock(queue);
    const bool has = queue->waiting[GPUHAL_WAITS_TIMEPOINT] > 0;
    gpuhal_mutex_unlock(&queue->mutex);
    return has;
}

TEST(a_wait_ends_when_another_thread_polls_the_end_before_the_plugin_calls_back)
{
    engine.notifies = true;
    fixture d = open_fixture(false);
    waiter own = {.event = d.event};
    pthread_t thread;
    assert_int_equal(gpuhal_event_record(d.event, d.queue), GPUHAL_OK); /* there is no work to retire */
    assert_int_equal(pthread_create(&thread, NULL, wait_for_event, &own), 0);
    while (!has_waiter(d.queue)) {
        gpuhal_os_sleep(1000000);
    }
    while (gpuhal_event_poll(d.event) != GPUHAL_OK) { /* the engine's work is done after three queries */
    }
    for (int i = 0; i < 20000 && !own.ended; i++) {
        gpuhal_os_sleep(1000000);
    }
    assert_true(own.ended);
    engine.notify(engine.notify_user, GPUHAL_OK);
    pthread_join(thread, NULL);
    engine.notifies = false;
    close_fixture(&d);
}

/* ---- memory of queued work */

TEST(out_of_memory_says_how_much_comes_free_when_queued_work_ends)
{
    fixture d = open_fixture(true);
    gpuhal_device *device = gpuhal_buffer_device(d.to);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 8 * PIECE};
    gpuhal_buffer *held = NULL, *more = NULL;
    assert_int_equal(gpuhal_device_limit_memory(device, 12 * PIECE), GPUHAL_OK);
    engine.never_done = true;
    assert_int_equal(gpuhal_buffer_create(device, &desc, &held), GPUHAL_OK);
    assert_int_equal(gpuhal_copy(d.queue, held, 0, d.from, 0, PIECE), GPUHAL_OK);
    assert_int_equal(gpuhal_event_record(d.event, d.queue), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_create(device, &desc, &more), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_pending, 0);
    gpuhal_buffer_release(held);
    assert_int_equal(gpuhal_buffer_create(device, &desc, &more), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_pending, 8 * PIECE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "32768 bytes are freed when queued work ends"));
    engine.never_done = false;
    for (int i = 0; i < 3; i++) { /* the engine's work is done after three queries */
        (void)gpuhal_event_poll(d.event);
    }
    assert_int_equal(gpuhal_buffer_create(device, &desc, &more), GPUHAL_OK);
    gpuhal_buffer_release(more);
    close_fixture(&d);
}

typedef struct owner {
    gpuhal_queue *queue;
    _Atomic int calls;
    _Atomic int32_t status;
} owner;

static void released(void *user, void *memory)
{
    owner *o = user;
    (void)memory;
    o->status = gpuhal_queue_synchronize(o->queue, 10 * second_ns);
    o->calls++;
}

/* If the waiting thread or the queue's thread ran the callback, the callback would wait for itself. */
TEST(the_owner_of_imported_memory_may_wait_for_the_queue_that_let_go_of_it)
{
    for (int honors = 0; honors < 2; honors++) {
        gpuhal_mock.devices[0].import_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER;
        fixture d = open_fixture(honors);
        void *memory = aligned_alloc(4096, PIECE);
        memset(memory, 0, PIECE);
        gpuhal_buffer *imported = NULL;
        owner o = {.queue = d.queue};
        assert_int_equal(import_host(gpuhal_buffer_device(d.to), memory, PIECE, released, &o, &imported), GPUHAL_OK);
        assert_int_equal(gpuhal_copy(d.queue, d.to, 0, imported, 0, PIECE), GPUHAL_OK);
        gpuhal_buffer_release(imported);
        assert_int_equal(o.calls, 0);
        assert_int_equal(gpuhal_queue_synchronize(d.queue, 10 * second_ns), GPUHAL_OK);
        for (int i = 0; i < 10000 && o.calls == 0; i++) {
            gpuhal_os_sleep(1000000);
        }
        assert_int_equal(o.calls, 1);
        assert_int_equal(o.status, GPUHAL_OK);
        free(memory);
        close_fixture(&d);
    }
}

/* Disables thread creation with a stack size that exceeds any address space, or enables it again. */
static void start_threads(bool possible)
{
    static pthread_attr_t usual;
    pthread_attr_t attributes;
    if (possible) {
        assert_int_equal(pthread_setattr_default_np(&usual), 0);
        return;
    }
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_getattr_default_np(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SIZE_MAX / 4), 0);
    assert_int_equal(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
}

static void expect_no_thread(gpuhal_status status)
{
    const char *sentence = gpuhal_last_error()->sentence;
    assert_int_equal(status, GPUHAL_ERROR_HOST_MEMORY);
    assert_non_null(strstr(sentence, "a thread could not be started"));
    assert_non_null(strstr(sentence, strerror(EAGAIN)));
    assert_non_null(strstr(sentence, "RLIMIT_NPROC"));
}

static gpuhal_status do_nothing(void *user)
{
    (void)user;
    return GPUHAL_OK;
}

static gpuhal_status ignore_native(void *user, const gpuhal_native *native)
{
    (void)user, (void)native;
    return GPUHAL_OK;
}

static void count_call(void *user, gpuhal_status status)
{
    (void)status;
    ++*(_Atomic int *)user;
}

static void see_change(void *user, const gpuhal_change *change)
{
    (void)change, (void)user;
}

TEST(a_completion_is_notified_although_the_plugin_refuses_to_call_back)
{
    engine.notifies = engine.refuses_to = true;
    fixture d = open_fixture(false);
    _Atomic int calls = 0;
    copy_and_record(&d);
    assert_int_equal(gpuhal_event_on_completion(d.event, count_call, &calls), GPUHAL_OK);
    for (int i = 0; i < 20000 && calls == 0; i++) {
        gpuhal_os_sleep(1000000);
    }
    assert_int_equal(calls, 1);
    expect_copied(&d);
    engine.notifies = engine.refuses_to = false;
    close_fixture(&d);
}

/* The same happens in a container with a low process limit. The object works without the thread, and starts the thread
 * as soon as possible. */
TEST(a_thread_that_cannot_be_started_is_named_with_the_reason_and_the_limit)
{
    gpuhal_mock.devices[0].import_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER;
    fixture d = open_fixture(false);
    gpuhal_device *device = gpuhal_buffer_device(d.to);
    void *memory = aligned_alloc(4096, PIECE);
    memset(memory, 0, PIECE);
    gpuhal_buffer *imported = NULL;
    owner o = {.queue = d.queue};
    _Atomic int calls = 0;
    engine.never_done = true;
    copy_and_record(&d);
    start_threads(false);
    expect_no_thread(gpuhal_on_change(d.gpu, see_change, NULL));
    expect_no_thread(gpuhal_event_on_completion(d.event, count_call, &calls));
    expect_no_thread(gpuhal_queue_call(d.queue, do_nothing, NULL));
    expect_no_thread(import_host(device, memory, PIECE, released, &o, &imported));
    engine.never_done = false;
    assert_int_equal(gpuhal_queue_synchronize(d.queue, 60 * second_ns), GPUHAL_OK);
    expect_copied(&d);
    engine.failure = GPUHAL_ERROR_DRIVER;
    engine.fail_at[COPY] = engine.calls[COPY] + 1;
    assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_ERROR_DRIVER);
    expect_no_thread(gpuhal_queue_reset(d.queue, 60 * second_ns));
    start_threads(true);
    assert_int_equal(gpuhal_queue_reset(d.queue, 60 * second_ns), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_call(d.queue, do_nothing, NULL), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_synchronize(d.queue, 60 * second_ns), GPUHAL_OK);
    assert_int_equal(calls + o.calls, 0);
    free(memory);
    close_fixture(&d);
}

static bool is_readable(gpuhal_os_handle descriptor, int timeout_ms)
{
    struct pollfd one = {.fd = (int)descriptor, .events = POLLIN};
    return poll(&one, 1, timeout_ms) == 1;
}

TEST(a_descriptor_that_no_thread_can_serve_is_refused_and_a_later_one_signals)
{
    fixture d = open_fixture(false);
    gpuhal_os_handle descriptor = -1;
    engine.never_done = true;
    copy_and_record(&d);
    start_threads(false);
    expect_no_thread(gpuhal_event_descriptor(d.event, &descriptor));
    assert_int_equal(descriptor, -1);
    start_threads(true);
    assert_ok(gpuhal_event_descriptor(d.event, &descriptor));
    assert_false(is_readable(descriptor, 0));
    engine.never_done = false;
    assert_true(is_readable(descriptor, 60000));
    gpuhal_os_handle_close(descriptor);
    close_fixture(&d);
}

TEST(a_recording_that_no_thread_can_serve_leaves_the_descriptor_as_it_was)
{
    fixture d = open_fixture(false);
    gpuhal_os_handle descriptor = -1;
    assert_ok(gpuhal_event_descriptor(d.event, &descriptor));
    assert_true(is_readable(descriptor, 0));
    engine.never_done = true;
    assert_ok(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE));
    start_threads(false);
    expect_no_thread(gpuhal_event_record(d.event, d.queue));
    assert_true(is_readable(descriptor, 0));
    assert_ok(gpuhal_event_poll(d.event));
    start_threads(true);
    assert_ok(gpuhal_event_record(d.event, d.queue));
    assert_false(is_readable(descriptor, 0));
    engine.never_done = false;
    assert_true(is_readable(descriptor, 60000));
    gpuhal_os_handle_close(descriptor);
    close_fixture(&d);
}

/* ThreadSanitizer checks that the two threads read the plugin's queue in turns. */
static void *begin_access(void *user)
{
    gpuhal_native native = {.size = sizeof native};
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(gpuhal_queue_native_begin(user, 0, &native), GPUHAL_ERROR_NOT_SUPPORTED);
        assert_int_equal(gpuhal_queue_native_call(user, ignore_native, NULL), GPUHAL_ERROR_NOT_SUPPORTED);
    }
    return NULL;
}

TEST(native_access_is_refused_beside_resets)
{
    fixture d = open_fixture(false);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, begin_access, d.queue), 0);
    for (int i = 0; i < 20; i++) {
        engine.fail_at[COPY] = engine.calls[COPY] + 1;
        assert_int_equal(gpuhal_copy(d.queue, d.to, 0, d.from, 0, PIECE), GPUHAL_ERROR_DRIVER);
        assert_ok(gpuhal_queue_reset(d.queue, 60 * second_ns));
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_fixture(&d);
}

/* A driver might hang, and no thread could detect the hang. So only the CPU is used, for example in a container at its
 * pids.max. */
TEST(the_cpu_works_and_no_driver_is_called_if_no_thread_can_be_started)
{
    unsigned char sent[PIECE], got[PIECE] = {0};
    memset(sent, 0x6b, sizeof sent);
    gpuhal_mock.count = 1;
    start_threads(false);
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "mock", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "a thread could not be started"));
    assert_int_equal(gpuhal_select(gpu, "auto", 0, &device, NULL), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "cpu:0");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = PIECE};
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_OK);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, sent, PIECE), GPUHAL_OK);
    assert_int_equal(gpuhal_read(NULL, got, buffer, 0, PIECE), GPUHAL_OK);
    assert_memory_equal(got, sent, PIECE);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    start_threads(true);
    gpu = gpuhal_mock_open(NULL, 1);
    assert_int_equal(gpuhal_select(gpu, "mock", 0, &device, NULL), GPUHAL_OK);
    gpuhal_close(gpu);
}

#include "test_main.h"
