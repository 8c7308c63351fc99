/** gpuhal/link.h: what lies between two devices, in each direction: how they are connected, whether the driver says that
 *  one reaches the other's memory, whether that is true, and how fast bytes go.
 *
 *  Links are facts with the keys GPUHAL_LINK_…. What the hardware is like comes from the plugin where both devices are of one
 *  backend, else from their PCI addresses and the system's tree of devices. What a driver advertises is not believed: gpuhal_copy()
 *  goes over a link only after a pattern that was written through it was read back right. A link that fails is broken for this
 *  gpuhal object: it is not used, a warning goes to the log, and copies are staged. The registry remembers that, and figures, for the two
 *  devices with these drivers: later programs do not use the link either, until gpuhal_link_verify() tries it again.
 */
#ifndef GPUHAL_LINK_H
#define GPUHAL_LINK_H

#include <gpuhal/device.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A fact about the link. The first question about a pair of devices of one backend loads their plugin when it was not.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for one device twice, devices of two gpuhal objects, and a key that is of no link);
 *  NOT_SUPPORTED when the value is missing; FORKED, or why the backend could not be started
 *  Owner: nothing. Threads: any. Blocks: yes, at the first question about a pair. */
GPUHAL_API gpuhal_status gpuhal_link_u64(gpuhal_device *from, gpuhal_device *to, gpuhal_key key, uint64_t *out_value);

/** A fact about the link that is a text, such as GPUHAL_LINK_NAME. As gpuhal_link_u64() else.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also when the fact is a number); NOT_SUPPORTED when the value is missing; FORKED, or why the backend
 *  could not be started
 *  Owner: the gpuhal object. Threads: any. Blocks: yes, at the first question about a pair. */
GPUHAL_API gpuhal_status gpuhal_link_text(gpuhal_device *from, gpuhal_device *to, gpuhal_key key, const char **out_text);

/** Why a fact about the link has no value. @p out_why, a sentence or "", may be NULL.
 *  @return the reason; 0 when there is a value
 *  Owner: the gpuhal object. Threads: any. Blocks: yes, at the first question about a pair. */
GPUHAL_API gpuhal_missing gpuhal_link_missing(gpuhal_device *from, gpuhal_device *to, gpuhal_key key, const char **out_why);

/** Moves patterns from one device to the other, at odd offsets, on the path that gpuhal_copy() takes between memory of the two; reads
 *  them back from the destination by itself, and compares. Then measures, whatever the registry has. Sets GPUHAL_LINK_VERIFIED, and when all is well
 *  GPUHAL_LINK_PATH and the measured facts. Opens both devices. Uses up to 32 MiB of memory on each.
 *  @return GPUHAL_OK when every byte was right. DRIVER when bytes that were to go over a link between the two arrived wrong: the link
 *  is broken, GPUHAL_LINK_VERIFIED is 0, and the copies that were measured instead take another path. BUSY while another thread tries the same
 *  link. DEVICE_LOST when bytes arrived wrong on any other path. INVALID_ARGUMENT as for gpuhal_link_u64(); what gpuhal_device_open() and
 *  gpuhal_copy() return
 *  Owner: nothing stays. Threads: any; others' work on the two devices blurs what is measured. Blocks: yes. */
GPUHAL_API gpuhal_status gpuhal_link_verify(gpuhal_device *from, gpuhal_device *to);

/** The word for a kind of link, as in JSON: "nvlink_switch".
 *  @return never NULL; "vendor" for a number of a vendor's own, "unknown" for one that is none
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_link_kind_name(gpuhal_link_kind kind);

#ifdef __cplusplus
}
#endif
#endif
