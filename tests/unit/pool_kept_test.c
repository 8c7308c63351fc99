/* Released buffers that a queue's lane keeps for reuse. The tests check which queue reuses them, when they are freed,
 * and that statistics do not include them. */
#include "pool/pool.h"
#include "pool_support.h"
#include "queue/queue.h"

#include <pthread.h>

/* Uses `count` buffers at the same time, so that the pool may keep `count` released buffers in all. */
static void use_at_once(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, int count)
{
    gpuhal_buffer *buffers[16];
    for (int i = 0; i < count; i++) {
        buffers[i] = take(pool, queue, bytes);
    }
    for (int i = 0; i < count; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
}

static uint64_t release_it(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    gpuhal_buffer **buffer = user;
    (void)device;
    (void)bytes;
    (void)timeout_ns;
    const uint64_t given = *buffer ? gpuhal_buffer_bytes(*buffer) : 0;
    gpuhal_buffer_release(*buffer);
    *buffer = NULL;
    return given;
}

TEST(the_same_request_of_a_queue_takes_no_lock_of_the_pool)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *first = take(pool, queue, 1000), *second = take(pool, queue, 5000);
    const uint64_t small = gpuhal_buffer_address(first), large = gpuhal_buffer_address(second);
    gpuhal_mutex_lock(&pool->mutex); /* a call that locks the mutex would hang */
    for (int i = 0; i < 100; i++) {
        gpuhal_buffer_release(second);
        gpuhal_buffer_release(first);
        first = take(pool, queue, 1000);
        assert_int_equal(((gpuhal_part *)first)->home->changes % 2, 0); /* no change is in progress */
        second = take(pool, queue, 5000);
        assert_int_equal(gpuhal_buffer_address(first), small);
        assert_int_equal(gpuhal_buffer_address(second), large);
    }
    const gpuhal_pool_statistics state = state_of(pool);
    gpuhal_mutex_unlock(&pool->mutex);
    assert_int_equal(state.buffers.total_in, 202);
    assert_int_equal(state.buffers.total_out, 200);
    assert_int_equal(state.requested.total_in, 101 * 6000);
    assert_int_equal(state.used.current, 1024 + 5120);
    assert_int_equal(state.used.peak, 1024 + 5120);
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(second);
    assert_int_equal(state_of(pool).buffers.current, 0);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(sizes_that_a_queue_asks_for_no_more_make_room_for_later_ones)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *old[12];
    for (uint64_t i = 0; i < 12; i++) {
        old[i] = take(pool, queue, (i + 1) * UNIT);
    }
    for (int i = 0; i < 12; i++) {
        gpuhal_buffer_release(old[i]);
    }
    for (int i = 0; i < 12; i++) {
        gpuhal_buffer_release(take(pool, queue, 20 * UNIT));
    }
    gpuhal_mutex_lock(&pool->mutex); /* a call that locks the mutex would hang */
    gpuhal_buffer_release(take(pool, queue, 20 * UNIT));
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

/* There are more queues than slots, so some lanes are only in the list. Lanes of later queues use the slots of
 * destroyed queues. */
TEST(each_of_many_queues_gets_its_own_released_buffers)
{
    enum { MANY = GPUHAL_LANE_SLOTS + 100 };
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queues[MANY];
    gpuhal_buffer *buffers[MANY];
    uint64_t addresses[MANY];
    for (int i = 0; i < MANY; i++) {
        queues[i] = queue_or_fail(gpu);
    }
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < MANY; i++) {
            buffers[i] = take(pool, queues[i], UNIT);
            addresses[i] = gpuhal_buffer_address(buffers[i]);
        }
        for (int i = 0; i < MANY; i++) {
            gpuhal_buffer_release(buffers[i]);
        }
        gpuhal_mutex_lock(&pool->mutex);
        for (int i = 0; i < MANY; i++) {
            buffers[i] = take(pool, queues[i], UNIT);
            assert_int_equal(gpuhal_buffer_address(buffers[i]), addresses[i]);
        }
        gpuhal_mutex_unlock(&pool->mutex);
        for (int i = 0; i < MANY; i++) {
            gpuhal_buffer_release(buffers[i]);
        }
        for (int i = 0; i < MANY && round < 3; i += 2) {
            gpuhal_queue_destroy(queues[i]);
            queues[i] = queue_or_fail(gpu);
        }
    }
    uint32_t led = 0, taken = 0; /* no slot points to a lane that is found only in the list */
    for (const gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        led += lane->slot && *lane->slot == lane;
    }
    for (uint32_t i = 0; i < GPUHAL_LANE_SLOTS; i++) {
        taken += pool->slots[i] != NULL;
    }
    assert_true(taken > 0);
    assert_int_equal(led, taken);
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    assert_int_equal(state_of(pool).reserved.current, 0);
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    gpuhal_lane *last = pool->keeping; /* lanes that keep nothing are not visited */
    assert_null(last->keeping);
    for (int i = 0; i < MANY; i++) {
        gpuhal_queue_destroy(queues[i]);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

TEST(kept_memory_goes_to_a_request_that_finds_no_other)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 8 * UNIT});
    gpuhal_queue *one = queue_or_fail(gpu), *other = queue_or_fail(gpu);
    use_at_once(pool, one, UNIT, 8);
    gpuhal_buffer_release(take(pool, one, 8 * UNIT));  /* larger, same queue */
    use_at_once(pool, one, UNIT, 8);
    gpuhal_buffer_release(take(pool, other, 8 * UNIT)); /* of another queue */
    use_at_once(pool, one, UNIT, 8);
    gpuhal_buffer_release(take(pool, NULL, 8 * UNIT)); /* without a queue */
    use_at_once(pool, other, UNIT, 8);
    gpuhal_queue_destroy(other);
    gpuhal_buffer_release(take(pool, one, 8 * UNIT)); /* the queue is destroyed */
    use_at_once(pool, one, UNIT, 8);
    uint64_t freed = 0;
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, 8 * UNIT);
    assert_int_equal(state_of(pool).reserved.current, 0);
    use_at_once(pool, one, UNIT, 8);
    gpuhal_queue_destroy(one);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

/* The event covers all memory that the queue released earlier, whether a lane keeps the memory or not. */
TEST(a_queue_behind_an_event_gets_memory_kept_before_it_and_not_later)
{
    for (int later = 0; later < 2; later++) {
        gpuhal *gpu = open_one();
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = UNIT,
                                                                 .flags = GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES});
        gpuhal_queue *one = queue_or_fail(gpu), *other = queue_or_fail(gpu);
        gpuhal_event *gate = close_gate(gpu, one), *event = NULL;
        gpuhal_buffer *buffer = take(pool, one, UNIT);
        assert_ok(gpuhal_fill(one, buffer, 0, UNIT, 1, 1));
        assert_ok(gpuhal_event_create(gpu, 0, &event));
        if (later) {
            assert_ok(gpuhal_event_record(event, one));
            assert_ok(gpuhal_fill(one, buffer, 0, UNIT, 2, 1));
        }
        gpuhal_buffer_release(buffer);
        if (!later) {
            assert_ok(gpuhal_event_record(event, one));
        }
        assert_ok(gpuhal_queue_wait(other, event));
        assert_int_equal(attempt(pool, other, UNIT, GPUHAL_ALLOCATE_NO_WAIT, 0),
                         later ? GPUHAL_ERROR_OUT_OF_MEMORY : GPUHAL_OK);
        open_gate(gate);
        gpuhal_event_destroy(event);
        gpuhal_queue_destroy(one);
        gpuhal_queue_destroy(other);
        gpuhal_pool_destroy(pool);
        gpuhal_close(gpu);
        expect_nothing_left();
    }
}

TEST(a_buffer_that_another_queue_used_is_kept_by_none)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *one = queue_or_fail(gpu), *other = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, other);
    gpuhal_buffer *buffer = take(pool, one, UNIT);
    const uint64_t address = gpuhal_buffer_address(buffer);
    assert_ok(gpuhal_fill(other, buffer, 0, UNIT, 1, 1));
    gpuhal_buffer_release(buffer);
    buffer = take(pool, one, UNIT);
    assert_true(gpuhal_buffer_address(buffer) != address);
    open_gate(gate);
    gpuhal_buffer_release(buffer);
    gpuhal_queue_destroy(one);
    gpuhal_queue_destroy(other);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

/* Only the search can find the memory, since the pool's flags exclude completed work and queue waits. */
TEST(memory_that_a_callback_releases_is_found_although_its_queue_keeps_it)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 4 * UNIT,
                                                             .flags = GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC |
                                                                      GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *buffer = take(pool, queue, 3 * UNIT);
    assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(gpu, 0), 0, release_it, &buffer));
    assert_ok(attempt(pool, queue, 4 * UNIT, 0, 0));
    assert_null(buffer);
    assert_ok(gpuhal_device_off_pressure(gpuhal_device_at(gpu, 0), release_it, &buffer));
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_buffer_that_outlives_its_pool_is_kept_by_no_queue_that_uses_it_later)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *buffer = take(pool, NULL, UNIT);
    gpuhal_pool_destroy(pool);
    assert_ok(gpuhal_fill(queue, buffer, 0, UNIT, 1, 1));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    gpuhal_buffer_release(buffer);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    expect_nothing_left();
}

static bool has_live_queue(const gpuhal_lane *lane)
{
    return lane->queue && !gpuhal_queue_has_finished(lane->queue);
}

TEST(kept_memory_of_a_destroyed_queue_leaves_its_place_to_others)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    use_at_once(pool, queue, UNIT, 16); /* lets the pool keep up to 16 buffers in all */
    for (int i = 0; i < 10; i++) {
        gpuhal_queue_destroy(queue);
        while (has_live_queue(pool->lanes)) {
            sched_yield();
        }
        queue = queue_or_fail(gpu);
        gpuhal_buffer_release(take(pool, queue, UNIT));
    }
    assert_null(pool->lanes->next);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

TEST(a_pool_with_keep_bytes_gives_its_segment_back_with_the_last_release)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.keep_bytes = 1});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer_release(take(pool, queue, SEGMENT / 8));
    assert_int_equal(state_of(pool).reserved.current, 0);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

/* After each call, the totals and peaks must equal those that the test counts itself. */
TEST(figures_are_those_of_a_pool_that_keeps_nothing)
{
    enum { QUEUES = 3, SIZES = 4, MOST = 24, STEPS = 20000 };
    static const uint64_t sizes[SIZES] = {100, UNIT, 1000, 3 * UNIT};
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queues[QUEUES + 1] = {NULL};
    gpuhal_buffer *buffers[MOST];
    uint64_t bytes[MOST], in[3] = {0}, out[3] = {0}, peak[3] = {0};
    uint32_t count = 0, random = 7;
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = queue_or_fail(gpu);
    }
    for (int step = 0; step < STEPS; step++) {
        random = random * 1103515245u + 12345u;
        const uint32_t which = random >> 8;
        const bool takes = count == 0 || (count < MOST && random >> 31);
        const uint32_t at = takes ? count : which % count;
        bytes[at] = takes ? sizes[which % SIZES] : bytes[at];
        const uint64_t each[3] = {(bytes[at] + UNIT - 1) / UNIT * UNIT, bytes[at], 1};
        for (int i = 0; i < 3; i++) {
            *(takes ? &in[i] : &out[i]) += each[i];
            peak[i] = in[i] - out[i] > peak[i] ? in[i] - out[i] : peak[i];
        }
        if (takes) {
            buffers[count++] = take(pool, queues[which / SIZES % (QUEUES + 1)], bytes[at]);
        } else {
            gpuhal_buffer_release(buffers[at]);
            buffers[at] = buffers[--count];
            bytes[at] = bytes[count];
        }
        const gpuhal_pool_statistics state = state_of(pool);
        const gpuhal_pool_amount *const amounts[3] = {&state.used, &state.requested, &state.buffers};
        for (int i = 0; i < 3; i++) {
            assert_int_equal(amounts[i]->total_in, in[i]);
            assert_int_equal(amounts[i]->total_out, out[i]);
            assert_int_equal(amounts[i]->peak, peak[i]);
        }
    }
    while (count > 0) {
        gpuhal_buffer_release(buffers[--count]);
    }
    for (int i = 0; i < QUEUES; i++) {
        gpuhal_queue_destroy(queues[i]);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

/* The difference between block sizes and requested sizes may be larger for kept blocks than it ever was for blocks in
 * use. */
TEST(kept_memory_makes_no_peak_of_used_bytes_on_its_own)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    use_at_once(pool, queue, 16 * UNIT, 1);
    use_at_once(pool, queue, 1, 8);
    use_at_once(pool, queue, UNIT + 1, 7);
    gpuhal_buffer_release(take(pool, queue, 2 * UNIT + 1));
    assert_int_equal(state_of(pool).used.peak, 16 * UNIT);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

/* ---- threads */

enum { THREADS = 4, ROUNDS = 20000 };

typedef struct shared {
    gpuhal_pool *pool;
    gpuhal_queue *queues[THREADS];
    _Atomic uint32_t next;
    _Atomic bool stop;
} shared;

/* Each thread writes its number into its buffers through the host, and checks it before it releases a buffer. */
static void *work(void *user)
{
    shared *c = user;
    const uint32_t number = atomic_fetch_add(&c->next, 1);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        gpuhal_buffer *held[3];
        for (uint32_t i = 0; i < 3; i++) {
            /* sometimes uses another thread's queue, at the same time as that thread */
            gpuhal_queue *queue = c->queues[round % 7 == 0 ? (number + 1) % THREADS : number];
            held[i] = take(c->pool, queue, (i + 1) * UNIT);
            memset(gpuhal_buffer_host(held[i]), (int)number + 1, (i + 1) * UNIT);
        }
        for (uint32_t i = 0; i < 3; i++) {
            const unsigned char *host = gpuhal_buffer_host(held[i]);
            assert_true(host[0] == number + 1 && host[(i + 1) * UNIT - 1] == number + 1);
            gpuhal_buffer_release(held[i]);
        }
    }
    return NULL;
}

static void *watch(void *user)
{
    shared *c = user;
    while (!atomic_load(&c->stop)) {
        gpuhal_pool_statistics state = {.size = sizeof state};
        assert_ok(gpuhal_pool_get_statistics(c->pool, &state));
        assert_true(state.used.current <= THREADS * 6 * UNIT && state.used.peak <= THREADS * 6 * UNIT);
        assert_true(state.buffers.current <= THREADS * 3);
        (void)gpuhal_pool_trim(c->pool, 0, NULL);
    }
    return NULL;
}

static void *take_turns(void *user)
{
    shared *c = user;
    gpuhal_buffer *buffer = NULL;
    for (uint32_t round = 0; !atomic_load(&c->stop); round++) {
        gpuhal_buffer_release(buffer);
        buffer = take(c->pool, c->queues[round % 2], UNIT);
        for (uint32_t i = 0; i < 50000; i++) {
            (void)atomic_load(&c->stop);
        }
    }
    gpuhal_buffer_release(buffer);
    return NULL;
}

TEST(figures_of_lanes_that_change_now_and_then_are_of_one_moment)
{
    enum { READS = 20000, BETWEEN = 200 };
    gpuhal_queue *between[BETWEEN];
    shared c = {.pool = NULL};
    pthread_t thread;
    gpuhal *gpu = open_one();
    c.pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    c.queues[0] = queue_or_fail(gpu);
    use_at_once(c.pool, c.queues[0], UNIT, 2); /* each lane may keep one buffer */
    for (int i = 0; i < BETWEEN; i++) { /* a reader visits these lanes between the lanes of the two queues */
        between[i] = queue_or_fail(gpu);
        gpuhal_buffer_release(take(c.pool, between[i], UNIT));
    }
    c.queues[1] = queue_or_fail(gpu);
    assert_int_equal(pthread_create(&thread, NULL, take_turns, &c), 0);
    uint32_t wrong = 0;
    uint64_t round = 0; /* if the thread is interrupted, readings of the same round count once */
    for (int i = 0; i < READS; i++) {
        gpuhal_pool_statistics state = {.size = sizeof state};
        assert_ok(gpuhal_pool_get_statistics(c.pool, &state));
        const bool adds_up = state.buffers.current <= 1 && state.used.current == state.buffers.current * UNIT;
        wrong += !adds_up && state.buffers.total_in != round;
        round = adds_up ? round : state.buffers.total_in;
    }
    atomic_store(&c.stop, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < BETWEEN; i++) {
        gpuhal_queue_destroy(between[i]);
    }
    assert_true(wrong <= READS / 100); /* allows for a reader that is interrupted at its last attempt */
    gpuhal_queue_destroy(c.queues[0]);
    gpuhal_queue_destroy(c.queues[1]);
    gpuhal_pool_destroy(c.pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(threads_with_queues_of_their_own_never_have_the_same_memory)
{
    shared c = {.pool = NULL};
    pthread_t threads[THREADS], watcher;
    gpuhal *gpu = open_one();
    c.pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    for (int i = 0; i < THREADS; i++) {
        c.queues[i] = queue_or_fail(gpu);
    }
    assert_int_equal(pthread_create(&watcher, NULL, watch, &c), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, &c), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&c.stop, true);
    pthread_join(watcher, NULL);
    const gpuhal_pool_statistics state = state_of(c.pool);
    assert_int_equal(state.buffers.current, 0);
    assert_int_equal(state.buffers.total_in, THREADS * ROUNDS * 3);
    assert_int_equal(state.requested.total_out, THREADS * ROUNDS * 6 * UNIT);
    for (int i = 0; i < THREADS; i++) {
        gpuhal_queue_destroy(c.queues[i]);
    }
    gpuhal_pool_destroy(c.pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

#include "test_main.h"
