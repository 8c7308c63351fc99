/* tests/support/lab_device.h: what lab.c and lab_memory.c know of a device that is open. */
#ifndef GPUHAL_TEST_LAB_DEVICE_H
#define GPUHAL_TEST_LAB_DEVICE_H

#include "support/lab.h"

struct gpuhal_plugin_device {
    gpuhal_lab_device *lab;
    const gpuhal_host *host;
};

void gpuhal_lab_pause(uint32_t us);
/* Fills the slots that such a device offers. */
gpuhal_status gpuhal_lab_describe(const gpuhal_lab_device *lab, gpuhal_ops *out_ops);

#endif
