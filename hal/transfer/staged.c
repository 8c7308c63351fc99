/* transfer/staged.c: see staged.h. The ring brings pieces out of the source; the thread that has one writes it to the
 * destination. */
#include "transfer/staged.h"

#include "transfer/bytes.h"
#include "transfer/ring.h"

typedef struct destination {
    gpuhal_device *device;
    const gpuhal_memory *memory;
    uint64_t offset;
} destination;

static gpuhal_status write_piece(void *user, void *chunk, uint64_t done, uint64_t bytes)
{
    const destination *to = user;
    return gpuhal_bytes_write(to->device, to->memory, to->offset + done, chunk, bytes);
}

/* Two pieces must not share an alignment block of the destination, which is read, changed and written back: pieces
 * begin at multiples of a page there, and one after the other where blocks are larger than that. */
gpuhal_status gpuhal_staged_copy(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset,
                                 gpuhal_device *from_device, const gpuhal_memory *from, uint64_t from_offset,
                                 uint64_t bytes)
{
    destination target = {to_device, to, to_offset};
    return gpuhal_ring_run(&(gpuhal_ring_copy){
        .device = from_device,
        .direction = GPUHAL_STAGING_FROM_DEVICE,
        .memory = from,
        .offset = from_offset,
        .bytes = bytes,
        .phase = to_offset,
        .move = write_piece,
        .user = &target,
        .in_order = to_device->copy_mask >= GPUHAL_RING_PAGE_BYTES,
    });
}
