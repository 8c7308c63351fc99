/* rocm/system.c: what the kernel's amdgpu driver tells in files. Reading the files of this page touches no GPU but for those that
 * telemetry.c names, which it reads only while the GPU is awake.
 */
#include "device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char root[256]; /* written once, before anything is looked for; "" is the machine's own */

gpuhal_status gpuhal_rocm_use_system(const gpuhal_host *host)
{
    const char *value = host->setting(host, "SYSTEM_ROOT");
    if (value && (value[0] != '/' || strlen(value) >= sizeof root)) {
        char text[400];
        snprintf(text, sizeof text, "GPUHAL_SYSTEM_ROOT is \"%.250s\"; it takes the absolute path of a directory", value);
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, text);
    }
    snprintf(root, sizeof root, "%s", value ? value : "");
    return GPUHAL_OK;
}

/* A path that is cut off names nothing. */
void gpuhal_rocm_path(char out_path[GPUHAL_ROCM_PATH], const char *format, ...)
{
    const int length = snprintf(out_path, GPUHAL_ROCM_PATH, "%s", root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out_path + length, GPUHAL_ROCM_PATH - (size_t)length, format, arguments);
    va_end(arguments);
}

size_t gpuhal_rocm_read_file(const char *path, char *out_bytes, size_t size)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, out_bytes, size - 1) : -1;
    const int error = errno;
    if (file >= 0) {
        close(file);
    }
    out_bytes[length > 0 ? length : 0] = '\0';
    errno = length < 0 ? error : 0;
    return length > 0 ? (size_t)length : 0;
}

bool gpuhal_rocm_read_line(const char *path, char *out_text, size_t size)
{
    (void)gpuhal_rocm_read_file(path, out_text, size);
    out_text[strcspn(out_text, "\n")] = '\0';
    return out_text[0] != '\0';
}

bool gpuhal_rocm_read_system(const gpuhal_rocm_entry *entry, const char *name, char *out_text, size_t size)
{
    char path[GPUHAL_ROCM_PATH];
    gpuhal_rocm_path(path, GPUHAL_ROCM_DEVICES "/%s/%s", entry->pci, name);
    return gpuhal_rocm_read_line(entry->pci[0] != '\0' ? path : "", out_text, size);
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
    char path[GPUHAL_ROCM_PATH], text[24];
    gpuhal_rocm_path(path, GPUHAL_ROCM_NODES);
    DIR *listing = opendir(path);
    const struct dirent *entry = listing ? readdir(listing) : NULL;
    for (; entry; entry = readdir(listing)) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) > 10) {
            continue;
        }
        gpuhal_rocm_path(path, GPUHAL_ROCM_NODES "/%.10s/gpu_id", entry->d_name);
        count += gpuhal_rocm_read_line(path, text, sizeof text) && strcmp(text, "0") != 0 ? 1 : 0;
    }
    if (listing) {
        closedir(listing);
    }
    return count;
}
