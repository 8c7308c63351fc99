/* report.c: interprets plugin reports; see machine.h. */
#include "machine.h"

#include <stdio.h>
#include <string.h>

const char *gpuhal_probe_report_name(const gpuhal_plugin_report *report)
{
    if (*report->name) {
        return report->name;
    }
    const char *slash = strrchr(report->file, '/');
    return slash && slash[1] ? slash + 1 : report->file;
}

bool gpuhal_probe_report_is_problem(const gpuhal_plugin_report *report)
{
    switch (report->state) {
    case GPUHAL_PLUGIN_FAILED:
    case GPUHAL_PLUGIN_TIMED_OUT:
    case GPUHAL_PLUGIN_REJECTED:
    case GPUHAL_PLUGIN_QUARANTINED:
        return true;
    case GPUHAL_PLUGIN_INCOMPATIBLE:
        /* A manifest for other platforms is skipped on purpose. An incompatible ABI is detected in a later stage; this
         * is a problem, because it hides devices. */
        return report->stage != GPUHAL_STAGE_SELECT;
    case GPUHAL_PLUGIN_DUPLICATE:
        return report->ambiguous;
    default:
        return false;
    }
}

const char *gpuhal_probe_state_name(gpuhal_plugin_state state)
{
    static const char *const words[] = {
        [GPUHAL_PLUGIN_OK] = "ok",
        [GPUHAL_PLUGIN_NO_DRIVER] = "no driver",
        [GPUHAL_PLUGIN_NO_DEVICE] = "no device",
        [GPUHAL_PLUGIN_NO_PERMISSION] = "no permission",
        [GPUHAL_PLUGIN_FAILED] = "failed",
        [GPUHAL_PLUGIN_TIMED_OUT] = "timed out",
        [GPUHAL_PLUGIN_INCOMPATIBLE] = "incompatible",
        [GPUHAL_PLUGIN_REJECTED] = "rejected",
        [GPUHAL_PLUGIN_DUPLICATE] = "duplicate",
        [GPUHAL_PLUGIN_EXCLUDED] = "excluded",
        [GPUHAL_PLUGIN_NOT_PROBED] = "not probed",
        [GPUHAL_PLUGIN_QUARANTINED] = "quarantined",
        [GPUHAL_PLUGIN_FORKED] = "forked",
    };
    return state < sizeof words / sizeof *words ? words[state] : gpuhal_plugin_state_name(state);
}
