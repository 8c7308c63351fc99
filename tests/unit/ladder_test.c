/* The rungs that a pool tries when memory is short. Each rung frees memory that no other rung can free. The pool asks
 * other owners of memory last. */
#include "unit/ladder_support.h"

/* Allocates buffers of a UNIT until a further buffer would need memory of other owners. */
static uint32_t take_all(gpuhal_pool *pool, gpuhal_buffer **out_buffers)
{
    uint32_t count = 0;
    while (gpuhal_pool_allocate(pool, NULL, UNIT, GPUHAL_ALLOCATE_NO_EVICT, 0, &out_buffers[count]) == GPUHAL_OK) {
        count++;
    }
    return count;
}

/* ---- memory without asking others */

TEST(memory_of_ended_work_is_taken_before_the_pool_grows_and_others_are_asked)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 2 * SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *large = take(pool, queue, SEGMENT);
    cache c = {.name = 'c'};
    add_callback(gpu, &c, 0);
    assert_ok(gpuhal_fill(queue, large, 0, SEGMENT, 1, 1));
    gpuhal_buffer_release(large);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    gpuhal_buffer_release(take(pool, NULL, SEGMENT));
    assert_int_equal(state_of(pool).reserved.total_in, SEGMENT);
    expect_asked("");
    gpuhal_queue_destroy(queue);
    end_ladder(gpu, pool);
}

TEST(a_pool_grows_and_trims_before_others_are_asked)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 3 * SEGMENT});
    cache c = {.name = 'c'};
    add_callback(gpu, &c, 0);
    gpuhal_buffer_release(take(pool, NULL, SEGMENT));
    gpuhal_buffer_release(take(pool, NULL, 2 * SEGMENT)); /* the pool grows */
    gpuhal_buffer_release(take(pool, NULL, 3 * SEGMENT)); /* this segment replaces both others */
    assert_int_equal(state_of(pool).segments, 1);
    expect_asked("");
    end_ladder(gpu, pool);
}

TEST(a_pool_takes_a_smaller_segment_before_it_takes_those_of_others)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 2 * SEGMENT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *other = pool_or_fail(gpu, (gpuhal_pool_desc){0}), *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_buffer *buffers[5];
    gpuhal_buffer_release(take(other, NULL, SEGMENT));
    for (int i = 0; i < 3; i++) {
        buffers[i] = take(pool, NULL, (uint64_t)SEGMENT >> (3 - i));
    }
    buffers[3] = take(pool, NULL, UNIT); /* a segment of the device's last bytes, an eighth of the full size */
    assert_int_equal(state_of(pool).reserved.current, SEGMENT);
    assert_int_equal(state_of(other).segments, 1);
    buffers[4] = take(pool, NULL, SEGMENT / 2); /* larger than such a segment */
    assert_int_equal(state_of(other).segments, 0);
    for (int i = 0; i < 5; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
    gpuhal_pool_destroy(other);
    end_ladder(gpu, pool);
}

TEST(memory_that_waits_for_another_queue_is_taken_over_before_others_are_asked)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    gpuhal_queue *first = queue_or_fail(gpu), *second = queue_or_fail(gpu);
    cache c = {.name = 'c'};
    add_callback(gpu, &c, 0);
    gpuhal_buffer *all = take(pool, first, LADDER_LIMIT);
    gpuhal_event *gate = close_gate(gpu, first);
    assert_ok(gpuhal_fill(first, all, 0, LADDER_LIMIT, 1, 1));
    gpuhal_buffer_release(all);
    gpuhal_buffer_release(take(pool, second, LADDER_LIMIT));
    expect_asked("");
    open_gate(gate);
    gpuhal_queue_destroy(second);
    gpuhal_queue_destroy(first);
    end_ladder(gpu, pool);
}

TEST(the_failure_names_the_largest_piece_that_the_queue_may_have_and_the_limit_of_the_device)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *half = take(pool, queue, SEGMENT / 2), *other = take(pool, queue, SEGMENT / 2), *none = NULL;
    gpuhal_event *gate = close_gate(gpu, queue);
    char words[64];
    assert_ok(gpuhal_device_limit_memory(gpuhal_device_at(gpu, 0), SEGMENT));
    assert_ok(gpuhal_fill(queue, half, 0, SEGMENT / 2, 1, 1));
    gpuhal_buffer_release(half);
    assert_int_equal(gpuhal_pool_allocate(pool, queue, SEGMENT, 0, 0, &none), GPUHAL_ERROR_OUT_OF_MEMORY);
    snprintf(words, sizeof words, " 0 of them in one piece (%d for this queue)", SEGMENT / 2);
    assert_non_null(strstr(gpuhal_last_error()->sentence, words));
    assert_int_equal(report_or_fail().limit_bytes, SEGMENT);
    open_gate(gate);
    gpuhal_buffer_release(other);
    gpuhal_queue_destroy(queue);
    end_ladder(gpu, pool);
}

TEST(memory_that_work_still_has_is_waited_for_before_others_are_asked)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    gpuhal_queue *queue = queue_or_fail(gpu);
    cache c = {.name = 'c'};
    add_callback(gpu, &c, 0);
    gpuhal_buffer *all = take(pool, queue, LADDER_LIMIT);
    gpuhal_event *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_fill(queue, all, 0, LADDER_LIMIT, 1, 1));
    gpuhal_buffer_release(all);
    opener own;
    begin_opening(&own, gate);
    const gpuhal_status status = attempt(pool, NULL, LADDER_LIMIT, 0, PATIENCE_NS);
    pthread_join(own.thread, NULL);
    assert_int_equal(status, GPUHAL_OK);
    /* On a busy machine the pool may wait for more than a second, and then calls the callback, which has no memory. */
    assert_true(c.calls <= 1);
    asked[0] = 0;
    gpuhal_queue_destroy(queue);
    end_ladder(gpu, pool);
}

/* ---- memory of others */

TEST(stores_evict_before_they_spill_and_callbacks_come_last_by_priority)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    cache evicts = {.name = 'e'}, spills = {.name = 's'}, low = {.name = 'a'}, high = {.name = 'b'};
    gpuhal_buffer *all = take(pool, NULL, LADDER_LIMIT);
    add_callback(gpu, &high, 5);
    add_callback(gpu, &low, -5);
    add_cache(gpu, &spills, GPUHAL_PRESSURE_SPILL, -9);
    add_cache(gpu, &evicts, GPUHAL_PRESSURE_EVICT, 9);
    assert_int_equal(attempt(pool, NULL, 3 * UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_asked("esab");
    assert_int_equal(low.bytes, 3 * UNIT);
    assert_int_equal(low.deadline_ns, 0);
    assert_ptr_equal(evicts.pool, pool);
    const gpuhal_memory_report report = report_or_fail();
    assert_int_equal(report.rungs[GPUHAL_RUNG_EVICT].tries, 1);
    assert_int_equal(report.rungs[GPUHAL_RUNG_SPILL].tries, 1);
    assert_int_equal(report.rungs[GPUHAL_RUNG_CALL].tries, 2);
    gpuhal_buffer_release(all);
    end_ladder(gpu, pool);
}

/* The message contains the numbers from before the request, and the limit. */
TEST(a_request_above_a_limit_is_refused_before_any_eviction_or_trim)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu), *free_pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    cache evicts = {.name = 'e'}, spills = {.name = 's'}, calls = {.name = 'c'};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 2 * SEGMENT + 1};
    gpuhal_buffer *none = NULL;
    fill_cache(&evicts, pool, NULL, 2, 4 * UNIT);
    fill_cache(&spills, pool, NULL, 1, 4 * UNIT);
    add_cache(gpu, &evicts, GPUHAL_PRESSURE_EVICT, 0);
    add_cache(gpu, &spills, GPUHAL_PRESSURE_SPILL, 0);
    add_callback(gpu, &calls, 0);
    for (uint64_t timeout_ns = 0; timeout_ns <= 20000000; timeout_ns += 20000000) {
        assert_int_equal(attempt(pool, NULL, LADDER_LIMIT + 1, 0, timeout_ns), GPUHAL_ERROR_OUT_OF_MEMORY);
        assert_int_equal(report_or_fail().used_bytes, 12 * UNIT);
        assert_int_equal(report_or_fail().reserved_bytes, LADDER_LIMIT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "left of the pool's limit of 4096 bytes"));
    }
    gpuhal_buffer_release(take(free_pool, NULL, UNIT)); /* an unused segment */
    assert_ok(gpuhal_device_limit_memory(device, 2 * SEGMENT));
    assert_int_equal(attempt(free_pool, NULL, 2 * SEGMENT + 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "left of the device's limit or lease of 131072 bytes"));
    assert_int_equal(gpuhal_buffer_create(device, &desc, &none), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(report_or_fail().limit_bytes, 2 * SEGMENT);
    assert_int_equal(state_of(free_pool).segments, 1);
    expect_asked("");
    assert_int_equal(evicts.count + spills.count, 3);
    empty_cache(&evicts);
    empty_cache(&spills);
    gpuhal_pool_destroy(free_pool);
    end_ladder(gpu, pool);
}

static void expect_given_by(gpuhal_pressure_rung rung)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    cache gives = {.name = 'g'}, later = {.name = 'l'};
    fill_cache(&gives, pool, NULL, 4, 4 * UNIT);
    if (rung == GPUHAL_PRESSURE_CALL) {
        add_callback(gpu, &gives, 0);
    } else {
        add_cache(gpu, &gives, rung, 0);
    }
    add_callback(gpu, &later, 1);
    assert_int_equal(attempt(pool, NULL, 4 * UNIT, 0, 0), GPUHAL_OK);
    expect_asked("g");
    assert_int_equal(gives.count, 3);
    empty_cache(&gives);
    end_ladder(gpu, pool);
}

TEST(memory_that_a_store_evicts_is_given_and_no_other_source_is_asked)
{
    expect_given_by(GPUHAL_PRESSURE_EVICT);
}

TEST(memory_that_a_store_spills_is_given_and_no_other_source_is_asked)
{
    expect_given_by(GPUHAL_PRESSURE_SPILL);
}

TEST(memory_that_a_callback_releases_is_given_and_no_other_source_is_asked)
{
    expect_given_by(GPUHAL_PRESSURE_CALL);
}

TEST(a_callback_is_asked_again_only_while_it_gives)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    cache first = {.name = 'a', .per_call = 1}, second = {.name = 'b', .per_call = 1};
    fill_cache(&first, pool, NULL, 2, 4 * UNIT);
    fill_cache(&second, pool, NULL, 2, 4 * UNIT);
    add_callback(gpu, &first, 0);
    add_callback(gpu, &second, 1);
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, 0, 0), GPUHAL_OK);
    expect_asked("aaabb");
    assert_int_equal(first.bytes, 4 * LADDER_LIMIT);
    assert_int_equal(second.bytes, 2 * LADDER_LIMIT);
    end_ladder(gpu, pool);
}

TEST(a_callback_that_gives_useless_memory_is_asked_until_it_has_nothing)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    cache gives = {.name = 'g', .per_call = 1};
    gpuhal_buffer *all = take(pool, NULL, LADDER_LIMIT);
    while (gives.count < CACHED) { /* device memory, which does not help a pool at its limit */
        gives.buffers[gives.count++] = gpuhal_mock_buffer(gpu, 0, 1);
    }
    add_callback(gpu, &gives, 0);
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gives.calls, CACHED + 1);
    assert_int_equal(report_or_fail().rungs[GPUHAL_RUNG_CALL].bytes, CACHED);
    gpuhal_buffer_release(all);
    asked[0] = 0;
    end_ladder(gpu, pool);
}

/* The bytes that a callback claims to have released, and the bytes that were requested from it. */
typedef struct claims {
    uint64_t each, calls, most_bytes;
} claims;

static uint64_t claim_much(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    claims *own = user;
    (void)device, (void)timeout_ns;
    own->calls++;
    own->most_bytes = bytes > own->most_bytes ? bytes : own->most_bytes;
    return own->each;
}

/* The device has 1 GiB. */
static uint64_t expect_claimed(uint64_t each, uint64_t calls, uint64_t most_bytes)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    claims of_pool = {.each = each}, of_device = {.each = each};
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_buffer *all = take(pool, NULL, LADDER_LIMIT), *none = NULL;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = (UINT64_C(1) << 30) - UNIT};
    assert_ok(gpuhal_device_on_pressure(device, 0, claim_much, &of_pool));
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    const uint64_t given = report_or_fail().rungs[GPUHAL_RUNG_CALL].bytes;
    assert_int_equal(of_pool.calls, calls);
    assert_int_equal(of_pool.most_bytes, most_bytes);
    assert_ok(gpuhal_device_off_pressure(device, claim_much, &of_pool));
    assert_ok(gpuhal_device_on_pressure(device, 0, claim_much, &of_device));
    assert_int_equal(gpuhal_buffer_create(device, &desc, &none), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(report_or_fail().rungs[GPUHAL_RUNG_CALL].bytes, given);
    assert_int_equal(of_device.calls, calls);
    gpuhal_buffer_release(all);
    end_ladder(gpu, pool);
    return given;
}

TEST(a_callback_is_asked_for_no_more_than_the_device_has)
{
    assert_int_equal(expect_claimed(1, 64, UINT64_C(1) << 30), 64);
}

TEST(a_callback_that_claims_all_memory_of_the_device_is_asked_no_more)
{
    assert_int_equal(expect_claimed(UINT64_C(1) << 29, 2, 2 * UNIT), UINT64_C(1) << 30);
    assert_int_equal(expect_claimed(UINT64_MAX, 1, UNIT), UINT64_MAX);
}

/* The sum of the claims of two callbacks exceeds 64 bits. */
TEST(the_sum_of_bytes_that_callbacks_claim_does_not_wrap)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    claims first = {.each = UINT64_MAX}, second = {.each = UINT64_MAX - 1};
    gpuhal_buffer *all = take(pool, NULL, LADDER_LIMIT);
    assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(gpu, 0), 0, claim_much, &first));
    assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(gpu, 0), 0, claim_much, &second));
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(report_or_fail().rungs[GPUHAL_RUNG_CALL].bytes, UINT64_MAX);
    assert_int_equal(report_or_fail().rungs[GPUHAL_RUNG_CALL].tries, 2);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "; 18446744073709551615 bytes were given by callbacks"));
    gpuhal_buffer_release(all);
    end_ladder(gpu, pool);
}

static uint64_t claim(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    (void)device, (void)timeout_ns;
    ++*(uint64_t *)user;
    assert_true(bytes > 0);
    return 1;
}

TEST(a_callback_that_always_claims_something_does_not_hold_the_caller)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    uint64_t calls = 0;
    assert_ok(gpuhal_device_on_pressure(gpuhal_device_at(gpu, 0), 0, claim, &calls));
    gpuhal_buffer *all = take(pool, NULL, LADDER_LIMIT);
    assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_true(calls > 1 && calls <= 65);
    assert_int_equal(report_or_fail().rungs[GPUHAL_RUNG_CALL].tries, calls);
    gpuhal_buffer_release(all);
    end_ladder(gpu, pool);
}

TEST(with_no_evict_neither_stores_nor_callbacks_are_asked)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    cache evicts = {.name = 'e'}, called = {.name = 'c'};
    fill_cache(&evicts, pool, NULL, 16, UNIT);
    add_cache(gpu, &evicts, GPUHAL_PRESSURE_EVICT, 0);
    add_callback(gpu, &called, 0);
    assert_int_equal(attempt(pool, NULL, UNIT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_asked("");
    const gpuhal_memory_report report = report_or_fail();
    assert_int_equal(report.rungs[GPUHAL_RUNG_EVICT].tries, 0);
    assert_int_equal(report.evictable_bytes, LADDER_LIMIT);
    assert_int_equal(report.pinned_bytes, 7);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "; 4096 bytes of stores could be evicted"));
    assert_non_null(strstr(gpuhal_last_error()->sentence, "; 7 bytes of stores are pinned"));
    empty_cache(&evicts);
    end_ladder(gpu, pool);
}

TEST(within_the_pool_others_are_asked_and_the_pool_does_not_grow)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = 8 * UNIT});
    gpuhal_buffer *buffers[16];
    cache c = {.name = 'c'};
    fill_cache(&c, pool, NULL, 1, UNIT);
    uint32_t count = 0;
    while (!gpuhal_pool_allocate(pool, NULL, UNIT, GPUHAL_ALLOCATE_WITHIN_POOL, 0, &buffers[count])) {
        count++;
    }
    add_callback(gpu, &c, 0);
    const uint64_t reserved = state_of(pool).reserved.current;
    assert_int_equal(attempt(pool, NULL, UNIT, GPUHAL_ALLOCATE_WITHIN_POOL, 0), GPUHAL_OK);
    expect_asked("c");
    assert_int_equal(state_of(pool).reserved.current, reserved);
    while (count > 0) {
        gpuhal_buffer_release(buffers[--count]);
    }
    end_ladder(gpu, pool);
}

TEST(the_last_search_finds_memory_that_a_callback_released_silently)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    const uint32_t flags[] = {0, GPUHAL_ALLOCATE_WITHIN_POOL};
    for (size_t i = 0; i < 2; i++) {
        cache c = {.name = 'c', .silent = true};
        fill_cache(&c, pool, NULL, 1, LADDER_LIMIT);
        add_callback(gpu, &c, 0);
        assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, flags[i], 0), GPUHAL_OK);
        expect_asked("c");
        assert_ok(gpuhal_device_off_pressure(gpuhal_device_at(gpu, 0), call_cached, &c));
    }
    end_ladder(gpu, pool);
}

TEST(a_failure_of_the_driver_after_others_were_asked_is_the_callers)
{
    static const gpuhal_status failures[] = {GPUHAL_ERROR_DRIVER, GPUHAL_ERROR_DEVICE_LOST};
    for (size_t i = 0; i < 2; i++) {
        gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = LADDER_LIMIT}}};
        gpuhal *gpu = gpuhal_mock_open(NULL, 0);
        gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = LADDER_LIMIT});
        cache c = {.name = 'c', .breaks = failures[i]};
        gpuhal_buffer *buffers[LADDER_LIMIT / UNIT + 1];
        uint32_t count = take_all(pool, buffers);
        assert_int_equal(count, LADDER_LIMIT / UNIT);
        add_callback(gpu, &c, 0);
        assert_int_equal(attempt(pool, NULL, UNIT, 0, 0), failures[i]);
        assert_null(gpuhal_last_memory_report());
        while (count > 0) {
            gpuhal_buffer_release(buffers[--count]);
        }
        asked[0] = 0;
        gpuhal_pool_destroy(pool);
        gpuhal_close(gpu);
    }
}

TEST(memory_of_another_pool_helps_if_the_device_is_full)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 4 * SEGMENT}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *other = pool_or_fail(gpu, (gpuhal_pool_desc){0}), *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    cache e = {.name = 'e'};
    fill_cache(&e, other, NULL, 4, SEGMENT);
    add_cache(gpu, &e, GPUHAL_PRESSURE_EVICT, 0);
    gpuhal_buffer *buffer = take(pool, NULL, SEGMENT);
    assert_int_equal(e.count, 3);
    assert_int_equal(state_of(other).segments, 3);
    asked[0] = 0;
    gpuhal_buffer_release(buffer);
    empty_cache(&e);
    gpuhal_pool_destroy(other);
    end_ladder(gpu, pool);
}

/* ---- time */

TEST(memory_that_a_store_gave_behind_work_is_waited_for)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    gpuhal_queue *queue = queue_or_fail(gpu);
    cache e = {.name = 'e'};
    fill_cache(&e, pool, queue, 1, LADDER_LIMIT);
    gpuhal_event *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_fill(queue, e.buffers[0], 0, LADDER_LIMIT, 1, 1));
    add_cache(gpu, &e, GPUHAL_PRESSURE_EVICT, 0);
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, GPUHAL_ALLOCATE_NO_WAIT, PATIENCE_NS),
                     GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(e.deadline_ns, 0);
    assert_int_equal(report_or_fail().ordered_bytes, LADDER_LIMIT);
    opener own;
    begin_opening(&own, gate);
    assert_int_equal(attempt(pool, NULL, LADDER_LIMIT, 0, PATIENCE_NS), GPUHAL_OK);
    pthread_join(own.thread, NULL);
    asked[0] = 0;
    gpuhal_queue_destroy(queue);
    end_ladder(gpu, pool);
}

TEST(endless_work_leaves_time_to_ask_callbacks_and_the_call_ends_in_time)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = limited_pool(gpu);
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *all = take(pool, queue, LADDER_LIMIT);
    gpuhal_event *gate = close_gate(gpu, queue);
    cache c = {.name = 'c'};
    assert_ok(gpuhal_fill(queue, all, 0, LADDER_LIMIT, 1, 1));
    gpuhal_buffer_release(all);
    add_cache(gpu, &c, GPUHAL_PRESSURE_SPILL, 0);
    /* A caller waits for less than half of this time before it asks other owners. */
    const uint64_t begun_ns = gpuhal_os_monotonic_ns();
    const uint64_t timeout_ns = 3000000000;
    assert_int_equal(attempt(pool, NULL, UNIT, 0, timeout_ns), GPUHAL_ERROR_OUT_OF_MEMORY);
    const uint64_t ended_ns = gpuhal_os_monotonic_ns();
    assert_true(ended_ns - begun_ns >= timeout_ns && ended_ns - begun_ns < PATIENCE_NS);
    assert_true(c.deadline_ns >= begun_ns + timeout_ns && c.deadline_ns <= ended_ns);
    assert_true(c.now_ns - begun_ns >= 1000000000);
    assert_true(report_or_fail().rungs[GPUHAL_RUNG_WAIT].tries == 2);
    asked[0] = 0;
    open_gate(gate);
    gpuhal_queue_destroy(queue);
    end_ladder(gpu, pool);
}

#include "test_main.h"
