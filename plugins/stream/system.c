/* stream/system.c: reads files of the kernel driver, and sysfs files of PCI devices. Reading them does not wake a GPU,
 * except for the files named in telemetry.c. Telemetry reads those files only while the GPU is awake.
 *
 * All paths are below the directory given by the option PLUGIN.system_root, which the core sets from
 * GPUHAL_SYSTEM_ROOT.
 */
#include "../common/file.h"
#include "device.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char root[256]; /* written by the first start() before any file is read; "" means the machine's root */

gpuhal_status GPUHAL_OWN(use_system)(const gpuhal_host *host, bool first)
{
    char value[sizeof root] = ""; /* if the option is not set, option() may write anything here */
    gpuhal_status status = host->option(host, GPUHAL_VENDOR_PLUGIN ".system_root", value, sizeof value);
    if (status != GPUHAL_ERROR_NOT_FOUND && (status || value[0] != '/')) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "GPUHAL_SYSTEM_ROOT is not the absolute path of a directory, of less than 256 bytes");
    }
    if (!first && strcmp(root, value) != 0) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "GPUHAL_SYSTEM_ROOT was another one when this process first used the plugin");
    }
    if (first) {
        /* Later calls never write it, not even the same value, because other threads may be reading it without a
         * lock. */
        memcpy(root, value, sizeof root);
    }
    return GPUHAL_OK;
}

/* A truncated path does not name a file. */
void GPUHAL_OWN(path)(char out_path[GPUHAL_STREAM_PATH], const char *format, ...)
{
    const int length = snprintf(out_path, GPUHAL_STREAM_PATH, "%s", root);
    va_list arguments;
    va_start(arguments, format);
    /* The root is shorter than half of the buffer, so the difference is positive. */
    vsnprintf(out_path + length, GPUHAL_STREAM_PATH - (size_t)length, format, arguments);
    va_end(arguments);
}

size_t GPUHAL_OWN(read_file)(const char *path, char *out_bytes, size_t size)
{
    const int file = gpuhal_plugin_open_plain(path);
    const ssize_t length = file >= 0 ? read(file, out_bytes, size - 1) : -1;
    const int error = errno;
    if (file >= 0) {
        close(file);
    }
    out_bytes[length > 0 ? length : 0] = '\0';
    errno = length < 0 ? error : 0;
    return length > 0 ? (size_t)length : 0;
}

bool GPUHAL_OWN(read_line)(const char *path, char *out_text, size_t size)
{
    (void)GPUHAL_OWN(read_file)(path, out_text, size);
    out_text[strcspn(out_text, "\n")] = '\0';
    return out_text[0] != '\0';
}

bool GPUHAL_OWN(read_system)(const gpuhal_stream_entry *entry, const char *name, char *out_text, size_t size)
{
    char path[GPUHAL_STREAM_PATH];
    GPUHAL_OWN(path)(path, GPUHAL_STREAM_DEVICES "/%s/%s", entry->pci, name);
    return GPUHAL_OWN(read_line)(entry->pci[0] != '\0' ? path : "", out_text, size);
}

/* The kernel writes -1 if the firmware does not report a node, as on every machine with one node. */
void GPUHAL_OWN(list_numa_node)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry)
{
    char text[16];
    unsigned node = 0;
    if (GPUHAL_OWN(read_system)(entry, "numa_node", text, sizeof text) && isdigit((unsigned char)text[0]) &&
        sscanf(text, "%5u", &node) == 1) {
        host->u64(host, sink, GPUHAL_FACT_NUMA_NODE, node);
    } else {
        host->missing(host, sink, GPUHAL_FACT_NUMA_NODE, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the system does not report it");
    }
}

/* Only a GPU that no process uses can sleep, so a GPU that the plugin has opened is awake. */
bool GPUHAL_OWN(is_asleep)(const gpuhal_stream_entry *entry)
{
    char text[24];
    return GPUHAL_OWN(read_system)(entry, "power/runtime_status", text, sizeof text) && strcmp(text, "suspended") == 0;
}

uint64_t GPUHAL_OWN(pcie_speed)(uint64_t generation, uint64_t lanes)
{
    /* Bytes per second of one lane, after line coding. */
    static const uint64_t speeds[] = {0, 250000000, 500000000, 984615384, 1969230769, 3938461538, 7563000000};
    return generation < sizeof speeds / sizeof speeds[0] ? speeds[generation] * lanes : 0;
}
