/* taken.h: GPUs that only one process may compute on, and whether one does. */
#ifndef PROBE_TAKEN_H
#define PROBE_TAKEN_H

#include "machine.h"

/* Asks the drivers of GPUs whose compute mode is exclusive for their processes, for 400 ms in all at most, and not
 * beyond the time of --timeout; those that do not answer are not taken. */
void gpuhal_probe_taken_read(gpuhal_probe_machine *machine);

#endif
