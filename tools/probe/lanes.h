/* lanes.h: the number of PCI Express lanes that a GPU and the port above it both support. */
#ifndef PROBE_LANES_H
#define PROBE_LANES_H

typedef struct gpuhal_probe_machine gpuhal_probe_machine;

/* Sets `lanes` of each device, to 0 unless sysfs has the lanes of both the GPU and the port. Opens no device. */
void gpuhal_probe_lanes_read(gpuhal_probe_machine *machine);

#endif
