/* schedule/plan_search_state.h: the state of a search for a plan: plan_search_create.c makes it, and plan_search.c uses
 * it.
 *
 * A part is a range of sections. No box that is not placed yet crosses its ends, so it can be solved by itself. A
 * section begins with a box after another one has ended, and stands for all columns up to the next: boxes that overlap
 * at all overlap in a section.
 */
#ifndef GPUHAL_SCHEDULE_PLAN_SEARCH_STATE_H
#define GPUHAL_SCHEDULE_PLAN_SEARCH_STATE_H

#include "schedule/plan_search.h"

typedef struct tile {
    double height, width, area;
    double lowest; /* the placed tiles leave no lower place */
    double offset; /* where it is placed */
    uint32_t first, last;
    uint32_t item;
    uint32_t neighbour, neighbours_end; /* the tiles that overlap with it, in the list */
    uint32_t rank;                      /* of two tiles with the same lowest place, the lower rank comes first */
    bool placed;
} tile;

/* A lowest place, to be taken back. */
typedef struct change {
    double before;
    uint32_t tile;
} change;

/* A rank, to be taken back. */
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
    uint32_t *spanning; /* for each section, how many tiles that are not placed go on into the next one */
    /* The remaining tiles, those of each depth after those of the depth above; and for each index there: */
    uint16_t *lists;
    double *places; /* the tile's lowest place at its node */
    rank_change *rank_changes;
    change *changes;
    uint32_t list_end, change_end;
    /* For one ranking, or one bound, at a time: */
    ranking *rankings;
    double *sums;   /* of boxes, for each section */
    double *raised; /* places of a list, when one more is placed or passed over */
    fall *falling;  /* the highest place comes first */
    uint32_t order; /* of ranks */
    double capacity;
    uint64_t steps, step_limit, next_look, until_ns;
};

#endif
