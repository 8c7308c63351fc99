/* transfer/bytes.h: moving bytes at any offset on one device, whatever the plugin offers.
 *
 * These take ranges that were checked, of devices that are open. Slots that the device lacks are replaced by staging
 * memory and copy; pieces that break the device's alignment are read, changed and written back. All block until the
 * bytes are there.
 */
#ifndef GPUHAL_TRANSFER_BYTES_H
#define GPUHAL_TRANSFER_BYTES_H

#include "device/device.h"

gpuhal_status gpuhal_bytes_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from,
                                 uint64_t bytes);
gpuhal_status gpuhal_bytes_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                uint64_t bytes);

/* Uses the plugin's slot or nothing. NOT_SUPPORTED, without a detail, when it has none for this memory; NOT_READY,
 * likewise, when the range breaks the device's alignment, which shows nothing about the memory. */
gpuhal_status gpuhal_bytes_try_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                     const void *from, uint64_t bytes);
gpuhal_status gpuhal_bytes_try_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                    uint64_t bytes);

/* A copy inside a device that breaks its alignment goes through host memory. */
gpuhal_status gpuhal_bytes_copy_bounced(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                        const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);
gpuhal_status gpuhal_bytes_copy_large(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                      const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);
/* The plugin returned a failure, or the device is lost meanwhile. */
gpuhal_status gpuhal_bytes_copy_failed(gpuhal_device *device, gpuhal_status status, uint64_t bytes);

/* Inline, because nothing shall stand between a small copy and the plugin's own function. */
static inline gpuhal_status gpuhal_bytes_copy(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                              const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    if (__builtin_expect(((to_offset | from_offset | bytes) & device->copy_mask) != 0, 0)) {
        return gpuhal_bytes_copy_bounced(device, to, to_offset, from, from_offset, bytes);
    }
    if (__builtin_expect(bytes > GPUHAL_CALL_SMALL_BYTES, 0)) {
        return gpuhal_bytes_copy_large(device, to, to_offset, from, from_offset, bytes);
    }
    const gpuhal_call call = gpuhal_call_small(device);
    gpuhal_status status = device->ops.copy(device->handle, NULL, to, to_offset, from, from_offset, bytes);
    gpuhal_call_end(call);
    int32_t lost = (int32_t)atomic_load_explicit(&device->lost, memory_order_relaxed);
    return __builtin_expect((status | lost) != 0, 0) ? gpuhal_bytes_copy_failed(device, status, bytes) : GPUHAL_OK;
}

#endif
