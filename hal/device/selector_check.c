/* device/selector_check.c: whether a selector names what it may name: a device that is there, one alone where it names
 * one, and every number of a range. */
#include "device/selector.h"

#include "core/error.h"

#include <stdio.h>
#include <string.h>

/* Whether the text names one device, but may fit several: the beginning of a UUID, an address without its domain. */
static bool is_abbreviated(const gpuhal_selector *selector)
{
    const char *colon = strchr(selector->text, ':');
    return selector->form == GPUHAL_SELECT_UUID  ? strlen(selector->text) < 32
           : selector->form == GPUHAL_SELECT_PCI ? !strchr(colon + 1, ':')
                                                 : false;
}

/* Counts the devices, or partitions, that the selector names, and names an interface of each: the first of those that
 * match. */
static uint32_t name_candidates(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                gpuhal_text *to)
{
    const gpuhal_interface *interfaces = snapshot->identity.interfaces;
    bool pci = selector->form == GPUHAL_SELECT_PCI;
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_device *device = snapshot->entries[i].device;
        bool is_new = device && gpuhal_selector_matches(selector, snapshot, device);
        for (uint32_t e = 0; is_new && e < i; e++) {
            const gpuhal_device *earlier = snapshot->entries[e].device;
            bool same = pci ? interfaces[e].physical == interfaces[i].physical
                            : interfaces[e].partition == interfaces[i].partition;
            is_new = !(earlier && same && gpuhal_selector_matches(selector, snapshot, earlier));
        }
        if (is_new) {
            const char *own = gpuhal_facts_text(&device->listed->facts, pci ? GPUHAL_FACT_PCI_ADDRESS
                                                                            : GPUHAL_FACT_UUID);
            gpuhal_text_printf(to, "%s%s%s%s%s", count++ ? ", " : "", device->id, own ? " (" : "", own ? own : "",
                               own ? ")" : "");
        }
    }
    return count;
}

static gpuhal_status check_ambiguity(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                     const char *source)
{
    gpuhal_text names = {0};
    gpuhal_status status = GPUHAL_OK;
    if (name_candidates(selector, snapshot, &names) > 1) {
        status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s%s\"%s\" is ambiguous: it fits %s", source,
                                  *source ? ": " : "", selector->word, gpuhal_text_get(&names));
    }
    gpuhal_text_finish(&names);
    return status;
}

static bool matches_any(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_device *device = gpuhal_entry_usable(snapshot, i);
        if (device && gpuhal_selector_matches(selector, snapshot, device)) {
            return true;
        }
    }
    return false;
}

/* "cuda:0-3" says that there are four. At most as many numbers are tried as there are devices. */
static gpuhal_status check_range(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                 const char *source)
{
    gpuhal_selector one = *selector;
    for (uint64_t number = selector->first; number <= selector->last; number++) {
        one.first = one.last = (uint32_t)number;
        if (!matches_any(&one, snapshot)) {
            const char *colon = selector->form == GPUHAL_SELECT_ID ? ":" : "";
            snprintf(one.word, sizeof one.word, "%.40s%s%u", *colon ? selector->text : "", colon, one.first);
            return gpuhal_selector_unmatched(snapshot, &one, one.word, source);
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_selector_check(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                    const char *source)
{
    if (is_abbreviated(selector)) {
        gpuhal_status status = check_ambiguity(selector, snapshot, source);
        if (status) {
            return status;
        }
    }
    if (selector->form == GPUHAL_SELECT_ID || selector->form == GPUHAL_SELECT_ROW) {
        return check_range(selector, snapshot, source);
    }
    return matches_any(selector, snapshot) ? GPUHAL_OK
                                           : gpuhal_selector_unmatched(snapshot, selector, selector->word, source);
}
