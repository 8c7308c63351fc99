/* vulkan/identity.c: identifies the physical device by PCI address, UUID, LUID and DRM node.
 *
 * None of these values is listed for software devices, because their values identify the driver rather than hardware,
 * and are the same on every machine.
 */
#include "../common/text.h"
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool gpuhal_vulkan_write_uuid(const uint8_t *uuid, char out_text[37])
{
    static const uint8_t none[VK_UUID_SIZE];
    gpuhal_plugin_write_uuid(uuid, out_text);
    return memcmp(uuid, none, sizeof none) != 0;
}

/* Drivers that support the query but do not know the address return zeros. This is the address of the root bridge. */
static void list_pci_address(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    const uint32_t *pci = hardware->pci;
    const bool known = (hardware->offered & GPUHAL_VULKAN_PCI_BUS_INFO) != 0;
    const bool zero = pci[0] == 0 && pci[1] == 0 && pci[2] == 0 && pci[3] == 0;
    if (!known || zero || pci[1] > 0xff || pci[2] > 0x1f || pci[3] > 7) {
        host->missing(host, sink, GPUHAL_FACT_PCI_ADDRESS, known ? GPUHAL_MISSING_FAILED : GPUHAL_MISSING_NOT_SUPPORTED,
                      known ? "the driver gives an impossible address"
                            : "the driver does not know VK_EXT_pci_bus_info");
        return;
    }
    char text[24];
    snprintf(text, sizeof text, "%04" PRIx32 ":%02" PRIx32 ":%02" PRIx32 ".%" PRIx32, pci[0], pci[1], pci[2], pci[3]);
    host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, text);
}

/* Drivers report an empty UUID for chips without a serial number. Such a UUID would make all these chips one device. */
static void list_uuid(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    char text[37];
    if (gpuhal_vulkan_write_uuid(hardware->id.deviceUUID, text)) {
        host->text(host, sink, GPUHAL_FACT_UUID, text);
    } else {
        host->missing(host, sink, GPUHAL_FACT_UUID, GPUHAL_MISSING_FAILED, "the driver gives an empty UUID");
    }
}

static void list_luid(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    if (!hardware->id.deviceLUIDValid) {
        host->missing(host, sink, GPUHAL_FACT_LUID, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the driver has none: only Windows gives them");
        return;
    }
    char text[2 * VK_LUID_SIZE + 1];
    for (size_t i = 0; i < VK_LUID_SIZE; i++) {
        snprintf(text + 2 * i, 3, "%02x", hardware->id.deviceLUID[i]);
    }
    host->text(host, sink, GPUHAL_FACT_LUID, text);
}

static void list_drm_node(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    const bool known = (hardware->offered & GPUHAL_VULKAN_DRM) != 0;
    if (!known || hardware->drm_render[0] < 0 || hardware->drm_render[1] < 0) {
        host->missing(host, sink, GPUHAL_FACT_DRM_RENDER_NODE, GPUHAL_MISSING_NOT_SUPPORTED,
                      known ? "the driver has no render node" : "the driver does not know VK_EXT_physical_device_drm");
        return;
    }
    char text[48];
    snprintf(text, sizeof text, "%" PRId64 ":%" PRId64, hardware->drm_render[0], hardware->drm_render[1]);
    host->text(host, sink, GPUHAL_FACT_DRM_RENDER_NODE, text);
}

void gpuhal_vulkan_list_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_vulkan_hardware *hardware)
{
    if (hardware->software) {
        const gpuhal_key keys[] = {GPUHAL_FACT_PCI_ADDRESS, GPUHAL_FACT_UUID, GPUHAL_FACT_LUID,
                                   GPUHAL_FACT_DRM_RENDER_NODE};
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            host->missing(host, sink, keys[i], GPUHAL_MISSING_NOT_SUPPORTED,
                          "the device is the host's processor, not one on a bus");
        }
        return;
    }
    list_pci_address(host, sink, hardware);
    list_uuid(host, sink, hardware);
    list_luid(host, sink, hardware);
    list_drm_node(host, sink, hardware);
}
