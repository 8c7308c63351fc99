/* rocm/link.c: finds the connection between two devices. HIP reports whether the connection is xGMI. AMD SMI or ROCm
 * SMI reports the speed of xGMI. The core determines where two PCI Express paths join.
 */
#include "smi.h"

#include <stdio.h>
#include <string.h>

#define LINK_XGMI 4u /* HSA_AMD_LINK_INFO_TYPE_XGMI */

typedef struct facts {
    gpuhal_link_kind kind; /* 0 if unknown */
    uint64_t generation, count, bandwidth;
} facts;

/* ---- xGMI */

typedef struct request {
    const gpuhal_rocm_entry *from, *to;
    uint32_t code;
    uint64_t most; /* MB/s, in one direction */
} request;

static uint32_t ask(void *argument)
{
    request *own = argument;
    gpuhal_rocm_smi_device from = {0}, to = {0};
    uint64_t least = 0;
    const bool amd = gpuhal_rocm_smi_which() == GPUHAL_ROCM_SMI_AMD;
    own->code = gpuhal_rocm_smi_find(own->from, &from);
    own->code = own->code == 0 ? gpuhal_rocm_smi_find(own->to, &to) : own->code;
    if (own->code != 0) {
        return own->code;
    }
    own->code = GPUHAL_ROCM_SMI_NO_FUNCTION;
    if (amd && gpuhal_rocm_amd_smi.amdsmi_get_minmax_bandwidth_between_processors) {
        own->code = gpuhal_rocm_amd_smi.amdsmi_get_minmax_bandwidth_between_processors(from.processor, to.processor,
                                                                                       &least, &own->most);
    } else if (!amd && gpuhal_rocm_rocm_smi.rsmi_minmax_bandwidth_get) {
        own->code = gpuhal_rocm_rocm_smi.rsmi_minmax_bandwidth_get(from.index, to.index, &least, &own->most);
    }
    return 0;
}

static bool find_xgmi(const gpuhal_rocm_entry *from, const gpuhal_rocm_entry *to, facts *out)
{
    uint32_t type = 0, hops = 0;
    if (!gpuhal_rocm_api.hipExtGetLinkTypeAndHopCount) {
        return false;
    }
    const hipError_t code = gpuhal_rocm_api.hipExtGetLinkTypeAndHopCount(from->device, to->device, &type, &hops);
    if (code != hipSuccess) {
        (void)gpuhal_rocm_forget(code);
        return false;
    }
    if (type != LINK_XGMI) {
        return false;
    }
    out->kind = GPUHAL_LINK_XGMI;
    return true;
}

static uint64_t speed_of_xgmi(const gpuhal_rocm_entry *from, const gpuhal_rocm_entry *to)
{
    request own = {.from = from, .to = to};
    const bool known = gpuhal_rocm_smi_run(ask, &own).reason == 0 && own.code == 0 && own.most < UINT32_MAX;
    return known ? own.most * 1000000 : 0;
}

/* ---- PCI Express */

/* Parses "16.0 GT/s PCIe". */
static uint64_t generation_of(const gpuhal_rocm_entry *entry)
{
    static const unsigned speeds[] = {25, 50, 80, 160, 320, 640};
    char text[32];
    unsigned whole = 0, tenth = 0;
    if (!gpuhal_rocm_read_system(entry, "max_link_speed", text, sizeof text) ||
        sscanf(text, "%3u.%1u", &whole, &tenth) != 2) {
        return 0;
    }
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
        if (speeds[i] == whole * 10 + tenth) {
            return i + 1;
        }
    }
    return 0;
}

static uint64_t lanes_of(const gpuhal_rocm_entry *entry)
{
    char text[16];
    unsigned lanes = 0;
    return gpuhal_rocm_read_system(entry, "max_link_width", text, sizeof text) && sscanf(text, "%3u", &lanes) == 1
               ? lanes
               : 0;
}

static uint64_t smaller(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

static void find_pcie(const gpuhal_rocm_entry *from, const gpuhal_rocm_entry *to, facts *out)
{
    if (from->has_address && strcmp(from->pci, to->pci) == 0) {
        out->kind = GPUHAL_LINK_SAME_BOARD; /* partitions of one GPU */
        return;
    }
    out->generation = smaller(generation_of(from), generation_of(to));
    out->count = smaller(lanes_of(from), lanes_of(to));
    out->bandwidth = gpuhal_rocm_pcie_speed(out->generation, out->count);
}

/* ---- reporting */

static void list(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    if (value == 0) {
        host->missing(host, sink, key, GPUHAL_MISSING_NOT_SUPPORTED,
                      "neither HIP, nor the system, nor an SMI library reports it");
    } else {
        host->u64(host, sink, key, value);
    }
}

void gpuhal_rocm_list_connection(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_rocm_entry *from,
                                 const gpuhal_rocm_entry *to)
{
    facts own = {0};
    if (!find_xgmi(from, to, &own)) {
        find_pcie(from, to, &own);
    }
    list(host, sink, GPUHAL_LINK_KIND, own.kind);
    list(host, sink, GPUHAL_LINK_GENERATION, own.generation);
    list(host, sink, GPUHAL_LINK_COUNT, own.count);
    if (own.kind == GPUHAL_LINK_XGMI) { /* read the speed last, so that the other facts are kept if the library hangs */
        own.bandwidth = speed_of_xgmi(from, to);
    }
    list(host, sink, GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND, own.bandwidth);
}
