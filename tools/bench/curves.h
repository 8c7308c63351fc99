/* curves.h: bandwidth over size, gathered from the rows: a curve for each device and direction, and for each pair of devices. */
#ifndef GPUHAL_BENCH_CURVES_H
#define GPUHAL_BENCH_CURVES_H

#include "output.h"

/* GiB/s; the baseline's is NAN where there is none. */
typedef struct gpuhal_bench_point {
    uint64_t bytes;
    double ours;
    double baseline;
} gpuhal_bench_point;

typedef struct gpuhal_bench_curve {
    char device[32]; /* With the mark of a software device, "*". */
    char peer[32];   /* "": one device. */
    char test[24];
    char path[16]; /* Of the largest size; "": one device. */
    bool half;     /* The baseline is the slower half. */
    gpuhal_bench_point points[GPUHAL_BENCH_SIZES_MAX];
    size_t count;
} gpuhal_bench_curve;

typedef struct gpuhal_bench_curves {
    gpuhal_bench_curve *curves;
    size_t count;
} gpuhal_bench_curves;

/* Takes the row if it is a copy over sizes. False when memory is short. */
bool gpuhal_bench_curves_add(gpuhal_bench_curves *curves, const gpuhal_bench_row *row);
void gpuhal_bench_curves_release(gpuhal_bench_curves *curves);

#endif
