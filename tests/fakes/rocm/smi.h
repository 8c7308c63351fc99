/* tests/fakes/rocm/smi.h: the common part of the fakes of both libraries for telemetry: the list of devices, and values
 * that never change.
 *
 * Both list every device of the machine in the order of PCI addresses, without regard to the variables for visible
 * devices, and every part of a partitioned one.
 */
#ifndef FAKE_ROCM_SMI_H
#define FAKE_ROCM_SMI_H

#include "report.h"
#include "script.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct smi_device {
    unsigned physical, partition;
} smi_device;

enum { SMI_DEVICES = 64, SMI_EDGE = 41, SMI_JUNCTION = 52, SMI_MEMORY = 55 };

/* Begins a call: counts it and plays its fault; @p first for the function that initialises. 0: go on. */
unsigned smi_enter(const char *function, bool first, unsigned uninitialized);
/* Counts an initialisation. */
void smi_begin(void);
/* Removes one initialisation, or all. */
void smi_end(bool for_all);
bool smi_is_ready(void);
/* Lists the devices and returns their number. */
unsigned smi_list(smi_device out[SMI_DEVICES]);
/* domain << 32 | partition << 28 | bus << 8 | device << 3 */
uint64_t smi_address(const smi_device *device);
uint64_t smi_total(const smi_device *device);
uint64_t smi_used(const smi_device *device);
/* Bandwidth of the link between two devices, in MB/s; false if the link is not XGMI. */
bool smi_bandwidth(const smi_device *from, const smi_device *to, uint64_t *least, uint64_t *most);
/* In units of 15.3 microjoules. */
uint64_t smi_energy(uint64_t *nanoseconds);

#endif
