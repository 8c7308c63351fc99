/* device/select.c: chooses one device among those that selectors name, by one rule from cached facts alone, and says
 * what decided. Nothing falls back to the CPU unless the caller allows that. The rule, in this order: passed its last
 * self-test, and is not prohibited (`auto` and `gpu` take no other); no software device; the first backend; a GPU
 * before an integrated one before an accelerator before a processor; most memory; most compute units; the first in the
 * list. most_free and least_loaded read values first, and what they decide comes behind failures alone. */
#include "device/selector.h"

#include "core/error.h"
#include "device/fault_log.h"
#include "device/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char reason[1024]; /* of this thread's last gpuhal_select() */

/* One of the devices to choose from. */
typedef struct candidate {
    gpuhal_device *device; /* NULL: none */
    uint32_t entry;
    bool failed, software;
    bool known;                /* `value` is: of most_free and least_loaded; the higher, the better */
    uint64_t value, unlimited; /* the second decides among equal ones: what is free, whatever limits allow */
    int type;                  /* the higher, the better */
    uint64_t memory, units;
} candidate;

static bool is_cpu_backend(const gpuhal_device *device)
{
    return strcmp(device->candidate->name, "cpu") == 0;
}

int gpuhal_device_type_rank(const gpuhal_device *device)
{
    switch ((gpuhal_device_type)gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_TYPE, 0)) {
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

/* By this process, else by an earlier one with the same driver: gpuhal_device_verify() records it as the device's link
 * to itself. */
bool gpuhal_device_failed_self_test(const gpuhal_device *device)
{
    const gpuhal_link *own = gpuhal_link_between(device, device);
    gpuhal_recalled_link known;
    if (atomic_load(&own->tried)) {
        return !atomic_load(&own->verified);
    }
    return gpuhal_fault_log_recall(device, device, &known) && !known.verified;
}

/* No program may compute on it: its administrator's will, which only a selector by name does not know. */
bool gpuhal_device_is_prohibited(const gpuhal_device *device)
{
    return gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_COMPUTE_MODE, 0) == GPUHAL_COMPUTE_PROHIBITED;
}

static bool same_partition(const gpuhal_device_snapshot *snapshot, const gpuhal_device *a, const gpuhal_device *b)
{
    return gpuhal_device_snapshot_interface(snapshot, a)->partition ==
           gpuhal_device_snapshot_interface(snapshot, b)->partition;
}

/* The UUID of a software device names that device alone. */
static bool names_hardware(const gpuhal_selector *selector, const gpuhal_device *match)
{
    return gpuhal_selector_names_hardware(selector) &&
           (selector->form == GPUHAL_SELECT_ROW || !gpuhal_device_is_ignored(match));
}

/* How a list names an entry: by `auto`, `gpu`, or by what it leaves where it begins with `!`; by its physical device;
 * by itself. Taken away is what an element with `!` was the last one to match. */
typedef struct naming {
    bool general, hardware, itself, taken;
} naming;

static naming naming_of(const gpuhal_device_snapshot *snapshot, const char *list, uint32_t entry)
{
    const gpuhal_device *device = snapshot->entries[entry].device;
    gpuhal_selector selector = {0};
    naming is = {0};
    for (const char *rest = list; rest;) {
        const bool is_first = rest == list;
        if (gpuhal_selector_next(&rest, "", &selector)) {
            return (naming){0}; /* the list was checked before */
        }
        is.general = is.general || (is_first && selector.excludes);
        if (!gpuhal_selector_matches(&selector, snapshot, device)) {
            continue;
        }
        if (selector.excludes) {
            is = (naming){.taken = true};
        } else {
            is.taken = false;
            is.general = is.general || gpuhal_selector_is_general(&selector);
            is.hardware = is.hardware || names_hardware(&selector, device);
            is.itself = is.itself || !(gpuhal_selector_is_general(&selector) || names_hardware(&selector, device));
        }
    }
    return is;
}

/* Whether this interface is the one to use for its partition: the preferred one, or the first that is left where the
 * list takes that away. `only_usable`: interfaces that are lost do not count. */
static bool stands_for_partition(const gpuhal_device_snapshot *snapshot, const char *list, uint32_t entry,
                                 bool only_usable)
{
    const gpuhal_entry *own = &snapshot->entries[entry];
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        const gpuhal_entry *other = &snapshot->entries[i];
        const bool counts = other->device && i != entry && same_partition(snapshot, other->device, own->device) &&
                            (!only_usable || gpuhal_entry_usable(snapshot, i)) &&
                            (other->preferred || (!own->preferred && i < entry));
        if (counts && !naming_of(snapshot, list, i).taken) {
            return false;
        }
    }
    return true;
}

static bool is_named(const gpuhal_device_snapshot *snapshot, const char *list, uint32_t entry)
{
    const gpuhal_device *device = snapshot->entries[entry].device;
    const naming is = naming_of(snapshot, list, entry);
    return is.itself || (is.hardware && stands_for_partition(snapshot, list, entry, true)) ||
           (is.general && stands_for_partition(snapshot, list, entry, false) && !gpuhal_device_is_ignored(device) &&
            !gpuhal_device_failed_self_test(device) && !gpuhal_device_is_prohibited(device));
}

/* Reads the entry as a candidate; false when the list does not name it. */
static bool read_candidate(const gpuhal_device_snapshot *snapshot, const char *list, uint32_t entry, candidate *out)
{
    gpuhal_device *device = gpuhal_entry_usable(snapshot, entry);
    const bool named = device && is_named(snapshot, list, entry);
    if (named) {
        const gpuhal_facts *facts = &device->listed->facts;
        *out = (candidate){
            .device = device,
            .entry = entry,
            .failed = gpuhal_device_failed_self_test(device),
            .software = gpuhal_device_is_ignored(device),
            .type = gpuhal_device_type_rank(device),
            .memory = gpuhal_facts_u64(facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0),
            .units = gpuhal_facts_u64(facts, GPUHAL_FACT_COMPUTE_UNITS, 0),
        };
    }
    return named;
}

/* Entries come in the order of the backends. */
static bool is_better(const candidate *a, const candidate *b)
{
    if (!b->device || a->failed != b->failed || a->software != b->software) {
        return !b->device || (a->failed != b->failed ? b->failed : b->software);
    }
    if (strcmp(a->device->candidate->name, b->device->candidate->name) != 0) {
        return a->entry < b->entry;
    }
    return a->type != b->type       ? a->type > b->type
           : a->memory != b->memory ? a->memory > b->memory
           : a->units != b->units   ? a->units > b->units
                                    : a->entry < b->entry;
}

/* The same with values: without one a device comes last. */
static bool is_better_by_value(const candidate *a, const candidate *b)
{
    const bool alike = b->device && a->failed == b->failed && a->software == b->software;
    if (alike && a->known != b->known) {
        return a->known;
    }
    if (alike && a->known && a->value != b->value) {
        return a->value > b->value;
    }
    if (alike && a->known && a->unlimited != b->unlimited) {
        return a->unlimited > b->unlimited;
    }
    return is_better(a, b);
}

/* How many candidates there are, and how many of them are in each respect like the best one. */
typedef struct field {
    candidate best;
    uint32_t all, backend, type, memory, units;
} field;

static void survey(const gpuhal_device_snapshot *snapshot, const char *list, field *out)
{
    candidate one;
    *out = (field){0};
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        if (read_candidate(snapshot, list, i, &one)) {
            out->all++;
            out->best = is_better(&one, &out->best) ? one : out->best;
        }
    }
    for (uint32_t i = 0; out->best.device && i < snapshot->identity.count; i++) {
        const candidate *best = &out->best;
        if (!read_candidate(snapshot, list, i, &one) || one.failed != best->failed ||
            strcmp(one.device->candidate->name, best->device->candidate->name) != 0) {
            continue;
        }
        bool type = one.type == best->type, memory = type && one.memory == best->memory;
        out->backend++;
        out->type += type;
        out->memory += memory;
        out->units += memory && one.units == best->units;
    }
}

/* ---- the reason */

/* Adds to the reason; longer text is cut. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    size_t at = strlen(reason);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason + at, sizeof reason - at, format, arguments);
    va_end(arguments);
}

/* Devices that the reason may name beside the chosen one: other interfaces of it, software devices, devices that failed
 * their self-test. */
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

/* Writes "opencl:0", "opencl:0 and vulkan:0", "opencl:0, opencl:1, vulkan:0 and 2 more"; returns how many. */
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

/* Says the format around the ids; nothing where there are none. `one` and `several` go with their number. */
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

/* What decided within the backend. */
static void say_decision(const field *own)
{
    static const char *const kinds[] = {"device", "accelerator", "integrated GPU", "GPU"};
    bool by_type = own->type < own->backend;
    const char *kind = by_type && own->best.type == 3 ? "discrete GPU" : kinds[own->best.type];
    if (own->type == 1) {
        say("%s %s", by_type ? "the only" : "its only", kind);
    } else if (own->memory == 1) {
        say("most memory of %u%s%s%s", own->type, by_type ? " " : "", by_type ? kind : "", by_type ? "s" : "");
    } else if (own->units == 1) {
        say("most compute units of %u with most memory", own->memory);
    } else if (own->units < own->type) {
        say("first of %u with most memory and compute units", own->units);
    } else {
        say("first of %u equal %ss", own->units, kind);
    }
}

static void say_forked(const gpuhal_device_snapshot *snapshot)
{
    gpuhal_text forked = {0};
    gpuhal_selector_add_forked(snapshot, &forked);
    say("%s", gpuhal_text_get(&forked));
    gpuhal_text_finish(&forked);
}

static void describe_general(const gpuhal_device_snapshot *snapshot, const field *own)
{
    const gpuhal_device *best = own->best.device;
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

/* Adds what vendors' variables say that does not count. */
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

static void describe(const gpuhal_device_snapshot *snapshot, const char *text, const field *own)
{
    const char *rest = text;
    gpuhal_selector first = {0};
    *reason = 0;
    (void)gpuhal_selector_next(&rest, "", &first); /* it was parsed before */
    if (!rest && !first.excludes && gpuhal_selector_is_general(&first)) {
        describe_general(snapshot, own);
    } else if (!rest && !first.excludes && own->all == 1 && names_hardware(&first, own->best.device)) {
        say("\"%s\" names the physical device, whose preferred API is %s", first.word,
            own->best.device->candidate->name);
        say_ids(snapshot, own->best.device, is_other_interface, "; also reachable through ", "", "");
    } else if (own->all == 1) {
        say("\"%.256s\" names it", text);
    } else {
        say("\"%.256s\" names %u; first backend (%s), ", text, own->all, own->best.device->candidate->name);
        say_decision(own);
        say_left_out(snapshot, own->best.device);
    }
    say_variables(snapshot, text);
}

/* ---- by values */

/* Candidates that were read with their values. */
typedef struct contest {
    candidate *list;
    gpuhal_device **devices;
    uint64_t *values;
    bool *known;
    uint32_t count;
} contest;

static void contest_finish(contest *all)
{
    free(all->list);
    free(all->devices);
    free(all->values);
    free(all->known);
}

/* One limit for all makes equals of them, and the one with most free memory still suits best. */
static gpuhal_status read_unlimited(gpuhal *gpu, contest *own)
{
    bool limited = false;
    for (uint32_t i = 0; i < own->count; i++) {
        limited = limited || gpuhal_device_limit(own->devices[i]) != 0;
    }
    if (!limited) {
        return GPUHAL_OK;
    }
    const gpuhal_status status =
        gpu->layers.read_value(gpu, own->devices, own->count, GPUHAL_VALUE_MEMORY_FREE_BYTES, own->values, own->known);
    for (uint32_t i = 0; i < own->count && !status; i++) {
        own->list[i].unlimited = own->known[i] ? own->values[i] : 0;
    }
    return status;
}

static gpuhal_status read_contest(gpuhal *gpu, const gpuhal_device_snapshot *snapshot, const char *list, bool by_memory,
                                  contest *out)
{
    const size_t most = snapshot->identity.count + (size_t)1;
    *out = (contest){.list = calloc(most, sizeof *out->list),
                     .devices = calloc(most, sizeof *out->devices),
                     .values = calloc(most, sizeof *out->values),
                     .known = calloc(most, sizeof *out->known)};
    if (!out->list || !out->devices || !out->values || !out->known) {
        return gpuhal_error_host_memory();
    }
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        if (read_candidate(snapshot, list, i, &out->list[out->count])) {
            out->devices[out->count] = out->list[out->count].device;
            out->count++;
        }
    }
    const gpuhal_key key = by_memory ? GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES : GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE;
    gpuhal_status status = gpu->layers.read_value(gpu, out->devices, out->count, key, out->values, out->known);
    for (uint32_t i = 0; i < out->count && !status; i++) {
        out->list[i].known = out->known[i];
        out->list[i].value = by_memory ? out->values[i] : UINT64_MAX - out->values[i];
    }
    return status || !by_memory ? status : read_unlimited(gpu, out);
}

static void describe_value(const contest *all, const candidate *best, bool by_memory)
{
    const uint64_t tenths = (best->value >> 20) * 10 / 1024, permille = UINT64_MAX - best->value;
    uint32_t unknown = 0, equal = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        unknown += !all->list[i].known;
        equal += all->list[i].known && all->list[i].value == best->value;
    }
    if (by_memory) {
        say("most free memory of %u: %u.%u GiB", all->count, (uint32_t)(tenths / 10), (uint32_t)(tenths % 10));
    } else {
        say("least load of %u: %u.%u %%", all->count, (uint32_t)(permille / 10), (uint32_t)(permille % 10));
    }
    if (equal > 1) {
        say("; the best of %u that are equal in that, by the rule of auto", equal);
    }
    if (unknown > 0) {
        say(" (%u without that value)", unknown);
    }
}

/* Where no device has the value the rule of `auto` decides, and the reason says so. */
static gpuhal_status choose_by_value(gpuhal *gpu, const gpuhal_device_snapshot *snapshot, const char *list, field *own)
{
    const bool by_memory = gpuhal_selectors_sampled_form(list) == GPUHAL_SELECT_MOST_FREE;
    contest all;
    candidate best = {0};
    gpuhal_status status = read_contest(gpu, snapshot, list, by_memory, &all);
    *reason = 0;
    for (uint32_t i = 0; i < all.count && !status; i++) {
        best = is_better_by_value(&all.list[i], &best) ? all.list[i] : best;
    }
    if (!status && best.known) {
        own->best = best;
        describe_value(&all, &best, by_memory);
    } else if (!status) {
        say("no device states its %s; first backend (%s), ", by_memory ? "free memory" : "load",
            own->best.device->candidate->name);
        say_decision(own);
    }
    contest_finish(&all);
    return status;
}

/* ---- the choice */

/* Every element of a list names something, and none has a limit: a device is selected, and not changed. */
static gpuhal_status check_all(const gpuhal_device_snapshot *snapshot, const char *list)
{
    gpuhal_selector selector = {0};
    gpuhal_status status = GPUHAL_OK;
    for (const char *rest = list; rest && !status;) {
        status = gpuhal_selector_next(&rest, "", &selector);
        if (!status && gpuhal_selector_has_limit(&selector)) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                      "gpuhal_select: \"%s\" has a limit of memory, which counts in GPUHAL_DEVICES and "
                                      "gpuhal_config.devices alone; gpuhal_device_limit_memory() sets one later",
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

/* `auto` or `gpu` match devices, of which none is to be used; or what was named was taken away again. */
static gpuhal_status refuse_all(const gpuhal_device_snapshot *snapshot, const char *text)
{
    gpuhal_text failed = {0};
    const char *rest = text;
    gpuhal_selector selector = {0};
    if (takes_away(text)) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "\"%s\" leaves no device that is to be used", text);
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
    field own = {0};
    gpuhal_device *cpu = flags & GPUHAL_SELECT_ALLOW_CPU ? find_cpu(snapshot) : NULL;
    status = check_all(snapshot, text);
    if (!status) {
        survey(snapshot, text, &own);
        status = own.best.device ? GPUHAL_OK : refuse_all(snapshot, text);
    }
    const bool by_value = !status && gpuhal_selectors_sampled_form(text) != GPUHAL_SELECT_AUTO;
    if (by_value) {
        status = choose_by_value(gpu, snapshot, text, &own);
    }
    if (status && !(status == GPUHAL_ERROR_NOT_FOUND && cpu)) {
        return status;
    }
    if (status) {
        *reason = 0;
        say("no device matches \"%.256s\"; using the CPU, as the caller allows", text);
        say_forked(snapshot);
    } else if (gpu->settings.decision) {
        *reason = 0;
        say("%s; read when the library was opened", gpu->settings.decision);
    } else if (!by_value) {
        describe(snapshot, text, &own);
    }
    *out_device = status ? cpu : own.best.device;
    if (out_reason) {
        *out_reason = reason;
    }
    return GPUHAL_OK;
}
