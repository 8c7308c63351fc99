/* cuda/system.c: what the system's files tell: of the kernel's half of the driver, and of devices on the PCI bus. Reading them
 * touches no GPU.
 *
 * libcuda finds no device alike where the kernel has loaded no driver, where a container was not given the device nodes, and
 * where this user may not open them. The files tell these apart.
 */
#include "device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 400u

static char root[256]; /* written by the first start(), before anything is looked for; "" is the machine's own */

gpuhal_status gpuhal_cuda_use_system(const gpuhal_host *host, bool first)
{
    char value[sizeof root];
    gpuhal_status status = host->option(host, "cuda.system_root", value, sizeof value);
    if (status != GPUHAL_ERROR_NOT_FOUND && (status || value[0] != '/')) {
        char text[400];
        snprintf(text, sizeof text,
                 "the option cuda.system_root is \"%.250s\"; it takes the absolute path of a directory", value);
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, text);
    }
    if (!first && strcmp(root, value) != 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "the option cuda.system_root was another one when this process first used the plugin");
    }
    memcpy(root, value, sizeof root);
    return GPUHAL_OK;
}

static int open_file(int flags, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int open_file(int flags, const char *format, ...)
{
    char path[PATH_BYTES];
    const int length = snprintf(path, sizeof path, "%s", root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + length, sizeof path - (size_t)length, format, arguments);
    va_end(arguments);
    return open(path, flags | O_CLOEXEC);
}

/* Takes no descriptor: a process that has none left is to hear nothing wrong of the kernel. */
static bool may(const char *name, int what)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s%s", root, name);
    return access(path, what) == 0;
}

/* The first line. Closes the file, which may be none. */
static bool read_line(int file, char *out_text, size_t size)
{
    const ssize_t length = file >= 0 ? read(file, out_text, size - 1) : 0;
    if (file >= 0) {
        close(file);
    }
    out_text[length > 0 ? length : 0] = '\0';
    out_text[strcspn(out_text, "\n")] = '\0';
    return out_text[0] != '\0';
}

bool gpuhal_cuda_read_system(const gpuhal_cuda_entry *entry, const char *name, char *out_text, size_t size)
{
    const int file = entry->pci[0] != '\0' ? open_file(O_RDONLY, "/sys/bus/pci/devices/%s/%s", entry->pci, name) : -1;
    return read_line(file, out_text, size);
}

bool gpuhal_cuda_read_module_version(char *out_text, size_t size)
{
    return read_line(open_file(O_RDONLY, "/sys/module/nvidia/version"), out_text, size);
}

/* Each GPU has a folder here, named by its address. */
uint32_t gpuhal_cuda_count_system(void)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", root);
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

/* Tegra has one of another name for its GPU, and that named nvidia may be there too, for displays alone. */
static bool has_tegra_driver(void)
{
    return may("/sys/module/nvgpu", F_OK);
}

/* Containers may show one of the two. */
static bool has_module(void)
{
    return !has_tegra_driver() && (may("/sys/module/nvidia", F_OK) || may("/proc/driver/nvidia/version", F_OK));
}

/* WSL has Windows' driver behind a node. */
static bool has_kernel_driver(void)
{
    return has_module() || has_tegra_driver() || may("/dev/dxg", F_OK);
}

uint32_t gpuhal_cuda_see_system(void)
{
    return (has_kernel_driver() ? 1u : 0) | (may("/dev/nvidiactl", R_OK | W_OK) ? 2u : 0) |
           (may("/dev/nvidia-uvm", R_OK | W_OK) ? 4u : 0);
}

bool gpuhal_cuda_lacks_uvm(void)
{
    return has_module() && !may("/dev/nvidia-uvm", F_OK);
}

gpuhal_status gpuhal_cuda_explain_nothing(char *out_text, size_t size)
{
    const int node = open_file(O_RDWR, "/dev/nvidiactl");
    const int error = node >= 0 ? 0 : errno;
    if (node >= 0) {
        close(node);
    }
    if (error != 0 && may("/sys/module", F_OK) && !has_kernel_driver()) {
        snprintf(out_text, size,
                 "libcuda is there, and the kernel has loaded no NVIDIA driver; where there is a GPU, modprobe nvidia loads it");
        return GPUHAL_ERROR_NO_DEVICE;
    }
    if (error == EACCES || error == EPERM) {
        snprintf(out_text, size, "/dev/nvidiactl may not be opened: the user, or the container, has to be given /dev/nvidia*");
        return GPUHAL_ERROR_NO_PERMISSION;
    }
    if (error == ENOENT && has_module()) {
        snprintf(out_text, size,
                 "the kernel has loaded the NVIDIA driver, and there is no /dev/nvidiactl: give the container the GPU, or let "
                 "nvidia-modprobe make the nodes");
        return GPUHAL_ERROR_NO_DEVICE;
    }
    snprintf(out_text, size, "the driver is installed and lists no CUDA device");
    return GPUHAL_ERROR_NO_DEVICE;
}
