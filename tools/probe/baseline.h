/* baseline.h: the record that --diff compares with. It has a separate directory below that of the registry, so that
 * listing devices does not change it. Until a baseline is accepted it is the record from before the first --diff, and
 * devices that were gone by then count as missing. */
#ifndef PROBE_BASELINE_H
#define PROBE_BASELINE_H

#include <gpuhal/gpuhal.h>
#include <gpuhal/node.h>

#include <stdbool.h>

/* Reads the baseline of the registry in `place`. *out_view is NULL if there is none yet. *out_accepted: --accept made
 * it, or the machine had no record then. *out_time: when it was made. Returns the status of gpuhal_view_read(), with
 * its detail. */
gpuhal_status gpuhal_probe_baseline_read(const char *place, gpuhal_view **out_view, bool *out_accepted,
                                         uint64_t *out_time);
/* Makes the view the baseline, atomically. Returns false with errno. */
bool gpuhal_probe_baseline_write(const char *place, const gpuhal_view *view, bool accepted);
/* Removes the baseline: the record's numbers are different from now on. */
void gpuhal_probe_baseline_remove(const char *place);

#endif
