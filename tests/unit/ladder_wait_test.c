/* The time that a pool's allocation waits for memory that queued work uses. Other threads may take the memory first, or
 * the work of several queues may have to end. */
#include "unit/ladder_support.h"

#include "pool/pool.h"

typedef struct relay {
    gpuhal_pool *pool;
    gpuhal_queue *queue;
    gpuhal_event *gate, *later;
    uint64_t bytes;
} relay;

/* A thread that takes the memory first. Its queue reuses the memory before the work has ended, and the memory becomes
 * free again only after later work of that queue. */
static void *take_first(void *user)
{
    const relay *own = user;
    usleep(30000);
    gpuhal_buffer *buffer = take(own->pool, own->queue, own->bytes);
    assert_ok(gpuhal_queue_wait(own->queue, own->later));
    assert_ok(gpuhal_fill(own->queue, buffer, 0, own->bytes, 1, 1));
    gpuhal_buffer_release(buffer);
    open_gate(own->gate);
    usleep(30000);
    open_gate(own->later);
    return NULL;
}

/* Releases a buffer of `bytes` while the queue's work on it waits for a gate. */
static gpuhal_event *release_behind_work(gpuhal *gpu, gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_buffer *buffer = take(pool, queue, bytes);
    gpuhal_event *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_fill(queue, buffer, 0, bytes, 1, 1));
    gpuhal_buffer_release(buffer);
    return gate;
}

TEST(an_allocation_waits_on_if_another_thread_has_the_memory_behind_later_work)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    gpuhal_queue *queue = queue_or_fail(gpu);
    pthread_t thread;
    relay own = {.pool = pool, .queue = queue, .bytes = LADDER_LIMIT};
    own.gate = release_behind_work(gpu, pool, queue, LADDER_LIMIT);
    assert_ok(gpuhal_event_create(gpu, GPUHAL_EVENT_HOST, &own.later));
    assert_int_equal(pthread_create(&thread, NULL, take_first, &own), 0);
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, 0, PATIENCE_NS), GPUHAL_OK);
    pthread_join(thread, NULL);
    gpuhal_queue_destroy(queue);
    end_ladder(gpu, pool);
}

/* Memory that two queues use. The memory becomes free after work of `other` and then work of `home`. */
typedef struct shared {
    gpuhal_queue *home, *other;
    gpuhal_event *home_gate, *other_gate;
} shared;

static shared share_memory(gpuhal *gpu, gpuhal_pool *pool, uint64_t bytes)
{
    shared s = {.home = queue_or_fail(gpu), .other = queue_or_fail(gpu)};
    gpuhal_buffer *buffer = take(pool, s.home, bytes);
    s.home_gate = close_gate(gpu, s.home);
    s.other_gate = close_gate(gpu, s.other);
    assert_ok(gpuhal_fill(s.home, buffer, 0, bytes, 1, 1));
    assert_ok(gpuhal_fill(s.other, buffer, 0, bytes, 1, 1));
    gpuhal_buffer_release(buffer);
    return s;
}

static void end_sharing(shared *s)
{
    gpuhal_queue_destroy(s->other);
    gpuhal_queue_destroy(s->home);
}

static void *open_one_after_the_other(void *user)
{
    const shared *s = user;
    usleep(30000);
    open_gate(s->other_gate);
    usleep(30000);
    open_gate(s->home_gate);
    return NULL;
}

TEST(an_allocation_waits_for_all_queues_of_memory_that_is_behind_one_after_the_other)
{
    static const uint32_t flags[] = {0, GPUHAL_ALLOCATE_WITHIN_POOL};
    for (int i = 0; i < 2; i++) {
        gpuhal *gpu = open_one();
        gpuhal_pool *pool = limited_pool(gpu);
        shared s = share_memory(gpu, pool, LADDER_LIMIT);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, open_one_after_the_other, &s), 0);
        assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, flags[i], PATIENCE_NS), GPUHAL_OK);
        pthread_join(thread, NULL);
        end_sharing(&s);
        end_ladder(gpu, pool);
    }
}

TEST(an_allocation_that_waits_takes_memory_over_that_went_behind_work_of_another_queue)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    gpuhal_queue *queue = queue_or_fail(gpu);
    shared s = share_memory(gpu, pool, LADDER_LIMIT);
    opener own;
    begin_opening(&own, s.other_gate);
    assert_int_equal(attempt(pool, queue, LADDER_LIMIT, 0, PATIENCE_NS), GPUHAL_OK); /* the memory's queue is busy */
    pthread_join(own.thread, NULL);
    open_gate(s.home_gate);
    gpuhal_queue_destroy(queue);
    end_sharing(&s);
    end_ladder(gpu, pool);
}

/* Free memory in other segments counts as well, since a larger segment can replace a segment that becomes free. */
TEST(an_allocation_waits_on_for_a_segment_in_whose_place_a_larger_one_fits)
{
    for (int of_device = 0; of_device < 2; of_device++) {
        gpuhal *gpu = open_one();
        gpuhal_pool *pool = pool_or_fail(
            gpu, (gpuhal_pool_desc){.limit_bytes = of_device ? 0 : LADDER_LIMIT, .segment_bytes = LADDER_LIMIT / 2});
        gpuhal_buffer_release(take(pool, NULL, LADDER_LIMIT / 2));
        assert_ok(gpuhal_device_limit_memory(gpuhal_device_at(gpu, 0), of_device ? LADDER_LIMIT : 0));
        shared s = share_memory(gpu, pool, LADDER_LIMIT / 2);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, open_one_after_the_other, &s), 0);
        assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, 0, PATIENCE_NS), GPUHAL_OK);
        pthread_join(thread, NULL);
        end_sharing(&s);
        end_ladder(gpu, pool);
    }
}

TEST(an_allocation_does_not_wait_on_for_work_whose_end_does_not_suffice)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    gpuhal_buffer_release(take(pool, NULL, LADDER_LIMIT)); /* a segment of that size */
    gpuhal_buffer *used = take(pool, NULL, UNIT);
    shared s = share_memory(gpu, pool, LADDER_LIMIT - UNIT);
    opener own;
    const uint64_t begun_ns = gpuhal_os_monotonic_ns();
    begin_opening(&own, s.other_gate);
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, 0, PATIENCE_NS), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(gpuhal_os_monotonic_ns() - begun_ns < PATIENCE_NS / 2);
    assert_int_equal(report_or_fail().ordered_bytes, LADDER_LIMIT - UNIT);
    pthread_join(own.thread, NULL);
    open_gate(s.home_gate);
    gpuhal_buffer_release(used);
    end_sharing(&s);
    end_ladder(gpu, pool);
}

TEST(an_allocation_that_waits_on_ends_at_its_deadline)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    shared s = share_memory(gpu, pool, LADDER_LIMIT);
    opener own;
    const uint64_t begun_ns = gpuhal_os_monotonic_ns(), timeout_ns = 200000000;
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, GPUHAL_ALLOCATE_NO_WAIT, PATIENCE_NS),
                     GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(report_or_fail().rungs[GPUHAL_RUNG_WAIT].tries, 0);
    assert_true(gpuhal_os_monotonic_ns() - begun_ns < PATIENCE_NS / 2);
    begin_opening(&own, s.other_gate);
    const uint64_t waits_ns = gpuhal_os_monotonic_ns();
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, 0, timeout_ns), GPUHAL_ERROR_OUT_OF_MEMORY);
    const uint64_t waited_ns = gpuhal_os_monotonic_ns() - waits_ns;
    assert_true(waited_ns >= timeout_ns && waited_ns < PATIENCE_NS / 2);
    pthread_join(own.thread, NULL);
    open_gate(s.home_gate);
    end_sharing(&s);
    end_ladder(gpu, pool);
}

TEST(a_caller_waits_on_if_free_and_pending_memory_suffice_together)
{
    const uint64_t deadline_ns = gpuhal_os_monotonic_ns() + PATIENCE_NS;
    gpuhal_shortage shortage = {.bytes = 10, .ordered_bytes = 4, .free_bytes = 5, .left_bytes = 1};
    assert_true(gpuhal_ladder_waits_on(&shortage, deadline_ns, deadline_ns));
    shortage.free_bytes = 4;
    assert_false(gpuhal_ladder_waits_on(&shortage, deadline_ns, deadline_ns));
    shortage.left_bytes = 2;
    assert_true(gpuhal_ladder_waits_on(&shortage, deadline_ns, deadline_ns));
    assert_false(gpuhal_ladder_waits_on(&shortage, deadline_ns, deadline_ns + 1));
}

TEST(a_caller_waits_alone_for_half_of_its_time_and_at_most_a_second)
{
    const uint64_t minute_ns = UINT64_C(60000000000), second_ns = 1000000000;
    uint64_t before_ns = gpuhal_os_monotonic_ns();
    uint64_t ends_ns = gpuhal_ladder_patience(before_ns + 60 * minute_ns);
    assert_in_range(ends_ns, before_ns + second_ns, gpuhal_os_monotonic_ns() + second_ns);
    before_ns = gpuhal_os_monotonic_ns(); /* the call below computes half of the time from a later moment */
    ends_ns = gpuhal_ladder_patience(before_ns + second_ns);
    const uint64_t after_ns = gpuhal_os_monotonic_ns();
    if (after_ns < before_ns + second_ns) {
        assert_in_range(ends_ns, before_ns + second_ns / 2, after_ns + (before_ns + second_ns - after_ns) / 2 + 1);
    }
    assert_int_equal(gpuhal_ladder_patience(before_ns), before_ns);
}

#include "test_main.h"
