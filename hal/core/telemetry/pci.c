/* telemetry/pci.c: reads a PCI Express device's link, as reported by the kernel's PCI core, and the link's traffic.
 *
 * GPUs with bridges on the card (AMD since Vega, Intel Arc) report their fixed link to these bridges. The card's link
 * to the machine is the link of the card's topmost bridge. Bridges on the card have the GPU's vendor id and are below
 * the machine's root port, which is directly below the host bridge. */
#include "telemetry/files.h"

#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_bridge_of(const char *directory, const char *vendor)
{
    char text[16];
    gpuhal_value ignored = {0};
    return gpuhal_files_line(directory, "vendor", text, sizeof text, &ignored) && strcmp(text, vendor) == 0 &&
           gpuhal_files_line(directory, "class", text, sizeof text, &ignored) && strncmp(text, "0x0604", 6) == 0;
}

/* Removes the last path component. Returns false if there is none. */
static bool go_up(char *path)
{
    char *last = strrchr(path, '/');
    if (last) {
        *last = 0;
    }
    return last != NULL;
}

/* Returns the directory that describes the link to the machine: the device's directory, or the directory of the topmost
 * bridge on the device's card. */
static const char *find_link(gpuhal_files *files)
{
    char vendor[16], above[GPUHAL_PATH_BYTES];
    int ignored = 0;
    gpuhal_value value = {0};
    if (files->link[0]) {
        return files->link;
    }
    snprintf(files->link, sizeof files->link, "%s", files->device);
    char *real = gpuhal_files_are_of_bus(files) ? NULL : gpuhal_os_real_path(files->device, &ignored);
    if (real && strlen(real) < sizeof above && gpuhal_files_line(real, "vendor", vendor, sizeof vendor, &value)) {
        memcpy(above, real, strlen(real) + 1);
        while (go_up(above) && is_bridge_of(above, vendor)) {
            char root[GPUHAL_PATH_BYTES];
            memcpy(root, above, sizeof root);
            const char *name = go_up(root) ? strrchr(root, '/') : NULL;
            if (!name || strncmp(name, "/pci", 4) == 0) {
                break; /* `above` is a root port */
            }
            memcpy(files->link, above, sizeof above);
        }
    }
    free(real);
    return files->link;
}

/* Reads a speed such as "16.0 GT/s PCIe" (older kernels: without " PCIe") or "Unknown". */
static void read_generation(gpuhal_files *files, const char *name, gpuhal_value *value)
{
    static const char speeds[][10] = {"2.5 GT/s", "5.0 GT/s", "8.0 GT/s", "16.0 GT/s", "32.0 GT/s", "64.0 GT/s"};
    char text[40];
    if (!gpuhal_files_line(find_link(files), name, text, sizeof text, value)) {
        return;
    }
    for (uint32_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
        /* Older kernels write "5 GT/s". */
        const size_t digits = strcspn(speeds[i], ".");
        const bool is_short = speeds[i][digits + 1] == '0' && strncmp(text, speeds[i], digits) == 0 &&
                              strncmp(text + digits, " GT/s", 5) == 0;
        if (is_short || strncmp(text, speeds[i], strlen(speeds[i])) == 0) {
            gpuhal_value_set(value, i + 1, "sysfs");
            return;
        }
    }
    gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the system does not know the speed of its link");
}

/* 0 means that there is no link. 255 means that the device has fallen off the bus. */
static void read_width(gpuhal_files *files, const char *name, gpuhal_value *value)
{
    uint64_t lanes = 0;
    if (!gpuhal_files_number(find_link(files), name, &lanes, value)) {
        return;
    }
    if (lanes == 0) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_SUPPORTED, "the device has no PCI Express link");
    } else {
        gpuhal_value_set(value, lanes, "sysfs");
    }
}

void gpuhal_pci_generation(gpuhal_files *files, gpuhal_value *value)
{
    read_generation(files, "current_link_speed", value);
}

void gpuhal_pci_generation_max(gpuhal_files *files, gpuhal_value *value)
{
    read_generation(files, "max_link_speed", value);
}

void gpuhal_pci_width(gpuhal_files *files, gpuhal_value *value)
{
    read_width(files, "current_link_width", value);
}

void gpuhal_pci_width_max(gpuhal_files *files, gpuhal_value *value)
{
    read_width(files, "max_link_width", value);
}

void gpuhal_pci_replays(gpuhal_files *files, gpuhal_value *value)
{
    uint64_t count = 0;
    if (gpuhal_files_number(files->device, "pcie_replay_count", &count, value)) {
        gpuhal_value_set(value, count, "sysfs");
    }
}

/* amdgpu counts messages for one second during the read. The file has three numbers: messages received and messages
 * sent in this second, and the maximum size of a message. The product is an upper bound. */
static void read_traffic(gpuhal_files *files, bool sent, gpuhal_value *value)
{
    uint64_t numbers[3] = {0};
    if (!files->traffic[0] && files->left_ns < UINT64_C(1500000000)) {
        gpuhal_value_miss(value, GPUHAL_MISSING_NOT_READ, "reading it takes a second, and there was less time");
        return;
    }
    if (!files->traffic[0] &&
        !gpuhal_files_line(files->device, "pcie_bw", files->traffic, sizeof files->traffic, value)) {
        return;
    }
    if (sscanf(files->traffic, "%" SCNu64 " %" SCNu64 " %" SCNu64, &numbers[0], &numbers[1], &numbers[2]) != 3 ||
        numbers[2] > 65536 || numbers[sent ? 1 : 0] > UINT32_MAX) {
        gpuhal_value_miss(value, GPUHAL_MISSING_FAILED, "the system's file pcie_bw holds no usable numbers");
        return;
    }
    gpuhal_value_set(value, numbers[sent ? 1 : 0] * numbers[2], "sysfs");
}

void gpuhal_pci_receive(gpuhal_files *files, gpuhal_value *value)
{
    read_traffic(files, false, value);
}

void gpuhal_pci_send(gpuhal_files *files, gpuhal_value *value)
{
    read_traffic(files, true, value);
}
