/** gpuhal/link.h: the link from one device to another: how the devices are connected, whether the driver reports that
 *  one device can access the other device's memory, whether such access was verified, and the measured speed.
 *
 *  Links are facts with the keys GPUHAL_LINK_…. Hardware facts come from the plugin if both devices belong to one
 *  backend, otherwise from their PCI addresses and the system's tree of PCI devices. The library verifies a driver's
 *  claim: gpuhal_copy() uses a link only after a pattern written through it was read back unchanged. If a link fails,
 *  this gpuhal object logs a warning, does not use the link any more, and stages copies. The registry records failures
 *  and measurements for the two devices with their current drivers. Later programs do not use the link either, until
 *  gpuhal_link_verify() tests it again.
 *
 *      uint64_t kind = 0, is_verified = 0;
 *      if (gpuhal_link_u64(device, other, GPUHAL_LINK_KIND, &kind) == GPUHAL_OK)
 *          puts(gpuhal_link_kind_name((gpuhal_link_kind)kind));        // "NVLINK"
 *      if (gpuhal_link_u64(device, other, GPUHAL_LINK_VERIFIED, &is_verified) != GPUHAL_OK)
 *          gpuhal_link_verify(device, other);
 */
#ifndef GPUHAL_LINK_H
#define GPUHAL_LINK_H

#include <gpuhal/device.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns a fact of the link. The first query for two devices of one backend loads their plugin if needed.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also if @p from is @p to, for devices of two gpuhal objects, and for a key that
 *  does not belong to links); NOT_SUPPORTED when the value is missing; FORKED, or why the backend could not be started
 *  Owner: nothing. Threads: any. Blocks: yes, at the first query for a pair. */
GPUHAL_API gpuhal_status gpuhal_link_u64(gpuhal_device *from, gpuhal_device *to, gpuhal_key key, uint64_t *out_value);

/** Returns a string fact of the link, such as GPUHAL_LINK_NAME. Otherwise works like gpuhal_link_u64().
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also if the fact is a number); NOT_SUPPORTED when the value is missing; FORKED,
 *  or why the backend could not be started
 *  Owner: the gpuhal object. Threads: any. Blocks: yes, at the first query for a pair. */
GPUHAL_API gpuhal_status gpuhal_link_text(gpuhal_device *from, gpuhal_device *to, gpuhal_key key,
                                          const char **out_text);

/** Returns why a fact of the link has no value. @p out_why, a sentence or "", may be NULL.
 *  @return the reason; 0 when there is a value
 *  Owner: the gpuhal object. Threads: any. Blocks: yes, at the first query for a pair. */
GPUHAL_API gpuhal_missing gpuhal_link_missing(gpuhal_device *from, gpuhal_device *to, gpuhal_key key,
                                              const char **out_why);

/** Copies patterns from one device to the other, at odd offsets, on the path that gpuhal_copy() takes between them,
 *  reads the patterns back from the destination, and compares them. Then measures the link, even if the registry
 *  already has a measurement. Sets GPUHAL_LINK_VERIFIED, and on success GPUHAL_LINK_PATH and the measured facts. Opens
 *  both devices. Uses up to 32 MiB of memory on each device.
 *  @return GPUHAL_OK if all bytes matched. DRIVER when wrong bytes arrived over a link between the two:
 *  GPUHAL_LINK_VERIFIED is then 0, and the measured copies take another path. BUSY while another thread tests the same
 *  link. DEVICE_LOST when wrong bytes arrived on any other path. INVALID_ARGUMENT as for gpuhal_link_u64(); the errors
 *  of gpuhal_device_open() and gpuhal_copy()
 *  Owner: nothing. Threads: any; other work on the two devices affects the measurement. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_link_verify(gpuhal_device *from, gpuhal_device *to);

/** Returns the JSON name of a link kind, such as "nvlink_switch".
 *  @return never NULL; "vendor" for a vendor's own kind, "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_link_kind_name(gpuhal_link_kind kind);

/** Returns how two PCI devices are connected. The devices need not belong to this library; one may be a network card.
 *  @p one and @p other are addresses such as "0000:c1:00.0".
 *  @return GPUHAL_OK; FORKED; INVALID_ARGUMENT, also for a string that is not an address; NOT_SUPPORTED if the system's
 *  tree of PCI devices does not show the connection
 *  Owner: nothing. Threads: any. Blocks: yes, reading files of the kernel; opens no device. */
GPUHAL_API gpuhal_status gpuhal_link_between_addresses(gpuhal *gpu, const char *one, const char *other,
                                                       gpuhal_link_kind *out_kind);

#ifdef __cplusplus
}
#endif
#endif
