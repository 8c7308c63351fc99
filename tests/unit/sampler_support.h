/* sampler_support.h: sets devices' values and waits for samples, for tests of samplers. */
#ifndef GPUHAL_TEST_SAMPLER_SUPPORT_H
#define GPUHAL_TEST_SAMPLER_SUPPORT_H

#include "support/mock.h"
#include "test.h"

#include "device/device.h"

#include <gpuhal/node/sampler.h>
#include <gpuhal/telemetry.h>

#define MS          UINT64_C(1000000)
#define PATIENCE_MS 60000
#define HEAT        GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS

static inline gpuhal *open_devices(uint32_t count)
{
    gpuhal_mock = (gpuhal_mock_state){.count = count};
    return gpuhal_mock_open(NULL, 0);
}

static inline void set_value(uint32_t device, uint32_t place, gpuhal_key key, uint64_t number)
{
    gpuhal_mock_value *value = &gpuhal_mock.devices[device].values[place];
    value->u64 = number;
    value->missing = 0;
    value->key = key;
}

static inline gpuhal_sampler *sampler_or_fail(gpuhal *gpu, gpuhal_sampler_desc desc)
{
    gpuhal_sampler *sampler = NULL;
    desc.size = sizeof desc;
    desc.period_ns = desc.period_ns ? desc.period_ns : 10 * MS * GPUHAL_TEST_SLOWNESS; /* also a sample's deadline */
    assert_ok(gpuhal_sampler_create(gpu, &desc, &sampler));
    return sampler;
}

static inline uint64_t newest_time(gpuhal_sampler *sampler, gpuhal_device *device)
{
    gpuhal_value value = {.key = HEAT};
    uint64_t time_ns = 0;
    const gpuhal_status status = gpuhal_sampler_latest(sampler, device, &value, 1, &time_ns);
    assert_true(status == GPUHAL_OK || status == GPUHAL_NOT_READY || status == GPUHAL_ERROR_DEVICE_LOST);
    return time_ns;
}

/* Waits for `count` samples that begin and end after this call. */
static inline void await_samples(gpuhal_sampler *sampler, uint32_t count)
{
    gpuhal_device *device = gpuhal_sampler_device(sampler, 0);
    for (uint32_t i = 0; i < count + 1; i++) { /* a sample may already be in progress */
        const uint64_t before = newest_time(sampler, device);
        for (int ms = 0; newest_time(sampler, device) == before; ms++) {
            assert_true(ms < PATIENCE_MS);
            gpuhal_os_sleep(MS);
        }
    }
}

#endif
