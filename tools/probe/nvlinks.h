/* nvlinks.h: how many links to other GPUs a GPU should have. */
#ifndef PROBE_NVLINKS_H
#define PROBE_NVLINKS_H

#include "machine.h"

/* Sets `links` of each device: how many are up on the GPU of its name that has most. Cards may be bridged with a part
 * of their links, and alike; one that has none is not bridged. Comes after the values. */
void gpuhal_probe_nvlinks_read(gpuhal_probe_machine *machine);

#endif
