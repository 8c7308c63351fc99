/* mig.h: finds the device files of a MIG partition in the kernel driver's list of capabilities. */
#ifndef PROBE_MIG_H
#define PROBE_MIG_H

#include <stdbool.h>
#include <stddef.h>

/* Lists, separated by commas, the files that a job needs for the partition `numbers` ("3/0") of the GPU with the device
 * file `node` ("/dev/nvidia0"). If `numbers` is "", because it is unknown, the GPU must have exactly one partition.
 * Returns false if it has another number of partitions, or if the kernel driver does not list the partition. */
bool gpuhal_probe_mig_files(const char *node, const char *numbers, char *files, size_t bytes);

#endif
