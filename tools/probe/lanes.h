/* lanes.h: the number of PCI Express lanes that a GPU and the port above it can both use. */
#ifndef PROBE_LANES_H
#define PROBE_LANES_H

typedef struct gpuhal_probe_machine gpuhal_probe_machine;

/* Sets `lanes` of each device if the kernel's files state the lanes of GPU and port; 0 for the others. Opens no
 * device. */
void gpuhal_probe_lanes_read(gpuhal_probe_machine *machine);

#endif
