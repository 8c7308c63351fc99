/* device/naming.c: finds the devices that a list of selectors names, and the reasons why the list excludes the other
 * devices. */
#include "device/choice.h"
#include "device/selector.h"

static bool same_partition(const gpuhal_device_snapshot *snapshot, const gpuhal_device *a, const gpuhal_device *b)
{
    return gpuhal_device_snapshot_interface(snapshot, a)->partition ==
           gpuhal_device_snapshot_interface(snapshot, b)->partition;
}

bool gpuhal_selector_names_device_of(const gpuhal_selector *selector, const gpuhal_device *match)
{
    return gpuhal_selector_names_hardware(selector) &&
           (selector->form == GPUHAL_SELECT_ROW || !gpuhal_device_is_ignored(match));
}

static void add(const gpuhal_selector *selector, const gpuhal_device *device, gpuhal_naming *is)
{
    if (selector->excludes) {
        *is = (gpuhal_naming){.taken = true, .limited = is->limited, .limit_bytes = is->limit_bytes};
        return;
    }
    const bool general = gpuhal_selector_is_general(selector),
               hardware = gpuhal_selector_names_device_of(selector, device);
    is->taken = false;
    is->general = is->general || general;
    is->hardware = is->hardware || hardware;
    is->itself = is->itself || !(general || hardware);
    if (gpuhal_selector_has_limit(selector)) {
        is->limited = true;
        is->limit_bytes = gpuhal_selector_limit(selector, device);
    }
}

gpuhal_naming gpuhal_name_device(const gpuhal_device_snapshot *snapshot, const char *list, const gpuhal_device *device)
{
    gpuhal_selector selector = {0};
    gpuhal_naming is = {0};
    for (const char *rest = list; rest;) {
        const bool is_first = rest == list;
        if (gpuhal_selector_next(&rest, "", &selector)) {
            return (gpuhal_naming){0};
        }
        if (is_first && selector.excludes) {
            is.general = is.all = true;
        }
        if (gpuhal_selector_matches(&selector, snapshot, device)) {
            add(&selector, device, &is);
        }
    }
    return is;
}

/* The interface for a partition is the preferred interface, or, if the list removes it, the first remaining interface.
 * With `only_usable`, lost interfaces are ignored. */
static bool stands_for_partition(const gpuhal_device_snapshot *snapshot, const char *list, const gpuhal_device *device,
                                 bool only_usable)
{
    const gpuhal_entry *own = gpuhal_device_snapshot_entry(snapshot, device);
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_entry *other = &snapshot->entries[i];
        const bool counts = other->device && other != own && same_partition(snapshot, other->device, device) &&
                            (!only_usable || gpuhal_entry_usable(snapshot, i)) &&
                            (other->preferred || (!own->preferred && other < own));
        if (counts && !gpuhal_name_device(snapshot, list, other->device).taken) {
            return false;
        }
    }
    return true;
}

static gpuhal_lack lack_of(const gpuhal_device_snapshot *snapshot, const char *list, const gpuhal_offer *offer,
                           const gpuhal_device *device)
{
    const gpuhal_naming is = gpuhal_name_device(snapshot, list, device);
    if (is.itself || (is.hardware && stands_for_partition(snapshot, list, device, true))) {
        return GPUHAL_LACK_NOTHING;
    }
    if (!is.general) {
        return is.hardware ? GPUHAL_LACK_INTERFACE : is.taken ? GPUHAL_LACK_STAY : GPUHAL_LACK_NAME;
    }
    if (!stands_for_partition(snapshot, list, device, false)) {
        return GPUHAL_LACK_INTERFACE;
    }
    const bool counts = offer->lack == GPUHAL_LACK_CPU || (is.all && offer->lack == GPUHAL_LACK_HARDWARE);
    return counts ? GPUHAL_LACK_NOTHING : offer->lack;
}

void gpuhal_name_offers(const gpuhal_device_snapshot *snapshot, const char *list, const gpuhal_offers *offers,
                        gpuhal_lack *out_lacks)
{
    for (uint32_t i = 0; i < offers->count; i++) {
        out_lacks[i] = lack_of(snapshot, list, &offers->list[i], offers->devices[i]);
    }
}
