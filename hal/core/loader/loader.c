/* loader/loader.c: the steps from directories to backends that list devices. Each step has its own file.
 *
 * The order is: built-in plugins, search, selection, file checks, duplicates, sorting, probing of the remaining
 * plugins. Only an invalid argument or lack of memory aborts the run. A fault in a plugin affects only its own
 * candidate.
 */
#include "loader/loader.h"

#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "loader/backend.h"
#include "loader/builtin.h"
#include "loader/candidates.h"
#include "loader/file_check.h"
#include "loader/isolation.h"
#include "loader/load.h"
#include "loader/search.h"
#include "loader/selection.h"
#include "loader/probe_cache.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>

/* A built-in plugin has no manifest. Its name comes from the query function, which does not start the plugin. */
static gpuhal_status add_builtin(const gpuhal_settings *settings, gpuhal_log *log, gpuhal_builtin_fn *query,
                                 gpuhal_candidates *candidates)
{
    const gpuhal_plugin *plugin = NULL;
    gpuhal_load_context load = {.log = log, .ignore_environment = settings->ignore_environment};
    bool good = gpuhal_plugin_negotiate(&load, query, &plugin);
    const char *name = good ? plugin->name : NULL;
    gpuhal_candidate *candidate = gpuhal_candidates_add(candidates, name, "built in");
    if (candidate) {
        candidate->builtin = query;
        candidate->ignore_environment = settings->ignore_environment;
        candidate->priority = gpuhal_selection_priority(name, false, 0);
        gpuhal_candidate_take(candidate, &load, good);
    }
    gpuhal_load_finish(&load);
    return candidate ? GPUHAL_OK : gpuhal_error_host_memory();
}

/* The plugins from the configuration come first, because the program chose them. */
static gpuhal_status add_builtins(const gpuhal_settings *settings, gpuhal_log *log, gpuhal_candidates *candidates)
{
    gpuhal_builtin_fn *const *lists[] = {settings->builtins, gpuhal_builtin_table};
    gpuhal_status status = GPUHAL_OK;
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        for (gpuhal_builtin_fn *const *query = lists[l]; query && *query && !status; query++) {
            status = add_builtin(settings, log, *query, candidates);
        }
    }
    return status;
}

static const char *describe_place(const gpuhal_candidate *candidate)
{
    return candidate->builtin ? "built in" : candidate->file;
}

static bool same_file(const gpuhal_candidate *a, const gpuhal_candidate *b)
{
    return a->builtin || b->builtin ? a->builtin == b->builtin : a->device == b->device && a->inode == b->inode;
}

/* Returns whether both manifests are in the same folder, so that only their file names determine the order. No vendor
 * intends this. For example, a manifest left behind by an update may come first. */
static bool is_ambiguous(const gpuhal_candidate *earlier, const gpuhal_candidate *later)
{
    const char *one = earlier->manifest ? strrchr(earlier->manifest, '/') : NULL;
    const char *other = later->manifest ? strrchr(later->manifest, '/') : NULL;
    const size_t length = one ? (size_t)(one - earlier->manifest) : 0;
    return one && other && length == (size_t)(other - later->manifest) &&
           strncmp(earlier->manifest, later->manifest, length) == 0;
}

static void find_duplicate(const gpuhal_candidates *candidates, gpuhal_candidate *later)
{
    for (const gpuhal_candidate *earlier = candidates->list; earlier < later; earlier++) {
        if (!gpuhal_candidate_is_open(earlier)) {
            continue;
        }
        if (same_file(earlier, later)) {
            gpuhal_candidate_decide(later, GPUHAL_PLUGIN_DUPLICATE, GPUHAL_STAGE_SELECT,
                                    "the same file was found earlier, as %s (%s)", earlier->name,
                                    describe_place(earlier));
            return;
        }
        if (strcmp(earlier->name, later->name) != 0) {
            continue;
        }
        later->ambiguous = is_ambiguous(earlier, later);
        if (later->ambiguous) {
            gpuhal_candidate_decide(later, GPUHAL_PLUGIN_DUPLICATE, GPUHAL_STAGE_SELECT,
                                    "a plugin named %s was found earlier: %s; the manifests in %.*s are taken in the "
                                    "order of their names, %s before %s: remove one of the two",
                                    earlier->name, describe_place(earlier),
                                    (int)(strrchr(later->manifest, '/') - later->manifest), later->manifest,
                                    strrchr(earlier->manifest, '/') + 1, strrchr(later->manifest, '/') + 1);
        } else {
            gpuhal_candidate_decide(later, GPUHAL_PLUGIN_DUPLICATE, GPUHAL_STAGE_SELECT,
                                    "a plugin named %s was found earlier: %s", earlier->name, describe_place(earlier));
        }
        return;
    }
}

/* A file that fails the checks must not block a later plugin with the same name. */
static void check_files(gpuhal_log *log, gpuhal_candidates *candidates)
{
    gpuhal_known_folder folder = {0};
    for (size_t i = 0; i < candidates->count; i++) {
        gpuhal_candidate *candidate = &candidates->list[i];
        if (!gpuhal_candidate_is_open(candidate)) {
            continue;
        }
        /* From here on the resolved path is used, so that the checked file is the file that is loaded. */
        if (!candidate->builtin) {
            gpuhal_load_context load = {.name = candidate->name, .log = log, .folder = &folder};
            gpuhal_checked_file file;
            gpuhal_load_enter(&load, GPUHAL_STAGE_FILE);
            bool good = gpuhal_file_check(&load, candidate->file, false, &file);
            gpuhal_candidate_take(candidate, &load, good);
            if (!good) {
                continue;
            }
            free(candidate->file);
            candidate->file = file.path;
            candidate->device = file.device;
            candidate->inode = file.inode;
        }
        find_duplicate(candidates, candidate);
    }
    gpuhal_known_folder_finish(&folder);
}

/* Drivers and their loaders read library names from the environment, which the user controls. Most drivers do so even
 * in a process that has more rights than its user. Such a process therefore does not probe drivers, unless its
 * configuration says environment_is_clean. */
static void leave_drivers_to_clean_processes(const gpuhal_settings *settings, gpuhal_candidates *candidates)
{
    if (!gpuhal_os_privileged() || settings->environment_is_clean) {
        return;
    }
    for (size_t i = 0; i < candidates->count; i++) {
        gpuhal_candidate *candidate = &candidates->list[i];
        if (gpuhal_candidate_is_open(candidate) && !gpuhal_candidate_is_own_cpu(candidate)) {
            gpuhal_candidate_decide(
                candidate, GPUHAL_PLUGIN_EXCLUDED, GPUHAL_STAGE_SELECT,
                "this process has more rights than its user: it loads no driver unless its configuration says "
                "environment_is_clean");
        }
    }
}

/* A driver that was started by a parent process would hang or fail in this process. A helper would list devices that
 * this process cannot open. */
static void leave_forked(gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        gpuhal_candidate *candidate = &candidates->list[i];
        if (gpuhal_candidate_is_open(candidate) && gpuhal_backend_is_forked(candidate)) {
            gpuhal_candidate_decide(candidate, GPUHAL_PLUGIN_FORKED, GPUHAL_STAGE_SELECT, GPUHAL_BACKEND_IS_FORKED);
        }
    }
}

/* During a rescan, makes a started plugin list its devices again. */
static gpuhal_status probe_here(const gpuhal_probe_cache *cache, gpuhal_candidate *candidate)
{
    gpuhal_load_context load = {.name = candidate->name,
                                .log = cache->log,
                                .ignore_environment = candidate->ignore_environment,
                                .deadline_ns = cache->settings->helper_deadline_ns};
    gpuhal_backend *backend = NULL;
    uint64_t begun_ns = gpuhal_os_monotonic_ns();
    bool good = gpuhal_backend_obtain(&load, candidate, &backend);
    good = good && (!cache->refresh || gpuhal_backend_list_again(&load, backend, begun_ns));
    good = good && (gpuhal_listed_devices_usable(gpuhal_backend_devices(backend)) > 0 ||
                    gpuhal_load_fail(&load, GPUHAL_PLUGIN_NO_DEVICE, GPUHAL_ERROR_NO_DEVICE,
                                     "the driver lists no device any more"));
    gpuhal_candidate_take(candidate, &load, good);
    candidate->time_ns = gpuhal_os_monotonic_ns() - begun_ns;
    if (!good) {
        return GPUHAL_OK;
    }
    gpuhal_candidate_accept(candidate);
    return gpuhal_listed_devices_copy(gpuhal_backend_devices(backend), &candidate->devices)
               ? GPUHAL_OK
               : gpuhal_error_host_memory();
}

/* Cached plugins are not probed. After the helpers have ended, this process probes the plugins that are still
 * undecided: built-in plugins, the library's own cpu plugin if no helper can be started, and all plugins without
 * isolation. */
static gpuhal_status probe_all(gpuhal_probe_cache *cache)
{
    gpuhal_candidates *candidates = cache->candidates;
    gpuhal_status status = GPUHAL_OK;
    bool isolate = cache->settings->isolation != GPUHAL_ISOLATION_NEVER;
    for (size_t i = 0; isolate && i < candidates->count && !status; i++) {
        if (gpuhal_candidate_is_open(&candidates->list[i]) && !candidates->list[i].builtin) {
            status = gpuhal_probe_cache_recall(cache, &candidates->list[i]);
        }
    }
    if (isolate && !status) {
        status = gpuhal_isolation_run(cache);
    }
    for (size_t i = 0; i < candidates->count && !status; i++) {
        if (gpuhal_candidate_is_open(&candidates->list[i])) {
            status = probe_here(cache, &candidates->list[i]);
        }
    }
    return status;
}

/* Returns whether a duplicate must be tried. A candidate with the duplicate's name or file must have failed; none may
 * have both, which would be the same plugin. No candidate with that name or file may work, be undecided, or be unusable
 * because of a fork, since the duplicate may use the same driver. */
static bool deserves_a_turn(const gpuhal_candidates *candidates, const gpuhal_candidate *duplicate)
{
    bool first_failed = false;
    for (size_t i = 0; i < candidates->count; i++) {
        const gpuhal_candidate *other = &candidates->list[i];
        if (other == duplicate || !other->name || other->state == GPUHAL_PLUGIN_DUPLICATE) {
            continue;
        }
        bool failed = other->decided && other->state != GPUHAL_PLUGIN_OK && other->state != GPUHAL_PLUGIN_FORKED;
        bool same_name = strcmp(other->name, duplicate->name) == 0, is_same_file = same_file(other, duplicate);
        if ((same_name || is_same_file) && (!failed || (same_name && is_same_file))) {
            return false;
        }
        first_failed = first_failed || same_name || is_same_file;
    }
    return first_failed;
}

/* The first plugin that works is used, so that a bad plugin cannot displace a good plugin by taking its name or file.
 * Each round tries the duplicates of failed plugins, and each duplicate is tried at most once. */
static gpuhal_status probe_second_choices(gpuhal_probe_cache *cache)
{
    gpuhal_candidates *candidates = cache->candidates;
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < candidates->count; i++) {
            gpuhal_candidate *candidate = &candidates->list[i];
            if (candidate->state == GPUHAL_PLUGIN_DUPLICATE && deserves_a_turn(candidates, candidate)) {
                gpuhal_candidate_reopen(candidate);
                again = true;
            }
        }
        gpuhal_status status = again ? probe_all(cache) : GPUHAL_OK;
        if (status) {
            return status;
        }
    }
    return GPUHAL_OK;
}

/* If a plugin's manifest watches no files, changes of the plugin's devices are detected late. */
static void note_what_watches_nothing(gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        gpuhal_candidate *candidate = &candidates->list[i];
        bool lists = candidate->state == GPUHAL_PLUGIN_OK,
             none = candidate->state == GPUHAL_PLUGIN_NO_DRIVER || candidate->state == GPUHAL_PLUGIN_NO_DEVICE;
        if (candidate->manifest && !candidate->watch && !candidate->note && !gpuhal_candidate_is_cpu(candidate) &&
            (lists || none)) {
            candidate->note = gpuhal_text_copy(lists ? "its manifest has no `watch`: an added or removed device is "
                                                       "noticed only when a device is opened, or by a rescan"
                                                     : "its manifest has no `watch`: the result is not cached, and "
                                                       "every program that starts probes the plugin again");
        }
    }
}

static void log_outcome(gpuhal_log *log, const gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const gpuhal_candidate *candidate = &candidates->list[i];
        const size_t devices = gpuhal_listed_devices_usable(&candidate->devices);
        gpuhal_log_line(log, GPUHAL_LEVEL_INFO, "%s (%s): %s%s%s, %zu device%s",
                        candidate->name ? candidate->name : "plugin", candidate->file ? candidate->file : "no file",
                        gpuhal_plugin_state_name(candidate->state), candidate->reason ? ": " : "",
                        candidate->reason ? candidate->reason : "", devices, devices == 1 ? "" : "s");
    }
}

static bool is_candidate(const gpuhal_candidates *candidates, const gpuhal_option *option)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const char *name = candidates->list[i].name;
        if (name && strlen(name) == option->plugin_length && memcmp(name, option->key, option->plugin_length) == 0) {
            return true;
        }
    }
    return false;
}

static bool add_system_root(const gpuhal_settings *settings, gpuhal_candidate *candidate)
{
    if (!settings->system_root[0]) {
        return true;
    }
    char *all =
        gpuhal_text_format("%s%s" GPUHAL_OPTION_SYSTEM_ROOT "=%s;", candidate->options ? candidate->options : "",
                           candidate->name, settings->system_root);
    free(candidate->options);
    candidate->options = all;
    return all != NULL;
}

static gpuhal_status give_options(const gpuhal_settings *settings, gpuhal_log *log, gpuhal_candidates *candidates)
{
    gpuhal_option option;
    for (const char *at = settings->options; gpuhal_options_next(&at, &option);) {
        if (!is_candidate(candidates, &option)) {
            gpuhal_log_line(log, GPUHAL_LEVEL_WARNING, "the option %.*s is for a plugin that was not found",
                            (int)option.key_length, option.key);
        }
    }
    for (size_t i = 0; i < candidates->count; i++) {
        gpuhal_candidate *candidate = &candidates->list[i];
        if (candidate->name && (!gpuhal_options_of(settings->options, candidate->name, &candidate->options) ||
                                !add_system_root(settings, candidate))) {
            return gpuhal_error_host_memory();
        }
    }
    return GPUHAL_OK;
}

/* Duplicates are decided in the documented order of the search. The candidates are sorted by priority after that. */
static gpuhal_status run(gpuhal_probe_cache *cache)
{
    const gpuhal_settings *settings = cache->settings;
    gpuhal_log *log = cache->log;
    gpuhal_candidates *candidates = cache->candidates;
    /* A driver that uses this library would probe itself in a helper, where it would probe itself again, without
     * end. */
    if (gpuhal_os_environment(GPUHAL_WITHIN_HELPER)) {
        gpuhal_candidates_add_note(candidates, log,
                                   "plugins are not searched for: this process is the helper that probes one");
        return GPUHAL_OK;
    }
    gpuhal_selection selection;
    gpuhal_status status = gpuhal_selection_parse(settings, &selection);
    if (status) {
        return status;
    }
    status = add_builtins(settings, log, candidates);
    status = status ? status : gpuhal_search(settings, log, candidates);
    status = status ? status : give_options(settings, log, candidates);
    status = status ? status : gpuhal_selection_apply(&selection, log, candidates);
    if (!status) {
        check_files(log, candidates);
        leave_drivers_to_clean_processes(settings, candidates);
        leave_forked(candidates);
        gpuhal_selection_sort(&selection, candidates);
        gpuhal_probe_cache_check_retry(cache);
        status = probe_all(cache);
        status = status ? status : probe_second_choices(cache);
    }
    gpuhal_selection_finish(&selection);
    return status;
}

gpuhal_status gpuhal_loader_run(const gpuhal_settings *settings, gpuhal_log *log, const gpuhal_database *known,
                                bool refresh, gpuhal_candidates *out_candidates)
{
    /* If the run succeeds, failed plugins must not change the caller's last error. */
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    *out_candidates = (gpuhal_candidates){0};
    if (settings->helper_path && !gpuhal_os_path_is_absolute(settings->helper_path)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "config.helper_path is \"%s\", which is not an absolute path", settings->helper_path);
    }
    gpuhal_probe_cache cache = {
        .settings = settings, .log = log, .known = known, .refresh = refresh, .candidates = out_candidates};
    gpuhal_status status = run(&cache);
    gpuhal_probe_cache_finish(&cache);
    if (status) {
        gpuhal_candidates_finish(out_candidates);
        return status;
    }
    note_what_watches_nothing(out_candidates);
    log_outcome(log, out_candidates);
    gpuhal_error_restore(&before);
    return GPUHAL_OK;
}
