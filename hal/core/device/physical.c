/* device/physical.c: determines the physical devices of a snapshot, their interfaces including the preferred interface,
 * and the evidence about them. */
#include "device/snapshot.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

const gpuhal_interface *gpuhal_device_snapshot_interface(const gpuhal_device_snapshot *snapshot,
                                                         const gpuhal_device *device)
{
    const gpuhal_entry *entry = gpuhal_device_snapshot_entry(snapshot, device);
    return entry ? &snapshot->identity.interfaces[entry - snapshot->entries] : NULL;
}

bool gpuhal_devices_same_part(const gpuhal_device *a, const gpuhal_device *b)
{
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(a->gpu);
    const gpuhal_interface *one = gpuhal_device_snapshot_interface(snapshot, a),
                           *other = gpuhal_device_snapshot_interface(snapshot, b);
    return a == b || (one && other && one->partition == other->partition);
}

bool gpuhal_devices_same_piece(const gpuhal_device *a, const gpuhal_device *b)
{
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(a->gpu);
    const gpuhal_interface *one = gpuhal_device_snapshot_interface(snapshot, a),
                           *other = gpuhal_device_snapshot_interface(snapshot, b);
    return a == b || (one && other && one->physical == other->physical);
}

/* `cpu` is last in the order of backends, but it is the preferred interface of the CPU, so a software device never
 * outranks it. */
static bool outranks(const gpuhal_entry *later, const gpuhal_entry *earlier)
{
    return strcmp(later->candidate->name, "cpu") == 0 && strcmp(earlier->candidate->name, "cpu") != 0;
}

/* At each step, one of a partition's earlier visible interfaces is preferred, and the next interface may replace it. */
void gpuhal_device_snapshot_mark_preferred(gpuhal_device_snapshot *snapshot)
{
    const gpuhal_interface *interfaces = snapshot->identity.interfaces;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        gpuhal_entry *entry = &snapshot->entries[i];
        entry->preferred = entry->device != NULL;
        for (uint32_t e = 0; entry->device && e < i; e++) {
            gpuhal_entry *earlier = &snapshot->entries[e];
            if (earlier->preferred && interfaces[i].partition == interfaces[e].partition) {
                earlier->preferred = !outranks(entry, earlier);
                entry->preferred = !earlier->preferred;
            }
        }
    }
}

/* Returns the first value that an interface of the whole device states; "" if none. For the PCI address, interfaces of
 * partitions count as well. Values of software devices do not describe the CPU. */
static const char *first_value(const gpuhal_device_snapshot *snapshot, uint32_t physical, gpuhal_identity_level level)
{
    const gpuhal_identity *identity = &snapshot->identity;
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_interface *iface = &identity->interfaces[i];
        bool whole = level == GPUHAL_IDENTITY_PCI || !*iface->partition_name;
        if (iface->physical == physical && whole && iface->values[level]) {
            return iface->values[level];
        }
    }
    return "";
}

static bool is_first(const gpuhal_device_snapshot *snapshot, uint32_t index)
{
    const gpuhal_interface *interfaces = snapshot->identity.interfaces;
    bool first = snapshot->entries[index].device != NULL;
    for (uint32_t i = 0; first && i < index; i++) {
        first = !snapshot->entries[i].device || interfaces[i].physical != interfaces[index].physical;
    }
    return first;
}

static void add_physical(gpuhal_device_snapshot *snapshot, uint32_t index, const gpuhal_identity_evidence_list *found)
{
    const gpuhal_interface *interfaces = snapshot->identity.interfaces;
    const uint32_t physical = interfaces[index].physical;
    gpuhal_physical_info *info = &snapshot->physicals[snapshot->physical_count++];
    *info = (gpuhal_physical_info){
        .number = snapshot->entries[index].device->physical_number,
        .pci_address = first_value(snapshot, physical, GPUHAL_IDENTITY_PCI),
        .uuid = first_value(snapshot, physical, GPUHAL_IDENTITY_UUID),
        .first_interface = snapshot->interface_count,
        .first_evidence = snapshot->evidence.count,
    };
    for (uint32_t i = index; i < snapshot->identity.count; i++) {
        gpuhal_device *device = snapshot->entries[i].device;
        if (device && interfaces[i].physical == physical) {
            snapshot->interfaces[snapshot->interface_count++] =
                (gpuhal_interface_info){.number = device->interface_number, .physical = info->number, .device = device};
        }
    }
    for (uint32_t i = 0; i < found->count; i++) {
        if (found->list[i].physical == physical) {
            gpuhal_identity_evidence *one = &snapshot->evidence.list[snapshot->evidence.count++];
            *one = found->list[i];
            one->evidence.physical = info->number;
        }
    }
    info->device_count = snapshot->interface_count - info->first_interface;
    info->evidence_count = snapshot->evidence.count - info->first_evidence;
}

/* Takes ownership of the evidence, which is only about physical devices with a visible interface. */
static gpuhal_status list_physicals(gpuhal_device_snapshot *snapshot, gpuhal_identity_evidence_list *found)
{
    const uint32_t count = snapshot->identity.count;
    snapshot->physicals = calloc(count + 1u, sizeof *snapshot->physicals);
    snapshot->interfaces = calloc(count + 1u, sizeof *snapshot->interfaces);
    snapshot->evidence.list = calloc(found->count + 1u, sizeof *found->list);
    if (!snapshot->physicals || !snapshot->interfaces || !snapshot->evidence.list) {
        gpuhal_identity_evidence_finish(found);
        return gpuhal_error_host_memory();
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_first(snapshot, i)) {
            add_physical(snapshot, i, found);
        }
    }
    free(found->list);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_device_snapshot_prefer(gpuhal_device_snapshot *snapshot)
{
    const gpuhal_identity *identity = &snapshot->identity;
    gpuhal_identity_evidence_list found = {0};
    gpuhal_device_snapshot_mark_preferred(snapshot);
    bool *visible = calloc(identity->count + 1u, sizeof *visible);
    if (!visible) {
        return gpuhal_error_host_memory();
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        visible[i] = snapshot->entries[i].device != NULL;
    }
    gpuhal_status status = gpuhal_identity_explain(identity, visible, &found);
    free(visible);
    if (status) {
        gpuhal_identity_evidence_finish(&found);
        return status;
    }
    return list_physicals(snapshot, &found);
}

const char *gpuhal_device_hardware_address(const gpuhal_device *device)
{
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(device->gpu);
    const gpuhal_interface *iface = gpuhal_device_snapshot_interface(snapshot, device);
    const char *address = iface ? first_value(snapshot, iface->physical, GPUHAL_IDENTITY_PCI) : "";
    return *address ? address : NULL;
}
