/* nvlinks.h: the expected number of links from a GPU to other GPUs. */
#ifndef PROBE_NVLINKS_H
#define PROBE_NVLINKS_H

#include "machine.h"

/* Sets `links` of each device to the largest number of active links on a GPU with the same name. Bridged cards may use
 * only some of their links, but all bridged cards use the same number of links. A card without links is not bridged, so
 * its `links` are 0, unless NVLink switches connect the GPUs. Must be called after the values are read. */
void gpuhal_probe_nvlinks_read(gpuhal_probe_machine *machine);

#endif
