/* The block allocator: the block that a request receives, merging, sizes at the limit, and failed allocations of the
 * allocator's own memory. */
#include "blocks_support.h"
#include "support/faults.h"

TEST(a_request_takes_the_smallest_of_the_first_blocks_that_fit)
{
    const uint64_t sizes[] = {1000, 1020, 1003, 1012, 1008};
    gpuhal_block_id used[5];
    set_up();
    for (uint32_t i = 0; i < 5; i++) {
        (void)gpuhal_blocks_add(&blocks, bins[0], i, sizes[i]);
    }
    const uint64_t wanted[] = {1001, 1003, 999, 1005, 1005}, given[] = {1003, 1008, 1000, 1012, 1020};
    for (uint32_t i = 0; i < 5; i++) {
        used[i] = gpuhal_blocks_take(&blocks, bins[0], wanted[i], 1);
        assert_int_equal(sizes[gpuhal_block_at(&blocks, used[i])->region], given[i]);
    }
    tear_down();
}

TEST(a_request_compares_eight_blocks_of_a_bin)
{
    set_up();
    /* The newest block is compared first. The remainder of a split block is put into another bin. */
    for (uint32_t i = 0; i < 9; i++) {
        (void)gpuhal_blocks_add(&blocks, bins[0], i, i == 0 ? 1002 : 1006);
    }
    gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins[0], 1001, 1);
    assert_int_not_equal(gpuhal_block_at(&blocks, id)->region, 0);
    id = gpuhal_blocks_take(&blocks, bins[0], 1001, 1);
    assert_int_equal(gpuhal_block_at(&blocks, id)->region, 0);
    tear_down();
}

TEST(a_request_that_only_the_last_of_many_blocks_fits_gets_it)
{
    set_up();
    /* All blocks are in one bin. The block that fits is behind more blocks than the first search compares. */
    (void)gpuhal_blocks_add(&blocks, bins[0], 0, 1023);
    for (uint32_t i = 1; i < 100; i++) {
        (void)gpuhal_blocks_add(&blocks, bins[0], i, 1008);
    }
    const gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins[0], 1010, 1);
    assert_int_not_equal(id, 0);
    assert_int_equal(gpuhal_block_at(&blocks, id)->region, 0);
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[0], 1010, 1), 0);
    tear_down();
}

/* Adds a region of the given size. Its first byte is used, and its other bytes are free. */
static void add_behind_a_used_byte(uint32_t region, uint64_t bytes)
{
    (void)gpuhal_blocks_add(&blocks, bins[1], region, bytes);
    assert_int_not_equal(gpuhal_blocks_take(&blocks, bins[1], 1, 1), 0);
    gpuhal_blocks_move(&blocks, bins[1], bins[0]);
}

TEST(blocks_of_larger_bins_that_have_no_aligned_part_hide_none_that_has)
{
    set_up();
    /* Adds 20 blocks to each of two bins that the request tries next. Then adds the block that fits and 20 newer blocks
     * to a larger bin, so the fitting block is the last in its bin. */
    for (uint32_t i = 0; i < 40; i++) {
        add_behind_a_used_byte(i, i < 20 ? 1501 : 1701);
    }
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[0], 1000, 1024), 0);
    add_behind_a_used_byte(40, 2025);
    for (uint32_t i = 41; i < 61; i++) {
        add_behind_a_used_byte(i, 2023);
    }
    const gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins[0], 1000, 1024);
    assert_int_not_equal(id, 0);
    assert_int_equal(gpuhal_block_at(&blocks, id)->region, 40);
    assert_int_equal(gpuhal_block_at(&blocks, id)->offset, 1024);
    assert_int_equal(gpuhal_block_at(&blocks, gpuhal_block_at(&blocks, id)->before)->bytes, 1023);
    assert_int_equal(gpuhal_block_at(&blocks, gpuhal_block_at(&blocks, id)->after)->bytes, 1);
    tear_down();
}

TEST(neighbours_in_other_bins_stay_apart_until_they_are_moved_together)
{
    set_up();
    const gpuhal_block_id whole = gpuhal_blocks_add(&blocks, bins[0], 7, 300);
    gpuhal_block_id parts[3];
    for (int i = 0; i < 3; i++) {
        parts[i] = gpuhal_blocks_take(&blocks, bins[0], 100, 1);
    }
    assert_int_equal(gpuhal_bins_free_count(bins[0]), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gpuhal_blocks_give(&blocks, bins[i], parts[i]), parts[i]);
    }
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[1], 101, 1), 0);
    gpuhal_blocks_move(&blocks, bins[0], bins[0]);
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 100);
    const gpuhal_block_id two = gpuhal_blocks_move_one(&blocks, bins[2], parts[1]);
    assert_int_equal(gpuhal_bins_largest(&blocks, bins[2]), 200);
    assert_int_equal(gpuhal_block_at(&blocks, two)->offset, 100);
    gpuhal_blocks_move(&blocks, bins[0], bins[2]);
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]) + gpuhal_bins_free_count(bins[0]), 0);
    assert_int_equal(gpuhal_bins_free_count(bins[2]), 1);
    const gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins[2], 300, 256);
    assert_int_equal(gpuhal_block_at(&blocks, id)->offset, 0);
    assert_int_equal(gpuhal_block_at(&blocks, id)->region, 7);
    gpuhal_blocks_remove(&blocks, gpuhal_blocks_give(&blocks, bins[0], id));
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 0);
    assert_int_not_equal(whole, 0);
    tear_down();
}

TEST(bytes_at_a_place_of_a_free_block_are_taken_and_the_rest_stays_free)
{
    static const struct {
        uint64_t offset, bytes, left, largest;
    } cases[] = {{0, 1000, 0, 0}, {0, 400, 600, 600}, {600, 400, 600, 600}, {100, 200, 800, 700}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_up();
        const gpuhal_block_id free_id = gpuhal_blocks_add(&blocks, bins[0], 3, 1000);
        const gpuhal_block_id id = gpuhal_blocks_take_at(&blocks, free_id, cases[i].offset, cases[i].bytes);
        const gpuhal_block block = *gpuhal_block_at(&blocks, id);
        assert_int_equal(block.offset, cases[i].offset);
        assert_int_equal(block.bytes, cases[i].bytes);
        assert_int_equal(block.region, 3);
        assert_null(block.bins);
        assert_int_equal(gpuhal_bins_free_bytes(bins[0]), cases[i].left);
        assert_int_equal(gpuhal_bins_largest(&blocks, bins[0]), cases[i].largest);
        assert_int_equal(block.before ? gpuhal_block_at(&blocks, block.before)->bytes : 0, cases[i].offset);
        (void)gpuhal_blocks_give(&blocks, bins[0], id);
        assert_int_equal(gpuhal_bins_largest(&blocks, bins[0]), 1000);
        assert_int_equal(gpuhal_bins_free_count(bins[0]), 1);
        tear_down();
    }
}

TEST(a_part_of_a_block_has_its_stamp_and_a_merged_one_the_largest)
{
    for (uint64_t largest = 0; largest < 3; largest++) {
        gpuhal_block_id used[3];
        set_up();
        (void)gpuhal_blocks_add(&blocks, bins[0], 0, 300);
        for (uint64_t i = 0; i < 3; i++) {
            used[i] = gpuhal_blocks_take(&blocks, bins[0], 100, 1);
            gpuhal_block_at(&blocks, used[i])->stamp = i == largest ? 9 : 4 + i;
        }
        (void)gpuhal_blocks_give(&blocks, bins[0], used[0]);
        (void)gpuhal_blocks_give(&blocks, bins[0], used[2]);
        const gpuhal_block_id all = gpuhal_blocks_give(&blocks, bins[0], used[1]);
        assert_int_equal(gpuhal_block_at(&blocks, all)->stamp, 9);
        const gpuhal_block_id middle = gpuhal_blocks_take_at(&blocks, all, 100, 100);
        const gpuhal_block block = *gpuhal_block_at(&blocks, middle);
        assert_int_equal(block.stamp, 9);
        assert_int_equal(gpuhal_block_at(&blocks, block.before)->stamp, 9);
        assert_int_equal(gpuhal_block_at(&blocks, block.after)->stamp, 9);
        tear_down();
    }
}

TEST(an_extended_region_is_one_block_only_with_free_bytes_of_the_same_bins)
{
    set_up();
    const gpuhal_block_id first = gpuhal_blocks_add(&blocks, bins[0], 0, 64);
    assert_int_equal(gpuhal_blocks_extend(&blocks, bins[0], first, 64), first);
    assert_int_equal(gpuhal_bins_largest(&blocks, bins[0]), 128);
    const gpuhal_block_id second = gpuhal_blocks_extend(&blocks, bins[1], first, 100);
    assert_int_not_equal(second, first);
    assert_int_equal(gpuhal_block_at(&blocks, second)->offset, 128);
    const gpuhal_block_id used = gpuhal_blocks_take(&blocks, bins[1], 100, 1);
    assert_int_equal(used, second);
    const gpuhal_block_id third = gpuhal_blocks_extend(&blocks, bins[1], used, 50);
    assert_int_equal(gpuhal_block_at(&blocks, third)->before, used);
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 128);
    assert_int_equal(gpuhal_bins_free_bytes(bins[1]), 50);
    tear_down();
}

TEST(sizes_and_alignments_up_to_two_to_the_63_do_not_overflow)
{
    const uint64_t half = UINT64_C(1) << 63;
    set_up();
    const gpuhal_block_id whole = gpuhal_blocks_add(&blocks, bins[0], 0, half);
    assert_int_equal(gpuhal_bins_largest(&blocks, bins[0]), half);
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[0], half, half), whole);
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[0], 1, 1), 0);
    assert_int_equal(gpuhal_blocks_give(&blocks, bins[0], whole), whole);
    const gpuhal_block_id one = gpuhal_blocks_take(&blocks, bins[0], 1, 1);
    assert_int_equal(gpuhal_bins_largest(&blocks, bins[0]), half - 1);
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[0], half, 1), 0);
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[0], 1, half), 0);
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[0], half - 1, 2), 0);
    const gpuhal_block_id upper = gpuhal_blocks_take(&blocks, bins[0], half / 2, half / 2);
    assert_int_equal(gpuhal_block_at(&blocks, upper)->offset, half / 2);
    const gpuhal_block_id rest = gpuhal_blocks_take(&blocks, bins[0], half / 2 - 1, 1);
    assert_int_equal(gpuhal_block_at(&blocks, rest)->offset, 1);
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 0);
    (void)gpuhal_blocks_give(&blocks, bins[0], upper);
    (void)gpuhal_blocks_give(&blocks, bins[0], one);
    const gpuhal_block_id merged = gpuhal_blocks_give(&blocks, bins[0], rest);
    assert_int_equal(gpuhal_block_at(&blocks, merged)->bytes, half);
    tear_down();
}

/* Fills the table until all entries are in use. bins[0] has one free block of 1000 bytes, after a used block of 1 byte.
 * The other blocks are free blocks of 1 byte in bins[1]. Returns the last of these. */
static gpuhal_block_id fill_table(void)
{
    assert_true(gpuhal_blocks_reserve(&blocks));
    gpuhal_block_id id = gpuhal_blocks_add(&blocks, bins[0], 0, 1001);
    assert_int_not_equal(gpuhal_blocks_take(&blocks, bins[0], 1, 1), 0);
    while (blocks.spare > 0) {
        id = gpuhal_blocks_add(&blocks, bins[1], 1, 1);
        assert_int_not_equal(id, 0);
    }
    return id;
}

TEST(without_memory_a_request_gets_the_whole_block)
{
    set_up();
    gpuhal_block_id other = fill_table();
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    const gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins[0], 100, 1);
    assert_true(gpuhal_fault_end());
    assert_int_equal(gpuhal_block_at(&blocks, id)->bytes, 1000);
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 0);
    (void)gpuhal_blocks_give(&blocks, bins[0], id);
    /* The caller must not receive the space before the aligned block as well. */
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    assert_int_equal(gpuhal_blocks_take(&blocks, bins[0], 100, 64), 0);
    assert_true(gpuhal_fault_end());
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 1000);
    /* With one free table entry, the space before the aligned block becomes a free block, and the caller receives the
     * rest. */
    gpuhal_blocks_remove(&blocks, other);
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    other = gpuhal_blocks_take(&blocks, bins[0], 100, 64);
    assert_true(gpuhal_fault_end());
    assert_int_equal(gpuhal_block_at(&blocks, other)->offset, 64);
    assert_int_equal(gpuhal_block_at(&blocks, other)->bytes, 1001 - 64);
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 63);
    tear_down();
}

TEST(entries_that_are_left_are_used_before_memory_is_asked_for)
{
    set_up();
    const gpuhal_block_id last = fill_table();
    gpuhal_blocks_remove(&blocks, last);
    gpuhal_blocks_remove(&blocks, last - 1);
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    assert_true(gpuhal_blocks_reserve(&blocks));
    assert_int_not_equal(gpuhal_blocks_add(&blocks, bins[1], 1, 1), 0);
    const gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins[0], 100, 1);
    assert_int_equal(gpuhal_block_at(&blocks, id)->bytes, 100);
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 900);
    assert_int_equal(blocks.spare, 0);
    assert_int_not_equal(gpuhal_blocks_take(&blocks, bins[0], 900, 1), 0);
    assert_false(gpuhal_fault_end());
    tear_down();
}

TEST(without_memory_regions_stay_as_they_are)
{
    set_up();
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    assert_null(gpuhal_bins_create());
    assert_true(gpuhal_fault_end());
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    assert_int_equal(gpuhal_blocks_add(&blocks, bins[0], 0, 10), 0);
    assert_true(gpuhal_fault_end());
    const gpuhal_block_id last = fill_table();
    const uint64_t bytes = gpuhal_bins_free_bytes(bins[1]);
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    assert_false(gpuhal_blocks_reserve(&blocks));
    assert_true(gpuhal_fault_end());
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    assert_int_equal(gpuhal_blocks_add(&blocks, bins[0], 0, 10), 0);
    assert_true(gpuhal_fault_end());
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    assert_int_equal(gpuhal_blocks_extend(&blocks, bins[0], last, 10), 0);
    assert_true(gpuhal_fault_end());
    assert_int_equal(gpuhal_bins_free_bytes(bins[0]), 1000);
    assert_int_equal(gpuhal_bins_free_bytes(bins[1]), bytes);
    assert_int_equal(gpuhal_block_at(&blocks, last)->after, 0);
    tear_down();
}

TEST(a_take_after_reserve_needs_no_memory)
{
    set_up();
    (void)fill_table();
    assert_true(gpuhal_blocks_reserve(&blocks));
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    const gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins[0], 100, 64);
    assert_false(gpuhal_fault_end());
    assert_int_equal(gpuhal_block_at(&blocks, id)->bytes, 100);
    assert_int_equal(gpuhal_bins_free_count(bins[0]), 2);
    tear_down();
}

TEST(the_end_of_blocks_gives_all_their_allocations_back)
{
    const int64_t held = gpuhal_fault_held();
    set_up();
    (void)fill_table();
    assert_int_equal(gpuhal_fault_held(), held + 1 + OWNERS);
    tear_down();
    gpuhal_bins_destroy(NULL);
    gpuhal_blocks_finish(&blocks);
    assert_int_equal(gpuhal_fault_held(), held);
}

#include "test_main.h"
