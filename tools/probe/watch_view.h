/* watch_view.h: the live view's data and the user's settings. Frames and keys change the data, and drawing reads it.
 * The code for frames and keys uses neither ncurses' screen nor the library. */
#ifndef PROBE_WATCH_VIEW_H
#define PROBE_WATCH_VIEW_H

#include "screen.h"
#include "watch_frame.h"

#define WATCH_CURVES 4u /* the first numbers of a row have curves */
enum { WATCH_POINTS = 512, WATCH_FILTER_BYTES = 40 };

/* A device's past values, in a ring buffer; the newest point precedes `next`. */
typedef struct gpuhal_watch_history {
    char id[40];
    float points[WATCH_CURVES][WATCH_POINTS]; /* negative if unknown */
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
    gpuhal_watch_frame *frame; /* NULL before the first frame */
    gpuhal_watch_process *processes;
    uint32_t process_count; /* number of processes, including processes hidden by the filter */
    uint32_t *matches;      /* indices of the displayed processes, in display order */
    uint32_t match_count;
    gpuhal_watch_history *histories;
    uint32_t history_count;

    uint32_t selected;      /* row in the frame */
    char selected_id[40];   /* used to find the row again in a new frame */
    uint32_t first_process; /* first visible process */
    gpuhal_watch_order order;
    bool reversed, of_selected, help, paused;
    bool typing; /* keys are added to the filter */
    char filter[WATCH_FILTER_BYTES];
    uint64_t period_ns, now_ns;
    bool utf8;
} gpuhal_watch_view;

/* Takes ownership of the frame. Returns false, and keeps the previous frame, if out of memory. */
bool gpuhal_watch_view_take(gpuhal_watch_view *view, gpuhal_watch_frame *frame);
/* Finds and sorts the displayed processes again. */
void gpuhal_watch_view_sort(gpuhal_watch_view *view);
/* Returns the history, or NULL if there is no history yet. */
const gpuhal_watch_history *gpuhal_watch_view_history(const gpuhal_watch_view *view, const char *id);
void gpuhal_watch_view_finish(gpuhal_watch_view *view);

/* The action that a key requests from the event loop. */
typedef enum gpuhal_watch_wish { WATCH_GO_ON, WATCH_QUIT, WATCH_SET_SAMPLER } gpuhal_watch_wish;
/* Handles a key, which is a key code of ncurses. */
gpuhal_watch_wish gpuhal_watch_view_key(gpuhal_watch_view *view, int key);
/* gpuhal_watch_keys() returns a line that lists the keys. gpuhal_watch_help() returns line `index` of the help, or NULL
 * after the last line. */
const char *gpuhal_watch_keys(const gpuhal_watch_view *view);
const char *gpuhal_watch_help(size_t index);

/* Draws everything on ncurses' screen. `colour` means that the colour pairs exist. */
void gpuhal_watch_draw(const gpuhal_watch_view *view, bool colour);

#endif
