/* svg.h: bandwidth over size as a drawing. */
#ifndef GPUHAL_BENCH_SVG_H
#define GPUHAL_BENCH_SVG_H

#include "curves.h"

#include <stdio.h>

/* Writes a whole SVG document; whether that went well, ferror(@to) tells. @cpu_name may be NULL. */
void gpuhal_bench_svg_draw(FILE *to, const gpuhal_bench_curves *curves, const char *cpu_name);

#endif
