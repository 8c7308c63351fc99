/* Tests the CPU's telemetry. The values and units of an invented machine are checked exactly. The values of this
 * machine are compared with /proc. */
#include "system.h"

#include "support/tree.h"

#include <unistd.h>

static gpuhal *open_cpu(gpuhal_device **out_cpu)
{
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cpu"});
    *out_cpu = select_or_fail(gpu, "cpu:0");
    return gpu;
}

static gpuhal_value sample(gpuhal_device *cpu, gpuhal_key key)
{
    gpuhal_value value = {.key = key};
    assert_ok(gpuhal_device_sample(cpu, 0, &value, 1, NULL));
    return value;
}

static void expect(gpuhal_device *cpu, gpuhal_key key, uint64_t wanted)
{
    const gpuhal_value value = sample(cpu, key);
    if (value.missing || value.u64 != wanted) {
        fail_msg("%s: %llu, %s; wanted %llu", gpuhal_key_name(key), (unsigned long long)value.u64, value.why,
                 (unsigned long long)wanted);
    }
}

/* Busy time is the sum of all fields except the fourth (idle) and the fifth (iowait). */
static void put_ticks(unsigned busy, unsigned idle)
{
    char text[128];
    snprintf(text, sizeof text, "cpu  %u 0 0 %u 0 0 0 0 0 0\ncpu0 1 1 1 1\n", busy, idle);
    put("proc/stat", text);
}

static void make_machine(void)
{
    begin_tree();
    put("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 786432 kB\n");
    put("proc/self/statm", "9000 1000 500 1 0 1 0\n");
    put_ticks(1000, 9000);
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1000000\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000\n");
    put("sys/class/hwmon/hwmon0/name", "nvme\n");
    put("sys/class/hwmon/hwmon0/temp1_input", "99000\n");
    put("sys/class/hwmon/hwmon1/name", "coretemp\n");
    put("sys/class/hwmon/hwmon1/temp1_label", "Package id 0\n");
    put("sys/class/hwmon/hwmon1/temp1_input", "61000\n");
    put("sys/class/hwmon/hwmon1/temp2_label", "Core 0\n");
    put("sys/class/hwmon/hwmon1/temp2_input", "65000\n");
    put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    put("sys/class/powercap/intel-rapl:0/energy_uj", "900\n");
    put("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000\n");
    put("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "95000000\n");
    put("sys/class/powercap/intel-rapl:1/name", "psys\n");
    put("sys/class/powercap/intel-rapl:1/energy_uj", "77777\n");
    put("sys/devices/system/edac/mc/mc0/ce_count", "3\n");
    put("sys/devices/system/edac/mc/mc1/ce_count", "4\n");
    put("sys/devices/system/edac/mc/mc0/ue_count", "0\n");
}

TEST(values_of_a_machine_of_files_have_their_units)
{
    gpuhal_device *cpu;
    make_machine();
    gpuhal *gpu = open_cpu(&cpu);
    expect(cpu, GPUHAL_VALUE_MEMORY_USED_BYTES, UINT64_C(262144) << 10);
    expect(cpu, GPUHAL_VALUE_MEMORY_PROCESS_BYTES, 1000 * (uint64_t)sysconf(_SC_PAGESIZE));
    expect(cpu, GPUHAL_VALUE_CLOCK_CORE_HERTZ, 2000000000);
    expect(cpu, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 61000);
    expect(cpu, GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, 95000000);
    expect(cpu, GPUHAL_VALUE_ECC_CORRECTED_TOTAL, 7);
    expect(cpu, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, 0);
    gpuhal_close(gpu);
    remove_tree();
}

TEST(energy_that_wraps_in_the_kernel_goes_on_here)
{
    gpuhal_device *cpu;
    make_machine();
    gpuhal *gpu = open_cpu(&cpu);
    expect(cpu, GPUHAL_VALUE_ENERGY_MICROJOULES, 900);
    put("sys/class/powercap/intel-rapl:0/energy_uj", "50\n");
    expect(cpu, GPUHAL_VALUE_ENERGY_MICROJOULES, 1050);
    expect(cpu, GPUHAL_VALUE_ENERGY_MICROJOULES, 1050);
    gpuhal_close(gpu);
    remove_tree();
}

TEST(the_share_of_time_is_that_between_two_samples)
{
    gpuhal_device *cpu;
    make_machine();
    gpuhal *gpu = open_cpu(&cpu);
    assert_int_equal(sample(cpu, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE).missing, GPUHAL_MISSING_FAILED);
    put_ticks(1100, 9300);
    expect(cpu, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 250);
    put_ticks(1101, 9300); /* too few ticks, so the previous result is reported */
    expect(cpu, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 250);
    put_ticks(1102, 9200); /* idle decreases */
    assert_int_equal(sample(cpu, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE).missing, GPUHAL_MISSING_FAILED);
    put_ticks(1202, 9200);
    expect(cpu, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 1000);
    gpuhal_close(gpu);
    remove_tree();
}

TEST(without_sensors_values_are_missing_and_never_0)
{
    static const gpuhal_key keys[] = {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, GPUHAL_VALUE_POWER_LIMIT_MICROWATTS,
                                      GPUHAL_VALUE_ENERGY_MICROJOULES, GPUHAL_VALUE_ECC_CORRECTED_TOTAL,
                                      GPUHAL_VALUE_FAN_PERMILLE, GPUHAL_VALUE_MEMORY_RESERVED_BYTES};
    gpuhal_device *cpu;
    begin_tree();
    put("proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 786432 kB\n");
    put("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    put("sys/class/thermal/thermal_zone0/temp", "-274000\n");
    gpuhal *gpu = open_cpu(&cpu);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const gpuhal_value value = sample(cpu, keys[i]);
        assert_int_equal(value.missing, GPUHAL_MISSING_NOT_SUPPORTED);
        assert_true(value.why[0] != '\0');
    }
    gpuhal_close(gpu);
    remove_tree();
}

static uint64_t read_number(const char *path, const char *key)
{
    char line[256];
    unsigned long long number = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (number == 0 && fgets(line, sizeof line, file)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            number = strtoull(line + strlen(key), NULL, 10);
        }
    }
    fclose(file);
    return number;
}

/* Other programs allocate and free memory during the test, so the values may differ by a fifth of the total memory. */
TEST(memory_and_time_of_this_machine_agree_with_proc)
{
    gpuhal_device *cpu;
    gpuhal *gpu = open_cpu(&cpu);
    uint64_t total = 0;
    assert_ok(gpuhal_device_u64(cpu, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total));
    const gpuhal_value used = sample(cpu, GPUHAL_VALUE_MEMORY_USED_BYTES),
                       free_now = sample(cpu, GPUHAL_VALUE_MEMORY_FREE_BYTES),
                       own = sample(cpu, GPUHAL_VALUE_MEMORY_PROCESS_BYTES),
                       busy = sample(cpu, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE);
    assert_int_equal(used.missing, 0);
    assert_true(used.u64 + free_now.u64 <= total + total / 5 && used.u64 + free_now.u64 >= total - total / 5);
    assert_true(total <= read_number("/proc/meminfo", "MemTotal:") << 10);
    if (total == read_number("/proc/meminfo", "MemTotal:") << 10) {
        const uint64_t available = read_number("/proc/meminfo", "MemAvailable:") << 10;
        assert_true(free_now.u64 <= available + total / 5);
    }
    const uint64_t resident = read_number("/proc/self/status", "VmRSS:") << 10;
    assert_true(own.u64 <= 2 * resident && own.u64 >= resident / 2);
    assert_int_equal(busy.missing, 0);
    assert_true(busy.u64 <= 1000);
    gpuhal_close(gpu);
}

#include "test_main.h"
