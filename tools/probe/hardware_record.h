/* hardware_record.h: what devices and the record of the machine add to what the kernel knows of hardware, whether a
 * device stands for it or not. */
#ifndef PROBE_HARDWARE_RECORD_H
#define PROBE_HARDWARE_RECORD_H

#include "machine.h"

/* "gpu", as devices have it; "" where it is not certain, as of a card that may be a part of the processor. */
const char *gpuhal_probe_hardware_type(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware);
/* The UUID of the whole, not of a partition; "" where none is recorded. */
const char *gpuhal_probe_hardware_uuid(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware);

#endif
