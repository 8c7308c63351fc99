/* device/selector_error.c: makes the message for a selector that matches no device. It names the device that the caller
 * may have expected, the reason why a named backend has no devices, and the available devices. */
#include "device/selector.h"

#include "base/error.h"

#include <string.h>

enum { NAMED = 8 }; /* maximum number of devices in a sentence */

void gpuhal_selector_add_forked(const gpuhal_device_snapshot *snapshot, gpuhal_text *to)
{
    const gpuhal_candidates *candidates = &snapshot->candidates;
    uint32_t count = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        if (candidates->list[i].state == GPUHAL_PLUGIN_FORKED && candidates->list[i].name) {
            gpuhal_text_printf(to, "%s%s", count++ ? ", " : "; ", candidates->list[i].name);
        }
    }
    if (count > 0) {
        gpuhal_text_printf(to, ": started before this process was forked");
    }
}

static const gpuhal_device *lost_match(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector)
{
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        const gpuhal_device *device = snapshot->devices[d];
        bool gone = snapshot->places[d] == GPUHAL_NOWHERE;
        bool by_id = selector->form == GPUHAL_SELECT_ID && device->index >= selector->first &&
                     device->index <= selector->last && strcmp(selector->text, device->candidate->name) == 0;
        if (gone ? by_id
                 : atomic_load(&device->lost) && !gpuhal_selector_is_general(selector) &&
                       gpuhal_selector_matches(selector, snapshot, device)) {
            return device;
        }
    }
    return NULL;
}

static void say_why_not(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector, gpuhal_text *to)
{
    const gpuhal_candidates *candidates = &snapshot->candidates;
    if (selector->form != GPUHAL_SELECT_BACKEND && selector->form != GPUHAL_SELECT_ID) {
        return;
    }
    bool known = false;
    for (size_t i = 0; i < candidates->count; i++) {
        const gpuhal_candidate *candidate = &candidates->list[i];
        if (!candidate->name || strcmp(candidate->name, selector->text) != 0) {
            continue;
        }
        known = true;
        if (candidate->state != GPUHAL_PLUGIN_OK && candidate->state != GPUHAL_PLUGIN_DUPLICATE) {
            const char *why = candidate->reason ? candidate->reason : gpuhal_plugin_state_name(candidate->state);
            gpuhal_text_printf(to, "; %s: %s", candidate->name, why);
            return;
        }
    }
    if (!known && candidates->count > 0) {
        gpuhal_text_printf(to, "; there is no plugin \"%s\"", selector->text);
    }
}

/* If there are no plugins at all, the loader has recorded the reason in its last note. */
static void say_what_there_is(const gpuhal_device_snapshot *snapshot, gpuhal_text *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_device *device = gpuhal_entry_usable(snapshot, i);
        if (device && count++ < NAMED) {
            gpuhal_text_printf(to, "%s%s", count == 1 ? "; available: " : ", ", device->id);
        }
    }
    if (count > NAMED) {
        gpuhal_text_printf(to, " and %u more", count - NAMED);
    }
    const gpuhal_candidates *candidates = &snapshot->candidates;
    if (candidates->count == 0 && candidates->note_count > 0) {
        gpuhal_text_printf(to, "; %s", candidates->notes[candidates->note_count - 1]);
    } else if (count == 0) {
        gpuhal_text_printf(to, "; no plugin lists a device");
    }
}

/* Names software devices, which the caller may have expected. Returns whether there are any. */
static bool say_ignored(const gpuhal_device_snapshot *snapshot, gpuhal_text *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_device *device = snapshot->entries[i].device;
        if (device && gpuhal_device_is_ignored(device) && count++ < NAMED) {
            gpuhal_text_printf(to, "%s%s", count == 1 ? "; ignored: " : ", ", device->id);
        }
    }
    if (count > NAMED) {
        gpuhal_text_printf(to, " and %u more", count - NAMED);
    }
    if (count > 0) {
        gpuhal_text_printf(to, " (%s)", count > 1 ? "software drivers on the CPU; select them by name"
                                                  : "software driver on the CPU; select it by name");
    }
    return count > 0;
}

static void say_hidden(const gpuhal_device_snapshot *snapshot, gpuhal_text *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        count += !snapshot->entries[i].device;
    }
    if (count > 0) {
        gpuhal_text_printf(to, "; %u %s hidden by GPUHAL_DEVICES or config.devices", count, count == 1 ? "is" : "are");
    }
}

gpuhal_status gpuhal_selector_unmatched(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector,
                                        const char *word, const char *source)
{
    const char *colon = *source ? ": " : "";
    const gpuhal_device *lost = lost_match(snapshot, selector);
    if (lost) {
        return gpuhal_error_set(
            GPUHAL_ERROR_NOT_FOUND, "%s%sno usable device matches \"%s\"; %s %s", source, colon, word, lost->id,
            snapshot->places[lost->position] == GPUHAL_NOWHERE ? "is not listed any more" : "was lost");
    }
    gpuhal_text more = {0};
    if (!gpuhal_selector_is_general(selector) || !say_ignored(snapshot, &more)) {
        say_why_not(snapshot, selector, &more);
        say_what_there_is(snapshot, &more);
    }
    if (selector->form != GPUHAL_SELECT_BACKEND && selector->form != GPUHAL_SELECT_ID) {
        gpuhal_selector_add_forked(snapshot, &more);
    }
    say_hidden(snapshot, &more);
    gpuhal_status status = gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s%sno device matches \"%s\"%s", source, colon,
                                            word, gpuhal_text_get(&more));
    gpuhal_text_finish(&more);
    return status;
}

