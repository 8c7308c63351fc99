/* rocm/system.c: what the kernel's amdgpu driver tells in files. Reading the files of this page touches no GPU but for those that
 * telemetry.c names, which it reads only while the GPU is awake.
 */
#include "device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMPUTE_NODES "/sys/class/kfd/kfd/topology/nodes"

bool gpuhal_rocm_read_line(const char *path, char *out_text, size_t size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, out_text, size - 1) : -1;
    const int error = errno;
    if (file >= 0) {
        close(file);
    }
    out_text[length > 0 ? length : 0] = '\0';
    out_text[strcspn(out_text, "\n")] = '\0';
    errno = length < 0 ? error : 0;
    return out_text[0] != '\0';
}

bool gpuhal_rocm_read_system(const gpuhal_rocm_entry *entry, const char *name, char *out_text, size_t size)
{
    char path[160];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", entry->pci, name);
    out_text[0] = '\0';
    errno = ENOENT;
    return entry->pci[0] != '\0' && gpuhal_rocm_read_line(path, out_text, size);
}

bool gpuhal_rocm_find_name(const char *directory, const char *prefix, char *out_name, size_t size)
{
    DIR *listing = opendir(directory);
    bool found = false;
    while (listing && !found) {
        const struct dirent *entry = readdir(listing);
        if (!entry) {
            break;
        }
        found = strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && strlen(entry->d_name) < size;
        if (found) {
            snprintf(out_name, size, "%s", entry->d_name);
        }
    }
    if (listing) {
        closedir(listing);
    }
    return found;
}

/* Processors are nodes too: their gpu_id is 0. */
uint32_t gpuhal_rocm_count_system(void)
{
    uint32_t count = 0;
    DIR *listing = opendir(COMPUTE_NODES);
    const struct dirent *entry = listing ? readdir(listing) : NULL;
    for (; entry; entry = readdir(listing)) {
        char path[sizeof COMPUTE_NODES + 32], text[24];
        if (entry->d_name[0] == '.' || strlen(entry->d_name) > 10) {
            continue;
        }
        snprintf(path, sizeof path, COMPUTE_NODES "/%.10s/gpu_id", entry->d_name);
        count += gpuhal_rocm_read_line(path, text, sizeof text) && strcmp(text, "0") != 0 ? 1 : 0;
    }
    if (listing) {
        closedir(listing);
    }
    return count;
}
