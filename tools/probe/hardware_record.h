/* hardware_record.h: adds facts from devices and from the machine's record to the kernel's facts about hardware, with
 * or without a device, and finds the hardware that a selector means if it matches no device. */
#ifndef PROBE_HARDWARE_RECORD_H
#define PROBE_HARDWARE_RECORD_H

#include "machine.h"
#include "uuid.h"

/* Returns "gpu", as devices have it; "" if uncertain, as for a card that may be a part of the processor. */
const char *gpuhal_probe_hardware_type(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware);
/* Returns the UUID of the whole GPU, or of the partition if the hardware is one; "" if none is recorded. */
const char *gpuhal_probe_hardware_uuid(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                       char space[PROBE_UUID_BYTES]);

/* Returns the address as lspci writes it, without the domain 0000. */
const char *gpuhal_probe_short_address(const char *address);
/* Compares an address: "c1:00.0", "0000:C1:00.0" and "pci=c1:00.0" mean "0000:c1:00.0", too. */
bool gpuhal_probe_hardware_is_at(const gpuhal_hardware_info *hardware, const char *selector);
/* Returns whether a selector that matches no device means this hardware, which has no device: by its address, as a
 * "gpu", by the UUID that it had or the beginning of one, or by an id or a number that it would have if all recorded
 * GPUs were listed. */
bool gpuhal_probe_hardware_is_meant(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                    const char *selector);
/* Returns whether a number, or the last of a range, belongs to a recorded GPU that is broken or gone: the library gives
 * such a number to the processor. */
bool gpuhal_probe_rows_are_missing(const gpuhal_probe_machine *machine, const char *selector);

#endif
