/* watch_canvas.c: see watch_canvas.h. */
#include "watch_canvas.h"

#include <curses.h>
#include <stdio.h>
#include <string.h>

enum { EIGHTHS = 8, PAIR_GOOD = 1, PAIR_WARN, PAIR_BAD, CELL_BYTES = 2048 };

void gpuhal_watch_canvas_init(bool colour)
{
    if (colour) {
        start_color();
        use_default_colors();
        init_pair(PAIR_GOOD, COLOR_GREEN, -1);
        init_pair(PAIR_WARN, COLOR_YELLOW, -1);
        init_pair(PAIR_BAD, COLOR_RED, -1);
    }
}

static attr_t attributes_of(const gpuhal_watch_canvas *canvas, gpuhal_probe_style style)
{
    switch (style) {
    case PROBE_BOLD:
        return A_BOLD;
    case PROBE_DIM:
        return A_DIM;
    case PROBE_GOOD:
        return canvas->colour ? (attr_t)COLOR_PAIR(PAIR_GOOD) : A_NORMAL;
    case PROBE_WARN:
        return canvas->colour ? (attr_t)COLOR_PAIR(PAIR_WARN) : A_BOLD;
    case PROBE_BAD:
        return A_BOLD | (canvas->colour ? (attr_t)COLOR_PAIR(PAIR_BAD) : A_NORMAL);
    case PROBE_PLAIN:
    default:
        return A_NORMAL;
    }
}

static void put_in(const gpuhal_watch_canvas *canvas, int y, int x, int width, attr_t attributes, const char *text,
                   bool to_the_right)
{
    char cell[CELL_BYTES];
    width = x + width > canvas->width ? canvas->width - x : width;
    FILE *out = y >= 0 && y < canvas->height && width > 0 ? fmemopen(cell, sizeof cell, "w") : NULL;
    if (out) {
        const gpuhal_probe_screen plain = {.out = out, .width = (size_t)width, .utf8 = canvas->utf8};
        gpuhal_probe_screen_fit(&plain, PROBE_PLAIN, text, (size_t)width, to_the_right);
        cell[fclose(out) == 0 ? CELL_BYTES - 1 : 0] = 0;
        attron(attributes);
        mvaddstr(y, x, cell);
        attroff(attributes);
    }
}

void gpuhal_watch_put(const gpuhal_watch_canvas *canvas, int y, int x, int width, gpuhal_probe_style style,
                      const char *text, bool to_the_right)
{
    put_in(canvas, y, x, width, attributes_of(canvas, style), text, to_the_right);
}

void gpuhal_watch_put_selected(const gpuhal_watch_canvas *canvas, int y, int x, int width, const char *text)
{
    put_in(canvas, y, x, width, A_REVERSE, text, false);
}

/* Returns a cell of which `eighths` eighths are filled, from the bottom or from the left. */
static const char *block(bool utf8, bool from_left, int eighths)
{
    static const char *const below[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const left[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    static const char *const ascii_below[] = {" ", "_", ".", ".", ":", ":", "|", "|", "#"};
    static const char *const ascii_left[] = {" ", " ", " ", " ", "|", "|", "|", "|", "#"};
    eighths = eighths < 0 ? 0 : eighths > EIGHTHS ? EIGHTHS : eighths;
    return utf8 ? (from_left ? left : below)[eighths] : (from_left ? ascii_left : ascii_below)[eighths];
}

static double clamped(double share)
{
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

void gpuhal_watch_put_bar(const gpuhal_watch_canvas *canvas, int y, int x, int width, gpuhal_probe_style style,
                          double share)
{
    const int full = (int)(clamped(share) * width * EIGHTHS + 0.5);
    attron(attributes_of(canvas, style));
    for (int i = 0; i < width && x + i < canvas->width && y < canvas->height; i++) {
        const int eighths = full - i * EIGHTHS;
        mvaddstr(y, x + i, eighths > 0 ? block(canvas->utf8, true, eighths) : canvas->utf8 ? "·" : ".");
    }
    attroff(attributes_of(canvas, style));
}

void gpuhal_watch_put_curve(const gpuhal_watch_canvas *canvas, int y, int x, int width, int height,
                            gpuhal_watch_point *point, const void *user)
{
    for (int i = 0; i < width && x + i < canvas->width; i++) {
        gpuhal_probe_style style = PROBE_GOOD;
        const double share = point(user, width - 1 - i, &style);
        /* Zero is drawn as a line at the bottom, because it is a known value. */
        int full = (int)(clamped(share) * height * EIGHTHS + 0.5);
        full = share < 0 ? 0 : full ? full : 1;
        attron(attributes_of(canvas, style));
        for (int line = 0; line < height && y + line < canvas->height; line++) {
            mvaddstr(y + line, x + i, block(canvas->utf8, false, full - (height - 1 - line) * EIGHTHS));
        }
        attroff(attributes_of(canvas, style));
    }
}
