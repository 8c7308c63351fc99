/* Statistics of pools and devices. */
#include "pool/pool.h"
#include "pool_support.h"

#include <pthread.h>
#include <stdatomic.h>

static gpuhal_memory_statistics memory_of(gpuhal *gpu)
{
    gpuhal_memory_statistics memory = {.size = sizeof memory};
    assert_ok(gpuhal_device_get_memory_statistics(gpuhal_device_at(gpu, 0), &memory));
    return memory;
}

TEST(the_figures_of_a_pool_are_read_while_another_call_has_its_lock_and_changes_it)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *buffer = take(pool, NULL, 100);
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_pool_begin_change(pool);
    assert_int_equal(state_of(pool).used.current, UNIT);
    assert_int_equal(memory_of(gpu).used_bytes, UNIT);
    gpuhal_pool_end_change(pool);
    assert_int_equal(state_of(pool).requested.current, 100);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_buffer_release(buffer);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

static void expect_published(gpuhal_pool *pool)
{
    const gpuhal_pool_statistics state = state_of(pool);
    uint64_t unused = 0;
    gpuhal_mutex_lock(&pool->mutex);
    for (gpuhal_block_id id = 1; id < pool->blocks.touched; id++) {
        const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
        const bool whole = block->bytes > 0 && block->bins == pool->common && !block->before && !block->after;
        unused += whole ? block->bytes : 0;
    }
    assert_int_equal(state.free_bytes, gpuhal_bins_free_bytes(pool->common));
    assert_int_equal(state.unused_segment_bytes, unused);
    assert_int_equal(state.segments, pool->segment_count);
    const uint64_t largest = gpuhal_bins_largest(&pool->blocks, pool->common);
    gpuhal_mutex_unlock(&pool->mutex);
    assert_true(state.largest_free_bytes <= largest && state.largest_free_bytes >= largest - largest / 32);
}

TEST(the_figures_follow_every_step_of_random_work)
{
    enum { BUFFERS = 24, STEPS = 4000 };
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 4 * SEGMENT, .keep_bytes = SEGMENT});
    gpuhal_queue *queues[3] = {queue_or_fail(gpu), queue_or_fail(gpu), NULL};
    gpuhal_buffer *buffers[BUFFERS] = {0};
    uint32_t random = 7, got = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        random = random * 1664525u + 1013904223u;
        gpuhal_buffer **buffer = &buffers[(random >> 8) % BUFFERS];
        gpuhal_queue *queue = queues[(random >> 16) % 3];
        if (*buffer) {
            assert_true((random >> 20) % 4 || !queue || gpuhal_buffer_use(*buffer, queue) == GPUHAL_OK);
            gpuhal_buffer_release(*buffer);
            *buffer = NULL;
        } else {
            const uint64_t bytes = 1 + (random >> 10) % (SEGMENT / 4);
            got += gpuhal_pool_allocate(pool, queue, bytes, 0, PATIENCE_NS, buffer) == GPUHAL_OK;
        }
        if (step % 100 == 0) {
            assert_ok(gpuhal_pool_trim(pool, SEGMENT / 8, NULL));
        }
        expect_published(pool);
    }
    assert_true(got > STEPS / 8);
    for (int i = 0; i < BUFFERS; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
    gpuhal_queue_destroy(queues[0]);
    gpuhal_queue_destroy(queues[1]);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(the_figures_include_memory_that_a_failed_allocation_found_free)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = SEGMENT, .limit_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer_release(take(pool, queue, SEGMENT));
    assert_int_equal(state_of(pool).ordered_bytes, SEGMENT);
    assert_int_equal(attempt(pool, NULL, 2 * SEGMENT, GPUHAL_ALLOCATE_WITHIN_POOL, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(state_of(pool).free_bytes, SEGMENT);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

typedef struct {
    gpuhal_pool *pool;
    atomic_bool stop;
    uint64_t rounds;
} worker;

static void *allocate_until_stopped(void *user)
{
    worker *own = user;
    while (!atomic_load(&own->stop)) {
        gpuhal_buffer *buffer = NULL;
        own->rounds += gpuhal_pool_allocate(own->pool, NULL, 3 * UNIT, 0, 0, &buffer) == GPUHAL_OK;
        gpuhal_buffer_release(buffer);
    }
    return NULL;
}

/* Figures from different moments would not add up. If a thread is interrupted during a change, the figures stay
 * inconsistent for some time, so readings of the same round count once. */
TEST(figures_that_are_read_while_a_thread_changes_them_are_of_one_moment)
{
    enum { READINGS = 100000 };
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer_release(take(pool, NULL, UNIT));
    worker own = {.pool = pool};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, allocate_until_stopped, &own), 0);
    uint32_t wrong = 0;
    uint64_t round = 0;
    for (uint32_t i = 0; i < READINGS; i++) {
        gpuhal_pool_statistics state = {.size = sizeof state};
        assert_ok(gpuhal_pool_get_statistics(pool, &state));
        assert_true(state.buffers.current <= 1 && state.used.current <= 3 * UNIT && state.free_bytes <= SEGMENT / 8);
        const bool adds_up = state.used.current == 3 * UNIT * state.buffers.current && state.ordered_bytes == 0 &&
                             state.free_bytes == state.reserved.current - state.used.current;
        wrong += !adds_up && state.used.total_in != round;
        round = adds_up ? round : state.used.total_in;
    }
    atomic_store(&own.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(wrong < READINGS / 100);
    assert_int_equal(state_of(pool).buffers.total_in, own.rounds + 1);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(the_memory_of_a_device_is_that_of_its_pools_and_its_other_buffers)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *one = pool_or_fail(gpu, (gpuhal_pool_desc){0}), *two = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *plain = gpuhal_mock_buffer(gpu, 0, 4096);
    gpuhal_buffer *small = take(one, NULL, 100), *large = take(two, NULL, SEGMENT);
    gpuhal_memory_statistics memory = memory_of(gpu);
    assert_int_equal(memory.pools, 2);
    assert_int_equal(memory.reserved_bytes, SEGMENT / 8 + SEGMENT);
    assert_int_equal(memory.used_bytes, UNIT + SEGMENT);
    assert_int_equal(memory.requested_bytes, 100 + SEGMENT);
    assert_int_equal(memory.buffers, 2);
    assert_int_equal(memory.free_bytes, SEGMENT / 8 - UNIT);
    assert_int_equal(memory.largest_free_bytes, SEGMENT / 8 - UNIT);
    assert_int_equal(memory.unused_segment_bytes, 0);
    assert_int_equal(memory.limit_bytes, 0);
    assert_int_equal(memory.allocated.current, gpuhal_mock.devices[0].allocated_bytes);
    const uint64_t peak = memory.allocated.current;
    gpuhal_buffer_release(large);
    gpuhal_buffer_release(plain);
    assert_int_equal(memory_of(gpu).unused_segment_bytes, SEGMENT);
    uint64_t freed = 0;
    assert_ok(gpuhal_device_trim(gpuhal_device_at(gpu, 0), 0, &freed));
    assert_int_equal(freed, SEGMENT);
    memory = memory_of(gpu);
    assert_int_equal(memory.allocated.current, SEGMENT / 8);
    assert_int_equal(memory.allocated.peak, peak);
    assert_int_equal(memory.allocated.total_in, peak);
    assert_int_equal(memory.allocated.total_out, peak - SEGMENT / 8);
    gpuhal_pool_destroy(one);
    gpuhal_pool_destroy(two);
    memory = memory_of(gpu);
    assert_int_equal(memory.pools, 1);
    gpuhal_buffer_release(small);
    memory = memory_of(gpu);
    assert_int_equal(memory.pools + memory.reserved_bytes + memory.allocated.current, 0);
    gpuhal_close(gpu);
    expect_nothing_left();
}

typedef struct looker {
    gpuhal *gpu;
    _Atomic bool began, ended;
} looker;

static void *look(void *user)
{
    looker *own = user;
    own->began = true;
    (void)memory_of(own->gpu);
    own->ended = true;
    return NULL;
}

TEST(the_memory_of_a_device_is_not_read_while_another_call_changes_the_list_of_pools)
{
    looker own = {.gpu = open_one()};
    gpuhal_pools *pools = gpuhal_device_at(own.gpu, 0)->gpu->layers.pools;
    pthread_t thread;
    gpuhal_mutex_lock(&pools->mutex);
    assert_int_equal(pthread_create(&thread, NULL, look, &own), 0);
    while (!own.began) {
        gpuhal_os_sleep(1000000);
    }
    gpuhal_os_sleep(50000000);
    assert_false(own.ended);
    gpuhal_mutex_unlock(&pools->mutex);
    pthread_join(thread, NULL);
    assert_true(own.ended);
    gpuhal_close(own.gpu);
}

TEST(memory_that_the_driver_refuses_is_in_no_figure_of_the_device)
{
    gpuhal *gpu = open_one();
    atomic_store(&gpuhal_mock.devices[0].fail_allocate, GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_buffer *buffer = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 20000};
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_memory_statistics memory = memory_of(gpu);
    assert_int_equal(memory.allocated.peak + memory.allocated.total_in + memory.allocated.total_out, 0);
    gpuhal_close(gpu);
}

static gpuhal_status create_and_release(gpuhal *gpu, uint64_t bytes)
{
    gpuhal_buffer *buffer = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes};
    gpuhal_status status = gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer);
    gpuhal_buffer_release(buffer);
    return status;
}

TEST(exactly_the_allocatable_bytes_can_be_allocated)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 3 * SEGMENT});
    gpuhal_buffer *held = take(pool, NULL, 100);
    gpuhal_buffer_release(take(pool, NULL, SEGMENT));
    assert_int_equal(state_of(pool).allocatable_bytes, 3 * SEGMENT - SEGMENT / 8);
    assert_ok(gpuhal_device_limit_memory(gpuhal_device_at(gpu, 0), 2 * SEGMENT));
    const uint64_t most = 2 * SEGMENT - SEGMENT / 8;
    assert_int_equal(memory_of(gpu).limit_bytes, 2 * SEGMENT);
    assert_int_equal(memory_of(gpu).allocatable_bytes, most);
    assert_int_equal(state_of(pool).allocatable_bytes, most);
    assert_int_equal(attempt(pool, NULL, most + 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(attempt(pool, NULL, most, 0, 0), GPUHAL_OK);
    assert_int_equal(create_and_release(gpu, most + 1), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(create_and_release(gpu, most), GPUHAL_OK);
    assert_ok(gpuhal_device_limit_memory(gpuhal_device_at(gpu, 0), 1));
    assert_int_equal(memory_of(gpu).allocatable_bytes, 0);
    assert_int_equal(state_of(pool).allocatable_bytes, state_of(pool).largest_free_bytes);
    assert_int_equal(attempt(pool, NULL, state_of(pool).allocatable_bytes, 0, 0), GPUHAL_OK);
    gpuhal_buffer_release(held);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(statistics_of_a_device_are_written_as_far_as_their_size_goes)
{
    gpuhal *gpu = open_one();
    unsigned char bytes[sizeof(gpuhal_memory_statistics)];
    memset(bytes, 0xaa, sizeof bytes);
    gpuhal_memory_statistics *old = (gpuhal_memory_statistics *)(void *)bytes;
    old->size = offsetof(gpuhal_memory_statistics, limit_bytes);
    assert_ok(gpuhal_device_get_memory_statistics(gpuhal_device_at(gpu, 0), old));
    assert_int_equal(old->allocated.current, 0);
    for (size_t i = offsetof(gpuhal_memory_statistics, limit_bytes); i < sizeof bytes; i++) {
        assert_int_equal(bytes[i], 0xaa);
    }
    old->size = 0;
    assert_int_equal(gpuhal_device_get_memory_statistics(gpuhal_device_at(gpu, 0), old),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_get_memory_statistics(gpuhal_device_at(gpu, 0), NULL),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    old->size = sizeof *old;
    assert_int_equal(gpuhal_device_get_memory_statistics(NULL, old), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

#include "test_main.h"
