/* rocm/kfd_processes.c: lists the processes that compute on a GPU, from the kernel's compute driver (kfd). For each
 * process kfd has a directory with a file for each GPU. The file contains the amount of this GPU's memory that the
 * process uses. The SMI libraries report the same values, but in structures that differ between releases.
 */
#include "device.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KFD_PROCESSES "/sys/class/kfd/kfd/proc"

/* Lists the process whose directory has this name, if it uses the GPU. */
static void give(const gpuhal_host *host, gpuhal_sink *sink, const char *name, uint32_t gpu)
{
    char path[GPUHAL_STREAM_PATH], text[32], *end = NULL;
    gpuhal_rocm_path(path, KFD_PROCESSES "/%.10s/vram_%" PRIu32, name, gpu);
    if (!gpuhal_rocm_read_line(path, text, sizeof text)) {
        return;
    }
    errno = 0;
    const unsigned long long bytes = text[0] >= '0' && text[0] <= '9' ? strtoull(text, &end, 10) : 0;
    const bool known = end && *end == '\0' && errno == 0;
    const gpuhal_plugin_process process = {.pid = (uint32_t)strtoul(name, NULL, 10),
                                           .flags = GPUHAL_PROCESS_COMPUTE |
                                                    (known ? (uint32_t)GPUHAL_PROCESS_MEMORY_KNOWN : 0),
                                           .memory_bytes = known ? bytes : 0};
    gpuhal_rocm_give_process(host, sink, process);
}

gpuhal_status gpuhal_rocm_processes(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                    uint32_t flags, gpuhal_sink *sink)
{
    (void)instance, (void)flags; /* the kernel counts the memory; no GPU is accessed */
    const gpuhal_rocm_entry *entry = gpuhal_rocm_find(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    const uint32_t gpu = entry->kernel.gpu_id;
    char path[GPUHAL_STREAM_PATH];
    gpuhal_rocm_path(path, KFD_PROCESSES);
    DIR *listing = gpu != 0 ? opendir(path) : NULL;
    if (!listing) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                            gpu == 0 ? "the kernel's compute driver does not list this GPU"
                                     : "the kernel's compute driver lists no processes");
    }
    host->source(host, sink, "sysfs");
    for (const struct dirent *one = readdir(listing); one; one = readdir(listing)) {
        const size_t digits = strspn(one->d_name, "0123456789");
        if (digits > 0 && digits <= 10 && one->d_name[digits] == '\0') {
            give(host, sink, one->d_name, gpu);
        }
    }
    closedir(listing);
    return GPUHAL_OK;
}
