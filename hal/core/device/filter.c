/* device/filter.c: decides which devices GPUHAL_DEVICES and gpuhal_config.devices leave visible, and how much memory of
 * each may be used. The variable can only narrow the choice made by gpuhal_config.devices. Here, most_free and
 * least_loaded mean the same as gpu. gpuhal_open() first filters with them, then chooses one of the remaining devices
 * by value, and then filters by the chosen device's id. */
#include "device/choice.h"
#include "device/selector.h"

#include "base/error.h"
#include "loader/candidates.h"

#include <string.h>

/* A list of selectors, and the part of each device's visibility that it decides. */
typedef struct filter {
    const gpuhal *gpu;
    const char *list, *source; /* a NULL `list` means every device */
    uint32_t number;           /* 0 for gpuhal_config.devices, 1 for GPUHAL_DEVICES */
} filter;

static bool *decision_of(const filter *by, gpuhal_visibility *visibility)
{
    return by->number == 0 ? &visibility->allowed : &visibility->narrowed;
}

/* A rescan must not fail because a named device is gone. */
static bool is_first_time(const filter *by)
{
    return !gpuhal_device_snapshot_now(by->gpu);
}

/* Marks the devices named by a list, with their limits. If a limit is a share of an unknown size, the device is hidden,
 * because it must not be used without the limit. */
static gpuhal_status apply(const filter *by, const gpuhal_device_snapshot *snapshot, gpuhal_visibility *visibilities)
{
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        const gpuhal_naming is =
            by->list ? gpuhal_name_device(snapshot, by->list, snapshot->devices[d]) : (gpuhal_naming){.general = true};
        const bool unknown = is.limited && is.limit_bytes == 0;
        *decision_of(by, &visibilities[d]) = !unknown && (is.general || is.hardware || is.itself);
        visibilities[d].limits[by->number] = is.limit_bytes;
        if (unknown && is_first_time(by)) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "%s: \"%s\": the memory of %s is not known: give the limit in bytes", by->source,
                                    by->list, snapshot->devices[d]->id);
        }
    }
    return GPUHAL_OK;
}

static void explain(const filter *by, const gpuhal_selector *selector, gpuhal_device_snapshot *snapshot)
{
    gpuhal_text note = {0};
    gpuhal_selector_explain(selector, snapshot, &note);
    if (note.length > 0) {
        gpuhal_candidates_add_note(&snapshot->candidates, by->gpu->log, "%s: %s: %s", by->source, selector->word,
                                   gpuhal_text_get(&note));
    }
    gpuhal_text_finish(&note);
}

static gpuhal_status choose_by(const filter *by, gpuhal_device_snapshot *snapshot,
                               gpuhal_visibility *visibilities)
{
    gpuhal_selector selector = {0};
    gpuhal_status status = by->list ? gpuhal_selectors_check(by->list, by->source) : GPUHAL_OK;
    for (const char *rest = by->list; rest && !status;) {
        status = gpuhal_selector_next(&rest, by->source, &selector);
        if (!status && is_first_time(by)) {
            status = gpuhal_selector_check(&selector, snapshot, by->source);
        }
        if (!status) {
            explain(by, &selector, snapshot);
        }
    }
    status = status ? status : apply(by, snapshot, visibilities);
    bool any = false;
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        any = any || *decision_of(by, &visibilities[d]);
    }
    return status || any || !by->list || !is_first_time(by)
               ? status
               : gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s: \"%s\" leaves no device", by->source, by->list);
}

/* If no device is in both lists, keeps the cpu backend's devices that the program allows, even if the environment hides
 * them. */
static gpuhal_status fall_back_to_cpu(const gpuhal *gpu, gpuhal_device_snapshot *snapshot,
                                      gpuhal_visibility *visibilities)
{
    const gpuhal_settings *settings = &gpu->settings;
    bool any = false;
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        if (strcmp(snapshot->devices[d]->candidate->name, "cpu") == 0 && visibilities[d].allowed) {
            visibilities[d].narrowed = true;
            any = true;
        }
    }
    if (any) {
        gpuhal_candidates_add_note(
            &snapshot->candidates, gpu->log,
            "GPUHAL_DEVICES is \"%s\" and config.devices is \"%s\": no device is in both, so only cpu is left",
            settings->environment_devices, settings->devices);
    }
    if (any || gpuhal_device_snapshot_now(gpu)) {
        return GPUHAL_OK;
    }
    return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND,
                            "GPUHAL_DEVICES is \"%s\" and config.devices is \"%s\": no device is in both",
                            settings->environment_devices, settings->devices);
}

gpuhal_status gpuhal_devices_filter(const gpuhal *gpu, gpuhal_device_snapshot *snapshot,
                                    gpuhal_visibility *out_visibilities)
{
    const gpuhal_settings *settings = &gpu->settings;
    const filter filters[] = {{gpu, settings->devices, "config.devices", 0},
                              {gpu, settings->environment_devices, "GPUHAL_DEVICES", 1}};
    gpuhal_status status = choose_by(&filters[0], snapshot, out_visibilities);
    status = status ? status : choose_by(&filters[1], snapshot, out_visibilities);
    bool any = false;
    for (uint32_t d = 0; d < snapshot->device_count; d++) {
        any = any || gpuhal_is_visible(&out_visibilities[d]);
    }
    const bool both = settings->devices && settings->environment_devices;
    return status || any || !both ? status : fall_back_to_cpu(gpu, snapshot, out_visibilities);
}
