/* hardware_record.h: combines the kernel's facts about hardware with facts from devices and from the machine's record.
 * Finds the hardware that an unmatched selector refers to. */
#ifndef PROBE_HARDWARE_RECORD_H
#define PROBE_HARDWARE_RECORD_H

#include "machine.h"
#include "uuid.h"

/* Returns the device type, such as "gpu"; "" if uncertain, for example for a card that may be integrated into the
 * processor. */
const char *gpuhal_probe_hardware_type(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware);
/* Returns the UUID of the whole GPU, or of the partition if the hardware is a partition; "" if none is recorded. */
const char *gpuhal_probe_hardware_uuid(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                       char space[PROBE_UUID_BYTES]);

/* Returns the address in lspci's form, without the domain 0000. */
const char *gpuhal_probe_short_address(const char *address);
/* Returns whether the text is this hardware's address. "c1:00.0", "0000:C1:00.0" and "pci=c1:00.0" also match
 * "0000:c1:00.0". */
bool gpuhal_probe_hardware_is_at(const gpuhal_hardware_info *hardware, const char *selector);
/* Returns whether a selector that matches no device refers to this hardware without a device. The selector may be the
 * address, "gpu", the recorded UUID or its beginning, or an id or number that would exist if all recorded GPUs were
 * listed. Such an id or number refers to all hardware that may have had it. */
bool gpuhal_probe_hardware_is_meant(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                    const char *selector);
/* Returns whether a number, or the last number of a range, belongs to a recorded GPU that has no device and whose grade
 * is PROBLEM, such as a GPU that is broken or recently gone. The library's numbers continue with the processor in place
 * of such GPUs, so the number may select the processor, or no device. */
bool gpuhal_probe_rows_are_missing(const gpuhal_probe_machine *machine, const char *selector);

#endif
