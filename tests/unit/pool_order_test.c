/* Pool memory that was released with unfinished work: the queues that may reuse it, and the earliest time. A gate
 * blocks a queue's work. */
#include "pool_support.h"

#include "queue/queue.h"

#include <pthread.h>
#include <time.h>

/* A pool with a single segment. `queue` uses the whole segment, the gate blocks the work, and the buffer is
 * released. */
typedef struct held_pool {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_queue *queue;
    gpuhal_event *gate;
} held_pool;

static held_pool hold(gpuhal_pool_desc desc)
{
    held_pool held = {.gpu = open_one()};
    desc.limit_bytes = SEGMENT;
    held.pool = pool_or_fail(held.gpu, desc);
    held.queue = queue_or_fail(held.gpu);
    gpuhal_buffer *buffer = take(held.pool, held.queue, SEGMENT);
    held.gate = close_gate(held.gpu, held.queue);
    assert_ok(gpuhal_fill(held.queue, buffer, 0, SEGMENT, 0x11, 1));
    gpuhal_buffer_release(buffer);
    assert_int_equal(state_of(held.pool).ordered_bytes, SEGMENT);
    return held;
}

static void let_go(held_pool *held)
{
    if (held->gate) {
        open_gate(held->gate);
    }
    gpuhal_queue_destroy(held->queue);
    gpuhal_pool_destroy(held->pool);
    gpuhal_close(held->gpu);
    expect_nothing_left_soon();
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

TEST(a_queue_gets_memory_released_behind_its_own_work_at_once)
{
    held_pool held = hold(
        (gpuhal_pool_desc){.flags = GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC | GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES});
    const uint32_t flags = GPUHAL_ALLOCATE_NO_WAIT | GPUHAL_ALLOCATE_WITHIN_POOL;
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_pool_allocate(held.pool, held.queue, SEGMENT, flags, 0, &buffer));
    assert_ok(gpuhal_fill(held.queue, buffer, 0, SEGMENT, 0x22, 1));
    assert_int_equal(((unsigned char *)gpuhal_buffer_host(buffer))[0], 0x5a);
    open_gate(held.gate);
    held.gate = NULL;
    assert_ok(gpuhal_queue_synchronize(held.queue, PATIENCE_NS));
    assert_int_equal(((unsigned char *)gpuhal_buffer_host(buffer))[SEGMENT - 1], 0x22);
    gpuhal_buffer_release(buffer);
    let_go(&held);
}

TEST(without_a_queue_memory_is_given_once_the_work_behind_it_has_ended)
{
    held_pool held = hold((gpuhal_pool_desc){0});
    assert_int_equal(attempt(held.pool, NULL, 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_pending, SEGMENT);
    assert_int_equal(gpuhal_last_error()->bytes_free, 0);
    open_gate(held.gate);
    held.gate = NULL;
    assert_ok(gpuhal_queue_synchronize(held.queue, PATIENCE_NS));
    assert_int_equal(attempt(held.pool, NULL, SEGMENT, 0, 0), GPUHAL_OK);
    let_go(&held);
}

TEST(another_queue_gets_the_memory_behind_an_event)
{
    held_pool held = hold((gpuhal_pool_desc){0});
    gpuhal_queue *other = queue_or_fail(held.gpu);
    gpuhal_event *done = NULL;
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_event_create(held.gpu, 0, &done));
    assert_ok(gpuhal_pool_allocate(held.pool, other, SEGMENT, GPUHAL_ALLOCATE_NO_WAIT, 0, &buffer));
    assert_ok(gpuhal_fill(other, buffer, 0, SEGMENT, 0x22, 1));
    assert_ok(gpuhal_event_record(done, other));
    assert_int_equal(gpuhal_event_wait(done, 20000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(((unsigned char *)gpuhal_buffer_host(buffer))[0], 0x5a);
    open_gate(held.gate);
    held.gate = NULL;
    assert_ok(gpuhal_event_wait(done, PATIENCE_NS));
    assert_ok(gpuhal_queue_synchronize(held.queue, PATIENCE_NS));
    assert_int_equal(((unsigned char *)gpuhal_buffer_host(buffer))[SEGMENT - 1], 0x22);
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(done);
    gpuhal_queue_destroy(other);
    let_go(&held);
}

TEST(queues_that_take_turns_with_memory_follow_each_work_once)
{
    enum { TURNS = 100 };
    held_pool held = hold((gpuhal_pool_desc){0});
    gpuhal_queue *const queues[] = {held.queue, queue_or_fail(held.gpu)};
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        gpuhal_queue *queue = queues[turn % 2];
        gpuhal_buffer *buffer = take(held.pool, queue, SEGMENT);
        assert_ok(gpuhal_fill(queue, buffer, 0, SEGMENT, 0x22, 1));
        gpuhal_buffer_release(buffer);
        assert_true(queue->followed_count <= turn);
    }
    gpuhal_queue_destroy(queues[1]);
    let_go(&held);
}

TEST(no_queue_waits_for_another_if_internal_dependencies_are_off)
{
    held_pool held = hold((gpuhal_pool_desc){.flags = GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES});
    gpuhal_queue *other = queue_or_fail(held.gpu);
    assert_int_equal(attempt(held.pool, other, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_queue_synchronize(other, PATIENCE_NS));
    open_gate(held.gate);
    held.gate = NULL;
    assert_int_equal(attempt(held.pool, other, SEGMENT, 0, PATIENCE_NS), GPUHAL_OK);
    gpuhal_queue_destroy(other);
    let_go(&held);
}

TEST(work_that_happens_to_have_ended_counts_unless_that_is_off)
{
    for (uint32_t off = 0; off < 2; off++) {
        held_pool held = hold((gpuhal_pool_desc){.flags = off ? GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC : 0});
        assert_ok(gpuhal_pool_set_limit(held.pool, 0));
        open_gate(held.gate);
        held.gate = NULL;
        assert_ok(gpuhal_queue_synchronize(held.queue, PATIENCE_NS));
        assert_int_equal(attempt(held.pool, NULL, SEGMENT, 0, 0), GPUHAL_OK);
        assert_int_equal(state_of(held.pool).segments, 1 + off);
        let_go(&held);
    }
}

TEST(an_allocation_waits_for_its_timeout_and_no_longer)
{
    held_pool held = hold((gpuhal_pool_desc){0});
    const uint64_t begin_ns = now_ns();
    assert_int_equal(attempt(held.pool, NULL, SEGMENT, 0, 50000000), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(now_ns() - begin_ns >= 50000000);
    assert_true(now_ns() - begin_ns < PATIENCE_NS / 4);
    assert_int_equal(gpuhal_last_error()->bytes_pending, SEGMENT);
    assert_int_equal(attempt(held.pool, NULL, SEGMENT, GPUHAL_ALLOCATE_NO_WAIT, UINT64_MAX),
                     GPUHAL_ERROR_OUT_OF_MEMORY);
    let_go(&held);
}

static void *open_soon(void *user)
{
    const struct timespec pause = {.tv_nsec = 30000000};
    nanosleep(&pause, NULL);
    open_gate(user);
    return NULL;
}

TEST(an_allocation_that_waits_gets_the_memory_when_the_work_ends)
{
    static const uint64_t timeouts[] = {PATIENCE_NS, UINT64_MAX};
    for (uint32_t i = 0; i < 4; i++) {
        held_pool held = hold((gpuhal_pool_desc){.flags = i / 2 ? GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC : 0});
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, open_soon, held.gate), 0);
        held.gate = NULL;
        assert_int_equal(attempt(held.pool, NULL, SEGMENT, i & 1 ? GPUHAL_ALLOCATE_WITHIN_POOL : 0, timeouts[i & 1]),
                         GPUHAL_OK);
        pthread_join(thread, NULL);
        let_go(&held);
    }
}

TEST(pieces_behind_several_queues_are_one_once_all_have_ended)
{
    enum { QUEUES = 8 };
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = QUEUES * 1024});
    gpuhal_queue *queues[QUEUES];
    gpuhal_event *gates[QUEUES];
    gpuhal_buffer *buffers[QUEUES];
    gpuhal_buffer_release(take(pool, NULL, QUEUES * 1024));
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = queue_or_fail(gpu);
        gates[i] = close_gate(gpu, queues[i]);
        buffers[i] = take(pool, queues[i], 1024);
    }
    for (int i = 0; i < QUEUES; i++) {
        gpuhal_buffer_release(buffers[i]);
        assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    }
    for (int i = 0; i < QUEUES; i++) {
        open_gate(gates[i]);
        assert_ok(gpuhal_queue_synchronize(queues[i], PATIENCE_NS));
        assert_int_equal(attempt(pool, NULL, (uint64_t)(i + 1) * 1024, 0, 0), GPUHAL_OK);
    }
    for (int i = 0; i < QUEUES; i++) {
        gpuhal_queue_destroy(queues[i]);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

/* `by` is 0 for a transfer, 1 for gpuhal_queue_keep(), and 2 for gpuhal_buffer_use(). */
static void expect_held_by(gpuhal_pool_desc desc, int by, bool home_too)
{
    gpuhal *gpu = open_one();
    desc.limit_bytes = SEGMENT;
    gpuhal_pool *pool = pool_or_fail(gpu, desc);
    gpuhal_queue *home = queue_or_fail(gpu), *other = queue_or_fail(gpu);
    gpuhal_buffer *buffer = take(pool, home_too ? home : NULL, SEGMENT), *plain = gpuhal_mock_buffer(gpu, 0, SEGMENT);
    gpuhal_event *gate = close_gate(gpu, other);
    if (by == 0) {
        assert_ok(gpuhal_copy(other, plain, 0, buffer, 0, SEGMENT));
    } else if (by == 1) {
        assert_ok(gpuhal_queue_keep(other, &buffer, 1));
    } else {
        assert_ok(gpuhal_buffer_use(buffer, other));
        assert_ok(gpuhal_buffer_use(buffer, other));
        assert_ok(gpuhal_fill(other, plain, 0, SEGMENT, 1, 1));
    }
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(plain);
    assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(attempt(pool, home, 1, 0, 0), desc.flags & GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES || home_too
                                                       ? GPUHAL_ERROR_OUT_OF_MEMORY
                                                       : GPUHAL_OK);
    uint64_t freed = 1;
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, 0);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(other, PATIENCE_NS));
    assert_ok(gpuhal_queue_synchronize(home, PATIENCE_NS));
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_OK);
    gpuhal_queue_destroy(home);
    gpuhal_queue_destroy(other);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_transfer_keeps_its_buffers_behind_its_queue)
{
    expect_held_by((gpuhal_pool_desc){0}, 0, false);
    expect_held_by((gpuhal_pool_desc){.flags = GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES}, 0, false);
    expect_held_by((gpuhal_pool_desc){0}, 0, true);
}

TEST(queue_keep_keeps_a_part_behind_that_queue)
{
    expect_held_by((gpuhal_pool_desc){0}, 1, false);
    expect_held_by((gpuhal_pool_desc){0}, 1, true);
}

TEST(buffer_use_keeps_a_part_behind_that_queue)
{
    expect_held_by((gpuhal_pool_desc){0}, 2, false);
    expect_held_by((gpuhal_pool_desc){0}, 2, true);
}

TEST(free_neighbours_are_one_piece_for_a_queue_that_may_have_both)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 8192});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *parts[8];
    for (int i = 0; i < 8; i++) {
        parts[i] = take(pool, i % 2 ? queue : NULL, 1024);
    }
    gpuhal_event *gate = close_gate(gpu, queue);
    for (int i = 0; i < 8; i++) {
        gpuhal_buffer_release(parts[i * 5 % 8]);
    }
    assert_int_equal(state_of(pool).ordered_bytes, 4096);
    for (uint64_t bytes = 2048; bytes <= 8192; bytes += 2048) {
        const uint32_t flags = GPUHAL_ALLOCATE_NO_WAIT | GPUHAL_ALLOCATE_WITHIN_POOL;
        assert_int_equal(attempt(pool, queue, bytes, flags, 0), GPUHAL_OK);
        /* Only the memory that the request needed is unavailable to other queues. */
        assert_int_equal(attempt(pool, NULL, 1024, flags, 0), bytes <= 6144 ? GPUHAL_OK : GPUHAL_ERROR_OUT_OF_MEMORY);
    }
    open_gate(gate);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(a_request_of_a_busy_queue_that_fails_leaves_free_memory_to_others)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 8192});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *begin = take(pool, NULL, 8192 - 2048), *middle = take(pool, NULL, 1024);
    gpuhal_event *gate = close_gate(gpu, queue);
    gpuhal_buffer_release(begin);
    assert_int_equal(attempt(pool, queue, 8192, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(state_of(pool).free_bytes, 8192 - 1024);
    assert_int_equal(attempt(pool, NULL, 4096, 0, 0), GPUHAL_OK);
    open_gate(gate);
    gpuhal_buffer_release(middle);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(memory_behind_a_destroyed_queue_is_free_once_its_work_has_ended)
{
    held_pool held = hold((gpuhal_pool_desc){0});
    gpuhal_queue_destroy(held.queue);
    held.queue = NULL;
    assert_int_equal(attempt(held.pool, NULL, 1, 0, 20000000), GPUHAL_ERROR_OUT_OF_MEMORY);
    open_gate(held.gate);
    held.gate = NULL;
    assert_int_equal(attempt(held.pool, NULL, SEGMENT, 0, PATIENCE_NS), GPUHAL_OK);
    let_go(&held);
}

/* A new queue may have the same address as a destroyed queue. */
TEST(a_new_queue_is_not_taken_for_one_that_was_destroyed)
{
    enum { ROUNDS = 64 };
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT});
    for (int i = 0; i < ROUNDS; i++) {
        gpuhal_queue *gone = queue_or_fail(gpu), *between = queue_or_fail(gpu);
        gpuhal_buffer *buffer = take(pool, i & 1 ? gone : NULL, SEGMENT / 2);
        assert_ok(gpuhal_fill(gone, buffer, 0, SEGMENT / 2, 1, 1));
        assert_ok(gpuhal_queue_synchronize(gone, PATIENCE_NS));
        gpuhal_queue_destroy(gone);
        gpuhal_buffer_release(take(pool, between, UNIT));
        gpuhal_queue *now = queue_or_fail(gpu);
        gpuhal_event *gate = close_gate(gpu, now);
        assert_ok(gpuhal_fill(now, buffer, 0, SEGMENT / 2, 2, 1));
        gpuhal_buffer_release(buffer);
        assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
        open_gate(gate);
        assert_ok(gpuhal_queue_synchronize(now, PATIENCE_NS));
        assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_OK);
        gpuhal_queue_destroy(now);
        gpuhal_queue_destroy(between);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

static gpuhal_status fail_work(void *user)
{
    (void)user;
    return GPUHAL_ERROR_DRIVER;
}

TEST(memory_behind_a_failed_queue_is_free_after_its_reset)
{
    held_pool held = hold((gpuhal_pool_desc){0});
    assert_ok(gpuhal_queue_call(held.queue, fail_work, NULL));
    open_gate(held.gate);
    held.gate = NULL;
    assert_int_equal(gpuhal_queue_synchronize(held.queue, PATIENCE_NS), GPUHAL_ERROR_DRIVER);
    assert_ok(gpuhal_queue_reset(held.queue, PATIENCE_NS));
    assert_int_equal(attempt(held.pool, NULL, SEGMENT, 0, 0), GPUHAL_OK);
    let_go(&held);
}

/* `queue` waits for a gate of its own, and its work behind the gate fails. Before the gate opens, the queue receives
 * memory that the held queue still uses. The mock does not offer queues in this test, so a failing queue drops its
 * waits. */
static void fail_with_memory_of_another(held_pool *held, gpuhal_queue *queue, gpuhal_buffer **out_buffer)
{
    gpuhal_event *gate = close_gate(held->gpu, queue);
    assert_ok(gpuhal_queue_call(queue, fail_work, NULL));
    *out_buffer = take(held->pool, queue, SEGMENT);
    open_gate(gate);
    for (int i = 0; i < 60000 && gpuhal_queue_flush(queue) == GPUHAL_OK; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    assert_int_equal(gpuhal_queue_flush(queue), GPUHAL_ERROR_DRIVER);
}

TEST(a_reset_of_a_queue_that_has_memory_of_another_waits_for_that_ones_work)
{
    held_pool held = hold((gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(held.gpu);
    gpuhal_buffer *buffer = NULL;
    fail_with_memory_of_another(&held, queue, &buffer);
    assert_int_equal(gpuhal_queue_reset(queue, 20000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_fill(queue, buffer, 0, 1, 0, 1), GPUHAL_ERROR_DRIVER);
    open_gate(held.gate);
    held.gate = NULL;
    assert_ok(gpuhal_queue_reset(queue, PATIENCE_NS));
    assert_int_equal(((unsigned char *)gpuhal_buffer_host(buffer))[SEGMENT - 1], 0x11);
    assert_ok(gpuhal_fill(queue, buffer, 0, SEGMENT, 0x22, 1));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    gpuhal_buffer_release(buffer);
    gpuhal_queue_destroy(queue);
    let_go(&held);
}

TEST(memory_of_a_destroyed_queue_that_had_it_of_another_is_not_free_before_that_ones_work_has_ended)
{
    held_pool held = hold((gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(held.gpu);
    gpuhal_buffer *buffer = NULL;
    fail_with_memory_of_another(&held, queue, &buffer);
    gpuhal_buffer_release(buffer);
    gpuhal_queue_destroy(queue);
    assert_int_equal(attempt(held.pool, NULL, SEGMENT, 0, 20000000), GPUHAL_ERROR_OUT_OF_MEMORY);
    open_gate(held.gate);
    held.gate = NULL;
    assert_int_equal(attempt(held.pool, NULL, SEGMENT, 0, PATIENCE_NS), GPUHAL_OK);
    let_go(&held);
}

TEST(two_queues_with_memory_of_each_other_that_have_both_failed_are_reset_and_destroyed)
{
    for (int destroys = 0; destroys < 2; destroys++) {
        gpuhal *gpu = open_one();
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT});
        gpuhal_queue *queues[2] = {queue_or_fail(gpu), queue_or_fail(gpu)};
        gpuhal_buffer *halves[2];
        for (int i = 0; i < 2; i++) {
            halves[i] = take(pool, queues[i], SEGMENT / 2);
        }
        gpuhal_event *gate = close_gate(gpu, queues[0]);
        assert_ok(gpuhal_queue_call(queues[0], fail_work, NULL));
        for (int i = 0; i < 2; i++) { /* each queue receives memory that the other's unfinished work uses */
            gpuhal_buffer_release(halves[i]);
            halves[i] = take(pool, queues[1 - i], SEGMENT / 2);
            assert_ok(gpuhal_fill(queues[1 - i], halves[i], 0, SEGMENT / 2, 1, 1));
        }
        open_gate(gate);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(gpuhal_queue_synchronize(queues[i], PATIENCE_NS), GPUHAL_ERROR_DRIVER);
        }
        for (int i = 0; i < 2 && !destroys; i++) {
            assert_ok(gpuhal_queue_reset(queues[i], PATIENCE_NS));
        }
        for (int i = 0; i < 2; i++) {
            gpuhal_queue_destroy(queues[i]);
            gpuhal_buffer_release(halves[i]);
        }
        assert_int_equal(attempt(pool, NULL, SEGMENT, 0, PATIENCE_NS), GPUHAL_OK);
        gpuhal_pool_destroy(pool);
        gpuhal_close(gpu);
    }
}

#include "test_main.h"
