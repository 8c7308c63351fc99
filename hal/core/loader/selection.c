/* loader/selection.c: see selection.h. Only the table below has the priorities of known backends. */
#include "loader/selection.h"

#include "base/error.h"
#include "base/text.h"
#include "loader/candidates.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int32_t priority;
} known[] = {{"cuda", 900}, {"rocm", 800}, {"vulkan", 500}, {"opencl", 400}, {"cpu", 0}};

#define KNOWN_COUNT          (sizeof known / sizeof *known)
#define THIRD_PARTY_PRIORITY 100
#define NOT_LISTED           SIZE_MAX

static bool is_cpu(const char *name)
{
    return name && strcmp(name, "cpu") == 0;
}

/* A vendor that ships a better plugin under a known name may change its priority. cpu is the last resort, so its
 * priority cannot be changed. */
int32_t gpuhal_selection_priority(const char *name, bool has_priority, int32_t priority)
{
    if (has_priority && !is_cpu(name)) {
        return priority;
    }
    for (size_t i = 0; name && i < KNOWN_COUNT; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].priority;
        }
    }
    return THIRD_PARTY_PRIORITY;
}

static gpuhal_status refuse(const gpuhal_selection_list *list, const char *why)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\": %s", list->source, list->text, why);
}

static gpuhal_status check_names(const gpuhal_selection_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!*list->names[i]) {
            return refuse(list, "an element is empty");
        }
        if (list->excludes && is_cpu(list->names[i])) {
            return refuse(list, "cpu cannot be excluded");
        }
        for (size_t other = 0; other < i; other++) {
            if (strcmp(list->names[other], list->names[i]) == 0) {
                return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\": %s occurs twice", list->source,
                                        list->text, list->names[i]);
            }
        }
    }
    return GPUHAL_OK;
}

/* Removes the leading `-` from names. Either all names must have a `-`, or none. */
static gpuhal_status parse(const char *text, const char *source, gpuhal_selection_list *list)
{
    if (!text) {
        return GPUHAL_OK;
    }
    *list = (gpuhal_selection_list){.text = text, .source = source};
    list->names = gpuhal_text_split(text, ',', &list->count);
    if (!list->names) {
        return gpuhal_error_host_memory();
    }
    size_t excluding = 0;
    for (size_t i = 0; i < list->count; i++) {
        char *name = list->names[i];
        if (*name == '-') {
            memmove(name, name + 1, strlen(name));
            excluding++;
        }
    }
    list->excludes = excluding > 0;
    return excluding > 0 && excluding < list->count ? refuse(list, "names with and without \"-\" cannot be mixed")
                                                    : check_names(list);
}

gpuhal_status gpuhal_selection_parse(const gpuhal_settings *settings, gpuhal_selection *out_selection)
{
    *out_selection = (gpuhal_selection){0};
    gpuhal_status status = parse(settings->backends, "config.backends", &out_selection->allowed);
    status = status ? status : parse(settings->environment_backends, "GPUHAL_BACKENDS", &out_selection->narrowed);
    if (status) {
        gpuhal_selection_finish(out_selection);
    }
    return status;
}

void gpuhal_selection_finish(gpuhal_selection *selection)
{
    gpuhal_text_list_free(selection->allowed.names);
    gpuhal_text_list_free(selection->narrowed.names);
    *selection = (gpuhal_selection){0};
}

static bool is_known(const char *name)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_found(const gpuhal_candidates *candidates, const char *name)
{
    for (size_t i = 0; i < candidates->count; i++) {
        if (candidates->list[i].name && strcmp(candidates->list[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static size_t place_of(const gpuhal_selection_list *list, const char *name)
{
    for (size_t i = 0; name && i < list->count; i++) {
        if (strcmp(list->names[i], name) == 0) {
            return i;
        }
    }
    return NOT_LISTED;
}

/* Lists the available names, because most mistakes are misspellings. */
static gpuhal_status refuse_unknown(const gpuhal_selection_list *list, const gpuhal_candidates *candidates,
                                    const char *name)
{
    gpuhal_text others = {0};
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        gpuhal_text_printf(&others, "%s%s", i ? ", " : "", known[i].name);
    }
    for (size_t i = 0; i < candidates->count; i++) {
        const char *found = candidates->list[i].name;
        if (found && !is_known(found)) {
            gpuhal_text_printf(&others, ", %s", found);
        }
    }
    gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s is \"%s\": there is no backend named \"%s\"; there are %s",
                     list->source, list->text, name, gpuhal_text_get(&others));
    gpuhal_text_finish(&others);
    return GPUHAL_ERROR_NOT_FOUND;
}

static gpuhal_status check_known(const gpuhal_selection_list *list, const gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < list->count; i++) {
        if (!is_known(list->names[i]) && !is_found(candidates, list->names[i])) {
            return refuse_unknown(list, candidates, list->names[i]);
        }
    }
    return GPUHAL_OK;
}

static bool takes_only(const gpuhal_selection_list *list)
{
    return list->count > 0 && !list->excludes;
}

/* cpu is always included. Otherwise a program with a strict list might have no device at all. */
static bool wants(const gpuhal_selection_list *list, const char *name)
{
    bool listed = place_of(list, name) != NOT_LISTED;
    return list->count == 0 || (list->excludes ? !listed : listed || is_cpu(name));
}

static const gpuhal_selection_list *excluding(const gpuhal_selection *selection, const char *name)
{
    return !wants(&selection->allowed, name)    ? &selection->allowed
           : !wants(&selection->narrowed, name) ? &selection->narrowed
                                                : NULL;
}

/* A known name without a manifest is allowed, because the same list is used on machines with other hardware. The
 * rejected candidate shows the user why the name has no effect. */
static gpuhal_status record_absent(const gpuhal_selection *selection, const gpuhal_selection_list *list,
                                   gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < list->count && takes_only(list); i++) {
        const char *name = list->names[i];
        if (excluding(selection, name) || is_found(candidates, name)) {
            continue;
        }
        gpuhal_candidate *absent = gpuhal_candidates_add(candidates, name, NULL);
        if (!absent) {
            return gpuhal_error_host_memory();
        }
        absent->priority = gpuhal_selection_priority(name, false, 0);
        gpuhal_candidate_decide(absent, GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_SEARCH,
                                "it was requested, but no plugin directory has a manifest of that name");
    }
    return GPUHAL_OK;
}

/* If one list excludes all names of the other list, only cpu is left. */
static void note_nothing_in_common(const gpuhal_selection *selection, gpuhal_log *log, gpuhal_candidates *candidates)
{
    const gpuhal_selection_list *allowed = &selection->allowed, *narrowed = &selection->narrowed;
    const gpuhal_selection_list *named = takes_only(allowed) ? allowed : narrowed;
    bool empty = takes_only(named) && allowed->count > 0 && narrowed->count > 0;
    for (size_t i = 0; i < named->count && empty; i++) {
        empty = is_cpu(named->names[i]) || excluding(selection, named->names[i]);
    }
    bool cpu_was_meant =
        narrowed->excludes ? place_of(allowed, "cpu") != NOT_LISTED : place_of(narrowed, "cpu") != NOT_LISTED;
    if (empty && !cpu_was_meant) {
        gpuhal_candidates_add_note(candidates, log,
                                   "%s is \"%s\" and %s is \"%s\": no backend is in both, so only cpu is left",
                                   narrowed->source, narrowed->text, allowed->source, allowed->text);
    }
}

gpuhal_status gpuhal_selection_apply(const gpuhal_selection *selection, gpuhal_log *log, gpuhal_candidates *candidates)
{
    gpuhal_status status = check_known(&selection->allowed, candidates);
    status = status ? status : check_known(&selection->narrowed, candidates);
    status = status ? status : record_absent(selection, &selection->narrowed, candidates);
    status = status ? status : record_absent(selection, &selection->allowed, candidates);
    for (size_t i = 0; i < candidates->count && !status; i++) {
        gpuhal_candidate *candidate = &candidates->list[i];
        const gpuhal_selection_list *list = excluding(selection, candidate->name);
        if (gpuhal_candidate_is_open(candidate) && list) {
            gpuhal_candidate_decide(candidate, GPUHAL_PLUGIN_EXCLUDED, GPUHAL_STAGE_SELECT, "%s is \"%s\"",
                                    list->source, list->text);
        }
    }
    if (!status) {
        note_nothing_in_common(selection, log, candidates);
    }
    return status;
}

/* Returns whether `a` comes before `b`: listed backends in list order, then cpu, then the others by priority. Without a
 * list of backends to use, cpu comes last. The environment's list takes precedence over the configuration's. */
static bool is_before(const gpuhal_selection *selection, const gpuhal_candidate *a, const gpuhal_candidate *b)
{
    const gpuhal_selection_list *list = takes_only(&selection->narrowed) ? &selection->narrowed : &selection->allowed;
    if (takes_only(list)) {
        size_t place_a = is_cpu(a->name) ? list->count : place_of(list, a->name);
        size_t place_b = is_cpu(b->name) ? list->count : place_of(list, b->name);
        if (place_a != place_b || place_a != NOT_LISTED) {
            return place_a < place_b;
        }
    }
    if (is_cpu(a->name) != is_cpu(b->name)) {
        return is_cpu(b->name);
    }
    return a->priority > b->priority;
}

/* Insertion sort, because it is stable and candidates are few. */
void gpuhal_selection_sort(const gpuhal_selection *selection, gpuhal_candidates *candidates)
{
    for (size_t i = 1; i < candidates->count; i++) {
        gpuhal_candidate moved = candidates->list[i];
        size_t to = i;
        for (; to > 0 && is_before(selection, &moved, &candidates->list[to - 1]); to--) {
            candidates->list[to] = candidates->list[to - 1];
        }
        candidates->list[to] = moved;
    }
}
