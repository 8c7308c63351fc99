/* pieces.h: an address range, and mapping and unmapping memory in pieces of the range. Each step fails the check if the
 * plugin breaks the slot's contract in plugin.h. */
#ifndef GPUHAL_CHECK_PIECES_H
#define GPUHAL_CHECK_PIECES_H

#include "area.h"

#define GPUHAL_PIECE_MOST (UINT64_C(64) << 20)

/* Offsets and sizes are counted in pieces. */
typedef struct gpuhal_pieces {
    const gpuhal_context *context;
    const gpuhal_slots *slots;
    uint64_t granule; /* the plugin's granularity */
    uint64_t piece;   /* bytes of one piece: at least the granularity, at most GPUHAL_PIECE_MOST */
    uint64_t unit;    /* offsets and sizes of every transfer must be multiples of this number of bytes; at most an
                       * eighth of a piece */
    gpuhal_plugin_range *handle;
    gpuhal_memory memory;
} gpuhal_pieces;

/* Queries the granularity. If the device has no ranges, or pieces larger than GPUHAL_PIECE_MOST, skips the check and
 * returns false. */
bool gpuhal_pieces_begin(const gpuhal_context *context, gpuhal_pieces *out);
void gpuhal_pieces_reserve(gpuhal_pieces *own, uint64_t pieces);
gpuhal_status gpuhal_pieces_commit(const gpuhal_pieces *own, uint64_t first, uint64_t count);
void gpuhal_pieces_expect_commit(const gpuhal_pieces *own, uint64_t first, uint64_t count);
void gpuhal_pieces_expect_decommit(const gpuhal_pieces *own, uint64_t first, uint64_t count);
void gpuhal_pieces_release(gpuhal_pieces *own);
/* Makes an area of the first pieces. Pieces without memory must not be accessed through the area. */
void gpuhal_pieces_cover(gpuhal_area *area, const gpuhal_pieces *own, uint64_t pieces);

#endif
