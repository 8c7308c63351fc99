/* forget.h: ends the rows of GPUs that were taken out on purpose: the record has them, and the bus has not. */
#ifndef PROBE_FORGET_H
#define PROBE_FORGET_H

#include "machine.h"

/* Whether the value of --forget means a GPU, and no plugin and not everything. */
bool gpuhal_probe_is_for_hardware(const char *value);
/* Ends the row of the one GPU that the selector means, and names it on `out`. Runs the plugins that a listing would. A
 * sentence on standard error, and NOT_FOUND, if nothing that is gone is meant; USAGE if it is there, or if
 * several are meant. */
gpuhal_probe_exit gpuhal_probe_forget_hardware(const gpuhal_probe_options *options, const char *selector, FILE *out);
/* Ends the rows of all that is gone. The library's status. */
gpuhal_status gpuhal_probe_forget_gone(const gpuhal_probe_machine *machine);

#endif
