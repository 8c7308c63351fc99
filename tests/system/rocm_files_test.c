/* Tests the ROCm plugin with the fake runtime and the kernel files of invented machines: values from sysfs, hwmon and
 * gpu_metrics, in the units of their keys. Most files are those of an MI210, a Navi display card and an MI300X, reduced
 * to the files that the plugin reads. Some tests use the files of a processor with graphics, or damaged files. */
#include "rocm_tree.h"

/* ---- the gpu_metrics table, with the layout of the kernel's kgd_pp_interface.h */

typedef struct table_header {
    uint16_t structure_size;
    uint8_t format_revision, content_revision;
} table_header;

typedef struct table_1_3 {
    table_header header;
    uint16_t temperatures[6], activities[3], average_socket_power;
    uint64_t energy_accumulator, system_clock_counter;
    uint16_t average_clocks[7], current_clocks[7];
    uint32_t throttle_status;
    uint16_t current_fan_speed, pcie_link_width, pcie_link_speed, padding;
    uint32_t gfx_activity_acc, mem_activity_acc;
    uint16_t temperature_hbm[4];
    uint64_t firmware_timestamp;
    uint16_t voltage_soc, voltage_gfx, voltage_mem, padding1;
    uint64_t indep_throttle_status;
} table_1_3;

/* Formats 1.1 and 1.2 are prefixes of this table. */
enum { BYTES_1_1 = 96, BYTES_1_2 = 104 };

typedef struct table_1_4 {
    table_header header;
    uint16_t temperatures[3], curr_socket_power, activities[2], vcn_activity[4];
    uint64_t energy_accumulator, system_clock_counter;
    uint32_t throttle_status, gfxclk_lock_status;
    uint64_t more[40];
} table_1_4;

typedef struct table_1_5 {
    table_header header;
    uint16_t temperatures[3], curr_socket_power, activities[2], vcn_activity[4], jpeg_activity[32];
    uint64_t energy_accumulator, system_clock_counter;
    uint64_t more[40];
} table_1_5;

typedef struct table_1_6 {
    table_header header;
    uint16_t temperatures[3], curr_socket_power, activities[2];
    uint64_t energy_accumulator, system_clock_counter;
    uint64_t more[60];
} table_1_6;

typedef struct table_1_7 {
    table_header header;
    uint16_t temperatures[3], curr_socket_power, activities[2];
    uint64_t mem_max_bandwidth, energy_accumulator, system_clock_counter;
    uint64_t more[60];
} table_1_7;

typedef struct table_2_2 {
    table_header header;
    uint16_t temperature_gfx, temperature_soc, temperature_core[8], temperature_l3[2], activities[2];
    uint64_t system_clock_counter;
    uint16_t powers[4], average_core_power[8], average_clocks[6], current_clocks[6], current_coreclk[8],
        current_l3clk[2];
    uint32_t throttle_status;
    uint16_t fan_pwm, padding[3];
    uint64_t indep_throttle_status;
} table_2_2;

static void put_table(const void *table, size_t size)
{
    put_bytes("sys/bus/pci/devices/0000:11:00.0/gpu_metrics", table, size);
}

#define HEADER(type, format, content)                                                                                  \
    {                                                                                                                  \
        .structure_size = sizeof(type), .format_revision = format, .content_revision = content                         \
    }

/* ---- samples */

static gpuhal_value sample(gpuhal_device *device, gpuhal_key key)
{
    gpuhal_value value = {.key = key};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    return value;
}

typedef struct expected {
    gpuhal_key key;
    uint64_t value;
    gpuhal_missing missing;
    const char *why;
} expected;

static void expect_values(gpuhal_device *device, const expected *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const gpuhal_value value = sample(device, wanted[i].key);
        if (value.missing != wanted[i].missing || (!value.missing && value.u64 != wanted[i].value) ||
            (wanted[i].why && !strstr(value.why, wanted[i].why))) {
            fail_msg("key %u: %llu, %s (%s)", wanted[i].key, (unsigned long long)value.u64,
                     gpuhal_missing_name(value.missing), value.why);
        }
    }
}

#define EXPECT(device, ...)                                                                                            \
    do {                                                                                                               \
        static const expected all[] = {__VA_ARGS__};                                                                   \
        expect_values(device, all, sizeof all / sizeof *all);                                                          \
    } while (0)

/* Opens one device whose values are all from files. */
static gpuhal_device *open_on_files(gpuhal **out_gpu)
{
    use_amd_smi(false);
    use_rocm_smi(false);
    *out_gpu = open_backend(0);
    return select_or_fail(*out_gpu, "rocm:0");
}

static void close_on_files(gpuhal *gpu)
{
    gpuhal_close(gpu);
    remove_tree();
    expect_clean();
}

TEST(the_files_of_an_accelerator_with_passive_cooling_give_its_values_and_its_place)
{
    use_machine("devices 1; memory 0 64G");
    make_tree();
    put_of_device("power/runtime_status", "active\n");
    put_of_device("mem_info_vram_total", "68702699520\n");
    put_of_device("mem_info_vram_used", "10989568\n");
    put_of_device("gpu_busy_percent", "37\n");
    put_of_device("mem_busy_percent", "4\n");
    put_of_device("pcie_bw", "1000 2000 256\n");
    put_of_device("ras/umc_err_count", "ue: 2\nce: 31\n");
    put_of_device("hwmon/hwmon7/name", "amdgpu\n");
    put_of_device("hwmon/hwmon7/temp1_input", "41000\n");
    put_of_device("hwmon/hwmon7/temp2_input", "52000\n");
    put_of_device("hwmon/hwmon7/temp3_input", "55000\n");
    put_of_device("hwmon/hwmon7/power1_average", "42000000\n");
    put_of_device("hwmon/hwmon7/power1_cap", "300000000\n");
    put_of_device("hwmon/hwmon7/freq1_input", "1700000000\n");
    put_of_device("hwmon/hwmon7/freq2_input", "1600000000\n");
    put_of_device("numa_node", "3\n");
    put_of_device("drm/renderD129/dev", "226:129\n");
    put("sys/module/amdgpu/version", "6.8.5\n");
    table_1_3 table = {.header = HEADER(table_1_3, 1, 3), .energy_accumulator = 1024 * 7 + 512};
    table.indep_throttle_status = UINT64_C(1) << 6 | UINT64_C(1) << 36; /* SPPT, and the hottest temperature */
    put_table(&table, sizeof table);
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    const char *text = NULL;
    uint64_t node = 0;
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_DRM_RENDER_NODE, &text));
    assert_string_equal(text, "226:129");
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_DRIVER_VERSION, &text));
    assert_string_equal(text, "6.8.5");
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_NUMA_NODE, &node));
    assert_int_equal(node, 3);
    EXPECT(
        device, {GPUHAL_VALUE_MEMORY_USED_BYTES, 10989568, 0, NULL},
        {GPUHAL_VALUE_MEMORY_FREE_BYTES, UINT64_C(68691709952), 0, NULL},
        {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 41000, 0, NULL},
        {GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, 55000, 0, NULL},
        {GPUHAL_VALUE_POWER_MICROWATTS, 42000000, 0, NULL}, {GPUHAL_VALUE_POWER_LIMIT_MICROWATTS, 300000000, 0, NULL},
        {GPUHAL_VALUE_ENERGY_MICROJOULES, 7 * 15625 + 7812, 0, NULL},
        {GPUHAL_VALUE_CLOCK_CORE_HERTZ, 1700000000, 0, NULL}, {GPUHAL_VALUE_CLOCK_MEMORY_HERTZ, 1600000000, 0, NULL},
        {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 370, 0, NULL}, {GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, 40, 0, NULL},
        {GPUHAL_VALUE_FAN_PERMILLE, 0, GPUHAL_MISSING_NOT_SUPPORTED, "no file pwm1 "},
        {GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND, 256000, 0, NULL},
        {GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, 512000, 0, NULL},
        {GPUHAL_VALUE_THROTTLE_REASONS, GPUHAL_THROTTLE_POWER_CAP | GPUHAL_THROTTLE_THERMAL, 0, NULL},
        {GPUHAL_VALUE_ECC_CORRECTED_TOTAL, 31, 0, NULL}, {GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL, 2, 0, NULL});
    close_on_files(gpu);
}

/* Puts the topology node of the CPU, and that of the device that the fake lists first, which has this target. */
static void put_target(const char *version)
{
    char text[160];
    put("sys/class/kfd/kfd/topology/nodes/0/properties",
        "cpu_cores_count 64\ngfx_target_version 0\nlocation_id 0\ndomain 0\n");
    snprintf(text, sizeof text, "simd_count 1216\ngfx_target_version %s\nvendor_id 4098\nlocation_id %d\ndomain 0\n",
             version, 0x11 << 8);
    put("sys/class/kfd/kfd/topology/nodes/1/properties", text);
}

/* Opens a machine with this target in the kernel's files. An engine chooses kernels and memory by the target. */
static gpuhal_device *open_with_target(const char *script, const char *version, gpuhal **out_gpu)
{
    use_machine(script);
    make_tree();
    put_gpus(1);
    put_target(version);
    return open_on_files(out_gpu);
}

TEST(facts_state_the_data_types_group_sizes_and_bandwidth_of_a_device)
{
    gpuhal *gpu;
    gpuhal_device *device = open_with_target("devices 1", "90402", &gpu);
    const uint32_t all = GPUHAL_DATA_FP16 | GPUHAL_DATA_BF16 | GPUHAL_DATA_FP64 | GPUHAL_DATA_FP8 | GPUHAL_DATA_INT8 |
                         GPUHAL_DATA_INT16 | GPUHAL_DATA_INT64 | GPUHAL_DATA_INT8_DOT | GPUHAL_DATA_INT4;
    const uint64_t hosts =
        1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK | 1u << GPUHAL_MEMORY_MIGRATING;
    const struct {
        gpuhal_key key;
        uint64_t value;
    } wanted[] = {
        {GPUHAL_FACT_DATA_TYPES, all},
        {GPUHAL_FACT_SUBGROUP_SIZE_MIN, 64},
        {GPUHAL_FACT_SUBGROUP_SIZE_MAX, 64},
        {GPUHAL_FACT_GROUP_SIZE_MAX, 1024},
        {GPUHAL_FACT_GROUP_SIZE_MAX_X, 1024},
        {GPUHAL_FACT_GROUP_SIZE_MAX_Y, 1024},
        {GPUHAL_FACT_GROUP_SIZE_MAX_Z, 1024},
        {GPUHAL_FACT_GROUP_MEMORY_BYTES, 64 << 10},
        {GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, UINT64_C(5324800000000)}, /* an MI300X */
        {GPUHAL_FACT_HOST_VISIBLE_KINDS, hosts},
        {GPUHAL_FACT_HOST_COHERENT_KINDS, hosts},
    };
    const char *text = NULL;
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_TARGET_ARCHITECTURE, &text));
    assert_string_equal(text, "gfx942");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t value = 0;
        assert_ok(gpuhal_device_u64(device, wanted[i].key, &value));
        assert_int_equal(value, wanted[i].value);
    }
    close_on_files(gpu);
}

/* Attributes 23 and 61 are the compute capability. For the MI210 the stepping is a hexadecimal digit in the name.
 * The Navi 21 has GDDR6. */
TEST(targets_are_named_as_compilers_name_them_and_types_of_data_and_bandwidth_follow_from_them)
{
    static const struct {
        const char *script, *version, *name;
        uint32_t types; /* in addition to the common types */
        uint64_t bandwidth;
    } wanted[] = {
        {"devices 1; attribute 0 23 9; attribute 0 61 0; attribute 0 59 4096; attribute 0 60 1600000", "90010",
         "gfx90a", GPUHAL_DATA_BF16 | GPUHAL_DATA_INT8_DOT | GPUHAL_DATA_INT4, UINT64_C(1638400000000)},
        {"devices 1; attribute 0 23 10; attribute 0 61 3; attribute 0 59 256; attribute 0 60 1000000", "100300",
         "gfx1030", GPUHAL_DATA_INT8_DOT | GPUHAL_DATA_INT4, UINT64_C(512000000000)},
        {"devices 1; attribute 0 23 9; attribute 0 61 0", "90012", "gfx90c", 0, 0},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        gpuhal *gpu;
        gpuhal_device *device = open_with_target(wanted[i].script, wanted[i].version, &gpu);
        const uint32_t always =
            GPUHAL_DATA_FP16 | GPUHAL_DATA_FP64 | GPUHAL_DATA_INT8 | GPUHAL_DATA_INT16 | GPUHAL_DATA_INT64;
        const char *text = NULL;
        uint64_t types = 0, bandwidth = 0;
        assert_ok(gpuhal_device_text(device, GPUHAL_FACT_TARGET_ARCHITECTURE, &text));
        assert_string_equal(text, wanted[i].name);
        assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_DATA_TYPES, &types));
        assert_int_equal(types, always | wanted[i].types);
        const gpuhal_status status =
            gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, &bandwidth);
        assert_int_equal(status == GPUHAL_OK, wanted[i].bandwidth > 0);
        assert_int_equal(bandwidth, wanted[i].bandwidth);
        close_on_files(gpu);
    }
}

/* The cases are HSA_OVERRIDE_GFX_VERSION, a kernel before 5.14 (its properties have no target), and a file with invalid
 * contents. */
TEST(a_target_that_is_not_certain_is_missing_with_its_reason)
{
    static const char *const versions[] = {"100301", "0", "rubbish"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        gpuhal *gpu;
        gpuhal_device *device = open_with_target("devices 1", versions[i], &gpu);
        const char *why = NULL;
        assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_TARGET_ARCHITECTURE, &why),
                         GPUHAL_MISSING_NOT_SUPPORTED);
        assert_non_null(strstr(why, i == 0 ? "HSA_OVERRIDE_GFX_VERSION" : "lists no target"));
        assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_DATA_TYPES, NULL), GPUHAL_MISSING_NOT_SUPPORTED);
        close_on_files(gpu);
    }
}

/* A Navi card has a fan, but no energy counter and no ECC. Recent kernels report its power under another name. */
TEST(the_files_of_a_display_card_have_its_fan_but_neither_energy_nor_ecc)
{
    use_machine("devices 1");
    make_tree();
    put_of_device("mem_info_vram_total", "17163091968\n");
    put_of_device("mem_info_vram_used", "2147483648\n");
    put_of_device("gpu_busy_percent", "100\n");
    put_of_device("hwmon/hwmon2/temp1_input", "35000\n");
    put_of_device("hwmon/hwmon2/pwm1", "51\n");
    put_of_device("hwmon/hwmon2/power1_input", "9000000\n");
    table_1_3 table = {.header = HEADER(table_1_3, 1, 3)};
    table.indep_throttle_status = UINT64_C(1) << 17 | UINT64_C(1) << 56; /* TDC and PPM */
    put_table(&table, sizeof table);
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    EXPECT(device, {GPUHAL_VALUE_FAN_PERMILLE, 200, 0, NULL}, {GPUHAL_VALUE_POWER_MICROWATTS, 9000000, 0, NULL},
           {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 1000, 0, NULL},
           {GPUHAL_VALUE_THROTTLE_REASONS, GPUHAL_THROTTLE_POWER_CAP | GPUHAL_THROTTLE_OTHER, 0, NULL},
           {GPUHAL_VALUE_ENERGY_MICROJOULES, 0, GPUHAL_MISSING_NOT_SUPPORTED, "the GPU does not measure it"},
           {GPUHAL_VALUE_ECC_CORRECTED_TOTAL, 0, GPUHAL_MISSING_NOT_SUPPORTED, "has no file ras/umc_err_count"});
    close_on_files(gpu);
}

TEST(an_accelerator_without_an_edge_sensor_reports_the_hottest_spot)
{
    use_machine("devices 1");
    make_tree();
    put_of_device("hwmon/hwmon4/temp2_input", "48000\n");
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    EXPECT(device, {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 48000, 0, NULL});
    close_on_files(gpu);
}

TEST(energy_is_found_in_every_table_of_measurements_that_has_it)
{
    use_machine("devices 1");
    make_tree();
    put_of_device("power/runtime_status", "active\n");
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    table_1_3 early = {.header = HEADER(table_1_3, 1, 1), .energy_accumulator = 1024};
    put_table(&early, BYTES_1_1);
    EXPECT(device, {GPUHAL_VALUE_ENERGY_MICROJOULES, 15625, 0, NULL},
           {GPUHAL_VALUE_THROTTLE_REASONS, 0, GPUHAL_MISSING_NOT_SUPPORTED, "format 1.1"});
    early.header.content_revision = 2;
    put_table(&early, BYTES_1_2);
    EXPECT(device, {GPUHAL_VALUE_ENERGY_MICROJOULES, 15625, 0, NULL});
    table_1_4 four = {.header = HEADER(table_1_4, 1, 4), .energy_accumulator = 2048};
    put_table(&four, sizeof four);
    EXPECT(device, {GPUHAL_VALUE_ENERGY_MICROJOULES, 31250, 0, NULL},
           {GPUHAL_VALUE_THROTTLE_REASONS, 0, GPUHAL_MISSING_NOT_SUPPORTED, "format 1.4"});
    table_1_5 five = {.header = HEADER(table_1_5, 1, 5), .energy_accumulator = 3072};
    put_table(&five, sizeof five);
    EXPECT(device, {GPUHAL_VALUE_ENERGY_MICROJOULES, 46875, 0, NULL});
    table_1_6 six = {.header = HEADER(table_1_6, 1, 6), .energy_accumulator = 4096};
    put_table(&six, sizeof six);
    EXPECT(device, {GPUHAL_VALUE_ENERGY_MICROJOULES, 62500, 0, NULL});
    table_1_7 seven = {.header = HEADER(table_1_7, 1, 7), .mem_max_bandwidth = 5300, .energy_accumulator = 5120};
    put_table(&seven, sizeof seven);
    EXPECT(device, {GPUHAL_VALUE_ENERGY_MICROJOULES, 78125, 0, NULL});
    close_on_files(gpu);
}

TEST(tables_of_processors_with_graphics_say_why_they_are_slow_and_no_energy)
{
    use_machine("devices 1");
    make_tree();
    table_2_2 table = {.header = HEADER(table_2_2, 2, 2), .indep_throttle_status = UINT64_C(1) << 32};
    put_table(&table, sizeof table);
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    EXPECT(device, {GPUHAL_VALUE_THROTTLE_REASONS, GPUHAL_THROTTLE_THERMAL, 0, NULL},
           {GPUHAL_VALUE_ENERGY_MICROJOULES, 0, GPUHAL_MISSING_NOT_SUPPORTED, "format 2.2"});
    close_on_files(gpu);
}

TEST(tables_that_are_cut_off_or_of_ones_or_unknown_give_no_value)
{
    use_machine("devices 1");
    make_tree();
    put_of_device("power/runtime_status", "active\n");
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    table_1_3 table = {
        .header = HEADER(table_1_3, 1, 3), .energy_accumulator = UINT64_MAX, .indep_throttle_status = UINT64_MAX};
    put_table(&table, sizeof table);
    EXPECT(device, {GPUHAL_VALUE_ENERGY_MICROJOULES, 0, GPUHAL_MISSING_NOT_SUPPORTED, "the GPU does not measure it"},
           {GPUHAL_VALUE_THROTTLE_REASONS, 0, GPUHAL_MISSING_NOT_SUPPORTED, "the GPU does not measure it"});
    for (size_t length = 0; length < 32; length += 31) {
        put_table(&table, length);
        assert_int_equal(sample(device, GPUHAL_VALUE_ENERGY_MICROJOULES).missing, GPUHAL_MISSING_NOT_SUPPORTED);
        assert_int_equal(sample(device, GPUHAL_VALUE_THROTTLE_REASONS).missing, GPUHAL_MISSING_NOT_SUPPORTED);
    }
    table.header.content_revision = 200;
    put_table(&table, sizeof table);
    EXPECT(device, {GPUHAL_VALUE_ENERGY_MICROJOULES, 0, GPUHAL_MISSING_NOT_SUPPORTED, "format 1.200"});
    close_on_files(gpu);
}

/* An APU with 512 MiB of reserved memory. HIP reports the part of the remaining memory that the kernel allows the GPU
 * to use. */
TEST(the_files_of_the_processors_memory_are_read_if_hip_has_that)
{
    use_machine("devices 1; memory 0 2G");
    make_tree();
    put_of_device("mem_info_vram_total", "536870912\n");
    put_of_device("mem_info_vram_used", "400000000\n");
    put_of_device("mem_info_gtt_total", "2147483648\n");
    put_of_device("mem_info_gtt_used", "147483648\n");
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    EXPECT(device, {GPUHAL_VALUE_MEMORY_USED_BYTES, 147483648, 0, NULL},
           {GPUHAL_VALUE_MEMORY_FREE_BYTES, 2000000000, 0, NULL});
    put_of_device("mem_info_gtt_total", "1073741824\n");
    EXPECT(device, {GPUHAL_VALUE_MEMORY_FREE_BYTES, 0, GPUHAL_MISSING_NOT_SUPPORTED, "report less memory"});
    close_on_files(gpu);
}

/* The only visible partition looks like a whole GPU, but the files report the memory and utilization of all
 * partitions. */
TEST(the_files_of_the_whole_memory_do_not_count_if_hip_has_a_part)
{
    use_machine("devices 1; memory 0 1G");
    make_tree();
    put_of_device("mem_info_vram_total", "8589934592\n");
    put_of_device("mem_info_vram_used", "4294967296\n");
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    EXPECT(device, {GPUHAL_VALUE_MEMORY_USED_BYTES, 0, GPUHAL_MISSING_NOT_SUPPORTED, "report more memory"},
           {GPUHAL_VALUE_MEMORY_FREE_BYTES, 0, GPUHAL_MISSING_NOT_SUPPORTED, "report more memory"});
    close_on_files(gpu);
}

TEST(files_with_rubbish_are_failures_and_not_numbers)
{
    use_machine("devices 1; memory 0 1G");
    make_tree();
    put_of_device("mem_info_vram_total", "1100000000\n");
    put_of_device("mem_info_vram_used", "18446744073709551616\n"); /* exceeds 64 bits by one */
    put_of_device("gpu_busy_percent", "65535\n");
    put_of_device("mem_busy_percent", "a lot\n");
    put_of_device("hwmon/hwmon2/temp1_input", "-5000\n");
    put_of_device("hwmon/hwmon2/power1_average", "\n");
    put_of_device("ras/umc_err_count", "none\n");
    put_of_device("pcie_bw", "1 2\n");
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    EXPECT(device, {GPUHAL_VALUE_MEMORY_USED_BYTES, 0, GPUHAL_MISSING_FAILED, "holds no number"},
           {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 0, GPUHAL_MISSING_FAILED, "more than 100 percent"},
           {GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE, 0, GPUHAL_MISSING_FAILED, "holds no number"},
           {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 0, GPUHAL_MISSING_FAILED, "holds no number"},
           {GPUHAL_VALUE_POWER_MICROWATTS, 0, GPUHAL_MISSING_NOT_SUPPORTED, NULL},
           {GPUHAL_VALUE_ECC_CORRECTED_TOTAL, 0, GPUHAL_MISSING_FAILED, "no usable numbers"},
           {GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND, 0, GPUHAL_MISSING_FAILED, "no usable numbers"});
    close_on_files(gpu);
}

TEST(a_gpu_that_sleeps_is_not_woken_for_a_value)
{
    use_machine("devices 1");
    make_tree();
    put_of_device("power/runtime_status", "suspended\n");
    put_of_device("gpu_busy_percent", "0\n");
    gpuhal *gpu = open_backend(0); /* both libraries exist, and the plugin calls neither */
    gpuhal_device *device = select_or_fail(gpu, "rocm:0");
    EXPECT(
        device,
        {GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE, 0, GPUHAL_MISSING_ASLEEP, "the GPU sleeps, and reading would wake it"},
        {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 0, GPUHAL_MISSING_ASLEEP, NULL});
    assert_int_equal(calls_of("amdsmi_init"), 0);
    close_on_files(gpu);
}

TEST(a_sleeping_gpu_is_woken_only_if_the_caller_allows_it)
{
    use_machine("devices 1");
    make_tree();
    put_of_device("power/runtime_status", "suspended\n");
    put_of_device("gpu_busy_percent", "0\n");
    gpuhal *gpu;
    gpuhal_device *device = open_on_files(&gpu);
    gpuhal_value value = {.key = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    assert_int_equal(value.missing, GPUHAL_MISSING_ASLEEP);
    assert_ok(gpuhal_device_sample(device, GPUHAL_SAMPLE_WAKE, &value, 1, NULL));
    assert_int_equal(value.missing, 0);
    assert_string_equal(value.source, "sysfs");
    close_on_files(gpu);
}

TEST(pci_express_traffic_is_read_only_if_there_is_a_second_for_it)
{
    use_machine("devices 1");
    make_tree();
    put_of_device("pcie_bw", "1000 2000 256\n");
    gpuhal *gpu;
    gpuhal_value value = {.key = GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND};
    gpuhal_sample one = {.size = sizeof one, .device = open_on_files(&gpu), .values = &value, .count = 1};
    assert_ok(gpuhal_sample_all(gpu, &one, 1, 1000000000));
    assert_ok(one.status);
    assert_int_equal(value.missing, GPUHAL_MISSING_NOT_READ);
    assert_ok(gpuhal_sample_all(gpu, &one, 1, 30000000000));
    assert_int_equal(value.u64, 512000);
    close_on_files(gpu);
}

/* ---- the telemetry libraries */

TEST(a_library_that_would_print_is_not_called_without_files_to_read)
{
    use_machine("devices 1");
    make_tree();
    remove_tree();
    assert_int_equal(mkdir(tree_root, 0755), 0);
    gpuhal *gpu = open_backend(0);
    EXPECT(select_or_fail(gpu, "rocm:0"),
           {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 0, GPUHAL_MISSING_NOT_SUPPORTED, NULL});
    assert_int_equal(calls_of("amdsmi_init"), 0);
    close_on_files(gpu);
}

TEST(a_library_that_failed_to_initialise_is_not_asked_a_second_time)
{
    use_machine("devices 1; fail amdsmi_init 1+ 10");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:0");
    for (int i = 0; i < 3; i++) {
        EXPECT(device, {GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 0, GPUHAL_MISSING_NO_PERMISSION, "AMD SMI returned 10"});
    }
    assert_int_equal(calls_of("amdsmi_init"), 1);
    close_clean(gpu);
}

/* A kernel without SCSI has no such directory. AMD SMI then writes to standard error. */
TEST(rocm_smi_is_asked_if_amd_smi_would_write_to_standard_error)
{
    use_machine("devices 1");
    make_tree();
    remove_part("sys/class/scsi_host");
    gpuhal *gpu = open_backend(0);
    EXPECT(select_or_fail(gpu, "rocm:0"), {GPUHAL_VALUE_MEMORY_FREE_BYTES, 256 * MIB, 0, NULL});
    assert_int_equal(calls_of("amdsmi_init"), 0);
    gpuhal_close(gpu);
    remove_tree();
    expect_clean();
}

TEST(without_a_device_neither_library_is_opened)
{
    use_machine("devices 0");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_NO_DEVICE);
    assert_null(dlopen(GPUHAL_FAKE_ROCM_DIRECTORY "/libamd_smi.so", RTLD_NOLOAD | RTLD_LAZY));
    close_clean(gpu);
}

#include "test_main.h"
