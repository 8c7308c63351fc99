/* device/device.c: device objects: making them from the listing, closing them, and what is said when they fail. */
#include "device/device.h"

#include "core/error.h"
#include "device/diary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes a closed device; nothing of the plugin is touched. */
static gpuhal_device *device_create(gpuhal *gpu, const gpuhal_candidate *candidate, const gpuhal_listed_device *listed)
{
    gpuhal_device *device = calloc(1, sizeof *device);
    if (!device) {
        return NULL;
    }
    device->gpu = gpu;
    device->candidate = candidate;
    device->listed = listed;
    snprintf(device->id, sizeof device->id, "%s:%u", candidate->name, listed->index);
    gpuhal_mutex_init(&device->mutex);
    gpuhal_condition_init(&device->condition);
    atomic_init(&device->limit_bytes, gpu->settings.memory_limit_bytes);
    return device;
}

/* In the child of a fork the opening is the parent's: closing it there would talk to a driver that the child does not have. */
static void device_destroy(gpuhal_device *device)
{
    if (atomic_load(&device->state) == GPUHAL_DEVICE_IS_OPEN && gpuhal_device_is_reachable(device) && !atomic_load(&device->stuck)) {
        device->plugin->close(device->handle);
    }
    gpuhal_condition_finish(&device->condition);
    gpuhal_mutex_finish(&device->mutex);
    free(device);
}

/* Leaves the devices that match a selector of the comma list; each selector must match something. */
static gpuhal_status hide_devices(gpuhal *gpu)
{
    const char *source = gpu->settings.devices_source;
    size_t count = 0;
    char **texts = gpuhal_text_split(gpu->settings.devices, ',', &count);
    bool *kept = calloc(gpu->device_count + 1u, sizeof *kept);
    gpuhal_status status = texts && kept ? GPUHAL_OK : gpuhal_error_host_memory();
    for (size_t i = 0; !status && i < count; i++) {
        gpuhal_selector selector;
        bool matched = false;
        if (!*texts[i]) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: \"%s\" has an empty element", source, gpu->settings.devices);
            break;
        }
        status = gpuhal_selector_parse(texts[i], source, &selector);
        for (uint32_t d = 0; !status && d < gpu->device_count; d++) {
            if (gpuhal_selector_matches(&selector, gpu->devices[d])) {
                kept[d] = matched = true;
            }
        }
        if (!status && !matched) {
            status = gpuhal_selector_unmatched(gpu, &selector, texts[i], source);
        }
    }
    uint32_t left = 0;
    for (uint32_t d = 0; !status && d < gpu->device_count; d++) {
        gpuhal_device *device = gpu->devices[d];
        if (kept[d]) {
            gpu->devices[left++] = device;
        } else {
            device_destroy(device);
        }
    }
    gpu->device_count = status ? gpu->device_count : left;
    free(kept);
    gpuhal_text_list_free(texts);
    return status;
}

gpuhal_status gpuhal_devices_create(gpuhal *gpu)
{
    size_t total = 0;
    for (size_t c = 0; c < gpu->candidates.count; c++) {
        total += gpu->candidates.list[c].devices.count;
    }
    gpu->devices = calloc(total + 1, sizeof *gpu->devices);
    if (!gpu->devices) {
        return gpuhal_error_host_memory();
    }
    for (size_t c = 0; c < gpu->candidates.count; c++) {
        const gpuhal_candidate *candidate = &gpu->candidates.list[c];
        for (size_t i = 0; i < candidate->devices.count; i++) {
            gpuhal_device *device = device_create(gpu, candidate, &candidate->devices.list[i]);
            if (!device) {
                return gpuhal_error_host_memory();
            }
            gpu->devices[gpu->device_count++] = device;
        }
    }
    gpuhal_status status = gpuhal_devices_identify(gpu);
    if (!status && gpu->settings.devices) {
        status = hide_devices(gpu);
    }
    status = status ? status : gpuhal_devices_prefer(gpu);
    return status ? status : gpuhal_links_create(gpu);
}

void gpuhal_devices_destroy(gpuhal *gpu)
{
    gpuhal_links_destroy(gpu);
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        device_destroy(gpu->devices[d]);
    }
    free(gpu->devices);
    gpu->devices = NULL;
    gpu->device_count = 0;
}

gpuhal_status gpuhal_device_unusable(const gpuhal_device *device)
{
    gpuhal_status status = GPUHAL_ERROR_FORKED;
    uint32_t lost = atomic_load(&device->lost);
    if (lost == GPUHAL_LOST_HUNG) {
        status = gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s: the driver does not come back from a call: the device counts as lost (hung)",
                                  device->id);
    } else if (lost) {
        status = gpuhal_error_set(GPUHAL_ERROR_DEVICE_LOST, "%s: the device was lost in an earlier call", device->id);
    } else {
        status = gpuhal_error_set(status, "%s was started before this process was forked: fork before opening, or exec", device->id);
    }
    gpuhal_error_add_device(device->candidate->name, device->id);
    return status;
}

gpuhal_status gpuhal_device_failed(gpuhal_device *device, gpuhal_status status, const char *format, ...)
{
    char what[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    status = gpuhal_error_from_plugin(status, device->candidate->name, device->id, what);
    if (status == GPUHAL_ERROR_DEVICE_LOST) {
        uint32_t was = GPUHAL_NOT_LOST;
        bool first = atomic_compare_exchange_strong(&device->lost, &was, GPUHAL_LOST);
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_ERROR, "%s", gpuhal_last_error()->sentence);
        if (first && device->gpu->on_lost) {
            device->gpu->on_lost(device);
        }
        if (first) {
            gpuhal_diary_fault(device, GPUHAL_FAULT_LOST);
        }
    }
    return status;
}
