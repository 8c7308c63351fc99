/* transfer/bytes.c: see bytes.h. The common case, an aligned piece and a slot for it, is one call; everything else is
 * for devices that offer less. */
#include "transfer/bytes.h"

#include "core/error.h"
#include "transfer/pageable.h"
#include "transfer/ranges.h"
#include "transfer/slot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How much goes through host memory at once when a copy inside a device breaks its alignment. */
#define BOUNCE_BYTES (256u << 10)

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The slots for whole transfers, but staging where that is quicker. Without staging memory they fall back to the slot,
 * wherever that was found out: moving some bytes twice, after staging failed in the middle, does no harm. */
static gpuhal_status write_quickly(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from,
                                   uint64_t bytes)
{
    if (gpuhal_pageable_is_large(device, bytes) && device->ops.write && gpuhal_pageable_is_quicker(device) &&
        gpuhal_pageable_is_possible(device, GPUHAL_STAGING_TO_DEVICE, to, from, bytes)) {
        gpuhal_status status = gpuhal_pageable_write(device, to, to_offset, from, bytes);
        if (status != GPUHAL_ERROR_OUT_OF_MEMORY && status != GPUHAL_ERROR_HOST_MEMORY) {
            return status;
        }
    }
    return gpuhal_slot_write(device, to, to_offset, from, bytes);
}

static gpuhal_status read_quickly(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                  uint64_t bytes)
{
    if (gpuhal_pageable_is_large(device, bytes) && device->ops.read && gpuhal_pageable_is_quicker(device) &&
        gpuhal_pageable_is_possible(device, GPUHAL_STAGING_FROM_DEVICE, from, to, bytes)) {
        gpuhal_status status = gpuhal_pageable_read(device, to, from, from_offset, bytes);
        if (status != GPUHAL_ERROR_OUT_OF_MEMORY && status != GPUHAL_ERROR_HOST_MEMORY) {
            return status;
        }
    }
    return gpuhal_slot_read(device, to, from, from_offset, bytes);
}

gpuhal_status gpuhal_bytes_try_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                     const void *from, uint64_t bytes)
{
    return gpuhal_is_aligned(device, to_offset, bytes) ? write_quickly(device, to, to_offset, from, bytes)
                                                       : GPUHAL_NOT_READY;
}

gpuhal_status gpuhal_bytes_try_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                    uint64_t bytes)
{
    return gpuhal_is_aligned(device, from_offset, bytes) ? read_quickly(device, to, from, from_offset, bytes)
                                                         : GPUHAL_NOT_READY;
}

static gpuhal_status write_whole_blocks(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                        const void *from, uint64_t bytes)
{
    gpuhal_status status = write_quickly(device, to, to_offset, from, bytes);
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? gpuhal_pageable_write(device, to, to_offset, from, bytes) : status;
}

gpuhal_status gpuhal_bytes_write(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset, const void *from,
                                 uint64_t bytes)
{
    const bool aligned = gpuhal_is_aligned(device, to_offset, bytes);
    if (aligned) {
        gpuhal_status written = write_quickly(device, to, to_offset, from, bytes);
        if (written != GPUHAL_ERROR_NOT_SUPPORTED) {
            return written;
        }
    }
    if (gpuhal_host_writes(to)) {
        memcpy((char *)to->host + to_offset, from, (size_t)bytes);
        return GPUHAL_OK;
    }
    return aligned ? gpuhal_pageable_write(device, to, to_offset, from, bytes)
                   : gpuhal_blocks_write(device, to, to_offset, from, bytes, write_whole_blocks);
}

static gpuhal_status read_whole_blocks(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                       uint64_t bytes)
{
    gpuhal_status status = read_quickly(device, to, from, from_offset, bytes);
    return status == GPUHAL_ERROR_NOT_SUPPORTED ? gpuhal_pageable_read(device, to, from, from_offset, bytes) : status;
}

gpuhal_status gpuhal_bytes_read(gpuhal_device *device, void *to, const gpuhal_memory *from, uint64_t from_offset,
                                uint64_t bytes)
{
    const bool aligned = gpuhal_is_aligned(device, from_offset, bytes);
    if (aligned) {
        gpuhal_status got = read_quickly(device, to, from, from_offset, bytes);
        if (got != GPUHAL_ERROR_NOT_SUPPORTED) {
            return got;
        }
    }
    if (gpuhal_host_writes(from)) {
        memcpy(to, (const char *)from->host + from_offset, (size_t)bytes);
        return GPUHAL_OK;
    }
    return aligned || !device->ops.read ? gpuhal_pageable_read(device, to, from, from_offset, bytes)
                                        : gpuhal_blocks_read(device, to, from, from_offset, bytes, read_whole_blocks);
}

gpuhal_status gpuhal_bytes_copy_bounced(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                        const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    void *bounce = malloc((size_t)smaller(bytes, BOUNCE_BYTES));
    if (!bounce) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = GPUHAL_OK;
    for (uint64_t done = 0; done < bytes && !status;) {
        uint64_t piece = smaller(bytes - done, BOUNCE_BYTES);
        status = gpuhal_bytes_read(device, bounce, from, from_offset + done, piece);
        status = status ? status : gpuhal_bytes_write(device, to, to_offset + done, bounce, piece);
        done += piece;
    }
    free(bounce);
    return status;
}

gpuhal_status gpuhal_bytes_copy_large(gpuhal_device *device, const gpuhal_memory *to, uint64_t to_offset,
                                      const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status = device->ops.copy(device->handle, NULL, to, to_offset, from, from_offset, bytes);
    gpuhal_call_end(call);
    return gpuhal_bytes_copy_failed(device, status, bytes);
}

/* Asked after every copy: the watchdog may have given the device up while the plugin was in the call, and what such a
 * plugin returns in the end counts no more. */
gpuhal_status gpuhal_bytes_copy_failed(gpuhal_device *device, gpuhal_status status, uint64_t bytes)
{
    bool late = atomic_load_explicit(&device->lost, memory_order_relaxed) == GPUHAL_LOST_HUNG;
    status = late ? gpuhal_device_late() : status;
    return status ? gpuhal_device_failed(device, status, "copying %" PRIu64 " bytes", bytes) : GPUHAL_OK;
}
