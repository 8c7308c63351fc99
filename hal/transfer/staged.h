/* transfer/staged.h: copies between two devices of which neither can reach the other's memory. */
#ifndef GPUHAL_TRANSFER_STAGED_H
#define GPUHAL_TRANSFER_STAGED_H

#include "device/device.h"

/* Through chunks of the source's pool, pieces of both halves at once: any offsets. Ranges were checked, both devices
 * are open and not the same. */
gpuhal_status gpuhal_staged_copy(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset,
                                 gpuhal_device *from_device, const gpuhal_memory *from, uint64_t from_offset,
                                 uint64_t bytes);

#endif
