/* diff.h: the differences between the machine and the baseline of --diff. */
#ifndef PROBE_DIFF_H
#define PROBE_DIFF_H

#include "machine.h"
#include "registry.h"

typedef enum gpuhal_probe_change_kind {
    PROBE_CHANGE_NEW,
    PROBE_CHANGE_BACK, /* it was known, and absent in the baseline */
    PROBE_CHANGE_GONE,
    PROBE_CHANGE_DRIVER,
    PROBE_CHANGE_KINDS
} gpuhal_probe_change_kind;

/* One changed interface. Its texts belong to the views. */
typedef struct gpuhal_probe_change {
    gpuhal_probe_change_kind kind;
    gpuhal_interface_record entry;
    gpuhal_physical_record physical;
    const char *id;             /* of the present device; "" if it is not listed */
    const char *driver, *older; /* DRIVER: the version now, and in the baseline; "": unknown */
} gpuhal_probe_change;

typedef struct gpuhal_probe_comparison {
    const gpuhal_view *before, *after; /* `after` belongs to an opened gpuhal object */
    gpuhal_probe_change *changes;      /* malloc'ed, by kind; changes of one physical device are adjacent */
    uint32_t count;
    bool counts_all;        /* `before` was never accepted: interfaces that were gone then count as present */
    bool first;             /* there was no baseline */
    bool accepted;          /* the present machine is the baseline from now on */
    uint64_t baseline_time; /* when the baseline was made, seconds since 1970; 0: unknown */
} gpuhal_probe_comparison;

/* Prints the differences for people. */
void gpuhal_probe_diff_print(const gpuhal_probe_comparison *own, const gpuhal_probe_screen *screen);
/* Prints the document gpuhal.diff/1. Returns false without memory. */
bool gpuhal_probe_diff_json(const gpuhal_probe_comparison *comparison, FILE *out);

/* Returns the reason why the devices of a backend are not compared, "failed", for each place from 0 on; false past the
 * last. */
bool gpuhal_probe_diff_left_out(const gpuhal_probe_comparison *comparison, uint32_t index, const char **out_backend,
                                const char **out_why);

#endif
