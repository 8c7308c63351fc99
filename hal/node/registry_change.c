/* node/registry_change.c: deletes, exports and imports records. Each call that deletes or imports opens the
 * registry separately, as another process would. Open gpuhal objects see the change when they next read the file. */
#include "node/registry_view.h"

#include "device/for_node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct opened {
    gpuhal_settings settings;
    gpuhal_log *log;
    gpuhal_registry *registry;
} opened;

/* The caller must finish the result even after an error. */
static gpuhal_status open_registry(const gpuhal_config *config, opened *out_opened)
{
    *out_opened = (opened){0};
    gpuhal_status status = gpuhal_settings_make(config, &out_opened->settings);
    if (status) {
        return status;
    }
    const gpuhal_settings *settings = &out_opened->settings;
    out_opened->log =
        gpuhal_log_create(settings->log, settings->log_user, settings->log_level, settings->log_to_stderr);
    if (out_opened->log) {
        out_opened->registry = gpuhal_registry_create(settings->registry, GPUHAL_REGISTRY_LOCK_NS, out_opened->log);
    }
    return out_opened->registry ? GPUHAL_OK : gpuhal_error_host_memory();
}

static void finish(opened *own)
{
    gpuhal_registry_destroy(own->registry);
    gpuhal_log_destroy(own->log);
    gpuhal_settings_finish(&own->settings);
}

static bool has_record(gpuhal_registry *registry, const char *name)
{
    size_t count;
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(&snapshot->database, &count);
    bool known = false;
    for (size_t i = 0; i < count && !known; i++) {
        known = strcmp(plugins[i].name, name) == 0;
    }
    gpuhal_snapshot_release(snapshot);
    return known;
}

gpuhal_status gpuhal_registry_forget(const gpuhal_config *config, const char *plugin)
{
    const gpuhal_database nothing = GPUHAL_DATABASE_EMPTY;
    gpuhal_changes changes = {
        .now = gpuhal_os_wall_clock(), .replace = plugin ? NULL : &nothing, .forget_plugin = plugin};
    opened own;
    gpuhal_status status = open_registry(config, &own);
    if (!status && plugin && !has_record(own.registry, plugin)) {
        status = gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "there is no record of a plugin \"%s\"", plugin);
    }
    status = status ? status : gpuhal_registry_update(own.registry, &changes);
    finish(&own);
    return status;
}

static bool has_physical(gpuhal_registry *registry, uint32_t number)
{
    size_t count;
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database_physical *physicals = gpuhal_database_physicals(&snapshot->database, &count);
    bool known = false;
    for (size_t i = 0; i < count && !known; i++) {
        known = physicals[i].number == number;
    }
    gpuhal_snapshot_release(snapshot);
    return known;
}

gpuhal_status gpuhal_registry_forget_physical(const gpuhal_config *config, uint32_t number)
{
    gpuhal_changes changes = {.now = gpuhal_os_wall_clock(), .forget_physical = number};
    opened own;
    gpuhal_status status = open_registry(config, &own);
    if (!status && !has_physical(own.registry, number)) {
        status = gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "there is no record of a physical device %" PRIu32, number);
    }
    status = status ? status : gpuhal_registry_update(own.registry, &changes);
    finish(&own);
    return status;
}

/* ---- files */

/* The caller frees the string. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash          ? gpuhal_text_copy(".")
           : slash == path ? gpuhal_text_copy("/")
                           : gpuhal_text_copy_range(path, (size_t)(slash - path));
}

gpuhal_status gpuhal_view_write(const gpuhal_view *view, const char *path)
{
    if (!view || !path || !*path) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_view_write: view or path is NULL, or the path is empty");
    }
    gpuhal_status status = gpuhal_view_check(view);
    if (status) {
        return status;
    }
    gpuhal_text text = {0};
    char *directory = directory_of(path);
    gpuhal_serial_write(gpuhal_registry_source_of(view)->database, &text);
    int error = text.failed || !directory ? ENOMEM : gpuhal_os_file_write_new(path, text.data, text.length);
    error = error ? error : gpuhal_os_directory_sync(directory);
    free(directory);
    gpuhal_text_finish(&text);
    if (error == ENOMEM) {
        return gpuhal_error_host_memory();
    }
    return error ? gpuhal_error_set(GPUHAL_ERROR_FILE, "%s cannot be written: %s", path, strerror(error)) : GPUHAL_OK;
}

/* Returns NULL if the exported file is valid. */
static const char *what_is_wrong(const gpuhal_serial_report *report)
{
    if (report->newer) {
        return "a newer version of the library wrote it";
    }
    if (report->headless) {
        return "it is not an export of a registry, or its beginning is damaged";
    }
    return gpuhal_serial_is_damaged(report) ? "it is damaged" : NULL;
}

static gpuhal_status read_export(const char *path, gpuhal_database *out_content)
{
    char *text = NULL;
    size_t bytes = 0;
    gpuhal_serial_report report = {0};
    *out_content = GPUHAL_DATABASE_EMPTY;
    int error = gpuhal_os_file_read(path, GPUHAL_REGISTRY_BYTES_MAX, &text, &bytes);
    if (!error && gpuhal_serial_read(text, bytes, out_content, &report) == GPUHAL_READ_NO_MEMORY) {
        error = ENOMEM;
    }
    free(text);
    if (error == ENOMEM) {
        return gpuhal_error_host_memory();
    }
    const char *wrong = error == EFBIG    ? "it is larger than any registry"
                        : error == EINVAL ? "it is not a regular file"
                        : error           ? strerror(error)
                                          : what_is_wrong(&report);
    return wrong ? gpuhal_error_set(GPUHAL_ERROR_FILE, "%s cannot be imported: %s", path, wrong) : GPUHAL_OK;
}

gpuhal_status gpuhal_registry_import(const gpuhal_config *config, const char *path)
{
    if (!path || !*path) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_registry_import: path is NULL or empty");
    }
    gpuhal_database database;
    opened own = {0};
    gpuhal_status status = read_export(path, &database);
    status = status ? status : open_registry(config, &own);
    if (!status) {
        gpuhal_changes changes = {.now = gpuhal_os_wall_clock(), .replace = &database};
        status = gpuhal_registry_update(own.registry, &changes);
    }
    finish(&own);
    gpuhal_database_finish(&database);
    return status;
}
