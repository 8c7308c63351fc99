/* loader/cache_key.c: see cache_key.h. */
#include "loader/cache_key.h"

#include "base/text.h"
#include "os/os.h"
#include "registry/key.h"

#include <stdlib.h>
#include <string.h>

#define DELETED " (deleted)"

static void add_once(gpuhal_texts *texts, const char *text)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (strcmp(texts->list[i], text) == 0) {
            return;
        }
    }
    gpuhal_texts_add(texts, text);
}

/* For "$NAME/rest", adds every absolute path in the variable, with "/rest" appended. */
static void add_from_variable(const char *word, gpuhal_texts *to)
{
    size_t length = strcspn(word + 1, "/"), count = 0;
    char *name = gpuhal_text_copy_range(word + 1, length);
    const char *value = name ? gpuhal_os_environment(name) : NULL;
    char **paths = value ? gpuhal_text_split_paths(value, &count) : NULL;
    to->failed = to->failed || !name || (value && !paths);
    for (size_t i = 0; i < count; i++) {
        char *path =
            gpuhal_os_path_is_absolute(paths[i]) ? gpuhal_text_format("%s%s", paths[i], word + 1 + length) : NULL;
        if (path) {
            add_once(to, path);
        }
        to->failed = to->failed || (!path && gpuhal_os_path_is_absolute(paths[i]));
        free(path);
    }
    gpuhal_text_list_free(paths);
    free(name);
}

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
    } else if (gpuhal_os_path_is_absolute(word)) {
        add_once(to, word);
    }
}

/* Returns whether the path is part of the machine's state, as opposed to an installed file. */
static bool is_of_machine(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0;
}

void gpuhal_cache_key_watched(const char *root, const gpuhal_candidate *candidate, gpuhal_texts *to)
{
    gpuhal_texts named = {0};
    each_word(candidate->watch, add_watched, &named);
    to->failed = to->failed || named.failed;
    for (size_t i = 0; i < named.count; i++) {
        char *path = gpuhal_text_format("%s%s", is_of_machine(named.list[i]) ? root : "", named.list[i]);
        to->failed = to->failed || !path;
        if (path) {
            add_once(to, path);
        }
        free(path);
    }
    gpuhal_texts_finish(&named);
}

/* A driver may be installed later in a directory that LD_LIBRARY_PATH lists. The cache key contains the dynamic
 * loader's cache file for all other directories. */
static void add_library_places(const char *word, gpuhal_texts *to)
{
    char *places = gpuhal_text_format("$LD_LIBRARY_PATH/%s", word);
    to->failed = to->failed || !places;
    if (places) {
        add_from_variable(places, to);
    }
    free(places);
}

/* A driver may be installed later under a path or name in a variable. A driver that was loaded is already among the
 * mapped files. GPUHAL_…_LIBRARY is one path with any ending. Other variables, such as ZE_ENABLE_ALT_DRIVERS, may be
 * lists. Only the libraries in a list are added, because a folder's entry would change with every file in the
 * folder. */
static void add_named_libraries(const char *word, gpuhal_texts *to)
{
    static const char front[] = "GPUHAL_", back[] = "_LIBRARY";
    const size_t length = strlen(word), end = sizeof back - 1;
    const bool is_ours = length > end && strncmp(word, front, sizeof front - 1) == 0 &&
                         strcmp(word + length - end, back) == 0;
    const char *const separators = is_ours ? "" : ",:;";
    const char *value = gpuhal_os_environment(word);
    for (const char *at = value ? value : ""; *at;) {
        at += strspn(at, separators);
        const size_t bytes = strcspn(at, separators);
        char *name = bytes > 0 ? gpuhal_text_copy_range(at, bytes) : NULL;
        to->failed = to->failed || (bytes > 0 && !name);
        const bool counts = name && (is_ours || strstr(name, gpuhal_os_library_suffix()));
        if (counts && gpuhal_os_path_is_absolute(name)) {
            add_once(to, name);
        } else if (counts && !strchr(name, '/')) {
            add_library_places(name, to);
        }
        free(name);
        at += bytes;
    }
}

/* The key contains the variable's current paths, so a different value results in a different key. */
static void add_watched_variable(const char *word, gpuhal_texts *to)
{
    char *name = word[0] == '$' ? gpuhal_text_copy_range(word + 1, strcspn(word + 1, "/")) : NULL;
    to->failed = to->failed || (word[0] == '$' && !name);
    if (name) {
        add_once(to, name);
    }
    free(name);
}

/* The kernel marks the mappings of files that were removed or never had a name. */
static bool is_deleted(const char *path)
{
    size_t length = strlen(path), end = strlen(DELETED);
    return length > end && strcmp(path + length - end, DELETED) == 0;
}

static int compare_texts(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* The key contains the files used, the absent files that would change the result, and the manifest's variables. A
 * mapping of a removed file has no path to check; see gpuhal_cache_key_replaced(). */
bool gpuhal_cache_key_make(const char *root, const gpuhal_candidate *candidate, const gpuhal_texts *mapped,
                           const gpuhal_texts *machine, gpuhal_texts *out_key)
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
    gpuhal_cache_key_watched(root, candidate, &files);
    each_word(candidate->libraries, add_library_places, &files);
    each_word(candidate->environment, add_named_libraries, &files);
    each_word(candidate->environment, add_variable, &variables);
    each_word(candidate->watch, add_watched_variable, &variables);
    /* Sorts the files, because the order of addresses changes from run to run. */
    if (files.count > 1) {
        qsort(files.list, files.count, sizeof *files.list, compare_texts);
    }
    bool good = !files.failed && !variables.failed;
    if (good) {
        const gpuhal_key_request request = {.files = &files, .variables = &variables};
        gpuhal_key_make("", &request, machine, out_key);
    }
    gpuhal_texts_finish(&files);
    gpuhal_texts_finish(&variables);
    return good && !out_key->failed;
}

/* Drivers also map generated code from unnamed files. Such a file has no successor, and its path is not a
 * library's. */
bool gpuhal_cache_key_replaced(const gpuhal_texts *mapped)
{
    for (size_t i = 0; mapped && i < mapped->count; i++) {
        const char *path = mapped->list[i];
        if (!is_deleted(path)) {
            continue;
        }
        gpuhal_file_info info;
        char *successor = gpuhal_text_copy_range(path, strlen(path) - strlen(DELETED));
        if (!successor || strstr(path, gpuhal_os_library_suffix()) || gpuhal_os_file_info(successor, &info) == 0) {
            free(successor);
            return true;
        }
        free(successor);
    }
    return false;
}
