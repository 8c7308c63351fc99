/* node/hardware_kernel.c: finds hardware that is not usable because of the kernel: it has no driver or a driver for
 * virtual machines, or its nodes are missing or not accessible. Checking a node does not open it. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <stdio.h>
#include <string.h>

/* ---- models that no API supports */

/* Display controllers in servers and emulators. Device 0 means any device of the vendor. */
static const struct {
    uint32_t vendor, device;
    const char *what;
} displays[] = {
    {0x1a03, 0, "the display of a server's management controller"},      /* ASPEED */
    {0x102b, 0, "the display of a server's management controller"},      /* Matrox G200 */
    {0x19e5, 0x1711, "the display of a server's management controller"}, /* HiSilicon */
    {0x126f, 0, "a display controller"},                                 /* Silicon Motion */
    {0x18ca, 0, "a display controller"},                                 /* XGI */
    {0x1002, 0x515e, "a server's display controller"},                   /* ES1000 */
    {0x1002, 0x4752, "a server's display controller"},                   /* Rage XL */
    {0x0014, 0, "a display controller"},                                 /* Loongson; its GPU is a separate device */
    {0x1234, 0x1111, "a virtual machine's display"},                     /* QEMU, Bochs */
    {0x1b36, 0x0100, "a virtual machine's display"},                     /* QXL */
    {0x1013, 0, "a virtual machine's display"},                          /* Cirrus */
    {0x15ad, 0, "a virtual machine's display"},                          /* VMware */
    {0x1414, 0x5353, "a virtual machine's display"},                     /* Hyper-V */
    {0x1af4, 0x1050, "a virtual machine's display, without 3D"},         /* virtio */
    {0x80ee, 0xbeef, "a virtual machine's display"},                     /* VirtualBox */
    {0x1ab8, 0x4005, "a virtual machine's display"},                     /* Parallels */
    {0x1d0f, 0x1111, "a virtual machine's display"},                     /* Amazon */
    {0xfb5d, 0x40fb, "a virtual machine's display"},                     /* bhyve */
};

/* NVIDIA and AMD processing accelerators are GPUs. Accelerators of other vendors only compute neural networks. */
static const char *display_of(const gpuhal_hardware *one)
{
    for (size_t i = 0; i < sizeof displays / sizeof *displays; i++) {
        if (displays[i].vendor == one->info.vendor_id &&
            (displays[i].device == 0 || displays[i].device == one->info.device_id)) {
            return displays[i].what;
        }
    }
    const bool is_gpu = one->info.vendor_id == GPUHAL_VENDOR_NVIDIA || one->info.vendor_id == GPUHAL_VENDOR_AMD;
    return one->info.pci_class >> 16 == 0x12 && !is_gpu ? "an accelerator of another kind" : NULL;
}

/* ---- no kernel driver */

/* Vendors' modules, and their file names in modules.dep or modules.builtin. */
static const struct {
    uint32_t vendor;
    const char *module, *files[3];
} modules[] = {
    {GPUHAL_VENDOR_NVIDIA, "nvidia", {"/nvidia.ko", "/nvidia-current.ko", NULL}},
    {GPUHAL_VENDOR_AMD, "amdgpu", {"/amdgpu.ko", NULL, NULL}},
    {GPUHAL_VENDOR_INTEL, "xe", {"/xe.ko", NULL, NULL}},
    {GPUHAL_VENDOR_INTEL, "i915", {"/i915.ko", NULL, NULL}},
};
enum { MODULES = sizeof modules / sizeof *modules };

typedef enum { MODULE_UNKNOWN, MODULE_MISSING, MODULE_INSTALLED, MODULE_LOADED } module_state;

static module_state state_of_module(gpuhal_hardware_survey *survey, size_t module)
{
    if (gpuhal_hardware_is_there(survey, "/sys/module/%s", modules[module].module)) {
        return MODULE_LOADED;
    }
    const char *const release = gpuhal_hardware_machine_of(survey)->release;
    if (!*release || !gpuhal_hardware_is_there(survey, "/lib/modules/%s/modules.dep", release)) {
        return MODULE_UNKNOWN;
    }
    for (size_t i = 0; modules[module].files[i]; i++) {
        if (gpuhal_hardware_contains(survey, modules[module].files[i], "/lib/modules/%s/modules.dep", release) ||
            gpuhal_hardware_contains(survey, modules[module].files[i], "/lib/modules/%s/modules.builtin", release)) {
            return MODULE_INSTALLED;
        }
    }
    return MODULE_MISSING;
}

/* Returns the vendor's module with the most advanced state, or MODULES if there is none. */
static size_t best_module(gpuhal_hardware_survey *survey, uint32_t vendor, module_state *out_state)
{
    size_t best = MODULES;
    for (size_t i = 0; i < MODULES; i++) {
        const module_state state = modules[i].vendor == vendor ? state_of_module(survey, i) : MODULE_UNKNOWN;
        if (modules[i].vendor == vendor && (best == MODULES || state > *out_state)) {
            best = i;
            *out_state = state;
        }
    }
    return best;
}

/* Returns whether the module is not from the kernel's package, whose modules the kernel's vendor signs. */
static bool is_built_here(gpuhal_hardware_survey *survey, size_t module)
{
    static const char *const folders[] = {"updates/dkms", "extra", "updates"};
    const char *const release = gpuhal_hardware_machine_of(survey)->release;
    char inside[64];
    bool found = false;
    for (size_t i = 0; modules[module].files[i] && !found; i++) {
        for (size_t f = 0; f < sizeof folders / sizeof *folders && !found; f++) {
            snprintf(inside, sizeof inside, "%s%s", folders[f], modules[module].files[i]);
            found = gpuhal_hardware_contains(survey, inside, "/lib/modules/%s/modules.dep", release);
        }
    }
    return found;
}

static void find_unbound(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                         gpuhal_hardware_finding *out)
{
    module_state state = MODULE_UNKNOWN;
    gpuhal_hardware_block block;
    const size_t module = best_module(survey, one->info.vendor_id, &state);
    const char *const name = module < MODULES ? modules[module].module : "";
    const char *const release = gpuhal_hardware_machine_of(survey)->release;
    const gpuhal_hardware_grade grade = has_library ? GPUHAL_HARDWARE_PROBLEM : GPUHAL_HARDWARE_WARNING;
    if (module == MODULES) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, grade, "no kernel driver is bound to it");
        gpuhal_hardware_text(out->fix, sizeof out->fix, "lspci -nnk -s %s", one->address);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                 "# load one of \"Kernel modules\"; without any, install the driver");
    } else if (gpuhal_hardware_is_blocked(survey, name, &block)) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_NOTE,
                              "no kernel driver is bound to it: %s keeps the module %s from being loaded", block.where,
                              name);
        snprintf(out->fix, sizeof out->fix, "%s", block.fix);
    } else if (state == MODULE_UNKNOWN) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, grade,
                              "no kernel driver is bound to it: the module %s is not loaded%s", name,
                              has_library ? ", although the driver's library is installed" : "");
        if (has_library) {
            gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo modprobe %s", name);
        } else {
            gpuhal_hardware_install_driver(survey, one, out->fix, sizeof out->fix);
        }
    } else if (state == MODULE_MISSING) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, grade,
                              "no kernel driver is bound to it: the module %s is not installed for Linux %s%s", name,
                              release, has_library ? ", although the driver's library is" : "");
        gpuhal_hardware_install_driver(survey, one, out->fix, sizeof out->fix);
    } else if (state == MODULE_INSTALLED && gpuhal_hardware_machine_of(survey)->secure_boot &&
               is_built_here(survey, module)) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_PROBLEM,
                              "no kernel driver is bound to it: the module %s was built on this machine, and Secure "
                              "Boot loads only modules that are signed with a key that it knows",
                              name);
        gpuhal_hardware_enrol_key(survey, out->fix, sizeof out->fix);
    } else if (state == MODULE_INSTALLED) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_PROBLEM,
                              "no kernel driver is bound to it: the module %s is installed, but not loaded", name);
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo modprobe %s", name);
    } else {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_PROBLEM,
                              "no kernel driver is bound to it: the module %s is loaded, but did not accept the device",
                              name);
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo dmesg | grep -iE '%s|%s'", one->address,
                             strcmp(name, "nvidia") == 0 ? "NVRM" : name);
        if (strcmp(name, "nvidia") == 0) {
            gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                     "# \"not supported\": install another driver version, or the open one");
        }
    }
}

/* ---- nodes */

static bool is_nvidia(const gpuhal_hardware *one)
{
    return strcmp(one->kernel_driver, "nvidia") == 0;
}

static void find_missing(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const char *node,
                         gpuhal_hardware_finding *out)
{
    static const char prefix[] = "/dev/nvidia";
    const char *number = strncmp(node, prefix, strlen(prefix)) == 0 ? node + strlen(prefix) : "";
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM,
                          "the kernel driver %s is loaded, but %s is missing", one->kernel_driver, node);
    if (is_nvidia(one)) { /* /dev/nvidiactl has minor number 255 */
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo nvidia-modprobe -c %s",
                             *number && number[strspn(number, "0123456789")] == 0 ? number : "255");
    } else if (gpuhal_hardware_machine_of(survey)->is_windows) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "wsl.exe --update");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "# save all work in WSL first, since this ends it:");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "wsl.exe --shutdown");
    } else {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo udevadm trigger --action=add");
    }
}

#define ON_THE_HOST  "# on the host:"
#define LOG_IN_AGAIN "# then log in again"

static void find_refused(gpuhal_hardware_survey *survey, const char *node, gpuhal_hardware_finding *out)
{
    gpuhal_file_state state;
    char path[GPUHAL_SYSTEM_ROOT_BYTES + 32], group[48] = "";
    snprintf(path, sizeof path, "%s%s", survey->root, node);
    const bool known = gpuhal_os_file_state(path, &state) == 0;
    const bool by_group = known && (state.mode & 0060) == 0060 && state.group != 0;
    const bool by_all = known && (state.mode & 0006) == 0006; /* if so, an access control list or a security module
                                                               * denies access */
    const gpuhal_hardware_place place = gpuhal_hardware_machine_of(survey)->place;
    gpuhal_hardware_group(survey, known ? state.group : 0, group, sizeof group);
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_PERMISSION, GPUHAL_HARDWARE_PROBLEM,
                          by_all                      ? "this user may not open %s, although its mode allows it%.0s"
                          : by_group                  ? "this user may not open %s, which is for the group %s"
                          : known && state.group != 0 ? "this user may not open %s, and neither may its group %s"
                                                      : "this user may not open %s, which is for root%.0s",
                          node, group);
    if (by_all) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "getfacl %s; sudo dmesg | grep -i denied", node);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                 "# \"denied\" names the security module whose rule refuses it");
    } else if (place == GPUHAL_PLACE_PODMAN) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, ON_THE_HOST);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "podman run --group-add keep-groups …");
    } else if (by_group && place == GPUHAL_PLACE_DOCKER) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, ON_THE_HOST);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "docker run --group-add %u …", (unsigned)state.group);
    } else if (place != GPUHAL_PLACE_HOST) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, ON_THE_HOST);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "ls -ln %s", node);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                 "# give it a group with rw, and run the container in that group");
    } else if (by_group) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo usermod -aG %s $USER", group);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, LOG_IN_AGAIN);
    } else if (strncmp(node, "/dev/nvidia", strlen("/dev/nvidia")) == 0) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "grep -r NVreg_DeviceFile /etc/modprobe.d");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                 "# these options exclude other users: remove them, or join the group");
    } else {
        /* Sets the same permissions as udev's rules. */
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo chgrp render %s && sudo chmod g+rw %s", node, node);
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "sudo usermod -aG render $USER");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, LOG_IN_AGAIN);
    }
}

static bool find_node(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, const char *node,
                      gpuhal_hardware_finding *out)
{
    char path[GPUHAL_SYSTEM_ROOT_BYTES + 32];
    if (!*node) {
        return false;
    }
    snprintf(path, sizeof path, "%s%s", survey->root, node);
    if (!gpuhal_hardware_is_there(survey, "%s", node)) {
        find_missing(survey, one, node, out);
        return true;
    }
    if (gpuhal_os_may_use(path) != 0) {
        find_refused(survey, node, out);
        return true;
    }
    return false;
}

static void find_nouveau(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_finding *out)
{
    const bool is_installed = state_of_module(survey, 0) >= MODULE_INSTALLED;
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_PROBLEM,
                          "the kernel driver nouveau is bound to it, and CUDA needs the module nvidia, which is %s",
                          is_installed ? "installed" : "not installed");
    if (is_installed) {
        gpuhal_hardware_keep_nouveau_out(survey, out->fix, sizeof out->fix);
    } else {
        gpuhal_hardware_install_driver(survey, one, out->fix, sizeof out->fix);
    }
}

bool gpuhal_hardware_find_kernel(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, bool has_library,
                                 gpuhal_hardware_finding *out)
{
    const char *display = display_of(one);
    if (display) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_DISPLAY_ONLY, GPUHAL_HARDWARE_FINE, "%s, which no API drives",
                              display);
        return true;
    }
    if (!one->kernel_driver[0]) {
        find_unbound(survey, one, has_library, out);
        return true;
    }
    if (strcmp(one->kernel_driver, "vfio-pci") == 0 || strcmp(one->kernel_driver, "pci-stub") == 0) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_PASSED_THROUGH,
                              one->is_virtual_function ? GPUHAL_HARDWARE_FINE : GPUHAL_HARDWARE_NOTE,
                              "it is bound to %s, for virtual machines", one->kernel_driver);
        gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo fuser -v /dev/vfio/*");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                 "# lists the virtual machine that has it; none: bind its own driver");
        return true;
    }
    if (strcmp(one->kernel_driver, "nouveau") == 0 && has_library) {
        find_nouveau(survey, one, out);
        return true;
    }
    if (one->functions > 0) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_PASSED_THROUGH, GPUHAL_HARDWARE_NOTE,
                              "it is shared out to virtual machines as %u vGPUs, and CUDA does not run on this host",
                              one->functions);
        gpuhal_hardware_text(out->fix, sizeof out->fix, "nvidia-smi vgpu");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                 "# lists the virtual machines that use it; nothing is to be mended");
        return true;
    }
    if (one->is_excluded) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE,
                              "the option NVreg_ExcludedGpus leaves it out of the driver nvidia");
        gpuhal_hardware_text(out->fix, sizeof out->fix, "grep -r NVreg_ExcludedGpus /etc/modprobe.d /proc/cmdline");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix,
                                 "# to use it: take it out of that option, and restart the machine");
        return true;
    }
    /* Without ROCm's libraries, /dev/kfd is irrelevant. */
    const bool is_kfd = strcmp(one->vendor_node, "/dev/kfd") == 0;
    return find_node(survey, one, is_kfd && !has_library ? "" : one->vendor_node, out) ||
           (is_nvidia(one) ? find_node(survey, one, "/dev/nvidiactl", out)
                           : find_node(survey, one, one->drm_render_node, out));
}
