/* schedule/skyline.h: boxes that fall onto a floor of columns, one after the other; their columns are fixed.
 *
 * For gpuhal_memory_plan(): a column is a time, a box an item, its height the item's bytes, and its final place the
 * item's offset. The skyline is the upper edge of the boxes that lie already, in flat segments. The lowest segment is
 * filled first, with the box that fits between the segment's ends and loses least room beside it; if none fits, the
 * segment rises to its lower neighbour, and the room beneath is lost. Every best plan can be built in such an order,
 * from the lowest offset up, so that other choices among boxes, by `keys`, reach it in principle.
 *
 * `potential` of a column is the height of the skyline there and all boxes that will come there: the total can never be
 * less than the largest one, so a filling that is worse than a known one is given up early.
 */
#ifndef GPUHAL_SCHEDULE_SKYLINE_H
#define GPUHAL_SCHEDULE_SKYLINE_H

#include <stdbool.h>
#include <stdint.h>

/* One box, over columns first to last. */
typedef struct gpuhal_skyline_box {
    uint64_t height;
    uint64_t steps; /* the caller's steps that its columns stand for */
    uint32_t first, last;
    uint32_t item; /* of the caller's */
} gpuhal_skyline_box;

enum { GPUHAL_SKYLINE_KEY_END = 1024 /* keys are below it */ };

typedef struct gpuhal_skyline gpuhal_skyline;

/* Sorts @p boxes, which must be in columns 0 to column_count - 1, and must live as long as the skyline. Heights must
 * not be above 2^63 in all. NULL: no memory. */
gpuhal_skyline *gpuhal_skyline_create(gpuhal_skyline_box *boxes, uint32_t box_count, uint32_t column_count);
void gpuhal_skyline_destroy(gpuhal_skyline *skyline);

/* Returns the largest potential before anything lies: the largest sum of boxes over one column. */
uint64_t gpuhal_skyline_least(const gpuhal_skyline *skyline);

/* Lets all boxes fall, and prefers boxes with higher @p keys, one for each box. Returns the total height and fills
 * @p out_offsets, in the order of the boxes; UINT64_MAX as soon as the total would be above @p limit. Adds its work to
 * @p work, in units of some nanoseconds. */
uint64_t gpuhal_skyline_fill(gpuhal_skyline *skyline, const uint16_t *keys, uint64_t limit, uint64_t *out_offsets,
                             uint64_t *work);

#endif
