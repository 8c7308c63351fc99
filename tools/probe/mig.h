/* mig.h: the device files of a part of an NVIDIA GPU (MIG), by the kernel driver's list of capabilities. */
#ifndef PROBE_MIG_H
#define PROBE_MIG_H

#include <stdbool.h>
#include <stddef.h>

/* Lists the files that a job needs for the part with these numbers ("3/0") of the GPU whose node is `node`,
 * "/dev/nvidia0", with commas between them. Unknown numbers, "", mean the only part: returns false if there is another
 * number of them. */
bool gpuhal_probe_mig_files(const char *node, const char *numbers, char *files, size_t bytes);

#endif
