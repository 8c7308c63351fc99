/* Pools: their arguments, their growth, and their limits. */
#include "pool_support.h"

TEST(bad_descriptions_of_a_pool_are_invalid_and_missing_kinds_not_supported)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.no_staging_kinds = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    const gpuhal_pool_desc bad[] = {
        {.size = 0},
        {.size = sizeof bad[0], .alignment = 3},
        {.size = sizeof bad[0], .alignment = UINT64_MAX},
        {.size = sizeof bad[0], .flags = 8},
        {.size = sizeof bad[0], .flags = 1u << 31},
        {.size = sizeof bad[0], .limit_permille = 1001},
        {.size = sizeof bad[0], .kind = 9},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gpuhal_pool *pool = (gpuhal_pool *)gpu;
        assert_int_equal(gpuhal_pool_create(device, &bad[i], &pool), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_null(pool);
        assert_true(gpuhal_last_error()->sentence[0] != 0);
    }
    gpuhal_pool *pool = NULL;
    const gpuhal_pool_desc upload = {.size = sizeof upload, .kind = GPUHAL_MEMORY_UPLOAD};
    assert_int_equal(gpuhal_pool_create(device, &upload, &pool), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_pool_create(NULL, NULL, &pool), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_pool_create(device, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_pool_destroy(NULL);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_pool_description_of_an_older_program_is_read_as_far_as_it_goes)
{
    gpuhal *gpu = open_one();
    const gpuhal_pool_desc desc = {.size = offsetof(gpuhal_pool_desc, limit_permille),
                                   .limit_bytes = 4096,
                                   .limit_permille = 5000,
                                   .flags = 77,
                                   .alignment = 3};
    gpuhal_pool *pool = NULL;
    assert_ok(gpuhal_pool_create(gpuhal_device_at(gpu, 0), &desc, &pool));
    assert_int_equal(state_of(pool).limit_bytes, 4096);
    unsigned char bytes[sizeof(gpuhal_pool_statistics)];
    memset(bytes, 0xaa, sizeof bytes);
    gpuhal_pool_statistics *old = (gpuhal_pool_statistics *)(void *)bytes;
    old->size = offsetof(gpuhal_pool_statistics, used);
    assert_ok(gpuhal_pool_get_statistics(pool, old));
    assert_int_equal(old->reserved.current, 0);
    for (size_t i = offsetof(gpuhal_pool_statistics, used); i < sizeof bytes; i++) {
        assert_int_equal(bytes[i], 0xaa);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(bad_arguments_of_pool_calls_are_invalid)
{
    gpuhal *gpu = open_one(), *other = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu), *foreign = queue_or_fail(other);
    gpuhal_buffer *buffer = (gpuhal_buffer *)gpu, *plain = gpuhal_mock_buffer(gpu, 0, 64), *part = take(pool, NULL, 9);
    gpuhal_pool_statistics state = {.size = 0};
    uint64_t freed = 7;
    assert_int_equal(gpuhal_pool_allocate(NULL, NULL, 1, 0, 0, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(buffer);
    assert_int_equal(gpuhal_pool_allocate(pool, NULL, 1, 0, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(attempt(pool, NULL, 0, 0, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(attempt(pool, NULL, 1, 8, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(attempt(pool, foreign, 1, 0, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_use(NULL, queue), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_use(part, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_use(part, foreign), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_use(plain, queue), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_pool_set_limit(NULL, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_pool_trim(NULL, 0, &freed), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(freed, 0);
    assert_int_equal(gpuhal_device_trim(NULL, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_trim(NULL, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_pool_get_statistics(pool, &state), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_pool_get_statistics(pool, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_pool_get_statistics(NULL, &state), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(part);
    gpuhal_buffer_release(plain);
    gpuhal_queue_destroy(queue);
    gpuhal_queue_destroy(foreign);
    gpuhal_pool_destroy(pool);
    gpuhal_close(other);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(absurd_sizes_and_alignments_are_refused_and_leave_the_pool_usable)
{
    gpuhal *gpu = open_one();
    const uint64_t sizes[] = {1ull << 31,       1ull << 40,        1ull << 62,       (1ull << 63) - 1, 1ull << 63,
                              (1ull << 63) + 1, UINT64_MAX - 4096, UINT64_MAX - 256, UINT64_MAX - 255, UINT64_MAX};
    const uint64_t alignments[] = {0, 1, 1u << 20, 1ull << 40, 1ull << 63};
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.alignment = alignments[a]});
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            gpuhal_status status = attempt(pool, NULL, sizes[i], 0, 0);
            if (status != GPUHAL_ERROR_TOO_LARGE && status != GPUHAL_ERROR_OUT_OF_MEMORY) {
                fail_msg("%llx aligned to %llx: %s", (unsigned long long)sizes[i], (unsigned long long)alignments[a],
                         gpuhal_status_name(status));
            }
            assert_int_equal(gpuhal_last_error()->bytes_asked, sizes[i]);
        }
        assert_int_equal(state_of(pool).segments, 0);
        if (alignments[a] <= 1u << 20) {
            assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_OK);
        }
        gpuhal_pool_destroy(pool);
    }
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(above_the_largest_allocation_a_pool_answers_too_large_and_up_to_it_allocates)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.allocation_max = 10000}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    const uint64_t most = 10000 / UNIT * UNIT;
    assert_int_equal(attempt(pool, NULL, most + 1, 0, 0), GPUHAL_ERROR_TOO_LARGE);
    assert_int_equal(gpuhal_last_error()->bytes_asked, most + 1);
    assert_int_equal(gpuhal_last_error()->bytes_total, most);
    assert_int_equal(attempt(pool, NULL, 10001, 0, 0), GPUHAL_ERROR_TOO_LARGE);
    for (uint64_t bytes = most - 400; bytes <= most; bytes += 50) {
        if (attempt(pool, NULL, bytes, 0, 0)) {
            fail_msg("%llu bytes: %s", (unsigned long long)bytes, gpuhal_last_error()->sentence);
        }
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(buffers_are_aligned_apart_and_as_large_as_asked)
{
    enum { COUNT = 64 };
    const uint64_t alignments[] = {0, 16, 512, 4096};
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.copy_alignment = 4, .fill_alignment = 16}}};
        gpuhal *gpu = gpuhal_mock_open(NULL, 0);
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.alignment = alignments[a]});
        gpuhal_buffer *buffers[COUNT];
        for (uint64_t i = 0; i < COUNT; i++) {
            buffers[i] = take(pool, NULL, 1 + i * i * 3);
            unsigned char *host = gpuhal_buffer_host(buffers[i]);
            assert_int_equal(gpuhal_buffer_address(buffers[i]), (uintptr_t)host);
            assert_true((uintptr_t)host % (alignments[a] ? alignments[a] : 64) == 0);
            assert_ptr_equal(gpuhal_buffer_device(buffers[i]), gpuhal_device_at(gpu, 0));
            assert_int_equal(gpuhal_buffer_is_coherent(buffers[i]), 1);
            memset(host, (int)i, 1 + i * i * 3);
        }
        for (uint64_t i = 0; i < COUNT; i++) {
            const unsigned char *host = gpuhal_buffer_host(buffers[i]);
            for (uint64_t k = 0; k < 1 + i * i * 3; k++) {
                assert_int_equal(host[k], i);
            }
            gpuhal_buffer_release(buffers[i]);
        }
        gpuhal_pool_destroy(pool);
        gpuhal_close(gpu);
        expect_nothing_left();
    }
}

TEST(segments_grow_from_an_eighth_to_the_whole_and_a_large_buffer_has_its_own)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    static const uint64_t parts[] = {SEGMENT / 8, SEGMENT / 4, SEGMENT / 2, SEGMENT, SEGMENT};
    gpuhal_buffer *buffers[64];
    uint64_t reserved = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < 5; i++) {
        reserved += parts[i];
        for (uint64_t left = parts[i]; left > 0; left -= SEGMENT / 8) {
            buffers[count++] = take(pool, NULL, SEGMENT / 8);
        }
        assert_int_equal(state_of(pool).segments, i + 1);
        assert_int_equal(state_of(pool).reserved.current, reserved);
    }
    const uint64_t large = SEGMENT / 2 + UNIT;
    buffers[count++] = take(pool, NULL, large);
    assert_int_equal(state_of(pool).reserved.current, reserved + large);
    buffers[count++] = take(pool, NULL, 3 * SEGMENT);
    assert_int_equal(state_of(pool).reserved.current, reserved + large + 3 * SEGMENT);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, reserved + large + 3 * SEGMENT);
    while (count > 0) {
        gpuhal_buffer_release(buffers[--count]);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_pool_without_a_description_has_segments_of_64_mebibytes)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = NULL;
    assert_ok(gpuhal_pool_create(gpuhal_device_at(gpu, 0), NULL, &pool));
    assert_int_equal(state_of(pool).reserved.current, 0);
    assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_OK);
    assert_int_equal(state_of(pool).reserved.current, 8u << 20);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(a_segment_that_the_driver_refuses_is_halved_until_it_fits)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = SEGMENT / 8 + SEGMENT / 16}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *first = take(pool, NULL, SEGMENT / 8), *second = take(pool, NULL, UNIT);
    assert_int_equal(state_of(pool).reserved.current, SEGMENT / 8 + SEGMENT / 16);
    gpuhal_buffer *third = take(pool, NULL, SEGMENT / 16 - UNIT);
    assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(second);
    gpuhal_buffer_release(third);
    /* The allocation needs all memory in one segment, so both segments must have been freed. */
    gpuhal_buffer_release(take(pool, NULL, SEGMENT / 8 + SEGMENT / 16));
    assert_int_equal(state_of(pool).segments, 1);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_driver_that_fails_is_reported_and_the_pool_works_afterwards)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_mock.devices[0].fail_allocate = GPUHAL_ERROR_DRIVER;
    assert_int_equal(attempt(pool, NULL, 100, 0, 0), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockAllocate");
    gpuhal_mock.devices[0].fail_allocate = GPUHAL_ERROR_OUT_OF_MEMORY;
    assert_int_equal(attempt(pool, NULL, 100, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_mock.devices[0].fail_allocate = GPUHAL_OK;
    assert_int_equal(attempt(pool, NULL, 100, 0, 0), GPUHAL_OK);
    assert_int_equal(attempt(pool, NULL, 100, GPUHAL_ALLOCATE_WITHIN_POOL, 0), GPUHAL_OK);
    assert_int_equal(attempt(pool, NULL, SEGMENT, GPUHAL_ALLOCATE_WITHIN_POOL, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(state_of(pool).segments, 1);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(the_limit_of_a_pool_holds_and_the_detail_of_out_of_memory_adds_up)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 10 * UNIT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *a = take(pool, NULL, 5 * UNIT), *b = take(pool, queue, 2 * UNIT), *c = take(pool, NULL, 3 * UNIT);
    gpuhal_event *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_fill(queue, b, 0, 2 * UNIT, 1, 1));
    gpuhal_buffer_release(b);
    gpuhal_buffer_release(c);
    assert_int_equal(attempt(pool, NULL, 4 * UNIT + 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    const gpuhal_error *error = gpuhal_last_error();
    assert_int_equal(error->bytes_asked, 4 * UNIT + 1);
    assert_int_equal(error->bytes_free, 3 * UNIT);
    assert_int_equal(error->bytes_pending, 2 * UNIT);
    assert_int_equal(error->bytes_total, 10 * UNIT);
    assert_string_equal(error->device, "mock:0");
    const gpuhal_pool_statistics state = state_of(pool);
    assert_int_equal(state.reserved.current, 10 * UNIT);
    assert_int_equal(state.out_of_memory, 1);
    assert_true(state.searches_failed >= 1);
    assert_int_equal(attempt(pool, NULL, 3 * UNIT, 0, 0), GPUHAL_OK);
    open_gate(gate);
    gpuhal_buffer_release(a);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_request_above_the_limit_does_not_make_a_small_one_fail)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 4000});
    assert_int_equal(attempt(pool, NULL, 4001, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(attempt(pool, NULL, 3840, 0, 0), GPUHAL_OK);
    assert_int_equal(attempt(pool, NULL, 3841, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_OK);
    assert_true(state_of(pool).reserved.peak <= 4000);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(of_a_limit_in_bytes_and_one_in_thousandths_the_lower_counts)
{
    static const struct {
        uint64_t bytes;
        uint32_t permille;
        uint64_t limit;
    } cases[] = {{0, 0, 900000},      {0, 100, 100000},  {5000, 100, 5000},         {500000, 1, 1000},
                 {0, 1000, 1000000},  {950000, 0, 950000}, {UINT64_MAX, 100, 100000}, {UINT64_MAX, 0, 0}};
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 1000000}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gpuhal_pool_desc desc = {
            .size = sizeof desc, .limit_bytes = cases[i].bytes, .limit_permille = cases[i].permille};
        gpuhal_pool *pool = NULL;
        assert_ok(gpuhal_pool_create(gpuhal_device_at(gpu, 0), &desc, &pool));
        assert_int_equal(state_of(pool).limit_bytes, cases[i].limit);
        gpuhal_pool_destroy(pool);
    }
    gpuhal_close(gpu);
}

TEST(headroom_is_left_to_others)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 100 * UNIT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.headroom_bytes = 60 * UNIT});
    gpuhal_buffer *buffers[41] = {take(pool, NULL, 30 * UNIT), gpuhal_mock_buffer(gpu, 0, 5 * UNIT)};
    uint32_t count = 2;
    while (gpuhal_pool_allocate(pool, NULL, UNIT, 0, 0, &buffers[count]) == GPUHAL_OK) {
        assert_true(++count < 41);
    }
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(count, 2 + 5);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 40 * UNIT);
    while (count > 0) {
        gpuhal_buffer_release(buffers[--count]);
    }
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(lowering_the_limit_trims_and_keeps_buffers_in_use)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *kept = take(pool, NULL, SEGMENT), *gone = take(pool, NULL, SEGMENT);
    assert_ok(gpuhal_fill(NULL, kept, 0, SEGMENT, 0x77, 1));
    gpuhal_buffer_release(gone);
    assert_ok(gpuhal_pool_set_limit(pool, SEGMENT / 2));
    assert_int_equal(state_of(pool).limit_bytes, SEGMENT / 2);
    assert_int_equal(state_of(pool).reserved.current, SEGMENT);
    assert_int_equal(((unsigned char *)gpuhal_buffer_host(kept))[SEGMENT - 1], 0x77);
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_buffer_release(kept);
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_OK);
    assert_ok(gpuhal_pool_set_limit(pool, SEGMENT / 2));
    assert_int_equal(attempt(pool, NULL, SEGMENT / 2, 0, 0), GPUHAL_OK);
    assert_true(state_of(pool).reserved.current <= SEGMENT / 2);
    assert_ok(gpuhal_pool_set_limit(pool, 0));
    assert_int_equal(attempt(pool, NULL, 9 * SEGMENT, 0, 0), GPUHAL_OK);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

#include "test_main.h"
