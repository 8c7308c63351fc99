/* The parent's rankings, assignments and strategies in a forked child, where all calls must be refused. */
#include "schedule_support.h"
#include "support/child.h"

#include <gpuhal/schedule.h>

#include <sys/wait.h>

TEST(in_the_child_of_a_fork_every_call_with_the_parents_objects_is_refused)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .fork_safe = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_balance *balance = NULL, *none = NULL;
    gpuhal_strategy *strategy = NULL, *other = NULL;
    gpuhal_assignment *assignment = NULL, *again = NULL;
    gpuhal_device *device = NULL;
    uint32_t count = 0;
    const gpuhal_need need = {.size = sizeof need};
    const gpuhal_assign_step step = {.size = sizeof step, .need = &need}, idle = {.size = sizeof idle};
    const gpuhal_assign_desc desc = {.size = sizeof desc, .steps = &step, .step_count = 1},
                             empty = {.size = sizeof empty, .steps = &idle, .step_count = 1};
    const gpuhal_strategy_desc cpu = {.size = sizeof cpu, .name = "cpu"};
    assert_ok(gpuhal_balance_create(gpu, NULL, &balance));
    assert_ok(gpuhal_strategy_create(gpu, &cpu, &strategy));
    assert_ok(gpuhal_assign(gpu, &desc, &assignment));
    pid_t child = begin_child();
    if (child == 0) {
        const gpuhal_status results[] = {
            gpuhal_rank(gpu, NULL, NULL, 0, &count),   gpuhal_assign(gpu, &desc, &again),
            gpuhal_assign(gpu, &empty, &again),        gpuhal_assignment_check(assignment),
            gpuhal_balance_create(gpu, NULL, &none),   gpuhal_strategy_create(gpu, NULL, &other),
            gpuhal_strategy_create(gpu, &cpu, &other), gpuhal_strategy_device(strategy, 0, &device),
            gpuhal_strategy_bind(strategy, 0),
        };
        bool good = !none && !other && !again && !device;
        for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
            good = good && results[i] == GPUHAL_ERROR_FORKED;
        }
        gpuhal_strategy_destroy(strategy);
        gpuhal_assignment_destroy(assignment);
        gpuhal_balance_destroy(balance);
        gpuhal_close(gpu);
        _exit(!good);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(gpuhal_strategy_device(strategy, 0, &device));
    assert_ok(gpuhal_assignment_check(assignment));
    gpuhal_strategy_destroy(strategy);
    gpuhal_assignment_destroy(assignment);
    gpuhal_balance_destroy(balance);
    gpuhal_close(gpu);
}

#include "test_main.h"
