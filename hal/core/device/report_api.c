/* device/report_api.c: why each plugin is used or not, as of the newest snapshot, and the environment variables that
 * count. */
#include "device/snapshot.h"

#include "base/error.h"

#include <string.h>

uint32_t gpuhal_plugin_count(const gpuhal *gpu)
{
    return gpu ? (uint32_t)gpuhal_device_snapshot_now(gpu)->candidates.count : 0;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

/* A failure has a reason even without memory for it. */
static const char *reason_of(const gpuhal_candidate *candidate)
{
    bool silent = !candidate->reason && candidate->state != GPUHAL_PLUGIN_OK;
    return silent ? "out of host memory" : or_empty(candidate->reason);
}

gpuhal_status gpuhal_plugin_report_get(const gpuhal *gpu, uint32_t index, gpuhal_plugin_report *out_report)
{
    if (!gpu || !out_report || out_report->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_plugin_report_get: an argument is NULL, or the size is 0");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    uint32_t size = out_report->size;
    const gpuhal_candidates *candidates = &gpuhal_device_snapshot_now(gpu)->candidates;
    if (index >= candidates->count) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "there are %zu plugin reports, none has the number %u",
                                candidates->count, index);
    }
    const gpuhal_candidate *candidate = &candidates->list[index];
    const gpuhal_plugin_report report = {
        .size = size,
        .state = candidate->state,
        .stage = candidate->stage,
        .priority = candidate->priority,
        .name = or_empty(candidate->name),
        .version = or_empty(candidate->version),
        .file = or_empty(candidate->file),
        .reason = reason_of(candidate),
        .driver = or_empty(candidate->driver),
        .time_ns = candidate->time_ns,
        .device_count = (uint32_t)gpuhal_listed_devices_usable(&candidate->devices),
        .isolated = candidate->isolated,
        .cached = candidate->cached,
        .signal = candidate->signal,
        .output = or_empty(candidate->output),
        .probed_at = candidate->probed_at,
        .note = or_empty(candidate->note),
        .ambiguous = candidate->ambiguous,
    };
    memcpy(out_report, &report, size < sizeof report ? size : sizeof report);
    return GPUHAL_OK;
}

const char *gpuhal_note_at(const gpuhal *gpu, uint32_t index)
{
    const gpuhal_candidates *candidates = gpu ? &gpuhal_device_snapshot_now(gpu)->candidates : NULL;
    return candidates && index < candidates->note_count ? candidates->notes[index] : NULL;
}

gpuhal_status gpuhal_environment_at(const gpuhal *gpu, uint32_t index, gpuhal_environment_entry *out_entry)
{
    if (!out_entry || out_entry->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_environment_at: out_entry is NULL, or its size is 0");
    }
    gpuhal_status status = gpu ? gpuhal_check(gpu) : GPUHAL_OK;
    if (status) {
        return status;
    }
    const char *name = gpuhal_variable_name(index);
    if (!name) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "the library reads no environment variable number %u", index);
    }
    uint32_t size = out_entry->size;
    const char *value = gpuhal_os_environment_raw(name);
    bool ignored = value && (gpuhal_os_privileged() || (gpu && gpu->settings.ignore_environment));
    const gpuhal_environment_entry entry = {
        .size = size, .name = name, .value = value, .meaning = gpuhal_variable_meaning(index), .ignored = ignored};
    memcpy(out_entry, &entry, size < sizeof entry ? size : sizeof entry);
    return GPUHAL_OK;
}
