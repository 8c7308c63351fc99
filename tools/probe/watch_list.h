/* watch_list.h: draws the processes in the live view. */
#ifndef PROBE_WATCH_LIST_H
#define PROBE_WATCH_LIST_H

#include "watch_canvas.h"
#include "watch_view.h"

/* Draws from line `y` to the line above the keys. */
void gpuhal_watch_draw_processes(const gpuhal_watch_view *view, const gpuhal_watch_canvas *canvas, int y);

#endif
