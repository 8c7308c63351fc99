/* transfer/bytes.h: moving bytes at any offset on one device, whatever the plugin offers.
 *
 * These take ranges that were checked, of devices that are open. Slots that the device lacks are replaced by staging memory and
 * copy; pieces that break the device's alignment are read, changed and written back. All block until the bytes are there.
 */
#ifndef GPUHAL_TRANSFER_BYTES_H
#define GPUHAL_TRANSFER_BYTES_H

#include "device/device.h"

gpuhal_status gpuhal_bytes_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from, uint64_t bytes);
gpuhal_status gpuhal_bytes_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);
gpuhal_status gpuhal_bytes_copy(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const gpuhal_memory *from,
                                uint64_t from_offset, uint64_t bytes);

#endif
