/* loader/driver_files.c: see driver_files.h. A library is identified immediately after loading, because its file may be
 * replaced later while the process still uses the old file. */
#include "loader/driver_files.h"

#include "base/text.h"
#include "loader/host.h"
#include "os/os.h"
#include "registry/texts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct file {
    char *path, *name; /* `name` is the soname; NULL if none */
    char *identity;    /* of the mapped file; NULL if it is unknown, was removed, or was replaced at its path */
    gpuhal_texts needs;
} file;

/* Protects the list. Entries are never removed, because compiled code may still contain parts of an unloaded library.
 */
static gpuhal_mutex list_mutex = GPUHAL_MUTEX_INITIALIZER;
static file *list;
static size_t count, capacity;
static uint64_t seen; /* number of libraries that the process had loaded when the list was last complete */

/* Omits the device number, which changes each time a container is started. */
static char *identify(const char *path)
{
    gpuhal_file_state state;
    return gpuhal_os_file_state(path, &state)
               ? NULL
               : gpuhal_text_format("%" PRIu64 "-%" PRIu64 "-%" PRId64 "-%" PRId64, state.inode, state.bytes,
                                    state.modified_ns, state.changed_ns);
}

static void finish_file(file *one)
{
    free(one->path);
    free(one->name);
    free(one->identity);
    gpuhal_texts_finish(&one->needs);
}

static bool has_room(void)
{
    if (count < capacity) {
        return true;
    }
    file *larger = realloc(list, (capacity * 2 + 64) * sizeof *larger);
    if (larger) {
        list = larger;
        capacity = capacity * 2 + 64;
    }
    return larger != NULL;
}

/* `identity` identifies the file that was at the path before the mapping was looked up. If the path now refers to a
 * different file, the mapped file has been moved or removed. */
static bool add(const gpuhal_loaded_library *loaded, const char *path, const char *identity)
{
    file one = {.path = gpuhal_text_copy(path),
                .name = gpuhal_text_copy(loaded->name),
                .identity = loaded->mapped ? identify(loaded->mapped) : NULL};
    if (one.identity && identity && strcmp(one.identity, identity) != 0) {
        free(one.identity);
        one.identity = NULL;
    }
    for (const char *needs = loaded->needs; *needs; needs += strlen(needs) + 1) {
        gpuhal_texts_add(&one.needs, needs);
    }
    if (!one.path || (loaded->name && !one.name) || one.needs.failed || !has_room()) {
        finish_file(&one);
        return false;
    }
    list[count++] = one;
    return true;
}

static bool is_known(const char *path)
{
    bool known = false;
    for (size_t i = 0; i < count && !known; i++) {
        known = strcmp(list[i].path, path) == 0;
    }
    return known;
}

/* If the dynamic loader has only a relative name for a library, the path is taken from the mapping. */
static bool add_new(gpuhal_loaded_library *libraries, size_t library_count)
{
    char **identities = calloc(library_count + 1, sizeof *identities);
    bool good = identities;
    for (size_t i = 0; good && i < library_count; i++) {
        const char *path = libraries[i].path;
        identities[i] = *path == '/' && !is_known(path) ? identify(path) : NULL;
    }
    gpuhal_os_libraries_find_mapped(libraries, library_count);
    for (size_t i = 0; identities && i < library_count; i++) {
        const char *path = *libraries[i].path == '/' ? libraries[i].path : libraries[i].mapped;
        good = good && path && (is_known(path) || add(&libraries[i], path, identities[i]));
        free(identities[i]);
    }
    free(identities);
    return good;
}

/* Called with the mutex held. In a forked child, the dynamic loader's lock may be held for ever by a thread that exists
 * only in the parent. */
static bool complete(void)
{
    if (gpuhal_dlopen_is_forked()) {
        return false;
    }
    gpuhal_loaded_library *libraries = NULL;
    size_t library_count = 0;
    const uint64_t loads = gpuhal_os_libraries_loads();
    if (loads != seen && gpuhal_os_libraries_list(&libraries, &library_count) == 0 &&
        add_new(libraries, library_count)) {
        seen = loads;
    }
    gpuhal_os_libraries_free(libraries, library_count);
    return loads == seen;
}

/* A library loaded at another time counts only if it has a soname. Code that drivers compile and load has none, nor
 * have Python extensions and similar modules. */
static bool is_root(const gpuhal_driver_files *files, size_t i)
{
    const bool came_with_plugin = i >= files->begin && i < files->end;
    return came_with_plugin || ((files->shared || i >= files->end) && list[i].name);
}

static bool is_named(const file *one, const char *name)
{
    return (one->name && strcmp(one->name, name) == 0) || strcmp(strrchr(one->path, '/') + 1, name) == 0 ||
           strcmp(one->path, name) == 0;
}

/* Marks the roots before `end` and their dependencies. `work` has room for the whole list. */
static void mark(const gpuhal_driver_files *files, size_t end, bool *marks, size_t *work)
{
    size_t marked = 0;
    for (size_t i = 0; i < end; i++) {
        if (is_root(files, i)) {
            marks[i] = true;
            work[marked++] = i;
        }
    }
    for (size_t done = 0; done < marked; done++) {
        const gpuhal_texts *needs = &list[work[done]].needs;
        for (size_t i = 0; i < needs->count * count; i++) {
            const size_t other = i % count;
            if (!marks[other] && is_named(&list[other], needs->list[i / count])) {
                marks[other] = true;
                work[marked++] = other;
            }
        }
    }
}

/* Called with the mutex held. */
static char *write_lines(const gpuhal_driver_files *files, size_t end)
{
    gpuhal_text text = {0};
    bool *marks = calloc(count + 1, sizeof *marks);
    size_t *work = calloc(count + 1, sizeof *work);
    bool good = marks && work;
    if (good) {
        mark(files, end, marks, work);
    }
    for (size_t i = 0; good && i < count; i++) {
        good = !marks[i] || list[i].identity;
        if (good && marks[i]) {
            gpuhal_text_printf(&text, "%s %s\n", list[i].identity, list[i].path);
        }
    }
    free(marks);
    free(work);
    char *lines = good ? gpuhal_text_take(&text) : NULL;
    gpuhal_text_finish(&text);
    return lines;
}

void gpuhal_driver_files_begin(gpuhal_driver_files *files)
{
    gpuhal_mutex_lock(&list_mutex);
    if (!files->begun && complete()) {
        files->begun = true;
        files->begin = count;
    }
    gpuhal_mutex_unlock(&list_mutex);
}

void gpuhal_driver_files_end(gpuhal_driver_files *files, const char *library)
{
    gpuhal_mutex_lock(&list_mutex);
    char *identity = library ? identify(library) : NULL;
    const bool known = files->begun && complete() && (identity || !library);
    for (size_t i = 0; known && identity && i < files->begin; i++) {
        files->shared = files->shared || (list[i].identity && strcmp(list[i].identity, identity) == 0);
    }
    files->end = count;
    free(files->lines);
    files->lines = known ? write_lines(files, count) : NULL;
    gpuhal_mutex_unlock(&list_mutex);
    free(identity);
}

char *gpuhal_driver_files_now(const gpuhal_driver_files *files)
{
    gpuhal_mutex_lock(&list_mutex);
    char *lines = !files->lines || !complete() ? NULL
                  : count == files->end        ? gpuhal_text_copy(files->lines)
                                               : write_lines(files, count);
    gpuhal_mutex_unlock(&list_mutex);
    return lines;
}

bool gpuhal_driver_files_are_current(const char *lines)
{
    bool same = true;
    for (const char *line = lines; same && *line;) {
        const size_t length = strcspn(line, "\n"), word = strcspn(line, " ");
        char *path = word < length ? gpuhal_text_copy_range(line + word + 1, length - word - 1) : NULL;
        char *identity = path ? identify(path) : NULL;
        same = identity && strlen(identity) == word && strncmp(identity, line, word) == 0;
        free(identity);
        free(path);
        line += length + (line[length] == '\n');
    }
    return same;
}
