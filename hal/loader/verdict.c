/* loader/verdict.c: see verdict.h. */
#include "loader/verdict.h"

#include "core/error.h"
#include "core/text.h"
#include "loader/candidates.h"
#include "os/os.h"
#include "registry/fields.h"
#include "registry/key.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DELETED " (deleted)"

/* ---- circumstances */

/* Whether settings are heard is a circumstance like the others. */
static const gpuhal_texts *machine_of(gpuhal_verdicts *verdicts)
{
    if (!verdicts->machine_made) {
        gpuhal_key_machine("", &verdicts->machine);
        if (verdicts->settings->ignore_environment) {
            gpuhal_texts_add(&verdicts->machine, "settings ignored");
        }
        verdicts->machine_made = true;
    }
    return &verdicts->machine;
}

void gpuhal_verdicts_finish(gpuhal_verdicts *verdicts)
{
    gpuhal_texts_finish(&verdicts->machine);
}

static void add_once(gpuhal_texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (strcmp(texts->list[i], text) == 0) {
            return;
        }
    }
    gpuhal_texts_add(texts, text);
}

/* "$NAME/rest": `rest` behind each path that the variable names. */
static void add_from_variable(const char *word, gpuhal_texts *to)
{
    size_t length = strcspn(word + 1, "/"), count = 0;
    char *name = gpuhal_text_copy_range(word + 1, length);
    const char *value = name ? gpuhal_os_environment(name) : NULL;
    char **paths = value ? gpuhal_text_split(value, ':', &count) : NULL;
    to->failed = to->failed || !name || (value && !paths);
    for (size_t i = 0; i < count; i++) {
        char *path = paths[i][0] == '/' ? gpuhal_text_format("%s%s", paths[i], word + 1 + length) : NULL;
        if (path) {
            add_once(to, path);
        }
        to->failed = to->failed || (!path && paths[i][0] == '/');
        free(path);
    }
    gpuhal_text_list_free(paths);
    free(name);
}

/* Calls `add` with each of the words between blanks. */
static void each_word(const char *text, void (*add)(const char *word, gpuhal_texts *to), gpuhal_texts *to)
{
    for (const char *at = text ? text : ""; *at;) {
        at += strspn(at, " \t");
        size_t length = strcspn(at, " \t");
        char *word = length ? gpuhal_text_copy_range(at, length) : NULL;
        to->failed = to->failed || (length && !word);
        if (word) {
            add(word, to);
        }
        free(word);
        at += length;
    }
}

static void add_variable(const char *word, gpuhal_texts *to)
{
    add_once(to, word);
}

static void add_watched(const char *word, gpuhal_texts *to)
{
    if (word[0] == '$') {
        add_from_variable(word, to);
    } else if (word[0] == '/') {
        add_once(to, word);
    }
}

/* A driver that is put where the dynamic loader would have found it; other places than this stand in its cache. */
static void add_library_places(const char *word, gpuhal_texts *to)
{
    char *places = gpuhal_text_format("$LD_LIBRARY_PATH/%s", word);
    to->failed = to->failed || !places;
    if (places) {
        add_from_variable(places, to);
    }
    free(places);
}

/* A driver that is put where GPUHAL_…_LIBRARY says: one that was there stands among the files with code. */
static void add_named_library(const char *word, gpuhal_texts *to)
{
    static const char front[] = "GPUHAL_", back[] = "_LIBRARY";
    size_t length = strlen(word), end = sizeof back - 1;
    const char *path = gpuhal_os_environment(word);
    if (path && path[0] == '/' && length > end && strncmp(word, front, sizeof front - 1) == 0 && strcmp(word + length - end, back) == 0) {
        add_once(to, path);
    }
}

/* Paths in the key are those of today's value: another value makes others. */
static void add_watched_variable(const char *word, gpuhal_texts *to)
{
    char *name = word[0] == '$' ? gpuhal_text_copy_range(word + 1, strcspn(word + 1, "/")) : NULL;
    to->failed = to->failed || (word[0] == '$' && !name);
    if (name) {
        add_once(to, name);
    }
    free(name);
}

/* The file was removed, or never had a name: as the system shows what is mapped. */
static bool is_deleted(const char *path)
{
    size_t length = strlen(path), end = strlen(DELETED);
    return length > end && strcmp(path + length - end, DELETED) == 0;
}

static int compare_texts(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static bool make_key(gpuhal_verdicts *verdicts, const gpuhal_candidate *candidate, const gpuhal_texts *mapped, gpuhal_texts *out_key)
{
    gpuhal_texts files = {0}, variables = {0};
    *out_key = (gpuhal_texts){0};
    gpuhal_texts_add(&files, candidate->file);
    if (candidate->manifest) {
        add_once(&files, candidate->manifest);
    }
    if (candidate->driver) {
        add_once(&files, candidate->driver);
    }
    for (size_t i = 0; mapped && i < mapped->count; i++) {
        if (!is_deleted(mapped->list[i])) {
            add_once(&files, mapped->list[i]);
        }
    }
    each_word(candidate->watch, add_watched, &files);
    each_word(candidate->libraries, add_library_places, &files);
    each_word(candidate->environment, add_named_library, &files);
    each_word(candidate->environment, add_variable, &variables);
    each_word(candidate->watch, add_watched_variable, &variables);
    /* The order of addresses is another one each time. */
    if (files.count > 1) {
        qsort(files.list, files.count, sizeof *files.list, compare_texts);
    }
    bool good = !files.failed && !variables.failed;
    if (good) {
        const gpuhal_key_request request = {.files = &files, .variables = &variables};
        gpuhal_key_make("", &request, machine_of(verdicts), out_key);
    }
    gpuhal_texts_finish(&files);
    gpuhal_texts_finish(&variables);
    return good && !out_key->failed;
}

/* ---- what is known */

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

void gpuhal_verdict_check_retry(const gpuhal_verdicts *verdicts)
{
    const gpuhal_candidates *candidates = verdicts->candidates;
    const char *at = verdicts->settings->retry ? verdicts->settings->retry : "";
    while (*at) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ", \t");
        bool known = length == 0 || is_word(at, length, "all");
        for (size_t i = 0; i < candidates->count && !known; i++) {
            known = candidates->list[i].name && is_word(at, length, candidates->list[i].name);
        }
        if (!known) {
            gpuhal_candidates_remark(verdicts->candidates, verdicts->log, "no plugin is called \"%.*s\", which was to be met again",
                                     (int)length, at);
        }
        at += length;
    }
}

/* How a known state is taken: as it is, as a reason not to run the plugin, or as nothing. */
static gpuhal_plugin_state state_now(const gpuhal_settings *settings, const gpuhal_known_plugin *record)
{
    switch (record->state) {
    case GPUHAL_PLUGIN_OK:
    case GPUHAL_PLUGIN_NO_DRIVER:
    case GPUHAL_PLUGIN_NO_DEVICE:
    case GPUHAL_PLUGIN_NO_PERMISSION:
    case GPUHAL_PLUGIN_INCOMPATIBLE:
    case GPUHAL_PLUGIN_QUARANTINED:
        return record->state;
    case GPUHAL_PLUGIN_TIMED_OUT:
        /* Who gives it more time than it had may get an answer. */
        return settings->helper_deadline_ns > record->deadline_ns ? GPUHAL_PLUGIN_NOT_PROBED : GPUHAL_PLUGIN_QUARANTINED;
    default:
        return GPUHAL_PLUGIN_NOT_PROBED;
    }
}

static char *word_quarantine(const gpuhal_known_plugin *record)
{
    char when[48] = "at an unknown time";
    struct tm parts;
    time_t met = (time_t)record->met;
    if (gmtime_r(&met, &parts)) {
        strftime(when, sizeof when, "on %Y-%m-%d at %H:%M UTC", &parts);
    }
    const char *last = record->output.count > 0 ? record->output.list[record->output.count - 1] : NULL;
    return gpuhal_text_format("%s, %s%s%s%s; it is not run again until it, its driver or the machine changes, or gpuhal-probe --retry %s",
                              record->reason ? record->reason : "it failed", when, last ? "; the last that it printed: \"" : "",
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

/* The malloc'ed text in the place of what was there; true unless a wanted one is missing. */
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

static gpuhal_status take_over(gpuhal_candidate *candidate, const gpuhal_known_plugin *record, gpuhal_plugin_state state)
{
    bool quarantined = state == GPUHAL_PLUGIN_QUARANTINED, ok = state == GPUHAL_PLUGIN_OK;
    char *reason = quarantined ? word_quarantine(record) : gpuhal_text_copy(record->reason);
    bool good = put_text(&candidate->reason, reason, quarantined || record->reason) &&
                put_text(&candidate->version, gpuhal_text_copy(record->version), record->version) &&
                put_text(&candidate->driver, gpuhal_text_copy(record->driver), record->driver) &&
                put_text(&candidate->output, join_lines(&record->output), record->output.count > 0) &&
                copy_texts(&record->key, &candidate->key) &&
                (!ok || gpuhal_listed_devices_copy(&record->devices, &candidate->devices));
    candidate->state = state;
    candidate->stage = record->stage;
    candidate->signal = record->signal;
    candidate->met = record->met;
    candidate->decided = candidate->remembered = candidate->isolated = true;
    return good ? GPUHAL_OK : gpuhal_error_host_memory();
}

gpuhal_status gpuhal_verdict_recall(gpuhal_verdicts *verdicts, gpuhal_candidate *candidate)
{
    if (!verdicts->known) {
        return GPUHAL_OK;
    }
    free(candidate->identity);
    candidate->identity = gpuhal_key_identity(candidate->file);
    if (!candidate->identity || verdicts->settings->isolation != GPUHAL_ISOLATION_ONCE ||
        is_asked_for(verdicts->settings, candidate->name)) {
        return GPUHAL_OK;
    }
    const gpuhal_known_plugin *record =
        gpuhal_key_find(verdicts->known, candidate->name, candidate->identity, machine_of(verdicts));
    gpuhal_plugin_state state = record ? state_now(verdicts->settings, record) : GPUHAL_PLUGIN_NOT_PROBED;
    bool asks = state == GPUHAL_PLUGIN_NOT_PROBED || (verdicts->afresh && state != GPUHAL_PLUGIN_QUARANTINED);
    return asks ? GPUHAL_OK : take_over(candidate, record, state);
}

gpuhal_status gpuhal_verdict_recall_danger(gpuhal_verdicts *verdicts, gpuhal_candidate *candidate)
{
    if (!verdicts->known || !candidate->identity) {
        return GPUHAL_OK;
    }
    const gpuhal_known_plugin *record =
        gpuhal_key_find(verdicts->known, candidate->name, candidate->identity, machine_of(verdicts));
    bool danger = record && (record->state == GPUHAL_PLUGIN_QUARANTINED || record->state == GPUHAL_PLUGIN_TIMED_OUT || record->signal);
    return danger ? take_over(candidate, record, GPUHAL_PLUGIN_QUARANTINED) : GPUHAL_OK;
}

/* ---- what is learned */

/* What changes by the second is not kept: a remembered listing shall not show it as if it were of now. */
static bool keep_devices(const gpuhal_listed_devices *devices, gpuhal_listed_devices *to)
{
    bool good = gpuhal_listed_devices_copy(devices, to);
    for (size_t i = 0; good && i < to->count; i++) {
        gpuhal_facts *facts = &to->list[i].facts;
        const gpuhal_fact *free_bytes = gpuhal_facts_find(facts, GPUHAL_VALUE_MEMORY_FREE_BYTES);
        if (free_bytes && free_bytes->missing != GPUHAL_MISSING_NOT_SUPPORTED) {
            gpuhal_facts_set_missing(facts, GPUHAL_VALUE_MEMORY_FREE_BYTES, GPUHAL_MISSING_NOT_READ, "the listing is remembered");
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

bool gpuhal_verdict_record(const gpuhal_candidate *candidate, const gpuhal_listed_devices *devices, gpuhal_known_plugin *out_record)
{
    bool failed = false;
    *out_record = (gpuhal_known_plugin){
        .identity = copy_of(candidate->identity, &failed),
        .name = copy_of(candidate->name, &failed),
        .file = copy_of(candidate->file, &failed),
        .version = copy_of(candidate->version, &failed),
        .driver = copy_of(candidate->driver, &failed),
        .reason = copy_of(candidate->reason, &failed),
        .state = candidate->state,
        .stage = candidate->stage,
        .signal = candidate->signal,
        .met = gpuhal_os_wall_clock(),
    };
    return !failed && copy_texts(&candidate->key, &out_record->key) && keep_devices(devices, &out_record->devices);
}

bool gpuhal_verdict_holds(const gpuhal_settings *settings, const gpuhal_candidate *candidate)
{
    gpuhal_verdicts verdicts = {.settings = settings};
    bool holds = gpuhal_key_is_current(&candidate->key, machine_of(&verdicts), NULL);
    gpuhal_verdicts_finish(&verdicts);
    return holds;
}

/* Whether the registry says the same already, by which a later start will go. */
static bool is_known(gpuhal_verdicts *verdicts, const gpuhal_known_plugin *record)
{
    const gpuhal_known_plugin *known = gpuhal_key_find(verdicts->known, record->name, record->identity, machine_of(verdicts));
    return known && gpuhal_texts_same(&known->key, &record->key) && gpuhal_verdict_same(known, record);
}

bool gpuhal_verdict_same(const gpuhal_known_plugin *known, const gpuhal_known_plugin *record)
{
    gpuhal_known_plugin one = *known, other = *record;
    gpuhal_text texts[2] = {{0}, {0}};
    one.generation = other.generation = one.met = other.met = 0;
    gpuhal_record_write(GPUHAL_RECORD_PLUGIN, &one, &texts[0]);
    gpuhal_record_write(GPUHAL_RECORD_PLUGIN, &other, &texts[1]);
    bool same = !texts[0].failed && !texts[1].failed && strcmp(gpuhal_text_get(&texts[0]), gpuhal_text_get(&texts[1])) == 0;
    gpuhal_text_finish(&texts[0]);
    gpuhal_text_finish(&texts[1]);
    return same;
}

static bool add_record(gpuhal_candidates *candidates, const gpuhal_known_plugin *record)
{
    gpuhal_known_plugin *list = realloc(candidates->learned, (candidates->learned_count + 1) * sizeof *list);
    if (list) {
        candidates->learned = list;
        list[candidates->learned_count++] = *record;
    }
    return list != NULL;
}

static bool add_fault(gpuhal_candidates *candidates, const gpuhal_candidate *candidate, uint32_t kind)
{
    bool failed = false;
    gpuhal_known_fault fault = {
        .kind = kind, .count = 1, .plugin = copy_of(candidate->identity, &failed), .detail = copy_of(candidate->reason, &failed)};
    gpuhal_known_fault *list = failed ? NULL : realloc(candidates->faults, (candidates->fault_count + 1) * sizeof *list);
    if (!list) {
        gpuhal_record_finish(GPUHAL_RECORD_FAULT, &fault);
        return false;
    }
    candidates->faults = list;
    list[candidates->fault_count++] = fault;
    return true;
}

/* A file that was replaced while the plugin was met: what it said belongs to the old one. Drivers also put code that they write at run time
 * into files without a name: those have no successor, and no library's name. */
static bool was_replaced(const gpuhal_texts *mapped)
{
    for (size_t i = 0; mapped && i < mapped->count; i++) {
        const char *path = mapped->list[i];
        if (!is_deleted(path)) {
            continue;
        }
        gpuhal_file_info info;
        char *successor = gpuhal_text_copy_range(path, strlen(path) - strlen(DELETED));
        if (!successor || strstr(path, ".so") || gpuhal_os_file_info(successor, &info) == 0) {
            free(successor);
            return true;
        }
        free(successor);
    }
    return false;
}

/* What may have been somebody else's doing counts when it has happened the last time, too. */
static bool is_to_blame(gpuhal_verdicts *verdicts, const gpuhal_known_plugin *record, const gpuhal_meeting *meeting)
{
    if (!meeting->doubtful) {
        return meeting->unruly;
    }
    const gpuhal_known_plugin *known = gpuhal_key_find(verdicts->known, record->name, record->identity, machine_of(verdicts));
    return known && known->signal == record->signal;
}

static bool learn(gpuhal_verdicts *verdicts, gpuhal_candidate *candidate, const gpuhal_meeting *meeting)
{
    gpuhal_known_plugin record = {0};
    bool good = make_key(verdicts, candidate, meeting->mapped, &candidate->key) &&
                gpuhal_verdict_record(candidate, meeting->devices, &record) && copy_texts(meeting->output, &record.output);
    record.status = meeting->status;
    if (candidate->state == GPUHAL_PLUGIN_TIMED_OUT) {
        record.deadline_ns = verdicts->settings->helper_deadline_ns;
    } else if (is_to_blame(verdicts, &record, meeting)) {
        record.state = GPUHAL_PLUGIN_QUARANTINED;
    }
    bool kept = good && !is_known(verdicts, &record) && add_record(verdicts->candidates, &record);
    if (!kept) {
        gpuhal_record_finish(GPUHAL_RECORD_PLUGIN, &record);
    }
    return good && (meeting->fault == 0 || add_fault(verdicts->candidates, candidate, meeting->fault));
}

void gpuhal_verdict_learn(gpuhal_verdicts *verdicts, gpuhal_candidate *candidate, const gpuhal_meeting *meeting)
{
    if (!verdicts->known || !candidate->identity || candidate->state == GPUHAL_PLUGIN_REJECTED || was_replaced(meeting->mapped)) {
        return;
    }
    if (!learn(verdicts, candidate, meeting)) {
        gpuhal_log_line(verdicts->log, GPUHAL_LEVEL_WARNING, "%s: there is no memory left to remember the verdict", candidate->name);
    }
}
