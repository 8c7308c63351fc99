/* A pool's list of memory that waits for the end of work, as a thread that waits for the oldest entry finds it.
 */
#include "pool_support.h"

#include "pool/pool.h"

/* The buffer's work waits for a gate. */
static void release_behind_work(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_buffer *buffer = take(pool, queue, bytes);
    assert_ok(gpuhal_fill(queue, buffer, 0, bytes, 1, 1));
    gpuhal_buffer_release(buffer);
}

TEST(what_waits_for_work_of_queues_is_in_order_and_a_wait_reads_what_it_is_for)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.keep_bytes = 4 * SEGMENT}); /* lanes keep nothing */
    gpuhal_queue *queues[2] = {queue_or_fail(gpu), queue_or_fail(gpu)};
    gpuhal_event *gates[2];
    for (int i = 0; i < 2; i++) {
        gates[i] = close_gate(gpu, queues[i]);
        release_behind_work(pool, queues[i], SEGMENT / 4);
    }
    const uint64_t newest = gpuhal_pool_part_lanes(pool, NULL, 1);
    gpuhal_mutex_lock(&pool->mutex);
    uint64_t before = 0;
    int count = 0;
    for (const gpuhal_pending *pending = pool->pending; pending; pending = pending->next) {
        assert_false(pending->recording);
        assert_true(pending->number > before);
        before = pending->number;
        count++;
    }
    gpuhal_mutex_unlock(&pool->mutex);
    assert_int_equal(count, 2);
    assert_int_equal(before, newest);
    for (int i = 0; i < 2; i++) {
        open_gate(gates[i]);
        gpuhal_queue_destroy(queues[i]);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

TEST(what_a_queue_takes_behind_an_event_may_be_waited_for_by_others)
{
    gpuhal *gpu = open_one();
    const uint32_t flags = GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC | GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES;
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT, .flags = flags});
    gpuhal_queue *first = queue_or_fail(gpu), *second = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, first), *event = NULL;
    assert_ok(gpuhal_event_create(gpu, 0, &event));
    release_behind_work(pool, first, SEGMENT);
    assert_ok(gpuhal_event_record(event, first));
    assert_ok(gpuhal_queue_wait(second, event));
    gpuhal_buffer *buffer = take(pool, second, SEGMENT);
    gpuhal_mutex_lock(&pool->mutex);
    assert_non_null(pool->pending);
    assert_false(pool->pending->recording);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_buffer_release(buffer);
    open_gate(gate);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(first);
    gpuhal_queue_destroy(second);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

#include "test_main.h"
