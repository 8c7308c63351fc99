/* device/hardware_state.c: what prevents the use of hardware that no device stands for: the first of the things that
 * must be in order, from the bus up to the vendor's library. */
#include "device/hardware.h"

#include <stdio.h>
#include <string.h>

static void set(gpuhal_hardware *one, gpuhal_hardware_state state, gpuhal_hardware_grade grade, const char *why)
{
    one->info.state = state;
    one->info.grade = grade;
    gpuhal_hardware_text(one->why, sizeof one->why, "%s", why);
}

static void judge(gpuhal_hardware *one)
{
    if (one->info.state == GPUHAL_HARDWARE_GONE) {
        set(one, GPUHAL_HARDWARE_GONE, GPUHAL_HARDWARE_PROBLEM, "it was there and is not on the bus any more");
    } else if (one->info.device_count > 0) {
        set(one, GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE, "");
    } else if (one->is_off_bus) {
        set(one, GPUHAL_HARDWARE_OFF_BUS, GPUHAL_HARDWARE_PROBLEM, "it does not answer on the bus");
    } else if (!one->kernel_driver[0]) {
        set(one, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_NOTE, "no kernel driver is bound to it");
    } else {
        set(one, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "no driver lists it");
    }
}

void gpuhal_hardware_judge(gpuhal_hardware_view *view, gpuhal *gpu)
{
    (void)gpu;
    for (uint32_t i = 0; i < view->count; i++) {
        judge(&view->list[i]);
    }
}
