/* device/extension.c: passes a plugin's extension to an application that supports the extension. */
#include "device/device.h"

#include "base/call.h"
#include "base/error.h"

gpuhal_status gpuhal_device_extension(gpuhal_device *device, const char *name, const void **out_extension)
{
    if (out_extension) {
        *out_extension = NULL;
    }
    if (!device || !name || !out_extension) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_device_extension: an argument is NULL");
    }
    gpuhal_backend *backend = NULL;
    const gpuhal_listed_device *listed = NULL;
    gpuhal_status status = gpuhal_device_check(device);
    status = status ? status : gpuhal_device_start_backend(device, &backend, &listed);
    if (status) {
        return status;
    }
    const gpuhal_plugin *plugin = gpuhal_backend_plugin(backend);
    if (plugin->query_extension) {
        const gpuhal_call call = gpuhal_call_prompt(device);
        *out_extension = plugin->query_extension(gpuhal_host_table(), gpuhal_backend_instance(backend), name);
        gpuhal_call_end(call);
    }
    if (!*out_extension) {
        gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s: the plugin offers no extension %s", device->id, name);
        gpuhal_error_add_device(device->candidate->name, device->id);
    }
    return *out_extension ? GPUHAL_OK : GPUHAL_ERROR_NOT_SUPPORTED;
}
