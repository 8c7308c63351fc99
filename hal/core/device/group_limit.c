/* device/group_limit.c: reads how much of a device's memory the kernel grants to the control groups of this process. */
#include "device/device.h"

#include "base/facts.h"
#include "registry/limit.h"

enum { UNKNOWN = 0, UNCOUNTED = 1, COUNTED = 2 };

static const char *pci_of(const gpuhal_device *device)
{
    return gpuhal_facts_text(&device->listed->facts, GPUHAL_FACT_PCI_ADDRESS);
}

/* Returns whether the kernel may limit the device's memory in these control groups. The result is cached, because the
 * function reads a dozen files. A thread that is cancelled meanwhile would leave files open. */
static bool is_counted(gpuhal_device *device)
{
    uint32_t state = atomic_load(&device->group_state);
    if (__builtin_expect(state == UNKNOWN, 0)) {
        const char *pci = pci_of(device);
        const int cancel = gpuhal_os_cancel_defer();
        state = pci && *pci && gpuhal_limit_counts_devices(device->gpu->settings.system_root) ? COUNTED : UNCOUNTED;
        gpuhal_os_cancel_restore(cancel);
        atomic_store(&device->group_state, state);
    }
    return state == COUNTED;
}

uint64_t gpuhal_device_group_left(gpuhal_device *device, uint64_t *out_limit)
{
    *out_limit = UINT64_MAX;
    if (__builtin_expect(!is_counted(device), 1)) {
        return UINT64_MAX;
    }
    const int cancel = gpuhal_os_cancel_defer();
    const uint64_t left = gpuhal_limit_device_memory(device->gpu->settings.system_root, pci_of(device), out_limit);
    gpuhal_os_cancel_restore(cancel);
    return left;
}
