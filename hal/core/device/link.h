/* device/link.h: facts about the link from one device to another, and where devices are in the machine.
 *
 * Each device has one gpuhal_link for every visible device; links to new devices are added in further rows, so that
 * links never move. Plugin and system are asked once, on first use, and the result never changes. transfer/peer.c and
 * transfer/link_verify.c write the results of moving bytes; until then the registry's result for the two with their
 * current drivers is used.
 */
#ifndef GPUHAL_DEVICE_LINK_H
#define GPUHAL_DEVICE_LINK_H

#include "device/device.h"

#include <gpuhal/transfer.h>

typedef struct gpuhal_link {
    _Atomic(gpuhal_facts *) facts; /* NULL: not asked yet */

    _Atomic uint32_t peer; /* gpuhal_peer_state of transfer/peer.h */
    uint32_t enabled;      /* accesses that were enabled; written before `peer` */
    _Atomic(char *) why_broken; /* why the link failed */

    _Atomic uint32_t tried;    /* by gpuhal_link_verify(): the following are set */
    _Atomic uint32_t verified; /* the bytes arrived unchanged */
    _Atomic uint64_t path, bytes_per_second, latency_ns; /* 0: not measured */
    _Atomic uint64_t tried_seconds; /* since 1970: of the measurement, or of a copy that failed */
    _Atomic uint32_t unwritten;     /* not yet in the registry; device/fault_log.c */
    _Atomic uint32_t refresh;        /* the cached result is not used any more: a new measurement was requested */

    gpuhal_counter traffic[GPUHAL_PATH_STAGED + 1]; /* by the path of the copies; transfer/account.h */
} gpuhal_link;

/* Row n holds the links to the 2^n devices from position 2^n - 1 on. Returns NULL for a position that was never
 * published. */
static inline gpuhal_link *gpuhal_link_to(const gpuhal_device *from, uint32_t position)
{
    uint32_t row = 31u - (uint32_t)__builtin_clz(position + 1);
    gpuhal_link *links = atomic_load_explicit(&from->links[row], memory_order_acquire);
    return links ? &links[position + 1 - (UINT32_C(1) << row)] : NULL;
}
/* Requires both devices to be published. */
static inline gpuhal_link *gpuhal_link_between(const gpuhal_device *from, const gpuhal_device *to)
{
    return gpuhal_link_to(from, to->position);
}

/* Gives the device links to the first `count` devices, before they are published. HOST_MEMORY with its detail. */
gpuhal_status gpuhal_links_grow(gpuhal_device *device, uint32_t count);
/* Returns INVALID_ARGUMENT with its detail unless they are two devices of one gpuhal object. */
gpuhal_status gpuhal_link_check(const char *call, const gpuhal_device *from, const gpuhal_device *to);

/* Finds the device's NUMA node, by its own fact or its place in the machine; false when it is unknown. */
bool gpuhal_device_node(const gpuhal_device *device, uint32_t *out_node);

/* ---- link_pci.c: the system's tree of devices. `root` is GPUHAL_SYSTEM_ROOT; addresses are canonical:
 * "0000:c1:00.0". */

/* Returns the kind of link by where the paths of the devices join; 0 when the tree does not say. */
gpuhal_link_kind gpuhal_pci_link_kind(const char *root, const char *one, const char *other);
/* Finds the node of a device, by the text of its file `numa_node` or by its address; a machine with a single node has
 * number 0. Returns false when the tree does not say. */
bool gpuhal_pci_node_of(const char *root, const char *text, uint32_t *out_node);
bool gpuhal_pci_node(const char *root, const char *address, uint32_t *out_node);

#endif
