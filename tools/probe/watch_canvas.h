/* watch_canvas.h: draws text, bars and curves on ncurses' screen, clipped at its edges. */
#ifndef PROBE_WATCH_CANVAS_H
#define PROBE_WATCH_CANVAS_H

#include "screen.h"

#include <stdint.h>

typedef struct gpuhal_watch_canvas {
    int height, width;
    bool utf8, colour;
} gpuhal_watch_canvas;

void gpuhal_watch_canvas_init(bool colour);
/* Draws the text in exactly `width` columns, like gpuhal_probe_screen_fit(). */
void gpuhal_watch_put(const gpuhal_watch_canvas *canvas, int y, int x, int width, gpuhal_probe_style style,
                      const char *text, bool to_the_right);
void gpuhal_watch_put_selected(const gpuhal_watch_canvas *canvas, int y, int x, int width, const char *text);
/* Draws a bar that is filled up to `share`, 0 to 1. */
void gpuhal_watch_put_bar(const gpuhal_watch_canvas *canvas, int y, int x, int width, gpuhal_probe_style style,
                          double share);

/* Returns the value of a curve's column, 0 to 1; negative if unknown. */
typedef double gpuhal_watch_point(const void *user, int age, gpuhal_probe_style *out_style);
/* Draws a curve with the newest point on the right. `age` 0 is the newest point. */
void gpuhal_watch_put_curve(const gpuhal_watch_canvas *canvas, int y, int x, int width, int height,
                            gpuhal_watch_point *point, const void *user);

#endif
