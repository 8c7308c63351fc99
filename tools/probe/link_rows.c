/* link_rows.c: see link_rows.h. */
#include "link_rows.h"

/* A meaning ends with nvidia-smi's abbreviations if nvidia-smi has any. */
const char *const gpuhal_probe_link_words[PROBE_KINDS][2] = {
    {"?", "not known"},
    [GPUHAL_LINK_NVLINK] = {"nvlink", "NVLink, directly (NV)"},
    [GPUHAL_LINK_NVLINK_SWITCH] = {"nvswitch", "NVLink, through NVSwitch (NV)"},
    [GPUHAL_LINK_XGMI] = {"xgmi", "xGMI"},
    [GPUHAL_LINK_SAME_BOARD] = {"board", "PCI Express inside one card, or parts of one device"},
    [GPUHAL_LINK_PCIE_SWITCH] = {"switch", "PCI Express switches, not through the processor (PIX, PXB)"},
    [GPUHAL_LINK_PCIE_HOST_BRIDGE] = {"bridge", "one PCI Express host bridge of the processor (PHB)"},
    [GPUHAL_LINK_NUMA_NODE] = {"node", "several host bridges of one NUMA node (NODE)"},
    [GPUHAL_LINK_SYSTEM] = {"system", "from one NUMA node to another (SYS)"},
    [GPUHAL_LINK_SAME_MEMORY] = {"same", "one device seen twice, or both work in the host's memory"},
    [GPUHAL_LINK_HOST] = {"host", "through the host's memory; no closer connection is known"},
    [PROBE_KIND_DIRECT] = {"direct", "a direct connection of unknown kind, as the driver says"},
    [PROBE_KIND_VENDOR] = {"vendor", "a link of the vendor's own, which --json names"},
};

const gpuhal_probe_link *gpuhal_probe_link_between(const gpuhal_probe_link_rows *own, uint32_t from_row,
                                                   uint32_t to_row)
{
    const gpuhal_probe_machine *machine = own->machine;
    for (uint32_t i = 0; i < machine->link_count; i++) {
        if (machine->links[i].from == own->rows[from_row] && machine->links[i].to == own->rows[to_row]) {
            return &machine->links[i];
        }
    }
    return NULL;
}

static bool is_advertised(const gpuhal_probe_link *link)
{
    const gpuhal_value *advertised = &link->values[PROBE_LINK_ADVERTISED];
    return !advertised->missing && advertised->u64 != 0;
}

/* Returns the kind of a link. If a driver offers direct access, but the kind is unknown or host memory, the kind is
 * DIRECT. */
size_t gpuhal_probe_link_kind(const gpuhal_probe_link *link)
{
    const gpuhal_value *kind = &link->values[PROBE_LINK_KIND];
    if (!kind->missing && kind->u64 >= GPUHAL_VENDOR_FIRST) {
        return PROBE_KIND_VENDOR;
    }
    const size_t known = kind->missing || kind->u64 > GPUHAL_LINK_HOST ? 0 : (size_t)kind->u64;
    return is_advertised(link) && (known == 0 || known == GPUHAL_LINK_HOST) ? PROBE_KIND_DIRECT : known;
}

/* Returns the mark of a link. Verification proves direct access only if the data took the peer path. */
char gpuhal_probe_link_mark(const gpuhal_probe_link *link)
{
    bool proven = link->values[PROBE_LINK_PATH].u64 == GPUHAL_PATH_PEER;
    bool failed = link->result.status || (link->cached && !link->values[PROBE_LINK_VERIFIED].u64);
    return failed ? '!' : is_advertised(link) && (proven || !link->tried) ? '+' : 0;
}
