/* Stores: moves of unpinned entries, which free contiguous memory. */
#include "pressure_support.h"
#include "store_support.h"

enum { SMALL = SEGMENT / 16, COUNT = 13 };

static void put_small(store_fixture *f, int i)
{
    char key[4];
    snprintf(key, sizeof key, "%d", i);
    assert_ok(put_now(f, key, SMALL, (unsigned char)(i + 1)));
}

static void expect_small(store_fixture *f, int i)
{
    char key[4];
    gpuhal_item *item = NULL;
    snprintf(key, sizeof key, "%d", i);
    assert_int_equal(entry_of(f->store, key).tiers, GPUHAL_TIER_DEVICE);
    assert_ok(acquire_now(f, key, 0, &item));
    expect_bytes(item, NULL, (unsigned char)(i + 1));
    gpuhal_item_release(item, NULL);
}

/* Begins with small entries in the memory of a released large buffer. With a limit of 3 * SEGMENT, enough bytes
 * for another such buffer are free, but they are not contiguous. */
static store_fixture begin(gpuhal_store_desc desc, uint64_t limit_bytes)
{
    store_fixture f = store_or_fail(desc, limit_bytes);
    gpuhal_buffer *large = take(f.pool, NULL, 2 * SEGMENT);
    gpuhal_buffer_release(large);
    for (int i = 0; i < COUNT; i++) {
        put_small(&f, i);
    }
    assert_int_equal(state_of(f.pool).segments, 1);
    return f;
}

static void end(store_fixture *f, uint64_t moves)
{
    for (int i = 0; i < COUNT; i++) {
        expect_small(f, i);
    }
    const gpuhal_store_statistics counts = counts_of(f->store);
    assert_int_equal(counts.evictions, 0);
    assert_int_equal(counts.spills, 0);
    assert_int_equal(counts.moves, moves);
    assert_int_equal(counts.moved_bytes, moves * SMALL);
    close_store(f);
}

TEST(entries_move_out_of_the_way_of_a_large_buffer_and_stay_in_device_memory)
{
    for (int spills = 0; spills < 2; spills++) {
        store_fixture f = begin((gpuhal_store_desc){.host_bytes = spills ? UINT64_MAX : 0}, 3 * SEGMENT);
        gpuhal_buffer_release(take(f.pool, NULL, 2 * SEGMENT));
        assert_true(state_of(f.pool).reserved.peak <= 3 * SEGMENT);
        end(&f, COUNT);
    }
}

TEST(entries_move_out_of_the_way_of_a_large_entry)
{
    store_fixture f = begin((gpuhal_store_desc){.host_bytes = UINT64_MAX}, 3 * SEGMENT);
    assert_ok(put_now(&f, "large", 2 * SEGMENT, 99));
    end(&f, COUNT);
}

TEST(a_buffer_that_finds_a_place_moves_nothing)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3 * SEGMENT);
    gpuhal_buffer_release(take(f.pool, NULL, SEGMENT));
    end(&f, 0);
}

TEST(nothing_moves_without_room_for_the_entries_in_the_way)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 2 * SEGMENT + 12 * SMALL);
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_memory_report()->rungs[GPUHAL_RUNG_COMPACT].tries, 0);
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT - 6 * SMALL, 0, 0), GPUHAL_OK);
    assert_true(counts_of(f.store).moves > 0);
    close_store(&f);
}

TEST(calls_that_ask_no_store_or_stay_within_the_pool_move_nothing)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3 * SEGMENT);
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT, GPUHAL_ALLOCATE_WITHIN_POOL, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    end(&f, 0);
}

TEST(a_pinned_entry_stays_and_as_little_as_possible_moves_around_it)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3 * SEGMENT);
    gpuhal_item *item = NULL;
    assert_ok(acquire_now(&f, "4", 0, &item)); /* the fifth of 32 places */
    gpuhal_buffer *pinned = gpuhal_item_buffer(item, NULL);
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(attempt(f.pool, NULL, 2 * SEGMENT - 5 * SMALL, 0, 0));
    assert_ptr_equal(gpuhal_item_buffer(item, NULL), pinned);
    expect_bytes(item, NULL, 5);
    gpuhal_item_release(item, NULL);
    end(&f, COUNT - 5);
}

TEST(a_buffer_that_is_no_entry_stays)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3 * SEGMENT);
    gpuhal_buffer *own = take(f.pool, NULL, SMALL);
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_buffer_release(own);
    assert_ok(attempt(f.pool, NULL, 2 * SEGMENT, 0, 0));
    end(&f, COUNT);
}

TEST(segments_are_emptied_if_none_is_large_enough)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = UINT64_MAX}, 4 * SEGMENT);
    gpuhal_buffer *rest[4];
    for (int i = 0; i < 4; i++) { /* one small entry per segment */
        put_small(&f, i);
        rest[i] = take(f.pool, NULL, state_of(f.pool).free_bytes);
    }
    const uint64_t reserved = state_of(f.pool).reserved.current;
    for (int i = 0; i < 4; i++) {
        gpuhal_buffer_release(rest[i]);
    }
    for (int i = 4; i < COUNT; i++) {
        put_small(&f, i);
    }
    const uint64_t largest = 4 * SEGMENT - SEGMENT;
    assert_true(state_of(f.pool).largest_free_bytes < largest && reserved <= 4 * SEGMENT);
    assert_ok(attempt(f.pool, NULL, largest, 0, 0));
    assert_true(counts_of(f.store).moves > 0);
    end(&f, counts_of(f.store).moves);
}

TEST(a_call_moves_entries_together_and_gives_the_segments_back)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    gpuhal_buffer *rest[4];
    uint64_t freed = 1;
    for (int i = 0; i < 4; i++) {
        put_small(&f, i);
        rest[i] = take(f.pool, NULL, state_of(f.pool).free_bytes);
    }
    gpuhal_buffer *stays = take(f.pool, NULL, SEGMENT); /* owned by the caller */
    for (int i = 0; i < 4; i++) {
        gpuhal_buffer_release(rest[i]);
    }
    const uint64_t reserved = state_of(f.pool).reserved.current;
    assert_ok(gpuhal_store_compact(f.store, 0, &freed));
    assert_int_equal(state_of(f.pool).reserved.current, reserved - freed);
    assert_true(freed > 0 && state_of(f.pool).segments == 2);
    assert_true(counts_of(f.store).moves > 0 && counts_of(f.store).moves <= 3);
    assert_ok(gpuhal_store_compact(f.store, 0, &freed));
    assert_int_equal(freed, 0);
    gpuhal_buffer_release(stays);
    assert_ok(gpuhal_store_compact(f.store, 0, NULL));
    assert_int_equal(state_of(f.pool).segments, 1);
    for (int i = 4; i < COUNT; i++) {
        put_small(&f, i);
    }
    end(&f, counts_of(f.store).moves);
}

TEST(an_empty_store_compacts_its_pool_and_arguments_are_checked)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){0}, 0);
    uint64_t freed = 1;
    assert_ok(gpuhal_store_compact(f.store, 0, &freed));
    assert_int_equal(freed, 0);
    gpuhal_buffer_release(take(f.pool, NULL, SEGMENT));
    assert_ok(gpuhal_store_compact(f.store, 0, &freed));
    assert_int_equal(freed, SEGMENT);
    assert_int_equal(gpuhal_store_compact(NULL, 0, &freed), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(freed, 0);
    close_store(&f);
}

/* The entry has two parts. After the move it is still the oldest entry, so it is spilled first. */
TEST(an_entry_moves_with_its_parts_and_keeps_its_copy_its_age_and_its_tag)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = UINT64_MAX}, 3 * SEGMENT);
    const gpuhal_item_part parts[] = {{.name = "x", .bytes = SMALL}, {.name = "y", .bytes = 3 * SMALL}};
    const gpuhal_item_desc desc = {.size = sizeof desc, .parts = parts, .part_count = 2};
    gpuhal_item *item = NULL;
    gpuhal_buffer_release(take(f.pool, NULL, 2 * SEGMENT));
    assert_ok(gpuhal_store_put(f.store, NULL, "parts", 5, &desc, 0, &item));
    assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, "x"), 0, SMALL, 1, 1));
    assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, "y"), 0, 3 * SMALL, 2, 1));
    assert_ok(gpuhal_buffer_set_tag(gpuhal_item_buffer(item, "y"), "mine"));
    gpuhal_item_release(item, NULL);
    put_small(&f, 0);
    put_small(&f, 1);
    gpuhal_buffer *large = take(f.pool, NULL, 2 * SEGMENT);
    assert_int_equal(counts_of(f.store).moves, 3);
    assert_int_equal(counts_of(f.store).moved_bytes, 6 * SMALL);
    assert_int_equal(relieve_device(gpuhal_device_at(f.gpu, 0), GPUHAL_PRESSURE_SPILL, f.pool, 1, 0), 4 * SMALL);
    assert_int_equal(entry_of(f.store, "parts").tiers, GPUHAL_TIER_HOST);
    expect_small(&f, 1);
    gpuhal_buffer_release(large);
    assert_ok(acquire_now(&f, "parts", 0, &item));
    expect_bytes(item, "x", 1);
    expect_bytes(item, "y", 2);
    gpuhal_item_release(item, NULL);
    close_store(&f);
}

TEST(an_entry_moves_once_the_work_that_fills_it_has_ended)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3 * SEGMENT);
    gpuhal_item *item = NULL;
    assert_ok(acquire_now(&f, "3", GPUHAL_ACQUIRE_MODIFY, &item));
    assert_ok(gpuhal_fill(NULL, gpuhal_item_buffer(item, NULL), 0, SMALL, 0x55, 1)); /* a premature move copies these */
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(gpuhal_fill(f.queue, gpuhal_item_buffer(item, NULL), 0, SMALL, 4, 1));
    gpuhal_item_release(item, f.queue);
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    open_gate(gate);
    assert_ok(attempt(f.pool, NULL, 2 * SEGMENT, 0, PATIENCE_NS));
    for (int i = 0; i < COUNT; i++) {
        expect_small(&f, i);
    }
    close_store(&f);
}

TEST(a_queue_reads_an_entry_in_its_old_place_while_it_moves)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3 * SEGMENT);
    gpuhal_item *item = NULL;
    unsigned char got[SMALL];
    gpuhal_event *gate = close_gate(f.gpu, f.queue);
    assert_ok(gpuhal_store_acquire(f.store, f.queue, "3", 1, NULL, 0, 0, &item));
    assert_ok(gpuhal_read(f.queue, got, gpuhal_item_buffer(item, NULL), 0, SMALL));
    gpuhal_item_release(item, f.queue);
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY); /* the old place is used */
    assert_int_equal(counts_of(f.store).moves, COUNT);
    open_gate(gate);
    assert_ok(attempt(f.pool, NULL, 2 * SEGMENT, 0, PATIENCE_NS));
    assert_ok(gpuhal_queue_synchronize(f.queue, PATIENCE_NS));
    assert_int_equal(got[0], 4);
    assert_int_equal(got[SMALL - 1], 4);
    end(&f, counts_of(f.store).moves);
}

TEST(an_entry_that_cannot_be_copied_stays_with_its_bytes)
{
    store_fixture f = begin((gpuhal_store_desc){0}, 3 * SEGMENT);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_ERROR_DRIVER;
    assert_int_equal(attempt(f.pool, NULL, 2 * SEGMENT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_OK;
    for (int i = 0; i < COUNT; i++) {
        expect_small(&f, i);
    }
    close_store(&f);
}

#include "test_main.h"
