/* diff_left_out.c: finds the devices that are not compared; see diff.h. */
#include "diff.h"

#include <string.h>

static bool is_found(const gpuhal_view *view, const char *backend)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    bool found = false;
    for (uint32_t i = 0; !found && gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        found = strcmp(report.name, backend) == 0;
    }
    return found;
}

/* Returns whether interface `index` is the first present interface of a backend without a plugin, because the plugin
 * was removed or its directory is not searched. */
static bool is_absent(const gpuhal_probe_comparison *own, uint32_t index, gpuhal_interface_record *entry)
{
    gpuhal_interface_record earlier = {.size = sizeof earlier};
    bool first = entry->is_present && !is_found(own->after, entry->backend);
    for (uint32_t e = 0;
         first && e < index && gpuhal_view_get(own->before, GPUHAL_RECORD_REGISTRY_INTERFACE, e, &earlier) == GPUHAL_OK;
         e++) {
        first = !(earlier.is_present && strcmp(earlier.backend, entry->backend) == 0);
    }
    return first;
}

/* The devices of a failed backend count neither as present nor as gone. */
bool gpuhal_probe_diff_left_out(const gpuhal_probe_comparison *own, uint32_t index, const char **out_backend,
                                const char **out_why)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    gpuhal_interface_record entry = {.size = sizeof entry};
    for (uint32_t i = 0; gpuhal_view_get(own->after, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        if (gpuhal_probe_report_is_problem(&report) && index-- == 0) {
            *out_backend = gpuhal_probe_report_name(&report);
            *out_why = gpuhal_probe_state_name(report.state);
            return true;
        }
    }
    for (uint32_t i = 0; gpuhal_view_get(own->before, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &entry) == GPUHAL_OK; i++) {
        if (is_absent(own, i, &entry) && index-- == 0) {
            *out_backend = entry.backend;
            *out_why = "no plugin of this name is found";
            return true;
        }
    }
    return false;
}
