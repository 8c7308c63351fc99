/* absence.h: explains why a selector matches no device: the hardware exists but cannot be used, or the hardware is
 * gone. */
#ifndef PROBE_ABSENCE_H
#define PROBE_ABSENCE_H

#include "machine.h"

/* Checks devices selected by number: a number that selects the processor may belong to a GPU that cannot be used or is
 * gone. Returns PROBE_GO_ON, or an exit code after printing a message. */
gpuhal_probe_exit gpuhal_probe_judge_numbers(const gpuhal_probe_options *options, const gpuhal_probe_machine *machine);
/* Prints why opening the library failed, and returns the exit code. The library's last error must be the error from
 * opening. */
gpuhal_probe_exit gpuhal_probe_judge_failure(const gpuhal_probe_options *options, gpuhal_status status);

#endif
