/* node/registry_stale.c: describes why a cached result is stale. The first word of a key line identifies the line's
 * subject (registry/key.h). */
#include "node/registry_view.h"

#include "device/for_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

/* In a key line, the path follows the first word and the state. */
static const char *path_in(const char *line)
{
    const char *path = strchr(line, '/');
    return path ? path : line;
}

static bool is_there(const char *path)
{
    gpuhal_file_state state;
    return gpuhal_os_file_state(path, &state) == 0;
}

static void describe_file(const char *line, char *to, size_t bytes)
{
    const char *path = path_in(line);
    bool was = strstr(line, "absent /") == NULL, is = is_there(path);
    if (begins(line, "folder ") && is) {
        snprintf(to, bytes, "the contents of %s have changed", path);
    } else {
        snprintf(to, bytes, "%s %s", path, was && is ? "has changed" : is ? "exists now" : "does not exist any more");
    }
}

static void describe_variable(const char *line, char *to, size_t bytes)
{
    const char *name = line + strlen("variable ");
    size_t length = strcspn(name, "=");
    char copy[128];
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), name);
    bool was = name[length] == '=', is = gpuhal_os_environment(copy) != NULL;
    snprintf(to, bytes, "%s %s", copy, was && is ? "has another value" : is ? "is set now" : "is not set any more");
}

/* Describes a line that only the old key or only the current key contains. */
static void describe(const char *line, char *to, size_t bytes)
{
    static const struct {
        const char *word, *sentence;
    } of_machine[] = {
        {"root ", "it was probed with another GPUHAL_SYSTEM_ROOT"},
        {"boot ", "the machine was rebooted"},
        {"kernel ", "another kernel is running"},
        {"nvidia ", "the NVIDIA kernel driver has changed"},
        {"library ", "another version of the library probed it"},
        {"processors ", "this program may use another number of processors"},
        {"memory ", "this program may use another amount of memory"},
        {"instances ", "a GPU is partitioned in another way"},
        {"mounts ", "this program sees other mounts, such as those of another container"},
    };
    if (begins(line, "file ") || begins(line, "folder ")) {
        describe_file(line, to, bytes);
        return;
    }
    if (begins(line, "settings ")) {
        snprintf(to, bytes, "it was probed with other settings: programs that ignore the environment have another key");
        return;
    }
    if (begins(line, "variable ")) {
        describe_variable(line, to, bytes);
        return;
    }
    if (begins(line, "node ")) {
        snprintf(to, bytes, "the device node %s has changed", path_in(line));
        return;
    }
    if (begins(line, "driver ")) {
        const char *name = line + strlen("driver ");
        snprintf(to, bytes, "the kernel driver %.*s, or the list of its devices, has changed", (int)strcspn(name, " "),
                 name);
        return;
    }
    for (size_t i = 0; i < sizeof of_machine / sizeof *of_machine; i++) {
        if (begins(line, of_machine[i].word)) {
            snprintf(to, bytes, "%s", of_machine[i].sentence);
            return;
        }
    }
    snprintf(to, bytes, "the machine has changed");
}

gpuhal_status gpuhal_registry_plugin_stale(const gpuhal_view *view, uint32_t index, char *out_why, uint32_t why_bytes)
{
    if (!view || !out_why || why_bytes == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_registry_plugin_stale: an argument is NULL, or why_bytes is 0");
    }
    gpuhal_status status = gpuhal_view_check(view);
    if (status) {
        return status;
    }
    *out_why = 0;
    const gpuhal_registry_source *source = gpuhal_registry_source_of(view);
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(source->database, &count);
    if (index >= count) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "gpuhal_registry_plugin_stale: %u is past the last of %zu",
                                index, count);
    }
    gpuhal_texts machine;
    char *line = NULL;
    gpuhal_key_machine(source->system_root, &machine);
    bool holds = gpuhal_key_is_current(&plugins[index].key, &machine, &line);
    status = machine.failed || (!holds && !line) ? gpuhal_error_host_memory() : GPUHAL_OK;
    if (!status && !holds) {
        describe(line, out_why, why_bytes);
    }
    free(line);
    gpuhal_texts_finish(&machine);
    return status;
}
