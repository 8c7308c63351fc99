/* hardware_record.h: what devices and the record of the machine add to what the kernel knows of hardware, whether a
 * device stands for it or not, and which hardware a selector means that matches no device. */
#ifndef PROBE_HARDWARE_RECORD_H
#define PROBE_HARDWARE_RECORD_H

#include "machine.h"
#include "uuid.h"

/* "gpu", as devices have it; "" where it is not certain, as of a card that may be a part of the processor. */
const char *gpuhal_probe_hardware_type(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware);
/* The UUID of the whole, not of a partition; "" where none is recorded. */
const char *gpuhal_probe_hardware_uuid(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                       char space[PROBE_UUID_BYTES]);

/* As lspci writes it, without the domain 0000. */
const char *gpuhal_probe_short_address(const char *address);
/* "0000:c1:00.0" by "c1:00.0", "0000:C1:00.0" and "pci=c1:00.0", too. */
bool gpuhal_probe_hardware_is_at(const gpuhal_hardware_info *hardware, const char *selector);
/* Whether a selector that matches no device means this hardware, for which none stands: by its address, as a "gpu",
 * by the UUID that it had or the beginning of one, or by an id or a number that there would be if all were listed that
 * the record has. */
bool gpuhal_probe_hardware_is_meant(const gpuhal_probe_machine *machine, const gpuhal_hardware_info *hardware,
                                    const char *selector);
/* Whether a number, or the last of a range, is that of a GPU that the record has and that is broken or gone: there the
 * library counts on with the processor. */
bool gpuhal_probe_rows_are_missing(const gpuhal_probe_machine *machine, const char *selector);

#endif
