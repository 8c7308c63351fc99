/* cuda/link.c: finds the connection between two devices through NVML: NVLink if links are up, otherwise the point where
 * their PCI Express paths join.
 */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

typedef struct request {
    const gpuhal_cuda_entry *from, *to;
    nvmlReturn_t code;     /* the result of finding the two devices in NVML */
    gpuhal_link_kind kind; /* 0 if unknown */
    uint64_t generation, count, bandwidth;
} request;

/* ---- NVLink */

static bool is_up(nvmlDevice_t device, unsigned int link)
{
    nvmlEnableState_t state = NVML_FEATURE_DISABLED;
    return gpuhal_cuda_nvml.nvmlDeviceGetNvLinkState(device, link, &state) == NVML_SUCCESS &&
           state == NVML_FEATURE_ENABLED;
}

/* Drivers that do not have this function are older than NVSwitch. */
static nvmlIntNvLinkDeviceType_t far_end(nvmlDevice_t device, unsigned int link)
{
    nvmlIntNvLinkDeviceType_t type = NVML_NVLINK_DEVICE_TYPE_GPU;
    if (gpuhal_cuda_nvml.nvmlDeviceGetNvLinkRemoteDeviceType) {
        (void)gpuhal_cuda_nvml.nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &type);
    }
    return type;
}

static bool leads_to(nvmlDevice_t device, unsigned int link, const gpuhal_cuda_entry *to)
{
    nvmlPciInfo_t pci = {0};
    char address[sizeof to->pci];
    if (gpuhal_cuda_nvml.nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &pci) != NVML_SUCCESS) {
        return false;
    }
    snprintf(address, sizeof address, "%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
    return strcmp(address, to->pci) == 0;
}

/* Returns the speed of one link in one direction; NVML reports MB/s. */
static uint64_t link_speed(nvmlDevice_t device, unsigned int link)
{
    nvmlFieldValue_t field = {.fieldId = NVML_FI_DEV_NVLINK_GET_SPEED, .scopeId = link};
    if (!gpuhal_cuda_nvml.nvmlDeviceGetFieldValues ||
        gpuhal_cuda_nvml.nvmlDeviceGetFieldValues(device, 1, &field) != NVML_SUCCESS ||
        field.nvmlReturn != NVML_SUCCESS) {
        return 0;
    }
    const uint64_t speed =
        field.valueType == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG ? field.value.ullVal : field.value.uiVal;
    return speed * 1000000;
}

static bool has_switch(nvmlDevice_t device)
{
    bool found = false;
    for (unsigned int link = 0; link < GPUHAL_NVML_LINKS_MAX && !found; link++) {
        found = is_up(device, link) && far_end(device, link) == NVML_NVLINK_DEVICE_TYPE_SWITCH;
    }
    return found;
}

/* Counts the links that end at the other device. If both devices have links to switches, counts these links, because
 * every switch is connected to every device.
 */
static void find_nvlink(request *own, nvmlDevice_t from, nvmlDevice_t to)
{
    const gpuhal_cuda_nvml_functions *api = &gpuhal_cuda_nvml;
    if (!api->nvmlDeviceGetNvLinkState || !api->nvmlDeviceGetNvLinkRemotePciInfo_v2 ||
        !api->nvmlDeviceGetNvLinkVersion) {
        return;
    }
    const bool switched = has_switch(from) && has_switch(to);
    for (unsigned int link = 0; link < GPUHAL_NVML_LINKS_MAX; link++) {
        const bool ours = is_up(from, link) && (switched ? far_end(from, link) == NVML_NVLINK_DEVICE_TYPE_SWITCH
                                                         : leads_to(from, link, own->to));
        unsigned int version = 0;
        if (ours) {
            own->kind = switched ? GPUHAL_LINK_NVLINK_SWITCH : GPUHAL_LINK_NVLINK;
            own->count++;
            own->bandwidth += link_speed(from, link);
        }
        if (ours && api->nvmlDeviceGetNvLinkVersion(from, link, &version) == NVML_SUCCESS) {
            own->generation = version;
        }
    }
}

/* ---- PCI Express */

/* Returns the device's maximum, because idle links slow down. */
static bool pcie_most(nvmlDevice_t device, unsigned int *out_generation, unsigned int *out_lanes)
{
    const gpuhal_cuda_nvml_functions *api = &gpuhal_cuda_nvml;
    return api->nvmlDeviceGetMaxPcieLinkGeneration && api->nvmlDeviceGetMaxPcieLinkWidth &&
           api->nvmlDeviceGetMaxPcieLinkGeneration(device, out_generation) == NVML_SUCCESS &&
           api->nvmlDeviceGetMaxPcieLinkWidth(device, out_lanes) == NVML_SUCCESS;
}

static unsigned int smaller(unsigned int one, unsigned int other)
{
    return one < other ? one : other;
}

static gpuhal_link_kind kind_of_level(nvmlGpuTopologyLevel_t level)
{
    switch (level) {
    case NVML_TOPOLOGY_INTERNAL:
        return GPUHAL_LINK_SAME_BOARD;
    case NVML_TOPOLOGY_SINGLE:
    case NVML_TOPOLOGY_MULTIPLE:
        return GPUHAL_LINK_PCIE_SWITCH;
    case NVML_TOPOLOGY_HOSTBRIDGE:
        return GPUHAL_LINK_PCIE_HOST_BRIDGE;
    case NVML_TOPOLOGY_NODE:
        return GPUHAL_LINK_NUMA_NODE;
    case NVML_TOPOLOGY_SYSTEM:
        return GPUHAL_LINK_SYSTEM;
    default:
        return 0;
    }
}

static void find_pcie(request *own, nvmlDevice_t from, nvmlDevice_t to)
{
    nvmlGpuTopologyLevel_t level = UINT32_MAX;
    if (!gpuhal_cuda_nvml.nvmlDeviceGetTopologyCommonAncestor ||
        gpuhal_cuda_nvml.nvmlDeviceGetTopologyCommonAncestor(from, to, &level) != NVML_SUCCESS) {
        return;
    }
    own->kind = kind_of_level(level);
    unsigned int generations[2] = {0}, lanes[2] = {0};
    if (own->kind != 0 && pcie_most(from, &generations[0], &lanes[0]) && pcie_most(to, &generations[1], &lanes[1])) {
        own->generation = smaller(generations[0], generations[1]);
        own->count = smaller(lanes[0], lanes[1]);
        own->bandwidth = gpuhal_cuda_pcie_speed(own->generation, own->count);
    }
}

/* ---- reporting */

static nvmlReturn_t find_connection(void *argument)
{
    request *own = argument;
    nvmlDevice_t from = NULL, to = NULL, ignored = NULL;
    own->code = gpuhal_cuda_nvml_find(own->from, &ignored, &from);
    own->code = own->code == NVML_SUCCESS ? gpuhal_cuda_nvml_find(own->to, &ignored, &to) : own->code;
    if (own->code != NVML_SUCCESS) {
        return own->code;
    }
    find_nvlink(own, from, to);
    if (own->kind == 0) {
        find_pcie(own, from, to);
    }
    return NVML_SUCCESS;
}

static void list(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value,
                 const gpuhal_stream_why *why)
{
    if (why->reason != 0) {
        host->missing(host, sink, key, why->reason, why->text);
    } else if (value == 0) {
        host->missing(host, sink, key, GPUHAL_MISSING_NOT_SUPPORTED, "NVML does not report it");
    } else {
        host->u64(host, sink, key, value);
    }
}

void gpuhal_cuda_list_connection(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_cuda_entry *from,
                                 const gpuhal_cuda_entry *to)
{
    request own = {.from = from, .to = to};
    gpuhal_stream_why why = gpuhal_cuda_nvml_run(find_connection, &own);
    if (why.reason == 0) {
        why = gpuhal_cuda_nvml_why(own.code);
    }
    list(host, sink, GPUHAL_LINK_KIND, own.kind, &why);
    list(host, sink, GPUHAL_LINK_GENERATION, own.generation, &why);
    list(host, sink, GPUHAL_LINK_COUNT, own.count, &why);
    list(host, sink, GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND, own.bandwidth, &why);
}
