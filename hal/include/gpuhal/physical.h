/** gpuhal/physical.h: physical devices, their interfaces, and the evidence for that.
 *
 *  One GPU that CUDA, Vulkan and OpenCL list is one physical device with three interfaces. They are matched by PCI
 *  address, else DRM render node, else UUID within one vendor, else LUID; never by name or index. All software devices
 *  on the host's processor are interfaces of the processor. A partition (MIG, AMD) is a device of its own under one
 *  physical device. docs/identity.md states the rule.
 */
#ifndef GPUHAL_PHYSICAL_H
#define GPUHAL_PHYSICAL_H

#include <gpuhal/device.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One physical device. Texts are never NULL; "" means unknown. */
typedef struct gpuhal_physical_info {
    uint32_t size;
    uint32_t number;         /**< As in gpuhal_device_physical(). */
    uint32_t device_count;   /**< Visible devices that are interfaces of it. */
    uint32_t evidence_count;
    const char *pci_address; /**< The first that one of its interfaces states. */
    const char *uuid;        /**< Of the whole, not of a partition; the first that an interface states. */
} gpuhal_physical_info;

/** Why two devices are interfaces of one physical device, or why two that look alike are not. */
typedef struct gpuhal_evidence {
    uint32_t size;
    /** 1: one physical device; 0: two, although they state the same value, which the sentence names. */
    uint32_t same;
    const char *device;     /**< "vulkan:0". */
    /** "cuda:0": the device that it was matched with; a hidden one where only that joins two visible ones. */
    const char *other;
    const char *matched_by; /**< "pci_address", "drm_render_node", "uuid", "luid", "host_processor". */
    const char *value;      /**< The text that both state; "" for "host_processor". */
    const char *sentence;   /**< For people. */
} gpuhal_evidence;

/** Counts the physical devices of the visible devices.
 *  @return the count; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_physical_count(const gpuhal *gpu);

/** Returns physical device number @p index of the list, counted from 0. Set @p out_physical->size first.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts are valid as long as @p gpu. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_physical_get(const gpuhal *gpu, uint32_t index, gpuhal_physical_info *out_physical);

/** Returns interface number @p n of physical device number @p index, counted from 0, in the order of
 *  gpuhal_device_at().
 *  @return the device; NULL past the last
 *  Owner: @p gpu. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_physical_device(const gpuhal *gpu, uint32_t index, uint32_t n);

/** Returns evidence number @p evidence of it, counted from 0. Set @p out_evidence->size first.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also for a size of 0), NOT_FOUND past the last
 *  Owner: texts are valid as long as @p gpu. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_physical_evidence(const gpuhal *gpu, uint32_t index, uint32_t evidence,
                                                  gpuhal_evidence *out_evidence);

#ifdef __cplusplus
}
#endif
#endif
