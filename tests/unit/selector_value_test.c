/* Selection by current values: most_free and least_loaded. */
#include "device/device.h"
#include "support/faults.h"
#include "support/mock.h"
#include "test.h"

#define GIB(count) ((uint64_t)(count) << 30)

static void set_value(uint32_t device, gpuhal_key key, uint64_t value)
{
    gpuhal_mock.devices[device].values[0].u64 = value;
    gpuhal_mock.devices[device].values[0].missing = 0;
    gpuhal_mock.devices[device].values[0].key = key;
}

static void set_missing(uint32_t device, gpuhal_key key)
{
    gpuhal_mock.devices[device].values[0].missing = GPUHAL_MISSING_NOT_SUPPORTED;
    gpuhal_mock.devices[device].values[0].key = key;
}

static void expect(gpuhal *gpu, const char *selector, const char *id, const char *words)
{
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    if (gpuhal_select(gpu, selector, 0, &device, &reason)) {
        fail_msg("\"%s\": %s", selector, gpuhal_last_error()->sentence);
    }
    if (strcmp(gpuhal_device_id(device), id) != 0 || strcmp(reason, words) != 0) {
        fail_msg("\"%s\" selects %s: %s", selector, gpuhal_device_id(device), reason);
    }
}

/* Opens four devices with different memory sizes. The selector `auto` would choose the last device. */
static gpuhal *open_four(void)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 4};
    for (uint32_t i = 0; i < 4; i++) {
        gpuhal_mock.devices[i].total_bytes = GIB(8 * (i + 1));
    }
    return gpuhal_mock_open(NULL, 1);
}

TEST(most_free_selects_the_gpu_with_most_free_memory_now)
{
    gpuhal *gpu = open_four();
    const gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    set_value(0, key, GIB(7));
    set_value(1, key, GIB(15) + GIB(1) / 2);
    set_value(2, key, GIB(1));
    set_missing(3, key);
    expect(gpu, "most_free", "mock:1", "most free memory of 4: 15.5 GiB (1 without that value)");
    expect(gpu, "most_free,!mock:1", "mock:0", "most free memory of 3: 7.0 GiB (1 without that value)");
    set_value(0, key, GIB(99)); /* host memory; this device can use 8 GiB of it */
    expect(gpu, "most_free", "mock:1", "most free memory of 4: 15.5 GiB (1 without that value)");
    set_value(0, key, GIB(7));
    set_value(3, key, GIB(7));
    set_value(1, key, 0);
    expect(gpu, "most_free", "mock:3",
           "most free memory of 4: 7.0 GiB; 2 have this value, and the rule of auto decided");
    gpuhal_close(gpu);
}

TEST(least_loaded_selects_the_gpu_that_works_least_now)
{
    gpuhal *gpu = open_four();
    const gpuhal_key key = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE;
    for (uint32_t i = 0; i < 4; i++) {
        set_value(i, key, 1000 - 100 * (i % 3));
    }
    expect(gpu, "least_loaded", "mock:2", "least load of 4: 40.0 %");
    set_value(0, key, 5);
    expect(gpu, "least_loaded", "mock:0", "least load of 4: 0.2 %");
    gpuhal_close(gpu);
}

TEST(without_any_value_the_rule_of_auto_decides_and_the_reason_says_so)
{
    gpuhal *gpu = open_four();
    for (uint32_t i = 0; i < 4; i++) {
        set_missing(i, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    }
    expect(gpu, "most_free", "mock:3", "no device states its free memory; first backend (mock), most memory of 4");
    gpuhal_mock.devices[3].fail_sample = GPUHAL_ERROR_DRIVER;
    expect(gpu, "least_loaded", "mock:3", "no device states its load; first backend (mock), most memory of 4");
    gpuhal_close(gpu);
}

TEST(a_gpu_that_failed_its_self_test_is_not_selected_by_its_values)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.hidden = 1}, {.hidden = 1}}};
    gpuhal_mock.devices[0].total_bytes = gpuhal_mock.devices[1].total_bytes = GIB(8);
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    set_value(0, GPUHAL_VALUE_MEMORY_FREE_BYTES, GIB(8));
    set_value(1, GPUHAL_VALUE_MEMORY_FREE_BYTES, GIB(4));
    gpuhal_mock.devices[0].fail_read = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_device_verify(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_DRIVER);
    expect(gpu, "most_free", "mock:1", "most free memory of 1: 4.0 GiB");
    expect(gpu, "most_free,mock:0", "mock:1", "most free memory of 2: 4.0 GiB");
    gpuhal_close(gpu);
}

static gpuhal_status open_with(const char *member, const char *variable, uint64_t limit, gpuhal **out_gpu)
{
    gpuhal_builtin_fn *builtins[] = {gpuhal_mock_query, gpuhal_mock_cpu_query, NULL};
    const gpuhal_config config = {.size = sizeof config, .registry = "none", .isolation = GPUHAL_ISOLATION_NEVER,
                                  .builtins = builtins, .devices = member, .memory_limit_bytes = limit};
    if (variable) {
        setenv("GPUHAL_DEVICES", variable, 1);
    }
    const gpuhal_status status = gpuhal_open(&config, out_gpu);
    builtins[0] = NULL; /* rescans use the library's own copy */
    unsetenv("GPUHAL_DEVICES");
    return status;
}

TEST(values_select_no_software_device)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.name = "soft", .software = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "most_free", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_select(gpu, "most_free", GPUHAL_SELECT_ALLOW_CPU, &device, NULL), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "cpu:0");
    gpuhal_close(gpu);
    assert_int_equal(open_with(NULL, "most_free", 0, &gpu), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_DEVICES: no device matches \"most_free\""));
}

TEST(a_malformed_selector_of_values_is_named)
{
    static const char *const malformed[][2] = {{"!most_free", "selects devices, and cannot exclude any"},
                                               {"most_free:0", "\"most_free\" takes no index"},
                                               {"most_free,least_loaded", "not both"}};
    gpuhal *gpu = open_four(), *other = NULL;
    gpuhal_device *device = NULL;
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        const char *sentence = gpuhal_last_error()->sentence;
        assert_int_equal(gpuhal_select(gpu, malformed[i][0], 0, &device, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(sentence, malformed[i][1]));
        assert_int_equal(open_with(malformed[i][0], NULL, 0, &other), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_true(strstr(sentence, malformed[i][1]) && strstr(sentence, "config.devices: ") == sentence);
        assert_int_equal(open_with(NULL, malformed[i][0], 0, &other), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_true(strstr(sentence, malformed[i][1]) && strstr(sentence, "GPUHAL_DEVICES: ") == sentence);
    }
    gpuhal_close(gpu);
}

TEST(a_filter_by_values_leaves_the_one_device_that_they_select_when_it_opens)
{
    static const struct {
        const char *member, *variable;
        uint64_t all;
        const char *id;
        uint64_t limit;
    } cases[] = {
        {NULL, "most_free", 0, "mock:1", 0},
        {"most_free", NULL, 0, "mock:1", 0},
        {NULL, "most_free,!mock:1", 0, "mock:0", 0},
        {"mock:2,mock:0", "most_free", 0, "mock:0", 0}, /* among the devices that the program allows */
        {"mock:0,mock:1", "most_free,!1", 0, "mock:0", 0}, /* numbers include hidden devices */
        {"most_free", "!mock:1", 0, "mock:0", 0},
        {"most_free", "least_loaded", 0, "mock:1", 0},
        {NULL, "most_free@1GiB", 0, "mock:1", GIB(1)},
        {"gpu@2GiB", "most_free@3GiB", 0, "mock:1", GIB(2)},
        {NULL, "most_free@25%", GIB(8), "mock:1", GIB(4)},
        {"cpu", "most_free", 0, "cpu:0", 0}, /* as with `gpu`, no device is in both lists */
    };
    gpuhal_close(open_four());
    const uint64_t free_bytes[] = {GIB(7), GIB(15), GIB(1), 0};
    for (uint32_t i = 0; i < 4; i++) {
        set_value(i, GPUHAL_VALUE_MEMORY_FREE_BYTES, free_bytes[i]);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal *gpu = NULL;
        if (open_with(cases[i].member, cases[i].variable, cases[i].all, &gpu)) {
            fail_msg("case %zu: %s", i, gpuhal_last_error()->sentence);
        }
        const gpuhal_device *device = gpuhal_device_at(gpu, 0);
        const uint64_t limit = atomic_load(&device->limit_bytes);
        if (gpuhal_device_count(gpu) != 1 || strcmp(gpuhal_device_id(device), cases[i].id) != 0 ||
            limit != cases[i].limit) {
            fail_msg("case %zu leaves %u, %s limited to %llu", i, gpuhal_device_count(gpu), gpuhal_device_id(device),
                     (unsigned long long)limit);
        }
        gpuhal_close(gpu);
    }
}

TEST(devices_hidden_by_a_filter_of_values_stay_hidden_and_the_reason_stays)
{
    gpuhal *gpu = NULL;
    gpuhal_close(open_four());
    for (uint32_t i = 0; i < 4; i++) {
        set_value(i, GPUHAL_VALUE_MEMORY_FREE_BYTES, GIB(i == 2 ? 20 : 2));
    }
    assert_int_equal(open_with(NULL, "most_free", 0, &gpu), GPUHAL_OK);
    set_value(0, GPUHAL_VALUE_MEMORY_FREE_BYTES, GIB(30));
    assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
    assert_int_equal(gpuhal_device_count(gpu), 1);
    expect(gpu, NULL, "mock:2", "most free memory of 4: 20.0 GiB (measured when the library was opened)");
    gpuhal_close(gpu);
}

TEST(every_allocation_of_a_filter_by_values_may_fail_once)
{
    gpuhal *gpu = NULL;
    gpuhal_close(open_four());
    assert_int_equal(open_with(NULL, "most_free@1GiB", 0, &gpu), GPUHAL_OK);
    gpuhal_close(gpu);
    const int64_t held = gpuhal_fault_held();
    bool came = true;
    for (unsigned at = 1; came; at++) {
        gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, at, 0);
        const gpuhal_status status = open_with(NULL, "most_free@1GiB", 0, &gpu);
        came = gpuhal_fault_end();
        if (status == GPUHAL_OK) { /* a device is selected even without a value or a log line */
            assert_int_equal(gpuhal_device_count(gpu), 1);
            gpuhal_close(gpu);
        } else if (!came || (status != GPUHAL_ERROR_HOST_MEMORY && status != GPUHAL_ERROR_NOT_FOUND)) {
            fail_msg("allocation %u (%s): %s", at, gpuhal_fault_name(), gpuhal_last_error()->sentence);
        }
        if (gpuhal_fault_held() != held) {
            fail_msg("allocation %u (%s): %lld are left", at, gpuhal_fault_name(),
                     (long long)(gpuhal_fault_held() - held));
        }
    }
}

#include "test_main.h"
