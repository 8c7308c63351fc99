/* The rule that gpuhal_select() applies to select one of several devices, and the reported reason. */
#include "registry_support.h"
#include "support/child.h"
#include "support/mock.h"

#include <sys/wait.h>

static void expect(gpuhal *gpu, const char *selector, const char *id, const char *reason)
{
    gpuhal_device *device = NULL;
    const char *why = NULL;
    assert_int_equal(gpuhal_select(gpu, selector, 0, &device, &why), GPUHAL_OK);
    if (strcmp(gpuhal_device_id(device), id) != 0 || strcmp(why, reason) != 0) {
        fail_msg("\"%s\" selects %s: %s", selector, gpuhal_device_id(device), why);
    }
}

#define GIB(count) ((uint64_t)(count) << 30)

/* Selects `auto` on the machine that gpuhal_mock describes. Runs in a child, because a plugin lists its devices once
 * per process. */
static void expect_on_new_machine(const char *id, const char *reason)
{
    int status = -1;
    pid_t child = begin_child();
    if (child == 0) {
        gpuhal *gpu = gpuhal_mock_open(NULL, 1);
        gpuhal_device *device = NULL;
        const char *why = NULL;
        gpuhal_status selected = gpuhal_select(gpu, NULL, 0, &device, &why);
        bool right = !selected && strcmp(gpuhal_device_id(device), id) == 0 && (!reason || strcmp(why, reason) == 0);
        if (!right) {
            printf("auto selects %s: %s\n", gpuhal_device_id(device), why ? why : gpuhal_last_error()->sentence);
            fflush(stdout);
        }
        _exit(!right);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(auto_prefers_memory_then_compute_units_then_order_and_says_the_reason)
{
    static const struct {
        gpuhal_mock_state machine;
        const char *id, *reason;
    } cases[] = {
        {{.count = 1, .devices = {{.name = "one"}}}, "mock:0", "first working backend (mock), its only GPU"},
        {{.count = 2, .devices = {{.total_bytes = GIB(8)}, {.total_bytes = GIB(80)}}},
         "mock:1", "first working backend (mock), most memory of 2"},
        {{.count = 3,
          .devices = {{.total_bytes = GIB(8), .compute_units = 99},
                      {.total_bytes = GIB(80), .compute_units = 10},
                      {.total_bytes = GIB(80), .compute_units = 20}}},
         "mock:2", "first working backend (mock), most compute units of 2 with most memory"},
        {{.count = 3, .devices = {{.total_bytes = GIB(8)}, {.total_bytes = GIB(80)}, {.total_bytes = GIB(80)}}},
         "mock:1", "first working backend (mock), first of 2 with most memory and compute units"},
        {{.count = 8}, "mock:0", "first working backend (mock), first of 8 equal GPUs"},
        {{.count = 2, .devices = {{.type = GPUHAL_DEVICE_INTEGRATED_GPU, .total_bytes = GIB(96)}, {.name = "card"}}},
         "mock:1", "first working backend (mock), the only discrete GPU"},
        {{.count = 3,
          .devices = {{.type = GPUHAL_DEVICE_INTEGRATED_GPU, .total_bytes = GIB(96)},
                      {.total_bytes = GIB(8)},
                      {.total_bytes = GIB(24)}}},
         "mock:2", "first working backend (mock), most memory of 2 discrete GPUs"},
        {{.count = 1, .devices = {{.name = "soft", .software = 1}}},
         "cpu:0", "no usable GPU; using the CPU (mock:0 is a software driver)"},
        {{.count = 0}, "cpu:0", "no usable GPU; using the CPU"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(&gpuhal_mock, &cases[i].machine, sizeof gpuhal_mock);
        expect_on_new_machine(cases[i].id, cases[i].reason);
    }
}

TEST(the_first_in_the_list_is_so_in_a_later_list_too)
{
    gpuhal_mock.count = 2;
    gpuhal_mock.unplugged = 1;
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    expect(gpu, "auto", "mock:1", "first working backend (mock), its only GPU");
    gpuhal_mock.unplugged = 0;
    assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
    expect(gpu, "auto", "mock:0", "first working backend (mock), first of 2 equal GPUs");
    gpuhal_close(gpu);
}

TEST(of_several_named_devices_the_best_is_selected_and_the_reason_counts_them)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 4, .devices = {{.total_bytes = GIB(80)}, {.name = "x"}, {.total_bytes = GIB(24)}, {.name = "x"}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    expect(gpu, "mock:1-3", "mock:2", "\"mock:1-3\" names 3; first backend (mock), most memory of 3");
    expect(gpu, "mock:3,1", "mock:1", "\"mock:3,1\" names 2; first backend (mock), first of 2 equal GPUs");
    expect(gpu, "cpu,mock:*", "mock:0", "\"cpu,mock:*\" names 5; first backend (mock), most memory of 4");
    expect(gpu, "mock:3", "mock:3", "\"mock:3\" names it");
    gpuhal_close(gpu);
}

/* The mock's reads fail with DRIVER, so the self-test fails. */
TEST(a_device_that_failed_its_self_test_is_not_taken_by_auto_until_it_passes)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.total_bytes = GIB(2), .hidden = 1}, {.hidden = 1}}};
    const gpuhal_config config = {.registry = fresh_directory()};
    gpuhal *gpu = gpuhal_mock_open(&config, 1);
    expect(gpu, "auto", "mock:0", "first working backend (mock), most memory of 2");
    gpuhal_mock.devices[0].fail_read = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_DRIVER);
    static const char without[] = "first working backend (mock), its only GPU (mock:0 failed its self-test)";
    expect(gpu, "auto", "mock:1", without);
    gpuhal_close(gpu);
    gpu = gpuhal_mock_open(&config, 1); /* the record contains the failure */
    expect(gpu, "auto", "mock:1", without);
    expect(gpu, "gpu", "mock:1", without);
    expect(gpu, "mock", "mock:1", "\"mock\" names 2; first backend (mock), its only GPU (mock:0 failed its self-test)");
    expect(gpu, "mock:0", "mock:0", "\"mock:0\" names it");
    gpuhal_mock.devices[1].fail_read = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, 1)), GPUHAL_ERROR_DRIVER);
    expect(gpu, "auto", "cpu:0", "no usable GPU; using the CPU (mock:0 and mock:1 failed their self-tests)");
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "gpu", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "mock:0 and mock:1 failed their self-tests"));
    gpuhal_mock.devices[0].fail_read = GPUHAL_OK;
    assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, 0)), GPUHAL_OK);
    gpuhal_close(gpu);
    gpu = gpuhal_mock_open(&config, 1);
    expect(gpu, "auto", "mock:0", "first working backend (mock), its only GPU (mock:1 failed its self-test)");
    gpuhal_close(gpu);
}

TEST(a_full_device_has_neither_passed_nor_failed_its_self_test)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal_mock.devices[0].fail_allocate = GPUHAL_ERROR_OUT_OF_MEMORY;
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect(gpu, "auto", "mock:0", "first working backend (mock), its only GPU");
    gpuhal_close(gpu);
}

#include "test_main.h"
