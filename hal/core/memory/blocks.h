/* memory/blocks.h: which parts of regions of memory are free, and which one a request gets.
 *
 * Bookkeeping alone: it never touches the memory that it divides, so that may be a device's, a driver's range of
 * addresses, or a file. It takes no lock, and calls only the C library's allocator. The caller must let one thread at a
 * time use a gpuhal_blocks and all bins of its blocks.
 *
 * A region is divided into blocks without a gap, used and free ones. Two free neighbours in the same bins are always
 * merged. A region has at most 2^63 bytes, and all free blocks of the same bins together less than 2^64. */
#ifndef GPUHAL_MEMORY_BLOCKS_H
#define GPUHAL_MEMORY_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

typedef uint32_t gpuhal_block_id; /* 0: none */

/* Free blocks by size: two-level segregated fit. A free block is in the bins of one owner, a used one in none. Only
 * free neighbours in the same bins are merged. */
typedef struct gpuhal_bins gpuhal_bins;

/* Read by all; written by the functions below, except `user`. */
typedef struct gpuhal_block {
    uint64_t offset, bytes;         /* in its region; an entry with 0 bytes is no block */
    uint32_t region;                /* the caller's number */
    gpuhal_block_id before, after;  /* neighbours in the region; 0: none */
    gpuhal_block_id previous, next; /* in the list of its bin */
    gpuhal_bins *bins;              /* NULL: used */
    gpuhal_block_id twin;           /* the caller's, of a used block: its id in another gpuhal_blocks */
    void *user;                     /* the caller's, of a used block; NULL in a new one */
    uint64_t stamp;                 /* the caller's: parts of a block have the same, a merged block has the largest */
} gpuhal_block;

/* All blocks of some regions. An id is valid until its block is merged into another; a pointer to a block only until
 * the next call that may add one. */
typedef struct gpuhal_blocks {
    gpuhal_block *table;    /* entry 0 is no block: it takes writes to a neighbour that does not exist */
    uint32_t capacity;      /* entries of the table */
    uint32_t touched;       /* entries that were used at least once, and entry 0 */
    uint32_t spare;         /* entries that can be had without memory */
    gpuhal_block_id unused; /* of those, the entries that were used before, linked by `next` */
} gpuhal_blocks;

void gpuhal_blocks_init(gpuhal_blocks *blocks);
void gpuhal_blocks_finish(gpuhal_blocks *blocks);
/* Makes `to` a copy with the same ids. Its free blocks, all in `bins`, are free in the bins that it returns; NULL
 * without memory. */
gpuhal_bins *gpuhal_blocks_copy(gpuhal_blocks *to, const gpuhal_blocks *from, const gpuhal_bins *bins);

/* NULL without memory. */
gpuhal_bins *gpuhal_bins_create(void);
/* Destroys the bins. No block may be in them any more, unless its gpuhal_blocks ends, too. NULL does nothing. */
void gpuhal_bins_destroy(gpuhal_bins *bins);

static inline gpuhal_block *gpuhal_block_at(const gpuhal_blocks *blocks, gpuhal_block_id id)
{
    return &blocks->table[id];
}

/* Makes sure that the next take, split included, needs no memory; false without memory. */
bool gpuhal_blocks_reserve(gpuhal_blocks *blocks);
/* Adds a region of `bytes` bytes (not 0), one free block; 0 without memory. */
gpuhal_block_id gpuhal_blocks_add(gpuhal_blocks *blocks, gpuhal_bins *bins, uint32_t region, uint64_t bytes);
/* Appends bytes (not 0) to the end of a region, whose last block is `last`; merges if that is free in `bins`. Returns
 * the block that has them; 0 without memory. */
gpuhal_block_id gpuhal_blocks_extend(gpuhal_blocks *blocks, gpuhal_bins *bins, gpuhal_block_id last, uint64_t bytes);
/* Takes `bytes` (1 to 2^63) at a multiple of `alignment` (a power of two) of the region's beginning, out of `bins`. The
 * rest of the free block before and after them stays there. 0: no free block of these bins fits. If a split needs
 * memory and gets none, it gives the whole block, as its `bytes` says, or 0 if its beginning is not aligned. Neither
 * happens after gpuhal_blocks_reserve(). */
gpuhal_block_id gpuhal_blocks_take(gpuhal_blocks *blocks, gpuhal_bins *bins, uint64_t bytes, uint64_t alignment);
/* Returns the block that would serve such a request; 0: none. And takes the bytes out of it. */
gpuhal_block_id gpuhal_blocks_find(const gpuhal_blocks *blocks, const gpuhal_bins *bins, uint64_t bytes,
                                   uint64_t alignment);
gpuhal_block_id gpuhal_blocks_take_found(gpuhal_blocks *blocks, gpuhal_block_id id, uint64_t bytes,
                                         uint64_t alignment);
/* Takes `bytes` (not 0) at `offset` of its region out of a free block that has them; the rest stays free. 0 without
 * memory, which cannot be after gpuhal_blocks_reserve(). */
gpuhal_block_id gpuhal_blocks_take_at(gpuhal_blocks *blocks, gpuhal_block_id block, uint64_t offset, uint64_t bytes);
/* Gives a used block back into `bins`, merged with its free neighbours there; returns the merged block. Cannot fail. */
gpuhal_block_id gpuhal_blocks_give(gpuhal_blocks *blocks, gpuhal_bins *bins, gpuhal_block_id block);
/* Moves all free blocks to other bins, merging there. */
void gpuhal_blocks_move(gpuhal_blocks *blocks, gpuhal_bins *from, gpuhal_bins *to);
/* Moves one free block to other bins; returns the block that it is merged into there. */
gpuhal_block_id gpuhal_blocks_move_one(gpuhal_blocks *blocks, gpuhal_bins *to, gpuhal_block_id block);
/* Removes a region; `block` is free and fills it. */
void gpuhal_blocks_remove(gpuhal_blocks *blocks, gpuhal_block_id block);

uint64_t gpuhal_bins_free_bytes(const gpuhal_bins *bins);
uint32_t gpuhal_bins_free_count(const gpuhal_bins *bins);
/* Returns the bytes of the free blocks that fill their region. */
uint64_t gpuhal_bins_whole_bytes(const gpuhal_bins *bins);
/* Returns the bytes of the largest free block; 0 without a free block. Looks at all blocks of the last bin that has
 * any. */
uint64_t gpuhal_bins_largest(const gpuhal_blocks *blocks, const gpuhal_bins *bins);
/* Returns the bytes of a free block in the last bin that has any, without a look at the others: above 31/32 of the
 * largest. */
uint64_t gpuhal_bins_large(const gpuhal_blocks *blocks, const gpuhal_bins *bins);

#endif
