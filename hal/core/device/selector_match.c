/* device/selector_match.c: finds the listed devices that a selector names. `auto`, `gpu`, `most_free`, `least_loaded`,
 * addresses, UUIDs, numbers and variables name physical devices or partitions, with all their interfaces. Other
 * selectors, and the UUID of a software device, name interfaces. */
#include "device/selector.h"

#include "base/error.h"
#include "device/variable.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static gpuhal_device_type type_of(const gpuhal_device *device)
{
    return (gpuhal_device_type)gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_TYPE, 0);
}

static bool is_software(const gpuhal_device *device)
{
    return gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_SOFTWARE, 0) == 1;
}

bool gpuhal_device_is_gpu(const gpuhal_device *device)
{
    return !is_software(device) &&
           (type_of(device) == GPUHAL_DEVICE_GPU || type_of(device) == GPUHAL_DEVICE_INTEGRATED_GPU);
}

bool gpuhal_device_is_ignored(const gpuhal_device *device)
{
    return strcmp(device->candidate->name, "cpu") != 0 && (is_software(device) || type_of(device) == GPUHAL_DEVICE_CPU);
}

/* Devices that are no longer listed have no entry. */
gpuhal_device *gpuhal_entry_usable(const gpuhal_device_snapshot *snapshot, uint32_t entry)
{
    gpuhal_device *device = snapshot->entries[entry].device;
    return device && atomic_load(&device->lost) == GPUHAL_NOT_LOST ? device : NULL;
}

/* `*` matches any number of bytes, and `?` one byte. On a mismatch, the last `*` is extended by one byte. An earlier
 * `*` never has to be extended. */
static bool glob_matches(const char *glob, const char *text)
{
    const char *behind_star = NULL, *taken = NULL;
    while (*text) {
        if (*glob == '*') {
            behind_star = ++glob;
            taken = text;
        } else if (*glob == '?' || *glob == tolower((unsigned char)*text)) {
            glob++;
            text++;
        } else if (behind_star) {
            glob = behind_star;
            text = ++taken;
        } else {
            return false;
        }
    }
    return glob[strspn(glob, "*")] == 0;
}

/* ---- PCI addresses */

/* An address without a domain matches in every domain. */
static bool same_address(const char *stated, const char *wanted)
{
    const char *colon = strchr(wanted, ':');
    bool has_domain = colon && strchr(colon + 1, ':');
    const char *from = has_domain ? stated : strchr(stated, ':');
    return from && strcmp(has_domain ? from : from + 1, wanted) == 0;
}

/* Returns whether an interface of the physical device states the address. A software device is ignored, because it
 * states the address of a card that it renders for. */
static bool is_at_pci(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device, const char *address)
{
    const gpuhal_identity *identity = &snapshot->identity;
    const gpuhal_interface *own = gpuhal_device_snapshot_interface(snapshot, device);
    const char *stated = gpuhal_facts_text(&device->listed->facts, GPUHAL_FACT_PCI_ADDRESS);
    if (!own->host && stated && same_address(stated, address)) {
        return true;
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_interface *iface = &identity->interfaces[i];
        if (iface->physical == own->physical && *iface->pci && same_address(iface->pci, address)) {
            return true;
        }
    }
    return false;
}

/* ---- UUIDs */

static bool digits_begin(const char *uuid, const char *digits)
{
    for (; *digits; uuid++) {
        if (*uuid != '-' && *uuid != *digits++) {
            return false;
        }
    }
    return true;
}

static bool begins_with(const char *uuid, const char *digits)
{
    char characters[17];
    return digits_begin(uuid, digits) ||
           (gpuhal_interface_unique_id(uuid, characters) && digits_begin(characters, digits));
}

/* If several devices or a software device state a UUID, the UUID identifies only interfaces, not physical devices. */
static bool has_uuid(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device,
                     const gpuhal_selector *selector)
{
    const gpuhal_identity *identity = &snapshot->identity;
    const gpuhal_interface *own = gpuhal_device_snapshot_interface(snapshot, device);
    const char *stated = gpuhal_facts_text(&device->listed->facts, GPUHAL_FACT_UUID);
    if (selector->partition && !*own->partition_name) {
        return false;
    }
    if (stated && begins_with(stated, selector->text)) {
        return true;
    }
    for (uint32_t i = 0; i < identity->count; i++) {
        const gpuhal_interface *iface = &identity->interfaces[i];
        const char *value = iface->values[GPUHAL_IDENTITY_UUID];
        if (iface->partition == own->partition && value && begins_with(value, selector->text)) {
            return true;
        }
    }
    return false;
}

/* ---- numbers */

static bool is_in_row(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device, uint32_t first,
                      uint32_t last)
{
    const gpuhal_interface *interfaces = snapshot->identity.interfaces;
    const gpuhal_interface *own = gpuhal_device_snapshot_interface(snapshot, device);
    uint32_t row = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_entry *entry = &snapshot->entries[i];
        if (entry->device && entry->preferred && row++ >= first) {
            if (row - 1 > last) {
                return false;
            }
            if (interfaces[i].partition == own->partition) {
                return true;
            }
        }
    }
    return false;
}

/* ---- vendors' variables */

static bool is_left(const gpuhal_device_snapshot *snapshot, const gpuhal_device *device, const char *variable)
{
    const gpuhal_interface *interfaces = snapshot->identity.interfaces;
    const gpuhal_interface *own = gpuhal_device_snapshot_interface(snapshot, device);
    gpuhal_picks picks;
    bool is = false;
    if (gpuhal_variable_devices(gpuhal_variable_find(variable), snapshot, &picks)) {
        return false;
    }
    for (uint32_t i = 0; i < picks.count && !is; i++) {
        is = interfaces[picks.entries[i]].partition == own->partition;
    }
    return is;
}

void gpuhal_selector_explain(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot, gpuhal_text *to)
{
    gpuhal_picks picks;
    if (selector->form == GPUHAL_SELECT_VARIABLE &&
        gpuhal_variable_devices(gpuhal_variable_find(selector->text), snapshot, &picks) == GPUHAL_OK && *picks.note) {
        gpuhal_text_printf(to, "%s", picks.note);
    }
}

bool gpuhal_selector_matches(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                             const gpuhal_device *device)
{
    const char *name = NULL;
    if (!gpuhal_device_snapshot_interface(snapshot, device)) {
        return false;
    }
    switch (selector->form) {
    case GPUHAL_SELECT_AUTO:
        return true;
    case GPUHAL_SELECT_GPU:
    case GPUHAL_SELECT_MOST_FREE:
    case GPUHAL_SELECT_LEAST_LOADED:
        return gpuhal_device_is_gpu(device);
    case GPUHAL_SELECT_EACH:
        return gpuhal_device_snapshot_entry(snapshot, device)->preferred;
    case GPUHAL_SELECT_BACKEND:
        return strcmp(selector->text, device->candidate->name) == 0;
    case GPUHAL_SELECT_ID:
        return strcmp(selector->text, device->candidate->name) == 0 && device->index >= selector->first &&
               device->index <= selector->last;
    case GPUHAL_SELECT_GLOB:
        return glob_matches(selector->text, device->id);
    case GPUHAL_SELECT_ROW:
        return is_in_row(snapshot, device, selector->first, selector->last);
    case GPUHAL_SELECT_PCI:
        return is_at_pci(snapshot, device, selector->text);
    case GPUHAL_SELECT_UUID:
        return has_uuid(snapshot, device, selector);
    case GPUHAL_SELECT_VARIABLE:
        return is_left(snapshot, device, selector->text);
    case GPUHAL_SELECT_NAME:
        name = gpuhal_facts_text(&device->listed->facts, GPUHAL_FACT_NAME);
        return glob_matches(selector->text, name ? name : "");
    }
    return false;
}
