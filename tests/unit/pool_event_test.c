/* Pools, and queues that wait for an event of the application. Memory that was released before the event may be used
 * after the wait. */
#include "pool_support.h"

/* Two queues. The first queue's work uses all of the pool's memory and is blocked. */
typedef struct pair {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_queue *first, *second;
    gpuhal_event *gate, *event;
} pair;

enum { ONLY_EVENTS = GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC | GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES };

static pair begin_pair(uint32_t flags)
{
    pair p = {.gpu = open_one()};
    p.pool = pool_or_fail(p.gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT, .flags = flags});
    p.first = queue_or_fail(p.gpu);
    p.second = queue_or_fail(p.gpu);
    p.gate = close_gate(p.gpu, p.first);
    assert_ok(gpuhal_event_create(p.gpu, 0, &p.event));
    return p;
}

static void end_pair(pair *p)
{
    gpuhal_event_destroy(p->event);
    gpuhal_queue_destroy(p->first);
    gpuhal_queue_destroy(p->second);
    gpuhal_pool_destroy(p->pool);
    gpuhal_close(p->gpu);
    expect_nothing_left_soon();
}

static void use_and_release(const pair *p, uint64_t bytes, unsigned char *got)
{
    gpuhal_buffer *buffer = take(p->pool, p->first, bytes);
    assert_ok(gpuhal_fill(p->first, buffer, 0, bytes, 0x11, 1));
    assert_ok(gpuhal_read(p->first, got, buffer, 0, bytes));
    gpuhal_buffer_release(buffer);
}

TEST(memory_released_before_an_event_goes_to_the_queue_that_waits_for_it)
{
    static unsigned char of_first[SEGMENT], of_second[SEGMENT];
    pair p = begin_pair(ONLY_EVENTS);
    use_and_release(&p, SEGMENT, of_first);
    assert_int_equal(attempt(p.pool, p.second, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_event_record(p.event, p.first));
    assert_int_equal(attempt(p.pool, p.second, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_queue_wait(p.second, p.event));
    gpuhal_buffer *buffer = take(p.pool, p.second, SEGMENT);
    assert_ok(gpuhal_fill(p.second, buffer, 0, SEGMENT, 0x22, 1));
    assert_ok(gpuhal_read(p.second, of_second, buffer, 0, SEGMENT));
    open_gate(p.gate);
    assert_ok(gpuhal_queue_synchronize(p.first, PATIENCE_NS));
    assert_ok(gpuhal_queue_synchronize(p.second, PATIENCE_NS));
    for (size_t i = 0; i < SEGMENT; i++) {
        assert_int_equal(of_first[i], 0x11);
        assert_int_equal(of_second[i], 0x22);
    }
    gpuhal_buffer_release(buffer);
    end_pair(&p);
}

TEST(memory_released_after_the_event_stays_with_its_queue)
{
    static unsigned char got[2][SEGMENT];
    pair p = begin_pair(ONLY_EVENTS);
    gpuhal_buffer *apart = NULL;
    use_and_release(&p, SEGMENT / 4, got[0]);
    gpuhal_buffer *early = take(p.pool, p.first, SEGMENT / 4), *between = take(p.pool, p.first, UNIT);
    gpuhal_buffer *late = take(p.pool, p.first, SEGMENT / 2);
    assert_ok(gpuhal_fill(p.first, early, 0, SEGMENT / 4, 1, 1));
    gpuhal_buffer_release(early);
    assert_ok(gpuhal_event_record(p.event, p.first));
    assert_ok(gpuhal_fill(p.first, late, 0, SEGMENT / 2, 1, 1));
    gpuhal_buffer_release(late);
    assert_ok(gpuhal_queue_wait(p.second, p.event));
    assert_int_equal(attempt(p.pool, p.second, SEGMENT / 2, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_pool_allocate(p.pool, p.second, SEGMENT / 4, 0, 0, &apart));
    /* memory that was released after the event is available only to its own queue */
    assert_int_equal(attempt(p.pool, p.first, SEGMENT / 2, 0, 0), GPUHAL_OK);
    open_gate(p.gate);
    gpuhal_buffer_release(apart);
    gpuhal_buffer_release(between);
    end_pair(&p);
}

/* Once the other queue's work has ended, the memory belongs to its home queue again. The event still covers the memory,
 * because the memory was released before the event. */
TEST(memory_that_another_queue_used_too_is_given_behind_an_event_after_its_release)
{
    pair p = begin_pair(ONLY_EVENTS);
    gpuhal_queue *third = queue_or_fail(p.gpu);
    gpuhal_event *gate = close_gate(p.gpu, third);
    gpuhal_buffer *buffer = take(p.pool, p.first, SEGMENT);
    assert_ok(gpuhal_fill(p.first, buffer, 0, SEGMENT, 0x11, 1));
    assert_ok(gpuhal_fill(third, buffer, 0, SEGMENT, 0x33, 1));
    gpuhal_buffer_release(buffer);
    assert_ok(gpuhal_event_record(p.event, p.first));
    assert_ok(gpuhal_queue_wait(p.second, p.event));
    assert_int_equal(attempt(p.pool, p.second, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(third, PATIENCE_NS));
    assert_ok(gpuhal_maintain(p.gpu, 1));
    assert_ok(attempt(p.pool, p.second, SEGMENT, 0, 0));
    open_gate(p.gate);
    gpuhal_queue_destroy(third);
    end_pair(&p);
}

TEST(with_its_flag_event_dependencies_are_not_followed)
{
    static unsigned char got[SEGMENT];
    pair p = begin_pair(ONLY_EVENTS | GPUHAL_POOL_NO_REUSE_FOLLOW_EVENT_DEPENDENCIES);
    use_and_release(&p, SEGMENT, got);
    assert_ok(gpuhal_event_record(p.event, p.first));
    assert_ok(gpuhal_queue_wait(p.second, p.event));
    assert_int_equal(attempt(p.pool, p.second, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    open_gate(p.gate);
    end_pair(&p);
}

TEST(an_event_of_a_third_queue_or_of_the_host_gives_nothing)
{
    static unsigned char got[SEGMENT];
    pair p = begin_pair(ONLY_EVENTS);
    gpuhal_queue *third = queue_or_fail(p.gpu);
    gpuhal_event *host = NULL;
    use_and_release(&p, SEGMENT, got);
    assert_ok(gpuhal_event_create(p.gpu, GPUHAL_EVENT_HOST, &host));
    assert_ok(gpuhal_event_record(p.event, third));
    assert_ok(gpuhal_queue_wait(p.second, p.event));
    assert_ok(gpuhal_queue_wait(p.second, host));
    assert_int_equal(attempt(p.pool, p.second, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    open_gate(host);
    open_gate(p.gate);
    gpuhal_queue_destroy(third);
    end_pair(&p);
}

/* Each queue keeps timepoints of the other queues until its own end. */
TEST(queues_that_wait_for_each_other_many_times_all_come_to_their_end)
{
    enum { QUEUES = 12 };
    gpuhal *gpu = open_one();
    gpuhal_queue *queues[QUEUES];
    gpuhal_event *event = NULL;
    assert_ok(gpuhal_event_create(gpu, 0, &event));
    for (int i = 0; i < QUEUES; i++) {
        queues[i] = queue_or_fail(gpu);
    }
    for (int i = 0; i < QUEUES; i++) {
        assert_ok(gpuhal_event_record(event, queues[i]));
        for (int k = 0; k < QUEUES; k++) {
            assert_ok(gpuhal_queue_wait(queues[k], event));
        }
    }
    for (int i = 0; i < QUEUES; i++) {
        gpuhal_queue_destroy(queues[i]);
    }
    gpuhal_event_destroy(event);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

#include "test_main.h"
