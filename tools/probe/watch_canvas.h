/* watch_canvas.h: texts, bars and curves on ncurses' screen, cut at its edges. */
#ifndef PROBE_WATCH_CANVAS_H
#define PROBE_WATCH_CANVAS_H

#include "screen.h"

#include <stdint.h>

typedef struct gpuhal_watch_canvas {
    int height, width;
    bool utf8, colour;
} gpuhal_watch_canvas;

/* Prepares the pairs of colours for the styles. */
void gpuhal_watch_canvas_init(bool colour);
/* Puts the text in exactly `width` columns, as gpuhal_probe_screen_fit() does. */
void gpuhal_watch_put(const gpuhal_watch_canvas *canvas, int y, int x, int width, gpuhal_probe_style style,
                      const char *text, bool to_the_right);
/* Puts the text as the selected one. */
void gpuhal_watch_put_selected(const gpuhal_watch_canvas *canvas, int y, int x, int width, const char *text);
/* Puts a bar that is `share` of its width, 0 to 1. */
void gpuhal_watch_put_bar(const gpuhal_watch_canvas *canvas, int y, int x, int width, gpuhal_probe_style style,
                          double share);

/* One column of a curve: 0 to 1, below 0 if the value is unknown. */
typedef double gpuhal_watch_point(const void *user, int age, gpuhal_probe_style *out_style);
/* Puts columns from the newest at the right to older ones; `age` 0 is the newest. */
void gpuhal_watch_put_curve(const gpuhal_watch_canvas *canvas, int y, int x, int width, int height,
                            gpuhal_watch_point *point, const void *user);

#endif
