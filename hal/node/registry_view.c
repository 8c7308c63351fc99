/* node/registry_view.c: makes views of the registry. A view is a database that never changes: a snapshot of a gpuhal
 * object's registry, or what was read from the disk. */
#include "node/registry_view.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void gpuhal_registry_view_release(gpuhal_registry_view *view)
{
    if (!view || view->generation != gpuhal_os_fork_generation()) {
        return;
    }
    for (size_t i = 0; view->outputs && i < view->output_count; i++) {
        free(view->outputs[i]);
    }
    free(view->outputs);
    gpuhal_snapshot_release(view->snapshot);
    gpuhal_database_finish(&view->own);
    free(view->place);
    free(view);
}

/* Joins the lines of each plugin to one text. */
static bool join_outputs(gpuhal_registry_view *view)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(view->database, &count);
    view->outputs = calloc(count + 1, sizeof *view->outputs);
    bool good = view->outputs != NULL;
    for (size_t i = 0; i < count && good; i++) {
        gpuhal_text text = {0};
        for (size_t k = 0; k < plugins[i].output.count; k++) {
            gpuhal_text_printf(&text, "%s%s", k ? "\n" : "", plugins[i].output.list[k]);
        }
        view->outputs[view->output_count++] = gpuhal_text_take(&text);
        good = view->outputs[i] != NULL;
    }
    return good;
}

/* Takes over the snapshot; NULL: the view gets a database of its own. */
static gpuhal_registry_view *view_create(const gpuhal_settings *settings, gpuhal_snapshot *snapshot,
                                         const char *directory)
{
    gpuhal_registry_view *view = calloc(1, sizeof *view);
    if (!view) {
        gpuhal_snapshot_release(snapshot);
        return NULL;
    }
    view->generation = gpuhal_os_fork_generation();
    view->own = GPUHAL_DATABASE_EMPTY;
    view->snapshot = snapshot;
    view->database = snapshot ? &snapshot->database : &view->own;
    view->damage = "";
    memcpy(view->system_root, settings->system_root, sizeof view->system_root);
    view->place = gpuhal_text_copy(gpuhal_view_text(directory));
    if (!view->place) {
        gpuhal_registry_view_release(view);
        view = NULL;
    }
    return view;
}

/* Returns the view once it is complete. */
static gpuhal_status finish(gpuhal_registry_view *view, gpuhal_status status, gpuhal_registry_view **out_view)
{
    if (!status && (!view || !join_outputs(view))) {
        status = gpuhal_error_host_memory();
    }
    if (status) {
        gpuhal_registry_view_release(view);
        return status;
    }
    *out_view = view;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_registry_view_of(gpuhal *gpu, gpuhal_registry_view **out_view)
{
    if (out_view) {
        *out_view = NULL;
    }
    if (!gpu || !out_view) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_registry_view_of: gpu or out_view is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(gpu->registry);
    return finish(view_create(&gpu->settings, snapshot, gpuhal_registry_directory(gpu->registry)), GPUHAL_OK,
                  out_view);
}

static gpuhal_status read_into(gpuhal_registry_view *view)
{
    gpuhal_store_reading reading;
    gpuhal_store_read_database(view->place, &view->own, &reading);
    if (reading.error == ENOMEM) {
        return gpuhal_error_host_memory();
    }
    if (reading.error || reading.report.newer) {
        return gpuhal_error_set(GPUHAL_ERROR_FILE, "the registry in %s cannot be read: %s", view->place,
                                reading.error ? strerror(reading.error) : "a newer version of the library wrote it");
    }
    if (reading.damaged) {
        view->damage = reading.report.headless
                           ? "the record is damaged: nothing of it can be used, and the next program that "
                             "lists devices begins a new one"
                           : "the record is damaged: its undamaged records are used, the others are lost";
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_registry_view_read(const gpuhal_config *config, gpuhal_registry_view **out_view)
{
    if (!out_view) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_registry_view_read: out_view is NULL");
    }
    *out_view = NULL;
    gpuhal_settings settings;
    gpuhal_status status = gpuhal_settings_make(config, &settings);
    if (status) {
        return status;
    }
    gpuhal_registry_view *view = view_create(&settings, NULL, settings.registry);
    if (view && settings.registry) {
        status = read_into(view);
    }
    gpuhal_settings_finish(&settings);
    return finish(view, status, out_view);
}

uint64_t gpuhal_registry_generation(const gpuhal_registry_view *view)
{
    return view ? view->database->generation : 0;
}

const char *gpuhal_registry_place(const gpuhal_registry_view *view)
{
    return view ? view->place : "";
}

const char *gpuhal_registry_damage(const gpuhal_registry_view *view)
{
    return view ? view->damage : "";
}
