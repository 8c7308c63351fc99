/* svg_panel.h: one panel of the drawing: axes, the two curves and their names. */
#ifndef GPUHAL_BENCH_SVG_PANEL_H
#define GPUHAL_BENCH_SVG_PANEL_H

#include "curves.h"

#include <stdio.h>

/* The room that a panel takes, with its margins. */
enum { GPUHAL_BENCH_PANEL_WIDTH = 340, GPUHAL_BENCH_PANEL_HEIGHT = 220 };

/* What panels side by side have in common. */
typedef struct gpuhal_bench_scale {
    double low; /* Binary logarithms of the sizes at the ends. */
    double high;
    double most; /* GiB/s at the top. */
    double step; /* Between two lines of the grid. */
} gpuhal_bench_scale;

gpuhal_bench_scale gpuhal_bench_scale_of(const gpuhal_bench_curve *curves, size_t count);
void gpuhal_bench_panel_draw(FILE *to, const gpuhal_bench_curve *curve, const gpuhal_bench_scale *scale, double x, double y);

/* Text as XML has it. What is no printable ASCII becomes a question mark. */
void gpuhal_bench_svg_text(FILE *to, const char *text);

#endif
