/* node/registry_view.c: the view sources of the library part `node`. The machine's record is an immutable database,
 * either a snapshot of a gpuhal object's registry or a database read from disk. */
#include "node/registry_view.h"

#include "device/for_node.h"
#include "node/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void end(void *state)
{
    gpuhal_registry_source *source = state;
    for (size_t i = 0; i < source->output_count; i++) {
        free(source->outputs[i]);
    }
    free(source->outputs);
    gpuhal_snapshot_release(source->snapshot);
    gpuhal_database_finish(&source->own);
    free(source->place);
    free(source);
}

/* Adds the record to a view. Takes ownership of the snapshot. If it is NULL, the source has its own empty database. */
static gpuhal_status add_source(const gpuhal_settings *settings, gpuhal_snapshot *snapshot, const char *directory,
                                gpuhal_view *view)
{
    gpuhal_registry_source *source = calloc(1, sizeof *source);
    if (!source) {
        gpuhal_snapshot_release(snapshot);
        return gpuhal_error_host_memory();
    }
    view->sources[GPUHAL_SOURCE_RECORD] =
        (gpuhal_view_source){source, gpuhal_registry_count, gpuhal_registry_give, end};
    source->own = GPUHAL_DATABASE_EMPTY;
    source->snapshot = snapshot;
    source->database = snapshot ? &snapshot->database : &source->own;
    source->damage = "";
    memcpy(source->system_root, settings->system_root, sizeof source->system_root);
    source->place = gpuhal_text_copy(gpuhal_text_or_empty(directory));
    return source->place ? GPUHAL_OK : gpuhal_error_host_memory();
}

static gpuhal_status join_outputs(gpuhal_registry_source *source)
{
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(source->database, &count);
    source->outputs = calloc(count + 1, sizeof *source->outputs);
    bool good = source->outputs != NULL;
    for (; good && source->output_count < count; source->output_count++) {
        const gpuhal_texts *output = &plugins[source->output_count].output;
        gpuhal_text text = {0};
        for (size_t k = 0; k < output->count; k++) {
            gpuhal_text_printf(&text, "%s%s", k ? "\n" : "", output->list[k]);
        }
        good = output->count == 0 || (source->outputs[source->output_count] = gpuhal_text_take(&text));
    }
    return good ? GPUHAL_OK : gpuhal_error_host_memory();
}

gpuhal_status gpuhal_node_view(const gpuhal *gpu, uint32_t flags, gpuhal_view *view)
{
    gpuhal_status status = add_source(&gpu->settings, gpuhal_registry_snapshot(gpu->registry),
                                      gpuhal_registry_directory(gpu->registry), view);
    gpuhal_registry_source *source = view->sources[GPUHAL_SOURCE_RECORD].state;
    status = status ? status : join_outputs(source);
    return status || !(flags & GPUHAL_VIEW_HARDWARE)
               ? status
               : gpuhal_hardware_add_source(&gpu->settings, view->sources[GPUHAL_SOURCE_DEVICES].state,
                                            source->database, view);
}

static gpuhal_status read_into(gpuhal_registry_source *source)
{
    gpuhal_store_reading reading;
    gpuhal_store_read_database(source->place, &source->own, &reading);
    if (reading.error == ENOMEM) {
        return gpuhal_error_host_memory();
    }
    if (reading.error || reading.report.newer) {
        return gpuhal_error_set(GPUHAL_ERROR_FILE, "the registry in %s cannot be read: %s", source->place,
                                reading.error ? strerror(reading.error) : "a newer version of the library wrote it");
    }
    if (reading.damaged) {
        source->damage = reading.report.headless
                             ? "the record is damaged: nothing of it can be used, and the next program that "
                               "lists devices begins a new one"
                             : "the record is damaged: its undamaged records are used, the others are lost";
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_view_read(const gpuhal_config *config, gpuhal_view **out_view)
{
    if (!out_view) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_view_read: out_view is NULL");
    }
    *out_view = NULL;
    gpuhal_settings settings;
    gpuhal_status status = gpuhal_settings_make(config, &settings);
    if (status) {
        return status;
    }
    gpuhal_view *view = gpuhal_view_create();
    status = view ? add_source(&settings, NULL, settings.registry, view) : gpuhal_error_host_memory();
    gpuhal_registry_source *source = view ? view->sources[GPUHAL_SOURCE_RECORD].state : NULL;
    status = status || !settings.registry ? status : read_into(source);
    status = status ? status : join_outputs(source);
    gpuhal_settings_finish(&settings);
    if (status) {
        gpuhal_view_release(view);
        return status;
    }
    *out_view = view;
    return GPUHAL_OK;
}
