/* memory/blocks.h: which parts of memory regions are free, and which part a request gets.
 *
 * These functions never access the divided memory, which may be device memory, a driver's address range or a file. They
 * take no lock, and call nothing but the C library's allocator. The caller must ensure that only one thread at a time
 * uses a gpuhal_blocks and the bins of its blocks.
 *
 * A region is divided without gaps into used and free blocks. Two free neighbours in the same bins are always merged. A
 * region has at most 2^63 bytes, and all free blocks in the same bins have less than 2^64 bytes in total. */
#ifndef GPUHAL_MEMORY_BLOCKS_H
#define GPUHAL_MEMORY_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t gpuhal_block_id; /* 0 means none */

/* Free blocks sorted by size: two-level segregated fit. A free block belongs to one gpuhal_bins, a used block to
 * none. */
typedef struct gpuhal_bins gpuhal_bins;

/* Callers may read all members, but may write only the members marked as the caller's. */
typedef struct gpuhal_block {
    uint64_t offset, bytes;         /* in its region; an entry with 0 bytes is not a block */
    uint32_t region;                /* chosen by the caller */
    gpuhal_block_id before, after;  /* neighbours in the region; 0 if none */
    gpuhal_block_id previous, next; /* neighbours in the bin's list */
    gpuhal_bins *bins;              /* NULL if used */
    gpuhal_block_id twin;           /* the caller's, for a used block: id of the same block in another gpuhal_blocks */
    void *user;                     /* the caller's, for a used block; NULL in a new block */
    uint64_t stamp;                 /* the caller's: a split copies it; a merged block gets the largest value */
} gpuhal_block;

/* All blocks of some regions. An id is valid until its block is merged into another. A pointer to a block is valid only
 * until the next call that may add a block. */
typedef struct gpuhal_blocks {
    gpuhal_block *table; /* entry 0 is not a block: it absorbs writes to neighbours that do not exist */
    uint32_t capacity;
    uint32_t touched;       /* entries that were used at least once, including entry 0 */
    uint32_t spare;         /* entries available without allocating */
    gpuhal_block_id unused; /* first unused entry that was in use before; linked by `next` */
} gpuhal_blocks;

void gpuhal_blocks_init(gpuhal_blocks *blocks);
void gpuhal_blocks_finish(gpuhal_blocks *blocks);
/* Makes `to` a copy with the same ids, but with NULL as `user`. All free blocks must be in `bins`; the copy's are in
 * the returned bins. Returns NULL if out of memory. */
gpuhal_bins *gpuhal_blocks_copy(gpuhal_blocks *to, const gpuhal_blocks *from, const gpuhal_bins *bins);

/* Returns NULL if out of memory. */
gpuhal_bins *gpuhal_bins_create(void);
/* Accepts NULL. The bins must not contain a block, unless its gpuhal_blocks is destroyed too. */
void gpuhal_bins_destroy(gpuhal_bins *bins);

static inline gpuhal_block *gpuhal_block_at(const gpuhal_blocks *blocks, gpuhal_block_id id)
{
    return &blocks->table[id];
}

/* Ensures that the next take, including a split, needs no allocation. Returns false if out of memory. */
bool gpuhal_blocks_reserve(gpuhal_blocks *blocks);
/* Adds a region of `bytes` bytes (not 0) as one free block. Returns 0 if out of memory. */
gpuhal_block_id gpuhal_blocks_add(gpuhal_blocks *blocks, gpuhal_bins *bins, uint32_t region, uint64_t bytes);
/* Appends bytes (not 0) to the end of the region whose last block is `last`, and merges them with `last` if `last` is
 * free in `bins`. Returns the block that contains the new bytes, or 0 if out of memory. */
gpuhal_block_id gpuhal_blocks_extend(gpuhal_blocks *blocks, gpuhal_bins *bins, gpuhal_block_id last, uint64_t bytes);
/* Takes `bytes` (1 to 2^63) out of a free block in `bins`, aligned to `alignment` (a power of two) relative to the
 * region's beginning. The rest of the free block before and after stays free. Returns 0 if no free block fits. If a
 * split runs out of memory, the returned block includes the rest behind it and is larger than `bytes`; returns 0 if
 * there is no entry for the bytes before an aligned beginning. Neither happens after gpuhal_blocks_reserve(). */
gpuhal_block_id gpuhal_blocks_take(gpuhal_blocks *blocks, gpuhal_bins *bins, uint64_t bytes, uint64_t alignment);
/* Do the work of gpuhal_blocks_take() in two steps. The first function returns a free block that fits, or 0. */
gpuhal_block_id gpuhal_blocks_find(const gpuhal_blocks *blocks, const gpuhal_bins *bins, uint64_t bytes,
                                   uint64_t alignment);
gpuhal_block_id gpuhal_blocks_take_found(gpuhal_blocks *blocks, gpuhal_block_id id, uint64_t bytes,
                                         uint64_t alignment);
/* Takes `bytes` (not 0) at `offset` of the region out of the free block that contains them. The rest stays free.
 * Returns 0 if out of memory, which cannot happen after gpuhal_blocks_reserve(). */
gpuhal_block_id gpuhal_blocks_take_at(gpuhal_blocks *blocks, gpuhal_block_id block, uint64_t offset, uint64_t bytes);
/* Returns a used block to `bins`, and merges it with its free neighbours in `bins`. Returns the merged block. Cannot
 * fail. */
gpuhal_block_id gpuhal_blocks_give(gpuhal_blocks *blocks, gpuhal_bins *bins, gpuhal_block_id block);
/* Moves all free blocks from `from` to `to`, and merges them with free neighbours in `to`. */
void gpuhal_blocks_move(gpuhal_blocks *blocks, gpuhal_bins *from, gpuhal_bins *to);
/* Moves one free block to `to`. Returns the merged block. */
gpuhal_block_id gpuhal_blocks_move_one(gpuhal_blocks *blocks, gpuhal_bins *to, gpuhal_block_id block);
/* Removes a region. `block` must be free and fill the region. */
void gpuhal_blocks_remove(gpuhal_blocks *blocks, gpuhal_block_id block);

uint64_t gpuhal_bins_free_bytes(const gpuhal_bins *bins);
uint32_t gpuhal_bins_free_count(const gpuhal_bins *bins);
/* Returns the total size of free blocks that fill their region. */
uint64_t gpuhal_bins_whole_bytes(const gpuhal_bins *bins);
/* Returns the size of the largest free block, or 0 if there is none. Examines all blocks of the last non-empty bin. */
uint64_t gpuhal_bins_largest(const gpuhal_blocks *blocks, const gpuhal_bins *bins);
/* Returns the size of one free block from the last non-empty bin, more than 31/32 of the largest size; 0 if there is
 * none. */
uint64_t gpuhal_bins_large(const gpuhal_blocks *blocks, const gpuhal_bins *bins);

#endif
