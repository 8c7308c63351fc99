/* device/link.h: what is known about the way from one device to another, and where devices lie in the machine.
 *
 * Each device has one gpuhal_link for every visible device; those to new devices come into further rows, so that links stay where they
 * are. What plugin and system say of it is asked for once, by whoever wants to know first, and never changes; what is found out
 * by moving bytes is written by transfer/peer.c and transfer/link_verify.c, and until then what the registry remembers of the two, with the
 * drivers that they have, stands for it.
 */
#ifndef GPUHAL_DEVICE_LINK_H
#define GPUHAL_DEVICE_LINK_H

#include "device/device.h"

#include <gpuhal/link.h>
#include <gpuhal/transfer.h>

typedef struct gpuhal_link {
    _Atomic(gpuhal_facts *) facts; /* NULL: nobody has asked yet */

    _Atomic uint32_t peer; /* gpuhal_peer_state of transfer/peer.h */
    uint32_t enabled;      /* accesses that were switched on; written before `peer` says what came of it */
    _Atomic(char *) why_broken; /* a sentence where the link is broken */

    _Atomic uint32_t tried;    /* by gpuhal_link_verify(); the following hold something */
    _Atomic uint32_t verified; /* bytes came through right */
    _Atomic uint64_t path, bytes_per_second, latency_ns; /* 0: not measured */
    _Atomic uint64_t tried_seconds; /* since 1970: of this, or of what a copy found out */
    _Atomic uint32_t unwritten;     /* the registry does not have it yet; device/fault_log.c */
    _Atomic uint32_t afresh;        /* what is remembered does not count any more: somebody asked for a trial */

    gpuhal_counter traffic[GPUHAL_PATH_STAGED + 1]; /* by the way that copies took; transfer/account.h */
} gpuhal_link;

/* Row n holds the links to the 2^n devices from position 2^n - 1 on. NULL: so many devices were never published. */
static inline gpuhal_link *gpuhal_link_to(const gpuhal_device *from, uint32_t position)
{
    uint32_t row = 31u - (uint32_t)__builtin_clz(position + 1);
    gpuhal_link *links = atomic_load_explicit(&from->links[row], memory_order_acquire);
    return links ? &links[position + 1 - (UINT32_C(1) << row)] : NULL;
}
/* Of two devices that are published. */
static inline gpuhal_link *gpuhal_link_between(const gpuhal_device *from, const gpuhal_device *to)
{
    return gpuhal_link_to(from, to->position);
}

/* Before devices are published: gives the device links to the first so many. HOST_MEMORY with its detail. */
gpuhal_status gpuhal_links_grow(gpuhal_device *device, uint32_t count);
/* INVALID_ARGUMENT with its detail unless they are two devices of one gpuhal object. */
gpuhal_status gpuhal_link_check(const char *call, const gpuhal_device *from, const gpuhal_device *to);

/* The NUMA node that the device is near to, by its own fact or its place in the machine; false when nobody knows. */
bool gpuhal_device_node(const gpuhal_device *device, uint32_t *out_node);

/* ---- link_pci.c: the system's tree of devices. `root` is "/sys"; addresses are canonical ("0000:c1:00.0"). */

/* Where the ways of two devices meet; 0 when the tree does not tell. */
gpuhal_link_kind gpuhal_pci_link_kind(const char *root, const char *one, const char *other);
/* The node of a device; a machine with a single node has number 0. false when the tree does not tell. */
bool gpuhal_pci_node(const char *root, const char *address, uint32_t *out_node);

#endif
