/* Tests host work in queues, on every kind of device of this machine: functions that the queue calls, events that the
 * host signals, and buffers that the queue only keeps alive. */
#include "queues.h"

#include <gpuhal/pool.h>

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { BYTES = 4096 };
static const char *const selectors[] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};

typedef struct fixture {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_queue *queue;
    gpuhal_event *event;
    gpuhal_buffer *buffer;
    unsigned char seen; /* byte that the function saw */
    _Atomic int calls;
    _Atomic gpuhal_status answer;
} fixture;

/* The device is NULL if this machine does not have it. */
static fixture open_fixture(const char *selector, gpuhal_config config)
{
    config.size = sizeof config;
    fixture d = {.gpu = open_or_fail(&config)};
    if (gpuhal_select(d.gpu, selector, 0, &d.device, NULL)) {
        d.device = NULL;
        return d;
    }
    d.queue = queue_or_fail(d.device, 0);
    d.event = event_or_fail(d.gpu, 0);
    d.buffer = buffer_or_fail(d.device, GPUHAL_MEMORY_DEVICE, BYTES);
    return d;
}

static void close_fixture(fixture *d)
{
    gpuhal_buffer_release(d->buffer);
    gpuhal_event_destroy(d->event);
    gpuhal_queue_destroy(d->queue);
    gpuhal_close(d->gpu);
}

/* Runs `play` on every kind of device from `first` on. Uses a thread for each, because the scenarios mostly wait. */
static void on_all_at_once(size_t first, void *(*play)(void *selector))
{
    enum { ALL = sizeof selectors / sizeof *selectors };
    pthread_t threads[ALL];
    for (size_t i = first; i < ALL; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, play, (void *)(uintptr_t)selectors[i]), 0);
    }
    for (size_t i = first; i < ALL; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static gpuhal_status look_and_fill(void *user)
{
    fixture *d = user;
    assert_ok(gpuhal_read(NULL, &d->seen, d->buffer, 7, 1));
    assert_ok(gpuhal_fill(NULL, d->buffer, 0, BYTES, 0x22, 1));
    d->calls++;
    return GPUHAL_OK;
}

TEST(a_function_is_called_in_the_order_of_its_queue)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        fixture d = open_fixture(selectors[i], (gpuhal_config){0});
        unsigned char got[BYTES] = {0};
        for (int round = 0; d.device && round < 50; round++) {
            assert_ok(gpuhal_fill(d.queue, d.buffer, 0, BYTES, 0x11, 1));
            assert_ok(gpuhal_queue_call(d.queue, look_and_fill, &d));
            assert_ok(gpuhal_read(d.queue, got, d.buffer, 0, BYTES));
            assert_ok(gpuhal_queue_synchronize(d.queue, PATIENCE_NS));
            assert_int_equal(d.calls, round + 1);
            assert_int_equal(d.seen, 0x11);
            assert_int_equal(got[BYTES - 1], 0x22);
        }
        close_fixture(&d);
    }
}

static gpuhal_status refuse(void *user)
{
    (void)user;
    return GPUHAL_ERROR_FILE;
}

TEST(a_function_that_returns_an_error_fails_its_queue_with_that)
{
    fixture d = open_fixture("cpu:0", (gpuhal_config){0});
    assert_ok(gpuhal_queue_call(d.queue, refuse, NULL));
    (void)gpuhal_queue_call(d.queue, look_and_fill, &d);
    assert_int_equal(gpuhal_queue_synchronize(d.queue, PATIENCE_NS), GPUHAL_ERROR_FILE);
    assert_int_equal(d.calls, 0);
    assert_ok(gpuhal_queue_reset(d.queue, PATIENCE_NS));
    assert_ok(gpuhal_queue_synchronize(d.queue, PATIENCE_NS));
    close_fixture(&d);
}

static gpuhal_status take_a_while(void *user)
{
    fixture *d = user;
    const struct timespec while_ns = {.tv_nsec = 300000000};
    d->answer = GPUHAL_OK; /* the function has begun */
    nanosleep(&while_ns, NULL);
    d->calls++;
    return GPUHAL_OK;
}

TEST(gpuhal_close_returns_after_the_functions_of_queues_that_are_destroyed)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        fixture d = open_fixture(selectors[i], (gpuhal_config){0});
        if (d.device) {
            d.answer = GPUHAL_NOT_READY;
            assert_ok(gpuhal_queue_call(d.queue, take_a_while, &d));
            while (d.answer != GPUHAL_OK) {
                sched_yield();
            }
        }
        const int expected = d.device ? 1 : 0;
        close_fixture(&d);
        assert_int_equal(d.calls, expected);
    }
}

static gpuhal_status wait_for_itself(void *user)
{
    fixture *d = user;
    gpuhal_native native = {.size = sizeof native};
    d->answer = gpuhal_queue_synchronize(d->queue, PATIENCE_NS);
    assert_int_equal(gpuhal_event_wait(d->event, PATIENCE_NS), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_queue_native_begin(d->queue, PATIENCE_NS, &native), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_queue_reset(d->queue, PATIENCE_NS), GPUHAL_ERROR_BUSY);
    return GPUHAL_OK;
}

TEST(a_function_cannot_wait_for_the_queue_that_calls_it)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        fixture d = open_fixture(selectors[i], (gpuhal_config){0});
        if (d.device) {
            gpuhal_event *before = event_or_fail(d.gpu, GPUHAL_EVENT_HOST);
            assert_ok(gpuhal_queue_wait(d.queue, before));
            assert_ok(gpuhal_queue_call(d.queue, wait_for_itself, &d));
            assert_ok(gpuhal_event_record(d.event, d.queue));
            assert_ok(gpuhal_event_signal(before, GPUHAL_OK));
            assert_ok(gpuhal_queue_synchronize(d.queue, PATIENCE_NS));
            assert_int_equal(d.answer, GPUHAL_ERROR_BUSY);
            gpuhal_event_destroy(before);
        }
        close_fixture(&d);
    }
}

static gpuhal_status wait_for_the_device(void *user)
{
    fixture *d = user;
    d->answer = gpuhal_device_synchronize(d->device, UINT64_MAX);
    return GPUHAL_OK;
}

TEST(a_function_cannot_wait_for_a_device_with_a_queue_that_waits_for_it)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        fixture d = open_fixture(selectors[i], (gpuhal_config){0});
        if (d.device) {
            gpuhal_queue *behind = queue_or_fail(d.device, 0);
            gpuhal_event *before = event_or_fail(d.gpu, GPUHAL_EVENT_HOST);
            assert_ok(gpuhal_queue_wait(d.queue, before));
            assert_ok(gpuhal_queue_call(d.queue, wait_for_the_device, &d));
            assert_ok(gpuhal_event_record(d.event, d.queue));
            assert_ok(gpuhal_queue_wait(behind, d.event));
            assert_ok(gpuhal_fill(behind, d.buffer, 0, BYTES, 1, 1));
            assert_ok(gpuhal_event_signal(before, GPUHAL_OK));
            assert_ok(gpuhal_queue_synchronize(behind, PATIENCE_NS));
            assert_int_equal(d.answer, GPUHAL_ERROR_BUSY);
            gpuhal_event_destroy(before);
            gpuhal_queue_destroy(behind);
        }
        close_fixture(&d);
    }
}

static gpuhal_status take_long(void *user)
{
    (void)user;
    pause_ms(4000);
    return GPUHAL_OK;
}

static void *outlast_hang_ns(void *selector)
{
    fixture d = open_fixture(selector, (gpuhal_config){.hang_ns = 2 * SECOND_NS});
    if (d.device) {
        gpuhal_event *host = event_or_fail(d.gpu, GPUHAL_EVENT_HOST);
        calls seen = {0};
        assert_ok(gpuhal_queue_call(d.queue, take_long, NULL));
        assert_ok(gpuhal_queue_wait(d.queue, host));
        assert_ok(gpuhal_event_record(d.event, d.queue));
        assert_ok(gpuhal_event_on_completion(d.event, count_call, &seen));
        assert_int_equal(gpuhal_event_wait(d.event, 5 * SECOND_NS), GPUHAL_ERROR_TIMEOUT);
        assert_ok(gpuhal_device_status(d.device));
        assert_ok(gpuhal_event_signal(host, GPUHAL_OK));
        assert_ok(gpuhal_event_wait(d.event, PATIENCE_NS));
        expect_called_once(&seen, GPUHAL_OK);
        gpuhal_event_destroy(host);
    }
    close_fixture(&d);
    return NULL;
}

TEST(neither_a_long_function_nor_an_event_of_the_hosts_counts_as_a_hang)
{
    on_all_at_once(0, outlast_hang_ns);
}

TEST(an_event_of_the_hosts_holds_work_back_until_it_is_signalled_once)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        fixture d = open_fixture(selectors[i], (gpuhal_config){0});
        if (d.device) {
            gpuhal_event *host = event_or_fail(d.gpu, GPUHAL_EVENT_HOST);
            gpuhal_os_handle descriptor = -1;
            calls seen = {0};
            unsigned char got = 0;
            assert_ok(gpuhal_fill(NULL, d.buffer, 0, BYTES, 1, 1));
            assert_int_equal(gpuhal_event_record(host, d.queue), GPUHAL_ERROR_INVALID_ARGUMENT);
            assert_int_equal(gpuhal_event_signal(d.event, GPUHAL_OK), GPUHAL_ERROR_INVALID_ARGUMENT);
            assert_int_equal(gpuhal_event_signal(host, GPUHAL_NOT_READY), GPUHAL_ERROR_INVALID_ARGUMENT);
            assert_ok(gpuhal_event_descriptor(host, &descriptor));
            assert_ok(gpuhal_event_on_completion(host, count_call, &seen));
            assert_ok(gpuhal_queue_wait(d.queue, host));
            assert_ok(gpuhal_fill(d.queue, d.buffer, 0, BYTES, 2, 1));
            assert_int_equal(gpuhal_queue_synchronize(d.queue, 50 * MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
            assert_int_equal(gpuhal_event_poll(host), GPUHAL_NOT_READY);
            assert_int_equal(gpuhal_event_wait(host, 10 * MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
            assert_false(is_readable(descriptor, 0));
            assert_ok(gpuhal_read(NULL, &got, d.buffer, 5, 1));
            assert_int_equal(got, 1);
            assert_ok(gpuhal_event_signal(host, GPUHAL_OK));
            assert_int_equal(gpuhal_event_signal(host, GPUHAL_OK), GPUHAL_ERROR_INVALID_ARGUMENT);
            assert_ok(gpuhal_event_wait(host, PATIENCE_NS));
            assert_true(is_readable(descriptor, 1000));
            assert_ok(gpuhal_queue_synchronize(d.queue, PATIENCE_NS));
            assert_ok(gpuhal_read(NULL, &got, d.buffer, 5, 1));
            assert_int_equal(got, 2);
            expect_called_once(&seen, GPUHAL_OK);
            close((int)descriptor);
            gpuhal_event_destroy(host);
        }
        close_fixture(&d);
    }
}

TEST(a_failed_or_destroyed_host_event_fails_the_queue_that_waits_for_it)
{
    fixture d = open_fixture("cpu:0", (gpuhal_config){0});
    for (int destroyed = 0; destroyed < 2; destroyed++) {
        gpuhal_event *host = event_or_fail(d.gpu, GPUHAL_EVENT_HOST);
        assert_ok(gpuhal_queue_wait(d.queue, host));
        if (!destroyed) {
            assert_ok(gpuhal_event_signal(host, GPUHAL_ERROR_OUT_OF_MEMORY));
            assert_int_equal(gpuhal_event_poll(host), GPUHAL_ERROR_OUT_OF_MEMORY);
        }
        gpuhal_event_destroy(host);
        assert_int_equal(gpuhal_queue_synchronize(d.queue, PATIENCE_NS),
                         destroyed ? GPUHAL_ERROR_CANCELLED : GPUHAL_ERROR_OUT_OF_MEMORY);
        assert_ok(gpuhal_queue_reset(d.queue, PATIENCE_NS));
    }
    close_fixture(&d);
}

/* A queue cannot fail with these values. The statuses among them have another meaning as the result of a wait: a caller
 * that waits again after TIMEOUT would never stop. The last two values are no statuses. */
static const gpuhal_status no_causes[] = {
    GPUHAL_NOT_READY, GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_ERROR_TIMEOUT, GPUHAL_ERROR_BUSY, 7, -99};

static gpuhal_status return_status(void *user)
{
    return *(const gpuhal_status *)user;
}

TEST(a_queue_cannot_fail_with_a_status_that_means_otherwise_for_a_wait)
{
    fixture d = open_fixture("cpu:0", (gpuhal_config){0});
    gpuhal_event *host = event_or_fail(d.gpu, GPUHAL_EVENT_HOST);
    for (size_t i = 0; i < sizeof no_causes / sizeof *no_causes; i++) {
        gpuhal_status returned = no_causes[i];
        assert_ok(gpuhal_queue_call(d.queue, return_status, &returned));
        assert_int_equal(gpuhal_queue_synchronize(d.queue, PATIENCE_NS), GPUHAL_ERROR_CANCELLED);
        assert_ok(gpuhal_queue_reset(d.queue, PATIENCE_NS));
        assert_int_equal(gpuhal_event_signal(host, no_causes[i]), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    gpuhal_event_destroy(host);
    close_fixture(&d);
}

TEST(an_event_counts_as_done_until_it_is_recorded)
{
    fixture d = open_fixture("cpu:0", (gpuhal_config){0});
    gpuhal_os_handle descriptor = -1;
    calls seen = {0};
    assert_ok(gpuhal_event_poll(d.event));
    assert_ok(gpuhal_event_wait(d.event, 0));
    assert_ok(gpuhal_queue_wait(d.queue, d.event));
    assert_ok(gpuhal_event_on_completion(d.event, count_call, &seen));
    expect_called_once(&seen, GPUHAL_OK);
    assert_ok(gpuhal_event_descriptor(d.event, &descriptor));
    assert_true(is_readable(descriptor, 1000));
    close((int)descriptor);
    close_fixture(&d);
}

/* ---- the vendor's queue */

static gpuhal_status take_native(void *user, const gpuhal_native *native)
{
    fixture *d = user;
    assert_true(native->size == sizeof *native && native->values[0] != 0);
    d->answer = gpuhal_queue_synchronize(d->queue, PATIENCE_NS);
    d->calls++;
    return GPUHAL_OK;
}

TEST(the_vendors_queue_is_handed_to_a_function_without_keeping_the_host_behind_another_device)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        fixture d = open_fixture(selectors[i], (gpuhal_config){0});
        if (d.device && i == 0) {
            assert_int_equal(gpuhal_queue_native_call(d.queue, take_native, &d), GPUHAL_ERROR_NOT_SUPPORTED);
        } else if (d.device) {
            gpuhal_event *host = event_or_fail(d.gpu, GPUHAL_EVENT_HOST);
            assert_ok(gpuhal_queue_wait(d.queue, host));
            assert_ok(gpuhal_queue_native_call(d.queue, take_native, &d));
            assert_int_equal(gpuhal_queue_synchronize(d.queue, 50 * MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
            assert_int_equal(d.calls, 0);
            assert_ok(gpuhal_event_signal(host, GPUHAL_OK));
            assert_ok(gpuhal_queue_synchronize(d.queue, PATIENCE_NS));
            assert_int_equal(d.calls, 1);
            assert_int_equal(d.answer, GPUHAL_ERROR_BUSY);
            gpuhal_event_destroy(host);
        }
        close_fixture(&d);
    }
}

typedef struct pool_to_destroy {
    gpuhal_pool *pool;
    gpuhal_buffer *buffer;
} pool_to_destroy;

static gpuhal_status destroy_inside(void *user, const gpuhal_native *native)
{
    (void)native;
    const pool_to_destroy *own = user;
    gpuhal_buffer_release(own->buffer);
    gpuhal_pool_destroy(own->pool);
    return GPUHAL_OK;
}

/* gpuhal_pool_destroy() makes the queue keep the pool's segments alive, although the queue is calling this function. */
TEST(a_function_that_has_the_vendors_queue_may_destroy_a_pool_whose_memory_the_queue_uses)
{
    for (size_t i = 1; i < sizeof selectors / sizeof *selectors; i++) {
        fixture d = open_fixture(selectors[i], (gpuhal_config){0});
        if (d.device) {
            const gpuhal_pool_desc desc = {.size = sizeof desc};
            pool_to_destroy own = {0};
            assert_ok(gpuhal_pool_create(d.device, &desc, &own.pool));
            assert_ok(gpuhal_pool_allocate(own.pool, d.queue, BYTES, 0, 0, &own.buffer));
            assert_ok(gpuhal_fill(d.queue, own.buffer, 0, BYTES, 1, 1));
            assert_ok(gpuhal_queue_native_call(d.queue, destroy_inside, &own));
            assert_ok(gpuhal_queue_synchronize(d.queue, PATIENCE_NS));
        }
        close_fixture(&d);
    }
}

static gpuhal_status fill_inside(void *user, const gpuhal_native *native)
{
    (void)native;
    fixture *d = user;
    d->calls++;
    d->answer = gpuhal_fill(NULL, d->buffer, 0, BYTES, 0x55, 1);
    pause_ms(3000);
    return GPUHAL_OK;
}

/* While the function holds the VkQueue, a blocking transfer of another thread waits. A blocking transfer inside the
 * function is refused. */
static void *keep_the_vendors_queue(void *selector)
{
    fixture d = open_fixture(selector, (gpuhal_config){.hang_ns = 3 * SECOND_NS / 2});
    if (d.device) {
        unsigned char got = 0;
        assert_ok(gpuhal_queue_native_call(d.queue, fill_inside, &d));
        assert_ok(gpuhal_queue_flush(d.queue));
        while (d.calls == 0) {
            pause_ms(1);
        }
        assert_ok(gpuhal_fill(NULL, d.buffer, 0, BYTES, 0x66, 1));
        assert_ok(gpuhal_queue_synchronize(d.queue, PATIENCE_NS));
        assert_ok(gpuhal_device_status(d.device));
        assert_int_equal(d.answer, strncmp(selector, "vulkan", 6) == 0 ? GPUHAL_ERROR_BUSY : GPUHAL_OK);
        assert_ok(gpuhal_read(NULL, &got, d.buffer, BYTES - 1, 1));
        assert_true(got == 0x66 || (!d.answer && got == 0x55));
    }
    close_fixture(&d);
    return NULL;
}

TEST(a_function_may_have_the_vendors_queue_for_longer_than_a_hang)
{
    on_all_at_once(1, keep_the_vendors_queue);
}

TEST(native_structures_are_written_up_to_the_size_that_the_caller_gives)
{
    for (size_t i = 1; i < sizeof selectors / sizeof *selectors; i++) {
        fixture d = open_fixture(selectors[i], (gpuhal_config){0});
        if (d.device) {
            gpuhal_native native;
            memset(&native, 0xee, sizeof native);
            native.size = 0;
            assert_int_equal(gpuhal_buffer_native(d.buffer, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
            assert_int_equal(gpuhal_device_native(d.device, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
            assert_int_equal(gpuhal_queue_native_begin(d.queue, PATIENCE_NS, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
            native.size = 8;
            assert_ok(gpuhal_buffer_native(d.buffer, &native));
            assert_int_equal(native.size, 8);
            assert_true(native.type != 0 && native.values[0] == UINT64_C(0xeeeeeeeeeeeeeeee));
            assert_ok(gpuhal_device_native(d.device, &native));
            assert_ok(gpuhal_queue_native_begin(d.queue, PATIENCE_NS, &native));
            assert_ok(gpuhal_queue_native_end(d.queue));
            assert_true(native.values[0] == UINT64_C(0xeeeeeeeeeeeeeeee));
        }
        close_fixture(&d);
    }
}

/* ---- keeping */

static void count_released(void *user, void *memory)
{
    (void)memory;
    atomic_fetch_add((_Atomic int *)user, 1);
}

TEST(a_kept_buffer_stays_until_enqueued_work_has_ended_also_in_a_section)
{
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        for (int section = 0; section < 2; section++) {
            fixture d = open_fixture(selectors[i], (gpuhal_config){0});
            void *memory = aligned_alloc(65536, 65536);
            gpuhal_buffer *imported = NULL;
            _Atomic int released = 0;
            gpuhal_native native = {.size = sizeof native};
            uint64_t offset = 0;
            const gpuhal_host_import import = {.size = sizeof import,
                                               .memory = memory,
                                               .bytes = 65536,
                                               .released = count_released,
                                               .user = (void *)&released};
            bool works = d.device && (i > 0 || !section) &&
                         gpuhal_buffer_import_host(d.device, &import, &imported, &offset) == GPUHAL_OK;
            if (works) {
                gpuhal_event *host = event_or_fail(d.gpu, GPUHAL_EVENT_HOST);
                if (section) {
                    assert_ok(gpuhal_queue_native_begin(d.queue, PATIENCE_NS, &native));
                } else {
                    assert_ok(gpuhal_queue_wait(d.queue, host));
                }
                assert_ok(gpuhal_queue_keep(d.queue, &imported, 1));
                gpuhal_buffer_release(imported);
                pause_ms(20);
                assert_int_equal(released, 0);
                assert_ok(section ? gpuhal_queue_native_end(d.queue) : gpuhal_event_signal(host, GPUHAL_OK));
                assert_ok(gpuhal_queue_synchronize(d.queue, PATIENCE_NS));
                for (int k = 0; k < 20000 && released == 0; k++) {
                    pause_ms(1);
                }
                assert_int_equal(released, 1);
                gpuhal_event_destroy(host);
            }
            close_fixture(&d);
            free(memory);
        }
    }
}

#include "test_main.h"
