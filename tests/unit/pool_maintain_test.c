/* gpuhal_maintain(), and pools of page-locked host memory. */
#include "pool_support.h"

TEST(every_nth_call_maintains_and_the_others_only_count)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = SEGMENT, .segment_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    for (int round = 0; round < 3; round++) {
        gpuhal_buffer_release(take(pool, queue, SEGMENT));
        for (int i = 1; i < 5; i++) {
            assert_ok(gpuhal_maintain(gpu, 5));
            assert_int_equal(state_of(pool).ordered_bytes, SEGMENT);
        }
        assert_ok(gpuhal_maintain(gpu, 5));
        assert_int_equal(state_of(pool).free_bytes, SEGMENT);
    }
    assert_int_equal(gpuhal_maintain(gpu, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_maintain(NULL, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(maintaining_keeps_unused_segments_without_pressure)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *plain = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_pool *polite = pool_or_fail(gpu, (gpuhal_pool_desc){.headroom_bytes = 1 << 20});
    gpuhal_buffer_release(take(plain, NULL, SEGMENT));
    gpuhal_buffer_release(take(polite, NULL, SEGMENT));
    assert_ok(gpuhal_maintain(gpu, 1));
    assert_int_equal(state_of(plain).reserved.current, SEGMENT);
    assert_int_equal(state_of(polite).reserved.current, SEGMENT);
    gpuhal_pool_destroy(plain);
    gpuhal_pool_destroy(polite);
    gpuhal_close(gpu);
}

TEST(maintaining_gives_back_memory_above_keep_bytes_once_work_has_ended)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.keep_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, queue);
    gpuhal_buffer *one = take(pool, queue, SEGMENT), *two = take(pool, queue, SEGMENT);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    assert_ok(gpuhal_maintain(gpu, 1));
    assert_int_equal(state_of(pool).reserved.current, 2 * SEGMENT);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_ok(gpuhal_maintain(gpu, 1));
    assert_int_equal(state_of(pool).reserved.current, SEGMENT);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(maintaining_gives_back_the_headroom_that_others_took_and_no_more)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 100 * UNIT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.headroom_bytes = 50 * UNIT, .segment_bytes = UNIT});
    gpuhal_buffer *parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = take(pool, NULL, 10 * UNIT);
    }
    for (int i = 0; i < 4; i++) {
        gpuhal_buffer_release(parts[i]);
    }
    gpuhal_buffer *others = gpuhal_mock_buffer(gpu, 0, 25 * UNIT);
    assert_ok(gpuhal_maintain(gpu, 1));
    assert_int_equal(state_of(pool).reserved.current, 20 * UNIT);
    assert_ok(gpuhal_maintain(gpu, 1));
    assert_int_equal(state_of(pool).reserved.current, 20 * UNIT);
    gpuhal_buffer_release(others);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(maintaining_gives_back_memory_above_keep_bytes_if_just_the_headroom_is_left)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 100 * UNIT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(
        gpu, (gpuhal_pool_desc){.headroom_bytes = 80 * UNIT, .keep_bytes = 10 * UNIT, .segment_bytes = UNIT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, queue);
    gpuhal_buffer *parts[] = {take(pool, queue, 10 * UNIT), take(pool, queue, 10 * UNIT)};
    gpuhal_buffer_release(parts[0]);
    gpuhal_buffer_release(parts[1]);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_int_equal(state_of(pool).reserved.current, 20 * UNIT);
    assert_ok(gpuhal_maintain(gpu, 1));
    assert_int_equal(state_of(pool).reserved.current, 10 * UNIT);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(page_locked_memory_is_taken_in_exact_sizes)
{
    const gpuhal_memory_kind kinds[] = {GPUHAL_MEMORY_UPLOAD, GPUHAL_MEMORY_READBACK};
    const uint64_t preferred = 8 << 20, bytes = 5253366; /* 5.01 MiB */
    for (size_t k = 0; k < 2; k++) {
        gpuhal *gpu = open_one();
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.kind = kinds[k], .segment_bytes = preferred});
        gpuhal_buffer *buffer = take(pool, NULL, bytes);
        const uint64_t rounded = (bytes + UNIT - 1) / UNIT * UNIT;
        assert_int_equal(gpuhal_mock.devices[0].staging_bytes, rounded);
        assert_int_equal(state_of(pool).used.current, rounded);
        gpuhal_buffer *first = take(pool, NULL, 100), *second = take(pool, NULL, 100);
        assert_int_equal(gpuhal_mock.devices[0].staging_bytes, rounded + preferred / 4);
        assert_non_null(gpuhal_buffer_host(first));
        assert_ptr_equal(gpuhal_buffer_host(second), (char *)gpuhal_buffer_host(first) + UNIT);
        assert_int_equal(gpuhal_buffer_is_coherent(first), 1);
        gpuhal_buffer_release(buffer);
        gpuhal_buffer_release(first);
        gpuhal_buffer_release(second);
        gpuhal_pool_destroy(pool);
        gpuhal_close(gpu);
        expect_nothing_left();
    }
}

TEST(a_part_of_memory_that_is_not_coherent_has_no_host_address_and_is_transferred)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.not_coherent = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.kind = GPUHAL_MEMORY_UPLOAD});
    gpuhal_buffer *first = take(pool, NULL, 100), *second = take(pool, NULL, 100);
    char got[6] = "";
    assert_null(gpuhal_buffer_host(second));
    assert_int_equal(gpuhal_buffer_is_coherent(second), 0);
    assert_ok(gpuhal_write(NULL, first, 0, "before", 6));
    assert_ok(gpuhal_write(NULL, second, 94, "behind", 6));
    assert_ok(gpuhal_copy(NULL, first, 50, second, 94, 6));
    assert_ok(gpuhal_read(NULL, got, first, 50, 6));
    assert_memory_equal(got, "behind", 6);
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(second);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

#include "test_main.h"
