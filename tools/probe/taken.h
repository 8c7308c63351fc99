/* taken.h: GPUs that only one process may compute on, and whether one does. */
#ifndef PROBE_TAKEN_H
#define PROBE_TAKEN_H

#include "machine.h"

/* Asks the drivers of GPUs whose compute mode is exclusive for their processes, 200 ms each at most; those that cannot
 * be asked are not taken. */
void gpuhal_probe_taken_read(gpuhal_probe_machine *machine);

#endif
