/* absence.h: why a selector matches nothing: the hardware that it means is there and cannot be used, or is gone. */
#ifndef PROBE_ABSENCE_H
#define PROBE_ABSENCE_H

#include "machine.h"

/* A number that has come to the processor may be that of a GPU that is gone: PROBE_GO_ON, or an exit code after a
 * sentence. */
gpuhal_probe_exit gpuhal_probe_judge_numbers(const gpuhal_probe_options *options, const gpuhal_probe_machine *machine);
/* The library did not open: says why, and returns the exit code. Its last error is that of opening. */
gpuhal_probe_exit gpuhal_probe_judge_failure(const gpuhal_probe_options *options, gpuhal_status status);

#endif
