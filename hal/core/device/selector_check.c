/* device/selector_check.c: checks that the devices that a selector names exist. An abbreviated selector must match only
 * one device, and a range must match a device for every number. */
#include "device/selector.h"

#include "base/error.h"
#include "device/variable.h"

#include <stdio.h>
#include <string.h>

/* Returns whether the text is the beginning of a UUID or an address without its domain, so that it may match several
 * devices. */
static bool is_abbreviated(const gpuhal_selector *selector)
{
    const char *colon = strchr(selector->text, ':');
    return selector->form == GPUHAL_SELECT_UUID  ? strlen(selector->text) < 32
           : selector->form == GPUHAL_SELECT_PCI ? !strchr(colon + 1, ':')
                                                 : false;
}

/* Returns whether the selector names the same target with both entries. An address names the whole physical device. So
 * does a UUID that all partitions state, as on AMD GPUs. */
static bool is_the_same(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot, uint32_t a, uint32_t b)
{
    const gpuhal_interface *one = &snapshot->identity.interfaces[a], *other = &snapshot->identity.interfaces[b];
    const char *uuid = gpuhal_facts_text(&snapshot->entries[a].listed->facts, GPUHAL_FACT_UUID);
    const char *same = gpuhal_facts_text(&snapshot->entries[b].listed->facts, GPUHAL_FACT_UUID);
    const bool whole = selector->form == GPUHAL_SELECT_PCI || (uuid && same && strcmp(uuid, same) == 0);
    return whole ? one->physical == other->physical : one->partition == other->partition;
}

static void add_candidate(const gpuhal_device *device, bool pci, uint32_t number, gpuhal_text *to)
{
    const char *own = gpuhal_facts_text(&device->listed->facts, pci ? GPUHAL_FACT_PCI_ADDRESS : GPUHAL_FACT_UUID);
    char digits[17];
    const bool is_amd = !pci && own && gpuhal_interface_unique_id(own, digits);
    gpuhal_text_printf(to, "%s%s", number ? ", " : "", device->id);
    if (own) {
        gpuhal_text_printf(to, " (%s%s)", is_amd ? "GPU-" : "", is_amd ? digits : own);
    }
}

static uint32_t name_candidates(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                gpuhal_text *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_device *device = snapshot->entries[i].device;
        bool is_new = device && gpuhal_selector_matches(selector, snapshot, device);
        for (uint32_t e = 0; is_new && e < i; e++) {
            const gpuhal_device *earlier = snapshot->entries[e].device;
            is_new = !(earlier && is_the_same(selector, snapshot, e, i) &&
                       gpuhal_selector_matches(selector, snapshot, earlier));
        }
        if (is_new) {
            add_candidate(device, selector->form == GPUHAL_SELECT_PCI, count++, to);
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

/* Stops at the first missing number. */
static gpuhal_status check_range(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                 const char *source)
{
    gpuhal_selector one = *selector;
    for (uint64_t number = selector->first; number <= selector->last; number++) {
        one.first = one.last = (uint32_t)number;
        if (!matches_any(&one, snapshot)) {
            const char *colon = selector->form == GPUHAL_SELECT_ID ? ":" : "";
            snprintf(one.word, sizeof one.word, "%s%.40s%s%u", selector->excludes ? "!" : "",
                     *colon ? selector->text : "", colon, one.first);
            return gpuhal_selector_unmatched(snapshot, &one, one.word, source);
        }
    }
    return GPUHAL_OK;
}

/* Fails if the variable's reader would refuse it, if it is unknown which devices the variable names, or if no device is
 * left and the note explains why. */
static gpuhal_status check_variable(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                    const char *source)
{
    gpuhal_picks picks;
    gpuhal_status status = gpuhal_variable_devices(gpuhal_variable_find(selector->text), snapshot, &picks);
    if (!status && *picks.note && !matches_any(selector, snapshot)) {
        status = gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s%sno device matches \"%s\": %s", source,
                                  *source ? ": " : "", selector->word, picks.note);
    }
    return status;
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
    gpuhal_status status =
        selector->form == GPUHAL_SELECT_VARIABLE ? check_variable(selector, snapshot, source) : GPUHAL_OK;
    if (status) {
        return status;
    }
    if (selector->form == GPUHAL_SELECT_ID || selector->form == GPUHAL_SELECT_ROW) {
        return check_range(selector, snapshot, source);
    }
    return matches_any(selector, snapshot) ? GPUHAL_OK
                                           : gpuhal_selector_unmatched(snapshot, selector, selector->word, source);
}
