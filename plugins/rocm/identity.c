/* rocm/identity.c: identifies the physical device by PCI address, UUID and partition.
 *
 * HIP's UUID is not binary. It is the chip's unique id as 16 hexadecimal characters. For chips without a unique id it
 * is "XX", which would make all these chips one device. The 16 bytes are listed unchanged, in the format of a UUID. For
 * a partitioned GPU, HIP lists each partition, with the partition number in place of the PCI function. No such function
 * exists on the bus. Only its siblings distinguish partition 0 from a whole GPU. Some kernels store the partition
 * number in a place that HIP does not read. Then several devices have the same address, and are numbered in HIP's
 * order.
 */
#include "../common/text.h"
#include "device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void write_pci(gpuhal_rocm_entry *entry, unsigned function)
{
    snprintf(entry->pci, sizeof entry->pci, "%04x:%02x:%02x.%x", entry->domain, entry->bus, entry->slot, function);
}

static bool is_on_the_bus(const gpuhal_rocm_entry *entry)
{
    char path[GPUHAL_STREAM_PATH];
    gpuhal_rocm_path(path, GPUHAL_STREAM_DEVICES "/%s", entry->pci);
    return access(path, F_OK) == 0;
}

static void identify_pci(gpuhal_rocm_entry *entry)
{
    char text[sizeof entry->pci] = "";
    unsigned function = 0;
    entry->partition = -1;
    if (gpuhal_rocm_api.hipDeviceGetPCIBusId(text, (int)sizeof text - 1, entry->device) != hipSuccess) {
        (void)gpuhal_rocm_forget(hipErrorUnknown);
        return;
    }
    if (sscanf(text, "%8x:%2x:%2x.%1x", &entry->domain, &entry->bus, &entry->slot, &function) != 4 ||
        entry->slot > 31 || function > 15 || (entry->domain | entry->bus | entry->slot) == 0) {
        return;
    }
    entry->has_address = true;
    write_pci(entry, function);
    if (function != 0 && !is_on_the_bus(entry)) {
        entry->partition = (int32_t)function;
        write_pci(entry, 0);
    }
}

static bool is_none(const hipUUID *uuid)
{
    static const hipUUID zeros, no_unique_id = {.bytes = "XX"};
    return memcmp(uuid, &zeros, sizeof zeros) == 0 || memcmp(uuid, &no_unique_id, sizeof no_unique_id) == 0;
}

static void identify_uuid(gpuhal_rocm_entry *entry)
{
    hipUUID uuid = {{0}};
    if (!gpuhal_rocm_api.hipDeviceGetUuid) {
        return;
    }
    const hipError_t code = gpuhal_rocm_api.hipDeviceGetUuid(&uuid, entry->device);
    if (code != hipSuccess) {
        (void)gpuhal_rocm_forget(code);
        return;
    }
    if (is_none(&uuid)) {
        return;
    }
    gpuhal_plugin_write_uuid(uuid.bytes, entry->uuid);
}

void gpuhal_rocm_identify(gpuhal_rocm_entry *entry)
{
    identify_pci(entry);
    identify_uuid(entry);
}

static bool are_siblings(const gpuhal_rocm_entry *one, const gpuhal_rocm_entry *other)
{
    return one != other && one->has_address && other->has_address && strcmp(one->pci, other->pci) == 0;
}

static bool is_taken(const gpuhal_rocm_entry *entries, uint32_t count, const gpuhal_rocm_entry *own, int32_t number)
{
    bool taken = false;
    for (uint32_t i = 0; i < count; i++) {
        taken = taken || (are_siblings(&entries[i], own) && entries[i].partition == number);
    }
    return taken;
}

/* Two devices at one address are partitions. Partitions with a number from HIP keep it; each of the others gets the
 * lowest free number. is_counted is set only if a sibling has no number from HIP either. If all siblings have a number,
 * the remaining partition is certainly 0. */
void gpuhal_rocm_find_partitions(gpuhal_rocm_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bool divided = false, is_counted = false;
        for (uint32_t j = 0; j < count; j++) {
            const bool sibling = are_siblings(&entries[i], &entries[j]);
            divided = divided || sibling;
            is_counted = is_counted || (sibling && (entries[j].partition < 0 || entries[j].is_counted));
        }
        if (divided && entries[i].partition < 0) {
            int32_t number = 0;
            while (is_taken(entries, count, &entries[i], number)) {
                number++;
            }
            entries[i].partition = number;
            entries[i].is_counted = is_counted;
        }
    }
}

/* ---- reporting */

/* Finds the file that contains the render node's "major:minor". Returns false if the file is unknown. A partition's
 * file belongs to a separate platform device that the kernel's compute driver knows. Also returns false for partitions
 * that the plugin numbered, because the kernel may use other numbers.
 */
static bool find_render_node(const gpuhal_rocm_entry *entry, char out_path[GPUHAL_STREAM_PATH])
{
    char node[24];
    if (entry->partition >= 0) {
        const uint32_t minor = entry->is_counted ? 0 : entry->kernel.render_minor;
        gpuhal_rocm_path(out_path, "/sys/class/drm/renderD%u/dev", (unsigned)minor);
        return minor != 0;
    }
    gpuhal_rocm_path(out_path, GPUHAL_STREAM_DEVICES "/%s/drm", entry->pci);
    if (!entry->has_address || !gpuhal_rocm_find_name(out_path, "renderD", node, sizeof node)) {
        return false;
    }
    gpuhal_rocm_path(out_path, GPUHAL_STREAM_DEVICES "/%s/drm/%s/dev", entry->pci, node);
    return true;
}

static void list_render_node(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_rocm_entry *entry)
{
    char path[GPUHAL_STREAM_PATH], text[24];
    unsigned major = 0, minor = 0;
    if (find_render_node(entry, path) && gpuhal_rocm_read_line(path, text, sizeof text) &&
        sscanf(text, "%9u:%9u", &major, &minor) == 2) {
        snprintf(text, sizeof text, "%u:%u", major, minor);
        host->text(host, sink, GPUHAL_FACT_DRM_RENDER_NODE, text);
    } else {
        host->missing(host, sink, GPUHAL_FACT_DRM_RENDER_NODE, GPUHAL_MISSING_NOT_SUPPORTED,
                      "the system does not report it");
    }
}

/* Reads the partition mode, such as "CPX" or "NPS1"; "" if the driver does not report it. */
static void read_mode(const gpuhal_rocm_entry *entry, const char *file, char mode[16])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    if (!gpuhal_rocm_read_system(entry, file, mode, 16) || mode[strspn(mode, letters)] != '\0') {
        mode[0] = '\0';
    }
}

/* HIP uses the name of the whole GPU for all partitions. Appends a suffix such as "CPX/NPS1 partition 3 of 8", counted
 * from 0 as in the kernel. */
void gpuhal_rocm_name_part(const gpuhal_rocm_entry *entry, char *name, size_t size)
{
    char compute[16], memory[16];
    const size_t length = strlen(name);
    if (entry->partition < 0 || length == 0) {
        return;
    }
    read_mode(entry, "current_compute_partition", compute);
    read_mode(entry, "current_memory_partition", memory);
    const uint32_t count = entry->kernel.parts;
    char total[24] = "";
    if (count > (uint32_t)entry->partition) {
        snprintf(total, sizeof total, " of %u", (unsigned)count);
    }
    snprintf(name + length, size - length, "%s%s%s%s partition %d%s", compute[0] ? " " : "", compute,
             compute[0] && memory[0] ? "/" : "", compute[0] ? memory : "", (int)entry->partition, total);
}

/* Lists nothing, because HIP lists every partition of a GPU. */
void gpuhal_rocm_list_unlisted(const gpuhal_host *host, gpuhal_sink *sink, uint32_t first)
{
    (void)host;
    (void)sink;
    (void)first;
}

void gpuhal_rocm_list_identity(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_rocm_entry *entry)
{
    if (entry->has_address) {
        host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, entry->pci);
    } else {
        host->missing(host, sink, GPUHAL_FACT_PCI_ADDRESS, GPUHAL_MISSING_FAILED, "HIP gives no address");
    }
    if (entry->uuid[0] != '\0') {
        host->text(host, sink, GPUHAL_FACT_UUID, entry->uuid);
    } else {
        host->missing(host, sink, GPUHAL_FACT_UUID, GPUHAL_MISSING_NOT_SUPPORTED,
                      "HIP gives no UUID: the chip has no unique id");
    }
    if (entry->partition >= 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", (int)entry->partition);
        host->text(host, sink, GPUHAL_FACT_PARTITION, text);
    } else {
        host->missing(host, sink, GPUHAL_FACT_PARTITION, GPUHAL_MISSING_NOT_SUPPORTED, "the device is a whole GPU");
    }
    list_render_node(host, sink, entry);
    gpuhal_rocm_list_numa_node(host, sink, entry);
}
