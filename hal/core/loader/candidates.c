/* loader/candidates.c: see candidates.h. */
#include "loader/candidates.h"

#include "base/text.h"
#include "registry/fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE_MAX 1024

/* The result is valid until the next call, which may move the array. */
gpuhal_candidate *gpuhal_candidates_add(gpuhal_candidates *candidates, const char *name, const char *file)
{
    if (candidates->count == candidates->capacity) {
        size_t capacity = candidates->capacity ? 2 * candidates->capacity : 8;
        gpuhal_candidate *list = realloc(candidates->list, capacity * sizeof *list);
        if (!list) {
            return NULL;
        }
        candidates->list = list;
        candidates->capacity = capacity;
    }
    gpuhal_candidate added = {
        .state = GPUHAL_PLUGIN_NOT_PROBED,
        .name = gpuhal_text_copy(name),
        .file = gpuhal_text_copy(file),
    };
    if ((name && !added.name) || (file && !added.file)) {
        free(added.name);
        free(added.file);
        return NULL;
    }
    candidates->list[candidates->count] = added;
    return &candidates->list[candidates->count++];
}

void gpuhal_candidates_add_note(gpuhal_candidates *candidates, gpuhal_log *log, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    gpuhal_log_line(log, GPUHAL_LEVEL_WARNING, "%s", sentence);
    char **notes = realloc(candidates->notes, (candidates->note_count + 1) * sizeof *notes);
    if (!notes) {
        return;
    }
    candidates->notes = notes;
    notes[candidates->note_count] = gpuhal_text_copy(sentence);
    candidates->note_count += notes[candidates->note_count] != NULL;
}

void gpuhal_candidate_decide(gpuhal_candidate *candidate, gpuhal_plugin_state state, gpuhal_plugin_stage stage,
                             const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    candidate->state = state;
    candidate->stage = stage;
    candidate->decided = true;
    free(candidate->reason);
    candidate->reason = gpuhal_text_copy(sentence);
}

/* A candidate that failed because of lack of memory is also NOT_PROBED, perhaps without a reason, but must not be
 * probed again.
 */
bool gpuhal_candidate_is_open(const gpuhal_candidate *candidate)
{
    return !candidate->decided;
}

bool gpuhal_candidate_is_cpu(const gpuhal_candidate *candidate)
{
    return candidate->name && strcmp(candidate->name, "cpu") == 0;
}

bool gpuhal_candidate_is_own_cpu(const gpuhal_candidate *candidate)
{
    return gpuhal_candidate_is_cpu(candidate) && (candidate->builtin || candidate->own);
}

/* Keeps the earlier string if *from is NULL. */
static void move_text(char **to, char **from)
{
    if (*from) {
        free(*to);
        *to = *from;
        *from = NULL;
    }
}

void gpuhal_candidate_note(gpuhal_candidate *candidate, char **manifest, char **libraries, char **environment,
                           char **settings, char **watch)
{
    move_text(&candidate->manifest, manifest);
    move_text(&candidate->libraries, libraries);
    move_text(&candidate->environment, environment);
    move_text(&candidate->settings, settings);
    move_text(&candidate->watch, watch);
}

void gpuhal_candidate_take(gpuhal_candidate *candidate, gpuhal_load_context *load, bool good)
{
    candidate->stage = load->stage;
    if (!good) {
        candidate->state = load->state;
        candidate->code = load->code;
        gpuhal_listed_devices_finish(&candidate->devices);
        candidate->devices = load->unlisted;
        load->unlisted = (gpuhal_listed_devices){0};
        candidate->decided = true;
    }
    move_text(&candidate->reason, good ? &load->note : &load->reason);
    move_text(&candidate->driver, &load->driver);
    move_text(&candidate->version, &load->version);
    gpuhal_load_finish(load);
}

void gpuhal_candidate_accept(gpuhal_candidate *candidate)
{
    candidate->state = GPUHAL_PLUGIN_OK;
    candidate->stage = GPUHAL_STAGE_DONE;
    candidate->decided = true;
}

bool gpuhal_candidate_may_have(gpuhal_plugin_state state, const gpuhal_listed_devices *devices)
{
    return state == GPUHAL_PLUGIN_OK ||
           (state == GPUHAL_PLUGIN_NO_DEVICE && gpuhal_listed_devices_usable(devices) == 0);
}

void gpuhal_candidate_reopen(gpuhal_candidate *candidate)
{
    gpuhal_listed_devices_finish(&candidate->devices);
    free(candidate->reason);
    candidate->reason = NULL;
    candidate->state = GPUHAL_PLUGIN_NOT_PROBED;
    candidate->decided = false;
}

static void finish_candidate(gpuhal_candidate *candidate)
{
    free(candidate->name);
    free(candidate->version);
    free(candidate->file);
    free(candidate->reason);
    free(candidate->driver);
    free(candidate->manifest);
    free(candidate->libraries);
    free(candidate->environment);
    free(candidate->settings);
    free(candidate->watch);
    free(candidate->output);
    free(candidate->note);
    free(candidate->identity);
    free(candidate->options);
    gpuhal_texts_finish(&candidate->key);
    gpuhal_listed_devices_finish(&candidate->devices);
}

void gpuhal_candidates_finish(gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        finish_candidate(&candidates->list[i]);
    }
    free(candidates->list);
    for (size_t i = 0; i < candidates->note_count; i++) {
        free(candidates->notes[i]);
    }
    free(candidates->notes);
    for (size_t i = 0; i < candidates->learned_count; i++) {
        gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &candidates->learned[i]);
    }
    free(candidates->learned);
    for (size_t i = 0; i < candidates->fault_count; i++) {
        gpuhal_record_finish(GPUHAL_DATABASE_FAULT, &candidates->faults[i]);
    }
    free(candidates->faults);
    *candidates = (gpuhal_candidates){0};
}
