/* transfer/peer.h: copies between two devices of one backend, without a detour, once that was proven.
 *
 * A driver's statement about peer access is not trusted. The first copy between two devices switches access on and
 * sends patterns over the link. Only if the destination's own slots then read them back right is the link USABLE. The
 * result stays for the life of the gpuhal object. While one thread finds out, others take the paths that they would
 * take without a link.
 */
#ifndef GPUHAL_TRANSFER_PEER_H
#define GPUHAL_TRANSFER_PEER_H

#include "device/link.h"
#include "memory/buffer.h"

typedef enum gpuhal_peer_state {
    GPUHAL_PEER_UNKNOWN = 0, /* not tried yet, or there was no memory for it */
    GPUHAL_PEER_TRYING,      /* a thread is finding out */
    GPUHAL_PEER_NONE,        /* the plugin or the driver offers none between the two */
    GPUHAL_PEER_BROKEN,      /* it is offered, and bytes arrived wrong or not at all */
    GPUHAL_PEER_RECALLED, /* the registry has it as broken, with these drivers, and the application has not asked to try
                             again */
    GPUHAL_PEER_USABLE
} gpuhal_peer_state;

static inline gpuhal_peer_state gpuhal_peer_state_of(const gpuhal_device *to_device, const gpuhal_device *from_device)
{
    return (gpuhal_peer_state)atomic_load_explicit(&gpuhal_link_between(from_device, to_device)->peer,
                                                   memory_order_acquire);
}

/* Returns whether copies may go over the link now: by peer_copy with a queue of either device, or none. */
static inline bool gpuhal_peer_usable(const gpuhal_device *to_device, const gpuhal_device *from_device)
{
    return gpuhal_peer_state_of(to_device, from_device) == GPUHAL_PEER_USABLE;
}

/* Returns whether the link is made for such buffers: both are memory that lies on its device and was allocated there
 * without being shared. Host memory is reached without a link, and access to other memory is a separate matter. */
bool gpuhal_peer_suits(const gpuhal_buffer *to, const gpuhal_buffer *from);
/* Finds the state out, unless that is done. Both devices are open, and may be used. BLOCKS. */
void gpuhal_peer_find_out(gpuhal_device *to_device, gpuhal_device *from_device);
/* Drops the registry's result about the link: the next copy tries it. */
void gpuhal_peer_forget(gpuhal_device *to_device, gpuhal_device *from_device);
/* Marks a usable link as broken from now on: it brought wrong bytes after all. `how` is a sentence for people. */
void gpuhal_peer_break(gpuhal_device *to_device, gpuhal_device *from_device, const char *how);
/* Copies over a usable link; ranges are checked, and keep the alignments of both. NOT_SUPPORTED, without a detail, for
 * memory that the plugin does not take. BLOCKS until the bytes are there. */
gpuhal_status gpuhal_peer_copy_blocking(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset,
                                        gpuhal_device *from_device, const gpuhal_memory *from, uint64_t from_offset,
                                        uint64_t bytes);
/* Switches off all access that was switched on, before the devices are closed. No copy is in flight any more. */
void gpuhal_peers_destroy(gpuhal *gpu);

#endif
