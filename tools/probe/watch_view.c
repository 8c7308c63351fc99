/* watch_view.c: frames, history and process order; see watch_view.h. */
#include "watch_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const float UNKNOWN = -1;

const gpuhal_watch_history *gpuhal_watch_view_history(const gpuhal_watch_view *view, const char *id)
{
    for (uint32_t i = 0; i < view->history_count; i++) {
        if (strcmp(view->histories[i].id, id) == 0) {
            return &view->histories[i];
        }
    }
    return NULL;
}

/* ---- history */

/* Creates a history for each new device. Returns false if out of memory. */
static bool make_histories(gpuhal_watch_view *view, const gpuhal_watch_frame *frame)
{
    for (uint32_t i = 0; i < frame->row_count; i++) {
        if (*frame->rows[i].id && !gpuhal_watch_view_history(view, frame->rows[i].id)) {
            gpuhal_watch_history *grown = realloc(view->histories, (view->history_count + 1) * sizeof *view->histories);
            if (!grown) {
                return false;
            }
            view->histories = grown;
            gpuhal_watch_history *own = &grown[view->history_count++];
            memset(own, 0, sizeof *own);
            memcpy(own->id, frame->rows[i].id, sizeof own->id);
        }
    }
    return true;
}

/* Appends a point to each history. A device that is no longer in the frame has a gap in its history. */
static void add_points(gpuhal_watch_view *view, const gpuhal_watch_frame *frame)
{
    for (uint32_t h = 0; h < view->history_count; h++) {
        gpuhal_watch_history *own = &view->histories[h];
        const gpuhal_watch_row *row = NULL;
        for (uint32_t i = 0; i < frame->row_count; i++) {
            row = strcmp(frame->rows[i].id, own->id) == 0 ? &frame->rows[i] : row;
        }
        for (size_t c = 0; c < WATCH_CURVES; c++) {
            own->points[c][own->next] = row && row->known[c] ? (float)row->numbers[c] : UNKNOWN;
        }
        own->next = (own->next + 1) % WATCH_POINTS;
        own->count += own->count < WATCH_POINTS;
    }
}

/* ---- processes */

static bool contains(const char *text, const char *part)
{
    const size_t length = strlen(part);
    for (; *text; text++) {
        if (strncasecmp(text, part, length) == 0) {
            return true;
        }
    }
    return length == 0;
}

static bool matches(const gpuhal_watch_view *view, const gpuhal_watch_process *process)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%u", process->pid);
    if (view->of_selected && strcmp(process->device, view->selected_id) != 0) {
        return false;
    }
    return contains(process->command, view->filter) || contains(process->user, view->filter) ||
           contains(process->device, view->filter) || contains(pid, view->filter);
}

/* Sorts by the selected column, memory and utilisation in descending order, all other columns in ascending order. */
static int compare(const void *left, const void *right, void *user)
{
    const gpuhal_watch_view *view = user;
    const gpuhal_watch_process *a = &view->processes[*(const uint32_t *)left];
    const gpuhal_watch_process *b = &view->processes[*(const uint32_t *)right];
    int order = 0;
    switch (view->order) {
    case WATCH_BY_MEMORY:
        order = (a->memory_bytes < b->memory_bytes) - (a->memory_bytes > b->memory_bytes);
        break;
    case WATCH_BY_BUSY:
        order = (a->busy_permille < b->busy_permille) - (a->busy_permille > b->busy_permille);
        break;
    case WATCH_BY_USER:
        order = strcmp(a->user, b->user);
        break;
    case WATCH_BY_DEVICE:
        order = strverscmp(a->device, b->device);
        break;
    case WATCH_BY_COMMAND:
        order = strcasecmp(a->command, b->command);
        break;
    case WATCH_BY_PID:
    default:
        break;
    }
    order = order ? order : (a->pid > b->pid) - (a->pid < b->pid);
    return view->reversed ? -order : order;
}

void gpuhal_watch_view_sort(gpuhal_watch_view *view)
{
    view->match_count = 0;
    for (uint32_t i = 0; i < view->process_count; i++) {
        if (matches(view, &view->processes[i])) {
            view->matches[view->match_count++] = i;
        }
    }
    if (view->match_count) {
        qsort_r(view->matches, view->match_count, sizeof *view->matches, compare, view);
    }
    const uint32_t last = view->match_count ? view->match_count - 1 : 0;
    view->first_process = view->first_process > last ? last : view->first_process;
}

static bool take_processes(gpuhal_watch_view *view, gpuhal_watch_frame *frame)
{
    uint32_t *places = realloc(view->matches, (frame->process_count + 1) * sizeof *places);
    if (!places) {
        return false;
    }
    view->matches = places;
    free(view->processes);
    view->processes = frame->processes;
    view->process_count = frame->process_count;
    frame->processes = NULL;
    return true;
}

/* ---- a frame */

bool gpuhal_watch_view_take(gpuhal_watch_view *view, gpuhal_watch_frame *frame)
{
    if (!make_histories(view, frame) || (frame->has_processes && !take_processes(view, frame))) {
        gpuhal_watch_frame_free(frame);
        return false;
    }
    add_points(view, frame);
    gpuhal_watch_frame_free(view->frame);
    view->frame = frame;
    view->selected = view->selected < frame->row_count ? view->selected : 0;
    for (uint32_t i = 0; i < frame->row_count; i++) {
        if (*view->selected_id && strcmp(frame->rows[i].id, view->selected_id) == 0) {
            view->selected = i;
        }
    }
    if (frame->row_count) {
        memcpy(view->selected_id, frame->rows[view->selected].id, sizeof view->selected_id);
    }
    gpuhal_watch_view_sort(view);
    return true;
}

void gpuhal_watch_view_finish(gpuhal_watch_view *view)
{
    gpuhal_watch_frame_free(view->frame);
    free(view->processes);
    free(view->matches);
    free(view->histories);
    *view = (gpuhal_watch_view){0};
}
