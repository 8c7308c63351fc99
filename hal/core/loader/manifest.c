/* loader/manifest.c: see manifest.h. Every error names the file and, if possible, the line. */
#include "loader/manifest.h"

#include "base/records.h"
#include "base/text.h"
#include "loader/abi.h"
#include "loader/file_check.h"
#include "loader/load.h"
#include "os/os.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct reading {
    gpuhal_load_context *load;
    const char *path;
    bool absolute_only;
    gpuhal_manifest *manifest;
    uint32_t seen; /* one bit for each entry of keys */
} reading;

static bool refuse(gpuhal_load_context *load, const char *path, const char *why)
{
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_INVALID_ARGUMENT, "%s %s", path, why);
}

static bool refuse_line(const reading *at, uint32_t line, const char *why)
{
    return gpuhal_load_fail(at->load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_INVALID_ARGUMENT, "%s, line %" PRIu32 ": %s",
                               at->path, line, why);
}

static bool take_name(reading *at, const char *value, uint32_t line)
{
    if (!gpuhal_plugin_name_is_valid(value)) {
        return refuse_line(at, line, "name must be a lower-case letter followed by up to 30 of a-z, 0-9 and _");
    }
    at->manifest->name = gpuhal_text_copy(value);
    return at->manifest->name || gpuhal_load_no_memory(at->load);
}

/* A relative library path is relative to the manifest's directory, so that a folder of plugins can be moved as a whole.
 * The vendors' directories contain only manifests, so relative paths are refused there. The system's suffix is appended
 * only to `gpuhal-NAME`, so that the same manifest works on every system. */
static bool take_library(reading *at, const char *value, uint32_t line)
{
    if (!*value) {
        return refuse_line(at, line, "library is empty");
    }
    const bool absolute = gpuhal_os_path_is_absolute(value);
    if (!absolute && at->absolute_only) {
        return refuse_line(at, line, "library must be an absolute path in this directory");
    }
    const char *suffix = strncmp(value, "gpuhal-", 7) != 0 || strpbrk(value, "./") ? "" : gpuhal_os_library_suffix();
    int directory = absolute ? 0 : (int)(strrchr(at->path, '/') + 1 - at->path);
    at->manifest->library = gpuhal_text_format("%.*s%s%s", directory, at->path, value, suffix);
    return at->manifest->library || gpuhal_load_no_memory(at->load);
}

/* Keeps the list as written. A comma would become part of a word, so that the word never matches. */
static bool take_list(const reading *at, const char *value, uint32_t line, char **out_list)
{
    if (strchr(value, ',')) {
        return refuse_line(at, line, "the words of a list are separated by blanks, not by commas");
    }
    *out_list = gpuhal_text_copy(value);
    return *out_list || gpuhal_load_no_memory(at->load);
}

static const char *next_word(const char *at, size_t *out_length)
{
    at += strspn(at, " ");
    *out_length = strcspn(at, " ");
    return *out_length > 0 ? at : NULL;
}

static bool read_version(const char *word, size_t length, uint32_t *out_abi)
{
    uint64_t major = 0, minor = 0;
    const char *dot = memchr(word, '.', length);
    char *front = dot ? gpuhal_text_copy_range(word, (size_t)(dot - word)) : NULL;
    char *back = dot ? gpuhal_text_copy_range(dot + 1, length - (size_t)(dot + 1 - word)) : NULL;
    bool good = front && back && gpuhal_records_u64(front, &major) && gpuhal_records_u64(back, &minor) &&
                major <= UINT16_MAX && minor <= UINT16_MAX;
    free(front);
    free(back);
    *out_abi = (uint32_t)(major << 16 | minor);
    return good;
}

/* The ABI is checked here, so that a plugin with another ABI is refused by name and version without running its code.
 * One binary may support several versions. */
static bool take_abi(reading *at, const char *value, uint32_t line)
{
    size_t length = 0, count = 0;
    bool good = true;
    for (const char *word = value; good && (word = next_word(word, &length)) != NULL; word += length) {
        uint32_t abi = 0;
        good = read_version(word, length, &abi);
        at->manifest->speaks_abi = at->manifest->speaks_abi || gpuhal_abi_taken(&gpuhal_abi_own, abi);
        count++;
    }
    if (!good || count == 0) {
        return refuse_line(at, line,
                           "abi must be two numbers, as in 0.4, or several such versions separated by blanks");
    }
    return take_list(at, value, line, &at->manifest->abi);
}

/* The words are not checked, because this library may not know all platforms. */
static bool take_platforms(reading *at, const char *value, uint32_t line)
{
    if (!*value) {
        return refuse_line(at, line, "platforms is empty; leave it out for all platforms");
    }
    return take_list(at, value, line, &at->manifest->platforms);
}

static bool take_priority(reading *at, const char *value, uint32_t line)
{
    at->manifest->has_priority = gpuhal_records_i32(value, &at->manifest->priority);
    return at->manifest->has_priority || refuse_line(at, line, "priority must be a whole number");
}

static bool is_variable(const char *name, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    bool good = length > 0 && (name[0] < '0' || name[0] > '9');
    for (size_t i = 0; i < length && good; i++) {
        good = strchr(letters, name[i]) != NULL;
    }
    return good;
}

static bool append(char **list, const char *word, size_t length)
{
    char *longer = gpuhal_text_format("%s%s%.*s", *list ? *list : "", *list ? " " : "", (int)length, word);
    free(*list);
    *list = longer;
    return longer != NULL;
}

/* A word is the name of a variable, or NAME=VALUE. */
static bool take_environment(reading *at, const char *value, uint32_t line)
{
    gpuhal_manifest *manifest = at->manifest;
    size_t length = 0;
    bool room = true;
    if (strchr(value, ',')) {
        return refuse_line(at, line, "the words of a list are separated by blanks, not by commas");
    }
    for (const char *word = value; room && (word = next_word(word, &length)) != NULL; word += length) {
        const char *equals = memchr(word, '=', length);
        const size_t name = equals ? (size_t)(equals - word) : length;
        if (!is_variable(word, name)) {
            return refuse_line(at, line, "environment has a word that is neither a variable's name nor NAME=VALUE");
        }
        room = append(&manifest->environment, word, name);
        room = room && (!equals || append(&manifest->settings, word, length));
    }
    return room || gpuhal_load_no_memory(at->load);
}

/* File names may contain commas. */
static bool take_watch(reading *at, const char *value, __attribute__((unused)) uint32_t line)
{
    at->manifest->watch = gpuhal_text_copy(value);
    return at->manifest->watch || gpuhal_load_no_memory(at->load);
}

static bool take_libraries(reading *at, const char *value, uint32_t line)
{
    return take_list(at, value, line, &at->manifest->libraries);
}

/* Unknown keys only cause a warning. They may be of a later version, or misspelt. A known key may occur only once,
 * because it would be unclear which of two values is right. */
static const struct {
    const char *key;
    bool (*take)(reading *at, const char *value, uint32_t line);
} keys[] = {
    {"name", take_name},
    {"library", take_library},
    {"abi", take_abi},
    {"platforms", take_platforms},
    {"priority", take_priority},
    {"vendor_libraries", take_libraries},
    {"environment", take_environment},
    {"watch", take_watch},
};

static bool take_pair(reading *at, const gpuhal_records_reader *reader)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].key, reader->name) != 0) {
            continue;
        }
        if (at->seen & 1u << i) {
            return gpuhal_load_fail(at->load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_INVALID_ARGUMENT,
                                       "%s, line %" PRIu32 ": %s occurs twice", at->path, reader->line, reader->name);
        }
        at->seen |= 1u << i;
        const char *value = gpuhal_text_get(&reader->value);
        /* Values appear in messages and log lines. A line feed would look like the end of the message. */
        if (!gpuhal_records_is_clean(value, strlen(value))) {
            return refuse_line(at, reader->line, "a manifest's values have no line feeds, carriage returns and tabs");
        }
        return keys[i].take(at, value, reader->line);
    }
    gpuhal_log_line(at->load->log, GPUHAL_LEVEL_WARNING, "%s, line %" PRIu32 ": unknown key %s is ignored", at->path,
                    reader->line, reader->name);
    return true;
}

/* Any record besides one [plugin], and any key before it, is refused, because an ignored mistake is hard to find. */
static bool read_records(reading *at, const char *text, size_t bytes)
{
    gpuhal_records_reader reader;
    gpuhal_records_begin(&reader, text, bytes);
    bool good = true, begun = false;
    while (good) {
        gpuhal_records_item item = gpuhal_records_next(&reader);
        if (item == GPUHAL_RECORDS_END) {
            break;
        }
        if (item == GPUHAL_RECORDS_ERROR) {
            good = refuse_line(at, reader.line, reader.error);
        } else if (item == GPUHAL_RECORDS_PAIR) {
            good = begun ? take_pair(at, &reader) : refuse_line(at, reader.line, "a manifest begins with [plugin]");
        } else if (begun || strcmp(reader.name, "plugin") != 0) {
            good = refuse_line(at, reader.line, "a manifest has one record, [plugin]");
        } else {
            begun = true;
        }
    }
    gpuhal_records_finish(&reader);
    return good;
}

/* Runs last, so that an error in a line is reported instead of the missing key that it causes. */
static bool check_complete(reading *at)
{
    const gpuhal_manifest *manifest = at->manifest;
    const char *absent = !manifest->name ? "name" : !manifest->library ? "library" : !manifest->abi ? "abi" : NULL;
    if (absent) {
        return gpuhal_load_fail(at->load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_INVALID_ARGUMENT, "%s does not say %s",
                                   at->path, absent);
    }
    if (!manifest->speaks_abi) {
        return gpuhal_load_fail(at->load, GPUHAL_PLUGIN_INCOMPATIBLE, GPUHAL_ERROR_INCOMPATIBLE,
                                "%s says that the plugin speaks plugin ABI %s; this library speaks %" PRIu32 ".%" PRIu32
                                ": install a plugin that was built for this version",
                                at->path, manifest->abi, gpuhal_abi_own.major, gpuhal_abi_own.minor);
    }
    return true;
}

bool gpuhal_manifest_read(gpuhal_load_context *load, const char *path, bool absolute_only,
                          gpuhal_manifest *out_manifest)
{
    *out_manifest = (gpuhal_manifest){0};
    gpuhal_load_enter(load, GPUHAL_STAGE_MANIFEST);
    /* A user who can write to the manifest determines which library is loaded. */
    gpuhal_checked_file file;
    if (!gpuhal_file_check_trust(load, path, &file)) {
        return false;
    }
    char *text = NULL;
    size_t bytes = 0;
    int error = gpuhal_os_file_read(file.path, GPUHAL_MANIFEST_BYTES_MAX, &text, &bytes);
    gpuhal_checked_file_finish(&file);
    if (error) {
        return refuse(load, path,
                      error == EFBIG ? "is larger than 64 KiB, the limit of a manifest" : strerror(error));
    }
    reading at = {.load = load, .path = path, .absolute_only = absolute_only, .manifest = out_manifest};
    bool good = (bytes > 0 || refuse(load, path, "is empty")) && read_records(&at, text, bytes) && check_complete(&at);
    free(text);
    return good;
}

void gpuhal_manifest_finish(gpuhal_manifest *manifest)
{
    free(manifest->name);
    free(manifest->library);
    free(manifest->abi);
    free(manifest->platforms);
    free(manifest->environment);
    free(manifest->settings);
    free(manifest->watch);
    free(manifest->libraries);
    *manifest = (gpuhal_manifest){0};
}

bool gpuhal_manifest_each_setting(const char *settings,
                                  void (*take)(void *user, const char *name, const char *value), void *user)
{
    size_t length = 0;
    for (const char *word = settings ? settings : ""; (word = next_word(word, &length)) != NULL; word += length) {
        char *pair = gpuhal_text_copy_range(word, length);
        char *equals = pair ? strchr(pair, '=') : NULL;
        if (equals) {
            *equals = 0;
            take(user, pair, equals + 1);
        }
        free(pair);
        if (!pair) {
            return false;
        }
    }
    return true;
}

bool gpuhal_manifest_has_platform(const gpuhal_manifest *manifest, const char *platform)
{
    size_t length = 0;
    bool found = !manifest->platforms;
    for (const char *word = manifest->platforms; !found && (word = next_word(word, &length)) != NULL; word += length) {
        found = length == strlen(platform) && memcmp(word, platform, length) == 0;
    }
    return found;
}
