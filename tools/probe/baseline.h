/* baseline.h: the record that --diff compares with. It is stored in a separate directory below the registry's, so that
 * listing devices does not change it. Until a baseline is accepted, the baseline is the record from before the first
 * --diff, and devices that had already disappeared by then are reported as missing. */
#ifndef PROBE_BASELINE_H
#define PROBE_BASELINE_H

#include <gpuhal/gpuhal.h>
#include <gpuhal/node.h>

#include <stdbool.h>

/* Reads the baseline of the registry in `place`. *out_view is NULL if there is none. *out_accepted is true if --accept
 * created the baseline, or if the machine had no record at that time. *out_time is the creation time. Returns the
 * status of gpuhal_view_read(), with its error detail. */
gpuhal_status gpuhal_probe_baseline_read(const char *place, gpuhal_view **out_view, bool *out_accepted,
                                         uint64_t *out_time);
/* Makes the view the baseline, atomically. Returns false with errno on failure. */
bool gpuhal_probe_baseline_write(const char *place, const gpuhal_view *view, bool accepted);
/* Removes the baseline. Called when the record's numbers change. */
void gpuhal_probe_baseline_remove(const char *place);

#endif
