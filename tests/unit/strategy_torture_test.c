/* Each allocation of strategies fails once. */
#include "support/torture.h"
#include "support/torture_mock.h"

#include <gpuhal/schedule/strategy.h>

static gpuhal *of_workers;

static uint32_t count(void *state)
{
    (void)state;
    return 1;
}

static gpuhal_status find(void *state, uint32_t worker, gpuhal_device **out_device)
{
    (void)state;
    *out_device = gpuhal_device_at(of_workers, worker);
    return GPUHAL_OK;
}

static gpuhal_status use_strategies(void)
{
    static const char *const names[] = {"mine", "single_device", "rank_per_device", "auto"};
    static const gpuhal_strategy_table mine = {
        .size = sizeof mine, .name = "mine", .worker_count = count, .device_for_worker = find};
    gpuhal *gpu = NULL;
    gpuhal_status status = open_mock(&gpu);
    of_workers = gpu;
    status = status ? status : gpuhal_strategy_register(gpu, &mine);
    for (size_t i = 0; i < sizeof names / sizeof *names && !status; i++) {
        const gpuhal_strategy_desc desc = {.size = sizeof desc, .name = names[i]};
        gpuhal_strategy *strategy = NULL;
        gpuhal_device *device = NULL;
        status = gpuhal_strategy_create(gpu, &desc, &strategy);
        status = status ? status : gpuhal_strategy_device(strategy, 0, &device);
        assert_true(status || device == gpuhal_device_at(gpu, 0));
        gpuhal_strategy_destroy(strategy);
    }
    gpuhal_close(gpu);
    return status;
}

TEST(every_allocation_of_strategies_may_fail_once)
{
    torture(use_strategies, GPUHAL_FAULT_ALLOCATION, NULL);
}

#include "test_main.h"
