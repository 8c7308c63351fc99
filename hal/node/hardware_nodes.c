/* node/hardware_nodes.c: finds the names of the hardware's DRM nodes and vendor-specific nodes. hardware_given.c and
 * hardware_kernel.c check whether the nodes exist and are accessible. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KFD_NODES "/sys/class/kfd/kfd/topology/nodes"

/* ---- DRM */

/* "card0" matches the prefix "card"; the connector "card0-DP-1" does not. */
static bool is_numbered(const char *name, const char *prefix)
{
    const size_t length = strlen(prefix),
                 digits = strspn(name + (strncmp(name, prefix, length) == 0 ? length : 0), "0123456789");
    return strncmp(name, prefix, length) == 0 && digits > 0 && digits < 8 && !name[length + digits];
}

/* Returns whether the folder exists. */
static bool read_drm(gpuhal_hardware_survey *survey, gpuhal_hardware *one, const char *folder)
{
    char **names;
    size_t count;
    const bool there = gpuhal_hardware_names(survey, &names, &count, "%s/drm", folder);
    for (size_t i = 0; i < count; i++) {
        if (!one->drm_card[0] && is_numbered(names[i], "card")) {
            gpuhal_hardware_text(one->drm_card, sizeof one->drm_card, "/dev/dri/%.20s", names[i]);
        }
        if (!one->drm_render_node[0] && is_numbered(names[i], "renderD")) {
            gpuhal_hardware_text(one->drm_render_node, sizeof one->drm_render_node, "/dev/dri/%.20s", names[i]);
            (void)gpuhal_hardware_line(survey, one->render_number, sizeof one->render_number, "%s/drm/%s/dev", folder,
                                       names[i]);
        }
    }
    gpuhal_os_names_free(names, count);
    return there;
}

/* In sysfs, the DRM nodes of a paravirtual card belong to a virtio device below the card. */
static void read_virtio(gpuhal_hardware_survey *survey, gpuhal_hardware *one, const char *device)
{
    char **names, folder[384];
    size_t count;
    (void)gpuhal_hardware_names(survey, &names, &count, "%s", device);
    for (size_t i = 0; i < count; i++) {
        if (is_numbered(names[i], "virtio")) {
            snprintf(folder, sizeof folder, "%.320s/%.32s", device, names[i]);
            (void)read_drm(survey, one, folder);
        }
    }
    gpuhal_os_names_free(names, count);
}

static void find_drm(gpuhal_hardware_survey *survey, gpuhal_hardware *one)
{
    char device[320];
    snprintf(device, sizeof device, one->address[0] ? "/sys/bus/pci/devices/%s" : "/sys/devices/%s",
             one->address[0] ? one->address : one->place);
    if (!read_drm(survey, one, device) && strcmp(one->kernel_driver, "virtio-pci") == 0) {
        read_virtio(survey, one, device);
    }
}

/* ---- NVIDIA */

static void find_nvidia(gpuhal_hardware_survey *survey, gpuhal_hardware *one)
{
    char text[2048], value[64];
    if (gpuhal_hardware_bytes(survey, text, sizeof text, "/proc/driver/nvidia/gpus/%s/information", one->address) ==
        0) {
        return;
    }
    if (gpuhal_hardware_value(text, "Device Minor", value, sizeof value) && value[strspn(value, "0123456789")] == 0) {
        gpuhal_hardware_text(one->vendor_node, sizeof one->vendor_node, "/dev/nvidia%.8s", value);
    }
    if (gpuhal_hardware_value(text, "Model", value, sizeof value) && strcmp(value, "Unknown") != 0) {
        gpuhal_hardware_text(one->name, sizeof one->name, "%s", value);
    }
    one->is_excluded = gpuhal_hardware_value(text, "GPU Excluded", value, sizeof value) && strcmp(value, "Yes") == 0;
}

/* ---- AMD */

static uint32_t number_of(const char *text, const char *key)
{
    char value[24];
    return gpuhal_hardware_value(text, key, value, sizeof value) ? (uint32_t)strtoul(value, NULL, 10) : 0;
}

/* KFD also lists CPUs as nodes, with location 0. Each partition of a GPU is a separate node with the GPU's location. */
static void read_kfd_node(gpuhal_hardware_survey *survey, const char *node)
{
    char text[4096], address[24];
    if (gpuhal_hardware_bytes(survey, text, sizeof text, KFD_NODES "/%.20s/properties", node) == 0) {
        return;
    }
    const uint32_t location = number_of(text, "location_id"), domain = number_of(text, "domain");
    snprintf(address, sizeof address, "%04" PRIx32 ":%02x:%02x.%x", domain, location >> 8 & 0xff, location >> 3 & 0x1f,
             location & 7);
    gpuhal_hardware *one = location ? gpuhal_hardware_at_address(survey, address) : NULL;
    if (one) {
        gpuhal_hardware_text(one->vendor_node, sizeof one->vendor_node, "/dev/kfd");
    }
}

static void find_kfd(gpuhal_hardware_survey *survey)
{
    char **names;
    size_t count;
    (void)gpuhal_hardware_names(survey, &names, &count, KFD_NODES);
    gpuhal_hardware_enter(survey, KFD_NODES);
    for (size_t i = 0; i < count; i++) {
        read_kfd_node(survey, names[i]);
    }
    gpuhal_hardware_leave(survey);
    gpuhal_os_names_free(names, count);
}

void gpuhal_hardware_find_nodes(gpuhal_hardware_survey *survey)
{
    bool has_amd = false;
    for (uint32_t i = 0; i < survey->count; i++) {
        gpuhal_hardware *one = &survey->list[i];
        find_drm(survey, one);
        has_amd = has_amd || strcmp(one->kernel_driver, "amdgpu") == 0;
        if (strcmp(one->kernel_driver, "nvidia") == 0) {
            find_nvidia(survey, one);
        } else if (strcmp(one->kernel_driver, "dxgkrnl") == 0) {
            gpuhal_hardware_text(one->vendor_node, sizeof one->vendor_node, "/dev/dxg");
        }
    }
    if (has_amd) {
        find_kfd(survey);
    }
}
