/* transfer/peer.h: direct copies between two devices of one backend, used only after a test of the link has succeeded.
 *
 * A driver's claim of peer access is not trusted. The first copy between two devices enables access and sends patterns
 * over the link. The link becomes USABLE only if the host then reads the patterns correctly from the destination's
 * device. The result is kept for the lifetime of the gpuhal object. While one thread tests the link, other threads'
 * copies do not use it.
 */
#ifndef GPUHAL_TRANSFER_PEER_H
#define GPUHAL_TRANSFER_PEER_H

#include "device/link.h"
#include "memory/buffer.h"

typedef enum gpuhal_peer_state {
    GPUHAL_PEER_UNKNOWN = 0, /* not tested yet, or the test ended without a result, e.g. for lack of memory */
    GPUHAL_PEER_TRYING,      /* a thread is testing the link */
    GPUHAL_PEER_NONE,        /* the plugin or the driver offers no link, or cannot enable it */
    GPUHAL_PEER_BROKEN,      /* a link is offered, but it delivered wrong bytes or no bytes */
    GPUHAL_PEER_RECALLED,    /* recorded as broken with these drivers; not tested again until the application requests
                              * it */
    GPUHAL_PEER_USABLE
} gpuhal_peer_state;

static inline gpuhal_peer_state gpuhal_peer_state_of(const gpuhal_device *to_device, const gpuhal_device *from_device)
{
    return (gpuhal_peer_state)atomic_load_explicit(&gpuhal_link_between(from_device, to_device)->peer,
                                                   memory_order_acquire);
}

/* Returns whether copies may use the link now: peer_copy with a queue of either device, or without a queue. */
static inline bool gpuhal_peer_usable(const gpuhal_device *to_device, const gpuhal_device *from_device)
{
    return gpuhal_peer_state_of(to_device, from_device) == GPUHAL_PEER_USABLE;
}

/* Returns whether the link can be used for these buffers. Each buffer must be allocated in its device's own memory and
 * must not be shared. Host memory does not need a link, and the link does not cover other kinds of memory. */
bool gpuhal_peer_suits(const gpuhal_buffer *to, const gpuhal_buffer *from);
/* Tests the link unless its state is known. Both devices must be open and usable. Blocks. */
void gpuhal_peer_find_out(gpuhal_device *to_device, gpuhal_device *from_device);
/* Discards the registry's result for the link, so that the next copy tests the link unless this gpuhal object has
 * already tested it. */
void gpuhal_peer_forget(gpuhal_device *to_device, gpuhal_device *from_device);
/* Marks a usable link as broken because it delivered wrong bytes. `how` describes the fault in a readable sentence. */
void gpuhal_peer_break(gpuhal_device *to_device, gpuhal_device *from_device, const char *how);
/* Copies over a usable link. The ranges must have been checked, and must be aligned for both devices. Blocks until the
 * bytes have arrived. Returns NOT_SUPPORTED without a detail for memory that the plugin does not accept. */
gpuhal_status gpuhal_peer_copy_blocking(gpuhal_device *to_device, const gpuhal_memory *to, uint64_t to_offset,
                                        gpuhal_device *from_device, const gpuhal_memory *from, uint64_t from_offset,
                                        uint64_t bytes);
/* Disables all enabled peer access between reachable devices. Called before the devices are closed. No copy may be in
 * flight. */
void gpuhal_peers_destroy(gpuhal *gpu);

#endif
