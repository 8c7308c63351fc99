/* Values and processes from the kernel's files on invented machines. The tests cover the source that is used,
 * impossible values, and sleeping devices, which must not wake up. */
#include "support/mock.h"
#include "support/record.h"
#include "support/tree.h"
#include "test.h"

#include "device/device.h"

#include <gpuhal/view.h>
#include <gpuhal/telemetry.h>
#include <gpuhal/transfer.h>

#include <sys/inotify.h>
#include <unistd.h>

#define CARD "sys/bus/pci/devices/0000:c1:00.0"
#define MS   UINT64_C(1000000)

static gpuhal *open_card(void)
{
    const uint64_t total_bytes = UINT64_C(17163091968);
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.pci = "0000:c1:00.0", .total_bytes = total_bytes}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    begin_tree();
    snprintf(gpu->settings.system_root, sizeof gpu->settings.system_root, "%s", tree_root);
    return gpu;
}

static void end_card(gpuhal *gpu)
{
    remove_tree();
    gpuhal_close(gpu);
}

static gpuhal_value value_of(gpuhal *gpu, gpuhal_key key)
{
    gpuhal_value value = {.key = key, .u64 = 99};
    assert_ok(gpuhal_device_sample(gpuhal_device_at(gpu, 0), 0, &value, 1, NULL));
    assert_int_equal(value.missing != 0, value.source[0] == 0);
    assert_true(value.missing == 0 || value.u64 == 0);
    return value;
}

static void expect(gpuhal *gpu, gpuhal_key key, uint64_t number, const char *source)
{
    const gpuhal_value value = value_of(gpu, key);
    if (value.missing) {
        fail_msg("%s is missing: %s", gpuhal_key_name(key), value.why);
    }
    assert_int_equal(value.u64, number);
    assert_string_equal(value.source, source);
}

static void expect_missing(gpuhal *gpu, gpuhal_key key, gpuhal_missing reason)
{
    const gpuhal_value value = value_of(gpu, key);
    if (value.missing != reason) {
        fail_msg("%s is %s", gpuhal_key_name(key), value.missing ? gpuhal_missing_name(value.missing) : "there");
    }
    assert_true(value.why[0] != 0);
}

TEST(amdgpus_files_become_values_in_their_units)
{
    gpuhal *gpu = open_card();
    put(CARD "/mem_info_vram_total", "17163091968\n");
    put(CARD "/mem_info_vram_used", "1163091968\n");
    put(CARD "/gpu_busy_percent", "37\n");
    put(CARD "/mem_busy_percent", "0\n");
    put(CARD "/vcn_busy_percent", "100\n");
    put(CARD "/pcie_replay_count", "12\n");
    put(CARD "/current_link_speed", "2.5 GT/s PCIe\n");
    put(CARD "/max_link_speed", "16.0 GT/s PCIe\n");
    put(CARD "/current_link_width", "8\n");
    put(CARD "/max_link_width", "16\n");
    put(CARD "/ras/umc_err_count", "ue: 2\nce: 70\n");
    put(CARD "/hwmon/hwmon7/temp1_input", "41000\n");
    put(CARD "/hwmon/hwmon7/temp1_label", "edge\n");
    put(CARD "/hwmon/hwmon7/temp2_input", "52000\n");
    put(CARD "/hwmon/hwmon7/temp2_label", "junction\n");
    put(CARD "/hwmon/hwmon7/temp3_input", "60000\n");
    put(CARD "/hwmon/hwmon7/temp3_label", "mem\n");
    put(CARD "/hwmon/hwmon7/power1_average", "71000000\n");
    put(CARD "/hwmon/hwmon7/power1_cap", "300000000\n");
    put(CARD "/hwmon/hwmon7/freq1_input", "2100000000\n");
    put(CARD "/hwmon/hwmon7/freq2_input", "1000000000\n");
    put(CARD "/hwmon/hwmon7/pwm1", "51\n");
    put(CARD "/hwmon/hwmon7/fan1_input", "1200\n");
    expect(gpu, GPUHAL_VALUE_MEMORY_USED_BYTES, 1163091968, "sysfs");
    expect(gpu, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 370, "sysfs");
    expect(gpu, GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, 0, "sysfs");
    expect(gpu, GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE, 1000, "sysfs");
    expect(gpu, GPUHAL_VALUE_PCIE_REPLAYS_TOTAL, 12, "sysfs");
    expect(gpu, GPUHAL_VALUE_PCIE_GENERATION, 1, "sysfs");
    expect(gpu, GPUHAL_VALUE_PCIE_GENERATION_MAX, 4, "sysfs");
    expect(gpu, GPUHAL_VALUE_PCIE_WIDTH, 8, "sysfs");
    expect(gpu, GPUHAL_VALUE_PCIE_WIDTH_MAX, 16, "sysfs");
    expect(gpu, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, 2, "sysfs");
    expect(gpu, GPUHAL_VALUE_ECC_CORRECTED_TOTAL, 70, "sysfs");
    expect(gpu, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 41000, "hwmon");
    expect(gpu, GPUHAL_VALUE_TEMPERATURE_HOT_SPOT_MILLICELSIUS, 52000, "hwmon");
    expect(gpu, GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, 60000, "hwmon");
    expect(gpu, GPUHAL_VALUE_POWER_MICROWATTS, 71000000, "hwmon");
    expect(gpu, GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, 300000000, "hwmon");
    expect(gpu, GPUHAL_VALUE_CLOCK_CORE_HERTZ, 2100000000, "hwmon");
    expect(gpu, GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, 1000000000, "hwmon");
    expect(gpu, GPUHAL_VALUE_FAN_PERMILLE, 200, "hwmon");
    expect(gpu, GPUHAL_VALUE_FAN_REVOLUTIONS_PER_MINUTE, 1200, "hwmon");
    expect_missing(gpu, GPUHAL_VALUE_PERFORMANCE_STATE, GPUHAL_MISSING_NOT_SUPPORTED);
    end_card(gpu);
}

TEST(values_that_parts_of_a_gpu_share_have_the_source_of_the_board)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2,
                                      .devices = {{.pci = "0000:c1:00.0", .partition = "0", .total_bytes = 1 << 30},
                                                  {.pci = "0000:c1:00.0", .partition = "1", .total_bytes = 1 << 30}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    begin_tree();
    snprintf(gpu->settings.system_root, sizeof gpu->settings.system_root, "%s", tree_root);
    put(CARD "/mem_info_vram_total", "2147483648\n");
    put(CARD "/mem_info_vram_used", "1163091968\n");
    put(CARD "/gpu_busy_percent", "37\n");
    put(CARD "/hwmon/hwmon7/power1_average", "71000000\n");
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_value values[] = {{.key = GPUHAL_VALUE_POWER_MICROWATTS},
                                 {.key = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE},
                                 {.key = GPUHAL_VALUE_MEMORY_USED_BYTES}};
        assert_ok(gpuhal_device_sample(gpuhal_device_at(gpu, i), 0, values, 3, NULL));
        assert_int_equal(values[0].u64, 71000000);
        assert_string_equal(values[0].source, "hwmon-board");
        assert_string_equal(values[1].source, "sysfs-board");
        assert_int_equal(values[2].missing, GPUHAL_MISSING_NOT_SUPPORTED);
    }
    end_card(gpu);
}

TEST(parts_that_are_sampled_together_have_one_reading_of_their_files)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2,
                                      .devices = {{.pci = "0000:c1:00.0", .partition = "0", .total_bytes = 1 << 30},
                                                  {.pci = "0000:c1:00.0", .partition = "1", .total_bytes = 1 << 30}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    begin_tree();
    snprintf(gpu->settings.system_root, sizeof gpu->settings.system_root, "%s", tree_root);
    put(CARD "/gpu_busy_percent", "37\n");
    char path[512], events[4096];
    snprintf(path, sizeof path, "%s/" CARD "/gpu_busy_percent", tree_root);
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, path, IN_OPEN | IN_CLOSE) >= 0);
    gpuhal_value values[2][2];
    gpuhal_sample samples[2];
    for (uint32_t i = 0; i < 2; i++) {
        values[i][0] = (gpuhal_value){.key = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE};
        values[i][1] = (gpuhal_value){.key = GPUHAL_VALUE_MEMORY_HELD_BYTES};
        samples[i] = (gpuhal_sample){
            .size = sizeof *samples, .device = gpuhal_device_at(gpu, i), .values = values[i], .count = 2};
    }
    assert_ok(gpuhal_sample_all(gpu, samples, 2, 0));
    for (uint32_t i = 0; i < 2; i++) {
        assert_ok(samples[i].status);
        assert_int_equal(values[i][0].u64, 370);
        assert_string_equal(values[i][0].source, "sysfs-board");
        assert_string_equal(values[i][1].source, "library");
    }
    assert_int_equal(read(watch, events, sizeof events), 2 * sizeof(struct inotify_event)); /* one open, one close */
    close(watch);
    end_card(gpu);
}

TEST(an_impossible_value_is_missing_and_no_number)
{
    static const struct {
        const char *file, *text;
        gpuhal_key key;
    } bad[] = {
        {"gpu_busy_percent", "101\n", GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE},
        {"gpu_busy_percent", "", GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE},
        {"gpu_busy_percent", "-1\n", GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE},
        {"gpu_busy_percent", "7 percent\n", GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE},
        {"gpu_busy_percent", "99999999999999999999\n", GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE},
        {"pcie_replay_count", "4294967295\n", GPUHAL_VALUE_PCIE_REPLAYS_TOTAL},
        {"current_link_speed", "Unknown\n", GPUHAL_VALUE_PCIE_GENERATION},
        {"current_link_width", "63\n", GPUHAL_VALUE_PCIE_WIDTH},
        {"ras/umc_err_count", "rubbish\n", GPUHAL_VALUE_ECC_CORRECTED_TOTAL},
        {"hwmon/hwmon0/temp1_input", "-40000\n", GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS},
        {"hwmon/hwmon0/temp1_input", "65535000\n", GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS},
        {"hwmon/hwmon0/freq1_input", "65535000000\n", GPUHAL_VALUE_CLOCK_CORE_HERTZ},
        {"hwmon/hwmon0/pwm1", "256\n", GPUHAL_VALUE_FAN_PERMILLE},
        {"hwmon/hwmon0/power1_average", "4294967295000000\n", GPUHAL_VALUE_POWER_MICROWATTS},
    };
    gpuhal *gpu = open_card();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[128];
        snprintf(path, sizeof path, CARD "/%s", bad[i].file);
        put(path, bad[i].text);
        const gpuhal_value value = value_of(gpu, bad[i].key);
        if (!value.missing) {
            fail_msg("%s with \"%s\" is %llu", gpuhal_key_name(bad[i].key), bad[i].text, (unsigned long long)value.u64);
        }
        assert_true(value.why[0] != 0);
    }
    end_card(gpu);
}

TEST(a_clock_that_stands_still_sleeps_and_one_beyond_all_clocks_has_failed)
{
    gpuhal *gpu = open_card();
    put(CARD "/hwmon/hwmon0/freq1_input", "0\n");
    expect_missing(gpu, GPUHAL_VALUE_CLOCK_CORE_HERTZ, GPUHAL_MISSING_ASLEEP);
    put(CARD "/hwmon/hwmon0/freq1_input", "65535000000\n");
    expect_missing(gpu, GPUHAL_VALUE_CLOCK_CORE_HERTZ, GPUHAL_MISSING_FAILED);
    end_card(gpu);
}

TEST(of_a_sleeping_device_nothing_is_read_unless_it_may_be_woken)
{
    gpuhal *gpu = open_card();
    gpuhal_value value = {.key = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE};
    put(CARD "/gpu_busy_percent", "5\n");
    put(CARD "/power/runtime_status", "suspended\n");
    expect_missing(gpu, value.key, GPUHAL_MISSING_ASLEEP);
    assert_ok(gpuhal_device_sample(gpuhal_device_at(gpu, 0), GPUHAL_SAMPLE_WAKE, &value, 1, NULL));
    assert_int_equal(value.missing, 0);
    assert_int_equal(value.u64, 50);
    put(CARD "/power/runtime_status", "active\n");
    expect(gpu, value.key, 50, "sysfs");
    end_card(gpu);
}

TEST(i915_and_xe_state_clocks_and_throttling)
{
    gpuhal *gpu = open_card();
    put(CARD "/drm/card1/gt_act_freq_mhz", "1350\n");
    put(CARD "/drm/card1/gt/gt0/throttle_reason_status", "1\n");
    put(CARD "/drm/card1/gt/gt0/throttle_reason_pl1", "1\n");
    put(CARD "/drm/card1/gt/gt0/throttle_reason_thermal", "0\n");
    expect(gpu, GPUHAL_VALUE_CLOCK_CORE_HERTZ, 1350000000, "sysfs");
    expect(gpu, GPUHAL_VALUE_THROTTLE_REASONS, GPUHAL_THROTTLE_POWER_CAP, "sysfs");
    put(CARD "/drm/card1/gt/gt0/throttle_reason_pl1", "0\n");
    expect(gpu, GPUHAL_VALUE_THROTTLE_REASONS, GPUHAL_THROTTLE_OTHER, "sysfs");
    put(CARD "/drm/card1/gt/gt0/throttle_reason_status", "0\n");
    expect(gpu, GPUHAL_VALUE_THROTTLE_REASONS, 0, "sysfs");
    end_card(gpu);
}

TEST(a_machine_without_files_gives_absent_values_and_no_failure)
{
    gpuhal *gpu = open_card();
    expect_missing(gpu, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, GPUHAL_MISSING_NOT_SUPPORTED);
    expect_missing(gpu, GPUHAL_VALUE_PCIE_GENERATION, GPUHAL_MISSING_NOT_SUPPORTED);
    end_card(gpu);
}

TEST(several_devices_are_read_at_once_and_a_driver_that_hangs_costs_its_values_in_time)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_value values[2] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}, {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}};
    gpuhal_sample samples[2];
    for (uint32_t i = 0; i < 2; i++) {
        samples[i] = (gpuhal_sample){
            .size = sizeof *samples, .device = gpuhal_device_at(gpu, i), .values = &values[i], .count = 1};
    }
    assert_ok(gpuhal_sample_all(gpu, samples, 2, 0));
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(samples[i].status, GPUHAL_OK);
        assert_int_equal(values[i].missing, 0);
        assert_true(samples[i].time_ns > 0);
    }
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    const uint64_t begin_ns = gpuhal_os_monotonic_ns();
    assert_ok(gpuhal_sample_all(gpu, samples, 2, 100 * MS));
    assert_true(gpuhal_os_monotonic_ns() - begin_ns < 3000 * MS);
    assert_int_equal(values[0].missing, GPUHAL_MISSING_TIMED_OUT);
    assert_int_equal(values[1].missing, GPUHAL_MISSING_TIMED_OUT);
    gpuhal_mock.stops = 0;
    samples[1].size = 0;
    assert_int_equal(gpuhal_sample_all(gpu, samples, 2, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_sample_all(gpu, samples, 0, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_sample_all(NULL, samples, 1, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

TEST(a_device_that_hangs_leaves_time_to_later_devices)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 3, .stop_device = 1, .stops = GPUHAL_MOCK_SAMPLE};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_value values[3];
    gpuhal_sample samples[3];
    for (uint32_t i = 0; i < 3; i++) {
        values[i] = (gpuhal_value){.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
        samples[i] = (gpuhal_sample){
            .size = sizeof *samples, .device = gpuhal_device_at(gpu, i), .values = &values[i], .count = 1};
    }
    assert_ok(gpuhal_sample_all(gpu, samples, 3, 3000 * MS));
    assert_int_equal(values[0].missing, GPUHAL_MISSING_TIMED_OUT);
    assert_int_equal(values[1].missing, 0);
    assert_int_equal(values[2].missing, 0);
    gpuhal_mock.stops = 0;
    gpuhal_close(gpu);
}

/* ---- processes */

/* Returns the mock's plugin under another name. If both are registered, each device has a second interface. */
static const gpuhal_plugin *query_second(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin second;
    second = *gpuhal_mock_query(host_abi, host);
    second.name = "second";
    return &second;
}

TEST(the_counts_of_the_library_are_the_sum_of_all_interfaces)
{
    gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, query_second, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .builtins = builtins};
    gpuhal *gpu = NULL;
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.pci = "0000:c1:00.0"}, {.pci = "0000:c2:00.0"}}};
    assert_ok(gpuhal_open(&config, &gpu));
    assert_int_equal(gpuhal_device_count(gpu), 4);
    assert_int_equal(records_now(gpu, GPUHAL_RECORD_PHYSICAL), 2);
    gpuhal_buffer *buffers[4];
    for (uint32_t d = 0; d < 4; d++) {
        buffers[d] = gpuhal_mock_buffer(gpu, d, UINT64_C(1000) << (4 * d));
        assert_ok(gpuhal_fill(NULL, buffers[d], 0, 100u << d, 7, 1));
    }
    for (uint32_t d = 0; d < 4; d++) { /* cards first, then their second interfaces */
        gpuhal_value values[] = {{.key = GPUHAL_VALUE_MEMORY_HELD_BYTES}, {.key = GPUHAL_VALUE_TRANSFERRED_BYTES}};
        assert_ok(gpuhal_device_sample(gpuhal_device_at(gpu, d), 0, values, 2, NULL));
        assert_int_equal(values[0].u64, (UINT64_C(1000) << (4 * (d % 2))) + (UINT64_C(1000) << (4 * (d % 2 + 2))));
        assert_int_equal(values[1].u64, (100u << d % 2) + (100u << (d % 2 + 2)));
    }
    for (uint32_t d = 0; d < 4; d++) {
        gpuhal_buffer_release(buffers[d]);
    }
    gpuhal_close(gpu);
}

static gpuhal_value available_on(gpuhal *gpu, uint32_t index)
{
    gpuhal_value alone = {.key = GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES};
    gpuhal_value both[] = {alone, {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}, alone};
    assert_ok(gpuhal_device_sample(gpuhal_device_at(gpu, index), 0, &alone, 1, NULL));
    assert_ok(gpuhal_device_sample(gpuhal_device_at(gpu, index), 0, both, 3, NULL));
    assert_int_equal(both[1].key, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_int_equal(both[1].missing || both[1].u64 == gpuhal_mock.devices[index].values[0].u64, 1);
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(both[i].key, GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES);
        assert_int_equal(both[i].missing, alone.missing);
        assert_int_equal(both[i].u64, alone.u64);
        assert_string_equal(both[i].why, alone.why);
    }
    return alone;
}

TEST(available_memory_is_the_least_of_free_memory_total_and_limit)
{
    const uint64_t mib = UINT64_C(1) << 20;
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.total_bytes = 2048 * mib}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_mock_value *of_hardware = gpuhal_mock.devices[0].values;
    *of_hardware = (gpuhal_mock_value){.key = GPUHAL_VALUE_MEMORY_FREE_BYTES, .u64 = 22877 * mib};
    assert_int_equal(available_on(gpu, 0).u64, 2048 * mib);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 256 * mib);
    assert_int_equal(available_on(gpu, 0).u64, 1792 * mib);
    assert_ok(gpuhal_device_limit_memory(device, 1024 * mib));
    assert_int_equal(available_on(gpu, 0).u64, 768 * mib);
    assert_string_equal(available_on(gpu, 0).source, "library");
    assert_ok(gpuhal_device_limit_memory(device, 128 * mib));
    assert_int_equal(available_on(gpu, 0).u64, 0);
    assert_ok(gpuhal_device_limit_memory(device, 0));
    of_hardware->u64 = 100 * mib;
    assert_int_equal(available_on(gpu, 0).u64, 100 * mib);
    of_hardware->missing = GPUHAL_MISSING_NO_PERMISSION; /* an unknown value is not derived from the total */
    gpuhal_value beside[] = {{.key = GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES}, {.key = GPUHAL_VALUE_MEMORY_HELD_BYTES}};
    assert_ok(gpuhal_device_sample(device, 0, beside, 2, NULL));
    assert_int_equal(beside[0].missing, GPUHAL_MISSING_NO_PERMISSION);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(without_a_source_processes_are_not_supported)
{
    gpuhal *gpu = open_card();
    uint32_t count = 7;
    assert_int_equal(gpuhal_device_processes(gpuhal_device_at(gpu, 0), 0, 0, NULL, 0, &count),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(count, 0);
    end_card(gpu);
}

TEST(one_reading_shows_the_ailments_of_a_device)
{
    static const struct {
        gpuhal_value value;
        uint32_t ailments;
    } cases[] = {
        {{.key = GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, .u64 = 1}, GPUHAL_AILMENT_ECC_UNCORRECTED},
        {{.key = GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, .u64 = 0}, 0},
        {{.key = GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, .u64 = 1, .missing = GPUHAL_MISSING_FAILED}, 0},
        {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES, .missing = GPUHAL_MISSING_RESET}, GPUHAL_AILMENT_RESET_NEEDED},
        {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES, .missing = GPUHAL_MISSING_LOST}, GPUHAL_AILMENT_VALUES_LOST},
        {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES, .missing = GPUHAL_MISSING_FAILED}, 0},
        {{.key = GPUHAL_VALUE_THROTTLE_REASONS, .u64 = GPUHAL_THROTTLE_HARDWARE}, GPUHAL_AILMENT_HARDWARE},
        {{.key = GPUHAL_VALUE_THROTTLE_REASONS, .u64 = GPUHAL_THROTTLE_HARDWARE | GPUHAL_THROTTLE_THERMAL},
         GPUHAL_AILMENT_THERMAL},
        {{.key = GPUHAL_VALUE_THROTTLE_REASONS, .u64 = GPUHAL_THROTTLE_HARDWARE | GPUHAL_THROTTLE_POWER_BRAKE},
         GPUHAL_AILMENT_POWER_BRAKE},
        {{.key = GPUHAL_VALUE_THROTTLE_REASONS, .u64 = GPUHAL_THROTTLE_POWER_CAP | GPUHAL_THROTTLE_IDLE}, 0},
        {{.key = GPUHAL_VALUE_MEMORY_USED_BYTES, .u64 = UINT64_MAX}, 0},
        {{.key = GPUHAL_VALUE_LINK_ERRORS_TOTAL, .u64 = 1}, GPUHAL_AILMENT_LINK_ERRORS},
        {{.key = GPUHAL_VALUE_LINK_ERRORS_TOTAL, .u64 = 0}, 0},
        {{.key = GPUHAL_VALUE_LINKS_UP, .u64 = 0}, 0}, /* not every card has a bridge */
        {{.key = GPUHAL_VALUE_FABRIC, .u64 = GPUHAL_FABRIC_READY}, 0},
        {{.key = GPUHAL_VALUE_FABRIC, .u64 = GPUHAL_FABRIC_WAITS}, GPUHAL_AILMENT_FABRIC_WAITS},
        {{.key = GPUHAL_VALUE_FABRIC, .u64 = GPUHAL_FABRIC_FAILED}, GPUHAL_AILMENT_FABRIC_FAILED},
    };
    gpuhal_value all[sizeof cases / sizeof *cases];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(gpuhal_ailments(&cases[i].value, 1), cases[i].ailments);
        all[i] = cases[i].value;
    }
    assert_int_equal(gpuhal_ailments(all, sizeof all / sizeof *all),
                     GPUHAL_AILMENT_RESET_NEEDED | GPUHAL_AILMENT_ECC_UNCORRECTED | GPUHAL_AILMENT_HARDWARE |
                         GPUHAL_AILMENT_THERMAL | GPUHAL_AILMENT_POWER_BRAKE | GPUHAL_AILMENT_VALUES_LOST |
                         GPUHAL_AILMENT_LINK_ERRORS | GPUHAL_AILMENT_FABRIC_WAITS | GPUHAL_AILMENT_FABRIC_FAILED);
    assert_int_equal(gpuhal_ailments(NULL, 0), 0);
}

#include "test_main.h"
