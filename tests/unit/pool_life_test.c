/* Pools: trimming, automatic release of memory, and the lifetimes of pools and their buffers. */
#include "pool_support.h"

#include "support/idle.h"

#include <sys/wait.h>
#include <unistd.h>

static void make_unused(gpuhal_pool *pool)
{
    gpuhal_buffer *buffers[3];
    for (int i = 0; i < 3; i++) {
        buffers[i] = take(pool, NULL, SEGMENT);
    }
    for (int i = 0; i < 3; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
    assert_int_equal(state_of(pool).unused_segment_bytes, 3 * SEGMENT);
}

TEST(a_trim_gives_back_unused_segments_above_the_kept_bytes_and_counts_them)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    make_unused(pool);
    uint64_t freed = 1;
    assert_ok(gpuhal_pool_trim(pool, 3 * SEGMENT, &freed));
    assert_int_equal(freed, 0);
    assert_ok(gpuhal_pool_trim(pool, 2 * SEGMENT - 1, &freed));
    assert_int_equal(freed, 2 * SEGMENT);
    assert_int_equal(state_of(pool).unused_segment_bytes, SEGMENT);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, SEGMENT);
    gpuhal_buffer *out = take(pool, NULL, 1);
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, 0);
    gpuhal_buffer_release(out);
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    assert_int_equal(state_of(pool).segments, 0);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 0);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(a_device_and_all_devices_are_trimmed_as_one)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pools[4];
    for (uint32_t i = 0; i < 4; i++) {
        const gpuhal_pool_desc desc = {.size = sizeof desc, .segment_bytes = SEGMENT};
        assert_ok(gpuhal_pool_create(gpuhal_device_at(gpu, i / 2), &desc, &pools[i]));
        make_unused(pools[i]);
    }
    uint64_t freed = 0;
    assert_ok(gpuhal_device_trim(gpuhal_device_at(gpu, 1), 4 * SEGMENT, &freed));
    assert_int_equal(freed, 2 * SEGMENT);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 6 * SEGMENT);
    assert_int_equal(gpuhal_mock.devices[1].allocated_bytes, 4 * SEGMENT);
    assert_ok(gpuhal_trim(gpu, SEGMENT, &freed));
    assert_int_equal(freed, 9 * SEGMENT);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes + gpuhal_mock.devices[1].allocated_bytes, SEGMENT);
    for (uint32_t i = 0; i < 4; i++) {
        gpuhal_pool_destroy(pools[i]);
    }
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_buffer_of_its_own_gets_the_unused_segments_of_the_devices_pools)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 3 * SEGMENT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    make_unused(pool);
    gpuhal_buffer_release(gpuhal_mock_buffer(gpu, 0, SEGMENT));
    assert_int_equal(state_of(pool).segments, 2);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(unused_segments_above_keep_bytes_go_back_with_their_last_part)
{
    gpuhal *gpu = open_one();
    for (int with_queue = 0; with_queue < 2; with_queue++) {
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.keep_bytes = SEGMENT});
        gpuhal_queue *queue = with_queue ? queue_or_fail(gpu) : NULL;
        gpuhal_buffer *buffers[3];
        for (int i = 0; i < 3; i++) {
            buffers[i] = take(pool, queue, SEGMENT);
            assert_ok(gpuhal_fill(queue, buffers[i], 0, SEGMENT, 1, 1));
        }
        assert_ok(queue ? gpuhal_queue_synchronize(queue, PATIENCE_NS) : GPUHAL_OK);
        for (int i = 0; i < 3; i++) {
            gpuhal_buffer_release(buffers[i]);
        }
        assert_int_equal(state_of(pool).reserved.current, SEGMENT);
        gpuhal_queue_destroy(queue);
        gpuhal_pool_destroy(pool);
    }
    gpuhal_close(gpu);
}

TEST(buffers_outlive_their_pool_and_each_segment_goes_back_with_its_last_one)
{
    gpuhal *gpu = open_one();
    for (int with_queue = 0; with_queue < 2; with_queue++) {
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
        gpuhal_queue *queue = with_queue ? queue_or_fail(gpu) : NULL;
        gpuhal_buffer *unused = take(pool, NULL, 2 * SEGMENT), *first = take(pool, queue, SEGMENT),
                      *second = take(pool, queue, 3 * SEGMENT);
        gpuhal_buffer_release(unused);
        gpuhal_pool_destroy(pool);
        assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 4 * SEGMENT);
        assert_ok(gpuhal_fill(queue, first, 0, SEGMENT, 0x41, 1));
        assert_ok(gpuhal_copy(queue, second, 7, first, 0, SEGMENT));
        assert_ok(queue ? gpuhal_queue_synchronize(queue, PATIENCE_NS) : GPUHAL_OK);
        gpuhal_buffer_release(first);
        assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 3 * SEGMENT);
        assert_int_equal(((unsigned char *)gpuhal_buffer_host(second))[SEGMENT + 6], 0x41);
        gpuhal_buffer_release(second);
        assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
        gpuhal_queue_destroy(queue);
    }
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_destroyed_pool_gives_unused_segments_back_at_once_and_each_other_one_with_its_last_buffer)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *first = take(pool, NULL, SEGMENT), *second = take(pool, NULL, SEGMENT);
    gpuhal_buffer_release(take(pool, NULL, SEGMENT));
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 3 * SEGMENT);
    gpuhal_pool_destroy(pool);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 2 * SEGMENT);
    gpuhal_buffer_release(first);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, SEGMENT);
    gpuhal_buffer_release(second);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(pools_and_their_buffers_outlive_the_close_of_the_gpuhal_object)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *first = pool_or_fail(gpu, (gpuhal_pool_desc){0}), *second = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *one = take(first, NULL, 100), *two = take(second, NULL, 100);
    gpuhal_pool_destroy(first);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    assert_ok(gpuhal_copy(NULL, one, 0, two, 0, 100));
    assert_int_equal(attempt(second, NULL, 5000, 0, 0), GPUHAL_OK);
    gpuhal_buffer_release(two);
    gpuhal_pool_destroy(second);
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    gpuhal_buffer_release(one);
    expect_nothing_left();
}

static void expect_forked(gpuhal *gpu, gpuhal_pool *pool, gpuhal_queue *queue, gpuhal_buffer *part)
{
    gpuhal_buffer *buffer = NULL;
    gpuhal_pool *made = NULL;
    gpuhal_pool_statistics state = {.size = sizeof state};
    gpuhal_memory_statistics memory = {.size = sizeof memory};
    uint64_t number = 0;
    const int64_t allocated = gpuhal_mock.devices[0].allocated_bytes;
    const gpuhal_status got[] = {
        gpuhal_pool_create(gpuhal_device_at(gpu, 0), NULL, &made),
        gpuhal_pool_allocate(pool, NULL, 1, 0, 0, &buffer),
        gpuhal_pool_allocate(pool, queue, 1, 0, PATIENCE_NS, &buffer),
        gpuhal_buffer_use(part, queue),
        gpuhal_pool_set_limit(pool, 1),
        gpuhal_pool_trim(pool, 0, &number),
        gpuhal_device_trim(gpuhal_device_at(gpu, 0), 0, &number),
        gpuhal_trim(gpu, 0, &number),
        gpuhal_maintain(gpu, 1),
        gpuhal_buffer_set_tag(part, "x"),
        gpuhal_pool_get_statistics(pool, &state),
        gpuhal_device_get_memory_statistics(gpuhal_device_at(gpu, 0), &memory),
        gpuhal_write(NULL, part, 0, "x", 1),
    };
    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        if (got[i] != GPUHAL_ERROR_FORKED) {
            _exit(10 + (int)i);
        }
    }
    gpuhal_buffer_release(part);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    _exit(gpuhal_mock.devices[0].allocated_bytes != allocated || buffer || made || number);
}

TEST(in_the_child_of_a_fork_a_pool_answers_forked_and_releasing_does_nothing)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *part = take(pool, queue, 100);
    gpuhal_buffer_release(take(pool, NULL, 4 * SEGMENT));
    wait_until_other_threads_sleep();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(50);
        expect_forked(gpu, pool, queue, part);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_buffer_release(part);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

/* The library does not see the work. One queue with such work continues, the other is destroyed. */
TEST(memory_of_a_destroyed_pool_stays_until_work_that_was_stated_has_ended)
{
    for (int step = 0; step < 2; step++) {
        gpuhal *gpu = open_one();
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
        gpuhal_queue *queue = queue_or_fail(gpu), *other = queue_or_fail(gpu);
        gpuhal_event *gate = close_gate(gpu, queue);
        gpuhal_buffer *buffer = take(pool, other, SEGMENT);
        assert_ok(gpuhal_buffer_use(buffer, queue));
        gpuhal_buffer_release(buffer);
        if (step == 1) {
            gpuhal_queue_destroy(queue);
        }
        gpuhal_pool_destroy(pool);
        assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, SEGMENT);
        open_gate(gate);
        if (step == 0) {
            assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
            assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 0);
            gpuhal_queue_destroy(queue);
        }
        gpuhal_queue_destroy(other);
        gpuhal_close(gpu);
        expect_nothing_left_soon();
    }
}

#include "test_main.h"
