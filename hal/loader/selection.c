/* loader/selection.c: see selection.h. The table below is the one place with the priorities of known backends. */
#include "loader/selection.h"

#include "core/error.h"
#include "core/text.h"
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

/* A vendor who ships a better plugin under a known name may move it; cpu stays where it is, being the last resort. */
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

static gpuhal_status refuse(const gpuhal_settings *settings, const char *why)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\": %s", settings->backends_source, settings->backends,
                            why);
}

/* What can be told without knowing which backends exist. */
static gpuhal_status check_names(const gpuhal_settings *settings, const gpuhal_selection *selection)
{
    for (size_t i = 0; i < selection->count; i++) {
        if (!*selection->names[i]) {
            return refuse(settings, "an element is empty");
        }
        if (selection->excludes && is_cpu(selection->names[i])) {
            return refuse(settings, "cpu cannot be excluded");
        }
        for (size_t other = 0; other < i; other++) {
            if (strcmp(selection->names[other], selection->names[i]) == 0) {
                return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\": %s stands there twice",
                                        settings->backends_source, settings->backends, selection->names[i]);
            }
        }
    }
    return GPUHAL_OK;
}

/* The `-` is taken off the names; that all or none had it is what makes the list one of exclusions. */
gpuhal_status gpuhal_selection_parse(const gpuhal_settings *settings, gpuhal_selection *out_selection)
{
    *out_selection = (gpuhal_selection){0};
    if (!settings->backends) {
        return GPUHAL_OK;
    }
    gpuhal_selection *selection = out_selection;
    selection->names = gpuhal_text_split(settings->backends, ',', &selection->count);
    if (!selection->names) {
        return gpuhal_error_host_memory();
    }
    size_t excluding = 0;
    for (size_t i = 0; i < selection->count; i++) {
        char *name = selection->names[i];
        if (*name == '-') {
            memmove(name, name + 1, strlen(name));
            excluding++;
        }
    }
    selection->excludes = excluding > 0;
    gpuhal_status status = excluding > 0 && excluding < selection->count
                               ? refuse(settings, "names with and without \"-\" cannot be mixed")
                               : check_names(settings, selection);
    if (status) {
        gpuhal_selection_finish(selection);
    }
    return status;
}

void gpuhal_selection_finish(gpuhal_selection *selection)
{
    gpuhal_text_list_free(selection->names);
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

/* Place of a name in the list of wanted ones; NOT_LISTED when it is not there. */
static size_t place_of(const gpuhal_selection *selection, const char *name)
{
    for (size_t i = 0; name && i < selection->count; i++) {
        if (strcmp(selection->names[i], name) == 0) {
            return i;
        }
    }
    return NOT_LISTED;
}

/* Names what there is: the mistake is mostly one of spelling. */
static gpuhal_status refuse_unknown(const gpuhal_settings *settings, const gpuhal_candidates *candidates, const char *name)
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
                     settings->backends_source, settings->backends, name, gpuhal_text_get(&others));
    gpuhal_text_finish(&others);
    return GPUHAL_ERROR_NOT_FOUND;
}

/* A known name without a manifest is no mistake: the same list serves machines with other hardware. It leaves a record, so that
 * the user sees why nothing came of it. */
static gpuhal_status record_absent(const gpuhal_selection *selection, gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < selection->count && !selection->excludes; i++) {
        const char *name = selection->names[i];
        if (is_found(candidates, name)) {
            continue;
        }
        gpuhal_candidate *absent = gpuhal_candidates_add(candidates, name, NULL);
        if (!absent) {
            return gpuhal_error_host_memory();
        }
        absent->priority = gpuhal_selection_priority(name, false, 0);
        gpuhal_candidate_decide(absent, GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_SEARCH,
                                "it was asked for, and no manifest of that name was found in any plugin directory");
    }
    return GPUHAL_OK;
}

/* cpu is always wanted: without it a program with a strict list would have no device at all. */
static bool is_wanted(const gpuhal_selection *selection, const char *name)
{
    bool listed = place_of(selection, name) != NOT_LISTED;
    return selection->count == 0 || (selection->excludes ? !listed : listed || is_cpu(name));
}

gpuhal_status gpuhal_selection_apply(const gpuhal_selection *selection, const gpuhal_settings *settings,
                                     gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < selection->count; i++) {
        if (!is_known(selection->names[i]) && !is_found(candidates, selection->names[i])) {
            return refuse_unknown(settings, candidates, selection->names[i]);
        }
    }
    gpuhal_status status = record_absent(selection, candidates);
    for (size_t i = 0; i < candidates->count && !status; i++) {
        gpuhal_candidate *candidate = &candidates->list[i];
        if (gpuhal_candidate_is_open(candidate) && !is_wanted(selection, candidate->name)) {
            gpuhal_candidate_decide(candidate, GPUHAL_PLUGIN_EXCLUDED, GPUHAL_STAGE_SELECT, "%s is \"%s\"",
                                    settings->backends_source, settings->backends);
        }
    }
    return status;
}

/* Whether `a` comes before `b`: wanted ones in the order asked for, cpu behind them, the others by priority, cpu last of all. */
static bool is_before(const gpuhal_selection *selection, const gpuhal_candidate *a, const gpuhal_candidate *b)
{
    if (selection->count > 0 && !selection->excludes) {
        size_t place_a = is_cpu(a->name) ? selection->count : place_of(selection, a->name);
        size_t place_b = is_cpu(b->name) ? selection->count : place_of(selection, b->name);
        if (place_a != place_b || place_a != NOT_LISTED) {
            return place_a < place_b;
        }
    }
    if (is_cpu(a->name) != is_cpu(b->name)) {
        return is_cpu(b->name);
    }
    return a->priority > b->priority;
}

/* By insertion: stable, and there are few candidates. */
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
