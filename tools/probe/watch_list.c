/* watch_list.c: see watch_list.h. */
#include "watch_list.h"

#include "watch_text.h"

#include <gpuhal/gpuhal.h>
#include <gpuhal/telemetry.h>

#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *title;
    int width; /* 0 for the remaining width */
    gpuhal_watch_order order;
    bool to_the_right;
} columns[] = {
    {"PID", 9, WATCH_BY_PID, true},          {"USER", 10, WATCH_BY_USER, false},
    {"DEVICE", 9, WATCH_BY_DEVICE, false},   {"TYPE", 4, WATCH_ORDERS, false},
    {"MEMORY", 10, WATCH_BY_MEMORY, true},   {"BUSY", 5, WATCH_BY_BUSY, true},
    {"COMMAND", 0, WATCH_BY_COMMAND, false},
};
enum { COLUMNS = sizeof columns / sizeof *columns, CELL_BYTES = 96 };

static void set_cells(const gpuhal_watch_process *process, char cells[COLUMNS][CELL_BYTES])
{
    static const char *const types[] = {"-", "C", "G", "C+G"};
    const bool memory = process->flags & GPUHAL_PROCESS_MEMORY_KNOWN, busy = process->flags & GPUHAL_PROCESS_BUSY_KNOWN;
    char bytes[WATCH_TEXT_BYTES];
    gpuhal_watch_bytes_text(process->memory_bytes, bytes);
    snprintf(cells[0], CELL_BYTES, "%s%" PRIu32, process->flags & GPUHAL_PROCESS_FOREIGN_NAMESPACE ? "#" : "",
             process->pid);
    snprintf(cells[1], CELL_BYTES, "%s", *process->user ? process->user : "-");
    snprintf(cells[2], CELL_BYTES, "%s", process->device);
    snprintf(
        cells[3], CELL_BYTES, "%s",
        types[(process->flags & GPUHAL_PROCESS_COMPUTE ? 1 : 0) + (process->flags & GPUHAL_PROCESS_GRAPHICS ? 2 : 0)]);
    snprintf(cells[4], CELL_BYTES, "%s", memory ? bytes : "-");
    if (busy) {
        snprintf(cells[5], CELL_BYTES, "%" PRIu32 "%%", (process->busy_permille + 5) / 10);
    } else {
        snprintf(cells[5], CELL_BYTES, "-");
    }
    snprintf(cells[6], CELL_BYTES, "%s", *process->command ? process->command : "-");
}

static int width_of(const gpuhal_watch_canvas *canvas, size_t column, int x)
{
    return columns[column].width ? columns[column].width : canvas->width - x;
}

static void draw_titles(const gpuhal_watch_view *view, const gpuhal_watch_canvas *canvas, int y)
{
    int x = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        const bool sorted = columns[i].order == view->order;
        char title[CELL_BYTES];
        snprintf(title, sizeof title, "%s%s", columns[i].title,
                 !sorted      ? ""
                 : view->utf8 ? (view->reversed ? "↑" : "↓")
                              : (view->reversed ? "^" : "v"));
        gpuhal_watch_put(canvas, y, x, width_of(canvas, i, x), sorted ? PROBE_BOLD : PROBE_DIM, title,
                         columns[i].to_the_right);
        x += columns[i].width + 1;
    }
}

/* At the right of the titles, draws how many of all processes the list shows. */
static void draw_count(const gpuhal_watch_view *view, const gpuhal_watch_canvas *canvas, int y)
{
    char text[CELL_BYTES], filter[WATCH_FILTER_BYTES + 16] = "";
    enum { WIDTH = 20 };
    if (*view->filter) {
        snprintf(filter, sizeof filter, "filter \"%s\" ", view->filter);
    }
    snprintf(text, sizeof text, "%s%s%" PRIu32 " of %" PRIu32, filter, view->of_selected ? "of the GPU " : "",
             view->match_count, view->process_count);
    gpuhal_watch_put(canvas, y, canvas->width > WIDTH ? canvas->width - WIDTH : 0, WIDTH,
                     *filter || view->of_selected ? PROBE_WARN : PROBE_DIM, text, true);
}

void gpuhal_watch_draw_processes(const gpuhal_watch_view *view, const gpuhal_watch_canvas *canvas, int y)
{
    const int end = canvas->height - 1;
    if (y >= end) {
        return;
    }
    draw_titles(view, canvas, y);
    if (view->process_count) {
        draw_count(view, canvas, y);
    }
    if (!view->match_count) {
        gpuhal_watch_put(canvas, y + 1 < end ? y + 1 : -1, 0, canvas->width, PROBE_DIM,
                         view->process_count ? "no process matches" : "no process is known to use these GPUs", false);
    }
    for (uint32_t i = view->first_process; i < view->match_count && ++y < end; i++) {
        char cells[COLUMNS][CELL_BYTES];
        int x = 0;
        set_cells(&view->processes[view->matches[i]], cells);
        for (size_t c = 0; c < COLUMNS; c++) {
            gpuhal_watch_put(canvas, y, x, width_of(canvas, c, x), PROBE_PLAIN, cells[c], columns[c].to_the_right);
            x += columns[c].width + 1;
        }
    }
}
