/* memory/blocks.c: two-level segregated fit; the records are stored outside the managed memory.
 *
 * Each power of two is divided into 32 bins, which are lists of free blocks of similar size. Two levels of bitmaps find
 * the next bin that is not empty. A request examines a limited number of blocks in its own bin (whose blocks may be too
 * small) and, if none fits, in each larger bin until one fits. Of a bin's examined blocks it takes the smallest that
 * fits, which wastes less memory than the first, and takes little more time. If no examined block fits, it searches the
 * lists completely. */
#include "memory/blocks.h"

#include <stdlib.h>
#include <string.h>

/* Bins are numbered consecutively. Each size below 64 bytes has its own bin. A larger size is shifted right until six
 * bits are left; the bin's number is the shift times 32 plus these six bits. */
enum {
    FRACTION_BITS = 5,
    PER_CLASS = 1 << FRACTION_BITS,
    CLASSES = 64 - FRACTION_BITS + 1,
    BINS = CLASSES * PER_CLASS
};

/* Maximum number of blocks of one bin that are compared. */
enum { COMPARED = 8 };

enum { FIRST_CAPACITY = 64 };

/* A split makes at most three blocks: one keeps the free block's entry, the others need new entries. */
enum { ENTRIES_OF_A_SPLIT = 2 };

struct gpuhal_bins {
    uint64_t free_bytes;
    uint64_t whole_bytes; /* total size of blocks that fill their region */
    uint64_t classes; /* bit c is set if filled[c] is not 0 */
    uint32_t free_count;
    uint32_t filled[CLASSES + 1]; /* bit f of word c is set if first[c * PER_CLASS + f] is not 0; the last word is 0 */
    gpuhal_block_id first[BINS];
};

void gpuhal_blocks_init(gpuhal_blocks *blocks)
{
    *blocks = (gpuhal_blocks){0};
}

void gpuhal_blocks_finish(gpuhal_blocks *blocks)
{
    free(blocks->table);
    *blocks = (gpuhal_blocks){0};
}

gpuhal_bins *gpuhal_bins_create(void)
{
    return calloc(1, sizeof(gpuhal_bins));
}

void gpuhal_bins_destroy(gpuhal_bins *bins)
{
    free(bins);
}

gpuhal_bins *gpuhal_blocks_copy(gpuhal_blocks *to, const gpuhal_blocks *from, const gpuhal_bins *bins)
{
    gpuhal_block *table = malloc(from->capacity * sizeof *table);
    gpuhal_bins *own = table ? malloc(sizeof *own) : NULL;
    if (!own) {
        free(table);
        return NULL;
    }
    *own = *bins;
    memcpy(table, from->table, from->touched * sizeof *table);
    for (uint32_t i = 0; i < from->touched; i++) {
        table[i].bins = table[i].bins ? own : NULL;
        table[i].user = NULL;
    }
    *to = *from;
    to->table = table;
    return own;
}

static bool grow(gpuhal_blocks *blocks)
{
    const uint32_t old = blocks->capacity;
    uint32_t capacity = FIRST_CAPACITY;
    size_t bytes;
    if ((old > 0 && __builtin_mul_overflow(old, 2, &capacity)) ||
        __builtin_mul_overflow(capacity, sizeof(gpuhal_block), &bytes)) {
        return false;
    }
    gpuhal_block *table = realloc(blocks->table, bytes);
    if (table == NULL) {
        return false;
    }
    if (old == 0) {
        table[0] = (gpuhal_block){0};
        blocks->touched = 1;
        blocks->spare = FIRST_CAPACITY - 1;
    } else {
        blocks->spare += capacity - old;
    }
    blocks->table = table;
    blocks->capacity = capacity;
    return true;
}

bool gpuhal_blocks_reserve(gpuhal_blocks *blocks)
{
    return blocks->spare >= ENTRIES_OF_A_SPLIT || grow(blocks);
}

/* Takes an entry, which gpuhal_blocks.spare has counted as available. */
static gpuhal_block_id new_entry(gpuhal_blocks *blocks)
{
    blocks->spare--;
    if (blocks->unused == 0) {
        return blocks->touched++;
    }
    const gpuhal_block_id id = blocks->unused;
    blocks->unused = blocks->table[id].next;
    return id;
}

static void drop_entry(gpuhal_blocks *blocks, gpuhal_block_id id)
{
    blocks->table[id].bytes = 0;
    blocks->table[id].user = NULL;
    blocks->table[id].next = blocks->unused;
    blocks->unused = id;
    blocks->spare++;
}

static unsigned bin_of(uint64_t bytes)
{
    const unsigned shift = 63 - FRACTION_BITS - (unsigned)__builtin_clzll(bytes | PER_CLASS);
    return (shift << FRACTION_BITS) + (unsigned)(bytes >> shift);
}

/* Returns the first bin at or after `from` that is not empty, or BINS. */
static unsigned next_bin(const gpuhal_bins *bins, unsigned from)
{
    unsigned class = from >> FRACTION_BITS;
    uint32_t word = bins->filled[class] & UINT32_MAX << (from & (PER_CLASS - 1));
    if (word == 0) {
        const uint64_t larger = bins->classes & UINT64_MAX << class << 1;
        if (larger == 0) {
            return BINS;
        }
        class = (unsigned)__builtin_ctzll(larger);
        word = bins->filled[class];
    }
    return (class << FRACTION_BITS) + (unsigned)__builtin_ctz(word);
}

static void enlist(gpuhal_block *table, gpuhal_bins *bins, gpuhal_block_id id, unsigned bin)
{
    const gpuhal_block_id next = bins->first[bin];
    table[id].bins = bins;
    table[id].previous = 0;
    table[id].next = next;
    table[next].previous = id;
    bins->first[bin] = id;
    bins->filled[bin >> FRACTION_BITS] |= UINT32_C(1) << (bin & (PER_CLASS - 1));
    bins->classes |= UINT64_C(1) << (bin >> FRACTION_BITS);
    bins->free_count++;
}

static void delist(gpuhal_block *table, gpuhal_block_id id, unsigned bin)
{
    gpuhal_bins *bins = table[id].bins;
    const gpuhal_block_id previous = table[id].previous, next = table[id].next;
    table[next].previous = previous;
    if (previous != 0) {
        table[previous].next = next;
    } else {
        bins->first[bin] = next;
        if (next == 0) {
            const unsigned class = bin >> FRACTION_BITS;
            bins->filled[class] &= ~(UINT32_C(1) << (bin & (PER_CLASS - 1)));
            bins->classes &= ~((uint64_t)(bins->filled[class] == 0) << class);
        }
    }
    bins->free_count--;
}

/* Changes the size of a free block. If the bin stays the same, the block keeps its position in the list. This is
 * usual for large blocks, from which most requests are cut. */
static void resize(gpuhal_block *table, gpuhal_block_id id, uint64_t bytes)
{
    const unsigned old = bin_of(table[id].bytes), new = bin_of(bytes);
    table[id].bytes = bytes;
    if (old != new) {
        delist(table, id, old);
        enlist(table, table[id].bins, id, new);
    }
}

/* Returns the size of a block that fills its region, or 0 for any other block. */
static uint64_t whole_bytes_of(const gpuhal_block *block)
{
    return block->before == 0 && block->after == 0 ? block->bytes : 0;
}

/* Frees a block that is in no list: adds it to `bins`. A free neighbour cannot fill the region, so whole_bytes needs no
 * change for it. */
static gpuhal_block_id settle(gpuhal_blocks *blocks, gpuhal_bins *bins, gpuhal_block_id id)
{
    gpuhal_block *table = blocks->table;
    const gpuhal_block_id before = table[id].before, after = table[id].after;
    const bool joins_before = table[before].bins == bins, joins_after = table[after].bins == bins;
    uint64_t offset = table[id].offset, bytes = table[id].bytes, stamp = table[id].stamp;
    bins->free_bytes += bytes;
    if (!joins_before && !joins_after) {
        bins->whole_bytes += whole_bytes_of(&table[id]);
        enlist(table, bins, id, bin_of(bytes));
        return id;
    }
    /* The larger neighbour's entry is reused, because its bin is the most likely to stay the same. */
    const bool keeps_after = joins_after && (!joins_before || table[after].bytes > table[before].bytes);
    const gpuhal_block_id kept = keeps_after ? after : before, other = keeps_after ? before : after;
    const gpuhal_block_id first = joins_before ? table[before].before : before,
                          last = joins_after ? table[after].after : after;
    if (joins_before) {
        offset = table[before].offset;
    }
    stamp = stamp > table[kept].stamp ? stamp : table[kept].stamp;
    if (joins_before && joins_after) {
        bytes += table[other].bytes;
        stamp = stamp > table[other].stamp ? stamp : table[other].stamp;
        delist(table, other, bin_of(table[other].bytes));
        drop_entry(blocks, other);
    }
    drop_entry(blocks, id);
    table[first].after = kept;
    table[last].before = kept;
    table[kept].before = first;
    table[kept].after = last;
    table[kept].offset = offset;
    table[kept].stamp = stamp;
    resize(table, kept, table[kept].bytes + bytes);
    bins->whole_bytes += whole_bytes_of(&table[kept]);
    return kept;
}

/* Returns the smallest block that fits among the first `compared` of a list, or 0. */
static gpuhal_block_id best_of(const gpuhal_block *table, gpuhal_block_id first, uint64_t bytes, uint64_t alignment,
                               uint32_t compared)
{
    gpuhal_block_id best = 0;
    uint64_t least = UINT64_MAX;
    for (gpuhal_block_id id = first; id != 0 && compared > 0 && least > bytes; id = table[id].next, compared--) {
        const uint64_t front = -table[id].offset & (alignment - 1);
        if (table[id].bytes >= bytes && table[id].bytes - bytes >= front && table[id].bytes < least) {
            best = id;
            least = table[id].bytes;
        }
    }
    return best;
}

/* Returns a free block that fits, among the first `compared` blocks of each bin. All blocks in bins above the request's
 * own bin are large enough, but may be too small after alignment. */
static gpuhal_block_id find(const gpuhal_blocks *blocks, const gpuhal_bins *bins, uint64_t bytes, uint64_t alignment,
                            uint32_t compared)
{
    for (unsigned bin = next_bin(bins, bin_of(bytes)); bin < BINS; bin = next_bin(bins, bin + 1)) {
        const gpuhal_block_id id = best_of(blocks->table, bins->first[bin], bytes, alignment, compared);
        if (id != 0) {
            return id;
        }
    }
    return 0;
}

/* Initializes an entry from new_entry(), and links it into the region. */
static void insert(gpuhal_block *table, gpuhal_block_id id, gpuhal_block block)
{
    table[id] = block;
    table[block.before].after = id;
    table[block.after].before = id;
}

/* A remainder keeps the free block's entry, and the used block has a new entry. */
static gpuhal_block_id split(gpuhal_blocks *blocks, gpuhal_block_id id, uint64_t front, uint64_t bytes, uint64_t rest)
{
    const gpuhal_block_id used = new_entry(blocks), behind = front > 0 && rest > 0 ? new_entry(blocks) : 0;
    gpuhal_block *table = blocks->table;
    const gpuhal_block was = table[id];
    gpuhal_block block = {.offset = was.offset + front, .bytes = bytes, .region = was.region, .stamp = was.stamp};
    if (front > 0) {
        block.before = id;
        block.after = was.after;
        resize(table, id, front);
    } else {
        block.before = was.before;
        block.after = id;
        table[id].offset += bytes;
        resize(table, id, rest);
    }
    insert(table, used, block);
    if (behind != 0) {
        insert(table, behind,
               (gpuhal_block){.offset = block.offset + bytes,
                              .bytes = rest,
                              .region = was.region,
                              .stamp = was.stamp,
                              .before = used,
                              .after = was.after});
        enlist(table, was.bins, behind, bin_of(rest));
    }
    return used;
}

/* Marks the block as used, except for the bytes before and after the request. */
static gpuhal_block_id cut(gpuhal_blocks *blocks, gpuhal_block_id id, uint64_t front, uint64_t bytes, uint64_t rest)
{
    gpuhal_block *block = &blocks->table[id];
    block->bins->free_bytes -= bytes;
    block->bins->whole_bytes -= whole_bytes_of(block);
    if (front > 0 || rest > 0) {
        return split(blocks, id, front, bytes, rest);
    }
    delist(blocks->table, id, bin_of(bytes));
    block->bins = NULL;
    return id;
}

gpuhal_block_id gpuhal_blocks_find(const gpuhal_blocks *blocks, const gpuhal_bins *bins, uint64_t bytes,
                                   uint64_t alignment)
{
    const gpuhal_block_id id = find(blocks, bins, bytes, alignment, COMPARED);
    return id != 0 ? id : find(blocks, bins, bytes, alignment, UINT32_MAX);
}

gpuhal_block_id gpuhal_blocks_take(gpuhal_blocks *blocks, gpuhal_bins *bins, uint64_t bytes, uint64_t alignment)
{
    const gpuhal_block_id id = gpuhal_blocks_find(blocks, bins, bytes, alignment);
    return id != 0 ? gpuhal_blocks_take_found(blocks, id, bytes, alignment) : 0;
}

gpuhal_block_id gpuhal_blocks_take_found(gpuhal_blocks *blocks, gpuhal_block_id id, uint64_t bytes, uint64_t alignment)
{
    const uint64_t front = -blocks->table[id].offset & (alignment - 1);
    uint64_t rest = blocks->table[id].bytes - front - bytes;
    const uint32_t entries = (uint32_t)(front > 0) + (uint32_t)(rest > 0);
    if (blocks->spare < entries && !grow(blocks)) {
        if (front > 0 && blocks->spare == 0) {
            return 0;
        }
        bytes += rest;
        rest = 0;
    }
    return cut(blocks, id, front, bytes, rest);
}

gpuhal_block_id gpuhal_blocks_take_at(gpuhal_blocks *blocks, gpuhal_block_id block, uint64_t offset, uint64_t bytes)
{
    const gpuhal_block *from = &blocks->table[block];
    const uint64_t front = offset - from->offset, rest = from->bytes - front - bytes;
    const uint32_t entries = (uint32_t)(front > 0) + (uint32_t)(rest > 0);
    return blocks->spare >= entries || grow(blocks) ? cut(blocks, block, front, bytes, rest) : 0;
}

gpuhal_block_id gpuhal_blocks_give(gpuhal_blocks *blocks, gpuhal_bins *bins, gpuhal_block_id block)
{
    blocks->table[block].user = NULL;
    return settle(blocks, bins, block);
}

gpuhal_block_id gpuhal_blocks_add(gpuhal_blocks *blocks, gpuhal_bins *bins, uint32_t region, uint64_t bytes)
{
    if (blocks->spare == 0 && !grow(blocks)) {
        return 0;
    }
    const gpuhal_block_id id = new_entry(blocks);
    insert(blocks->table, id, (gpuhal_block){.bytes = bytes, .region = region});
    return settle(blocks, bins, id);
}

gpuhal_block_id gpuhal_blocks_extend(gpuhal_blocks *blocks, gpuhal_bins *bins, gpuhal_block_id last, uint64_t bytes)
{
    const gpuhal_block was = blocks->table[last];
    if (was.bins == bins) {
        bins->free_bytes += bytes;
        bins->whole_bytes += was.before == 0 ? bytes : 0;
        resize(blocks->table, last, was.bytes + bytes);
        return last;
    }
    if (blocks->spare == 0 && !grow(blocks)) {
        return 0;
    }
    if (was.bins) {
        was.bins->whole_bytes -= whole_bytes_of(&was);
    }
    const gpuhal_block_id id = new_entry(blocks);
    insert(blocks->table, id,
           (gpuhal_block){.offset = was.offset + was.bytes, .bytes = bytes, .region = was.region, .before = last});
    return settle(blocks, bins, id);
}

static void leave(gpuhal_blocks *blocks, gpuhal_block_id id)
{
    gpuhal_block *block = &blocks->table[id];
    block->bins->free_bytes -= block->bytes;
    block->bins->whole_bytes -= whole_bytes_of(block);
    delist(blocks->table, id, bin_of(block->bytes));
}

gpuhal_block_id gpuhal_blocks_move_one(gpuhal_blocks *blocks, gpuhal_bins *to, gpuhal_block_id block)
{
    leave(blocks, block);
    return settle(blocks, to, block);
}

void gpuhal_blocks_move(gpuhal_blocks *blocks, gpuhal_bins *from, gpuhal_bins *to)
{
    while (from != to && from->free_count > 0) {
        (void)gpuhal_blocks_move_one(blocks, to, from->first[next_bin(from, 0)]);
    }
}

void gpuhal_blocks_remove(gpuhal_blocks *blocks, gpuhal_block_id block)
{
    leave(blocks, block);
    drop_entry(blocks, block);
}

uint64_t gpuhal_bins_free_bytes(const gpuhal_bins *bins)
{
    return bins->free_bytes;
}

uint32_t gpuhal_bins_free_count(const gpuhal_bins *bins)
{
    return bins->free_count;
}

uint64_t gpuhal_bins_whole_bytes(const gpuhal_bins *bins)
{
    return bins->whole_bytes;
}

/* At least one bin must not be empty. */
static unsigned last_bin(const gpuhal_bins *bins)
{
    const unsigned class = 63 - (unsigned)__builtin_clzll(bins->classes);
    return (class << FRACTION_BITS) + 31 - (unsigned)__builtin_clz(bins->filled[class]);
}

uint64_t gpuhal_bins_large(const gpuhal_blocks *blocks, const gpuhal_bins *bins)
{
    return bins->classes ? blocks->table[bins->first[last_bin(bins)]].bytes : 0;
}

uint64_t gpuhal_bins_largest(const gpuhal_blocks *blocks, const gpuhal_bins *bins)
{
    if (bins->classes == 0) {
        return 0;
    }
    uint64_t largest = 0;
    for (gpuhal_block_id id = bins->first[last_bin(bins)]; id != 0; id = blocks->table[id].next) {
        largest = blocks->table[id].bytes > largest ? blocks->table[id].bytes : largest;
    }
    return largest;
}
