/* library.c: see library.h. The user's environment variables for plugins, devices, isolation, log and registry are
 * ignored. */
#include "library.h"

#include "../common/text.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void write_line(FILE *stream, const char *key, const char *value)
{
    fprintf(stream, "%s = %s\n", key, value);
}

/* Writes the author's manifest with an absolute library path and unchanged line numbers, because the library's messages
 * contain them. */
static void write_given(FILE *stream, const gpuhal_context *context)
{
    char line[4096];
    FILE *given = fopen(context->options->manifest, "re");
    if (given == NULL) {
        gpuhal_fail("%s cannot be read", context->options->manifest);
    }
    while (fgets(line, sizeof line, given) != NULL) {
        const char *key = line + strspn(line, " \t");
        if (strncmp(key, "library", 7) == 0 && strchr(" \t=", key[7]) != NULL) {
            write_line(stream, "library", context->options->file);
        } else {
            fputs(line, stream);
        }
    }
    fclose(given);
}

static void write_made(FILE *stream, const gpuhal_context *context, const char *name)
{
    fputs("[plugin]\n", stream);
    write_line(stream, "name", name);
    write_line(stream, "library", context->options->file);
    fprintf(stream, "abi = %u.%u\n", GPUHAL_ABI_MAJOR, GPUHAL_ABI_MINOR);
}

static void take_log(void *user, int32_t level, const char *line)
{
    gpuhal_library *library = user;
    if (level <= 2) {
        gpuhal_tool_append(library->log, sizeof library->log, "\n", "%s", line);
    }
}

void gpuhal_library_open(gpuhal_library *library, const gpuhal_context *context, const char *name)
{
    static const char *const variables[] = {"GPUHAL_BACKENDS", "GPUHAL_DEVICES", "GPUHAL_ISOLATION", "GPUHAL_LOG",
                                            "GPUHAL_PLUGIN_PATH"};
    char path[PATH_MAX];
    *library = (gpuhal_library){0};
    snprintf(library->name, sizeof library->name, "%s", name);
    snprintf(path, sizeof path, "%s/plugin.gpuhal", context->options->folder);
    FILE *stream = fopen(path, "we");
    if (stream == NULL) {
        gpuhal_fail("gpuhal-check cannot write %s", path);
    }
    if (context->options->manifest != NULL) {
        write_given(stream, context);
    } else {
        write_made(stream, context, name);
    }
    fclose(stream);
    for (size_t v = 0; v < sizeof variables / sizeof *variables; v++) {
        unsetenv(variables[v]);
    }
    setenv("GPUHAL_REGISTRY", "none", 1);
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_ALWAYS,
                                  .plugin_path = context->options->folder,
                                  .backends = name,
                                  .log = take_log,
                                  .log_user = library};
    gpuhal_step("gpuhal_open()");
    if (gpuhal_open(&config, &library->gpu) != GPUHAL_OK) {
        gpuhal_fail("gpuhal_open() with this plugin alone: %s", gpuhal_last_error()->sentence);
    }
}

void gpuhal_library_close(gpuhal_library *library)
{
    gpuhal_step("gpuhal_close()");
    gpuhal_close(library->gpu);
}

static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

gpuhal_plugin_report gpuhal_library_report(const gpuhal_library *library, const gpuhal_context *context)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    gpuhal_view *view = NULL;
    bool found = false;
    if (gpuhal_view_of(library->gpu, 0, &view) != GPUHAL_OK) {
        gpuhal_fail("gpuhal_view_of() failed: %s", gpuhal_last_error()->sentence);
    }
    for (uint32_t p = 0; !found && gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, p, &report) == GPUHAL_OK; p++) {
        found = strncmp(report.file, context->options->folder, strlen(context->options->folder)) == 0 ||
                is_same_file(report.file, context->options->file);
    }
    gpuhal_view_release(view);
    if (!found) {
        gpuhal_fail("gpuhal_open() did not find the plugin that the manifest names");
    }
    return report;
}
