/* node/hardware_state.c: finds out why hardware is not usable. The first of these is the reason: it is gone, a plugin
 * says why it is not listed, it was not given to this process, it fell off the bus, it is hidden, the kernel driver or
 * its nodes prevent its use, or no API lists it. */
#include "node/hardware.h"

#include "device/for_node.h"

#include <stdio.h>

/* Hardware that has been missing for longer was probably removed. */
#define LONG_AGO_SECONDS (UINT64_C(30) * 24 * 60 * 60)

static void find_gone(const gpuhal_hardware *one, gpuhal_hardware_finding *out)
{
    const uint64_t now = gpuhal_os_wall_clock();
    const bool is_old = now > one->info.last_seen && now - one->info.last_seen > LONG_AGO_SECONDS;
    char day[24];
    gpuhal_hardware_day(one->info.last_seen, day, sizeof day);
    gpuhal_hardware_found(out, GPUHAL_HARDWARE_GONE, is_old ? GPUHAL_HARDWARE_WARNING : GPUHAL_HARDWARE_PROBLEM,
                          "it was on the bus on %s, but is not there any more", day);
    gpuhal_hardware_text(out->fix, sizeof out->fix, "sudo dmesg | grep -E '%s|pcieport'",
                         one->info.vendor_id == GPUHAL_VENDOR_NVIDIA ? "NVRM|Xid" : one->address);
    gpuhal_hardware_add_line(out->fix, sizeof out->fix, "# \"Link Down\"%s: power off and on; if it recurs: slot, card",
                             one->info.vendor_id == GPUHAL_VENDOR_NVIDIA ? ", Xid 79" : "");
}

static void find(gpuhal_hardware_survey *survey, const gpuhal_hardware *one, gpuhal_hardware_finding *out)
{
    *out = (gpuhal_hardware_finding){.state = GPUHAL_HARDWARE_READY};
    if (one->info.state == GPUHAL_HARDWARE_GONE) {
        find_gone(one, out);
    } else if (!one->is_seen && one->unlisted[0]) {
        gpuhal_hardware_find_stated(one, out);
    } else if (!one->is_seen &&
               (gpuhal_hardware_find_others(survey, one, out) ||
                gpuhal_hardware_find_given(survey, one, gpuhal_hardware_has_library(survey, one), out))) {
        return;
    } else if (one->is_off_bus) {
        gpuhal_hardware_found(out, GPUHAL_HARDWARE_OFF_BUS, GPUHAL_HARDWARE_PROBLEM,
                              "it has fallen off the bus: its configuration space reads as ones");
        gpuhal_hardware_read_log(one, GPUHAL_HARDWARE_LOST_ANSWERS, out->fix, sizeof out->fix);
    } else if (one->info.device_count > 0) {
        gpuhal_hardware_find_rest(survey, one, out);
    } else if (one->is_hidden) {
        gpuhal_hardware_find_hidden(survey, one, out);
    } else if (!gpuhal_hardware_find_kernel(survey, one, gpuhal_hardware_has_library(survey, one), out)) {
        gpuhal_hardware_find_api(survey, one, out);
    } else if (out->state == GPUHAL_HARDWARE_NO_KERNEL_DRIVER &&
               gpuhal_hardware_machine_of(survey)->place != GPUHAL_PLACE_HOST) {
        gpuhal_hardware_text(out->fix, sizeof out->fix, "# on the host, whose drivers are used:");
        gpuhal_hardware_add_line(out->fix, sizeof out->fix, "gpuhal-probe");
    }
}

void gpuhal_hardware_judge(gpuhal_hardware_survey *survey)
{
    for (uint32_t i = 0; i < survey->count; i++) {
        gpuhal_hardware *one = &survey->list[i];
        gpuhal_hardware_finding found;
        find(survey, one, &found);
        one->info.state = found.state;
        one->info.grade = found.grade;
        gpuhal_hardware_text(one->why, sizeof one->why, "%s", found.why);
        snprintf(one->fix, sizeof one->fix, "%s", found.fix);
    }
}
