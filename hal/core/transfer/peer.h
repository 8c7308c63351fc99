/* transfer/peer.h: direct copies between two devices of one backend, once they are proven to work.
 *
 * A driver's claim that it supports peer access is not trusted. The first copy between two devices enables access and
 * sends patterns over the link. The link becomes USABLE only if the destination's own slots then read the patterns back
 * correctly. The result is kept for the lifetime of the gpuhal object. While one thread tests the link, other threads
 * use the paths that they would use without it.
 */
#ifndef GPUHAL_TRANSFER_PEER_H
#define GPUHAL_TRANSFER_PEER_H

#include "device/link.h"
#include "memory/buffer.h"

typedef enum gpuhal_peer_state {
    GPUHAL_PEER_UNKNOWN = 0, /* not tried yet, or out of memory when it was tried */
    GPUHAL_PEER_TRYING,      /* a thread is testing the link */
    GPUHAL_PEER_NONE,        /* the plugin or the driver offers no link between the two */
    GPUHAL_PEER_BROKEN,      /* a link is offered, but bytes arrived wrong or not at all */
    GPUHAL_PEER_RECALLED,    /* recorded as broken with these drivers; the application has not requested another test */
    GPUHAL_PEER_USABLE
} gpuhal_peer_state;

static inline gpuhal_peer_state gpuhal_peer_state_of(const gpuhal_device *to_device, const gpuhal_device *from_device)
{
    return (gpuhal_peer_state)atomic_load_explicit(&gpuhal_link_between(from_device, to_device)->peer,
                                                   memory_order_acquire);
}

/* Returns whether copies may use the link now, by peer_copy with a queue of either device or without one. */
static inline bool gpuhal_peer_usable(const gpuhal_device *to_device, const gpuhal_device *from_device)
{
    return gpuhal_peer_state_of(to_device, from_device) == GPUHAL_PEER_USABLE;
}

/* Returns whether the link applies to these buffers: both are allocated in their device's own memory and not shared.
 * Host memory does not need a link, and access to other memory needs other means. */
bool gpuhal_peer_suits(const gpuhal_buffer *to, const gpuhal_buffer *from);
/* Determines the state unless that was done. Both devices must be open and usable. Blocks. */
void gpuhal_peer_find_out(gpuhal_device *to_device, gpuhal_device *from_device);
/* Discards the recorded result for the link: the next copy tests it again. */
void gpuhal_peer_forget(gpuhal_device *to_device, gpuhal_device *from_device);
/* Marks a usable link as broken because it delivered wrong bytes after all. `how` is a readable sentence. */
void gpuhal_peer_break(gpuhal_device *to_device, gpuhal_device *from_device, const char *how);
/* Copies over a usable link. Ranges must be checked and aligned for both devices. Blocks until the bytes have arrived.
 * Returns NOT_SUPPORTED without a detail for memory that the plugin does not accept. */
gpuhal_status gpuhal_peer_copy_blocking(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset,
                                        gpuhal_device *from_device, const gpuhal_memory *from, uint64_t from_offset,
                                        uint64_t bytes);
/* Disables all access that was enabled, before the devices are closed. No copy may be in flight. */
void gpuhal_peers_destroy(gpuhal *gpu);

#endif
