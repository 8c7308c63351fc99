/* columns.h: the names and contents of the table's columns. */
#ifndef PROBE_COLUMNS_H
#define PROBE_COLUMNS_H

#include "rows.h"
#include "screen.h"

typedef enum gpuhal_probe_column {
    PROBE_COLUMN_ID,
    PROBE_COLUMN_NAME,
    PROBE_COLUMN_MEMORY,
    PROBE_COLUMN_UTILIZATION,
    PROBE_COLUMN_TEMPERATURE,
    PROBE_COLUMN_POWER,
    PROBE_COLUMN_PCI,
    /* for wide screens */
    PROBE_COLUMN_CLOCK,
    PROBE_COLUMN_ECC,
    PROBE_COLUMN_FAN,
    PROBE_COLUMN_NUMA,
    PROBE_COLUMN_LINK,
    PROBE_COLUMN_DRIVER,
    PROBE_COLUMN_CLOCK_MEMORY,
    /* on request */
    PROBE_COLUMN_VERIFIED,
    PROBE_COLUMN_UUID,
    PROBE_COLUMN_THROTTLE,
    PROBE_COLUMN_PROCESSES,
    PROBE_COLUMN_COUNT
} gpuhal_probe_column;

#define GPUHAL_PROBE_CELL_BYTES 192u /* longer text is truncated */

typedef struct gpuhal_probe_cell {
    char text[GPUHAL_PROBE_CELL_BYTES];
    gpuhal_probe_style style;
} gpuhal_probe_cell;

/* Returns the column's title: "USED/TOTAL GiB". */
const char *gpuhal_probe_column_title(gpuhal_probe_column column);
/* Returns the width reserved for the column. It does not depend on the contents, so that tables from different runs
 * look alike. */
size_t gpuhal_probe_column_width(gpuhal_probe_column column);
bool gpuhal_probe_column_is_right(gpuhal_probe_column column);

/* Returns the name without the vendor ("GeForce RTX 4090"), for names that are too long. The vendor is less informative
 * than the model. */
const char *gpuhal_probe_without_vendor(const char *name);

/* Parses the value of --columns, which has at most PROBE_COLUMN_COUNT names. Returns the number of names, or 0 after a
 * message on standard error. */
size_t gpuhal_probe_columns_read(const char *names, gpuhal_probe_column out_columns[PROBE_COLUMN_COUNT]);

/* Writes a cell of the row, or "" if the row's state replaces the cell. */
void gpuhal_probe_column_write(gpuhal_probe_column column, const gpuhal_probe_row *row,
                               const gpuhal_probe_screen *screen, gpuhal_probe_cell *out_cell);

#endif
