/* node/hardware_scan.c: finds the hardware on the buses: display controllers and accelerators on PCI, GPUs of systems
 * on a chip, and Windows GPUs under WSL. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCI_DEVICES       "/sys/bus/pci/devices"
#define CLASS_DISPLAY     0x03u
#define CLASS_ACCELERATOR 0x12u
/* Value read from the configuration space of a device that does not respond. */
#define NO_ANSWER 0xffffu

gpuhal_hardware *gpuhal_hardware_add(gpuhal_hardware_survey *survey)
{
    if (survey->count == GPUHAL_HARDWARE_MAX) {
        return NULL;
    }
    if (survey->count == survey->capacity) {
        const uint32_t capacity = survey->capacity ? 2 * survey->capacity : 8;
        gpuhal_hardware *list = realloc(survey->list, capacity * sizeof *list);
        if (!list) {
            survey->error = survey->error ? survey->error : ENOMEM;
            return NULL;
        }
        survey->list = list;
        survey->capacity = capacity;
    }
    gpuhal_hardware *one = &survey->list[survey->count++];
    memset(one, 0, sizeof *one);
    one->info.numa_node = UINT32_MAX;
    return one;
}

gpuhal_hardware *gpuhal_hardware_at_address(const gpuhal_hardware_survey *survey, const char *address)
{
    for (uint32_t i = 0; *address && i < survey->count; i++) {
        if (strcmp(survey->list[i].address, address) == 0) {
            return &survey->list[i];
        }
    }
    return NULL;
}

/* ---- PCI */

/* The kernel's device names are canonical; other names in the folder are ignored. */
static bool is_address(const char *name)
{
    char canonical[24];
    return gpuhal_identity_pci(name, canonical) && strcmp(name, canonical) == 0;
}

/* Records a failure that would hide the device as the survey's error, unless the device has disappeared or is not
 * visible to this process. */
static void note_failure(gpuhal_hardware_survey *survey)
{
    static const int harmless[] = {0, ENOENT, ENODEV, ENOTDIR, ELOOP, EINVAL, EACCES, EPERM, ENXIO};
    bool is_harmless = survey->error != 0;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++) {
        is_harmless = is_harmless || survey->last == harmless[i];
    }
    survey->error = is_harmless ? survey->error : survey->last;
}

static bool is_listed_class(gpuhal_hardware_survey *survey, const char *address, uint32_t *out_class)
{
    if (!gpuhal_hardware_number(survey, out_class, PCI_DEVICES "/%s/class", address)) {
        note_failure(survey);
        return false;
    }
    return *out_class >> 16 == CLASS_DISPLAY || *out_class >> 16 == CLASS_ACCELERATOR;
}

static bool is_driven(gpuhal_hardware_survey *survey, const char *address)
{
    char target[64];
    return gpuhal_hardware_target(survey, target, sizeof target, PCI_DEVICES "/%s/driver", address);
}

/* Also copies the address of the virtual function's card. */
static bool is_virtual_function(gpuhal_hardware_survey *survey, const char *address, char out_card[24])
{
    char target[256];
    const bool is_function = gpuhal_hardware_target(survey, target, sizeof target, PCI_DEVICES "/%s/physfn", address);
    snprintf(out_card, 24, "%.23s", gpuhal_hardware_leaf(target));
    return is_function;
}

/* Returns whether the virtual function is bound to NVIDIA's driver. Then it is a GPU for virtual machines, and this
 * system cannot use its card. Counts the function in the card's entry; returns false if the card has none. */
static bool is_of_vgpu(gpuhal_hardware_survey *survey, const char *address, const char *card)
{
    char target[256];
    gpuhal_hardware *one = gpuhal_hardware_at_address(survey, card);
    const bool is_own = one &&
                        gpuhal_hardware_target(survey, target, sizeof target, PCI_DEVICES "/%s/driver", address) &&
                        strcmp(gpuhal_hardware_leaf(target), "nvidia") == 0;
    if (is_own) {
        one->functions++;
    }
    return is_own;
}

/* Function 1 of an old card is the second output of function 0. It needs no driver. */
static bool is_second_output(gpuhal_hardware_survey *survey, const char *address, uint32_t vendor)
{
    char first[24];
    uint32_t class = 0, first_vendor = 0;
    snprintf(first, sizeof first, "%.*s.0", (int)strcspn(address, "."), address);
    return strcmp(first, address) != 0 && !is_driven(survey, address) &&
           gpuhal_hardware_number(survey, &class, PCI_DEVICES "/%s/class", first) && class >> 16 == CLASS_DISPLAY &&
           gpuhal_hardware_number(survey, &first_vendor, PCI_DEVICES "/%s/vendor", first) && first_vendor == vendor;
}

static void read_driver(gpuhal_hardware_survey *survey, gpuhal_hardware *one, const char *device)
{
    char target[256], module[40];
    const gpuhal_hardware *before = one > survey->list ? one - 1 : NULL;
    if (!gpuhal_hardware_target(survey, target, sizeof target, "%s/driver", device)) {
        return;
    }
    gpuhal_hardware_text(one->kernel_driver, sizeof one->kernel_driver, "%.39s", gpuhal_hardware_leaf(target));
    if (before && strcmp(before->kernel_driver, one->kernel_driver) == 0) {
        memcpy(one->kernel_driver_version, before->kernel_driver_version, sizeof one->kernel_driver_version);
        return;
    }
    memcpy(module, one->kernel_driver, sizeof module);
    for (char *at = strchr(module, '-'); at; at = strchr(at, '-')) {
        *at = '_';
    }
    (void)gpuhal_hardware_line(survey, one->kernel_driver_version, sizeof one->kernel_driver_version,
                               "/sys/module/%s/version", module);
}

static void read_processors(gpuhal_hardware_survey *survey, gpuhal_hardware *one)
{
    if (!gpuhal_hardware_line(survey, one->local_cpus, sizeof one->local_cpus, PCI_DEVICES "/%s/local_cpulist",
                              one->address) ||
        one->local_cpus[strspn(one->local_cpus, "0123456789,-")]) {
        one->local_cpus[0] = 0;
    }
}

/* Reading `config` accesses the device, and wakes a sleeping device. The first two bytes are the vendor id. */
static bool is_off_bus(gpuhal_hardware_survey *survey, const gpuhal_hardware *one)
{
    char bytes[3];
    return one->info.vendor_id == NO_ANSWER ||
           (!one->info.is_asleep &&
            gpuhal_hardware_bytes(survey, bytes, sizeof bytes, PCI_DEVICES "/%s/config", one->address) == 2 &&
            (unsigned char)bytes[0] == 0xff && (unsigned char)bytes[1] == 0xff);
}

static void read_pci(gpuhal_hardware_survey *survey, gpuhal_hardware *one)
{
    gpuhal_hardware_info *info = &one->info;
    char text[256], device[96];
    snprintf(device, sizeof device, PCI_DEVICES "/%s", one->address);
    (void)gpuhal_hardware_number(survey, &info->device_id, "%s/device", device);
    (void)gpuhal_hardware_number(survey, &info->subsystem_vendor_id, "%s/subsystem_vendor", device);
    (void)gpuhal_hardware_number(survey, &info->subsystem_id, "%s/subsystem_device", device);
    if (gpuhal_hardware_target(survey, text, sizeof text, "%s", device)) {
        const char *place = strstr(text, "devices/");
        gpuhal_hardware_text(one->place, sizeof one->place, "%s", place ? place + strlen("devices/") : "");
    }
    (void)gpuhal_hardware_line(survey, text, sizeof text, "%s/power/runtime_status", device);
    info->is_asleep = strncmp(text, "suspend", strlen("suspend")) == 0; /* suspended, suspending */
    one->is_off_bus = is_off_bus(survey, one);
    read_driver(survey, one, device);
    read_processors(survey, one);
    (void)gpuhal_hardware_line(survey, text, sizeof text, "%s/numa_node", device);
    if (!gpuhal_pci_node_of(survey->root, text, &info->numa_node)) {
        info->numa_node = UINT32_MAX;
    }
}

static void scan_pci(gpuhal_hardware_survey *survey)
{
    char **names;
    size_t count;
    survey->bus_is_known = gpuhal_hardware_names(survey, &names, &count, PCI_DEVICES);
    note_failure(survey);
    for (size_t i = 0; i < count; i++) {
        char card[24];
        uint32_t class = 0, vendor = 0;
        if (!is_address(names[i]) || !is_listed_class(survey, names[i], &class)) {
            continue;
        }
        gpuhal_hardware_enter(survey, PCI_DEVICES "/%s", names[i]);
        const bool is_function = is_virtual_function(survey, names[i], card);
        if (is_function && (!is_driven(survey, names[i]) || is_of_vgpu(survey, names[i], card))) {
            continue; /* not bound, or a vGPU: for virtual machines */
        }
        (void)gpuhal_hardware_number(survey, &vendor, PCI_DEVICES "/%s/vendor", names[i]);
        gpuhal_hardware *one = is_second_output(survey, names[i], vendor) ? NULL : gpuhal_hardware_add(survey);
        if (one) {
            one->info.pci_class = class;
            one->info.vendor_id = vendor;
            one->is_virtual_function = is_function;
            gpuhal_hardware_text(one->address, sizeof one->address, "%s", names[i]);
            read_pci(survey, one);
        }
    }
    gpuhal_hardware_leave(survey);
    gpuhal_os_names_free(names, count);
}

/* In a container, NVIDIA's list in /proc may exist although the bus is not visible. */
static void scan_nvidia(gpuhal_hardware_survey *survey)
{
    char **names;
    size_t count;
    (void)gpuhal_hardware_names(survey, &names, &count, "/proc/driver/nvidia/gpus");
    for (size_t i = 0; i < count; i++) {
        gpuhal_hardware *one =
            is_address(names[i]) && !gpuhal_hardware_at_address(survey, names[i]) ? gpuhal_hardware_add(survey) : NULL;
        if (one) {
            gpuhal_hardware_text(one->address, sizeof one->address, "%s", names[i]);
            gpuhal_hardware_text(one->kernel_driver, sizeof one->kernel_driver, "nvidia");
            (void)gpuhal_hardware_line(survey, one->kernel_driver_version, sizeof one->kernel_driver_version,
                                       "/sys/module/nvidia/version");
            one->info.vendor_id = GPUHAL_VENDOR_NVIDIA;
        }
    }
    gpuhal_os_names_free(names, count);
}

/* ---- other buses */

static gpuhal_hardware *add_at_place(gpuhal_hardware_survey *survey, const char *place)
{
    for (uint32_t i = 0; i < survey->count; i++) {
        if (strcmp(survey->list[i].place, place) == 0) {
            return NULL;
        }
    }
    gpuhal_hardware *one = gpuhal_hardware_add(survey);
    if (one) {
        gpuhal_hardware_text(one->place, sizeof one->place, "%s", place);
    }
    return one;
}

/* GPUs have render nodes; plain display controllers do not. `vgem` is a test driver without hardware. `amdgpu_xcp`
 * devices are nodes for partitions of PCI GPUs. */
static void scan_render_nodes(gpuhal_hardware_survey *survey)
{
    char **names, target[256], bus[256], device[64];
    size_t count;
    (void)gpuhal_hardware_names(survey, &names, &count, "/sys/class/drm");
    gpuhal_hardware_enter(survey, "/sys/class/drm");
    for (size_t i = 0; i < count; i++) {
        snprintf(device, sizeof device, "/sys/class/drm/%.20s/device", names[i]);
        if (strncmp(names[i], "renderD", strlen("renderD")) != 0 ||
            !gpuhal_hardware_target(survey, bus, sizeof bus, "%s/subsystem", device) ||
            strcmp(gpuhal_hardware_leaf(bus), "platform") != 0 ||
            !gpuhal_hardware_target(survey, target, sizeof target, "/sys/class/drm/%.20s", names[i])) {
            continue;
        }
        const char *begin = strstr(target, "devices/"), *end = begin ? strstr(begin, "/drm/") : NULL;
        if (end && !strstr(begin, "/vgem/") && !strstr(begin, "/amdgpu_xcp")) {
            target[end - target] = 0;
            gpuhal_hardware *one = add_at_place(survey, begin + strlen("devices/"));
            if (one) {
                read_driver(survey, one, device);
            }
        }
    }
    gpuhal_hardware_leave(survey);
    gpuhal_os_names_free(names, count);
}

/* NVIDIA's Tegra driver creates a render node only in some releases. */
static void scan_tegra(gpuhal_hardware_survey *survey)
{
    char **names, target[256];
    size_t count;
    (void)gpuhal_hardware_names(survey, &names, &count, "/sys/bus/platform/drivers/gk20a");
    for (size_t i = 0; i < count; i++) {
        if (!gpuhal_hardware_target(survey, target, sizeof target, "/sys/bus/platform/drivers/gk20a/%.60s", names[i])) {
            continue;
        }
        const char *place = strstr(target, "devices/");
        gpuhal_hardware *one = place ? add_at_place(survey, place + strlen("devices/")) : NULL;
        if (one) {
            gpuhal_hardware_text(one->kernel_driver, sizeof one->kernel_driver, "nvgpu");
            one->info.vendor_id = GPUHAL_VENDOR_NVIDIA;
        }
    }
    gpuhal_os_names_free(names, count);
}

/* Under WSL the GPUs belong to Windows, and one node serves all of them. Newer releases list one PCI adapter per
 * GPU. */
static void scan_wsl(gpuhal_hardware_survey *survey)
{
    bool listed = !gpuhal_hardware_is_there(survey, "/dev/dxg");
    for (uint32_t i = 0; i < survey->count; i++) {
        listed = listed || strcmp(survey->list[i].kernel_driver, "dxgkrnl") == 0;
    }
    gpuhal_hardware *one = listed ? NULL : gpuhal_hardware_add(survey);
    if (one) {
        gpuhal_hardware_text(one->place, sizeof one->place, "virtual/misc/dxg");
        gpuhal_hardware_text(one->kernel_driver, sizeof one->kernel_driver, "dxgkrnl");
    }
}

void gpuhal_hardware_scan(gpuhal_hardware_survey *survey)
{
    scan_pci(survey);
    scan_nvidia(survey);
    scan_render_nodes(survey);
    scan_tegra(survey);
    scan_wsl(survey);
}
