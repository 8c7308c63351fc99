/* schedule/plan_search_create.c: creates a plan search (see plan_search.h). Finds the sections and the overlapping
 * boxes. */
#include "schedule/plan_search_state.h"

#include <stdlib.h>
#include <string.h>

static uint32_t make_sections(const gpuhal_skyline_box *boxes, uint32_t box_count, uint32_t *columns,
                              uint32_t column_count)
{
    enum { BEGINS = 1, ENDED = 2 };
    uint32_t sections = 0;
    memset(columns, 0, (column_count + (size_t)1) * sizeof *columns);
    for (uint32_t i = 0; i < box_count; i++) {
        columns[boxes[i].first] |= BEGINS;
        columns[boxes[i].last + 1] |= ENDED;
    }
    bool ended = true;
    for (uint32_t c = 0; c < column_count; c++) {
        ended = ended || (columns[c] & ENDED);
        if (ended && (columns[c] & BEGINS)) {
            sections++;
            ended = false;
        }
        columns[c] = sections > 0 ? sections - 1 : 0;
    }
    return sections;
}

static void fill_tiles(gpuhal_plan_search *s, const gpuhal_skyline_box *boxes, const uint32_t *columns)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const gpuhal_skyline_box *box = &boxes[i];
        const double height = (double)box->height, width = (double)box->steps;
        s->tiles[i] = (tile){.height = height,
                             .width = width,
                             .area = height * width,
                             .first = columns[box->first],
                             .last = columns[box->last],
                             .item = box->item};
    }
}

static bool overlap(const tile *a, const tile *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static size_t count_overlaps(const gpuhal_plan_search *s)
{
    size_t count = 0;
    for (uint32_t a = 0; a < s->count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            count += overlap(&s->tiles[a], &s->tiles[b]);
        }
    }
    return count;
}

static void list_neighbours(gpuhal_plan_search *s)
{
    uint32_t end = 0;
    for (uint32_t a = 0; a < s->count; a++) {
        s->tiles[a].neighbour = end;
        for (uint32_t b = 0; b < s->count; b++) {
            if (a != b && overlap(&s->tiles[a], &s->tiles[b])) {
                s->neighbours[end++] = (uint16_t)b;
            }
        }
        s->tiles[a].neighbours_end = end;
    }
}

gpuhal_plan_search *gpuhal_plan_search_create(const gpuhal_skyline_box *boxes, uint32_t box_count,
                                              uint32_t column_count)
{
    gpuhal_plan_search *s = calloc(1, sizeof *s);
    uint32_t *columns = malloc((column_count + (size_t)1) * sizeof *columns);
    const size_t count = box_count, listed = 2 * count + count * count / 2; /* all boxes, and fewer at each depth */
    if (!s || !columns) {
        free(s);
        free(columns);
        return NULL;
    }
    *s = (gpuhal_plan_search){.count = box_count,
                              .section_count = make_sections(boxes, box_count, columns, column_count)};
    s->tiles = malloc(count * sizeof *s->tiles);
    s->rankings = malloc(count * sizeof *s->rankings);
    s->falling = malloc(count * sizeof *s->falling);
    s->raised = malloc(count * sizeof *s->raised);
    s->lists = malloc(listed * sizeof *s->lists);
    s->places = malloc(listed * sizeof *s->places);
    s->rank_changes = malloc(listed * sizeof *s->rank_changes);
    s->spanning = malloc(s->section_count * sizeof *s->spanning);
    s->sums = malloc(s->section_count * sizeof *s->sums);
    bool made = s->tiles && s->rankings && s->falling && s->raised && s->lists && s->places && s->rank_changes &&
                s->spanning && s->sums;
    if (made) {
        fill_tiles(s, boxes, columns);
        const size_t overlaps = count_overlaps(s);
        s->neighbours = malloc((2 * overlaps + 1) * sizeof *s->neighbours);
        s->changes = malloc((overlaps + 1) * sizeof *s->changes);
        made = s->neighbours && s->changes;
    }
    free(columns);
    if (!made) {
        gpuhal_plan_search_destroy(s);
        return NULL;
    }
    list_neighbours(s);
    return s;
}

void gpuhal_plan_search_destroy(gpuhal_plan_search *s)
{
    if (!s) {
        return;
    }
    free(s->tiles);
    free(s->rankings);
    free(s->falling);
    free(s->raised);
    free(s->lists);
    free(s->places);
    free(s->rank_changes);
    free(s->spanning);
    free(s->sums);
    free(s->neighbours);
    free(s->changes);
    free(s);
}
