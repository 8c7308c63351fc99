/* Scopes: what was allocated in one is released at its end, and nothing else. */
#include "pool_support.h"

#include <pthread.h>

static gpuhal_scope *begin_or_fail(gpuhal_pool *pool, gpuhal_scope *outer)
{
    gpuhal_scope *scope = NULL;
    assert_ok(gpuhal_scope_begin(pool, outer, &scope));
    return scope;
}

static gpuhal_buffer *take_in(gpuhal_scope *scope, gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_scope_allocate(scope, queue, bytes, 0, 0, &buffer));
    assert_int_equal(gpuhal_buffer_bytes(buffer), bytes);
    return buffer;
}

static gpuhal_scope_statistics figures_of(const gpuhal_scope *scope)
{
    gpuhal_scope_statistics figures = {.size = sizeof figures};
    assert_ok(gpuhal_scope_get_statistics(scope, &figures));
    assert_int_equal(figures.requested.current, figures.requested.total_in - figures.requested.total_out);
    return figures;
}

TEST(the_end_of_a_scope_releases_what_was_allocated_in_it_and_nothing_else)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_scope *scope = begin_or_fail(pool, NULL), *other = begin_or_fail(pool, NULL);
    gpuhal_buffer *outside = take(pool, NULL, 10);
    (void)take_in(other, NULL, 20);
    for (uint64_t i = 1; i <= 5; i++) {
        (void)take_in(scope, NULL, 100 * i);
    }
    assert_int_equal(state_of(pool).requested.current, 1530);
    gpuhal_scope_end(scope);
    assert_int_equal(state_of(pool).requested.current, 30);
    gpuhal_scope_end(other);
    gpuhal_scope_end(NULL);
    assert_int_equal(state_of(pool).buffers.current, 1);
    gpuhal_buffer_release(outside);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_buffer_that_is_kept_outlives_its_scope_and_may_be_released_before_its_end)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_scope *scope = begin_or_fail(pool, NULL), *other = begin_or_fail(pool, NULL);
    gpuhal_buffer *buffers[5];
    for (int i = 0; i < 5; i++) {
        buffers[i] = take_in(scope, NULL, 64);
    }
    /* the last, one amid the others, and the first of its list */
    assert_ok(gpuhal_scope_keep(scope, buffers[0]));
    assert_ok(gpuhal_scope_keep(scope, buffers[2]));
    assert_ok(gpuhal_scope_keep(scope, buffers[4]));
    gpuhal_buffer_release(buffers[2]);
    assert_int_equal(state_of(pool).buffers.current, 4);
    assert_int_equal(gpuhal_scope_keep(scope, buffers[0]), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_keep(other, buffers[1]), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_retain(buffers[3]);
    gpuhal_scope_end(scope);
    assert_int_equal(state_of(pool).buffers.current, 3);
    assert_ok(gpuhal_write(NULL, buffers[0], 0, "kept", 4));
    assert_ok(gpuhal_write(NULL, buffers[3], 0, "kept", 4));
    assert_int_equal(gpuhal_scope_keep(other, buffers[0]), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(buffers[0]);
    gpuhal_buffer_release(buffers[3]);
    gpuhal_buffer_release(buffers[4]);
    gpuhal_scope_end(other);
    assert_int_equal(state_of(pool).buffers.current, 0);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(an_outer_scope_ends_those_in_it_and_counts_their_buffers)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_scope *outer = begin_or_fail(pool, NULL), *first = begin_or_fail(pool, outer);
    gpuhal_scope *second = begin_or_fail(pool, outer), *third = begin_or_fail(pool, outer);
    (void)take_in(outer, NULL, 100);
    (void)take_in(first, NULL, 1000);
    (void)take_in(begin_or_fail(pool, third), NULL, 5);
    (void)take_in(second, NULL, 10000);
    assert_int_equal(figures_of(outer).requested.current, 11105);
    assert_int_equal(figures_of(outer).buffers.current, 4);
    gpuhal_scope_end(second);
    (void)take_in(first, NULL, 2000);
    assert_int_equal(figures_of(first).requested.peak, 3000);
    assert_int_equal(figures_of(outer).requested.current, 3105);
    assert_int_equal(figures_of(outer).requested.peak, 11105);
    assert_int_equal(figures_of(outer).requested.total_in, 13105);
    assert_int_equal(figures_of(outer).buffers.total_out, 1);
    gpuhal_scope_end(outer);
    assert_int_equal(state_of(pool).buffers.current, 0);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(what_a_scope_releases_stays_behind_the_work_of_its_queue)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, queue);
    gpuhal_scope *scope = begin_or_fail(pool, NULL);
    gpuhal_buffer *buffer = take_in(scope, queue, SEGMENT);
    assert_ok(gpuhal_fill(queue, buffer, 0, 64, 7, 1));
    gpuhal_scope_end(scope);
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(attempt(pool, queue, SEGMENT, 0, 0), GPUHAL_OK);
    open_gate(gate);
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, PATIENCE_NS), GPUHAL_OK);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_scope_may_end_after_its_pool_and_a_failed_allocation_leaves_nothing_in_it)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT});
    gpuhal_scope *scope = begin_or_fail(pool, NULL);
    gpuhal_buffer *buffer = (gpuhal_buffer *)gpu, *kept = take_in(scope, NULL, 8);
    (void)take_in(scope, NULL, 100);
    assert_int_equal(gpuhal_scope_allocate(scope, NULL, 2 * SEGMENT, 0, 0, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_null(buffer);
    assert_int_equal(figures_of(scope).buffers.total_in, 2);
    gpuhal_pool_destroy(pool);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 1);
    assert_ok(gpuhal_scope_keep(scope, kept));
    gpuhal_scope_end(scope);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 1);
    gpuhal_buffer_release(kept);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(bad_arguments_of_scopes_are_invalid)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0}), *second = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_scope *scope = begin_or_fail(pool, NULL), *none = (gpuhal_scope *)(void *)gpu;
    gpuhal_buffer *plain = gpuhal_mock_buffer(gpu, 0, 64), *buffer = (gpuhal_buffer *)gpu;
    gpuhal_scope_statistics figures = {.size = 0};
    assert_int_equal(gpuhal_scope_begin(second, scope, &none), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(none);
    assert_int_equal(gpuhal_scope_begin(NULL, NULL, &none), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_begin(pool, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_allocate(NULL, NULL, 1, 0, 0, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(buffer);
    assert_int_equal(gpuhal_scope_allocate(scope, NULL, 1, 0, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_allocate(scope, NULL, 0, 0, 0, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_keep(scope, plain), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_keep(scope, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_keep(NULL, plain), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_get_statistics(scope, &figures), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_get_statistics(scope, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_scope_get_statistics(NULL, &figures), GPUHAL_ERROR_INVALID_ARGUMENT);
    figures = (gpuhal_scope_statistics){.size = offsetof(gpuhal_scope_statistics, buffers), .buffers.peak = 77};
    (void)take_in(scope, NULL, 9);
    assert_ok(gpuhal_scope_get_statistics(scope, &figures));
    assert_int_equal(figures.requested.current, 9);
    assert_int_equal(figures.buffers.peak, 77);
    gpuhal_scope_end(scope);
    gpuhal_buffer_release(plain);
    gpuhal_pool_destroy(pool);
    gpuhal_pool_destroy(second);
    gpuhal_close(gpu);
    expect_nothing_left();
}

typedef struct {
    gpuhal_pool *pool;
    gpuhal_scope *shared;
    int failed;
} worker;

static void *work(void *user)
{
    worker *own = user;
    for (int i = 0; i < 300; i++) {
        gpuhal_scope *scope = NULL;
        gpuhal_buffer *buffer = NULL, *kept = NULL;
        own->failed += gpuhal_scope_begin(own->pool, own->shared, &scope) != GPUHAL_OK;
        own->failed += gpuhal_scope_allocate(scope, NULL, 100, 0, 0, &buffer) != GPUHAL_OK;
        own->failed += gpuhal_scope_allocate(own->shared, NULL, 50, 0, 0, &kept) != GPUHAL_OK;
        own->failed += gpuhal_scope_allocate(own->shared, NULL, 50, 0, 0, &buffer) != GPUHAL_OK;
        own->failed += gpuhal_scope_keep(own->shared, kept) != GPUHAL_OK;
        gpuhal_buffer_release(kept);
        if (i % 2 == 0) {
            gpuhal_scope_end(scope);
        }
    }
    return NULL;
}

TEST(eight_threads_in_one_scope_leave_in_it_what_they_did_not_release)
{
    enum { THREADS = 8 };
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_scope *shared = begin_or_fail(pool, NULL);
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.pool = pool, .shared = shared};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failed, 0);
    }
    assert_int_equal(figures_of(shared).requested.current, THREADS * (300 * 50 + 150 * 100));
    assert_int_equal(state_of(pool).buffers.current, THREADS * 450);
    gpuhal_scope_end(shared);
    assert_int_equal(state_of(pool).buffers.current, 0);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

#include "test_main.h"
