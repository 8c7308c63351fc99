/* health.h: a device's health according to one reading. docs/telemetry.md has the rules. The library applies the rules
 * for changes between readings (gpuhal/node/sampler.h). */
#ifndef PROBE_HEALTH_H
#define PROBE_HEALTH_H

#include "machine.h"

typedef enum gpuhal_probe_ailment {
    PROBE_RESET_NEEDED, /* the device cannot be used */
    PROBE_PROHIBITED,   /* disabled by an administrator */
    PROBE_TAKEN,        /* an administrator allows only one process to use the device, and another process uses it */
    PROBE_VALUES_LOST,  /* some values are missing because the driver reports a lost device */
    PROBE_UNCORRECTED,
    PROBE_REPAIR_FAILED, /* memory repair failed */
    PROBE_REPAIR_PENDING,
    PROBE_LOGGED,     /* the kernel log contains errors that no program caused */
    PROBE_LINKS_DOWN, /* fewer links to other GPUs than an identical GPU has */
    PROBE_LINK_ERRORS,
    PROBE_FABRIC_WAITS,
    PROBE_FABRIC_FAILED,
    PROBE_NARROW, /* its PCI Express link has fewer lanes than both ends support */
    PROBE_TOO_HOT,
    PROBE_POWER_BRAKE,
    PROBE_SLOWED, /* the hardware reduces the clocks without a known reason */
    PROBE_AILMENTS
} gpuhal_probe_ailment;

/* Returns the ailment's name in JSON and metrics: "reset_needed". */
const char *gpuhal_probe_ailment_name(gpuhal_probe_ailment ailment);
bool gpuhal_probe_has(const gpuhal_probe_device *entry, gpuhal_probe_ailment ailment);
/* Returns PROBLEM if the device cannot be used, NOTE if the state is an administrator's decision, else WARNING. */
gpuhal_hardware_grade gpuhal_probe_ailment_grade(gpuhal_probe_ailment ailment);
/* Returns whether the device has an ailment whose grade is worse than NOTE. */
bool gpuhal_probe_is_ill(const gpuhal_probe_device *entry);
/* Writes a sentence without its subject, and the commands that fix or examine the ailment of the device at this PCI
 * address. */
#define GPUHAL_PROBE_LOST_ANSWERS "# Xid 79: turn power off and on; if it recurs: slot, power, card"
void gpuhal_probe_ailment_words(const gpuhal_probe_device *entry, gpuhal_probe_ailment ailment, const char *address,
                                char why[256], char fix[256]);

#endif
