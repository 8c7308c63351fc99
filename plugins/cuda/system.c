/* cuda/system.c: reads the system's files about the kernel driver.
 *
 * libcuda returns the same "no device" in three cases: the kernel has loaded no driver, the device nodes are not mapped
 * into the container, or this user may not open them. The files show the cause.
 */
#include "device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Uses no file descriptor, so that the result is also correct in a process that has no descriptors left. */
static bool may(const char *name, int what)
{
    char path[GPUHAL_STREAM_PATH];
    gpuhal_cuda_path(path, "%s", name);
    return access(path, what) == 0;
}

bool gpuhal_cuda_read_module_version(char *out_text, size_t size)
{
    char path[GPUHAL_STREAM_PATH];
    gpuhal_cuda_path(path, "/sys/module/nvidia/version");
    return gpuhal_cuda_read_line(path, out_text, size);
}

/* Each GPU has a folder with its PCI address as the name. */
uint32_t gpuhal_cuda_count_system(void)
{
    char path[GPUHAL_STREAM_PATH];
    gpuhal_cuda_path(path, "/proc/driver/nvidia/gpus");
    DIR *folder = opendir(path);
    uint32_t count = 0;
    for (const struct dirent *one = folder ? readdir(folder) : NULL; one; one = readdir(folder)) {
        count += one->d_name[0] != '.';
    }
    if (folder) {
        closedir(folder);
    }
    return count;
}

/* The Tegra GPU driver has another name. The module named nvidia may also be loaded, but only for displays. */
static bool has_tegra_driver(void)
{
    return may("/sys/module/nvgpu", F_OK);
}

/* A container may show only one of the two paths. */
static bool has_module(void)
{
    return !has_tegra_driver() && (may("/sys/module/nvidia", F_OK) || may("/proc/driver/nvidia/version", F_OK));
}

/* WSL provides the Windows driver through a device node. */
static bool has_kernel_driver(void)
{
    return has_module() || has_tegra_driver() || may("/dev/dxg", F_OK);
}

#define UVM_MODULE "/sys/module/nvidia_uvm"

/* Returns the inode of the module's folder. The kernel assigns a new inode each time the module is loaded, but does not
 * change the module's device node. */
static uint64_t uvm_number(void)
{
    char path[GPUHAL_STREAM_PATH];
    struct stat folder;
    gpuhal_cuda_path(path, UVM_MODULE);
    return stat(path, &folder) == 0 ? folder.st_ino : 0;
}

uint64_t gpuhal_cuda_see_system(void)
{
    return (has_kernel_driver() ? 1u : 0) | (may("/dev/nvidiactl", R_OK | W_OK) ? 2u : 0) |
           (may("/dev/nvidia-uvm", R_OK | W_OK) ? 4u : 0) | uvm_number() << 3;
}

/* According to public reports, reloading the module removes this error after a suspend (ollama#6647). */
const char *gpuhal_cuda_explain_unknown(void)
{
    return may(UVM_MODULE, F_OK)
               ? "the driver cannot say why it does not work: after a suspend, load nvidia_uvm anew (rmmod nvidia_uvm; "
                 "modprobe nvidia_uvm); else see the kernel's log for lines with NVRM"
               : "the driver cannot say why it does not work: see the kernel's log for lines with NVRM";
}

bool gpuhal_cuda_lacks_uvm(void)
{
    return has_module() && !may("/dev/nvidia-uvm", F_OK);
}

gpuhal_status gpuhal_cuda_explain_nothing(char *out_text, size_t size)
{
    char path[GPUHAL_STREAM_PATH];
    gpuhal_cuda_path(path, "/dev/nvidiactl");
    const int node = open(path, O_RDWR | O_CLOEXEC);
    const int error = node >= 0 ? 0 : errno;
    if (node >= 0) {
        close(node);
    }
    if (error != 0 && may("/sys/module", F_OK) && !has_kernel_driver()) {
        snprintf(out_text, size,
                 "libcuda is installed, but the kernel has loaded no NVIDIA driver; if there is a GPU, modprobe nvidia "
                 "loads it");
        return GPUHAL_ERROR_NO_DEVICE;
    }
    if (error == EACCES || error == EPERM) {
        snprintf(out_text, size,
                 "this user may not open /dev/nvidiactl: give the user, or the container, access to /dev/nvidia*");
        return GPUHAL_ERROR_NO_PERMISSION;
    }
    if (error == ENOENT && has_module()) {
        snprintf(out_text, size,
                 "the kernel has loaded the NVIDIA driver, but /dev/nvidiactl is missing: give the container the "
                 "GPU, or let "
                 "nvidia-modprobe make the nodes");
        return GPUHAL_ERROR_NO_DEVICE;
    }
    snprintf(out_text, size, "the driver is installed, but lists no CUDA device");
    return GPUHAL_ERROR_NO_DEVICE;
}
