/* report.c: reading the reports of plugins; see machine.h. */
#include "machine.h"

#include <stdio.h>
#include <string.h>

bool gpuhal_probe_report(const gpuhal *gpu, uint32_t index, gpuhal_plugin_report *out_report)
{
    *out_report = (gpuhal_plugin_report){.size = sizeof *out_report};
    return gpuhal_plugin_report_get(gpu, index, out_report) == GPUHAL_OK;
}

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
        /* A manifest for other platforms is put aside on purpose; a wrong ABI is found later and hides devices. */
        return report->stage != GPUHAL_STAGE_SELECT;
    default:
        return false;
    }
}

const char *gpuhal_probe_in_options(const char *sentence, char space[GPUHAL_PROBE_TEXT_BYTES])
{
    static const char *const names[][2] = {
        {"config.backends", "--backends"}, {"config.devices", "--device"}, {"config.retry", "--retry"}};
    enum { NAMES = sizeof names / sizeof *names };
    size_t used = 0;
    bool quoted = false; /* there stands what the user typed */
    while (*sentence && used + 1 < GPUHAL_PROBE_TEXT_BYTES) {
        size_t n = quoted ? NAMES : 0;
        while (n < NAMES && strncmp(sentence, names[n][0], strlen(names[n][0])) != 0) {
            n++;
        }
        if (n < NAMES) {
            int count = snprintf(space + used, GPUHAL_PROBE_TEXT_BYTES - used, "%s", names[n][1]);
            used += count > 0 ? (size_t)count : 0;
            sentence += strlen(names[n][0]);
        } else {
            quoted = quoted != (*sentence == '"');
            space[used++] = *sentence++;
        }
    }
    space[used < GPUHAL_PROBE_TEXT_BYTES ? used : GPUHAL_PROBE_TEXT_BYTES - 1] = 0;
    return space;
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
