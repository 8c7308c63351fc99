/* curves.c: finds the curve that a row belongs to, or begins it. Points are kept in the order of their sizes. */
#include "curves.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_over_sizes(const gpuhal_bench_row *row)
{
    return row->kind == GPUHAL_BENCH_RATIO ||
           (row->kind == GPUHAL_BENCH_SLOWER_HALF && row->peer != NULL && strcmp(row->test, "copy") == 0);
}

static gpuhal_bench_curve *find(gpuhal_bench_curves *curves, const char *device, const char *peer, const char *test)
{
    for (size_t i = 0; i < curves->count; i++) {
        gpuhal_bench_curve *curve = &curves->curves[i];
        if (strcmp(curve->device, device) == 0 && strcmp(curve->peer, peer) == 0 && strcmp(curve->test, test) == 0) {
            return curve;
        }
    }
    gpuhal_bench_curve *more = realloc(curves->curves, (curves->count + 1) * sizeof *more);
    if (more == NULL) {
        return NULL;
    }
    curves->curves = more;
    gpuhal_bench_curve *curve = &more[curves->count++];
    *curve = (gpuhal_bench_curve){.count = 0};
    snprintf(curve->device, sizeof curve->device, "%s", device);
    snprintf(curve->peer, sizeof curve->peer, "%s", peer);
    snprintf(curve->test, sizeof curve->test, "%s", test);
    return curve;
}

static void insert(gpuhal_bench_curve *curve, gpuhal_bench_point point)
{
    size_t at = curve->count;
    if (at == GPUHAL_BENCH_SIZES_MAX) {
        return;
    }
    for (; at > 0 && curve->points[at - 1].bytes > point.bytes; at--) {
        curve->points[at] = curve->points[at - 1];
    }
    curve->points[at] = point;
    curve->count++;
}

bool gpuhal_bench_curves_add(gpuhal_bench_curves *curves, const gpuhal_bench_row *row)
{
    char device[32];
    char peer[32] = "";
    if (!is_over_sizes(row)) {
        return true;
    }
    snprintf(device, sizeof device, "%s%s", row->device, row->software ? "*" : "");
    if (row->peer != NULL) {
        snprintf(peer, sizeof peer, "%s%s", row->peer, row->peer_software ? "*" : "");
    }
    gpuhal_bench_curve *curve = find(curves, device, peer, row->test);
    if (curve == NULL) {
        return false;
    }
    const double per_ns = (double)row->bytes / (1024.0 * 1024.0 * 1024.0) * 1e9;
    snprintf(curve->path, sizeof curve->path, "%s", row->path != NULL ? row->path : "");
    curve->half = row->kind == GPUHAL_BENCH_SLOWER_HALF;
    insert(curve, (gpuhal_bench_point){row->bytes, per_ns / row->ours, per_ns / row->baseline});
    return true;
}

void gpuhal_bench_curves_release(gpuhal_bench_curves *curves)
{
    free(curves->curves);
    *curves = (gpuhal_bench_curves){0};
}
