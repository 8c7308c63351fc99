/* registry/key.c: see key.h. A line is checked by making the line again from the path or name that it contains, and
 * comparing the two. */
#include "registry/key.h"

#include "base/text.h"
#include "registry/checksum.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAPS_BYTES_MAX   (4u << 20)
#define FOLDER_NAMES_MAX 4096u

/* Variables that the dynamic loader reads in every program. */
static const char *const library_variables[] = {"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"};

/* ---- files */

static void put_number(uint64_t number, gpuhal_text *to)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    gpuhal_text_append(to, digits + at, sizeof digits - at);
}

/* A cached listing formats hundreds of these strings, and printf() would take as long as the stat() calls. Times before
 * 1970 are negative. */
static void put_words(const gpuhal_file_state *state, gpuhal_text *to)
{
    const int64_t times[] = {state->modified_ns, state->changed_ns};
    put_number(state->device, to);
    gpuhal_text_append(to, "-", 1);
    put_number(state->inode, to);
    gpuhal_text_append(to, "-", 1);
    put_number(state->bytes, to);
    for (size_t i = 0; i < 2; i++) {
        gpuhal_text_append(to, "--", times[i] < 0 ? 2 : 1);
        put_number(times[i] < 0 ? 0 - (uint64_t)times[i] : (uint64_t)times[i], to);
    }
}

static char *words_of(const gpuhal_file_state *state)
{
    gpuhal_text words = {0};
    put_words(state, &words);
    return gpuhal_text_take(&words);
}

char *gpuhal_key_identity(const char *path)
{
    gpuhal_file_state state;
    return gpuhal_os_file_state(path, &state) ? NULL : words_of(&state);
}

/* The line includes the entries, because modifying a file in place does not change its folder's times. */
static char *folder_line(const char *path, const gpuhal_file_state *state)
{
    char **names;
    size_t count;
    uint32_t sum = 0;
    bool failed = false;
    if (gpuhal_os_directory_names(path, &names, &count)) {
        return gpuhal_text_format("folder unreadable %s", path);
    }
    for (size_t i = 0; i < count && i < FOLDER_NAMES_MAX && !failed; i++) {
        gpuhal_file_state inner;
        char *inner_path = gpuhal_text_format("%s/%s", path, names[i]);
        char *words =
            inner_path && gpuhal_os_file_state(inner_path, &inner) == 0 ? words_of(&inner) : gpuhal_text_copy("absent");
        failed = !inner_path || !words;
        if (!failed) {
            sum = gpuhal_checksum(sum, names[i], strlen(names[i]) + 1);
            sum = gpuhal_checksum(sum, words, strlen(words));
        }
        free(words);
        free(inner_path);
    }
    gpuhal_os_names_free(names, count);
    char *own = failed ? NULL : words_of(state);
    char *line = own ? gpuhal_text_format("folder %s-%08" PRIx32 " %s", own, sum, path) : NULL;
    free(own);
    return line;
}

/* The kernel sets the times of generated files at each read, so the times are meaningless. */
static bool is_made_up(const char *path)
{
    return strncmp(path, "/sys/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

static char *file_line(const char *path)
{
    gpuhal_file_state state;
    if (gpuhal_os_file_state(path, &state)) {
        return gpuhal_text_format("file absent %s", path);
    }
    if (is_made_up(path)) {
        return gpuhal_text_format("file there %s", path);
    }
    if (state.directory) {
        return folder_line(path, &state);
    }
    if (state.node == 0) {
        gpuhal_text line = {0};
        gpuhal_text_append(&line, "file ", 5);
        put_words(&state, &line);
        gpuhal_text_append(&line, " ", 1);
        gpuhal_text_append(&line, path, strlen(path));
        return gpuhal_text_take(&line);
    }
    char *words = gpuhal_key_node_words(path, &state);
    char *line = words ? gpuhal_text_format("file %s %s", words, path) : NULL;
    free(words);
    return line;
}

static char *variable_line(const char *name)
{
    const char *value = gpuhal_os_environment(name);
    return value ? gpuhal_text_format("variable %s=%s", name, value) : gpuhal_text_format("variable %s", name);
}

/* ---- keys */

static void add_all(const gpuhal_texts *from, gpuhal_texts *to)
{
    for (size_t i = 0; i < from->count; i++) {
        gpuhal_texts_add(to, from->list[i]);
    }
    to->failed = to->failed || from->failed;
}

void gpuhal_key_make(const char *root, const gpuhal_key_request *request, const gpuhal_texts *machine,
                     gpuhal_texts *out_lines)
{
    *out_lines = (gpuhal_texts){0};
    for (size_t i = 0; request->files && i < request->files->count; i++) {
        gpuhal_texts_give(out_lines, file_line(request->files->list[i]));
    }
    char *cache = gpuhal_text_format("%s/etc/ld.so.cache", root);
    gpuhal_texts_give(out_lines, cache ? file_line(cache) : NULL);
    for (size_t i = 0; i < sizeof library_variables / sizeof *library_variables; i++) {
        gpuhal_texts_give(out_lines, variable_line(library_variables[i]));
    }
    free(cache);
    for (size_t i = 0; request->variables && i < request->variables->count; i++) {
        gpuhal_texts_give(out_lines, variable_line(request->variables->list[i]));
    }
    add_all(machine, out_lines);
}

/* Makes the line again for the same file or name. Returns NULL if the line is about the machine, or if out of memory.
 * The path or name is the rest of the line and may contain blanks. */
static char *line_again(const char *line, bool *out_own)
{
    const char *path = strncmp(line, "file ", 5) == 0     ? strchr(line + 5, ' ')
                       : strncmp(line, "folder ", 7) == 0 ? strchr(line + 7, ' ')
                                                          : NULL;
    *out_own = true;
    if (path) {
        return file_line(path + 1);
    }
    if (strncmp(line, "variable ", 9) == 0) {
        char *name = gpuhal_text_copy_range(line + 9, strcspn(line + 9, "="));
        char *again = name ? variable_line(name) : NULL;
        free(name);
        return again;
    }
    *out_own = false;
    return NULL;
}

static void say_why(char **out_why, const char *line)
{
    if (out_why) {
        *out_why = gpuhal_text_copy(line);
    }
}

static const char **place_of(gpuhal_key_seen *seen, const char *line)
{
    size_t at = gpuhal_checksum(0, line, strlen(line)) % GPUHAL_KEY_SEEN;
    while (seen->lines[at] && strcmp(seen->lines[at], line) != 0) {
        at = (at + 1) % GPUHAL_KEY_SEEN;
    }
    return &seen->lines[at];
}

static bool is_seen(gpuhal_key_seen *seen, const char *line)
{
    return seen && *place_of(seen, line);
}

/* Keeps a quarter of the slots free, so that a search for a missing line ends quickly. */
static void add_seen(gpuhal_key_seen *seen, const char *line)
{
    if (seen && seen->count < GPUHAL_KEY_SEEN / 4 * 3) {
        *place_of(seen, line) = line;
        seen->count++;
    }
}

/* Lines about the machine are compared in order with the current lines. All current lines must match, because an
 * additional line makes the key outdated, as a changed line does. */
static bool is_current(const gpuhal_texts *lines, const gpuhal_texts *machine, gpuhal_key_seen *seen, char **out_why)
{
    size_t of_machine = 0;
    if (out_why) {
        *out_why = NULL;
    }
    for (size_t i = 0; i < lines->count; i++) {
        bool own = false;
        const char *line = lines->list[i];
        if (is_seen(seen, line)) {
            continue;
        }
        char *again = line_again(line, &own);
        const char *now = own ? again : of_machine < machine->count ? machine->list[of_machine++] : NULL;
        bool same = now && strcmp(now, line) == 0;
        free(again);
        if (!same) {
            say_why(out_why, line);
            return false;
        }
        if (own) {
            add_seen(seen, line);
        }
    }
    if (machine->failed || of_machine != machine->count) {
        say_why(out_why, of_machine < machine->count ? machine->list[of_machine] : "");
        return false;
    }
    return true;
}

bool gpuhal_key_is_current(const gpuhal_texts *lines, const gpuhal_texts *machine, char **out_why)
{
    return is_current(lines, machine, NULL, out_why);
}

/* Several keys may be current, because the key of a crash names fewer files than the key of a completed probe. The
 * latest result is returned. */
const gpuhal_database_plugin *gpuhal_key_find(const gpuhal_database *database, const char *name, const char *identity,
                                              const gpuhal_texts *machine, gpuhal_key_seen *seen)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(database, &count), *found = NULL;
    for (size_t i = 0; i < count; i++) {
        bool later = !found || plugins[i].generation > found->generation;
        if (later && strcmp(plugins[i].identity, identity) == 0 && strcmp(plugins[i].name, name) == 0 &&
            is_current(&plugins[i].key, machine, seen, NULL)) {
            found = &plugins[i];
        }
    }
    return found;
}

/* ---- mappings */

/* Parses "7f0…-7f0… r-xp 00000000 fe:00 131 /usr/lib/libc.so.6". Returns the path of an executable mapping; NULL for
 * any other line. */
static const char *code_path(const char *line)
{
    const char *rights = strchr(line, ' ');
    const char *path = strchr(line, '/');
    return rights && path && path > rights + 4 && rights[3] == 'x' ? path : NULL;
}

void gpuhal_key_mapped_files(gpuhal_texts *out_paths)
{
    char *text = NULL;
    size_t bytes = 0;
    *out_paths = (gpuhal_texts){0};
    if (gpuhal_os_file_read("/proc/self/maps", MAPS_BYTES_MAX, &text, &bytes)) {
        out_paths->failed = true;
        return;
    }
    char *end = NULL;
    for (char *line = text; line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end) {
            *end = 0;
        }
        const char *path = code_path(line);
        bool known = !path;
        for (size_t i = out_paths->count; i > 0 && !known; i--) {
            known = strcmp(out_paths->list[i - 1], path) == 0;
        }
        if (!known) {
            gpuhal_texts_add(out_paths, path);
        }
    }
    free(text);
}
