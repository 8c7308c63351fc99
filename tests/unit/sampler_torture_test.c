/* Each allocation and each system call of a sampler fails once. */
#include "support/torture.h"
#include "support/torture_mock.h"

#include <gpuhal/node/sampler.h>

#define HEAT GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS

static void hear(void *user, const gpuhal_sampler_event *event)
{
    (void)user;
    (void)event;
}

static gpuhal_status sample_around(void)
{
    const gpuhal_sampler_desc desc = {.size = sizeof desc, .period_ns = 10000000, .history = 4};
    const gpuhal_threshold hot = {.size = sizeof hot, .key = HEAT, .limit = 1, .callback = hear};
    gpuhal *gpu = NULL;
    gpuhal_sampler *sampler = NULL;
    gpuhal_os_handle descriptor = -1;
    gpuhal_mock.devices[0].values[0].u64 = 7;
    gpuhal_mock.devices[0].values[0].key = HEAT;
    gpuhal_status status = open_mock(&gpu);
    status = status ? status : gpuhal_sampler_create(gpu, &desc, &sampler);
    status = status ? status : gpuhal_sampler_descriptor(sampler, &descriptor); /* does not list earlier events */
    status = status ? status : gpuhal_sampler_add_threshold(sampler, &hot, NULL);
    status = status ? status : gpuhal_sampler_on_health(sampler, hear, NULL);
    if (!status) { /* an event must arrive, although samples that ran out of memory are skipped */
        gpuhal_sampler_event event = {.size = sizeof event};
        gpuhal_status next = GPUHAL_NOT_READY;
        for (int ms = 0; ms < 30000 && next == GPUHAL_NOT_READY; ms++) {
            gpuhal_os_sleep(1000000);
            next = gpuhal_sampler_next_event(sampler, &event);
        }
        assert_int_equal(next, GPUHAL_OK);
        assert_int_equal(event.value, 7);
    }
    if (descriptor >= 0) {
        gpuhal_os_handle_close(descriptor);
    }
    gpuhal_sampler_destroy(sampler);
    gpuhal_close(gpu);
    expect_mock_closed();
    return status;
}

TEST(every_allocation_may_fail_once)
{
    torture(sample_around, GPUHAL_FAULT_ALLOCATION, NULL);
}

TEST(every_system_call_may_fail_once)
{
    torture(sample_around, GPUHAL_FAULT_FAIL, NULL);
}

#include "test_main.h"
