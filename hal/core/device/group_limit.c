/* device/group_limit.c: reads how much of a device's memory the kernel grants to the control groups of this process. */
#include "device/device.h"

#include "base/facts.h"
#include "registry/limit.h"

enum { UNKNOWN = 0, UNCOUNTED = 1, COUNTED = 2 };

/* Returns whether the kernel may limit device memory in these control groups. The result is cached, because the
 * function has to read a dozen files. */
static bool is_counted(gpuhal_device *device)
{
    uint32_t state = atomic_load(&device->group_state);
    if (state == UNKNOWN) {
        state = gpuhal_limit_counts_devices(device->gpu->settings.system_root) ? COUNTED : UNCOUNTED;
        atomic_store(&device->group_state, state);
    }
    return state == COUNTED;
}

/* Defers cancellation, because a thread that is cancelled while it reads files would leave them open. */
uint64_t gpuhal_device_group_left(gpuhal_device *device, uint64_t *out_limit)
{
    const char *pci = gpuhal_facts_text(&device->listed->facts, GPUHAL_FACT_PCI_ADDRESS);
    uint64_t left = UINT64_MAX;
    *out_limit = UINT64_MAX;
    const int cancel = gpuhal_os_cancel_defer();
    if (pci && *pci && is_counted(device)) {
        left = gpuhal_limit_device_memory(device->gpu->settings.system_root, pci, out_limit);
    }
    gpuhal_os_cancel_restore(cancel);
    return left;
}
