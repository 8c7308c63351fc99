/* forget.h: ends the rows of GPUs that were taken out on purpose: they are in the record, and not on the bus. */
#ifndef PROBE_FORGET_H
#define PROBE_FORGET_H

#include "machine.h"

/* Returns whether the value of --forget means a GPU, not a plugin or everything. */
bool gpuhal_probe_is_for_hardware(const char *value);
/* Ends the row of the one GPU that the selector means, and names it on `out`. Runs the plugins that a listing would
 * run. Prints a sentence on standard error, and returns NOT_FOUND if the selector means no GPU that is gone, USAGE if
 * it means a present device or several GPUs. */
gpuhal_probe_exit gpuhal_probe_forget_hardware(const gpuhal_probe_options *options, const char *selector, FILE *out);
/* Ends the rows of all GPUs that are gone. Returns the library's status. */
gpuhal_status gpuhal_probe_forget_gone(const gpuhal_probe_machine *machine);

#endif
