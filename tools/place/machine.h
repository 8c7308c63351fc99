/* machine.h: the devices for placing a model: this machine's devices, or hypothetical devices from the command
 * line. */
#ifndef GPUHAL_TOOL_PLACE_MACHINE_H
#define GPUHAL_TOOL_PLACE_MACHINE_H

#include "options.h"

#include <gpuhal/gpuhal.h>

typedef struct gpuhal_place_machine {
    gpuhal *gpu; /* NULL if all devices are hypothetical */
    uint32_t count;
    gpuhal_placement_device devices[GPUHAL_PLACEMENT_DEVICES_MAX];
    gpuhal_placement_link links[GPUHAL_PLACEMENT_DEVICES_MAX * GPUHAL_PLACEMENT_DEVICES_MAX]; /* rows of `count` */
} gpuhal_place_machine;

/* Returns GPUHAL_TOOL_GO_ON, or an exit code after a message on standard error. */
int gpuhal_place_machine_read(const gpuhal_place_options *options, gpuhal_place_machine *out_machine);
void gpuhal_place_machine_finish(gpuhal_place_machine *machine);

#endif
