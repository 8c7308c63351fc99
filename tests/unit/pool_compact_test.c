/* Compaction of pools, which frees a contiguous stretch of memory while the owners of its suballocations move them. */
#include "pool_support.h"

#include "pool/pool.h"

enum { SMALL = SEGMENT / 16, COUNT = 32 };

typedef struct fixture {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_buffer *parts[COUNT]; /* adjacent, filling one segment */
} fixture;

static fixture begin(uint64_t limit_bytes)
{
    fixture f = {.gpu = open_one()};
    f.pool = pool_or_fail(f.gpu, (gpuhal_pool_desc){.limit_bytes = limit_bytes});
    gpuhal_buffer_release(take(f.pool, NULL, COUNT * SMALL));
    for (int i = 0; i < COUNT; i++) {
        f.parts[i] = take(f.pool, NULL, SMALL);
        assert_int_equal(f.parts[i]->begin, i * SMALL);
    }
    return f;
}

static void release(fixture *f, int i)
{
    gpuhal_buffer_release(f->parts[i]);
    f->parts[i] = NULL;
}

static void end(fixture *f)
{
    for (int i = 0; i < COUNT; i++) {
        release(f, i);
    }
    gpuhal_pool_destroy(f->pool);
    gpuhal_close(f->gpu);
    expect_nothing_left();
}

/* Suballocations from 20 on, except 25, are free. */
static fixture with_free_parts(uint64_t limit_bytes)
{
    fixture f = begin(limit_bytes);
    for (int i = 20; i < COUNT; i++) {
        if (i != 25) {
            release(&f, i);
        }
    }
    return f;
}

TEST(the_stretch_needs_the_fewest_moves_and_takes_no_new_buffer)
{
    fixture f = with_free_parts(0);
    gpuhal_buffer *movable[] = {f.parts[18], f.parts[19], f.parts[25]};
    assert_int_equal(gpuhal_compact_begin(f.pool, movable, 3, 12 * SMALL, 0), 12 * SMALL);
    assert_true(gpuhal_compact_has(f.pool, f.parts[25]));
    assert_false(gpuhal_compact_has(f.pool, f.parts[19]));
    assert_int_equal(state_of(f.pool).free_bytes, 0);
    gpuhal_buffer *other = take(f.pool, NULL, SMALL);
    assert_false(gpuhal_compact_has(f.pool, other));
    assert_int_equal(gpuhal_compact_begin(f.pool, movable, 3, 12 * SMALL, 0), 0); /* only one compaction at a time */
    gpuhal_compact_release(f.pool, &movable[2], 1);
    f.parts[25] = NULL;
    gpuhal_buffer *late = take(f.pool, NULL, SMALL);
    assert_false(gpuhal_compact_has(f.pool, late));
    const uint64_t reserved = state_of(f.pool).reserved.current;
    assert_true(gpuhal_compact_end(f.pool, 0));
    assert_int_equal(state_of(f.pool).largest_free_bytes, 12 * SMALL);
    gpuhal_buffer_release(take(f.pool, NULL, 12 * SMALL));
    assert_int_equal(state_of(f.pool).reserved.current, reserved);
    gpuhal_buffer_release(other);
    gpuhal_buffer_release(late);
    end(&f);
}

TEST(a_buffer_that_cannot_move_is_never_in_a_stretch)
{
    fixture f = with_free_parts(0);
    assert_int_equal(gpuhal_compact_begin(f.pool, &f.parts[19], 1, 12 * SMALL, 0), 0);
    assert_int_equal(gpuhal_compact_begin(f.pool, &f.parts[19], 1, 6 * SMALL, 0), 6 * SMALL);
    assert_true(gpuhal_compact_has(f.pool, f.parts[19]));
    assert_false(gpuhal_compact_has(f.pool, f.parts[18]));
    assert_false(gpuhal_compact_has(f.pool, f.parts[25])); /* the suballocation begins at the stretch's end */
    assert_false(gpuhal_compact_end(f.pool, 0));           /* suballocation 19 has not moved */
    assert_int_equal(state_of(f.pool).free_bytes, 11 * SMALL);
    end(&f);
}

TEST(a_stretch_needs_room_elsewhere_for_its_buffers)
{
    fixture f = with_free_parts(COUNT * SMALL);
    assert_int_equal(gpuhal_compact_begin(f.pool, &f.parts[25], 1, 12 * SMALL, 0), 0);
    assert_int_equal(gpuhal_compact_begin(f.pool, &f.parts[25], 1, 11 * SMALL, 0), 11 * SMALL);
    assert_false(gpuhal_compact_end(f.pool, 0));
    assert_ok(gpuhal_pool_set_limit(f.pool, (COUNT + 1) * SMALL));
    assert_int_equal(gpuhal_compact_begin(f.pool, &f.parts[25], 1, 12 * SMALL, 0), 12 * SMALL);
    assert_false(gpuhal_compact_end(f.pool, 0));
    end(&f);
}

TEST(a_whole_segment_comes_free_if_the_others_have_room_without_growing)
{
    fixture f = with_free_parts(0);
    gpuhal_buffer *large = take(f.pool, NULL, 2 * SEGMENT), *alone[2];
    gpuhal_buffer_release(large);
    for (int i = 0; i < 2; i++) {
        alone[i] = take(f.pool, NULL, 7 * SMALL); /* larger than any free block of the first segment */
    }
    assert_int_equal(gpuhal_compact_begin(f.pool, alone, 1, 0, 0), 0);
    assert_int_equal(gpuhal_compact_begin(f.pool, alone, 2, 0, 0), 0); /* together 14 * SMALL, but only 11 are free */
    gpuhal_buffer_release(alone[1]);
    assert_int_equal(gpuhal_compact_begin(f.pool, alone, 1, 0, 0), 2 * SEGMENT);
    gpuhal_compact_release(f.pool, alone, 1);
    assert_true(gpuhal_compact_end(f.pool, 0));
    assert_true(f.pool->has_unused); /* the flag makes a pool over its keep limit search for unused memory */
    assert_int_equal(gpuhal_compact_trim(f.pool, 1), 2 * SEGMENT);
    assert_int_equal(state_of(f.pool).segments, 1);
    end(&f);
}

TEST(compaction_helps_if_pieces_and_allowed_growth_suffice_together)
{
    fixture f = with_free_parts(COUNT * SMALL + SMALL);
    assert_true(gpuhal_compact_may_help(f.pool, 12 * SMALL));
    assert_false(gpuhal_compact_may_help(f.pool, 12 * SMALL + 1));
    assert_ok(gpuhal_pool_set_limit(f.pool, 0)); /* like a driver's refusal */
    assert_true(gpuhal_compact_may_help(f.pool, 11 * SMALL));
    assert_false(gpuhal_compact_may_help(f.pool, 11 * SMALL + 1));
    end(&f);
}

TEST(a_stretch_is_free_once_work_in_the_old_place_has_ended)
{
    fixture f = with_free_parts(0);
    gpuhal_queue *queue = queue_or_fail(f.gpu);
    gpuhal_event *gate = close_gate(f.gpu, queue);
    assert_ok(gpuhal_fill(queue, f.parts[25], 0, SMALL, 1, 1));
    assert_int_equal(gpuhal_compact_begin(f.pool, &f.parts[25], 1, 12 * SMALL, 0), 12 * SMALL);
    gpuhal_compact_release(f.pool, &f.parts[25], 1);
    f.parts[25] = NULL;
    assert_false(gpuhal_compact_end(f.pool, gpuhal_os_monotonic_ns() + 5000000));
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_ok(attempt(f.pool, NULL, 12 * SMALL, GPUHAL_ALLOCATE_WITHIN_POOL, PATIENCE_NS));
    gpuhal_queue_destroy(queue);
    end(&f);
}

#include "test_main.h"
