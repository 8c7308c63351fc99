/* loader/search.c: see search.h.
 *
 * The order is: GPUHAL_PLUGIN_PATH, the configuration's plugin_path, `gpuhal/` beside the library, the compiled-in
 * directory, and at last the directories for vendors' manifests: the user's, the administrator's, the packages'. A
 * process with more rights than its user searches only compiled-in directories. Each directory is searched only once.
 */
#include "loader/search.h"

#include "base/error.h"
#include "base/text.h"
#include "loader/candidates.h"
#include "loader/file_check.h"
#include "loader/load.h"
#include "loader/manifest.h"
#include "loader/selection.h"
#include "os/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MANIFEST_SUFFIX ".gpuhal"
#define LIBRARY_PREFIX  "gpuhal-"

typedef struct searched_directory {
    char *path;
    const char *source; /* the setting that names the directory; NULL for a standard directory, which does not have to
                         * exist */
    bool vendors;       /* manifests in this directory must use absolute library paths */
    uint64_t device, inode;
    char **names;
    size_t count;
} searched_directory;

typedef struct named_library {
    uint64_t device, inode;
} named_library;

typedef struct search {
    gpuhal_text looked_in; /* all directories in the search, including absent directories */
    const gpuhal_settings *settings;
    gpuhal_log *log;
    gpuhal_candidates *candidates;
    searched_directory *list;
    size_t count;
    gpuhal_known_folder folder;
    named_library *libraries; /* sorted after all manifests are read */
    size_t library_count;
} search;

/* A build tree's plugin directory is often both beside the library and in GPUHAL_PLUGIN_PATH, with different spellings.
 * The directory's files must not become duplicates. */
static bool is_known_directory(const search *at, const gpuhal_file_info *info)
{
    for (size_t i = 0; i < at->count; i++) {
        if (at->list[i].device == info->device && at->list[i].inode == info->inode) {
            return true;
        }
    }
    return false;
}

static void note_unreadable(search *at, const char *path, const char *source, int error)
{
    if (source) {
        gpuhal_candidates_add_note(at->candidates, at->log, "%s names %s, which cannot be searched: %s", source, path,
                                   strerror(error));
    } else if (error != ENOENT && error != ENOTDIR) {
        gpuhal_candidates_add_note(at->candidates, at->log, "the plugin directory %s cannot be searched: %s", path,
                                   strerror(error));
    }
}

static gpuhal_status add_directory(search *at, const char *path, const char *source, bool vendors)
{
    gpuhal_file_info info;
    searched_directory added = {.source = source, .vendors = vendors};
    gpuhal_text_printf(&at->looked_in, "%s%s", at->looked_in.length > 0 ? ", " : "", path);
    int error = gpuhal_os_file_info(path, &info);
    if (!error && is_known_directory(at, &info)) {
        return GPUHAL_OK;
    }
    error = error ? error : gpuhal_os_directory_names(path, &added.names, &added.count);
    if (error == ENOMEM) {
        return gpuhal_error_host_memory();
    }
    if (error) {
        note_unreadable(at, path, source, error);
        return GPUHAL_OK;
    }
    added.device = info.device;
    added.inode = info.inode;
    added.path = gpuhal_text_copy(path);
    searched_directory *list = added.path ? realloc(at->list, (at->count + 1) * sizeof *list) : NULL;
    if (!list) {
        free(added.path);
        gpuhal_os_names_free(added.names, added.count);
        return gpuhal_error_host_memory();
    }
    at->list = list;
    list[at->count++] = added;
    return GPUHAL_OK;
}

static gpuhal_status add_list(search *at, const char *paths, const char *source)
{
    if (!paths) {
        return GPUHAL_OK;
    }
    size_t count = 0;
    char **elements = gpuhal_text_split_paths(paths, &count);
    gpuhal_status status = elements ? GPUHAL_OK : gpuhal_error_host_memory();
    for (size_t i = 0; i < count && !status; i++) {
        if (!elements[i][0]) {
            status =
                gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\": an element is empty", source, paths);
        } else if (!gpuhal_os_path_is_absolute(elements[i])) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%s\": \"%s\" is not an absolute path",
                                      source, paths, elements[i]);
        }
    }
    if (!status && gpuhal_os_privileged()) {
        gpuhal_candidates_add_note(at->candidates, at->log,
                                   "%s is not searched by a process with more rights than its user", source);
        count = 0;
    }
    for (size_t i = 0; i < count && !status; i++) {
        status = add_directory(at, elements[i], source, false);
    }
    gpuhal_text_list_free(elements);
    return status;
}

/* The path is relative to the library's location, so that build trees and moved installations work. */
static gpuhal_status add_own(search *at)
{
    char *own = gpuhal_os_privileged() ? NULL : gpuhal_os_own_directory();
    if (!own) {
        return GPUHAL_OK;
    }
    char *path = gpuhal_text_format("%s/gpuhal", own);
    gpuhal_status status = path ? add_directory(at, path, NULL, false) : gpuhal_error_host_memory();
    free(path);
    free(own);
    return status;
}

static gpuhal_status find_directories(search *at)
{
    gpuhal_status status = add_list(at, at->settings->environment_plugin_path, "GPUHAL_PLUGIN_PATH");
    status = status ? status : add_list(at, at->settings->plugin_path, "config.plugin_path");
    status = status ? status : add_own(at);
    status = status ? status : add_directory(at, GPUHAL_PLUGIN_DIRECTORY, NULL, false);
    if (!status && at->settings->user_plugin_directory) {
        status = add_directory(at, at->settings->user_plugin_directory, NULL, true);
    }
    status = status ? status : add_directory(at, GPUHAL_VENDOR_DIRECTORY, NULL, true);
    return status ? status : add_directory(at, GPUHAL_PACKAGED_VENDOR_DIRECTORY, NULL, true);
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), end = strlen(suffix);
    return length > end && strcmp(name + length - end, suffix) == 0;
}

/* Returns the malloc'ed name between the prefix and the suffix; NULL for an invalid name, which is not an error. */
static char *name_inside(const char *file, const char *prefix, const char *suffix)
{
    size_t front = strlen(prefix), back = strlen(suffix), length = strlen(file);
    char *name = length > front + back ? gpuhal_text_copy_range(file + front, length - front - back) : NULL;
    if (name && !gpuhal_plugin_name_is_valid(name)) {
        free(name);
        name = NULL;
    }
    return name;
}

/* Libraries are identified by file, because manifests may refer to them through symbolic links. */
static bool note_library(search *at, const char *library)
{
    gpuhal_file_info info;
    if (!library || gpuhal_os_file_info(library, &info)) {
        return true;
    }
    named_library *libraries = realloc(at->libraries, (at->library_count + 1) * sizeof *libraries);
    if (libraries) {
        at->libraries = libraries;
        libraries[at->library_count++] = (named_library){info.device, info.inode};
    }
    return libraries != NULL;
}

/* Adds a candidate even if the manifest is invalid. */
static gpuhal_status add_manifest(search *at, const searched_directory *directory, const char *file)
{
    char *path = gpuhal_text_format("%s/%s", directory->path, file);
    if (!path) {
        return gpuhal_error_host_memory();
    }
    /* If the manifest's name is unreadable, the file name replaces it, for GPUHAL_BACKENDS and the report. */
    gpuhal_load_context load = {.log = at->log, .folder = &at->folder};
    gpuhal_manifest manifest;
    bool good = gpuhal_manifest_read(&load, path, directory->vendors, &manifest);
    char *stem = manifest.name ? NULL : name_inside(file, "", MANIFEST_SUFFIX);
    const char *name = manifest.name ? manifest.name : stem;
    gpuhal_candidate *candidate = gpuhal_candidates_add(at->candidates, name, good ? manifest.library : path);
    bool added = candidate && note_library(at, manifest.library);
    if (candidate) {
        candidate->priority = gpuhal_selection_priority(name, manifest.has_priority, manifest.priority);
        candidate->ignore_environment = at->settings->ignore_environment;
        candidate->own = !directory->source && !directory->vendors;
        gpuhal_candidate_take(candidate, &load, good);
        gpuhal_candidate_note(candidate, &path, &manifest.libraries, &manifest.environment, &manifest.settings,
                              &manifest.watch);
    }
    if (candidate && good && !gpuhal_manifest_has_platform(&manifest, gpuhal_os_platform())) {
        gpuhal_candidate_decide(candidate, GPUHAL_PLUGIN_INCOMPATIBLE, GPUHAL_STAGE_SELECT, "%s is for %s; this is %s",
                                candidate->manifest, manifest.platforms, gpuhal_os_platform());
    }
    gpuhal_load_finish(&load);
    gpuhal_manifest_finish(&manifest);
    free(stem);
    free(path);
    return added ? GPUHAL_OK : gpuhal_error_host_memory();
}

static int compare_libraries(const void *one, const void *other)
{
    const named_library *a = one, *b = other;
    return a->device != b->device ? (a->device < b->device ? -1 : 1)
           : a->inode != b->inode ? (a->inode < b->inode ? -1 : 1)
                                  : 0;
}

static bool is_named(const search *at, const char *path)
{
    gpuhal_file_info info;
    if (at->library_count == 0 || gpuhal_os_file_info(path, &info)) {
        return false;
    }
    const named_library wanted = {info.device, info.inode};
    return bsearch(&wanted, at->libraries, at->library_count, sizeof wanted, compare_libraries) != NULL;
}

static int compare_names(const void *name, const void *entry)
{
    return strcmp(name, *(char *const *)entry);
}

static bool has_name(const searched_directory *directory, const char *name)
{
    return directory->count > 0 &&
           bsearch(name, directory->names, directory->count, sizeof *directory->names, compare_names) != NULL;
}

/* Adds a rejected candidate for a library without a manifest. If the library has an invalid manifest, the manifest's
 * candidate states the reason. */
static gpuhal_status add_stray(search *at, const searched_directory *directory, const char *file)
{
    char *path = gpuhal_text_format("%s/%s", directory->path, file);
    char *name = name_inside(file, LIBRARY_PREFIX, gpuhal_os_library_suffix());
    char *manifest = gpuhal_text_format("%s" MANIFEST_SUFFIX, name ? name : "NAME");
    gpuhal_status status = path && manifest ? GPUHAL_OK : gpuhal_error_host_memory();
    if (!status && !is_named(at, path) && !has_name(directory, manifest)) {
        gpuhal_candidate *candidate = gpuhal_candidates_add(at->candidates, name, path);
        status = candidate ? GPUHAL_OK : gpuhal_error_host_memory();
        if (candidate) {
            candidate->priority = gpuhal_selection_priority(name, false, 0);
            gpuhal_candidate_decide(candidate, GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_MANIFEST,
                                    "no manifest names it: write %s/%s with name, library and abi", directory->path,
                                    manifest);
        }
    }
    free(manifest);
    free(name);
    free(path);
    return status;
}

static gpuhal_status read_directories(search *at)
{
    gpuhal_status status = GPUHAL_OK;
    for (size_t d = 0; d < at->count; d++) {
        const searched_directory *directory = &at->list[d];
        gpuhal_log_line(at->log, GPUHAL_LEVEL_DEBUG, "searching %s", directory->path);
        for (size_t i = 0; i < directory->count && !status; i++) {
            status = has_suffix(directory->names[i], MANIFEST_SUFFIX) ? add_manifest(at, directory, directory->names[i])
                                                                      : GPUHAL_OK;
        }
    }
    /* All manifests have now been read. They may name libraries in other directories. */
    if (at->library_count > 1) {
        qsort(at->libraries, at->library_count, sizeof *at->libraries, compare_libraries);
    }
    for (size_t d = 0; d < at->count; d++) {
        const searched_directory *directory = &at->list[d];
        for (size_t i = 0; i < directory->count && !status; i++) {
            const char *file = directory->names[i];
            bool looks = strncmp(file, LIBRARY_PREFIX, strlen(LIBRARY_PREFIX)) == 0 &&
                         has_suffix(file, gpuhal_os_library_suffix());
            status = looks ? add_stray(at, directory, file) : GPUHAL_OK;
        }
    }
    return status;
}

gpuhal_status gpuhal_search(const gpuhal_settings *settings, gpuhal_log *log, gpuhal_candidates *candidates)
{
    search at = {.settings = settings, .log = log, .candidates = candidates};
    gpuhal_status status = find_directories(&at);
    status = status ? status : read_directories(&at);
    if (!status && candidates->count == 0) {
        gpuhal_candidates_add_note(candidates, log, "no plugin was found in %s", gpuhal_text_get(&at.looked_in));
    }
    gpuhal_text_finish(&at.looked_in);
    for (size_t i = 0; i < at.count; i++) {
        free(at.list[i].path);
        gpuhal_os_names_free(at.list[i].names, at.list[i].count);
    }
    gpuhal_known_folder_finish(&at.folder);
    free(at.list);
    free(at.libraries);
    return status;
}
