/* loader/probe_cache.c: see probe_cache.h. */
#include "loader/probe_cache.h"

#include "base/error.h"
#include "base/text.h"
#include "loader/candidates.h"
#include "loader/cache_key.h"
#include "os/os.h"
#include "registry/fields.h"
#include "registry/key.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- cache key */

/* The key includes whether the environment may be read. */
static const gpuhal_texts *machine_of(gpuhal_probe_cache *cache)
{
    if (!cache->machine_made) {
        gpuhal_key_machine(cache->settings->system_root, &cache->machine);
        if (cache->settings->ignore_environment) {
            gpuhal_texts_add(&cache->machine, "settings ignored");
        }
        char *options = cache->settings->options ? gpuhal_text_format("options %s", cache->settings->options) : NULL;
        cache->machine.failed = cache->machine.failed || (cache->settings->options && !options);
        if (options) {
            gpuhal_texts_add(&cache->machine, options);
        }
        free(options);
        cache->machine_made = true;
    }
    return &cache->machine;
}

void gpuhal_probe_cache_finish(gpuhal_probe_cache *cache)
{
    gpuhal_texts_finish(&cache->machine);
    free(cache->seen);
}

/* ---- cached results */

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(word, name, length) == 0;
}

static bool is_asked_for(const gpuhal_settings *settings, const char *name)
{
    const char *at = settings->retry ? settings->retry : "";
    while (*at) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ", \t");
        if (is_word(at, length, name) || is_word(at, length, "all")) {
            return true;
        }
        at += length;
    }
    return false;
}

void gpuhal_probe_cache_check_retry(const gpuhal_probe_cache *cache)
{
    const gpuhal_candidates *candidates = cache->candidates;
    const char *at = cache->settings->retry ? cache->settings->retry : "";
    while (*at) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ", \t");
        bool known = length == 0 || is_word(at, length, "all");
        for (size_t i = 0; i < candidates->count && !known; i++) {
            known = candidates->list[i].name && is_word(at, length, candidates->list[i].name);
        }
        if (!known) {
            gpuhal_candidates_add_note(cache->candidates, cache->log, "there is no plugin \"%.*s\" to be probed again",
                                       (int)length, at);
        }
        at += length;
    }
}

/* Maps a cached state to the candidate's state, which is the same state, QUARANTINED, or NOT_PROBED. A plugin whose
 * manifest watches nothing is probed again if it had no devices, since a new device would not be detected otherwise.
 * The cpu plugin is the last resort, so it is probed again after any failure. */
static gpuhal_plugin_state state_now(const gpuhal_settings *settings, const gpuhal_candidate *candidate,
                                     const gpuhal_database_plugin *record)
{
    if (record->state != GPUHAL_PLUGIN_OK && gpuhal_candidate_is_cpu(candidate)) {
        return GPUHAL_PLUGIN_NOT_PROBED;
    }
    switch (record->state) {
    case GPUHAL_PLUGIN_NO_DRIVER:
    case GPUHAL_PLUGIN_NO_DEVICE:
        return candidate->watch ? record->state : GPUHAL_PLUGIN_NOT_PROBED;
    case GPUHAL_PLUGIN_OK:
    case GPUHAL_PLUGIN_NO_PERMISSION:
    case GPUHAL_PLUGIN_INCOMPATIBLE:
    case GPUHAL_PLUGIN_QUARANTINED:
        return record->state;
    case GPUHAL_PLUGIN_TIMED_OUT:
        /* The deadline 0 marks a plugin that had listed its devices before. */
        return settings->helper_deadline_ns > record->deadline_ns ? GPUHAL_PLUGIN_NOT_PROBED
                                                                  : GPUHAL_PLUGIN_QUARANTINED;
    default:
        return GPUHAL_PLUGIN_NOT_PROBED;
    }
}

static char *describe_quarantine(const gpuhal_database_plugin *record)
{
    char when[48] = "at an unknown time";
    struct tm parts;
    if (gpuhal_os_utc(record->probed_at, &parts)) {
        strftime(when, sizeof when, "on %Y-%m-%d at %H:%M UTC", &parts);
    }
    const char *last = record->output.count > 0 ? record->output.list[record->output.count - 1] : NULL;
    return gpuhal_text_format("%s, %s%s%s%s; the plugin is not run again until it, its driver or the machine changes; "
                              "gpuhal-probe --retry %s runs it now",
                              record->reason ? record->reason : "it failed", when, last ? "; last output: \"" : "",
                              last ? last : "", last ? "\"" : "", record->name);
}

static char *join_lines(const gpuhal_texts *lines)
{
    gpuhal_text text = {0};
    for (size_t i = 0; i < lines->count; i++) {
        gpuhal_text_printf(&text, "%s%s", i > 0 ? "\n" : "", lines->list[i]);
    }
    return lines->count > 0 ? gpuhal_text_take(&text) : NULL;
}

static bool put_text(char **to, char *text, bool wanted)
{
    if (text) {
        free(*to);
        *to = text;
    }
    return text || !wanted;
}

static bool copy_texts(const gpuhal_texts *from, gpuhal_texts *to)
{
    gpuhal_texts_finish(to);
    for (size_t i = 0; i < from->count; i++) {
        gpuhal_texts_add(to, from->list[i]);
    }
    return !to->failed;
}

/* Decides the candidate even if out of memory, because lack of memory ends the whole run, and nothing may be probed
 * before the end. */
static gpuhal_status take_over(gpuhal_candidate *candidate, const gpuhal_database_plugin *record,
                               gpuhal_plugin_state state)
{
    bool quarantined = state == GPUHAL_PLUGIN_QUARANTINED;
    char *reason = quarantined ? describe_quarantine(record) : gpuhal_text_copy(record->reason);
    bool good = put_text(&candidate->reason, reason, quarantined || record->reason) &&
                put_text(&candidate->version, gpuhal_text_copy(record->version), record->version) &&
                put_text(&candidate->driver, gpuhal_text_copy(record->driver), record->driver) &&
                put_text(&candidate->output, join_lines(&record->output), record->output.count > 0) &&
                copy_texts(&record->key, &candidate->key) &&
                (!gpuhal_candidate_may_have(state, &record->devices) ||
                 gpuhal_listed_devices_copy(&record->devices, &candidate->devices));
    candidate->state = state;
    candidate->stage = record->stage;
    candidate->signal = record->signal;
    candidate->probed_at = record->probed_at;
    candidate->decided = candidate->cached = candidate->isolated = true;
    return good ? GPUHAL_OK : gpuhal_error_host_memory();
}

/* `known` is a snapshot for the whole run, so results stored by other processes do not change it. */
gpuhal_status gpuhal_probe_cache_recall(gpuhal_probe_cache *cache, gpuhal_candidate *candidate)
{
    if (!cache->known) {
        return GPUHAL_OK;
    }
    /* The identity is always needed, because new results are stored under it. */
    free(candidate->identity);
    candidate->identity = gpuhal_key_identity(candidate->file);
    if (!candidate->identity || cache->settings->isolation != GPUHAL_ISOLATION_ONCE ||
        is_asked_for(cache->settings, candidate->name)) {
        return GPUHAL_OK;
    }
    cache->seen = cache->seen ? cache->seen : calloc(1, sizeof *cache->seen);
    const gpuhal_database_plugin *record =
        gpuhal_key_find(cache->known, candidate->name, candidate->identity, machine_of(cache), cache->seen);
    gpuhal_plugin_state state = record ? state_now(cache->settings, candidate, record) : GPUHAL_PLUGIN_NOT_PROBED;
    bool asks = state == GPUHAL_PLUGIN_NOT_PROBED || (cache->refresh && state != GPUHAL_PLUGIN_QUARANTINED);
    return asks ? GPUHAL_OK : take_over(candidate, record, state);
}

/* ---- new results */

/* Drops free memory, because a cached list must not show it as current. */
static bool keep_devices(const gpuhal_listed_devices *devices, gpuhal_listed_devices *to)
{
    bool good = gpuhal_listed_devices_copy(devices, to);
    for (size_t i = 0; good && i < to->count; i++) {
        gpuhal_facts *facts = &to->list[i].facts;
        const gpuhal_fact *free_bytes = gpuhal_facts_find(facts, GPUHAL_VALUE_MEMORY_FREE_BYTES);
        if (free_bytes && free_bytes->missing != GPUHAL_MISSING_NOT_SUPPORTED) {
            gpuhal_facts_set_missing(facts, GPUHAL_VALUE_MEMORY_FREE_BYTES, GPUHAL_MISSING_NOT_READ, "cached result");
        }
        good = !facts->failed;
    }
    return good;
}

static char *copy_of(const char *text, bool *failed)
{
    char *copy = gpuhal_text_copy(text);
    *failed = *failed || (text && !copy);
    return copy;
}

bool gpuhal_probe_cache_record(const gpuhal_candidate *candidate, const gpuhal_listed_devices *devices,
                               gpuhal_database_plugin *out_record)
{
    bool failed = false;
    *out_record = (gpuhal_database_plugin){
        .identity = copy_of(candidate->identity, &failed),
        .name = copy_of(candidate->name, &failed),
        .file = copy_of(candidate->file, &failed),
        .version = copy_of(candidate->version, &failed),
        .driver = copy_of(candidate->driver, &failed),
        .reason = copy_of(candidate->reason, &failed),
        .state = candidate->state,
        .stage = candidate->stage,
        .signal = candidate->signal,
        .probed_at = gpuhal_os_wall_clock(),
    };
    return !failed && copy_texts(&candidate->key, &out_record->key) && keep_devices(devices, &out_record->devices);
}

bool gpuhal_probe_cache_is_valid(const gpuhal_settings *settings, const gpuhal_candidate *candidate)
{
    gpuhal_probe_cache cache = {.settings = settings};
    bool holds = gpuhal_key_is_current(&candidate->key, machine_of(&cache), NULL);
    gpuhal_probe_cache_finish(&cache);
    return holds;
}

/* Returns whether the registry already has the same result, so that a later start finds it. */
static bool is_known(gpuhal_probe_cache *cache, const gpuhal_database_plugin *record)
{
    const gpuhal_database_plugin *known =
        gpuhal_key_find(cache->known, record->name, record->identity, machine_of(cache), NULL);
    return known && gpuhal_texts_same(&known->key, &record->key) && gpuhal_probe_cache_same(known, record);
}

bool gpuhal_probe_cache_same(const gpuhal_database_plugin *known, const gpuhal_database_plugin *record)
{
    /* Compares the records as text, without times and generations. The text includes every member, even one added
     * later. */
    gpuhal_database_plugin one = *known, other = *record;
    gpuhal_text texts[2] = {{0}, {0}};
    one.generation = other.generation = one.probed_at = other.probed_at = 0;
    gpuhal_record_write(GPUHAL_DATABASE_PLUGIN, &one, &texts[0]);
    gpuhal_record_write(GPUHAL_DATABASE_PLUGIN, &other, &texts[1]);
    bool same =
        !texts[0].failed && !texts[1].failed && strcmp(gpuhal_text_get(&texts[0]), gpuhal_text_get(&texts[1])) == 0;
    gpuhal_text_finish(&texts[0]);
    gpuhal_text_finish(&texts[1]);
    return same;
}

/* Takes ownership of the record's members if it returns true. */
static bool add_record(gpuhal_candidates *candidates, const gpuhal_database_plugin *record)
{
    gpuhal_database_plugin *list = realloc(candidates->learned, (candidates->learned_count + 1) * sizeof *list);
    if (list) {
        candidates->learned = list;
        list[candidates->learned_count++] = *record;
    }
    return list != NULL;
}

/* If the list cannot be extended, the copies are freed here, because they have no owner. */
static bool add_fault(gpuhal_candidates *candidates, const gpuhal_candidate *candidate, uint32_t kind)
{
    bool failed = false;
    gpuhal_database_fault fault = {.kind = kind,
                                   .count = 1,
                                   .plugin = copy_of(candidate->identity, &failed),
                                   .detail = copy_of(candidate->reason, &failed)};
    gpuhal_database_fault *list =
        failed ? NULL : realloc(candidates->faults, (candidates->fault_count + 1) * sizeof *list);
    if (!list) {
        gpuhal_record_finish(GPUHAL_DATABASE_FAULT, &fault);
        return false;
    }
    candidates->faults = list;
    list[candidates->fault_count++] = fault;
    return true;
}

static bool is_to_blame(gpuhal_probe_cache *cache, const gpuhal_database_plugin *record,
                        const gpuhal_probe_result *result)
{
    if (!result->doubtful) {
        return result->unruly;
    }
    const gpuhal_database_plugin *known =
        gpuhal_key_find(cache->known, record->name, record->identity, machine_of(cache), NULL);
    return known && known->signal == record->signal;
}

/* Returns whether the newest result under the current key lists devices. */
static bool has_worked(gpuhal_probe_cache *cache, const gpuhal_candidate *candidate)
{
    const gpuhal_database_plugin *known =
        gpuhal_key_find(cache->known, candidate->name, candidate->identity, machine_of(cache), NULL);
    return known && known->state == GPUHAL_PLUGIN_OK;
}

/* A probe may fail in a restricted process although it would succeed in other processes. The cpu plugin must stay
 * usable if all other plugins fail. */
static bool is_kept(const gpuhal_probe_cache *cache, gpuhal_candidate *candidate)
{
    char why[128];
    if (candidate->state == GPUHAL_PLUGIN_OK) {
        return true;
    }
    if (gpuhal_candidate_is_cpu(candidate)) {
        return false;
    }
    if (gpuhal_os_is_limited(why, sizeof why)) {
        gpuhal_log_line(cache->log, GPUHAL_LEVEL_INFO, "%s: the failure is not cached: this process is restricted: %s",
                        candidate->name, why);
        put_text(&candidate->note,
                 gpuhal_text_format("the failure is not cached, because this process is restricted: %s", why), false);
        return false;
    }
    return true;
}

static bool learn(gpuhal_probe_cache *cache, gpuhal_candidate *candidate, const gpuhal_probe_result *result)
{
    gpuhal_database_plugin record = {0};
    bool good = gpuhal_cache_key_make(cache->settings->system_root, candidate, result->mapped, machine_of(cache),
                                      &candidate->key) &&
                gpuhal_probe_cache_record(candidate, result->devices, &record) &&
                copy_texts(result->output, &record.output);
    record.status = result->status;
    /* After a timeout the record keeps the deadline instead of QUARANTINED, so that a start with a longer deadline
     * tries again. The deadline 0 allows the plugin one more hang. */
    if (candidate->state == GPUHAL_PLUGIN_TIMED_OUT) {
        record.deadline_ns = has_worked(cache, candidate) ? 0 : cache->settings->helper_deadline_ns;
    } else if (is_to_blame(cache, &record, result)) {
        record.state = GPUHAL_PLUGIN_QUARANTINED;
    }
    bool kept = good && !is_known(cache, &record) && add_record(cache->candidates, &record);
    if (!kept) {
        gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &record);
    }
    return good && (result->fault == 0 || add_fault(cache->candidates, candidate, result->fault));
}

void gpuhal_probe_cache_learn(gpuhal_probe_cache *cache, gpuhal_candidate *candidate, const gpuhal_probe_result *result)
{
    /* A rejected plugin was not run. If a file was replaced during the probe, the result does not describe the new
     * file. */
    if (!cache->known || !candidate->identity || candidate->state == GPUHAL_PLUGIN_REJECTED ||
        gpuhal_cache_key_replaced(result->mapped) || !is_kept(cache, candidate)) {
        return;
    }
    if (!learn(cache, candidate, result)) {
        gpuhal_log_line(cache->log, GPUHAL_LEVEL_WARNING, "%s: out of memory, the result is not cached",
                        candidate->name);
    }
}
