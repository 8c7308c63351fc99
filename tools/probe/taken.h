/* taken.h: finds GPUs that allow only one process to compute, and determines whether another process uses them. */
#ifndef PROBE_TAKEN_H
#define PROBE_TAKEN_H

#include "machine.h"

/* Reads the processes of GPUs in an exclusive compute mode from their drivers, for at most 400 ms in total and within
 * --timeout. A GPU whose driver does not reply counts as not taken. */
void gpuhal_probe_taken_read(gpuhal_probe_machine *machine);

#endif
