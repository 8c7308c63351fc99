/* absence.h: why a selector matches nothing: its hardware exists and cannot be used, or is gone. */
#ifndef PROBE_ABSENCE_H
#define PROBE_ABSENCE_H

#include "machine.h"

/* Judges the devices that numbers selected: a number that selects the processor may be that of a GPU that is gone.
 * Returns PROBE_GO_ON, or an exit code after a sentence. */
gpuhal_probe_exit gpuhal_probe_judge_numbers(const gpuhal_probe_options *options, const gpuhal_probe_machine *machine);
/* Prints why the library did not open, and returns the exit code. The last error must be from opening. */
gpuhal_probe_exit gpuhal_probe_judge_failure(const gpuhal_probe_options *options, gpuhal_status status);

#endif
