/* A pool's list of memory that waits for the end of work, while a thread waits for the oldest entry. */
#include "pool_support.h"

#include "pool/pool.h"

#include <pthread.h>
#include <unistd.h>

/* Releases a buffer while the work on it waits for a gate. */
static void release_behind_work(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_buffer *buffer = take(pool, queue, bytes);
    assert_ok(gpuhal_fill(queue, buffer, 0, bytes, 1, 1));
    gpuhal_buffer_release(buffer);
}

TEST(pending_releases_are_in_order_and_complete_when_a_wait_reads_them)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.keep_bytes = 4 * SEGMENT}); /* no kept buffers */
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

TEST(others_may_wait_for_memory_that_a_queue_takes_behind_an_event)
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

typedef struct enqueuer {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_queue *queue;
    gpuhal_event *gate, *never;
} enqueuer;

static bool waits_behind_an_event(gpuhal_pool *pool)
{
    gpuhal_mutex_lock(&pool->mutex);
    const bool waits = pool->pending && !pool->pending->recording;
    gpuhal_mutex_unlock(&pool->mutex);
    return waits;
}

static void *enqueue_later(void *user)
{
    enqueuer *own = user;
    bool waits = false;
    for (int i = 0; i < 20000 && !waits; i++) {
        usleep(1000);
        waits = waits_behind_an_event(own->pool);
    }
    assert_true(waits);
    own->never = close_gate(own->gpu, own->queue);
    open_gate(own->gate);
    return NULL;
}

TEST(a_buffer_does_not_wait_for_later_work_of_the_queue_that_has_a_segment)
{
    enqueuer own = {.gpu = open_one()};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = SEGMENT, .timeout_ns = PATIENCE_NS};
    gpuhal_device *device = gpuhal_device_at(own.gpu, 0);
    gpuhal_buffer *buffer = NULL;
    pthread_t thread;
    assert_ok(gpuhal_device_limit_memory(device, SEGMENT));
    own.pool = pool_or_fail(own.gpu, (gpuhal_pool_desc){0});
    own.queue = queue_or_fail(own.gpu);
    own.gate = close_gate(own.gpu, own.queue);
    release_behind_work(own.pool, own.queue, SEGMENT);
    assert_int_equal(pthread_create(&thread, NULL, enqueue_later, &own), 0);
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    pthread_join(thread, NULL);
    gpuhal_buffer_release(buffer);
    open_gate(own.never);
    gpuhal_queue_destroy(own.queue);
    gpuhal_pool_destroy(own.pool);
    gpuhal_close(own.gpu);
    expect_nothing_left_soon();
}

#include "test_main.h"
