/* hardware_record.h: adds facts of devices and of the machine's record to the kernel's facts of hardware, whether a
 * device stands for it or not, and finds the hardware that a selector means if it matches no device. */
#ifndef PROBE_HARDWARE_RECORD_H
#define PROBE_HARDWARE_RECORD_H

#include "machine.h"
#include "uuid.h"

/* Returns "gpu", as devices have it; "" if it is not certain, as for a card that may be a part of the processor. */
const char *gpuhal_probe_hardware_type(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware);
/* Returns the UUID of the whole, not of a partition; "" if none is recorded. */
const char *gpuhal_probe_hardware_uuid(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                       char space[PROBE_UUID_BYTES]);

/* Returns the address as lspci writes it, without the domain 0000. */
const char *gpuhal_probe_short_address(const char *address);
/* Finds "0000:c1:00.0" by "c1:00.0", "0000:C1:00.0" and "pci=c1:00.0", too. */
bool gpuhal_probe_hardware_is_at(const gpuhal_hardware_info *hardware, const char *selector);
/* Returns whether a selector that matches no device means this hardware, which has no device: by its address, as a
 * "gpu", by the UUID that it had or the beginning of one, or by an id or a number that it would have if all recorded
 * GPUs were listed. */
bool gpuhal_probe_hardware_is_meant(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                    const char *selector);
/* Returns whether a number, or the last of a range, is that of a recorded GPU that is broken or gone: the library gives
 * such a number to the processor. */
bool gpuhal_probe_rows_are_missing(const gpuhal_probe_machine *machine, const char *selector);

#endif
