/* mig.h: the device files of a part of an NVIDIA GPU (MIG), by what the kernel driver lists of capabilities. */
#ifndef PROBE_MIG_H
#define PROBE_MIG_H

#include <stdbool.h>
#include <stddef.h>

/* Which files a job needs for the one part of the GPU whose node is `node`, "/dev/nvidia0", with commas between them.
 * false where there is another number of parts than one, since the kernel does not say which is which device. */
bool gpuhal_probe_mig_files(const char *node, char *files, size_t bytes);

#endif
