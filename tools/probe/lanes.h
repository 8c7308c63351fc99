/* lanes.h: how many lanes of PCI Express a GPU and the port above it can both use. */
#ifndef PROBE_LANES_H
#define PROBE_LANES_H

typedef struct gpuhal_probe_machine gpuhal_probe_machine;

/* Sets it for each device whose GPU and port state it in the kernel's files; 0 for the others. Opens no device. */
void gpuhal_probe_lanes_read(gpuhal_probe_machine *machine);

#endif
