/* The block allocator compared with a model that keeps ranges in arrays. Each byte of a region has one owner. A request
 * fails only if no free range fits. Adjacent free ranges in the same bins are one block. */
#include "blocks_support.h"

enum { REGIONS = 4, USED_MAX = 200, RANGES_MAX = 2 * USED_MAX * OWNERS, STEPS = 100000 };

enum { USED = -1 };

typedef struct {
    uint64_t offset, bytes;
    int owner; /* USED, or the number of the bins that list the range as free */
    gpuhal_block_id id;
    void *user;
} range;

typedef struct {
    range ranges[RANGES_MAX];
    uint32_t count;
} region;

static region model[REGIONS];
static uint32_t used_count;
static uint64_t random_state = 88172645463325252;

static uint64_t pick(uint64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static int owner_of(const gpuhal_bins *of)
{
    for (int i = 0; i < OWNERS; i++) {
        if (bins[i] == of) {
            return i;
        }
    }
    return USED;
}

static void merge_ranges(region *in)
{
    uint32_t kept = 0;
    for (uint32_t i = 1; i < in->count; i++) {
        if (in->ranges[kept].owner != USED && in->ranges[kept].owner == in->ranges[i].owner) {
            in->ranges[kept].bytes += in->ranges[i].bytes;
        } else {
            in->ranges[++kept] = in->ranges[i];
        }
    }
    in->count = kept + 1;
}

/* Expects that the region's blocks are exactly the model's ranges, in order. */
static void expect_region(uint32_t number, gpuhal_block_id any)
{
    region *in = &model[number];
    while (gpuhal_block_at(&blocks, any)->before != 0) {
        any = gpuhal_block_at(&blocks, any)->before;
    }
    gpuhal_block_id before = 0;
    for (uint32_t i = 0; i < in->count; i++) {
        const gpuhal_block *block = gpuhal_block_at(&blocks, any);
        assert_int_not_equal(any, 0);
        assert_int_equal(block->region, number);
        assert_int_equal(block->offset, in->ranges[i].offset);
        assert_int_equal(block->bytes, in->ranges[i].bytes);
        assert_int_equal(owner_of(block->bins), in->ranges[i].owner);
        assert_int_equal(block->before, before);
        if (in->ranges[i].owner == USED) {
            assert_int_equal(in->ranges[i].id, any);
            assert_ptr_equal(block->user, in->ranges[i].user);
        }
        in->ranges[i].id = any;
        before = any;
        any = block->after;
    }
    assert_int_equal(any, 0);
}

/* Expects that the bins have the same totals as the model, and that each table entry except entry 0 is either a block
 * or spare. */
static void expect_bins(void)
{
    uint32_t entries = 1 + blocks.spare;
    for (uint32_t r = 0; r < REGIONS; r++) {
        entries += model[r].count;
    }
    assert_int_equal(entries, blocks.capacity);
    for (int owner = 0; owner < OWNERS; owner++) {
        uint64_t bytes = 0, largest = 0, whole = 0;
        uint32_t count = 0;
        for (uint32_t r = 0; r < REGIONS; r++) {
            for (uint32_t i = 0; i < model[r].count; i++) {
                const range *at = &model[r].ranges[i];
                bytes += at->owner == owner ? at->bytes : 0;
                count += at->owner == owner;
                whole += at->owner == owner && model[r].count == 1 ? at->bytes : 0;
                largest = at->owner == owner && at->bytes > largest ? at->bytes : largest;
            }
        }
        assert_int_equal(gpuhal_bins_free_bytes(bins[owner]), bytes);
        assert_int_equal(gpuhal_bins_free_count(bins[owner]), count);
        assert_int_equal(gpuhal_bins_whole_bytes(bins[owner]), whole);
        assert_int_equal(gpuhal_bins_largest(&blocks, bins[owner]), largest);
        const uint64_t large = gpuhal_bins_large(&blocks, bins[owner]);
        assert_true(large <= largest && large >= largest - largest / 32);
    }
}

static bool fits(const range *free, uint64_t bytes, uint64_t alignment)
{
    const uint64_t begin = (free->offset + alignment - 1) / alignment * alignment;
    return begin + bytes <= free->offset + free->bytes;
}

static void expect_no_fit(int owner, uint64_t bytes, uint64_t alignment)
{
    for (uint32_t r = 0; r < REGIONS; r++) {
        for (uint32_t i = 0; i < model[r].count; i++) {
            assert_false(model[r].ranges[i].owner == owner && fits(&model[r].ranges[i], bytes, alignment));
        }
    }
}

static void put_range(region *in, uint32_t at, range new_one)
{
    assert_true(in->count < RANGES_MAX);
    memmove(&in->ranges[at + 1], &in->ranges[at], (in->count - at) * sizeof new_one);
    in->ranges[at] = new_one;
    in->count++;
}

static void add_region(uint32_t number, int owner, uint64_t bytes)
{
    model[number] = (region){.ranges = {{.bytes = bytes, .owner = owner}}, .count = 1};
    const gpuhal_block_id id = gpuhal_blocks_add(&blocks, bins[owner], number, bytes);
    expect_region(number, id);
}

/* Allocates a block, and removes its bytes from the model's free range. Returns false if no free range fits. */
static bool take(int owner, uint64_t bytes, uint64_t alignment)
{
    const gpuhal_block_id id = gpuhal_blocks_take(&blocks, bins[owner], bytes, alignment);
    if (id == 0) {
        expect_no_fit(owner, bytes, alignment);
        return false;
    }
    gpuhal_block *block = gpuhal_block_at(&blocks, id);
    assert_null(block->user);
    assert_int_equal(block->bytes, bytes);
    assert_int_equal(block->offset % alignment, 0);
    region *in = &model[block->region];
    uint32_t at = 0;
    while (in->ranges[at].offset + in->ranges[at].bytes <= block->offset) {
        at++;
    }
    const range was = in->ranges[at];
    assert_int_equal(was.owner, owner);
    assert_true(was.offset + was.bytes - block->offset >= bytes);
    block->user = (void *)(uintptr_t)++used_count;
    in->ranges[at] = (range){block->offset, bytes, USED, id, block->user};
    const uint64_t end = block->offset + bytes, rest = was.offset + was.bytes - end;
    if (rest > 0) {
        put_range(in, at + 1, (range){.offset = end, .bytes = rest, .owner = owner});
    }
    if (block->offset > was.offset) {
        put_range(in, at, (range){.offset = was.offset, .bytes = block->offset - was.offset, .owner = owner});
    }
    expect_region(block->region, id);
    return true;
}

/* Returns a random used or free range, or NULL if 20 random ranges were all of the wrong kind. */
static range *pick_range(bool used, uint32_t *out_region)
{
    for (int tries = 0; tries < 20; tries++) {
        *out_region = (uint32_t)pick(REGIONS);
        range *chosen = &model[*out_region].ranges[pick(model[*out_region].count)];
        if ((chosen->owner == USED) == used) {
            return chosen;
        }
    }
    return NULL;
}

static void give(int owner)
{
    uint32_t number;
    range *chosen = pick_range(true, &number);
    if (chosen != NULL) {
        const gpuhal_block_id id = gpuhal_blocks_give(&blocks, bins[owner], chosen->id);
        chosen->owner = owner;
        used_count--;
        merge_ranges(&model[number]);
        expect_region(number, id);
    }
}

static void move_one(int to)
{
    uint32_t number;
    range *chosen = pick_range(false, &number);
    if (chosen != NULL) {
        const gpuhal_block_id id = gpuhal_blocks_move_one(&blocks, bins[to], chosen->id);
        chosen->owner = to;
        merge_ranges(&model[number]);
        expect_region(number, id);
    }
}

static bool is_merged_away(gpuhal_block_id id)
{
    gpuhal_block_id unused = blocks.unused;
    while (unused != 0 && unused != id) {
        unused = gpuhal_block_at(&blocks, unused)->next;
    }
    return unused == id;
}

static void move_all(int from, int to)
{
    gpuhal_blocks_move(&blocks, bins[from], bins[to]);
    for (uint32_t r = 0; r < REGIONS; r++) {
        gpuhal_block_id known = 0;
        for (uint32_t i = 0; i < model[r].count; i++) {
            range *at = &model[r].ranges[i];
            known = known == 0 && !is_merged_away(at->id) ? at->id : known;
            at->owner = at->owner == from ? to : at->owner;
        }
        merge_ranges(&model[r]);
        expect_region(r, known);
    }
}

static void extend(uint32_t number, int owner, uint64_t bytes)
{
    region *in = &model[number];
    const range last = in->ranges[in->count - 1];
    const gpuhal_block_id id = gpuhal_blocks_extend(&blocks, bins[owner], last.id, bytes);
    put_range(in, in->count, (range){.offset = last.offset + last.bytes, .bytes = bytes, .owner = owner});
    merge_ranges(in);
    expect_region(number, id);
}

/* If the whole region is free, replaces it with a new region. */
static bool replace(uint32_t number, int owner, uint64_t bytes)
{
    const range first = model[number].ranges[0];
    if (model[number].count > 1 || first.owner == USED) {
        return false;
    }
    gpuhal_blocks_remove(&blocks, first.id);
    assert_true(is_merged_away(first.id));
    model[number].ranges[0].bytes = 0;
    add_region(number, owner, bytes);
    return true;
}

static uint64_t pick_bytes(void)
{
    return pick(4) > 0 ? 1 + pick(70) : 1 + pick(UINT64_C(1) << pick(14));
}

TEST(blocks_behave_like_an_array_of_ranges)
{
    uint32_t refused = 0, replaced = 0;
    set_up();
    for (uint32_t r = 0; r < REGIONS; r++) {
        add_region(r, (int)r % OWNERS, UINT64_C(3000) << r);
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        /* Phases that mostly allocate alternate with phases that mostly free, so that regions become full and empty in
         * turn. */
        const uint64_t takes = step / 1000 % 2 ? 20 : 60, what = pick(100);
        const int owner = (int)pick(OWNERS);
        if (what < takes) {
            const uint64_t alignment = pick(2) ? 1 : UINT64_C(1) << pick(12);
            refused += used_count < USED_MAX && !take(owner, pick_bytes(), alignment);
        } else if (what < 92) {
            give(owner);
        } else if (what < 96) {
            move_one(owner);
        } else if (what < 98) {
            move_all((int)pick(OWNERS), owner);
        } else if (what < 99) {
            extend((uint32_t)pick(REGIONS), owner, pick_bytes());
        } else {
            replaced += replace((uint32_t)pick(REGIONS), owner, 1 + pick(30000));
        }
        expect_bins();
    }
    assert_true(refused > 1000);
    assert_true(replaced > 50);
    tear_down();
}

#include "test_main.h"
