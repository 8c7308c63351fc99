/* schedule/plan_search_state.h: the state of a plan search, created by plan_search_create.c and used by plan_search.c.
 *
 * A part is a range of sections whose borders no unplaced box crosses, so each part can be solved independently. A new
 * section begins with the first box that begins after another box has ended. A section represents all columns up to the
 * next section. If two boxes overlap, they overlap in at least one section.
 */
#ifndef GPUHAL_SCHEDULE_PLAN_SEARCH_STATE_H
#define GPUHAL_SCHEDULE_PLAN_SEARCH_STATE_H

#include "schedule/plan_search.h"

typedef struct tile {
    double height, width, area;
    double lowest; /* lowest position that the placed tiles allow */
    double offset; /* position once placed */
    uint32_t first, last;
    uint32_t item;
    uint32_t neighbour, neighbours_end; /* range in `neighbours` of the tiles that overlap this tile */
    uint32_t rank;                      /* among tiles with the same lowest position, lower ranks come first */
    bool placed;
} tile;

/* An undo record of a lowest position. */
typedef struct change {
    double before;
    uint32_t tile;
} change;

/* An undo record of a rank. */
typedef struct rank_change {
    uint16_t tile, before;
} rank_change;

typedef struct ranking {
    double keys[3];
    uint32_t item, tile;
} ranking;

typedef struct fall {
    double place;
    uint16_t tile;
} fall;

struct gpuhal_plan_search {
    uint32_t count, section_count;
    tile *tiles;
    uint16_t *neighbours;
    uint32_t *spanning; /* for each section, the number of unplaced tiles that extend into the next section */
    /* Lists of remaining tiles. The list of each depth follows that of the previous depth. `places` and `rank_changes`
     * have the same indices: */
    uint16_t *lists;
    double *places; /* lowest position of each tile at the list's node */
    rank_change *rank_changes;
    change *changes;
    uint32_t list_end, change_end;
    /* Scratch space for a ranking or a bound: */
    ranking *rankings;
    double *sums;   /* sum of heights in each section */
    double *raised; /* positions of a list's tiles after another tile is placed or passed over */
    fall *falling;  /* highest position first */
    uint32_t order; /* current rank order */
    double capacity;
    uint64_t steps, step_limit, next_look, until_ns;
};

#endif
