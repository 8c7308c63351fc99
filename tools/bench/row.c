/* row.c: see row.h. */
#include "row.h"

#include <math.h>
#include <stddef.h>

int gpuhal_bench_row_status(const gpuhal_bench_row *row)
{
    if (row->error != NULL) {
        return 0;
    }
    if (isnan(row->budget)) {
        return -1;
    }
    return row->kind == GPUHAL_BENCH_AMOUNT ? row->result.low <= row->budget : row->result.high >= row->budget;
}
