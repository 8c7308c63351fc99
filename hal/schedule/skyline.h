/* schedule/skyline.h: boxes that fall onto a floor of columns, one after the other; which columns is fixed.
 *
 * For gpuhal_memory_plan(): a column is a time, a box an item, its height the item's bytes, and where it comes to lie
 * its offset. The skyline is the upper edge of what lies already, in flat segments. The lowest segment is filled first,
 * with the box that fits between the segment's ends and loses least room beside it; where none fits, the segment rises
 * to its lower neighbour, and what is beneath is lost. Every best plan can be built in such an order, from the lowest
 * offset up, so that other choices among boxes, by `keys`, reach it in principle.
 *
 * `potential` of a column is the height of the skyline there and all boxes that will come there: the total can never be
 * less than the largest one, so that a filling which is worse than a known one is given up early.
 */
#ifndef GPUHAL_SCHEDULE_SKYLINE_H
#define GPUHAL_SCHEDULE_SKYLINE_H

#include <stdbool.h>
#include <stdint.h>

/* One box, over columns first to last. */
typedef struct gpuhal_skyline_box {
    uint64_t height;
    uint64_t steps; /* the caller's, that its columns stand for */
    uint32_t first, last;
    uint32_t item; /* of the caller's */
} gpuhal_skyline_box;

enum { GPUHAL_SKYLINE_KEY_END = 1024 /* keys are below it */ };

typedef struct gpuhal_skyline gpuhal_skyline;

/* Sorts @p boxes, which must be in columns 0 to column_count - 1, and are kept by the caller as long as the skyline.
 * Heights must not be above 2^63 in all. NULL: no memory. */
gpuhal_skyline *gpuhal_skyline_create(gpuhal_skyline_box *boxes, uint32_t box_count, uint32_t column_count);
void gpuhal_skyline_destroy(gpuhal_skyline *skyline);

/* Returns the largest potential before anything lies: the largest sum of boxes over one column. */
uint64_t gpuhal_skyline_least(const gpuhal_skyline *skyline);

/* Lets all boxes fall; @p keys, one for each, prefers those with higher ones. Returns the total height and fills
 * @p out_offsets, in the order of the boxes; UINT64_MAX as soon as the total would be above @p limit. Adds to
 * @p work what it took, in units of some nanoseconds. */
uint64_t gpuhal_skyline_fill(gpuhal_skyline *skyline, const uint16_t *keys, uint64_t limit, uint64_t *out_offsets,
                             uint64_t *work);

#endif
