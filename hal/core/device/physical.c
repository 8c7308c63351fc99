/* device/physical.c: physical devices and the preferred interface of each, as of the newest snapshot: the functions of
 * gpuhal/physical.h. */
#include "device/snapshot.h"

#include "base/error.h"

#include <gpuhal/physical.h>

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

/* `cpu` comes last in the order of backends but is the interface to use: a software device never outranks it. */
static bool outranks(const gpuhal_entry *later, const gpuhal_entry *earlier)
{
    return strcmp(later->candidate->name, "cpu") == 0 && strcmp(earlier->candidate->name, "cpu") != 0;
}

/* Among the earlier interfaces of a partition exactly one is preferred; the next one replaces it or does not. */
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

static bool is_listed(const gpuhal_device_snapshot *snapshot, uint32_t physical)
{
    for (uint32_t i = 0; i < snapshot->physical_count; i++) {
        if (snapshot->physicals[i] == physical) {
            return true;
        }
    }
    return false;
}

gpuhal_status gpuhal_device_snapshot_prefer(gpuhal_device_snapshot *snapshot)
{
    const gpuhal_identity *identity = &snapshot->identity;
    gpuhal_device_snapshot_mark_preferred(snapshot);
    bool *visible = calloc(identity->count + 1u, sizeof *visible);
    snapshot->physicals = calloc(identity->count + 1u, sizeof *snapshot->physicals);
    gpuhal_status status = visible && snapshot->physicals ? GPUHAL_OK : gpuhal_error_host_memory();
    for (uint32_t i = 0; !status && i < identity->count; i++) {
        visible[i] = snapshot->entries[i].device != NULL;
        if (visible[i] && !is_listed(snapshot, identity->interfaces[i].physical)) {
            snapshot->physicals[snapshot->physical_count++] = identity->interfaces[i].physical;
        }
    }
    status = status ? status : gpuhal_identity_explain(identity, visible, &snapshot->evidence);
    free(visible);
    return status;
}

uint32_t gpuhal_physical_count(const gpuhal *gpu)
{
    return gpu ? gpuhal_device_snapshot_now(gpu)->physical_count : 0;
}

/* Returns the `index`-th visible interface; NULL past the last. */
static gpuhal_device *nth_interface(const gpuhal_device_snapshot *snapshot, uint32_t physical, uint32_t index)
{
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        if (snapshot->entries[i].device && snapshot->identity.interfaces[i].physical == physical && index-- == 0) {
            return snapshot->entries[i].device;
        }
    }
    return NULL;
}

/* Returns the `index`-th item of evidence; NULL past the last. */
static const gpuhal_evidence *nth_evidence(const gpuhal_device_snapshot *snapshot, uint32_t physical, uint32_t index)
{
    const gpuhal_identity_evidence_list *list = &snapshot->evidence;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->list[i].physical == physical && index-- == 0) {
            return &list->list[i].evidence;
        }
    }
    return NULL;
}

/* Returns the first value that an interface of the whole device states. Values of emulating devices are not the
 * processor's. */
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

const char *gpuhal_device_hardware_address(const gpuhal_device *device)
{
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(device->gpu);
    const gpuhal_interface *iface = gpuhal_device_snapshot_interface(snapshot, device);
    const char *address = iface ? first_value(snapshot, iface->physical, GPUHAL_IDENTITY_PCI) : "";
    return *address ? address : NULL;
}

/* Positions have no gaps; numbers are those of the registry. */
static gpuhal_status past_the_last(const gpuhal_device_snapshot *snapshot, uint32_t index)
{
    return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "there are %u physical devices, none has the place %u",
                            snapshot->physical_count, index);
}

gpuhal_status gpuhal_physical_get(const gpuhal *gpu, uint32_t index, gpuhal_physical_info *out_physical)
{
    if (!gpu || !out_physical || out_physical->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_physical_get: an argument is NULL, or the size is 0");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(gpu);
    if (index >= snapshot->physical_count) {
        return past_the_last(snapshot, index);
    }
    uint32_t size = out_physical->size, physical = snapshot->physicals[index];
    gpuhal_physical_info info = {
        .size = size,
        .number = nth_interface(snapshot, physical, 0)->physical_number,
        .pci_address = first_value(snapshot, physical, GPUHAL_IDENTITY_PCI),
        .uuid = first_value(snapshot, physical, GPUHAL_IDENTITY_UUID),
    };
    while (nth_interface(snapshot, physical, info.device_count)) {
        info.device_count++;
    }
    while (nth_evidence(snapshot, physical, info.evidence_count)) {
        info.evidence_count++;
    }
    memcpy(out_physical, &info, size < sizeof info ? size : sizeof info);
    return GPUHAL_OK;
}

gpuhal_device *gpuhal_physical_device(const gpuhal *gpu, uint32_t index, uint32_t n)
{
    const gpuhal_device_snapshot *snapshot = gpu ? gpuhal_device_snapshot_now(gpu) : NULL;
    return snapshot && index < snapshot->physical_count ? nth_interface(snapshot, snapshot->physicals[index], n) : NULL;
}

gpuhal_status gpuhal_physical_evidence(const gpuhal *gpu, uint32_t index, uint32_t evidence,
                                       gpuhal_evidence *out_evidence)
{
    if (!gpu || !out_evidence || out_evidence->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_physical_evidence: an argument is NULL, or the size is 0");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(gpu);
    if (index >= snapshot->physical_count) {
        return past_the_last(snapshot, index);
    }
    uint32_t size = out_evidence->size;
    const gpuhal_evidence *found = nth_evidence(snapshot, snapshot->physicals[index], evidence);
    if (!found) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "physical device %u has no evidence number %u",
                                nth_interface(snapshot, snapshot->physicals[index], 0)->physical_number, evidence);
    }
    memcpy(out_evidence, found, size < sizeof *found ? size : sizeof *found);
    out_evidence->size = size;
    return GPUHAL_OK;
}
