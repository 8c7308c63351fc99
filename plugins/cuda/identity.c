/* cuda/identity.c: finds a device's identity: PCI address, UUID, MIG partition.
 *
 * A MIG device has its own UUID, and the second version of the query returns it. The first version is documented only
 * for whole GPUs. If the two UUIDs differ, the device is a MIG device. A name such as "NVIDIA H100 NVL MIG 3g.47gb"
 * also identifies a MIG device, because the result of the first version for a MIG device is not documented.
 */
#include "../common/text.h"
#include "device.h"

#include <stdio.h>
#include <string.h>

/* Parses "0000:C1:00.0" in the driver's format. NVIDIA's function number is always 0. A GPU without PCI (Tegra) reports
 * zeros. On other machines an all-zero address belongs to the first bridge. */
static void identify_pci(gpuhal_cuda_entry *entry)
{
    char text[sizeof entry->pci] = "";
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    if (gpuhal_cuda_api.cuDeviceGetPCIBusId(text, (int)sizeof text - 1, entry->device) != CUDA_SUCCESS ||
        sscanf(text, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4 || (domain | bus | device) == 0) {
        return;
    }
    snprintf(entry->pci, sizeof entry->pci, "%04x:%02x:%02x.%x", domain, bus, device, function);
}

static bool is_called_mig(CUdevice device)
{
    char name[256] = "";
    return gpuhal_cuda_api.cuDeviceGetName(name, (int)sizeof name - 1, device) == CUDA_SUCCESS &&
           strstr(name, " MIG ") != NULL;
}

static void identify_uuid(gpuhal_cuda_entry *entry)
{
    static const CUuuid none;
    CUuuid whole = none, own = none;
    CUresult code = gpuhal_cuda_api.cuDeviceGetUuid(&whole, entry->device);
    const bool has_whole = code == CUDA_SUCCESS;
    const bool has_own =
        gpuhal_cuda_api.cuDeviceGetUuid_v2 && gpuhal_cuda_api.cuDeviceGetUuid_v2(&own, entry->device) == CUDA_SUCCESS;
    if (!has_own) {
        own = whole;
    }
    /* An all-zero UUID would make all devices look like one device. */
    if ((!has_own && !has_whole) || memcmp(&own, &none, sizeof own) == 0) {
        return;
    }
    const bool differs = has_own && has_whole && memcmp(&own, &whole, sizeof own) != 0;
    entry->is_mig = differs || (has_own && is_called_mig(entry->device));
    gpuhal_plugin_write_uuid(own.bytes, entry->uuid);
    snprintf(entry->nvml_uuid, sizeof entry->nvml_uuid, "%s-%s", entry->is_mig ? "MIG" : "GPU", entry->uuid);
}

void gpuhal_cuda_identify(gpuhal_cuda_entry *entry)
{
    identify_pci(entry);
    identify_uuid(entry);
}

/* The driver's name of a MIG device ends with its profile: "MIG 1g.10gb". */
void gpuhal_cuda_name_part(const gpuhal_cuda_entry *entry, char *name, size_t size)
{
    (void)entry;
    (void)name;
    (void)size;
}

void gpuhal_cuda_list_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_cuda_entry *entry)
{
    if (entry->pci[0] != '\0') {
        host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, entry->pci);
    } else {
        host->missing(host, sink, GPUHAL_FACT_PCI_ADDRESS, GPUHAL_MISSING_FAILED, "the driver gives no address");
    }
    if (entry->uuid[0] != '\0') {
        host->text(host, sink, GPUHAL_FACT_UUID, entry->uuid);
    } else {
        host->missing(host, sink, GPUHAL_FACT_UUID, GPUHAL_MISSING_FAILED, "the driver gives no UUID");
    }
    if (entry->is_mig) {
        host->text(host, sink, GPUHAL_FACT_PARTITION, entry->uuid);
        if (entry->part_numbers[0] != '\0') {
            host->text(host, sink, GPUHAL_FACT_PARTITION_NUMBERS, entry->part_numbers);
        } else {
            host->missing(host, sink, GPUHAL_FACT_PARTITION_NUMBERS, GPUHAL_MISSING_FAILED, "NVML does not report it");
        }
    } else {
        host->missing(host, sink, GPUHAL_FACT_PARTITION, GPUHAL_MISSING_NOT_SUPPORTED, "the device is a whole GPU");
    }
    host->missing(host, sink, GPUHAL_FACT_DRM_RENDER_NODE, GPUHAL_MISSING_NOT_SUPPORTED,
                  "CUDA does not report it; use the PCI address");
    gpuhal_cuda_list_numa_node(host, sink, entry);
}
