/* transfer/staged.h: copies between two devices through a bounded ring of host memory. */
#ifndef GPUHAL_TRANSFER_STAGED_H
#define GPUHAL_TRANSFER_STAGED_H

#include "device/device.h"

/* One thread fills chunks of the source's pool, the caller empties them into the destination: both halves run at once. Ranges were
 * checked, both devices are open and not the same. */
gpuhal_status gpuhal_staged_copy(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset, gpuhal_device *from_device,
                                 const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);

#endif
