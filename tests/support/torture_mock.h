/* tests/support/torture_mock.h: a gpuhal object with only the mock, for tasks whose calls may fail. */
#ifndef GPUHAL_TEST_TORTURE_MOCK_H
#define GPUHAL_TEST_TORTURE_MOCK_H

#include "support/mock.h"
#include "test.h"

#include "os/os.h"

static inline gpuhal_status open_mock(gpuhal **out_gpu)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .backends = "mock",
                                  .builtins = builtins};
    gpuhal_mock.count = 1;
    return gpuhal_open(&config, out_gpu);
}

/* Waits for the workers that destroy queues, and expects that no object of the mock is left. */
static inline void expect_mock_closed(void)
{
    for (int i = 0; i < 10000 && gpuhal_mock.devices[0].openings > 0; i++) {
        gpuhal_os_sleep(1000000);
    }
    assert_int_equal(gpuhal_mock.devices[0].openings, 0);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
}

#endif
