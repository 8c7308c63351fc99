/* schedule/skyline.h: drops boxes with fixed columns onto a floor, one after the other.
 *
 * gpuhal_memory_plan() uses this: a column is a time, a box is an item, its height is the item's bytes, and its final
 * position is the item's offset. The skyline is the upper edge of the placed boxes, in flat segments. The lowest
 * segment is filled first. Of the boxes that fit between the segment's ends, the best few by width, edges and key are
 * compared: the one that leaves the lowest potential is placed, or if several do, the one that wastes the least room
 * beside it. If no box fits, the segment is raised to its lower neighbour, and the room below is wasted. `keys` change
 * the preference among boxes. Every optimal plan can be built from the lowest offset up, so suitable keys can reach it
 * in principle.
 *
 * The `potential` of a column is the height of its skyline plus the heights of its unplaced boxes. The total height is
 * never less than the largest potential, so a filling is abandoned as soon as it must be worse than a known plan.
 */
#ifndef GPUHAL_SCHEDULE_SKYLINE_H
#define GPUHAL_SCHEDULE_SKYLINE_H

#include <stdbool.h>
#include <stdint.h>

/* A box that covers columns `first` to `last`. */
typedef struct gpuhal_skyline_box {
    uint64_t height;
    uint64_t steps; /* number of the caller's steps that the box's columns represent */
    uint32_t first, last;
    uint32_t item; /* index of the caller's item */
} gpuhal_skyline_box;

enum { GPUHAL_SKYLINE_KEY_END = 1024 /* exclusive upper bound of keys */ };

typedef struct gpuhal_skyline gpuhal_skyline;

/* Sorts @p boxes, which must be in columns 0 to column_count - 1 and must stay valid until the skyline is destroyed.
 * The sum of heights must not exceed 2^63. Returns NULL if out of memory. */
gpuhal_skyline *gpuhal_skyline_create(gpuhal_skyline_box *boxes, uint32_t box_count, uint32_t column_count);
void gpuhal_skyline_destroy(gpuhal_skyline *skyline);

/* Returns the largest potential of the empty floor: the largest sum of box heights in a column. */
uint64_t gpuhal_skyline_least(const gpuhal_skyline *skyline);

/* Drops all boxes, and prefers boxes with higher @p keys (one for each box). Returns the total height, and fills @p
 * out_offsets in the order of the boxes. Returns UINT64_MAX as soon as the total would exceed @p limit. Adds the work
 * done to @p work, in units of a few nanoseconds. */
uint64_t gpuhal_skyline_fill(gpuhal_skyline *skyline, const uint16_t *keys, uint64_t limit, uint64_t *out_offsets,
                             uint64_t *work);

#endif
