/* Pools on a device with virtual memory. A pool has a single address range and commits its memory chunk by chunk. */
#include "pool_support.h"

#include "pool/pool.h"

#include <pthread.h>

enum { PAGE = 4096, EIGHTH = SEGMENT / 8, TOTAL = 64 << 20 };

/* Opens a device. The first chunks of a pool have an eighth, a quarter and a half of SEGMENT bytes, the preferred size
 * of a segment; later chunks have SEGMENT bytes. */
static gpuhal *open_virtual(void)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.page_bytes = PAGE, .total_bytes = TOTAL}}};
    return gpuhal_mock_open(NULL, 0);
}

static int64_t given(void)
{
    return gpuhal_mock.devices[0].allocated_bytes;
}

static void expect_pattern(gpuhal_buffer *buffer, unsigned char pattern)
{
    const uint64_t bytes = gpuhal_buffer_bytes(buffer);
    unsigned char *got = malloc(bytes);
    assert_non_null(got);
    assert_ok(gpuhal_read(NULL, got, buffer, 0, bytes));
    for (uint64_t i = 0; i < bytes; i++) {
        assert_int_equal(got[i], pattern);
    }
    free(got);
}

static gpuhal_buffer *take_filled(gpuhal_pool *pool, uint64_t bytes, unsigned char pattern)
{
    gpuhal_buffer *buffer = take(pool, NULL, bytes);
    assert_ok(gpuhal_fill(NULL, buffer, 0, bytes, pattern, 1));
    return buffer;
}

static void close_virtual(gpuhal *gpu, gpuhal_pool *pool)
{
    gpuhal_pool_destroy(pool);
    assert_int_equal(gpuhal_mock.devices[0].ranges, 0);
    assert_int_equal(given(), 0);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_pool_reserves_addresses_once_and_has_memory_put_behind_them_as_it_grows)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    assert_int_equal(gpuhal_mock.devices[0].ranges, 0);
    gpuhal_buffer *a = take_filled(pool, EIGHTH, 1);
    assert_int_equal(gpuhal_mock.devices[0].ranges, 1);
    assert_int_equal(pool->range.buffer->bytes, TOTAL + TOTAL / 8);
    assert_int_equal(given(), EIGHTH);
    gpuhal_buffer *b = take_filled(pool, EIGHTH, 2), *c = take_filled(pool, 3 * SEGMENT, 3);
    assert_int_equal(gpuhal_mock.devices[0].ranges, 1);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
    const gpuhal_pool_statistics state = state_of(pool);
    assert_int_equal(state.segments, gpuhal_mock.devices[0].commits);
    assert_int_equal(state.reserved.current, given());
    assert_int_equal(gpuhal_buffer_address(b), gpuhal_buffer_address(a) + EIGHTH);
    expect_pattern(a, 1);
    expect_pattern(b, 2);
    expect_pattern(c, 3);
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(b);
    gpuhal_buffer_release(c);
    close_virtual(gpu, pool);
}

/* The range is rounded up to a size at which the granularity is larger. */
TEST(a_granularity_that_grows_with_the_range_is_that_of_the_whole_range)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1,
                                      .devices = {{.page_bytes = PAGE,
                                                   .total_bytes = TOTAL - 8,
                                                   .large_range_bytes = TOTAL + TOTAL / 8 - 9}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *a = take_filled(pool, PAGE, 1), *b = take_filled(pool, SEGMENT, 2);
    assert_int_equal(gpuhal_mock.devices[0].ranges, 1);
    assert_int_equal(pool->range.page_bytes, 4 * PAGE);
    assert_int_equal(pool->range.buffer->bytes % (4 * PAGE), 0);
    assert_int_equal(given() % (4 * PAGE), 0);
    expect_pattern(a, 1);
    expect_pattern(b, 2);
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(b);
    close_virtual(gpu, pool);
}

TEST(a_buffer_larger_than_any_free_piece_takes_only_the_missing_bytes)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *low = take_filled(pool, 2 * SEGMENT, 1), *high = take(pool, NULL, 2 * SEGMENT);
    const uint64_t address = gpuhal_buffer_address(high);
    gpuhal_buffer_release(high);
    gpuhal_buffer *larger = take_filled(pool, 3 * SEGMENT, 2);
    assert_int_equal(gpuhal_buffer_address(larger), address);
    assert_int_equal(state_of(pool).reserved.current, 5 * SEGMENT);
    expect_pattern(low, 1);
    expect_pattern(larger, 2);
    gpuhal_buffer_release(low);
    gpuhal_buffer_release(larger);
    assert_int_equal(state_of(pool).largest_free_bytes, 5 * SEGMENT);
    assert_int_equal(attempt(pool, NULL, 5 * SEGMENT, GPUHAL_ALLOCATE_WITHIN_POOL, 0), GPUHAL_OK);
    close_virtual(gpu, pool);
}

TEST(trimming_gives_back_each_piece_that_no_buffer_uses_also_below_used_ones)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *buffers[5];
    uint64_t addresses[5], freed = 0;
    for (unsigned char i = 0; i < 5; i++) {
        buffers[i] = take_filled(pool, SEGMENT, i);
        addresses[i] = gpuhal_buffer_address(buffers[i]);
    }
    gpuhal_buffer_release(buffers[1]);
    gpuhal_buffer_release(buffers[2]);
    gpuhal_buffer_release(buffers[4]);
    assert_int_equal(state_of(pool).unused_segment_bytes, 3 * SEGMENT);
    /* starts at the highest chunk, and frees no more than requested */
    assert_ok(gpuhal_pool_trim(pool, 2 * SEGMENT, &freed));
    assert_int_equal(freed, SEGMENT);
    gpuhal_buffer *two = take(pool, NULL, 2 * SEGMENT);
    assert_int_equal(gpuhal_buffer_address(two), addresses[1]);
    gpuhal_buffer_release(two);
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, 2 * SEGMENT);
    assert_int_equal(given(), 2 * SEGMENT);
    assert_int_equal(state_of(pool).segments, 2);
    assert_int_equal(gpuhal_mock.devices[0].decommits, 3);
    expect_pattern(buffers[0], 0);
    expect_pattern(buffers[3], 3);
    /* this buffer gets the lowest free addresses again */
    buffers[1] = take_filled(pool, SEGMENT, 9);
    assert_int_equal(gpuhal_buffer_address(buffers[1]), addresses[1]);
    gpuhal_buffer_release(buffers[0]);
    gpuhal_buffer_release(buffers[1]);
    gpuhal_buffer_release(buffers[3]);
    close_virtual(gpu, pool);
}

TEST(a_hole_between_free_pieces_is_filled_for_a_buffer_that_needs_all_three)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 4 * SEGMENT});
    gpuhal_buffer *buffers[4];
    uint64_t freed = 0;
    for (unsigned char i = 0; i < 4; i++) {
        buffers[i] = take_filled(pool, SEGMENT, i);
    }
    const uint64_t address = gpuhal_buffer_address(buffers[0]);
    gpuhal_buffer_release(buffers[1]);
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, SEGMENT);
    gpuhal_buffer_release(buffers[0]);
    gpuhal_buffer_release(buffers[2]);
    gpuhal_buffer *all = take_filled(pool, 3 * SEGMENT, 7);
    assert_int_equal(gpuhal_buffer_address(all), address);
    assert_int_equal(state_of(pool).reserved.current, 4 * SEGMENT);
    expect_pattern(buffers[3], 3);
    gpuhal_buffer_release(all);
    gpuhal_buffer_release(buffers[3]);
    close_virtual(gpu, pool);
}

TEST(a_piece_with_a_used_byte_stays)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *large = take(pool, NULL, 4 * SEGMENT);
    uint64_t freed = 9;
    gpuhal_buffer_release(large);
    gpuhal_buffer *small = take_filled(pool, 1, 5);
    assert_int_equal(state_of(pool).unused_segment_bytes, 0);
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, 0);
    expect_pattern(small, 5);
    gpuhal_buffer_release(small);
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, 4 * SEGMENT);
    close_virtual(gpu, pool);
}

TEST(pieces_behind_work_of_a_queue_stay_until_it_has_ended)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, queue);
    gpuhal_buffer *buffer = take(pool, queue, SEGMENT);
    uint64_t freed = 9;
    assert_ok(gpuhal_fill(queue, buffer, 0, SEGMENT, 1, 1));
    gpuhal_buffer_release(buffer);
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, 0);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_int_equal(freed, SEGMENT);
    gpuhal_queue_destroy(queue);
    close_virtual(gpu, pool);
}

TEST(work_of_a_queue_keeps_the_addresses_of_a_pool_that_is_destroyed)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, queue);
    gpuhal_buffer *buffer = take(pool, queue, SEGMENT);
    static unsigned char got[SEGMENT];
    assert_ok(gpuhal_fill(queue, buffer, 0, SEGMENT, 0x21, 1));
    assert_ok(gpuhal_read(queue, got, buffer, 0, SEGMENT));
    gpuhal_buffer_release(buffer);
    gpuhal_pool_destroy(pool);
    assert_int_equal(gpuhal_mock.devices[0].ranges, 1);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_int_equal(got[SEGMENT - 1], 0x21);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
    assert_int_equal(gpuhal_mock.devices[0].ranges, 0);
}

TEST(kept_memory_of_a_pool_is_bounded_by_pieces_too)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.keep_bytes = 2 * SEGMENT});
    gpuhal_buffer *buffers[4];
    for (unsigned char i = 0; i < 4; i++) {
        buffers[i] = take_filled(pool, SEGMENT, i);
    }
    for (int i = 0; i < 4; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
    assert_int_equal(given(), 2 * SEGMENT);
    assert_int_equal(state_of(pool).reserved.current, 2 * SEGMENT);
    buffers[0] = take_filled(pool, 100, 1);
    gpuhal_pool_destroy(pool);
    expect_pattern(buffers[0], 1);
    assert_int_equal(given(), SEGMENT);
    gpuhal_buffer_release(buffers[0]);
    assert_int_equal(gpuhal_mock.devices[0].ranges, 0);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(addresses_lead_to_buffers_and_reserved_ones_without_memory_to_none)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *a = take(pool, NULL, EIGHTH), *b = take(pool, NULL, 1000), *found = NULL;
    uint64_t offset = 0;
    assert_ok(gpuhal_buffer_find(gpu, gpuhal_buffer_address(b) + 999, &found, &offset));
    assert_ptr_equal(found, b);
    assert_int_equal(offset, 999);
    gpuhal_buffer_release(found);
    assert_int_equal(gpuhal_buffer_find(gpu, gpuhal_buffer_address(a) + 100 * SEGMENT, &found, &offset),
                     GPUHAL_ERROR_NOT_FOUND);
    assert_null(gpuhal_buffer_host(a));
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(b);
    close_virtual(gpu, pool);
}

TEST(only_memory_counts_against_limits_and_not_addresses)
{
    gpuhal *gpu = open_virtual();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    assert_ok(gpuhal_device_limit_memory(device, 2 * SEGMENT));
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *one = take(pool, NULL, SEGMENT), *plain = gpuhal_mock_buffer(gpu, 0, SEGMENT);
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(given(), 2 * SEGMENT);
    gpuhal_buffer_release(one);
    /* the plain buffer gets the memory that the pool does not use */
    gpuhal_buffer *other = gpuhal_mock_buffer(gpu, 0, SEGMENT);
    assert_int_equal(state_of(pool).reserved.current, 0);
    gpuhal_buffer_release(other);
    gpuhal_buffer_release(plain);
    assert_ok(gpuhal_device_limit_memory(device, 0));
    assert_ok(gpuhal_pool_set_limit(pool, 2 * SEGMENT));
    one = take(pool, NULL, SEGMENT + UNIT);
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(given() <= 2 * SEGMENT);
    gpuhal_buffer_release(one);
    assert_int_equal(attempt(pool, NULL, 2 * SEGMENT, 0, 0), GPUHAL_OK);
    close_virtual(gpu, pool);
}

TEST(a_limit_below_a_page_is_kept_by_a_segment)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = PAGE - UNIT});
    assert_int_equal(attempt(pool, NULL, PAGE - UNIT, 0, 0), GPUHAL_OK);
    assert_int_equal(given(), PAGE - UNIT);
    close_virtual(gpu, pool);
}

TEST(a_piece_that_the_driver_refuses_is_halved_until_it_fits)
{
    gpuhal *gpu = open_virtual();
    gpuhal_mock.devices[0].total_bytes = EIGHTH + 2 * PAGE;
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *first = take(pool, NULL, EIGHTH), *second = take(pool, NULL, UNIT);
    assert_true(given() > EIGHTH && given() <= EIGHTH + 2 * PAGE);
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(second);
    gpuhal_buffer_release(take(pool, NULL, EIGHTH + 2 * PAGE));
    assert_int_equal(attempt(pool, NULL, EIGHTH + 2 * PAGE + 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_asked, EIGHTH + 2 * PAGE + 1);
    close_virtual(gpu, pool);
}

TEST(a_commit_that_fails_leaves_the_pool_as_it_was)
{
    gpuhal *gpu = open_virtual();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *kept = take_filled(pool, EIGHTH, 4);
    gpuhal_mock.devices[0].fail_commit = GPUHAL_ERROR_DRIVER;
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockCommit");
    gpuhal_mock.devices[0].fail_commit = GPUHAL_ERROR_OUT_OF_MEMORY;
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(state_of(pool).reserved.current, EIGHTH);
    gpuhal_mock.devices[0].fail_commit = GPUHAL_OK;
    assert_int_equal(attempt(pool, NULL, SEGMENT, 0, 0), GPUHAL_OK);
    expect_pattern(kept, 4);
    gpuhal_buffer_release(kept);
    close_virtual(gpu, pool);
}

static char warning[256];

static void keep_warning(void *user, int32_t level, const char *line)
{
    (void)user;
    if (level == 2) {
        snprintf(warning, sizeof warning, "%s", line);
    }
}

TEST(memory_that_the_driver_does_not_take_back_stays_with_the_pool_and_is_logged)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.page_bytes = PAGE, .total_bytes = TOTAL}}};
    const gpuhal_config config = {.size = sizeof config, .log = keep_warning};
    gpuhal *gpu = gpuhal_mock_open(&config, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer_release(take(pool, NULL, SEGMENT));
    gpuhal_mock.devices[0].fail_decommit = GPUHAL_ERROR_DRIVER;
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    assert_non_null(strstr(warning, "mockDecommit"));
    assert_int_equal(state_of(pool).reserved.current, SEGMENT);
    assert_int_equal(state_of(pool).free_bytes, SEGMENT);
    gpuhal_buffer *buffer = take_filled(pool, SEGMENT, 8);
    assert_int_equal(given(), SEGMENT);
    expect_pattern(buffer, 8);
    gpuhal_buffer_release(buffer);
    gpuhal_mock.devices[0].fail_decommit = GPUHAL_OK;
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    assert_int_equal(given(), 0);
    close_virtual(gpu, pool);
}

TEST(without_a_range_of_use_a_pool_takes_segments)
{
    static const struct {
        gpuhal_mock_device device;
        gpuhal_pool_desc desc;
    } cases[] = {
        {.device = {.page_bytes = PAGE, .fail_reserve = GPUHAL_ERROR_DRIVER}},
        {.device = {.page_bytes = PAGE, .fail_reserve = GPUHAL_ERROR_OUT_OF_MEMORY}},
        {.device = {.page_bytes = PAGE, .range_host = 1}},
        {.device = {.page_bytes = PAGE, .range_skewed = 1}},
        {.device = {.page_bytes = 3 * PAGE}},
        {.device = {.page_bytes = PAGE}, .desc = {.kind = GPUHAL_MEMORY_UPLOAD}},
        {.device = {.page_bytes = PAGE}, .desc = {.alignment = 2 * PAGE}},
        {.device = {.page_bytes = PAGE}, .desc = {.segment_bytes = PAGE / 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_mock = (gpuhal_mock_state){.count = 1};
        gpuhal_mock.devices[0] = cases[i].device;
        gpuhal_mock.devices[0].total_bytes = TOTAL;
        gpuhal *gpu = gpuhal_mock_open(NULL, 0);
        gpuhal_pool *pool = pool_or_fail(gpu, cases[i].desc);
        gpuhal_buffer_release(take(pool, NULL, 2 * UNIT));
        assert_int_equal(gpuhal_mock.devices[0].ranges, 0);
        assert_int_equal(gpuhal_mock.devices[0].commits, 0);
        assert_int_equal(gpuhal_mock.devices[0].allocations, 1);
        gpuhal_pool_destroy(pool);
        gpuhal_close(gpu);
        expect_nothing_left();
    }
}

enum { THREADS = 8, STEPS = 300, HELD = 6 };

typedef struct worker {
    gpuhal_pool *pool;
    uint64_t random;
    unsigned char pattern;
} worker;

static uint32_t below(worker *w, uint32_t end)
{
    w->random ^= w->random << 13, w->random ^= w->random >> 7, w->random ^= w->random << 17;
    return (uint32_t)((w->random * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % end;
}

/* The mock refuses concurrent calls on a range, and accesses to bytes without memory. */
static void *allocate_and_trim(void *user)
{
    worker *w = user;
    gpuhal_buffer *held[HELD] = {NULL};
    for (int i = 0; i < STEPS; i++) {
        const uint32_t at = below(w, HELD);
        unsigned char got = 0;
        if (held[at]) {
            const uint64_t last = gpuhal_buffer_bytes(held[at]) - 1;
            const bool right = gpuhal_read(NULL, &got, held[at], last, 1) == GPUHAL_OK && got == w->pattern;
            gpuhal_buffer_release(held[at]);
            held[at] = NULL;
            if (!right) {
                return "other bytes";
            }
        } else if (gpuhal_pool_allocate(w->pool, NULL, 1 + below(w, SEGMENT), 0, 0, &held[at]) == GPUHAL_OK) {
            if (gpuhal_fill(NULL, held[at], 0, gpuhal_buffer_bytes(held[at]), w->pattern, 1)) {
                return "filling";
            }
        } else if (gpuhal_last_error()->status != GPUHAL_ERROR_OUT_OF_MEMORY) {
            return "allocating";
        }
        if (below(w, 8) == 0 && gpuhal_pool_trim(w->pool, below(w, 4) * SEGMENT, NULL)) {
            return "trimming";
        }
    }
    for (int i = 0; i < HELD; i++) {
        gpuhal_buffer_release(held[i]);
    }
    return NULL;
}

TEST(threads_that_grow_and_trim_a_pool_get_memory_of_their_own)
{
    gpuhal *gpu = open_virtual();
    gpuhal_mock.devices[0].slow_range_us = 20;
    gpuhal_mock.devices[0].total_bytes = 20 * SEGMENT;
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.keep_bytes = 4 * SEGMENT});
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){.pool = pool, .random = 77u + (uint64_t)i, .pattern = (unsigned char)(i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_trim, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *problem = NULL;
        assert_int_equal(pthread_join(threads[i], &problem), 0);
        if (problem) {
            fail_msg("%s", (const char *)problem);
        }
    }
    assert_true(gpuhal_mock.devices[0].decommits > 0);
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    assert_int_equal(state_of(pool).reserved.current, 0);
    assert_int_equal(given(), 0);
    close_virtual(gpu, pool);
}

#include "test_main.h"
