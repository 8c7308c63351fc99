/* Each allocation of rankings and assignments fails once. */
#include "support/torture.h"
#include "support/torture_mock.h"

#include <gpuhal/schedule.h>

static gpuhal_status assign_around(void)
{
    const gpuhal_need need = {.size = sizeof need, .bytes = 4096};
    const gpuhal_assign_step steps[] = {
        {.size = sizeof *steps, .name = "a", .need = &need, .group = 1, .flags = GPUHAL_STEP_MAY_SPLIT},
        {.size = sizeof *steps, .need = &need},
        {.size = sizeof *steps, .name = "c", .need = &need, .group = 1, .flags = GPUHAL_STEP_MAY_SPLIT}};
    gpuhal *gpu = NULL;
    gpuhal_balance *balance = NULL;
    gpuhal_ranked list[2] = {{.size = sizeof *list}};
    uint32_t count = 0;
    gpuhal_status status = open_mock(&gpu);
    status = status ? status : gpuhal_balance_create(gpu, NULL, &balance);
    const gpuhal_rank_desc rank = {
        .size = sizeof rank, .order = GPUHAL_RANK_LEAST_LOADED, .need = &need, .balance = balance};
    status = status ? status : gpuhal_rank(gpu, &rank, list, 2, &count);
    for (int i = 0; i < 2 && !status; i++) {
        gpuhal_assignment *assignment = NULL;
        const gpuhal_assign_desc desc = {.size = sizeof desc,
                                         .policy = GPUHAL_ASSIGN_LEAST_LOADED,
                                         .steps = steps,
                                         .step_count = 3,
                                         .balance = balance};
        status = gpuhal_assign(gpu, &desc, &assignment);
        if (!status) {
            assert_int_equal(gpuhal_assignment_count(assignment), 3);
        }
        gpuhal_assignment_destroy(assignment);
    }
    gpuhal_balance_destroy(balance);
    gpuhal_close(gpu);
    return status;
}

TEST(every_allocation_of_an_assignment_may_fail_once)
{
    torture(assign_around, GPUHAL_FAULT_ALLOCATION, NULL);
}

#include "test_main.h"
