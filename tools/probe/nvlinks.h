/* nvlinks.h: the number of links to other GPUs that a GPU should have. */
#ifndef PROBE_NVLINKS_H
#define PROBE_NVLINKS_H

#include "machine.h"

/* Sets `links` of each device: the number of links that are up on the GPU of its name with most links. Bridged cards
 * may use a part of their links, but all the same number; a card without links is not bridged. Must be called after the
 * values are read. */
void gpuhal_probe_nvlinks_read(gpuhal_probe_machine *machine);

#endif
