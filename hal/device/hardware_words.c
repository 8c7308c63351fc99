/* device/hardware_words.c: findings in words, and command lines that mend, as the system's own tools are called. Where
 * none is known for sure, the line examines instead. */
#include "device/hardware.h"

#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void gpuhal_hardware_found(gpuhal_hardware_finding *out, gpuhal_hardware_state state, gpuhal_hardware_grade grade,
                           const char *format, ...)
{
    va_list arguments;
    *out = (gpuhal_hardware_finding){.state = state, .grade = grade};
    va_start(arguments, format);
    vsnprintf(out->why, sizeof out->why, format, arguments);
    va_end(arguments);
}

void gpuhal_hardware_day(uint64_t seconds, char *to, size_t bytes)
{
    struct tm parts;
    if (!gpuhal_os_utc(seconds, &parts) || strftime(to, bytes, "%Y-%m-%d", &parts) == 0) {
        snprintf(to, bytes, "an unknown day");
    }
}

/* What brings a kernel module of the vendor's, by system; "" where the kernel's own packages have it. */
static const char *const nvidia_packages[] = {
    [GPUHAL_SYSTEM_UNKNOWN] = "",
    [GPUHAL_SYSTEM_DEBIAN] = "sudo apt install nvidia-driver",
    [GPUHAL_SYSTEM_UBUNTU] = "sudo ubuntu-drivers install",
    [GPUHAL_SYSTEM_FEDORA] = "sudo dnf install akmod-nvidia",
    [GPUHAL_SYSTEM_ARCH] = "sudo pacman -S nvidia-open-dkms",
    [GPUHAL_SYSTEM_SUSE] = "sudo zypper install-new-recommends --repo NVIDIA",
};

void gpuhal_hardware_install_driver(gpuhal_hardware_view *view, const gpuhal_hardware *one, char *to, size_t bytes)
{
    const gpuhal_hardware_machine *machine = gpuhal_hardware_machine_of(view);
    const bool is_nvidia = one->info.vendor_id == GPUHAL_VENDOR_NVIDIA;
    const char *const module = is_nvidia ? "nvidia" : "amdgpu";
    const char *const install = is_nvidia ? nvidia_packages[machine->system] : "";
    if (gpuhal_hardware_is_there(view, "/var/lib/dkms/%s", module)) {
        gpuhal_hardware_text(to, bytes, "sudo dkms autoinstall -k %s && sudo modprobe %s", machine->release, module);
    } else if (!is_nvidia && machine->system == GPUHAL_SYSTEM_UBUNTU) {
        gpuhal_hardware_text(to, bytes, "sudo apt install linux-modules-extra-%s", machine->release);
    } else if (*install) {
        gpuhal_hardware_text(to, bytes, "%s", install);
    } else {
        gpuhal_hardware_text(to, bytes, "lspci -k -s %s", one->address);
    }
}

/* NVIDIA's libraries come in the version of the kernel module. */
static void install_nvidia(gpuhal_hardware_view *view, const gpuhal_hardware *one, char *to, size_t bytes)
{
    const gpuhal_hardware_system system = gpuhal_hardware_machine_of(view)->system;
    const int major = (int)strtol(one->kernel_driver_version, NULL, 10);
    static const char *const packages[] = {
        [GPUHAL_SYSTEM_DEBIAN] = "sudo apt install libcuda1",
        [GPUHAL_SYSTEM_FEDORA] = "sudo dnf install xorg-x11-drv-nvidia-cuda",
        [GPUHAL_SYSTEM_ARCH] = "sudo pacman -S nvidia-utils",
        [GPUHAL_SYSTEM_SUSE] = "sudo zypper install nvidia-compute-G06",
    };
    if (strcmp(one->kernel_driver, "nvidia") != 0) {
        gpuhal_hardware_install_driver(view, one, to, bytes);
    } else if (system == GPUHAL_SYSTEM_UBUNTU && major > 0) {
        gpuhal_hardware_text(to, bytes, "sudo apt install libnvidia-compute-%d", major);
    } else if (system < sizeof packages / sizeof *packages && packages[system]) {
        gpuhal_hardware_text(to, bytes, "%s", packages[system]);
    } else {
        gpuhal_hardware_text(to, bytes, "ldconfig -p | grep libcuda");
    }
}

void gpuhal_hardware_install_library(gpuhal_hardware_view *view, const gpuhal_hardware *one, char *to, size_t bytes)
{
    static const char *const any[] = {
        [GPUHAL_SYSTEM_UNKNOWN] = "ls /usr/share/vulkan/icd.d /etc/OpenCL/vendors",
        [GPUHAL_SYSTEM_DEBIAN] = "sudo apt install mesa-vulkan-drivers",
        [GPUHAL_SYSTEM_UBUNTU] = "sudo apt install mesa-vulkan-drivers",
        [GPUHAL_SYSTEM_FEDORA] = "sudo dnf install mesa-vulkan-drivers",
        [GPUHAL_SYSTEM_ARCH] = "sudo pacman -S vulkan-icd-loader vulkan-mesa-layers",
        [GPUHAL_SYSTEM_SUSE] = "sudo zypper install Mesa-vulkan-device-select",
    };
    const gpuhal_hardware_system system = gpuhal_hardware_machine_of(view)->system;
    const bool is_amd = one->info.vendor_id == GPUHAL_VENDOR_AMD, is_intel = one->info.vendor_id == GPUHAL_VENDOR_INTEL;
    if (one->info.vendor_id == GPUHAL_VENDOR_NVIDIA) {
        install_nvidia(view, one, to, bytes);
    } else if ((system == GPUHAL_SYSTEM_ARCH || system == GPUHAL_SYSTEM_SUSE) && (is_amd || is_intel)) {
        gpuhal_hardware_text(to, bytes, "sudo %s%s",
                             system == GPUHAL_SYSTEM_ARCH ? "pacman -S vulkan-" : "zypper install libvulkan_",
                             is_amd ? "radeon" : "intel");
    } else {
        gpuhal_hardware_text(to, bytes, "%s", any[system]);
    }
}

void gpuhal_hardware_start_container(gpuhal_hardware_view *view, const gpuhal_hardware *one, char *to, size_t bytes)
{
    const bool is_podman = gpuhal_hardware_is_there(view, "/run/.containerenv");
    const bool is_nvidia = strcmp(one->kernel_driver, "nvidia") == 0;
    gpuhal_hardware_text(to, bytes, "%s run %s …", is_podman ? "podman" : "docker",
                         is_nvidia && is_podman                      ? "--device nvidia.com/gpu=all"
                         : is_nvidia                                 ? "--gpus all"
                         : strcmp(one->kernel_driver, "amdgpu") == 0 ? "--device /dev/kfd --device /dev/dri"
                                                                     : "--device /dev/dri");
}

void gpuhal_hardware_read_log(const gpuhal_hardware *one, char *to, size_t bytes)
{
    const bool is_nvidia = one->info.vendor_id == GPUHAL_VENDOR_NVIDIA;
    gpuhal_hardware_text(to, bytes, "sudo dmesg | grep -E '%s%s%s'", is_nvidia ? "NVRM|Xid" : one->address,
                         is_nvidia ? "" : "|",
                         is_nvidia                 ? ""
                         : one->kernel_driver[0]   ? one->kernel_driver
                                                   : "pcieport");
}
