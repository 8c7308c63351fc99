/* tests/fakes/rocm/smi.h: the part that the fakes of both telemetry libraries share: the beginning of calls, the device
 * list, and the devices' values. Only the used memory and the energy change.
 *
 * Both libraries list every device and every partition of the machine in the order of PCI addresses, regardless of
 * the variables for visible devices. */
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

/* Begins a call. Counts the call and executes its fault. With @p first the call needs no initialization; other calls
 * return @p uninitialized without one. Returns 0 if the call must continue. */
unsigned smi_enter(const char *function, bool first, unsigned uninitialized);
void smi_begin(void);
/* Cancels one initialization, or all initializations. */
void smi_end(bool for_all);
bool smi_is_ready(void);
unsigned smi_list(smi_device out[SMI_DEVICES]);
/* domain << 32 | partition << 28 | bus << 8 | device << 3 */
uint64_t smi_address(const smi_device *device);
uint64_t smi_total(const smi_device *device);
uint64_t smi_used(const smi_device *device);
/* Writes the link's bandwidth in MB/s. Returns false if the link is not XGMI, or if both belong to one GPU. */
bool smi_bandwidth(const smi_device *from, const smi_device *to, uint64_t *least, uint64_t *most);
/* Returns the energy in units of 15.3 microjoules. */
uint64_t smi_energy(uint64_t *nanoseconds);

#endif
