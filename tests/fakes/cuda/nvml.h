/* tests/fakes/cuda/nvml.h: declarations that the files of the fake NVML share. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include "nvml_api.h"

#include "script.h"

#define PROTOTYPE(name, parameters) __attribute__((visibility("default"))) nvmlReturn_t name parameters;
GPUHAL_NVML_FUNCTIONS(PROTOTYPE, PROTOTYPE)
PROTOTYPE(nvmlShutdown, (void))
#undef PROTOTYPE

struct nvmlDevice_st {
    unsigned physical;
    const fake_plan *plan;
    const fake_mig *mig; /* NULL for the whole GPU */
    char uuid[48];
};

struct nvmlDevice_st *fake_nvml_whole(unsigned physical);
struct nvmlDevice_st *fake_nvml_part(unsigned physical, unsigned number);
void fake_nvml_report_pci(const fake_plan *plan, nvmlPciInfo_t *pci);

/* Begins a call. Counts the call and executes its fault. The lock is not held on return, because the machine does not
 * change. */
nvmlReturn_t fake_nvml_enter(const char *function);
/* As above, for values that MIG devices lack. */
nvmlReturn_t fake_nvml_enter_whole(const char *function, nvmlDevice_t device);
/* Returns the session's number: how often NVML was initialized while it was not in use. Handles of an earlier session
 * are invalid. */
unsigned fake_nvml_session(void);
/* Sets @p out_value to the machine's value of this name, or to @p otherwise if the machine has none. MIG devices lack
 * these values. The value -1 means that the device does not report it. */
nvmlReturn_t fake_nvml_constant(const char *function, nvmlDevice_t device, const char *name, uint64_t otherwise,
                                unsigned *out_value);

#endif
