/* device/select.c: matches selectors, and chooses a device with a reason; selector.c parses them. A selector never
 * falls back to the CPU unless the caller allows that. `auto`, `gpu`, `pci=` and `uuid=` name physical devices and
 * select the preferred interface; the others, and the UUID of a software device, name interfaces. */
#include "device/snapshot.h"

#include "core/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAMED = 8 }; /* largest number of devices in a sentence */

static _Thread_local char reason[1024]; /* of this thread's last gpuhal_select() */

static bool is_software(const gpuhal_device *device)
{
    return gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_SOFTWARE, 0) == 1;
}

static gpuhal_device_type type_of(const gpuhal_device *device)
{
    return (gpuhal_device_type)gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_TYPE, 0);
}

/* For the selector `gpu`: a software device does not count. */
static bool is_gpu(const gpuhal_device *device)
{
    return !is_software(device) &&
           (type_of(device) == GPUHAL_DEVICE_GPU || type_of(device) == GPUHAL_DEVICE_INTEGRATED_GPU);
}

/* `*` matches any bytes, `?` one. On a mismatch the last `*` takes one byte more: earlier ones never need to. */
static bool glob_matches(const char *glob, const char *text)
{
    const char *behind_star = NULL, *taken = NULL;
    while (*text) {
        if (*glob == '*') {
            behind_star = ++glob;
            taken = text;
        } else if (*glob == '?' || *glob == *text) {
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

bool gpuhal_selector_matches(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                             const gpuhal_device *device)
{
    const gpuhal_facts *facts = &device->listed->facts;
    const char *text = NULL;
    char name[512];
    switch (selector->form) {
    case GPUHAL_SELECT_AUTO:
        return true;
    case GPUHAL_SELECT_GPU:
        return is_gpu(device);
    case GPUHAL_SELECT_BACKEND:
        return strcmp(selector->text, device->candidate->name) == 0;
    case GPUHAL_SELECT_ID:
        return strcmp(selector->text, device->candidate->name) == 0 && selector->index == device->index;
    case GPUHAL_SELECT_PCI:
        return gpuhal_device_at_pci(snapshot, device, selector->text);
    case GPUHAL_SELECT_UUID:
        return gpuhal_device_has_uuid(snapshot, device, selector->text);
    case GPUHAL_SELECT_NAME:
        text = gpuhal_facts_text(facts, GPUHAL_FACT_NAME);
        snprintf(name, sizeof name, "%s", text ? text : "");
        gpuhal_selector_lower(name);
        return glob_matches(selector->text, name);
    }
    return false;
}

/* Within one backend: a GPU before an integrated one before an accelerator before a processor. */
static int rank(const gpuhal_device *device)
{
    switch (type_of(device)) {
    case GPUHAL_DEVICE_GPU:
        return 3;
    case GPUHAL_DEVICE_INTEGRATED_GPU:
        return 2;
    case GPUHAL_DEVICE_ACCELERATOR:
        return 1;
    default:
        return 0;
    }
}

/* `auto` and `gpu`, which do not name a device. */
static bool is_general(const gpuhal_selector *selector)
{
    return selector->form == GPUHAL_SELECT_AUTO || selector->form == GPUHAL_SELECT_GPU;
}

static bool is_cpu_backend(const gpuhal_device *device)
{
    return strcmp(device->candidate->name, "cpu") == 0;
}

/* A software device runs on the processor and poses as a GPU in its API; `cpu` is faster. */
static bool is_ignored(const gpuhal_device *device)
{
    return !is_cpu_backend(device) && (is_software(device) || type_of(device) == GPUHAL_DEVICE_CPU);
}

/* Returns whether the selector names the physical device behind the match, so that any of its interfaces will do. The
 * UUID of a software device names only that device. */
static bool names_hardware(const gpuhal_selector *selector, const gpuhal_device *match)
{
    return (selector->form == GPUHAL_SELECT_PCI || selector->form == GPUHAL_SELECT_UUID) && !is_ignored(match);
}

static bool same_partition(const gpuhal_device_snapshot *snapshot, const gpuhal_device *a, const gpuhal_device *b)
{
    return gpuhal_device_snapshot_interface(snapshot, a)->partition ==
           gpuhal_device_snapshot_interface(snapshot, b)->partition;
}

/* Returns the visible, usable device of an entry; NULL for another. A device that is gone has no entry. */
static gpuhal_device *usable(const gpuhal_device_snapshot *snapshot, uint32_t entry)
{
    gpuhal_device *device = snapshot->entries[entry].device;
    return device && atomic_load(&device->lost) == GPUHAL_NOT_LOST ? device : NULL;
}

/* Returns the best match: of the first backend in order that has one the highest rank, then the lowest index; for a
 * physical device its preferred interface. */
static gpuhal_device *best_match(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector)
{
    bool general = is_general(selector);
    gpuhal_device *best = NULL;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        gpuhal_device *device = usable(snapshot, i);
        if (!device || (general && (!snapshot->entries[i].preferred || is_ignored(device))) ||
            !gpuhal_selector_matches(selector, snapshot, device)) {
            continue;
        }
        if (!best || (strcmp(best->candidate->name, device->candidate->name) == 0 && rank(device) > rank(best))) {
            best = device;
        }
    }
    bool any_interface = best && names_hardware(selector, best);
    for (uint32_t i = 0; any_interface && i < snapshot->identity.count; i++) {
        gpuhal_device *device = usable(snapshot, i);
        if (device && snapshot->entries[i].preferred && same_partition(snapshot, device, best)) {
            return device;
        }
    }
    return best;
}

/* Adds to the reason; longer text is cut. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    size_t at = strlen(reason);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason + at, sizeof reason - at, format, arguments);
    va_end(arguments);
}

/* Other devices that a reader may have expected: software devices where `software` is set, else other interfaces of
 * the selected one. */
static bool is_alternative(const gpuhal_device_snapshot *snapshot, uint32_t entry, const gpuhal_device *chosen,
                           bool software)
{
    const gpuhal_device *device = usable(snapshot, entry);
    return device && device != chosen && (software ? is_ignored(device) : same_partition(snapshot, device, chosen));
}

/* "opencl:0", "opencl:0 and vulkan:0", "opencl:0, opencl:1, vulkan:0 and 2 more". */
static void say_ids(const gpuhal_device_snapshot *snapshot, const gpuhal_device *chosen, bool software, uint32_t count)
{
    uint32_t named = count > 4 ? 3 : count, said = 0;
    for (uint32_t i = 0; said < named && i < snapshot->identity.count; i++) {
        if (is_alternative(snapshot, i, chosen, software)) {
            say("%s%s", said == 0 ? "" : said + 1 == count ? " and " : ", ", snapshot->entries[i].device->id);
            said++;
        }
    }
    if (named < count) {
        say(" and %u more", count - named);
    }
}

static uint32_t count_alternatives(const gpuhal_device_snapshot *snapshot, const gpuhal_device *chosen, bool software)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        count += is_alternative(snapshot, i, chosen, software);
    }
    return count;
}

/* A reader may know the card by another id. */
static void say_interfaces(const gpuhal_device_snapshot *snapshot, const gpuhal_device *chosen)
{
    uint32_t interfaces = count_alternatives(snapshot, chosen, false);
    if (interfaces) {
        say("; also reachable through ");
        say_ids(snapshot, chosen, false, interfaces);
    }
}

static const char *software_note(uint32_t count)
{
    return count > 1 ? "software drivers on the CPU; select them by name"
                     : "software driver on the CPU; select it by name";
}

/* Such a backend may have been what the caller expected. */
static void say_forked(const gpuhal_device_snapshot *snapshot, gpuhal_text *to)
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

static void say_forked_reason(const gpuhal_device_snapshot *snapshot)
{
    gpuhal_text forked = {0};
    say_forked(snapshot, &forked);
    say("%s", gpuhal_text_get(&forked));
    gpuhal_text_finish(&forked);
}

/* Describes what decided, and why other candidates were not selected. */
static void describe_reason(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector, const char *text,
                            const gpuhal_device *best, bool fell_back)
{
    uint32_t passed = count_alternatives(snapshot, best, true);
    *reason = 0;
    if (fell_back) {
        say("no device matches \"%s\"; using the CPU, as the caller allows", text);
        say_forked_reason(snapshot);
        return;
    }
    if (names_hardware(selector, best)) {
        say("\"%s\" names the physical device, whose preferred API is %s", text, best->candidate->name);
        say_interfaces(snapshot, best);
        return;
    }
    if (!is_general(selector)) {
        say("\"%s\" names it", text);
        return;
    }
    if (is_cpu_backend(best)) {
        say("no usable GPU; using the CPU");
        say_forked_reason(snapshot);
    } else {
        say("first %s of the preferred API (%s)", is_gpu(best) ? "GPU" : "device", best->candidate->name);
        say_interfaces(snapshot, best);
    }
    if (passed) {
        say("; ignored: ");
        say_ids(snapshot, best, true, passed);
        say(" (%s)", software_note(passed));
    }
}

/* Returns a device that would match, but is lost or gone; NULL for none. */
static const gpuhal_device *lost_match(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector)
{
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        const gpuhal_device *device = snapshot->devices[d];
        bool gone = snapshot->places[d] == GPUHAL_NOWHERE;
        bool by_id = selector->form == GPUHAL_SELECT_ID && selector->index == device->index &&
                     strcmp(selector->text, device->candidate->name) == 0;
        if (gone ? by_id
                 : atomic_load(&device->lost) && !is_general(selector) &&
                       gpuhal_selector_matches(selector, snapshot, device)) {
            return device;
        }
    }
    return NULL;
}

/* Says why a backend that was named has no device. */
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

/* Lists devices to choose from. Where there is none at all, the search has given the reason. */
static void say_what_there_is(const gpuhal_device_snapshot *snapshot, gpuhal_text *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_device *device = usable(snapshot, i);
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

/* @return whether there are software devices, which the caller may have expected */
static bool say_ignored(const gpuhal_device_snapshot *snapshot, gpuhal_text *to)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_device *device = snapshot->entries[i].device;
        if (device && is_ignored(device) && count++ < NAMED) {
            gpuhal_text_printf(to, "%s%s", count == 1 ? "; ignored: " : ", ", device->id);
        }
    }
    if (count > NAMED) {
        gpuhal_text_printf(to, " and %u more", count - NAMED);
    }
    if (count > 0) {
        gpuhal_text_printf(to, " (%s)", software_note(count));
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

/* Names the device that the caller may have expected: a lost one, or a software device. */
gpuhal_status gpuhal_selector_unmatched(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector,
                                        const char *text, const char *source)
{
    const char *colon = *source ? ": " : "";
    const gpuhal_device *lost = lost_match(snapshot, selector);
    if (lost) {
        return gpuhal_error_set(
            GPUHAL_ERROR_NOT_FOUND, "%s%sno usable device matches \"%s\"; %s %s", source, colon, text, lost->id,
            snapshot->places[lost->position] == GPUHAL_NOWHERE ? "is not listed any more" : "was lost");
    }
    gpuhal_text more = {0};
    if (!is_general(selector) || !say_ignored(snapshot, &more)) {
        say_why_not(snapshot, selector, &more);
        say_what_there_is(snapshot, &more);
    }
    if (selector->form != GPUHAL_SELECT_BACKEND && selector->form != GPUHAL_SELECT_ID) {
        say_forked(snapshot, &more);
    }
    say_hidden(snapshot, &more);
    gpuhal_status status = gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s%sno device matches \"%s\"%s", source, colon,
                                            text, gpuhal_text_get(&more));
    gpuhal_text_finish(&more);
    return status;
}

gpuhal_status gpuhal_select(gpuhal *gpu, const char *text, uint32_t flags, gpuhal_device **out_device,
                            const char **out_reason)
{
    if (out_device) {
        *out_device = NULL;
    }
    if (out_reason) {
        *out_reason = NULL;
    }
    if (!gpu || !out_device || flags > GPUHAL_SELECT_ALLOW_CPU) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_select: gpu or out_device is NULL, or a flag is unknown");
    }
    gpuhal_selector selector;
    gpuhal_status status = gpuhal_check(gpu);
    status = status ? status : gpuhal_selector_parse(text, "gpuhal_select", &selector);
    if (status) {
        return status;
    }
    text = text && *text ? text : "auto";
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(gpu);
    gpuhal_device *best = best_match(snapshot, &selector);
    bool fell_back = false;
    for (uint32_t i = 0; !best && (flags & GPUHAL_SELECT_ALLOW_CPU) && i < snapshot->identity.count; i++) {
        gpuhal_device *device = usable(snapshot, i);
        if (device && is_cpu_backend(device)) {
            best = device;
            fell_back = true;
        }
    }
    if (!best) {
        return gpuhal_selector_unmatched(snapshot, &selector, text, "");
    }
    describe_reason(snapshot, &selector, text, best, fell_back);
    *out_device = best;
    if (out_reason) {
        *out_reason = reason;
    }
    return GPUHAL_OK;
}
