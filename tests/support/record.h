/* tests/support/record.h: reads single current records of a gpuhal object (the record kinds of gpuhal/view.h). The
 * pointers in a record stay valid after the view is released. */
#ifndef GPUHAL_TEST_RECORD_H
#define GPUHAL_TEST_RECORD_H

#include <gpuhal/view.h>

#include <string.h>

/* Does the same as gpuhal_view_get() on a temporary view. */
static inline gpuhal_status record_now(const gpuhal *gpu, gpuhal_record_kind kind, uint32_t index, void *out_record)
{
    gpuhal_view *view = NULL;
    gpuhal_status status = gpuhal_view_of(gpu, 0, &view);
    status = status ? status : gpuhal_view_get(view, kind, index, out_record);
    gpuhal_view_release(view);
    return status;
}

static inline uint32_t records_now(const gpuhal *gpu, gpuhal_record_kind kind)
{
    gpuhal_view *view = NULL;
    const uint32_t count = gpuhal_view_of(gpu, 0, &view) == GPUHAL_OK ? gpuhal_view_count(view, kind) : 0;
    gpuhal_view_release(view);
    return count;
}

/* Returns the report of the first plugin with the name. If there is no such plugin, the report's name is "". */
static inline gpuhal_plugin_report report_of(const gpuhal *gpu, const char *name)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    uint32_t i = 0;
    while (record_now(gpu, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK && strcmp(report.name, name) != 0) {
        i++;
    }
    return report.name && strcmp(report.name, name) == 0 ? report : (gpuhal_plugin_report){.name = ""};
}

/* Returns all zeros for a device that is not listed. */
static inline gpuhal_interface_info interface_of(const gpuhal_device *device)
{
    gpuhal_interface_info iface = {.size = sizeof iface};
    gpuhal *gpu = gpuhal_device_owner(device);
    uint32_t i = 0;
    while (record_now(gpu, GPUHAL_RECORD_INTERFACE, i, &iface) == GPUHAL_OK && iface.device != device) {
        i++;
    }
    return iface.device == device ? iface : (gpuhal_interface_info){0};
}

#endif
