/* device/identity.c: which devices are faces of one piece of hardware, and which face is the one to use.
 *
 * Two faces are matched by PCI address with partition, else by UUID within one vendor; software devices on the host's processor are
 * faces of the CPU. Never by name or index. The preferred face is the first in the order of backends. */
#include "device/device.h"

#include <string.h>

/* Two facts that are both missing are equal and not known: an identity needs something known. */
static bool equal_texts(const gpuhal_device *a, const gpuhal_device *b, gpuhal_key key, bool *out_known)
{
    const char *one = gpuhal_facts_text(&a->listed->facts, key);
    const char *other = gpuhal_facts_text(&b->listed->facts, key);
    *out_known = one && other;
    return one && other ? strcmp(one, other) == 0 : !one && !other;
}

/* Software devices run on the processor whatever they call themselves. */
static bool is_host_processor(const gpuhal_device *device)
{
    const gpuhal_facts *facts = &device->listed->facts;
    return gpuhal_facts_u64(facts, GPUHAL_FACT_SOFTWARE, 0) == 1 ||
           gpuhal_facts_u64(facts, GPUHAL_FACT_TYPE, 0) == GPUHAL_DEVICE_CPU;
}

/* UUIDs are compared within one vendor only: two vendors have been seen to use the same one. */
static bool same_hardware(const gpuhal_device *a, const gpuhal_device *b)
{
    bool known = false;
    if (is_host_processor(a) || is_host_processor(b)) {
        return is_host_processor(a) && is_host_processor(b);
    }
    bool same = equal_texts(a, b, GPUHAL_FACT_PCI_ADDRESS, &known);
    if (known) {
        return same && equal_texts(a, b, GPUHAL_FACT_PARTITION, &known);
    }
    uint64_t vendor = gpuhal_facts_u64(&a->listed->facts, GPUHAL_FACT_VENDOR_ID, 0);
    same = equal_texts(a, b, GPUHAL_FACT_UUID, &known);
    return known && same && vendor != 0 && vendor == gpuhal_facts_u64(&b->listed->facts, GPUHAL_FACT_VENDOR_ID, 0);
}

void gpuhal_devices_identify(gpuhal *gpu)
{
    uint32_t next = 0;
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        gpuhal_device *device = gpu->devices[d];
        const gpuhal_device *face = NULL;
        for (uint32_t e = 0; e < d && !face; e++) {
            face = same_hardware(gpu->devices[e], device) ? gpu->devices[e] : NULL;
        }
        device->physical = face ? face->physical : next++;
    }
}

/* `cpu` comes last in the order of backends and is yet the face to use: a software device never outranks it. */
static bool outranks(const gpuhal_device *later, const gpuhal_device *earlier)
{
    return strcmp(later->candidate->name, "cpu") == 0 && strcmp(earlier->candidate->name, "cpu") != 0;
}

void gpuhal_devices_prefer(gpuhal *gpu)
{
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        gpuhal_device *device = gpu->devices[d];
        device->preferred = 1;
        for (uint32_t e = 0; e < d; e++) {
            gpuhal_device *earlier = gpu->devices[e];
            if (earlier->physical != device->physical || !earlier->preferred) {
                continue;
            }
            earlier->preferred = outranks(device, earlier) ? 0 : 1;
            device->preferred = !earlier->preferred;
        }
    }
}
