/* Workers bound to the CPUs near their device, on invented machines. */
#include "hardware_support.h"

#include "schedule/strategy.h"

#include <sched.h>

static void find_processors(int *out_first, int *out_last)
{
    gpuhal_processors own;
    assert_int_equal(gpuhal_os_thread_processors(&own), 0);
    *out_first = *out_last = -1;
    for (int i = 0; i < GPUHAL_PROCESSORS_MAX; i++) {
        if (own.words[i / 64] >> i % 64 & 1) {
            *out_first = *out_first < 0 ? i : *out_first;
            *out_last = i;
        }
    }
    assert_true(*out_first >= 0);
}

static void put_card(const char *address, const char *processors)
{
    recorded_device *device = add_device("cuda", "card");
    keep_fact(device, "pci_address", address);
    put_pci(address, "030200", "10de:2684", "nvidia");
    if (processors) {
        put_at(address, "local_cpulist", processors);
    }
}

static void expect_bound(const gpuhal_strategy *strategy, uint32_t worker, int processor)
{
    cpu_set_t set;
    assert_ok(gpuhal_strategy_bind(strategy, worker));
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_true(CPU_ISSET((size_t)processor, &set));
    assert_int_equal(CPU_COUNT(&set), 1);
}

static void expect_unbound(const gpuhal_strategy *strategy, uint32_t worker, const char *words)
{
    gpuhal_processors before, after;
    assert_int_equal(gpuhal_os_thread_processors(&before), 0);
    assert_int_equal(gpuhal_strategy_bind(strategy, worker), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, words));
    assert_int_equal(gpuhal_os_thread_processors(&after), 0);
    assert_memory_equal(&before, &after, sizeof before);
}

TEST(workers_run_near_their_devices_also_one_after_another_on_one_thread)
{
    int first = 0, last = 0;
    char text[64];
    unsetenv("LOCAL_RANK");
    unsetenv("RANK");
    begin_machine();
    find_processors(&first, &last);
    snprintf(text, sizeof text, "%d,8000-8191\n", first);
    put_card("0000:c1:00.0", text);
    snprintf(text, sizeof text, "%d\n", last);
    put_card("0000:c2:00.0", text);
    put_card("0000:c3:00.0", "8190-8191\n");
    put_card("0000:c4:00.0", NULL);
    put_card("0000:c5:00.0", "0-\n");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_strategy *strategy = NULL;
    assert_ok(gpuhal_strategy_create(gpu, NULL, &strategy));
    assert_int_equal(gpuhal_strategy_worker_count(strategy), 5);
    expect_bound(strategy, 0, first);
    expect_bound(strategy, 1, last); /* although the thread is already bound */
    expect_unbound(strategy, 2, "this process may use none of the processors near it (8190-8191)");
    expect_unbound(strategy, 3, "cuda:3: binding the thread: the kernel does not list which processors are near it");
    expect_unbound(strategy, 4, "cuda:4: binding the thread: the kernel does not list");
    assert_int_equal(gpuhal_strategy_bind(strategy, 5), GPUHAL_ERROR_OUT_OF_RANGE);
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
    end_machine();
}

TEST(a_worker_of_the_cpu_may_run_on_all_processors)
{
    begin_machine();
    gpuhal *gpu = open_listed(NULL);
    gpuhal_strategy *strategy = NULL;
    gpuhal_processors before, after;
    assert_ok(gpuhal_strategy_create(gpu, NULL, &strategy));
    assert_int_equal(gpuhal_os_thread_processors(&before), 0);
    assert_ok(gpuhal_strategy_bind(strategy, 0));
    assert_int_equal(gpuhal_os_thread_processors(&after), 0);
    assert_memory_equal(&before, &after, sizeof before);
    gpuhal_strategy_destroy(strategy);
    gpuhal_close(gpu);
    end_machine();
}

TEST(lists_of_processors_are_read_as_the_kernel_writes_them_and_nothing_else)
{
    gpuhal_processors set;
    assert_true(gpuhal_processors_read("0", &set));
    assert_int_equal(set.words[0], 1);
    assert_true(gpuhal_processors_read("0-3,62-65,8191", &set));
    assert_true(set.words[0] == (UINT64_C(0xf) | UINT64_C(3) << 62));
    assert_int_equal(set.words[1], 3);
    assert_true(set.words[127] == UINT64_C(1) << 63);
    static const char *const bad[] = {"",
                                      ",",
                                      "0,",
                                      ",0",
                                      "-",
                                      "0-",
                                      "-3",
                                      "3-0",
                                      "0--3",
                                      "0-1-2",
                                      " 0",
                                      "0 ",
                                      "a",
                                      "0x1",
                                      "8192",
                                      "0-8192",
                                      "18446744073709551616",
                                      "0,,1",
                                      "0\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (gpuhal_processors_read(bad[i], &set)) {
            fail_msg("\"%s\" is taken", bad[i]);
        }
    }
}

#include "test_main.h"
