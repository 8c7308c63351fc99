/* device/view.c: the functions of gpuhal/view.h, and the records of a device snapshot. */
#include "device/view.h"

#include "base/error.h"
#include "device/snapshot.h"

#include <stdlib.h>
#include <string.h>

void gpuhal_record_give(void *out_record, const void *record, uint32_t bytes)
{
    const uint32_t size = *(const uint32_t *)out_record;
    memcpy(out_record, record, size < bytes ? size : bytes);
    memcpy(out_record, &size, sizeof size);
}

/* ---- the records of a snapshot */

static uint32_t count_records(const void *state, gpuhal_record_kind kind)
{
    const gpuhal_device_snapshot *snapshot = state;
    switch (kind) {
    case GPUHAL_RECORD_PLUGIN:
        return (uint32_t)snapshot->candidates.count;
    case GPUHAL_RECORD_NOTE:
        return (uint32_t)snapshot->candidates.note_count;
    case GPUHAL_RECORD_PHYSICAL:
        return snapshot->physical_count;
    case GPUHAL_RECORD_INTERFACE:
        return snapshot->interface_count;
    case GPUHAL_RECORD_EVIDENCE:
        return snapshot->evidence.count;
    default:
        return GPUHAL_NO_KIND;
    }
}

/* Returns a reason for every failure, even if there was no memory for the reason. */
static const char *reason_of(const gpuhal_candidate *candidate)
{
    const bool is_silent = !candidate->reason && candidate->state != GPUHAL_PLUGIN_OK;
    return is_silent ? "out of host memory" : gpuhal_text_or_empty(candidate->reason);
}

static gpuhal_plugin_report report_of(const gpuhal_candidate *candidate)
{
    return (gpuhal_plugin_report){
        .state = candidate->state,
        .stage = candidate->stage,
        .priority = candidate->priority,
        .name = gpuhal_text_or_empty(candidate->name),
        .version = gpuhal_text_or_empty(candidate->version),
        .file = gpuhal_text_or_empty(candidate->file),
        .reason = reason_of(candidate),
        .driver = gpuhal_text_or_empty(candidate->driver),
        .time_ns = candidate->time_ns,
        .device_count = (uint32_t)gpuhal_listed_devices_usable(&candidate->devices),
        .isolated = candidate->isolated,
        .cached = candidate->cached,
        .signal = candidate->signal,
        .output = gpuhal_text_or_empty(candidate->output),
        .probed_at = candidate->probed_at,
        .note = gpuhal_text_or_empty(candidate->note),
        .ambiguous = candidate->ambiguous,
    };
}

static void give_record(const void *state, gpuhal_record_kind kind, uint32_t index, void *out_record)
{
    const gpuhal_device_snapshot *snapshot = state;
    gpuhal_plugin_report report;
    gpuhal_note_info note = {0};
    const void *record;
    uint32_t bytes;
    if (kind == GPUHAL_RECORD_PLUGIN) {
        report = report_of(&snapshot->candidates.list[index]);
        record = &report;
        bytes = sizeof report;
    } else if (kind == GPUHAL_RECORD_NOTE) {
        note.text = snapshot->candidates.notes[index];
        record = &note;
        bytes = sizeof note;
    } else if (kind == GPUHAL_RECORD_PHYSICAL) {
        record = &snapshot->physicals[index];
        bytes = sizeof(gpuhal_physical_info);
    } else if (kind == GPUHAL_RECORD_INTERFACE) {
        record = &snapshot->interfaces[index];
        bytes = sizeof(gpuhal_interface_info);
    } else {
        record = &snapshot->evidence.list[index].evidence;
        bytes = sizeof(gpuhal_evidence);
    }
    gpuhal_record_give(out_record, record, bytes);
}

/* ---- views */

gpuhal_view *gpuhal_view_create(void)
{
    gpuhal_view *view = calloc(1, sizeof *view);
    if (view) {
        view->generation = gpuhal_os_fork_generation();
    }
    return view;
}

gpuhal_status gpuhal_view_check(const gpuhal_view *view)
{
    return view->generation == gpuhal_os_fork_generation() ? GPUHAL_OK : gpuhal_error_forked();
}

gpuhal_status gpuhal_view_of(const gpuhal *gpu, uint32_t flags, gpuhal_view **out_view)
{
    if (out_view) {
        *out_view = NULL;
    }
    if (!gpu || !out_view || flags & ~(uint32_t)GPUHAL_VIEW_HARDWARE) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_view_of: gpu or out_view is NULL, or a flag is unknown");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    if (flags && !gpu->layers.view) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED,
                                "gpuhal_view_of: this library was built without gpuhal/node.h");
    }
    gpuhal_view *view = gpuhal_view_create();
    if (!view) {
        return gpuhal_error_host_memory();
    }
    /* The snapshot exists as long as the gpuhal object, and is only read. */
    view->sources[GPUHAL_SOURCE_DEVICES] = (gpuhal_view_source){
        .state = (void *)gpuhal_device_snapshot_now(gpu), .count = count_records, .give = give_record};
    status = gpu->layers.view ? gpu->layers.view(gpu, flags, view) : GPUHAL_OK;
    if (status) {
        gpuhal_view_release(view);
        return status;
    }
    *out_view = view;
    return GPUHAL_OK;
}

static const gpuhal_view_source *find(const gpuhal_view *view, gpuhal_record_kind kind, uint32_t *out_count)
{
    for (size_t s = 0; s < GPUHAL_SOURCES; s++) {
        const gpuhal_view_source *source = &view->sources[s];
        *out_count = source->state ? source->count(source->state, kind) : GPUHAL_NO_KIND;
        if (*out_count != GPUHAL_NO_KIND) {
            return source;
        }
    }
    *out_count = 0;
    return NULL;
}

static gpuhal_status refuse_kind(gpuhal_record_kind kind)
{
    const char *why = kind == GPUHAL_KIND_OF_HARDWARE      ? "it was made without GPUHAL_VIEW_HARDWARE"
                      : kind - 1u < GPUHAL_RECORD_EVIDENCE ? "gpuhal_view_read() made it, of the registry alone"
                                                           : "this library does not know the kind";
    return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "the view has no records of kind %u: %s", kind, why);
}

uint32_t gpuhal_view_count(const gpuhal_view *view, gpuhal_record_kind kind)
{
    uint32_t count = 0;
    (void)(view && find(view, kind, &count));
    return count;
}

gpuhal_status gpuhal_view_get(const gpuhal_view *view, gpuhal_record_kind kind, uint32_t index, void *out_record)
{
    uint32_t count = 0;
    if (!view || !out_record || *(const uint32_t *)out_record == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_view_get: an argument is NULL, or the size is 0");
    }
    gpuhal_status status = gpuhal_view_check(view);
    if (status) {
        return status;
    }
    const gpuhal_view_source *source = find(view, kind, &count);
    if (!source) {
        return refuse_kind(kind);
    }
    if (index >= count) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "the view has %u records of kind %u: none has the number %u",
                                count, kind, index);
    }
    source->give(source->state, kind, index, out_record);
    return GPUHAL_OK;
}

void gpuhal_view_release(gpuhal_view *view)
{
    if (!view || view->generation != gpuhal_os_fork_generation()) {
        return;
    }
    for (size_t s = 0; s < GPUHAL_SOURCES; s++) {
        if (view->sources[s].end) {
            view->sources[s].end(view->sources[s].state);
        }
    }
    free(view);
}
