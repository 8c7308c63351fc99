/* Tests the ROCm plugin's telemetry with the fake of AMD SMI or of ROCm SMI: units, identification of devices, and
 * missing values. The kernel's files do not exist; rocm_files_test.c tests values from these files. */
#include "rocm_fake.h"
#include "rocm_tree.h"

#include <gpuhal/direct.h>

static void expect_sample(gpuhal_device *device, gpuhal_key key, uint64_t wanted)
{
    const gpuhal_value value = sample_one(device, key);
    if (value.missing || value.u64 != wanted) {
        fail_msg("key %u: %llu, missing for reason %d (%s); wanted %llu", key, (unsigned long long)value.u64,
                 (int)value.missing, value.why, (unsigned long long)wanted);
    }
}

/* HIP and the two libraries list the devices in different orders. */
static const char machine[] = "devices 2; pci 0 0000:c1:00.0; pci 1 0000:11:00.0; memory 0 1G; memory 1 2G; used 0 24M";

static void expect_values(gpuhal *gpu)
{
    gpuhal_device *one = select_or_fail(gpu, "rocm:0"), *two = select_or_fail(gpu, "rocm:1");
    expect_sample(one, GPUHAL_VALUE_MEMORY_FREE_BYTES, 1000 * MIB);
    expect_sample(one, GPUHAL_VALUE_MEMORY_USED_BYTES, 24 * MIB);
    expect_sample(two, GPUHAL_VALUE_MEMORY_FREE_BYTES, 2048 * MIB);
    assert_int_equal(sample_one(one, GPUHAL_VALUE_FAN_PERMILLE).missing != 0, 1);
}

TEST(rocm_smi_alone_gives_memory_and_no_value_that_it_reads_in_the_systems_files)
{
    use_machine(machine);
    use_amd_smi(false);
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, "rocm:0");
    expect_values(gpu);
    assert_int_equal(sample_one(one, GPUHAL_VALUE_POWER_MICROWATTS).missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(sample_one(one, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS).missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(contexts_ever(), 0);
    close_clean(gpu);
}

TEST(amd_smi_alone_gives_its_values_in_the_units_of_their_names)
{
    use_machine(machine);
    use_rocm_smi(false);
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, "rocm:0");
    expect_values(gpu);
    expect_sample(one, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS, 52000);
    expect_sample(one, GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS, 55000);
    assert_int_equal(contexts_ever(), 0);
    close_clean(gpu);
}

/* Each shutdown ends the plugin's session: with ROCm SMI because it is one shutdown too many, with AMD SMI because the
 * first shutdown ends the session. */
static void expect_values_after_shutdown(const char *variable, const char *function)
{
    gpuhal *gpu = open_backend(0);
    void *library = dlopen(getenv(variable), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    uint32_t (*shut_down)(void);
    *(void **)(void *)&shut_down = dlsym(library, function);
    for (int i = 0; i < 3; i++) {
        expect_values(gpu);
        assert_int_equal(shut_down(), 0);
    }
    dlclose(library);
    close_clean(gpu);
}

TEST(values_come_back_after_the_program_has_shut_rocm_smi_down_once_too_often)
{
    use_machine(machine);
    use_amd_smi(false);
    expect_values_after_shutdown("GPUHAL_ROCM_SMI_LIBRARY", "rsmi_shut_down");
}

TEST(values_come_back_after_the_program_has_shut_amd_smi_down)
{
    use_machine(machine);
    use_rocm_smi(false);
    expect_values_after_shutdown("GPUHAL_AMD_SMI_LIBRARY", "amdsmi_shut_down");
}

TEST(energy_is_in_microjoules_and_grows_as_its_counter_does)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:0");
    const gpuhal_value first = sample_one(device, GPUHAL_VALUE_ENERGY_MICROJOULES);
    usleep(200000);
    const gpuhal_value second = sample_one(device, GPUHAL_VALUE_ENERGY_MICROJOULES);
    assert_int_equal(first.missing, 0);
    const double grown = (double)(second.u64 - first.u64); /* 10 000 counts of 15.3 microjoules per second */
    assert_true(grown > 0.19 * 153000 && grown < 5 * 153000);
    close_clean(gpu);
}

TEST(memory_of_this_process_is_seen_without_opening_the_device_twice)
{
    use_machine("devices 2; memory * 1G");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:1");
    const uint64_t before = sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES).u64;
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 64 * MIB);
    assert_true(sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES).u64 <= before - 64 * MIB);
    assert_int_equal(contexts_ever(), 1);
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

TEST(parts_of_a_divided_gpu_are_found_by_their_number)
{
    use_machine("devices 1; memory 0 384M; partitions 0 3; used 0 1M");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:2");
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "rocm:0"), GPUHAL_MEMORY_DEVICE, 64 * MIB);
    const gpuhal_value value = sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_true(value.missing || value.u64 == 127 * MIB); /* not the memory of the partition that contains the buffer */
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

static void expect_no_memory_of_part_0(void)
{
    gpuhal *gpu = open_backend(0);
    const gpuhal_value value = sample_one(select_or_fail(gpu, "rocm:0"), GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_int_equal(value.missing, GPUHAL_MISSING_NOT_SUPPORTED);
    expect_sample(select_or_fail(gpu, "rocm:1"), GPUHAL_VALUE_MEMORY_FREE_BYTES, 128 * MIB);
    close_clean(gpu);
}

TEST(memory_of_the_whole_gpu_in_amd_smi_is_not_taken_for_its_first_part)
{
    use_machine("devices 1; memory 0 384M; partitions 0 3");
    use_rocm_smi(false);
    expect_no_memory_of_part_0();
}

TEST(memory_of_the_whole_gpu_in_rocm_smi_is_not_taken_for_its_first_part)
{
    use_machine("devices 1; memory 0 384M; partitions 0 3");
    use_amd_smi(false);
    expect_no_memory_of_part_0();
}

/* HIP does not number the partitions, so the plugin numbers them in HIP's order. The library may list other partitions,
 * or list them in another order. */
TEST(parts_that_we_have_numbered_are_not_looked_for_under_these_numbers)
{
    use_machine("devices 2; memory * 1G; pci 0 0000:c1:00.0; pci 1 0000:c1:00.0; used 0 1M");
    setenv("HIP_VISIBLE_DEVICES", "1,0", 1);
    gpuhal *gpu = open_backend(0);
    const gpuhal_value value = sample_one(select_or_fail(gpu, "rocm:0"), GPUHAL_VALUE_MEMORY_USED_BYTES);
    assert_int_equal(value.missing, GPUHAL_MISSING_NOT_SUPPORTED);
    close_clean(gpu);
}

/* ---- libraries that fail or hang */

static void expect_without(gpuhal_missing reason)
{
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:0");
    const gpuhal_value value = sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_int_equal(value.missing, reason);
    assert_true(value.why[0] != '\0');
    assert_ok(gpuhal_device_verify(device));
    close_clean(gpu);
}

TEST(without_either_library_devices_work_and_values_are_missing)
{
    use_machine("devices 1");
    use_amd_smi(false);
    use_rocm_smi(false);
    expect_without(GPUHAL_MISSING_NOT_SUPPORTED);
}

TEST(rocm_smi_without_permission_costs_its_values_alone)
{
    use_machine("devices 1; fail rsmi_init 1+ 4");
    use_amd_smi(false);
    expect_without(GPUHAL_MISSING_NO_PERMISSION);
}

TEST(amd_smi_without_permission_costs_its_values_alone)
{
    use_machine("devices 1; fail amdsmi_init 1+ 10");
    use_rocm_smi(false);
    expect_without(GPUHAL_MISSING_NO_PERMISSION);
}

TEST(a_value_that_is_refused_is_missing_and_the_others_are_there)
{
    use_machine("devices 1; memory 0 64M; fail amdsmi_get_temp_metric 1+ 10");
    use_rocm_smi(false);
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:0");
    assert_int_equal(sample_one(device, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS).missing, GPUHAL_MISSING_NO_PERMISSION);
    expect_sample(device, GPUHAL_VALUE_MEMORY_FREE_BYTES, 64 * MIB);
    close_clean(gpu);
}

TEST(rocm_smi_that_hangs_is_given_up_and_the_devices_are_there)
{
    use_machine("devices 1; hang rsmi_init 1");
    use_amd_smi(false);
    const double begun = seconds_now();
    expect_without(GPUHAL_MISSING_TIMED_OUT);
    assert_true(seconds_now() - begun < 20);
}

TEST(amd_smi_that_hangs_is_given_up_and_the_devices_are_there)
{
    use_machine("devices 1; hang amdsmi_init 1");
    use_rocm_smi(false);
    const double begun = seconds_now();
    expect_without(GPUHAL_MISSING_TIMED_OUT);
    assert_true(seconds_now() - begun < 20);
}

TEST(a_library_that_hangs_once_it_is_asked_for_values_is_given_up)
{
    use_machine("devices 1; hang rsmi_dev_memory_total_get 1; hang amdsmi_get_gpu_memory_total 1");
    expect_without(GPUHAL_MISSING_TIMED_OUT);
}

/* ---- processes that the amdkfd driver lists */

static gpuhal_plugin_process found[4];
static uint32_t found_count;

static void hear_process(void *user, const gpuhal_plugin_process *process)
{
    assert_string_equal(user, "sysfs");
    assert_true(found_count < 4);
    found[found_count++] = *process;
}

static void hear_source(void *user, const char *name)
{
    snprintf(user, 16, "%s", name);
}

TEST(processes_that_compute_have_the_memory_that_the_kernel_counts)
{
    use_machine("devices 1");
    make_tree();
    put("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "4001\n");
    put("sys/class/kfd/kfd/topology/nodes/1/properties",
        "simd_count 304\ngfx_target_version 90402\nlocation_id 4352\ndomain 0\n");
    put("sys/class/kfd/kfd/proc/41/vram_4001", "1048576\n");
    put("sys/class/kfd/kfd/proc/42/vram_4002", "1048576\n"); /* on another GPU */
    put("sys/class/kfd/kfd/proc/43/vram_4001", "-1\n");
    put("proc/41/comm", "worker\n");
    const gpuhal_plugin *plugin = NULL;
    gpuhal_plugin_instance *instance = NULL;
    char source[16] = "";
    const gpuhal_direct_listener listener = {.user = source, .source = hear_source, .process = hear_process};
    assert_ok(gpuhal_direct_load(GPUHAL_ROCM_PLUGIN, &plugin, NULL));
    assert_ok(plugin->start(gpuhal_direct_host(), &instance));
    assert_ok(gpuhal_direct_enumerate(plugin, instance, &(const gpuhal_direct_listener){0}));
    assert_ok(gpuhal_direct_processes(plugin, instance, 0, 0, &listener));
    assert_int_equal(found_count, 2);
    const gpuhal_plugin_process *known = &found[found[0].pid == 41 ? 0 : 1], *other = &found[known == found ? 1 : 0];
    assert_int_equal(known->memory_bytes, MIB);
    assert_int_equal(known->flags, GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_MEMORY_KNOWN);
    assert_int_equal(other->pid, 43);
    assert_int_equal(other->flags, GPUHAL_PROCESS_COMPUTE | GPUHAL_PROCESS_FOREIGN_NAMESPACE);
    remove_tree();
    remove_reports();
}

#include "test_main.h"
