/* diff.h: how the machine differs from the baseline of --diff. */
#ifndef PROBE_DIFF_H
#define PROBE_DIFF_H

#include "machine.h"
#include "registry.h"

typedef enum gpuhal_probe_change_kind {
    PROBE_CHANGE_NEW,
    PROBE_CHANGE_BACK, /* it was known, and not present at the baseline */
    PROBE_CHANGE_GONE,
    PROBE_CHANGE_DRIVER,
    PROBE_CHANGE_KINDS
} gpuhal_probe_change_kind;

/* One interface that differs. Texts are those of the views. */
typedef struct gpuhal_probe_change {
    gpuhal_probe_change_kind kind;
    gpuhal_interface_record entry;
    gpuhal_physical_record physical;
    const char *id;             /* of the device that is the interface now; "": it is not listed */
    const char *driver, *older; /* DRIVER: the version now, and at the baseline; "": unknown */
} gpuhal_probe_change;

typedef struct gpuhal_probe_comparison {
    const gpuhal *gpu;
    const gpuhal_registry_view *before, *after;
    gpuhal_probe_change *changes; /* malloc'ed, by kind; those of one physical device are together */
    uint32_t count;
    bool counts_all;        /* `before` was never accepted: what was gone by then counts as being there */
    bool first;             /* there was nothing to compare with */
    bool accepted;          /* what is there now is the baseline from now on */
    uint64_t baseline_time; /* seconds since 1970, when it was made; 0: unknown */
} gpuhal_probe_comparison;

/* For people. */
void gpuhal_probe_diff_print(const gpuhal_probe_comparison *own, const gpuhal_probe_screen *screen);
/* The document gpuhal.diff/1. false without memory. */
bool gpuhal_probe_diff_json(const gpuhal_probe_comparison *comparison, FILE *out);

/* Why the devices of this backend are not compared, "failed", for each place from 0 on; false past the last. */
bool gpuhal_probe_diff_left_out(const gpuhal_probe_comparison *comparison, uint32_t index, const char **out_backend,
                                const char **out_why);

#endif
