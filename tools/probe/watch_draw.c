/* watch_draw.c: draws the live view: a head line, a table of GPUs, curves for as many GPUs as fit, the processes, and
 * the keys. */
#include "columns.h"
#include "watch_canvas.h"
#include "watch_list.h"
#include "watch_text.h"

#include <curses.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    GAP = 1,
    CURVE_LEAST = 3,
    CURVE_MOST = 10,
    PROCESSES_LEAST = 5, /* lines, including the titles */
    MEMORY_TEXT = 14,
    BAR_LEAST = 6
};

typedef struct layout {
    gpuhal_watch_canvas canvas;
    int rows, first_row;      /* lines of the table, and the first visible row */
    int strips, curve_height; /* number of devices with curves, and height of the curves without titles */
    int processes_at;         /* line of the process titles */
} layout;

static void put(const layout *at, int y, int x, int width, gpuhal_probe_style style, const char *text)
{
    gpuhal_watch_put(&at->canvas, y, x, width, style, text, false);
}

/* Counts the devices that could have curves. Hardware without a device has none. */
static int count_devices(const gpuhal_watch_frame *frame)
{
    int count = 0;
    for (uint32_t i = 0; i < frame->row_count; i++) {
        count += *frame->rows[i].id != 0;
    }
    return count;
}

static layout make_layout(const gpuhal_watch_view *view, bool colour)
{
    const gpuhal_watch_frame *frame = view->frame;
    layout at = {.canvas = {.height = LINES, .width = COLS, .utf8 = view->utf8, .colour = colour}};
    const int room = LINES - 3; /* minus the head, the table's titles and the keys */
    const int wanted = frame ? (int)frame->row_count : 0, devices = frame ? count_devices(frame) : 0;
    const int most = room - PROCESSES_LEAST - CURVE_LEAST - 1;
    at.rows = wanted <= most ? wanted : most > 1 ? most : room > 1 ? 1 : 0;
    at.first_row = (int)view->selected >= at.rows ? (int)view->selected - at.rows + 1 : 0;
    const int rest = room - at.rows, third = rest / 3;
    const int curves = rest - (third > PROCESSES_LEAST ? third : PROCESSES_LEAST);
    if (devices && curves > CURVE_LEAST) {
        const int most_strips = curves / (CURVE_LEAST + 1);
        at.strips = devices < most_strips ? devices : most_strips;
        at.curve_height = curves / at.strips - 1;
        at.curve_height = at.curve_height > CURVE_MOST ? CURVE_MOST : at.curve_height;
    }
    at.processes_at = 2 + at.rows + at.strips * (at.curve_height + 1);
    return at;
}

/* ---- the head */

static void draw_head(const gpuhal_watch_view *view, const layout *at)
{
    char text[320], age[64] = "";
    const gpuhal_watch_frame *frame = view->frame;
    const uint64_t old_ns = frame && view->now_ns > frame->time_ns ? view->now_ns - frame->time_ns : 0;
    const bool late = frame && !view->paused && old_ns > 2 * view->period_ns + 1000000000u;
    if (late) {
        snprintf(age, sizeof age, "   no sample for %" PRIu64 " s", old_ns / 1000000000u);
    }
    if (frame) {
        snprintf(text, sizeof text, "gpuhal-probe   %s   every %g s%s%s", frame->counts, (double)view->period_ns / 1e9,
                 view->paused ? "   PAUSED" : "", age);
    } else {
        snprintf(text, sizeof text, "gpuhal-probe   reading the first sample ...");
    }
    put(at, 0, 0, at->canvas.width, late ? PROBE_BAD : view->paused ? PROBE_WARN : PROBE_BOLD, text);
}

/* ---- the table */

/* Additional table columns, on screens that are at least `from` columns wide. */
static const struct {
    gpuhal_watch_number number;
    const char *title;
    int width, from;
} more_columns[] = {
    {WATCH_CLOCK, "CLOCK", 8, 100},
    {WATCH_FAN, "FAN", 5, 110},
};
enum { MORE_COLUMNS = sizeof more_columns / sizeof *more_columns };

typedef struct table {
    int id, name, bar; /* column widths */
} table;

/* Sets the widths. The names take half of the remaining width, up to a limit, and the two bars take the rest. */
static table make_table(const layout *at, const gpuhal_watch_frame *frame)
{
    table widths = {.id = 6, .name = 12, .bar = BAR_LEAST};
    for (uint32_t i = 0; i < frame->row_count; i++) {
        const int own = (int)strlen(frame->rows[i].id);
        widths.id = own > widths.id ? own : widths.id;
    }
    int fixed = 2 + widths.id + GAP + GAP + 5 + GAP + MEMORY_TEXT + GAP + 2 * GAP + 6 + GAP + 9;
    for (size_t i = 0; i < MORE_COLUMNS; i++) {
        fixed += at->canvas.width >= more_columns[i].from ? more_columns[i].width + GAP : 0;
    }
    const int over = at->canvas.width - fixed - widths.name - 2 * widths.bar;
    if (over > 0) {
        widths.name += over / 2 > 28 ? 28 : over / 2;
        widths.bar += (over - (over / 2 > 28 ? 28 : over / 2)) / 2;
    }
    return widths;
}

static int put_number(const layout *at, int y, int x, int width, const gpuhal_watch_row *row,
                      gpuhal_watch_number number)
{
    char text[WATCH_TEXT_BYTES];
    const double whole = gpuhal_watch_whole(row, number);
    const bool coloured = number < WATCH_CURVES && row->known[number] && whole > 0;
    gpuhal_watch_number_text(row, number, at->canvas.utf8, text);
    gpuhal_watch_put(&at->canvas, y, x, width,
                     coloured ? gpuhal_watch_style(number, (double)row->numbers[number] / whole) : PROBE_PLAIN, text,
                     true);
    return x + width + GAP;
}

static int put_bar(const layout *at, int y, int x, int width, const gpuhal_watch_row *row, gpuhal_watch_number number)
{
    const double whole = gpuhal_watch_whole(row, number);
    if (row->known[number] && whole > 0) {
        const double share = (double)row->numbers[number] / whole;
        gpuhal_watch_put_bar(&at->canvas, y, x, width, gpuhal_watch_style(number, share), share);
    }
    return x + width + GAP;
}

static void draw_row(const layout *at, int y, const table *widths, const gpuhal_watch_row *row, bool selected)
{
    int x = 2;
    const char *id = *row->id ? row->id : "none";
    put(at, y, 0, 2, selected ? PROBE_BOLD : PROBE_BAD, selected ? "> " : *row->note ? "! " : "  ");
    if (selected) {
        gpuhal_watch_put_selected(&at->canvas, y, x, widths->id, id);
    } else {
        put(at, y, x, widths->id, PROBE_BOLD, id);
    }
    x += widths->id + GAP;
    const bool is_long = (int)strlen(row->name) > widths->name;
    put(at, y, x, widths->name, PROBE_PLAIN, is_long ? gpuhal_probe_without_vendor(row->name) : row->name);
    x += widths->name + GAP;
    if (*row->note) {
        char text[320];
        snprintf(text, sizeof text, "%s%s", row->lost ? "LOST: " : "", row->note);
        put(at, y, x, at->canvas.width - x, PROBE_BAD, text);
        return;
    }
    x = put_bar(at, y, x, widths->bar, row, WATCH_UTILIZATION);
    x = put_number(at, y, x - GAP, 5, row, WATCH_UTILIZATION);
    x = put_bar(at, y, x, widths->bar, row, WATCH_MEMORY_USED);
    x = put_number(at, y, x - GAP + 1, MEMORY_TEXT, row, WATCH_MEMORY_USED);
    x = put_number(at, y, x, 6, row, WATCH_TEMPERATURE);
    x = put_number(at, y, x, 9, row, WATCH_POWER);
    for (size_t i = 0; i < MORE_COLUMNS; i++) {
        if (at->canvas.width >= more_columns[i].from) {
            x = put_number(at, y, x, more_columns[i].width, row, more_columns[i].number);
        }
    }
}

static void draw_titles(const layout *at, const table *widths)
{
    int x = 2;
    put(at, 1, x, widths->id, PROBE_DIM, "ID");
    x += widths->id + GAP;
    put(at, 1, x, widths->name, PROBE_DIM, "NAME");
    x += widths->name + GAP;
    gpuhal_watch_put(&at->canvas, 1, x, widths->bar + 5, PROBE_DIM, "UTIL", true);
    x += widths->bar + 5 + GAP;
    gpuhal_watch_put(&at->canvas, 1, x, widths->bar + 1 + MEMORY_TEXT, PROBE_DIM, "MEMORY", true);
    x += widths->bar + 1 + MEMORY_TEXT + GAP;
    gpuhal_watch_put(&at->canvas, 1, x, 6, PROBE_DIM, "TEMP", true);
    gpuhal_watch_put(&at->canvas, 1, x + 7, 9, PROBE_DIM, "POWER", true);
    x += 17;
    for (size_t i = 0; i < MORE_COLUMNS; i++) {
        if (at->canvas.width >= more_columns[i].from) {
            gpuhal_watch_put(&at->canvas, 1, x, more_columns[i].width, PROBE_DIM, more_columns[i].title, true);
            x += more_columns[i].width + GAP;
        }
    }
}

static void draw_table(const gpuhal_watch_view *view, const layout *at)
{
    const table widths = make_table(at, view->frame);
    draw_titles(at, &widths);
    for (int i = 0; i < at->rows; i++) {
        const uint32_t place = (uint32_t)(at->first_row + i);
        draw_row(at, 2 + i, &widths, &view->frame->rows[place], place == view->selected);
    }
}

/* ---- curves */

typedef struct curve {
    const gpuhal_watch_history *history;
    gpuhal_watch_number number;
    double whole;
} curve;

static double point_of(const void *user, int age, gpuhal_probe_style *out_style)
{
    const curve *own = user;
    if (age < 0 || (uint32_t)age >= own->history->count || own->whole <= 0) {
        return -1;
    }
    const uint32_t place = (own->history->next + WATCH_POINTS - 1 - (uint32_t)age) % WATCH_POINTS;
    const double value = (double)own->history->points[own->number][place];
    *out_style = gpuhal_watch_style(own->number, value / own->whole);
    return value < 0 ? -1 : value / own->whole;
}

/* Returns the maximum, or the largest value so far if the maximum is unknown. */
static double whole_of(const gpuhal_watch_row *row, const gpuhal_watch_history *history, gpuhal_watch_number number)
{
    double most = gpuhal_watch_whole(row, number);
    for (uint32_t i = 0; most <= 0 && i < history->count; i++) {
        const double value = (double)history->points[number][i];
        most = -value < most ? -value : most;
    }
    return most < 0 ? -most : most;
}

static void draw_strip(const gpuhal_watch_view *view, const layout *at, int y, const gpuhal_watch_row *row)
{
    static const char *const names[WATCH_CURVES] = {"util", "mem", "temp", "power"};
    const gpuhal_watch_history *history = gpuhal_watch_view_history(view, row->id);
    const int width = (at->canvas.width - ((int)WATCH_CURVES - 1) * 2) / (int)WATCH_CURVES;
    for (int i = 0; history && i < (int)WATCH_CURVES; i++) {
        char text[WATCH_TEXT_BYTES], title[160];
        const gpuhal_watch_number number = (gpuhal_watch_number)i;
        const curve own = {history, number, whole_of(row, history, number)};
        gpuhal_watch_number_text(row, number, view->utf8, text);
        snprintf(title, sizeof title, "%s%s%s %s", i ? "" : row->id, i ? "" : " ", names[i], text);
        const int x = i * (width + 2);
        put(at, y, x, width, view->frame->rows + view->selected == row ? PROBE_BOLD : PROBE_DIM, title);
        gpuhal_watch_put_curve(&at->canvas, y + 1, x, width, at->curve_height, point_of, &own);
        if (!row->known[number] && own.whole <= 0) {
            put(at, y + at->curve_height, x, width, PROBE_DIM, "not known");
        }
    }
}

/* Draws the curves of all devices in table order. If there is not enough room, starts with the selected device. */
static void draw_curves(const gpuhal_watch_view *view, const layout *at)
{
    const gpuhal_watch_frame *frame = view->frame;
    const uint32_t first = at->strips < count_devices(frame) ? view->selected : 0;
    int done = 0;
    for (uint32_t i = 0; i < frame->row_count && done < at->strips; i++) {
        const gpuhal_watch_row *row = &frame->rows[(first + i) % frame->row_count];
        if (*row->id) {
            draw_strip(view, at, 2 + at->rows + done * (at->curve_height + 1), row);
            done++;
        }
    }
}

void gpuhal_watch_draw(const gpuhal_watch_view *view, bool colour)
{
    const layout at = make_layout(view, colour);
    erase();
    draw_head(view, &at);
    if (view->help) {
        for (size_t i = 0; gpuhal_watch_help(i); i++) {
            put(&at, 2 + (int)i, 2, at.canvas.width - 2, PROBE_PLAIN, gpuhal_watch_help(i));
        }
    } else if (view->frame) {
        draw_table(view, &at);
        draw_curves(view, &at);
        gpuhal_watch_draw_processes(view, &at.canvas, at.processes_at);
    }
    const int last = at.canvas.height - 1;
    char line[160];
    snprintf(line, sizeof line, "%s%s%s", gpuhal_watch_keys(view), view->typing ? view->filter : "",
             view->typing ? "_" : "");
    /* A screen with one line shows only the head, unless the help is open or a filter is typed. */
    if (last > 0 || view->help || view->typing) {
        put(&at, last, 0, at.canvas.width, PROBE_DIM, view->help ? "any key leaves the help, q quits" : line);
    }
    refresh();
}
