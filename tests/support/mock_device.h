/* tests/support/mock_device.h: what mock.c and mock_memory.c know of a device that is open. */
#ifndef GPUHAL_TEST_MOCK_DEVICE_H
#define GPUHAL_TEST_MOCK_DEVICE_H

#include "support/mock.h"

struct gpuhal_plugin_device {
    gpuhal_mock_device *mock;
    const gpuhal_host *host;
};

void gpuhal_mock_pause(uint32_t us);
/* Fills the slots that such a device offers. */
gpuhal_status gpuhal_mock_describe(const gpuhal_mock_device *mock, gpuhal_ops *out_ops);

#endif
