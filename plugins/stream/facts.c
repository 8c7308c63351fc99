/* stream/facts.c: lists the facts that the vendor's API reports about a device. Facts that the API does not report are
 * listed as missing, with a reason. */
#include "device.h"

#include <gpuhal/native.h>

#include <stdio.h>
#include <string.h>

static const struct {
    gpuhal_key key;
    const char *why;
} absent[] = {
    {GPUHAL_FACT_LUID, "only Windows gives them"},
    {GPUHAL_FACT_ALLOCATION_MAX_COUNT, GPUHAL_VENDOR_API " states no limit"},
    {GPUHAL_FACT_DRIVER_UUID, GPUHAL_VENDOR_API " does not report it"},
};

/* Drivers return ASCII. A faulty driver may return other characters; they become '?'. */
static void list_name(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry)
{
    char name[256] = "";
    const vendor_code code = GPUHAL_VENDOR(DeviceGetName)(name, (int)sizeof name - 1, entry->device);
    if (code != GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(ignore)(code);
        name[0] = '\0';
    }
    for (char *at = name; *at != '\0'; at++) {
        *at = *at >= 0x20 && *at < 0x7f ? *at : '?';
    }
    size_t start = strspn(name, " "), length = strlen(name);
    while (length > start && name[length - 1] == ' ') {
        name[--length] = '\0';
    }
    GPUHAL_OWN(name_part)(entry, name, sizeof name);
    host->text(host, sink, GPUHAL_FACT_NAME, name[start] != '\0' ? name + start : GPUHAL_VENDOR_API " device");
}

static void list_versions(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry)
{
    if (entry->driver_version[0] != '\0') {
        host->text(host, sink, GPUHAL_FACT_DRIVER_VERSION, entry->driver_version);
    } else {
        host->missing(host, sink, GPUHAL_FACT_DRIVER_VERSION, GPUHAL_MISSING_NOT_SUPPORTED,
                      GPUHAL_VENDOR_NO_DRIVER_VERSION);
    }
    char version[32], text[96];
    if (!GPUHAL_OWN(api_version)(version, sizeof version)) {
        host->missing(host, sink, GPUHAL_FACT_API_VERSION, GPUHAL_MISSING_FAILED,
                      GPUHAL_VENDOR_SPEAKER " gives no version");
        return;
    }
    snprintf(text, sizeof text, GPUHAL_VENDOR_API " %s, compute capability %d.%d", version,
             GPUHAL_OWN(attribute)(entry->device, GPUHAL_VENDOR_ATTRIBUTE_MAJOR, 0),
             GPUHAL_OWN(attribute)(entry->device, GPUHAL_VENDOR_ATTRIBUTE_MINOR, 0));
    host->text(host, sink, GPUHAL_FACT_API_VERSION, text);
}

static void list_memory(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry)
{
    /* One allocation may use all memory, and the device's address space is flat. */
    GPUHAL_OWN(list_number)(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, entry->total);
    GPUHAL_OWN(list_number)(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, entry->total);
    GPUHAL_OWN(list_number)(host, sink, GPUHAL_FACT_BINDING_MAX_BYTES, entry->total);
    host->u64(host, sink, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 16); /* the widest load instruction of a thread */
    host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, 1);
    host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 1);
    const bool direct = GPUHAL_OWN(attribute)(entry->device, GPUHAL_VENDOR_ATTRIBUTE_PAGEABLE, 0) != 0;
    host->u64(host, sink, GPUHAL_FACT_PAGEABLE_ACCESS, direct ? 2 : 1);
    uint32_t kinds = 1u << GPUHAL_MEMORY_DEVICE;
    if (entry->maps_host) {
        kinds |= 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK;
    }
    kinds |= entry->has_managed ? 1u << GPUHAL_MEMORY_MIGRATING : 0;
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, kinds);
    host->u64(host, sink, GPUHAL_FACT_KERNEL_KINDS, kinds); /* page-locked memory is mapped into the device */
    host->u64(host, sink, GPUHAL_FACT_LAUNCH_FORMS, GPUHAL_STREAM_LAUNCH_FORMS);
    /* Page-locked and managed memory keep their addresses and are coherent (memory.c). */
    host->u64(host, sink, GPUHAL_FACT_HOST_VISIBLE_KINDS, kinds & ~(1u << GPUHAL_MEMORY_DEVICE));
    host->u64(host, sink, GPUHAL_FACT_HOST_COHERENT_KINDS, kinds & ~(1u << GPUHAL_MEMORY_DEVICE));
}

static void list_sharing(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry)
{
    if (entry->exports_fd) {
        host->u64(host, sink, GPUHAL_FACT_EXPORT_KINDS, 1u << GPUHAL_HANDLE_OPAQUE_FD);
        host->u64(host, sink, GPUHAL_FACT_EXPORTABLE_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
    } else {
        host->missing(host, sink, GPUHAL_FACT_EXPORT_KINDS, GPUHAL_MISSING_NOT_SUPPORTED,
                      GPUHAL_VENDOR_SPEAKER " does not export memory of this device");
    }
    const uint32_t imports = (entry->registers_host ? 1u << GPUHAL_HANDLE_HOST_POINTER : 0) |
                             (entry->exports_fd ? 1u << GPUHAL_HANDLE_OPAQUE_FD : 0);
    if (imports != 0) {
        host->u64(host, sink, GPUHAL_FACT_IMPORT_KINDS, imports);
    } else {
        host->missing(host, sink, GPUHAL_FACT_IMPORT_KINDS, GPUHAL_MISSING_NOT_SUPPORTED,
                      GPUHAL_VENDOR_SPEAKER " imports no memory");
    }
    if (entry->registers_host) {
        host->u64(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, GPUHAL_HOST_PAGE);
    } else {
        host->missing(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, GPUHAL_MISSING_NOT_SUPPORTED,
                      GPUHAL_VENDOR_SPEAKER " imports no host memory");
    }
    host->u64(host, sink, GPUHAL_FACT_ADOPT_KINDS,
              1u << GPUHAL_VENDOR_NATIVE(DEVICE) | 1u << GPUHAL_VENDOR_NATIVE(MEMORY) |
                  1u << GPUHAL_VENDOR_NATIVE(STREAM));
}

void GPUHAL_OWN(list_facts)(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_stream_entry *entry)
{
    const int device = entry->device;
    const bool integrated = GPUHAL_OWN(attribute)(device, GPUHAL_VENDOR_ATTRIBUTE_INTEGRATED, 0) != 0;
    list_name(host, sink, entry);
    host->text(host, sink, GPUHAL_FACT_VENDOR, GPUHAL_VENDOR_COMPANY);
    host->u64(host, sink, GPUHAL_FACT_VENDOR_ID, GPUHAL_VENDOR_PCI_ID);
    host->u64(host, sink, GPUHAL_FACT_TYPE, integrated ? GPUHAL_DEVICE_INTEGRATED_GPU : GPUHAL_DEVICE_GPU);
    host->u64(host, sink, GPUHAL_FACT_UNIFIED_MEMORY, integrated ? 1 : 0);
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 0);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, entry->ordinal);
    host->text(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, GPUHAL_VENDOR_FORMATS);
    list_versions(host, sink, entry);
    list_memory(host, sink, entry);
    list_sharing(host, sink, entry);
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        host->missing(host, sink, absent[i].key, GPUHAL_MISSING_NOT_SUPPORTED, absent[i].why);
    }
    GPUHAL_OWN(list_identity)(host, sink, entry);
    GPUHAL_OWN(list_compute)(host, sink, entry);
    const int mode = GPUHAL_OWN(attribute)(device, GPUHAL_VENDOR_ATTRIBUTE_COMPUTE_MODE, 0);
    host->u64(host, sink, GPUHAL_FACT_COMPUTE_MODE,
              mode == 2   ? GPUHAL_COMPUTE_PROHIBITED /* both vendors use these numbers */
              : mode == 0 ? GPUHAL_COMPUTE_SHARED
                          : GPUHAL_COMPUTE_EXCLUSIVE);
}
