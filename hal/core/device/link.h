/* device/link.h: facts about the link from one device to another, and about the devices' location in the machine.
 *
 * Each device has one gpuhal_link for every visible device. Links to new devices are added in rows, so that links
 * never move. The plugin and the system are queried on first use. The first result is kept and never changes.
 * transfer/peer.c and transfer/link_verify.c write the results of actual copies. Until then, the registry's result for
 * both devices with their current drivers is used.
 */
#ifndef GPUHAL_DEVICE_LINK_H
#define GPUHAL_DEVICE_LINK_H

#include "device/device.h"

#include <gpuhal/transfer.h>

typedef struct gpuhal_link {
    _Atomic(gpuhal_facts *) facts; /* NULL until queried */

    _Atomic uint32_t peer; /* a gpuhal_peer_state of transfer/peer.h */
    uint32_t enabled;      /* kinds of access that are enabled; written before `peer` */
    _Atomic(char *) why_broken;

    _Atomic uint32_t tried;    /* set after gpuhal_link_verify() has set `verified` and its measurements, or
                                * gpuhal_device_verify() `verified` of the device's link to itself */
    _Atomic uint32_t verified; /* the bytes arrived unchanged */
    _Atomic uint64_t path, bytes_per_second, latency_ns; /* 0 if not measured */
    _Atomic uint64_t tried_seconds; /* time of the measurement or of a failed copy, in seconds since 1970 */
    _Atomic uint32_t unwritten;     /* not yet in the registry; device/fault_log.c */
    _Atomic uint32_t refresh; /* a new measurement was requested, so transfer/peer.c no longer uses the cached result */

    gpuhal_counter traffic[GPUHAL_PATH_STAGED + 1]; /* indexed by the path of the copies; transfer/account.h */
} gpuhal_link;

/* Row n contains the links to the 2^n devices from position 2^n - 1 on. Returns NULL if the row does not exist. */
static inline gpuhal_link *gpuhal_link_to(const gpuhal_device *from, uint32_t position)
{
    uint32_t row = 31u - (uint32_t)__builtin_clz(position + 1);
    gpuhal_link *links = atomic_load_explicit(&from->links[row], memory_order_acquire);
    return links ? &links[position + 1 - (UINT32_C(1) << row)] : NULL;
}
/* Both devices must be published. */
static inline gpuhal_link *gpuhal_link_between(const gpuhal_device *from, const gpuhal_device *to)
{
    return gpuhal_link_to(from, to->position);
}

/* Adds links to the first `count` devices, before these devices are published. Returns HOST_MEMORY with its detail. */
gpuhal_status gpuhal_links_grow(gpuhal_device *device, uint32_t count);
/* Returns INVALID_ARGUMENT with its detail unless `from` and `to` are two devices of one gpuhal object, or FORKED if a
 * parent process opened the object of a device. */
gpuhal_status gpuhal_link_check(const char *call, const gpuhal_device *from, const gpuhal_device *to);

/* Finds the device's NUMA node, from its own fact or its location in the machine. Returns false if unknown. */
bool gpuhal_device_node(const gpuhal_device *device, uint32_t *out_node);

/* ---- link_pci.c: sysfs. `root` is GPUHAL_SYSTEM_ROOT; addresses are canonical: "0000:c1:00.0". */

/* Returns the kind of link, which depends on the junction of the two devices' sysfs paths; 0 if sysfs does not show the
 * kind. */
gpuhal_link_kind gpuhal_pci_link_kind(const char *root, const char *one, const char *other);
/* Find a device's NUMA node, from the contents of its `numa_node` file or from its address. On a machine with one node,
 * the number -1 counts as node 0. Return false if sysfs does not show the node. */
bool gpuhal_pci_node_of(const char *root, const char *text, uint32_t *out_node);
bool gpuhal_pci_node(const char *root, const char *address, uint32_t *out_node);

#endif
