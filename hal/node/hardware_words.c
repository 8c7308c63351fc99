/* node/hardware_words.c: the text of findings, and command lines that fix them with the system's tools. If no remedy is
 * certain, the command is diagnostic, and a line that explains its output may follow. A warning precedes a dangerous
 * command, and a restart of the machine is on a separate line. */
#include "node/hardware.h"

#include "device/for_node.h"

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

/* The command that installs NVIDIA's kernel module, per system; "" if unknown. */
static const char *const nvidia_packages[] = {
    [GPUHAL_SYSTEM_UNKNOWN] = "",
    [GPUHAL_SYSTEM_DEBIAN] = "sudo apt install nvidia-driver",
    [GPUHAL_SYSTEM_UBUNTU] = "sudo ubuntu-drivers install",
    [GPUHAL_SYSTEM_FEDORA] = "sudo dnf install akmod-nvidia",
    [GPUHAL_SYSTEM_ARCH] = "sudo pacman -S nvidia-open-dkms",
    [GPUHAL_SYSTEM_SUSE] = "sudo zypper install-new-recommends --repo NVIDIA",
};

void gpuhal_hardware_install_driver(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes)
{
    const gpuhal_hardware_machine *machine = gpuhal_hardware_machine_of(survey);
    const bool is_nvidia = one->info.vendor_id == GPUHAL_VENDOR_NVIDIA;
    const bool is_amd = one->info.vendor_id == GPUHAL_VENDOR_AMD;
    const char *const module = is_nvidia ? "nvidia" : "amdgpu";
    const char *const install = is_nvidia ? nvidia_packages[machine->system] : "";
    if ((is_nvidia || is_amd) && gpuhal_hardware_is_there(survey, "/var/lib/dkms/%s", module)) {
        gpuhal_hardware_text(to, bytes, "sudo dkms autoinstall -k %s && sudo modprobe %s", machine->release, module);
    } else if (!is_nvidia && machine->system == GPUHAL_SYSTEM_UBUNTU) {
        gpuhal_hardware_text(to, bytes, "sudo apt install linux-modules-extra-%s", machine->release);
    } else if (*install) {
        gpuhal_hardware_text(to, bytes, "%s", install);
    } else {
        gpuhal_hardware_text(to, bytes, "lspci -k -s %s", one->address);
        gpuhal_hardware_add_line(to, bytes, "# load one of \"Kernel modules\"; without any, install the driver");
    }
}

/* NVIDIA's user libraries must have the version of NVIDIA's kernel module. */
static void install_nvidia(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes)
{
    const gpuhal_hardware_system system = gpuhal_hardware_machine_of(survey)->system;
    const int major = (int)strtol(one->kernel_driver_version, NULL, 10);
    static const char *const packages[] = {
        [GPUHAL_SYSTEM_DEBIAN] = "sudo apt install libcuda1",
        [GPUHAL_SYSTEM_FEDORA] = "sudo dnf install xorg-x11-drv-nvidia-cuda",
        [GPUHAL_SYSTEM_ARCH] = "sudo pacman -S nvidia-utils",
        [GPUHAL_SYSTEM_SUSE] = "sudo zypper install nvidia-compute-G06",
    };
    if (strcmp(one->kernel_driver, "nvgpu") == 0) {
        gpuhal_hardware_text(to, bytes, "sudo apt install nvidia-jetpack");
    } else if (strcmp(one->kernel_driver, "nvidia") != 0) {
        gpuhal_hardware_install_driver(survey, one, to, bytes);
    } else if (system == GPUHAL_SYSTEM_UBUNTU && major > 0) {
        gpuhal_hardware_text(to, bytes, "sudo apt install libnvidia-compute-%d", major);
    } else if (system < sizeof packages / sizeof *packages && packages[system]) {
        gpuhal_hardware_text(to, bytes, "%s", packages[system]);
    } else {
        gpuhal_hardware_text(to, bytes, "ldconfig -p | grep libcuda");
        gpuhal_hardware_add_line(to, bytes, "# no line: install libcuda in the version of the kernel module");
    }
}

void gpuhal_hardware_install_library(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes)
{
    static const char *const any[] = {
        [GPUHAL_SYSTEM_UNKNOWN] = "ls /usr/share/vulkan/icd.d /etc/OpenCL/vendors",
        [GPUHAL_SYSTEM_DEBIAN] = "sudo apt install mesa-vulkan-drivers",
        [GPUHAL_SYSTEM_UBUNTU] = "sudo apt install mesa-vulkan-drivers",
        [GPUHAL_SYSTEM_FEDORA] = "sudo dnf install mesa-vulkan-drivers",
        [GPUHAL_SYSTEM_ARCH] = "sudo pacman -S vulkan-icd-loader vulkan-mesa-layers",
        [GPUHAL_SYSTEM_SUSE] = "sudo zypper install Mesa-vulkan-device-select",
    };
    const gpuhal_hardware_system system = gpuhal_hardware_machine_of(survey)->system;
    const bool is_amd = one->info.vendor_id == GPUHAL_VENDOR_AMD, is_intel = one->info.vendor_id == GPUHAL_VENDOR_INTEL;
    gpuhal_hardware_give(survey, one, to, bytes);
    const bool is_rocm = is_amd && gpuhal_hardware_machine_of(survey)->place == GPUHAL_PLACE_APPTAINER;
    if (*to && (one->info.vendor_id == GPUHAL_VENDOR_NVIDIA || is_rocm)) {
        return; /* in a container, this also provides the host's version of the library */
    }
    if (strcmp(one->kernel_driver, "dxgkrnl") == 0) {
        gpuhal_hardware_text(to, bytes, "ls /usr/lib/wsl/lib && sudo ldconfig");
        gpuhal_hardware_add_line(to, bytes, "# no libcuda there: install the vendor's driver in Windows");
    } else if (one->info.vendor_id == GPUHAL_VENDOR_NVIDIA) {
        install_nvidia(survey, one, to, bytes);
    } else if ((system == GPUHAL_SYSTEM_ARCH || system == GPUHAL_SYSTEM_SUSE) && (is_amd || is_intel)) {
        gpuhal_hardware_text(to, bytes, "sudo %s%s",
                             system == GPUHAL_SYSTEM_ARCH ? "pacman -S vulkan-" : "zypper install libvulkan_",
                             is_amd ? "radeon" : "intel");
    } else {
        gpuhal_hardware_text(to, bytes, "%s", any[system]);
        if (system == GPUHAL_SYSTEM_UNKNOWN) {
            gpuhal_hardware_add_line(to, bytes, "# no line: install the GPU's driver for Vulkan or OpenCL");
        }
    }
}

/* Returns the GPU's resource name in Kubernetes, which the vendor's device plugin defines, or "" if unknown. */
static const char *resource_of(const gpuhal_hardware *one)
{
    return strcmp(one->kernel_driver, "nvidia") == 0   ? "nvidia.com/gpu"
           : strcmp(one->kernel_driver, "amdgpu") == 0 ? "amd.com/gpu"
           : strcmp(one->kernel_driver, "xe") == 0     ? "gpu.intel.com/xe"
           : strcmp(one->kernel_driver, "i915") == 0   ? "gpu.intel.com/i915"
                                                       : "";
}

/* Returns the variable's GPU list if other commands accept the same form, such as "2,3". Returns "" for all GPUs and
 * for any other form.
 */
static const char *list_of(const gpuhal_hardware_order *order)
{
    static const char known[] = "0123456789:,abcdefABCDEFGPUMIG-";
    bool is_range = false;
    for (const char *entry = order->value; *entry; entry += strcspn(entry, ","), entry += *entry == ',') {
        is_range = is_range || (*entry >= '0' && *entry <= '9' && entry[strspn(entry, "0123456789")] == '-');
    }
    const size_t length = strlen(order->value);
    return order->is_all || is_range || length > 160 || strspn(order->value, known) != length ? "" : order->value;
}

static void give_to_docker(const gpuhal_hardware *one, const char *list, char *to, size_t bytes)
{
    const bool is_nvidia = strcmp(one->kernel_driver, "nvidia") == 0 || strcmp(one->kernel_driver, "dxgkrnl") == 0;
    const bool is_amd = strcmp(one->kernel_driver, "amdgpu") == 0;
    if (is_nvidia && *list) {
        gpuhal_hardware_add_line(to, bytes, "docker run --gpus '\"device=%s\"' …", list);
    } else if (is_amd && *list) {
        gpuhal_hardware_add_line(to, bytes, "docker run --runtime amd -e AMD_VISIBLE_DEVICES=%s …", list);
    } else {
        const bool is_tegra = strcmp(one->kernel_driver, "nvgpu") == 0;
        gpuhal_hardware_add_line(to, bytes, "docker run %s …",
                                 is_nvidia  ? "--gpus all"
                                 : is_tegra ? "--runtime nvidia"
                                 : is_amd   ? "--device /dev/kfd --device /dev/dri"
                                            : "--device /dev/dri");
    }
}

static void give_to_podman(const gpuhal_hardware *one, const char *list, char *to, size_t bytes)
{
    const bool is_nvidia = strcmp(one->kernel_driver, "nvidia") == 0 || strcmp(one->kernel_driver, "dxgkrnl") == 0;
    const bool is_amd = strcmp(one->kernel_driver, "amdgpu") == 0;
    char devices[GPUHAL_HARDWARE_FIX_BYTES] = "";
    size_t used = 0;
    for (const char *entry = is_nvidia ? list : ""; *entry && used < sizeof devices - 64;) {
        const int length = (int)strcspn(entry, ",");
        used += (size_t)snprintf(devices + used, sizeof devices - used, "--device nvidia.com/gpu=%.*s ",
                                 length < 40 ? length : 40, entry);
        entry += length + (entry[length] == ',');
    }
    gpuhal_hardware_add_line(to, bytes, "podman run %s…",
                             *devices    ? devices
                             : is_nvidia ? "--device nvidia.com/gpu=all "
                             : is_amd    ? "--device /dev/kfd --device /dev/dri "
                                         : "--device /dev/dri ");
}

static void give_to_apptainer(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes)
{
    const bool is_amd = strcmp(one->kernel_driver, "amdgpu") == 0;
    /* With --contain the container has the /dev/dri nodes but not /dev/kfd: apptainer/singularity#5696. */
    const bool lacks_kfd = is_amd && one->drm_render_node[0] && !gpuhal_hardware_is_there(survey, "/dev/kfd") &&
                           gpuhal_hardware_is_there(survey, "%s", one->drm_render_node);
    gpuhal_hardware_add_line(to, bytes, "apptainer exec --%s%s …", is_amd ? "rocm" : "nv",
                             lacks_kfd ? " --bind /dev/kfd" : "");
}

void gpuhal_hardware_give(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, char *to, size_t bytes)
{
    const gpuhal_hardware_machine *machine = gpuhal_hardware_machine_of(survey);
    const bool is_nvidia = strcmp(one->kernel_driver, "nvidia") == 0 || strcmp(one->kernel_driver, "dxgkrnl") == 0;
    const bool is_amd = strcmp(one->kernel_driver, "amdgpu") == 0;
    const bool is_known = machine->place == GPUHAL_PLACE_DOCKER || machine->place == GPUHAL_PLACE_PODMAN ||
                          (machine->place == GPUHAL_PLACE_APPTAINER && (is_nvidia || is_amd)) ||
                          (machine->place == GPUHAL_PLACE_ENROOT && is_nvidia);
    gpuhal_hardware_order order;
    const char *const list = gpuhal_hardware_find_order(survey, one, &order) && order.names_it ? list_of(&order) : "";
    to[0] = 0;
    if (machine->place == GPUHAL_PLACE_POD && *resource_of(one)) {
        gpuhal_hardware_text(to, bytes, "# in the pod's spec, at its container:");
        gpuhal_hardware_add_line(to, bytes, "resources: {limits: {%s: 1}}", resource_of(one));
    } else if (machine->batch && machine->place != GPUHAL_PLACE_POD) {
        gpuhal_hardware_text(to, bytes, "%s", machine->batch->request);
    } else if (is_known) {
        gpuhal_hardware_text(to, bytes, "# on the host:");
        if (machine->place == GPUHAL_PLACE_DOCKER) {
            give_to_docker(one, list, to, bytes);
        } else if (machine->place == GPUHAL_PLACE_PODMAN) {
            give_to_podman(one, list, to, bytes);
        } else if (machine->place == GPUHAL_PLACE_APPTAINER) {
            give_to_apptainer(survey, one, to, bytes);
        } else {
            gpuhal_hardware_add_line(to, bytes, "NVIDIA_VISIBLE_DEVICES=%s enroot start …", *list ? list : "all");
        }
    }
}

void gpuhal_hardware_restart(gpuhal_hardware_survey *survey, char *to, size_t bytes)
{
    static const char *const commands[] = {
        [GPUHAL_PLACE_DOCKER] = "docker restart …",
        [GPUHAL_PLACE_PODMAN] = "podman restart …",
        [GPUHAL_PLACE_POD] = "kubectl delete pod …",
        [GPUHAL_PLACE_ENROOT] = NULL,
    };
    const char *command = commands[gpuhal_hardware_machine_of(survey)->place];
    to[0] = 0;
    if (command) {
        const bool is_pod = gpuhal_hardware_machine_of(survey)->place == GPUHAL_PLACE_POD;
        gpuhal_hardware_text(to, bytes, "# a reload of systemd on the host removed the access");
        gpuhal_hardware_add_line(to, bytes, "# %s",
                                 is_pod ? "ends all programs in this pod:"
                                        : "on the host; ends all programs in this container:");
        gpuhal_hardware_add_line(to, bytes, "%s", command);
    }
}

/* The initramfs may load the module, so it must also contain the blacklist. */
void gpuhal_hardware_keep_nouveau_out(gpuhal_hardware_survey *survey, char *to, size_t bytes)
{
    static const char *const rebuild[] = {
        [GPUHAL_SYSTEM_DEBIAN] = "update-initramfs -u", [GPUHAL_SYSTEM_UBUNTU] = "update-initramfs -u",
        [GPUHAL_SYSTEM_FEDORA] = "dracut --force",      [GPUHAL_SYSTEM_ARCH] = "mkinitcpio -P",
        [GPUHAL_SYSTEM_SUSE] = "dracut --force",
    };
    const char *own = rebuild[gpuhal_hardware_machine_of(survey)->system];
    gpuhal_hardware_text(to, bytes, "# changes which drivers this machine starts with:");
    gpuhal_hardware_add_line(to, bytes, "echo blacklist nouveau | sudo tee /etc/modprobe.d/nouveau.conf");
    if (own) {
        gpuhal_hardware_add_line(to, bytes, "sudo %s", own);
    } else {
        gpuhal_hardware_add_line(to, bytes, "# then rebuild the initramfs");
    }
    gpuhal_hardware_add_restart(to, bytes);
}

void gpuhal_hardware_add_restart(char *to, size_t bytes)
{
    gpuhal_hardware_add_line(to, bytes, "# ends all programs on this machine:");
    gpuhal_hardware_add_line(to, bytes, "sudo reboot");
}

/* Driver packages sign the modules that they build. These files contain the certificates with the
 * public keys, which must be enrolled. */
void gpuhal_hardware_enrol_key(gpuhal_hardware_survey *survey, char *to, size_t bytes)
{
    static const char *const keys[] = {
        [GPUHAL_SYSTEM_DEBIAN] = "/var/lib/dkms/mok.pub",
        [GPUHAL_SYSTEM_UBUNTU] = "/var/lib/shim-signed/mok/MOK.der",
        [GPUHAL_SYSTEM_FEDORA] = "/etc/pki/akmods/certs/public_key.der",
    };
    const gpuhal_hardware_system system = gpuhal_hardware_machine_of(survey)->system;
    if (system < sizeof keys / sizeof *keys && keys[system]) {
        gpuhal_hardware_text(to, bytes, "# choose a password; the console asks for it after the restart:");
        gpuhal_hardware_add_line(to, bytes, "sudo mokutil --import %s", keys[system]);
        gpuhal_hardware_add_restart(to, bytes);
        gpuhal_hardware_add_line(to, bytes, "# then, at the console: Enroll MOK");
    } else {
        gpuhal_hardware_text(to, bytes, "sudo dmesg | grep -iE 'lockdown|key was rejected'");
        gpuhal_hardware_add_line(to, bytes, "# \"key was rejected\": sign the module, or install a signed one");
    }
}

void gpuhal_hardware_read_log(const gpuhal_hardware *one, const char *answers, char *to, size_t bytes)
{
    if (strcmp(one->kernel_driver, "nvgpu") == 0) {
        gpuhal_hardware_text(to, bytes, "sudo dmesg | grep -E 'nvgpu|gk20a'");
    } else if (one->info.vendor_id == GPUHAL_VENDOR_NVIDIA) {
        gpuhal_hardware_text(to, bytes, "sudo dmesg | grep -E 'NVRM|Xid'");
        if (*answers) {
            gpuhal_hardware_add_line(to, bytes, "%s", answers);
        }
    } else {
        gpuhal_hardware_text(to, bytes, "sudo dmesg | grep -E '%s|%s'", one->address,
                             one->kernel_driver[0] ? one->kernel_driver : "pcieport");
    }
}
