/* health.h: the health of a device by the values of one reading. docs/telemetry.md has the rules; the rules for changes
 * between readings are the library's (gpuhal/node/sampler.h). */
#ifndef PROBE_HEALTH_H
#define PROBE_HEALTH_H

#include "machine.h"

typedef enum gpuhal_probe_ailment {
    PROBE_RESET_NEEDED, /* the device cannot be used; the others are warnings */
    PROBE_PROHIBITED,   /* by decision of an administrator */
    PROBE_TAKEN,        /* an administrator lets one process alone use it, and one does */
    PROBE_VALUES_LOST,  /* the driver reports for single values that the device is lost */
    PROBE_UNCORRECTED,
    PROBE_REPAIR_FAILED, /* of its memory */
    PROBE_REPAIR_PENDING,
    PROBE_LOGGED, /* errors in the kernel's log that no program caused */
    PROBE_LINKS_DOWN, /* fewer links to other GPUs than an equal one has */
    PROBE_LINK_ERRORS,
    PROBE_FABRIC_WAITS,
    PROBE_FABRIC_FAILED,
    PROBE_NARROW, /* its PCI Express link has fewer lanes than both ends can have */
    PROBE_TOO_HOT,
    PROBE_POWER_BRAKE,
    PROBE_SLOWED, /* by its hardware, without a reason */
    PROBE_AILMENTS
} gpuhal_probe_ailment;

/* "reset_needed", as in JSON and metrics. */
const char *gpuhal_probe_ailment_name(gpuhal_probe_ailment ailment);
bool gpuhal_probe_has(const gpuhal_probe_device *entry, gpuhal_probe_ailment ailment);
/* Returns PROBLEM if the device cannot be used; NOTE if an administrator wants it so; else WARNING. */
gpuhal_hardware_grade gpuhal_probe_ailment_grade(gpuhal_probe_ailment ailment);
/* Returns whether the device has an ailment above a note. */
bool gpuhal_probe_is_ill(const gpuhal_probe_device *entry);
/* Writes a sentence without its subject, and the command that mends or examines the ailment, for the device at this PCI
 * address. */
#define GPUHAL_PROBE_LOST_ANSWERS "# Xid 79: power the machine off and on; if again: slot, power, card"
void gpuhal_probe_ailment_words(const gpuhal_probe_device *entry, gpuhal_probe_ailment ailment, const char *address,
                                char why[256], char fix[256]);

#endif
