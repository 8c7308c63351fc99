/* baseline.h: the record that --diff compares with. It lies in a directory of its own below that of the registry, so
 * that listing devices does not change it. Until one is accepted it is the record of before the first --diff, and
 * what was gone by then counts as missing. */
#ifndef PROBE_BASELINE_H
#define PROBE_BASELINE_H

#include <gpuhal/gpuhal.h>
#include <gpuhal/node.h>

#include <stdbool.h>

/* Reads the baseline of the registry in `place`. *out_view NULL: none was made yet. *out_accepted: --accept made it, or
 * it is of a machine without a record. *out_time: when it was made. Returns what gpuhal_view_read() does, with
 * its detail. */
gpuhal_status gpuhal_probe_baseline_read(const char *place, gpuhal_view **out_view, bool *out_accepted,
                                         uint64_t *out_time);
/* Makes the view the baseline, at once or not at all. false with errno. */
bool gpuhal_probe_baseline_write(const char *place, const gpuhal_view *view, bool accepted);
/* Removes it: the numbers of the record are other ones from now on. */
void gpuhal_probe_baseline_remove(const char *place);

#endif
