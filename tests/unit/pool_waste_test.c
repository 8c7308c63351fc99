/* For requests with a queue, in any state, a pool must allocate as much memory from the driver as for the same requests
 * without a queue. */
#include "pool/pool.h"
#include "pool_support.h"

enum { SLOTS = 1024, STEPS = 8000, LIVE = 4 * 1024 * 1024, SYNC_EVERY = 256, SEEDS = 3 };

typedef enum manner { NO_QUEUE, IDLE, BUSY, SYNCHRONIZED } manner;

typedef struct program {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_queue *queue; /* NULL for requests without a queue */
    gpuhal_event *gate;  /* the queue's work ends when the gate is opened; NULL if there is no work */
    gpuhal_buffer *buffers[SLOTS];
    uint32_t count;
    uint64_t live, random;
} program;

static uint64_t pick(program *p, uint64_t below)
{
    p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (p->random >> 33) % below;
}

static void release_one(program *p, uint32_t at)
{
    p->live -= gpuhal_buffer_bytes(p->buffers[at]);
    gpuhal_buffer_release(p->buffers[at]);
    p->buffers[at] = p->buffers[--p->count];
}

/* Sizes from each power of two to the next, from 256 bytes to 256 KiB, are equally frequent; most buffers are
 * short-lived. */
static void step(program *p)
{
    const uint64_t power = UINT64_C(256) << pick(p, 10), bytes = power + pick(p, power);
    while (p->count == SLOTS || p->live + bytes > LIVE) {
        release_one(p, (uint32_t)pick(p, p->count));
    }
    p->buffers[p->count++] = take(p->pool, p->queue, bytes);
    p->live += bytes;
    if (pick(p, 10) < 7) {
        const uint32_t newest = p->count < 10 ? p->count : 10;
        release_one(p, p->count - 1 - (uint32_t)pick(p, newest));
    }
}

static void end_work(program *p)
{
    open_gate(p->gate);
    p->gate = NULL;
    assert_ok(gpuhal_queue_synchronize(p->queue, PATIENCE_NS));
}

static program begin(manner how, uint64_t seed)
{
    program p = {.gpu = open_one(), .random = seed};
    p.pool = pool_or_fail(p.gpu, (gpuhal_pool_desc){.segment_bytes = 4 * SEGMENT});
    p.queue = how == NO_QUEUE ? NULL : queue_or_fail(p.gpu);
    return p;
}

static void end(program *p)
{
    while (p->count > 0) {
        release_one(p, p->count - 1);
    }
    if (p->gate) {
        end_work(p);
    }
    gpuhal_queue_destroy(p->queue);
    gpuhal_pool_destroy(p->pool);
    gpuhal_close(p->gpu);
    expect_nothing_left_soon();
}

static void expect_apart(const gpuhal_buffer *one, const gpuhal_buffer *other)
{
    const gpuhal_part *first = (const gpuhal_part *)one, *second = (const gpuhal_part *)other;
    const bool before = one->begin + gpuhal_buffer_bytes(one) <= other->begin;
    const bool after = other->begin + gpuhal_buffer_bytes(other) <= one->begin;
    assert_true(first->segment != second->segment || before || after);
}

/* Allocates more buffers, and expects that no buffers overlap. */
static void expect_apart_from_others(program *p)
{
    enum { OTHERS = 200 };
    gpuhal_buffer *others[OTHERS];
    gpuhal_queue *queue = queue_or_fail(p->gpu);
    for (uint32_t i = 0; i < OTHERS; i++) {
        others[i] = take(p->pool, i % 3 == 0 ? NULL : i % 3 == 1 ? queue : p->queue, 1 + pick(p, 8 * UNIT));
        for (uint32_t at = 0; at < p->count; at++) {
            expect_apart(others[i], p->buffers[at]);
        }
        for (uint32_t at = 0; at < i; at++) {
            expect_apart(others[i], others[at]);
        }
    }
    for (uint32_t i = 0; i < OTHERS; i++) {
        gpuhal_buffer_release(others[i]);
    }
    gpuhal_queue_destroy(queue);
}

/* Expects that both pools choose the same place for every request, regardless of the time when work ends. */
static void expect_same_places(manner how, uint64_t seed)
{
    program with = begin(how, seed);
    gpuhal_pool *without_queue = pool_or_fail(with.gpu, with.pool->desc);
    program without = {.gpu = with.gpu, .pool = without_queue, .random = seed};
    for (uint32_t i = 0; i < STEPS; i++) {
        if (!with.gate && (how == BUSY || how == SYNCHRONIZED)) {
            with.gate = close_gate(with.gpu, with.queue);
        }
        step(&with);
        step(&without);
        assert_int_equal(with.count, without.count);
        for (uint32_t at = i % 16; at < with.count; at += 16) {
            const gpuhal_part *one = (const gpuhal_part *)with.buffers[at];
            const gpuhal_part *other = (const gpuhal_part *)without.buffers[at];
            assert_int_equal(one->segment, other->segment);
            assert_int_equal(one->buffer.begin, other->buffer.begin);
        }
        if (how == SYNCHRONIZED && i % SYNC_EVERY == 0) {
            end_work(&with);
            assert_ok(gpuhal_pool_trim(with.pool, 0, NULL));
            assert_ok(gpuhal_pool_trim(without_queue, 0, NULL));
        }
    }
    assert_int_equal(state_of(with.pool).reserved.peak, state_of(without_queue).reserved.peak);
    while (without.count > 0) {
        release_one(&without, without.count - 1);
    }
    gpuhal_pool_destroy(without_queue);
    expect_apart_from_others(&with);
    end(&with);
}

TEST(every_buffer_has_the_same_place_with_one_queue_as_without)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        for (int how = IDLE; how <= SYNCHRONIZED; how++) {
            expect_same_places((manner)how, seed);
        }
    }
}

TEST(others_get_memory_that_was_free_before_the_only_queue_released)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer *large = take(pool, NULL, SEGMENT), *small = take(pool, queue, UNIT);
    gpuhal_buffer *newer = take(pool, queue, UNIT); /* prevents the lane from keeping `small` */
    gpuhal_buffer_release(large);
    assert_ok(gpuhal_fill(queue, newer, 0, UNIT, 1, 1));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS)); /* later releases are newer than this wait */
    gpuhal_event *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_fill(queue, small, 0, UNIT, 1, 1));
    gpuhal_buffer_release(small);
    const gpuhal_pool_statistics state = state_of(pool);
    assert_int_equal(state.ordered_bytes, UNIT);
    assert_int_equal(state.unused_segment_bytes, SEGMENT);
    assert_int_equal(state.largest_free_bytes, SEGMENT);
    const uint64_t reserved = state.reserved.current;
    large = take(pool, NULL, SEGMENT);
    assert_int_equal(state_of(pool).reserved.current, reserved);
    gpuhal_buffer *again = take(pool, queue, UNIT); /* the same place, after the work */
    assert_int_equal(state_of(pool).reserved.current, reserved);
    gpuhal_buffer_release(again);
    gpuhal_buffer_release(newer);
    gpuhal_buffer_release(large);
    open_gate(gate);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(near_a_limit_the_only_queue_leaves_memory_that_it_does_not_use_to_others)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.segment_bytes = SEGMENT, .limit_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer_release(take(pool, NULL, SEGMENT));
    gpuhal_buffer *small = take(pool, queue, UNIT), *newer = take(pool, queue, UNIT);
    gpuhal_event *gate = close_gate(gpu, queue);
    assert_ok(gpuhal_fill(queue, small, 0, UNIT, 1, 1));
    gpuhal_buffer_release(small);
    assert_int_equal(state_of(pool).ordered_bytes, UNIT);
    assert_int_equal(attempt(pool, NULL, SEGMENT - 2 * UNIT, 0, 0), GPUHAL_OK);
    gpuhal_buffer_release(newer);
    open_gate(gate);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

TEST(statistics_have_the_most_that_was_reserved_by_the_most_that_was_used)
{
    gpuhal *gpu = open_one();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    assert_int_equal(state_of(pool).peak_permille, 0);
    gpuhal_buffer_release(take(pool, NULL, SEGMENT / 16)); /* in a segment of twice its size */
    assert_int_equal(state_of(pool).peak_permille, 2000);
    gpuhal_buffer_release(take(pool, NULL, 3 * SEGMENT / 32));
    assert_int_equal(state_of(pool).peak_permille, 1333);
    assert_ok(gpuhal_pool_trim(pool, 0, NULL));
    assert_int_equal(state_of(pool).peak_permille, 1333);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

#include "test_main.h"
