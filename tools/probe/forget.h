/* forget.h: ends the rows of GPUs that were removed on purpose. These GPUs are in the record, but no longer on the
 * bus. */
#ifndef PROBE_FORGET_H
#define PROBE_FORGET_H

#include "machine.h"

/* Returns whether the value of --forget refers to a GPU rather than to a plugin or everything. */
bool gpuhal_probe_is_for_hardware(const char *value);
/* Ends the row of the one GPU that the selector refers to, and prints the GPU's name to `out`. Runs the same plugins as
 * a listing. After a message on standard error, returns USAGE if the selector matches a present device, present
 * hardware without a device, or several missing GPUs, and NOT_FOUND if it matches nothing. */
gpuhal_probe_exit gpuhal_probe_forget_hardware(const gpuhal_probe_options *options, const char *selector, FILE *out);
/* Ends the rows of all GPUs that are gone. Returns the library's status. */
gpuhal_status gpuhal_probe_forget_gone(const gpuhal_probe_machine *machine);

#endif
