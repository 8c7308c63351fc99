/* stream/context.c: opens and closes a device, and reports failed allocations. Each plugin's context.c manages the
 * context and detects its loss. */
#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

gpuhal_status GPUHAL_OWN(result_of_lookup)(gpuhal_plugin_device *device, const char *call, vendor_code code)
{
    const bool works =
        GPUHAL_OWN(status)(code) == GPUHAL_ERROR_DEVICE_LOST && GPUHAL_OWN(probe)(device) == GPUHAL_VENDOR_OK;
    return works ? GPUHAL_OWN(report_as)(device->host, GPUHAL_ERROR_DRIVER, call, code,
                                         "a query returned the code of a lost device, but the device works")
                 : GPUHAL_OWN(result)(device, call, code);
}

gpuhal_status GPUHAL_OWN(allocation_failed)(gpuhal_plugin_device *device, const char *call, vendor_code code,
                                            uint64_t bytes)
{
    size_t free_bytes = 0, total = 0;
    const bool out = GPUHAL_OWN(status)(code) == GPUHAL_ERROR_OUT_OF_MEMORY;
    if (!out || GPUHAL_VENDOR_MEMORY_INFO(&free_bytes, &total) != GPUHAL_VENDOR_OK) {
        return GPUHAL_OWN(result)(device, call, code);
    }
    char text[160];
    snprintf(text, sizeof text, "%" PRIu64 " bytes requested, %zu of %zu bytes free, perhaps not in one piece", bytes,
             free_bytes, total);
    return GPUHAL_OWN(report_as)(device->host, GPUHAL_ERROR_OUT_OF_MEMORY, call, code, text);
}

gpuhal_status GPUHAL_OWN(check_host)(gpuhal_plugin_device *device)
{
    return GPUHAL_OWN(is_gone)(device) ? GPUHAL_OWN(result)(device, NULL, GPUHAL_VENDOR_GONE) : GPUHAL_OK;
}

/* Every blocking call needs an internal stream, so opening fails without the first one. The marker is optional. */
static gpuhal_status begin_work(gpuhal_plugin_device *device)
{
    gpuhal_stream_scope scope;
    gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status == GPUHAL_OK) {
        const char *call;
        const vendor_code code = GPUHAL_OWN(make_first_stream)(device, &call);
        if (code == GPUHAL_VENDOR_OK) {
            GPUHAL_OWN(make_marker)(device);
        }
        GPUHAL_OWN(leave)(&scope);
        status = GPUHAL_OWN(result)(device, call, code);
    }
    return status;
}

gpuhal_status GPUHAL_OWN(open)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                               const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    (void)ops;
    *out_device = NULL;
    gpuhal_stream_entry *entry = GPUHAL_OWN(find)(index);
    if (!entry) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_plugin_device *device = calloc(1, sizeof *device);
    if (!device) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    device->host = host;
    device->entry = entry;
    gpuhal_status status = GPUHAL_OWN(acquire)(device, adopt);
    if (status != GPUHAL_OK) {
        free(device);
        return status;
    }
    status = begin_work(device);
    if (status != GPUHAL_OK) {
        GPUHAL_OWN(release_context)(device);
        free(device);
        return status;
    }
    *out_device = device;
    return GPUHAL_OK;
}

/* On a lost device the driver may refuse to enter the context. Then the device's objects are freed with the context or
 * at process exit. */
void GPUHAL_OWN(close)(gpuhal_plugin_device *device)
{
    gpuhal_stream_scope scope;
    if (GPUHAL_OWN(enter_to_release)(device, &scope) == GPUHAL_VENDOR_OK) {
        GPUHAL_OWN(destroy_streams)(device);
        if (device->marker) {
            GPUHAL_OWN(ignore)(GPUHAL_VENDOR_FREE(device->marker));
        }
        GPUHAL_OWN(leave)(&scope);
    }
    GPUHAL_OWN(release_context)(device);
    free(device);
}

/* Does not call the driver, because a driver call would hang if the driver hangs. */
static gpuhal_status query_health(gpuhal_plugin_device *device)
{
    return GPUHAL_OWN(lost_code)(device) != GPUHAL_VENDOR_OK ? GPUHAL_ERROR_DEVICE_LOST : GPUHAL_OK;
}

void GPUHAL_OWN(describe_context)(gpuhal_ops *ops)
{
    ops->query_health = query_health;
}
