/* device/select.c: selects one of the devices that selectors name (naming.c), and explains the choice (choice.c). Uses
 * only cached facts unless most_free or least_loaded require values. Selects the CPU only if the selectors match it, as
 * `auto` does, or if the caller allows it. */
#include "device/choice.h"
#include "device/selector.h"

#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char reason[1024]; /* why this thread's last gpuhal_select() chose its device */

static bool is_cpu_backend(const gpuhal_device *device)
{
    return strcmp(device->candidate->name, "cpu") == 0;
}

static bool same_partition(const gpuhal_device_snapshot *snapshot, const gpuhal_device *a, const gpuhal_device *b)
{
    return gpuhal_device_snapshot_interface(snapshot, a)->partition ==
           gpuhal_device_snapshot_interface(snapshot, b)->partition;
}

/* All usable offers. In `chosen`, named offers come first. */
typedef struct choice {
    gpuhal_offers offers;
    gpuhal_lack *lacks;
    gpuhal_chosen *chosen;
    gpuhal_choice_request request;
    uint32_t named;
} choice;

static void choice_finish(choice *own)
{
    gpuhal_offers_finish(&own->offers);
    free(own->lacks);
    free(own->chosen);
}

static const gpuhal_offer *best_offer(const choice *own)
{
    return &own->offers.list[own->chosen[0].index];
}

static gpuhal_device *best_device(const choice *own)
{
    return own->named ? own->offers.devices[own->chosen[0].index] : NULL;
}

static uint32_t alike(const choice *own, gpuhal_choice_rule rule)
{
    return gpuhal_choice_alike(&own->request, own->chosen[0].index, rule);
}

static gpuhal_status choose(gpuhal *gpu, const gpuhal_offers_desc *wanted, const char *list, gpuhal_choice_order order,
                            choice *out)
{
    *out = (choice){.named = 0};
    gpuhal_status status = gpuhal_offers_read(gpu, wanted, &out->offers);
    const uint32_t count = out->offers.count;
    out->lacks = status ? NULL : calloc((size_t)count + 1, sizeof *out->lacks);
    out->chosen = status ? NULL : calloc((size_t)count + 1, sizeof *out->chosen);
    if (status || !out->lacks || !out->chosen) {
        return status ? status : gpuhal_error_host_memory();
    }
    if (list) {
        gpuhal_name_offers(gpuhal_device_snapshot_now(gpu), list, &out->offers, out->lacks);
    }
    out->request = (gpuhal_choice_request){
        .order = order, .offers = out->offers.list, .lacks = out->lacks, .count = count, .kept = GPUHAL_NONE};
    (void)gpuhal_choose(&out->request, out->chosen);
    for (uint32_t i = 0; i < count; i++) {
        out->named += out->lacks[i] == GPUHAL_LACK_NOTHING;
    }
    return GPUHAL_OK;
}

/* ---- the reason */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    size_t at = strlen(reason);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason + at, sizeof reason - at, format, arguments);
    va_end(arguments);
}

/* Devices that the reason may mention besides the chosen device: its other interfaces, software devices, and devices
 * that failed their self-test or are prohibited. */
typedef bool is_listed_fn(const gpuhal_device_snapshot *snapshot, uint32_t entry, const gpuhal_device *chosen);

static bool is_other_interface(const gpuhal_device_snapshot *snapshot, uint32_t entry, const gpuhal_device *chosen)
{
    return same_partition(snapshot, snapshot->entries[entry].device, chosen);
}

static bool is_software(const gpuhal_device_snapshot *snapshot, uint32_t entry, const gpuhal_device *chosen)
{
    (void)chosen;
    return gpuhal_device_is_ignored(snapshot->entries[entry].device);
}

static bool is_failed(const gpuhal_device_snapshot *snapshot, uint32_t entry, const gpuhal_device *chosen)
{
    (void)chosen;
    return snapshot->entries[entry].preferred && gpuhal_device_failed_self_test(snapshot->entries[entry].device);
}

static bool is_prohibited(const gpuhal_device_snapshot *snapshot, uint32_t entry, const gpuhal_device *chosen)
{
    (void)chosen;
    return snapshot->entries[entry].preferred && gpuhal_device_is_prohibited(snapshot->entries[entry].device);
}

/* Writes a string like "opencl:0", "opencl:0 and vulkan:0", or "opencl:0, opencl:1, vulkan:0 and 2 more". Returns the
 * number of devices.
 */
static uint32_t name_ids(const gpuhal_device_snapshot *snapshot, const gpuhal_device *chosen, is_listed_fn *is_listed,
                         gpuhal_text *to)
{
    uint32_t count = 0, named = 0, written = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < snapshot->identity.count; i++) {
            const gpuhal_device *device = gpuhal_entry_usable(snapshot, i);
            if (!device || device == chosen || !is_listed(snapshot, i, chosen)) {
                continue;
            }
            count += pass == 0;
            if (pass == 1 && written < named) {
                gpuhal_text_printf(to, "%s%s", written == 0 ? "" : written + 1 == count ? " and " : ", ", device->id);
                written++;
            }
        }
        named = count > 4 ? 3 : count;
    }
    if (named < count) {
        gpuhal_text_printf(to, " and %u more", count - named);
    }
    return count;
}

/* Appends `before`, the ids, and `one` or `several` depending on their number; nothing if there are no ids. */
static void say_ids(const gpuhal_device_snapshot *snapshot, const gpuhal_device *chosen, is_listed_fn *is_listed,
                    const char *before, const char *one, const char *several)
{
    gpuhal_text ids = {0};
    uint32_t count = name_ids(snapshot, chosen, is_listed, &ids);
    if (count) {
        say("%s%s%s", before, gpuhal_text_get(&ids), count == 1 ? one : several);
    }
    gpuhal_text_finish(&ids);
}

static void say_left_out(const gpuhal_device_snapshot *snapshot, const gpuhal_device *chosen)
{
    say_ids(snapshot, chosen, is_failed, " (", " failed its self-test)", " failed their self-tests)");
    say_ids(snapshot, chosen, is_prohibited, " (the compute mode of ", " is prohibited)", " is prohibited)");
}

static void say_decision(const choice *own)
{
    static const char *const kinds[] = {"device", "accelerator", "integrated GPU", "GPU"};
    const uint32_t type = alike(own, GPUHAL_BY_TYPE), memory = alike(own, GPUHAL_BY_TOTAL),
                   units = alike(own, GPUHAL_BY_UNITS);
    const bool by_type = type < alike(own, GPUHAL_BY_BACKEND);
    const char *kind = by_type && best_offer(own)->type == 3 ? "discrete GPU" : kinds[best_offer(own)->type];
    if (type == 1) {
        say("%s %s", by_type ? "the only" : "its only", kind);
    } else if (memory == 1) {
        say("most memory of %u%s%s%s", type, by_type ? " " : "", by_type ? kind : "", by_type ? "s" : "");
    } else if (units == 1) {
        say("most compute units of %u with most memory", memory);
    } else if (units < type) {
        say("first of %u with most memory and compute units", units);
    } else {
        say("first of %u equal %ss", units, kind);
    }
}

static void say_forked(const gpuhal_device_snapshot *snapshot)
{
    gpuhal_text forked = {0};
    gpuhal_selector_add_forked(snapshot, &forked);
    say("%s", gpuhal_text_get(&forked));
    gpuhal_text_finish(&forked);
}

static void describe_general(const gpuhal_device_snapshot *snapshot, const choice *own)
{
    const gpuhal_device *best = best_device(own);
    if (!is_cpu_backend(best)) {
        say("first working backend (%s), ", best->candidate->name);
        say_decision(own);
        say_left_out(snapshot, best);
        return;
    }
    say("no usable GPU; using the CPU");
    say_left_out(snapshot, best);
    say_ids(snapshot, best, is_software, " (", " is a software driver)", " are software drivers)");
    say_forked(snapshot);
}

static void say_variables(const gpuhal_device_snapshot *snapshot, const char *text)
{
    gpuhal_selector selector = {0};
    for (const char *rest = text; rest && gpuhal_selector_next(&rest, "", &selector) == GPUHAL_OK;) {
        gpuhal_text note = {0};
        gpuhal_selector_explain(&selector, snapshot, &note);
        say("%s%s", note.length > 0 ? "; " : "", gpuhal_text_get(&note));
        gpuhal_text_finish(&note);
    }
}

static uint32_t count_hardware(const choice *own)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < own->offers.count; i++) {
        count += own->lacks[i] == GPUHAL_LACK_NOTHING && !own->offers.list[i].software;
    }
    return count;
}

static void describe(const gpuhal_device_snapshot *snapshot, const char *text, const choice *own)
{
    const char *rest = text;
    gpuhal_selector first = {0};
    *reason = 0;
    (void)gpuhal_selector_next(&rest, "", &first); /* the text was parsed before */
    if (!rest && !first.excludes && gpuhal_selector_is_general(&first)) {
        describe_general(snapshot, own);
    } else if (!rest && !first.excludes && own->named == 1 &&
               gpuhal_selector_names_device_of(&first, best_device(own))) {
        say("\"%s\" names the physical device, whose preferred API is %s", first.word,
            best_device(own)->candidate->name);
        say_ids(snapshot, best_device(own), is_other_interface, "; also reachable through ", "", "");
    } else if (own->named == 1) {
        say("\"%.256s\" %s it", text, first.excludes ? "leaves" : "names");
    } else {
        const uint32_t hardware = count_hardware(own);
        say("\"%.256s\" %s %u; ", text, first.excludes ? "leaves" : "names", own->named);
        if (hardware > 0 && hardware < own->named) {
            say("%u of them hardware; ", hardware);
        }
        say("first backend (%s), ", best_device(own)->candidate->name);
        say_decision(own);
        say_left_out(snapshot, best_device(own));
    }
    say_variables(snapshot, text);
}

/* ---- by values */

static bool is_measured(const gpuhal_offer *offer, bool by_memory)
{
    return by_memory ? offer->unit_free_bytes != GPUHAL_UNKNOWN_BYTES
                     : gpuhal_offer_load(offer) != GPUHAL_UNKNOWN_PERMILLE;
}

static void describe_value(const choice *own, bool by_memory)
{
    const gpuhal_offer *best = best_offer(own);
    const uint64_t tenths = (gpuhal_offer_room(best) >> 20) * 10 / 1024;
    const uint32_t permille = gpuhal_offer_load(best);
    uint32_t unknown = 0;
    const uint32_t equal = alike(own, by_memory ? GPUHAL_BY_ROOM : GPUHAL_BY_LOAD);
    for (uint32_t i = 0; i < own->offers.count; i++) {
        unknown += !is_measured(&own->offers.list[i], by_memory);
    }
    if (by_memory) {
        say("most free memory of %u: %u.%u GiB", own->named, (uint32_t)(tenths / 10), (uint32_t)(tenths % 10));
    } else {
        say("least load of %u: %u.%u %%", own->named, permille / 10, permille % 10);
    }
    if (equal > 1) {
        say("; %u have this value, and %s decided", equal,
            alike(own, GPUHAL_BY_UNIT_ROOM) < equal ? "the free memory without limits" : "the rule of auto");
    }
    if (unknown > 0) {
        say(" (%u without that value)", unknown);
    }
}

/* Chooses again among the named devices, by newly read values. If no device has the value, the rule of `auto` is used,
 * and the reason states this. */
static gpuhal_status choose_by_value(gpuhal *gpu, bool by_memory, choice *own)
{
    gpuhal_device **named = calloc(own->named, sizeof(gpuhal_device *));
    choice by_value;
    if (!named) {
        return gpuhal_error_host_memory();
    }
    for (uint32_t i = 0, count = 0; i < own->offers.count; i++) {
        if (own->lacks[i] == GPUHAL_LACK_NOTHING) {
            named[count++] = own->offers.devices[i];
        }
    }
    const gpuhal_offers_desc wanted = {.call = "gpuhal_select",
                                       .devices = named,
                                       .device_count = own->named,
                                       .wants_memory = true,
                                       .wants_load = !by_memory};
    const gpuhal_status status =
        choose(gpu, &wanted, NULL, by_memory ? GPUHAL_CHOOSE_MOST_FREE : GPUHAL_CHOOSE_LEAST_LOADED, &by_value);
    free(named);
    *reason = 0;
    if (!status && by_value.named > 0 && is_measured(best_offer(&by_value), by_memory)) {
        describe_value(&by_value, by_memory);
        choice_finish(own);
        *own = by_value;
        return GPUHAL_OK;
    }
    if (!status) {
        say("no device states its %s; first backend (%s), ", by_memory ? "free memory" : "load",
            best_offer(own)->backend);
        say_decision(own);
    }
    choice_finish(&by_value);
    return status;
}

/* ---- the choice */

/* Checks that every element of a list matches a device and has no limit, because selecting a device does not change its
 * limit. */
static gpuhal_status check_all(const gpuhal_device_snapshot *snapshot, const char *list)
{
    gpuhal_selector selector = {0};
    gpuhal_status status = GPUHAL_OK;
    for (const char *rest = list; rest && !status;) {
        status = gpuhal_selector_next(&rest, "", &selector);
        if (!status && gpuhal_selector_has_limit(&selector)) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                      "gpuhal_select: \"%s\" has a limit of memory, which only GPUHAL_DEVICES and "
                                      "gpuhal_config.devices may have; call gpuhal_device_limit_memory() instead",
                                      selector.word);
        }
        status = status ? status : gpuhal_selector_check(&selector, snapshot, "");
    }
    return status;
}

static gpuhal_device *find_cpu(const gpuhal_device_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        gpuhal_device *device = gpuhal_entry_usable(snapshot, i);
        if (device && is_cpu_backend(device)) {
            return device;
        }
    }
    return NULL;
}

static bool takes_away(const char *list)
{
    gpuhal_selector selector = {0};
    bool takes = false;
    for (const char *rest = list; rest && !takes;) {
        takes = gpuhal_selector_next(&rest, "", &selector) == GPUHAL_OK && selector.excludes;
    }
    return takes;
}

/* Either a general selector matched only devices that must not be used, or elements with `!` removed the
 * named devices. */
static gpuhal_status refuse_all(const gpuhal_device_snapshot *snapshot, const char *text)
{
    gpuhal_text failed = {0};
    const char *rest = text;
    gpuhal_selector selector = {0};
    if (takes_away(text)) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "\"%s\" leaves no device that can be used", text);
    }
    (void)gpuhal_selector_next(&rest, "", &selector);
    const uint32_t count = name_ids(snapshot, NULL, is_failed, &failed);
    const uint32_t shut = count ? 0 : name_ids(snapshot, NULL, is_prohibited, &failed);
    gpuhal_status status;
    if (count) {
        status = gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "no device matches \"%s\"; %s failed %s; select %s by name",
                                  text, gpuhal_text_get(&failed), count == 1 ? "its self-test" : "their self-tests",
                                  count == 1 ? "it" : "one");
    } else if (shut) {
        status =
            gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "no device matches \"%s\"; the compute mode of %s is prohibited",
                             text, gpuhal_text_get(&failed));
    } else {
        status = gpuhal_selector_unmatched(snapshot, &selector, text, "");
    }
    gpuhal_text_finish(&failed);
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
    text = text && *text ? text : "auto";
    gpuhal_status status = gpuhal_check(gpu);
    status = status ? status : gpuhal_selectors_check(text, "gpuhal_select");
    if (status) {
        return status;
    }
    const gpuhal_device_snapshot *snapshot = gpuhal_device_snapshot_now(gpu);
    const gpuhal_offers_desc all = {.call = "gpuhal_select"};
    choice own = {.named = 0};
    gpuhal_device *cpu = flags & GPUHAL_SELECT_ALLOW_CPU ? find_cpu(snapshot) : NULL;
    if (cpu && gpuhal_name_device(snapshot, text, cpu).taken) {
        cpu = NULL;
    }
    status = check_all(snapshot, text);
    status = status ? status : choose(gpu, &all, text, GPUHAL_CHOOSE_BEST, &own);
    status = status || own.named > 0 ? status : refuse_all(snapshot, text);
    const gpuhal_selector_form sampled = gpuhal_selectors_sampled_form(text);
    if (!status && sampled != GPUHAL_SELECT_AUTO) {
        status = choose_by_value(gpu, sampled == GPUHAL_SELECT_MOST_FREE, &own);
    }
    if (status == GPUHAL_ERROR_NOT_FOUND && cpu) {
        *reason = 0;
        say("no device matches \"%.256s\"; using the CPU, as the caller allows", text);
        say_forked(snapshot);
    } else if (!status && gpu->settings.decision) {
        *reason = 0;
        say("%s (measured when the library was opened)", gpu->settings.decision);
    } else if (!status && sampled == GPUHAL_SELECT_AUTO) {
        describe(snapshot, text, &own);
    }
    const bool by_cpu = status == GPUHAL_ERROR_NOT_FOUND && cpu;
    *out_device = by_cpu ? cpu : status ? NULL : best_device(&own);
    if (out_reason && *out_device) {
        *out_reason = reason;
    }
    choice_finish(&own);
    return by_cpu ? GPUHAL_OK : status;
}
