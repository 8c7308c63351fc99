/* watch_view.h: the data of the live view and the user's choices in it. Frames and keys change them, drawing reads
 * them; neither uses ncurses' screen or the library. */
#ifndef PROBE_WATCH_VIEW_H
#define PROBE_WATCH_VIEW_H

#include "screen.h"
#include "watch_frame.h"

#define WATCH_CURVES 4u /* the first numbers of a row */
enum { WATCH_POINTS = 512, WATCH_FILTER_BYTES = 40 };

/* The past values of a device, in a ring: the newest point stands before `next`. */
typedef struct gpuhal_watch_history {
    char id[40];
    float points[WATCH_CURVES][WATCH_POINTS]; /* below 0: not known */
    uint32_t next, count;
} gpuhal_watch_history;

typedef enum gpuhal_watch_order {
    WATCH_BY_MEMORY,
    WATCH_BY_BUSY,
    WATCH_BY_PID,
    WATCH_BY_USER,
    WATCH_BY_DEVICE,
    WATCH_BY_COMMAND,
    WATCH_ORDERS
} gpuhal_watch_order;

typedef struct gpuhal_watch_view {
    gpuhal_watch_frame *frame; /* the newest; NULL before the first */
    gpuhal_watch_process *processes;
    uint32_t process_count; /* of all */
    uint32_t *matches;      /* places of the shown processes, in their order */
    uint32_t match_count;
    gpuhal_watch_history *histories;
    uint32_t history_count;

    uint32_t selected;      /* row of the frame */
    char selected_id[40];   /* to find the row again */
    uint32_t first_process; /* the first visible one */
    gpuhal_watch_order order;
    bool reversed, of_selected, help, paused;
    bool typing; /* keys go into the filter */
    char filter[WATCH_FILTER_BYTES];
    uint64_t period_ns, now_ns;
    bool utf8;
} gpuhal_watch_view;

/* Takes the frame over. Returns false without memory; the view is unchanged then. */
bool gpuhal_watch_view_take(gpuhal_watch_view *view, gpuhal_watch_frame *frame);
/* Finds and sorts the processes to show again. */
void gpuhal_watch_view_sort(gpuhal_watch_view *view);
/* Returns the history; NULL: there is none yet. */
const gpuhal_watch_history *gpuhal_watch_view_history(const gpuhal_watch_view *view, const char *id);
void gpuhal_watch_view_finish(gpuhal_watch_view *view);

/* The loop's next step after a key. */
typedef enum gpuhal_watch_wish { WATCH_GO_ON, WATCH_QUIT, WATCH_SET_SAMPLER } gpuhal_watch_wish;
/* Handles a key of ncurses. */
gpuhal_watch_wish gpuhal_watch_view_key(gpuhal_watch_view *view, int key);
/* Return the keys in one line, and line number `index` of the help; NULL past the last. */
const char *gpuhal_watch_keys(const gpuhal_watch_view *view);
const char *gpuhal_watch_help(size_t index);

/* Draws everything on ncurses' screen. `colour`: the pairs of the styles exist. */
void gpuhal_watch_draw(const gpuhal_watch_view *view, bool colour);

#endif
