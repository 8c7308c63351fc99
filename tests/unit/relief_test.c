/* gpuhal_buffer_create() when memory is short, and the report on its failure. */
#include "support/halting.h"
#include "unit/ladder_support.h"

#include <gpuhal/native.h>

enum { LIMIT = 64 * 1024 };

static gpuhal *open_limited(void)
{
    gpuhal *gpu = open_one();
    assert_ok(gpuhal_device_open(gpuhal_device_at(gpu, 0)));
    assert_ok(gpuhal_device_limit_memory(gpuhal_device_at(gpu, 0), LIMIT));
    return gpu;
}

static gpuhal_status create(gpuhal *gpu, uint64_t bytes, uint32_t flags, uint64_t timeout_ns)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes, .flags = flags, .timeout_ns = timeout_ns};
    gpuhal_buffer *buffer = NULL;
    gpuhal_status status = gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer);
    assert_int_equal(status == GPUHAL_OK, buffer != NULL);
    gpuhal_buffer_release(buffer);
    return status;
}

static void end(gpuhal *gpu)
{
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_buffer_gets_the_unused_segments_of_pools_before_others_are_asked)
{
    gpuhal *gpu = open_limited();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = LIMIT / 4});
    cache c = {.name = 'c'};
    gpuhal_buffer *kept = take(pool, NULL, LIMIT / 4), *gone = take(pool, NULL, LIMIT / 4);
    add_callback(gpu, &c, 0);
    gpuhal_buffer_release(gone);
    assert_int_equal(create(gpu, LIMIT / 2 + UNIT, 0, 0), GPUHAL_OK);
    expect_asked("");
    assert_int_equal(state_of(pool).segments, 1);
    gpuhal_buffer_release(kept);
    gpuhal_pool_destroy(pool);
    end(gpu);
}

static gpuhal_event *keep_by_work(gpuhal *gpu, gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, bytes);
    gpuhal_event *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_fill(queue, buffer, 0, bytes, 1, 1));
    gpuhal_buffer_release(buffer);
    return gate;
}

TEST(a_buffer_waits_for_memory_that_work_keeps_as_long_as_its_timeout)
{
    gpuhal *gpu = open_limited();
    gpuhal_queue *queue = queue_or_fail(gpu), *idle = queue_or_fail(gpu);
    gpuhal_event *gate = keep_by_work(gpu, queue, LIMIT);
    assert_int_equal(create(gpu, LIMIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(report_or_fail().rungs[GPUHAL_RUNG_WAIT].tries, 0);
    assert_int_equal(gpuhal_last_error()->bytes_pending, LIMIT);
    const uint64_t deadline_ns = gpuhal_deadline(50000000);
    assert_int_equal(create(gpu, LIMIT, 0, 50000000), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(gpuhal_os_monotonic_ns() >= deadline_ns);
    opener own;
    begin_opening(&own, gate);
    assert_int_equal(create(gpu, LIMIT, 0, PATIENCE_NS), GPUHAL_OK);
    pthread_join(own.thread, NULL);
    gpuhal_queue_destroy(idle);
    gpuhal_queue_destroy(queue);
    end(gpu);
}

typedef struct relay {
    gpuhal *gpu;
    gpuhal_queue *queue;
    gpuhal_event *gate;
    gpuhal_buffer *buffer;
} relay;

/* Lets the first work end. This frees little memory, because newer work still uses own->buffer. */
static void *keep_on(void *user)
{
    const struct timespec pause = {.tv_nsec = 30000000};
    const relay *own = user;
    nanosleep(&pause, NULL);
    gpuhal_event *gate = close_gate(own->gpu, own->queue);
    assert_ok(gpuhal_fill(own->queue, own->buffer, 0, UNIT, 1, 1));
    gpuhal_buffer_release(own->buffer);
    open_gate(own->gate);
    nanosleep(&pause, NULL);
    open_gate(gate);
    return NULL;
}

/* Expects that the call continues to wait until `bytes` are free. */
static void expect_to_wait_on(uint64_t bytes)
{
    gpuhal *gpu = open_limited();
    gpuhal_queue *queue = queue_or_fail(gpu);
    pthread_t thread;
    relay own = {.gpu = gpu, .queue = queue, .gate = keep_by_work(gpu, queue, UNIT)};
    own.buffer = gpuhal_mock_buffer(gpu, 0, LIMIT - UNIT);
    assert_int_equal(pthread_create(&thread, NULL, keep_on, &own), 0);
    assert_int_equal(create(gpu, bytes, 0, PATIENCE_NS), GPUHAL_OK);
    pthread_join(thread, NULL);
    gpuhal_queue_destroy(queue);
    end(gpu);
}

TEST(a_buffer_waits_on_if_later_work_keeps_the_memory)
{
    expect_to_wait_on(LIMIT - UNIT);
}

TEST(a_buffer_waits_on_if_free_and_pending_memory_suffice_together)
{
    expect_to_wait_on(LIMIT);
}

static void *end_native(void *user)
{
    usleep(30000);
    gpuhal_halting.work_goes_on = 0;
    assert_ok(gpuhal_queue_native_end(user));
    return NULL;
}

/* Makes a buffer that a queue keeps alive during native access, so that no event can be recorded in the queue. */
static gpuhal_queue *keep_in_native_access(gpuhal **out_gpu)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    const gpuhal_config config = {.size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .ignore_environment = 1,
                                  .registry = "none", .builtins = builtins};
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_open(&config, out_gpu));
    gpuhal_queue *queue = queue_or_fail(*out_gpu);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(*out_gpu, 0, LIMIT);
    assert_ok(gpuhal_device_limit_memory(gpuhal_device_at(*out_gpu, 0), LIMIT));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_fill(queue, buffer, 0, LIMIT, 1, 1));
    gpuhal_buffer_release(buffer);
    assert_ok(gpuhal_queue_native_begin(queue, PATIENCE_NS, &native));
    return queue;
}

TEST(a_buffer_waits_for_memory_that_a_queue_in_native_access_keeps)
{
    gpuhal *gpu = NULL;
    pthread_t thread;
    gpuhal_queue *queue = keep_in_native_access(&gpu);
    const uint64_t deadline_ns = gpuhal_deadline(50000000);
    assert_int_equal(create(gpu, LIMIT, 0, 50000000), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(gpuhal_os_monotonic_ns() >= deadline_ns);
    assert_int_equal(create(gpu, LIMIT + 1, 0, UINT64_MAX), GPUHAL_ERROR_OUT_OF_MEMORY); /* more than work can free */
    gpuhal_queue *hangs = queue_or_fail(gpu);
    gpuhal_event *never = close_gate(gpu, hangs);
    assert_int_equal(pthread_create(&thread, NULL, end_native, queue), 0);
    assert_int_equal(create(gpu, LIMIT, 0, PATIENCE_NS), GPUHAL_OK);
    pthread_join(thread, NULL);
    open_gate(never);
    gpuhal_queue_destroy(hangs);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
}

TEST(a_buffer_waits_for_segments_whose_parts_work_still_has)
{
    gpuhal *gpu = open_limited();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = LIMIT});
    gpuhal_queue *queue = queue_or_fail(gpu), *hangs = queue_or_fail(gpu);
    gpuhal_buffer *part = take(pool, queue, LIMIT);
    gpuhal_event *gate = close_gate(gpu, queue), *never = close_gate(gpu, hangs);
    assert_ok(gpuhal_fill(queue, part, 0, LIMIT, 1, 1));
    gpuhal_buffer_release(part);
    opener own;
    begin_opening(&own, gate);
    assert_int_equal(create(gpu, LIMIT, 0, PATIENCE_NS), GPUHAL_OK); /* although another queue continues to wait */
    pthread_join(own.thread, NULL);
    open_gate(never);
    gpuhal_queue_destroy(hangs);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    end(gpu);
}

TEST(for_a_buffer_stores_evict_then_spill_and_callbacks_come_last)
{
    gpuhal *gpu = open_limited();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = LIMIT / 4});
    cache evicts = {.name = 'e'}, spills = {.name = 's'}, called = {.name = 'c'};
    fill_cache(&evicts, pool, NULL, 1, LIMIT / 4);
    fill_cache(&spills, pool, NULL, 1, LIMIT / 4);
    called.buffers[called.count++] = gpuhal_mock_buffer(gpu, 0, LIMIT / 2);
    add_callback(gpu, &called, -9);
    add_cache(gpu, &spills, GPUHAL_PRESSURE_SPILL, 0);
    add_cache(gpu, &evicts, GPUHAL_PRESSURE_EVICT, 0);
    assert_int_equal(create(gpu, LIMIT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_asked("");
    assert_int_equal(create(gpu, LIMIT / 4, 0, 0), GPUHAL_OK);
    expect_asked("e");
    assert_null(evicts.pool);
    assert_int_equal(create(gpu, LIMIT / 2, 0, 0), GPUHAL_OK);
    expect_asked("es");
    assert_int_equal(create(gpu, LIMIT, 0, 0), GPUHAL_OK);
    expect_asked("esc");
    gpuhal_pool_destroy(pool);
    end(gpu);
}

TEST(a_driver_that_is_full_gets_memory_back_as_a_limit_does)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = LIMIT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    cache c = {.name = 'c'};
    c.buffers[c.count++] = gpuhal_mock_buffer(gpu, 0, LIMIT / 2);
    add_callback(gpu, &c, 0);
    assert_int_equal(create(gpu, LIMIT + 1, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(report_or_fail().driver_free_bytes, LIMIT / 2);
    assert_int_equal(report_or_fail().limit_bytes, 0);
    assert_int_equal(create(gpu, LIMIT, 0, 0), GPUHAL_OK);
    assert_int_equal(create(gpu, LIMIT + 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(report_or_fail().driver_free_bytes, LIMIT);
    asked[0] = 0;
    end(gpu);
}

TEST(verifying_a_device_takes_nothing_from_others)
{
    gpuhal *gpu = open_limited();
    cache c = {.name = 'c'};
    c.buffers[c.count++] = gpuhal_mock_buffer(gpu, 0, LIMIT);
    add_callback(gpu, &c, 0);
    assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_asked("");
    empty_cache(&c);
    end(gpu);
}

TEST(bad_flags_of_a_buffer_are_invalid_and_a_shorter_description_has_none)
{
    gpuhal *gpu = open_one();
    const uint32_t bad[] = {GPUHAL_ALLOCATE_NO_WAIT, GPUHAL_ALLOCATE_WITHIN_POOL, 8, 1u << 31};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(create(gpu, 64, bad[i], 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    const gpuhal_buffer_desc old = {
        .size = offsetof(gpuhal_buffer_desc, timeout_ns), .bytes = 64, .flags = 0xdeadbeef, .timeout_ns = UINT64_MAX};
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &old, &buffer));
    gpuhal_buffer_release(buffer);
    end(gpu);
}

/* ---- the report */

TEST(the_report_on_a_pool_states_its_memory_and_the_bytes_of_each_rung)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 16 * UNIT, .segment_bytes = 8 * UNIT});
    gpuhal_queue *queue = queue_or_fail(gpu), *other = queue_or_fail(gpu);
    gpuhal_buffer *ended = take(pool, NULL, 2 * UNIT), *late = take(pool, queue, UNIT), *used = take(pool, NULL, UNIT);
    gpuhal_buffer *more[32];
    uint32_t count = 0;
    while (state_of(pool).free_bytes > 0 || state_of(pool).reserved.current < 16 * UNIT) {
        more[count++] = take(pool, NULL, UNIT);
    }
    cache e = {.name = 'e', .per_call = 1}, s = {.name = 's'}, c = {.name = 'c', .per_call = 1};
    e.buffers[e.count++] = more[--count];
    c.buffers[c.count++] = more[--count];
    s.buffers[0] = more[--count]; /* in no source, so it is not released */
    add_cache(gpu, &e, GPUHAL_PRESSURE_EVICT, 0);
    add_callback(gpu, &c, 0);
    gpuhal_event *short_gate = close_gate(gpu, other), *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_buffer_use(ended, other));
    gpuhal_buffer_release(ended);
    open_gate(short_gate);
    assert_ok(gpuhal_queue_synchronize(other, PATIENCE_NS));
    assert_ok(gpuhal_fill(queue, late, 0, UNIT, 1, 1));
    gpuhal_buffer_release(late);
    assert_int_equal(attempt(pool, NULL, 15 * UNIT, 0, 20000000), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_memory_report report = report_or_fail();
    assert_int_equal(report.asked_bytes, 15 * UNIT);
    assert_int_equal(report.limit_bytes, 16 * UNIT);
    const uint64_t trimmed = report.rungs[GPUHAL_RUNG_TRIM].bytes;
    assert_int_equal(report.reserved_bytes, 16 * UNIT - trimmed);
    assert_int_equal(report.used_bytes, (2 + count) * UNIT);
    assert_int_equal(report.ordered_bytes, UNIT);
    assert_int_equal(report.free_bytes, 4 * UNIT - trimmed);
    assert_int_equal(report.fragmentation_permille,
                     1000 - 1000 * report.largest_free_bytes / report.free_bytes);
    assert_int_equal(report.driver_free_bytes, UINT64_MAX);
    assert_int_equal(report.rungs[GPUHAL_RUNG_POLL].bytes, 2 * UNIT);
    assert_int_equal(report.rungs[GPUHAL_RUNG_EVICT].bytes, UNIT);
    assert_int_equal(report.rungs[GPUHAL_RUNG_EVICT].tries, 2);
    assert_int_equal(report.rungs[GPUHAL_RUNG_SPILL].tries, 0);
    assert_int_equal(report.rungs[GPUHAL_RUNG_CALL].bytes, UNIT);
    assert_true(report.rungs[GPUHAL_RUNG_GROW].tries > 0 && report.rungs[GPUHAL_RUNG_TRIM].tries > 0);
    assert_int_equal(report.rungs[GPUHAL_RUNG_GROW].bytes, 0);
    assert_int_equal(report.rungs[GPUHAL_RUNG_TAKE].tries, 0); /* no queue could wait for another queue */
    assert_true(report.rungs[GPUHAL_RUNG_WAIT].tries > 0);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "; 256 bytes were given by callbacks"));
    opener own;
    begin_opening(&own, gate);
    assert_int_equal(attempt(pool, NULL, 15 * UNIT, 0, PATIENCE_NS), GPUHAL_ERROR_OUT_OF_MEMORY);
    pthread_join(own.thread, NULL);
    const gpuhal_memory_report later = report_or_fail();
    assert_int_equal(later.ordered_bytes, 0); /* the call returned because no work is left to wait for */
    assert_int_equal(later.rungs[GPUHAL_RUNG_POLL].bytes + later.rungs[GPUHAL_RUNG_WAIT].bytes, UNIT);
    gpuhal_buffer_release(used);
    gpuhal_buffer_release(s.buffers[0]);
    while (count > 0) {
        gpuhal_buffer_release(more[--count]);
    }
    asked[0] = 0;
    gpuhal_queue_destroy(other);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    end(gpu);
}

TEST(the_report_counts_segments_that_were_taken_and_given_back)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 4 * SEGMENT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0}), *other = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer_release(take(pool, NULL, SEGMENT));
    gpuhal_buffer_release(take(other, NULL, SEGMENT));
    assert_int_equal(attempt(pool, NULL, 5 * SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_memory_report report = report_or_fail();
    assert_int_equal(report.rungs[GPUHAL_RUNG_TRIM].bytes, 2 * SEGMENT);
    assert_int_equal(report.reserved_bytes, 0);
    assert_int_equal(report.fragmentation_permille, 0);
    assert_int_equal(report.driver_free_bytes, 4 * SEGMENT);
    gpuhal_pool_destroy(pool);
    gpuhal_pool_destroy(other);
    end(gpu);
}

TEST(the_report_on_a_buffer_is_of_the_device_and_its_pools)
{
    gpuhal *gpu = open_limited();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = LIMIT / 2});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *plain = gpuhal_mock_buffer(gpu, 0, LIMIT / 8), *part = take(pool, queue, LIMIT / 4);
    gpuhal_buffer *late = take(pool, queue, UNIT);
    gpuhal_event *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_fill(queue, late, 0, UNIT, 1, 1));
    gpuhal_buffer_release(late);
    assert_int_equal(create(gpu, LIMIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_memory_report report = report_or_fail();
    const gpuhal_pool_statistics state = state_of(pool);
    assert_int_equal(report.asked_bytes, LIMIT);
    assert_int_equal(report.limit_bytes, LIMIT);
    assert_int_equal(report.reserved_bytes, LIMIT / 8 + state.reserved.current);
    assert_int_equal(report.used_bytes, LIMIT / 8 + state.used.current);
    assert_int_equal(report.ordered_bytes, UNIT);
    assert_int_equal(report.free_bytes, state.free_bytes);
    assert_int_equal(report.rungs[GPUHAL_RUNG_POLL].tries, 1);
    assert_int_equal(report.rungs[GPUHAL_RUNG_TRIM].tries, 1);
    assert_int_equal(report.largest_free_bytes, state.largest_free_bytes);
    open_gate(gate);
    gpuhal_buffer_release(plain);
    gpuhal_buffer_release(part);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    end(gpu);
}

/* The device refuses the segment, while work also keeps some of the device's memory. */
TEST(the_sentence_on_a_pool_states_pending_memory_once)
{
    gpuhal *gpu = open_limited();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = LIMIT / 2});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *part = take(pool, queue, LIMIT / 2);
    gpuhal_event *gate = keep_by_work(gpu, queue, UNIT);
    assert_ok(gpuhal_fill(queue, part, 0, LIMIT / 2, 1, 1));
    gpuhal_buffer_release(part);
    assert_int_equal(attempt(pool, NULL, LIMIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_error *error = gpuhal_last_error();
    const char *words = " bytes are freed when queued work ends";
    assert_int_equal(error->bytes_pending, LIMIT / 2 + UNIT);
    const char *first = strstr(error->sentence, words);
    assert_non_null(first);
    assert_null(strstr(first + 1, words));
    assert_non_null(strstr(error->sentence, "; 33024 bytes are freed when queued work ends"));
    open_gate(gate);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    end(gpu);
}

TEST(there_is_a_report_only_while_the_last_error_is_such_a_failure)
{
    gpuhal *gpu = open_limited();
    assert_null(gpuhal_last_memory_report());
    assert_int_equal(create(gpu, LIMIT + 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    (void)report_or_fail();
    gpuhal_error_detail kept;
    gpuhal_error_save(&kept);
    assert_int_equal(create(gpu, 0, 0, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(gpuhal_last_memory_report());
    (void)gpuhal_error_restore(&kept);
    assert_int_equal(report_or_fail().asked_bytes, LIMIT + 1);
    end(gpu);
}

typedef struct failing {
    gpuhal *gpu;
    gpuhal_pool *pool;
} failing;

static void *fail_often(void *user)
{
    const failing *own = user;
    gpuhal_pool *pool = own->pool;
    gpuhal_buffer *held[4] = {0};
    for (uint32_t i = 0; i < 400; i++) {
        gpuhal_buffer_release(held[i % 4]);
        const uint64_t bytes = UNIT * (1 + i % 9);
        if (gpuhal_pool_allocate(pool, NULL, bytes, 0, 0, &held[i % 4]) == GPUHAL_ERROR_OUT_OF_MEMORY) {
            assert_int_equal(report_or_fail().asked_bytes, bytes);
        }
        if (attempt(pool, NULL, 17 * UNIT, 0, 0) == GPUHAL_ERROR_OUT_OF_MEMORY) {
            assert_true(report_or_fail().reserved_bytes <= 16 * UNIT);
        }
        if (create(own->gpu, LIMIT + 1, 0, 0) == GPUHAL_ERROR_OUT_OF_MEMORY) {
            assert_int_equal(report_or_fail().asked_bytes, LIMIT + 1);
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        gpuhal_buffer_release(held[i]);
    }
    return NULL;
}

TEST(reports_add_up_while_eight_threads_allocate)
{
    enum { THREADS = 8 };
    gpuhal *gpu = open_limited();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 16 * UNIT, .segment_bytes = 4 * UNIT});
    pthread_t threads[THREADS];
    failing own = {gpu, pool};
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, fail_often, &own), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(state_of(pool).out_of_memory > 0);
    gpuhal_pool_destroy(pool);
    end(gpu);
}

#include "test_main.h"
