/* taken.h: GPUs that allow only one process to compute, and whether one does. */
#ifndef PROBE_TAKEN_H
#define PROBE_TAKEN_H

#include "machine.h"

/* Reads the processes of GPUs with an exclusive compute mode from their drivers, for 400 ms in all at most, and not
 * beyond the time of --timeout; GPUs without an answer are not taken. */
void gpuhal_probe_taken_read(gpuhal_probe_machine *machine);

#endif
