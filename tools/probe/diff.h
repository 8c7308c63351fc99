/* diff.h: the differences between the machine and the baseline of --diff. */
#ifndef PROBE_DIFF_H
#define PROBE_DIFF_H

#include "machine.h"
#include "registry.h"

typedef enum gpuhal_probe_change_kind {
    PROBE_CHANGE_NEW,
    PROBE_CHANGE_BACK, /* known to the baseline, but not present in it */
    PROBE_CHANGE_GONE,
    PROBE_CHANGE_DRIVER,
    PROBE_CHANGE_KINDS
} gpuhal_probe_change_kind;

/* One changed interface. Its strings belong to the views, and `id` to the device. */
typedef struct gpuhal_probe_change {
    gpuhal_probe_change_kind kind;
    gpuhal_interface_record entry;
    gpuhal_physical_record physical;
    const char *id;             /* id of the present device; "" if it is not listed */
    const char *driver, *older; /* for PROBE_CHANGE_DRIVER, the version now and in the baseline; "" if unknown */
} gpuhal_probe_change;

typedef struct gpuhal_probe_comparison {
    const gpuhal_view *before, *after; /* `after` belongs to an open gpuhal object */
    gpuhal_probe_change *changes;      /* malloc'ed, sorted by kind, then by physical device */
    uint32_t count;
    bool counts_all;        /* `before` was never accepted, so interfaces that were already gone count as present */
    bool first;             /* there was nothing to compare with: no baseline, and an empty record */
    bool accepted;          /* the machine's current state becomes the baseline */
    uint64_t baseline_time; /* creation time in seconds since 1970; 0 if unknown */
} gpuhal_probe_comparison;

void gpuhal_probe_diff_print(const gpuhal_probe_comparison *own, const gpuhal_probe_screen *screen);
/* Prints the document gpuhal.diff/1. Returns false if out of memory. */
bool gpuhal_probe_diff_json(const gpuhal_probe_comparison *comparison, FILE *out);

/* Returns one backend whose devices are not compared, and the reason, such as "failed". `index` counts from 0; returns
 * false after the last. The strings belong to the views, or are static. */
bool gpuhal_probe_diff_left_out(const gpuhal_probe_comparison *comparison, uint32_t index, const char **out_backend,
                                const char **out_why);

#endif
