/* Tests the CUDA plugin with the fake driver if the driver is unusable, devices are hidden, taken by another process or
 * lost, or NVML is missing, slow or failing. Everything else must still work, and an error message must name the
 * failure. vendor_bad_input_test.c has the tests that also apply to HIP. */
#include "support/tree.h"
#include "vendor.h"

#include <pthread.h>

/* ---- the driver */

/* The helper process always finds a file that has the driver's name but is not a library, even if the real driver is
 * installed. */
TEST(without_a_driver_the_name_that_was_tried_stands_in_the_sentence)
{
    char directory[] = "/tmp/gpuhal-names-XXXXXX", file[64];
    use_machine("devices 1");
    assert_non_null(mkdtemp(directory));
    snprintf(file, sizeof file, "%s/libcuda.so.1", directory);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    assert_true(fputs("no library\n", out) >= 0 && fclose(out) == 0);
    unsetenv("GPUHAL_CUDA_LIBRARY");
    setenv("LD_LIBRARY_PATH", directory, 1);
    expect_state(GPUHAL_PLUGIN_NO_DRIVER, "tried libcuda.so.1: ");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(directory), 0);
}

TEST(a_stub_library_is_no_driver)
{
    use_machine("init 34");
    expect_state(GPUHAL_PLUGIN_NO_DRIVER, "stub");
}

TEST(a_driver_that_lists_no_device_is_no_device)
{
    use_machine("init 100");
    expect_state(GPUHAL_PLUGIN_NO_DEVICE, "100");
}

TEST(a_library_that_is_not_of_the_loaded_driver_is_incompatible)
{
    use_machine("init 803; driver 11040");
    expect_state(GPUHAL_PLUGIN_INCOMPATIBLE, "11.4");
}

TEST(a_driver_that_may_not_open_its_devices_is_no_permission)
{
    use_machine("init 304");
    expect_state(GPUHAL_PLUGIN_NO_PERMISSION, "/dev/nvidia");
}

TEST(an_old_driver_without_any_optional_function_moves_bytes_and_offers_less)
{
    use_machine("devices 2; driver 11000; driver_text 450.51.06");
    use_libraries("old/");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:1");
    const char *uuid = NULL;
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_UUID, &uuid));
    assert_string_equal(uuid, "10111213-1415-1617-1819-1a1b1c1d1e1f");
    assert_int_equal(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_VIRTUAL_MEMORY, 0);
    assert_int_equal(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_EXPORT, 0);
    assert_ok(gpuhal_device_verify(device));
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    assert_int_equal(value.missing, 0);
    close_clean(gpu);
}

/* ---- visible devices */

TEST(cuda_visible_devices_decides_and_the_ordinal_is_the_native_index)
{
    use_machine("devices 4");
    setenv("CUDA_VISIBLE_DEVICES", "2,GPU-00010203,9,1", 1);
    gpuhal *gpu = open_backend(0);
    assert_int_equal(report_of_backend(gpu).device_count, 2);
    const char *first = NULL, *second = NULL;
    uint64_t ordinal = 0;
    assert_ok(gpuhal_device_text(select_or_fail(gpu, "cuda:0"), GPUHAL_FACT_UUID, &first));
    assert_ok(gpuhal_device_text(select_or_fail(gpu, "cuda:1"), GPUHAL_FACT_UUID, &second));
    assert_string_equal(first, "20212223-2425-2627-2829-2a2b2c2d2e2f");
    assert_string_equal(second, "00010203-0405-0607-0809-0a0b0c0d0e0f");
    assert_ok(gpuhal_device_u64(select_or_fail(gpu, "cuda:1"), GPUHAL_FACT_NATIVE_INDEX, &ordinal));
    assert_int_equal(ordinal, 1);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(a_list_that_hides_every_device_is_named_as_the_reason)
{
    use_machine("devices 2");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    expect_state(GPUHAL_PLUGIN_NO_DEVICE, "CUDA_VISIBLE_DEVICES");
}

static void keep_hint(void *user, int32_t level, const char *line)
{
    (void)level;
    *(bool *)user = *(bool *)user || strstr(line, "CUDA_VISIBLE_DEVICES");
}

TEST(devices_that_a_list_hides_are_logged)
{
    use_machine("devices 3");
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    bool logged = false;
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                                .backends = "cuda",
                                                .log_level = 3,
                                                .isolation = GPUHAL_ISOLATION_NEVER,
                                                .log = keep_hint,
                                                .log_user = &logged});
    assert_int_equal(report_of_backend(gpu).device_count, 1);
    assert_true(logged);
    close_clean(gpu);
}

TEST(memory_is_that_of_the_right_device_if_cuda_and_nvml_count_differently)
{
    use_machine("devices 2; pci 0 0000:c1:00.0; pci 1 0000:11:00.0; memory 0 1G; memory 1 2G; used 0 24M");
    gpuhal *gpu = open_backend(0);
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    assert_ok(gpuhal_device_sample(select_or_fail(gpu, "cuda:0"), 0, &value, 1, NULL));
    assert_int_equal(value.u64, 1000 * MIB);
    assert_ok(gpuhal_device_sample(select_or_fail(gpu, "cuda:1"), 0, &value, 1, NULL));
    assert_int_equal(value.u64, 2048 * MIB);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(a_mig_device_has_its_own_identity_and_memory_and_works)
{
    use_machine("devices 1; memory 0 1G; mig 0 7 0 1g.10gb 128M; mig 0 8 0 1g.10gb 128M");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    const char *partition = NULL, *uuid = NULL;
    uint64_t total = 0;
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_PARTITION, &partition));
    assert_true(partition[0] != '\0');
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_UUID, &uuid));
    assert_string_equal(uuid, "00010203-0405-0607-0809-0a0b0c0d0ea0");
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total));
    assert_int_equal(total, 128 * MIB);
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES}, {.key = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE}};
    assert_ok(gpuhal_device_sample(device, 0, values, 2, NULL));
    assert_int_equal(values[0].u64, 128 * MIB);
    assert_int_equal(values[1].missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_ok(gpuhal_device_verify(device));
    close_clean(gpu);
}

/* ---- NVML */

static void expect_without_nvml(gpuhal_missing reason)
{
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_value value = {.key = GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    assert_int_equal(value.missing, reason);
    assert_true(value.why[0] != '\0');
    assert_ok(gpuhal_device_verify(device));
    close_clean(gpu);
}

TEST(without_nvml_devices_work_and_values_are_missing)
{
    use_machine("devices 1");
    setenv("GPUHAL_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1", 1);
    expect_without_nvml(GPUHAL_MISSING_NOT_SUPPORTED);
}

TEST(nvml_without_permission_costs_its_values_alone)
{
    use_machine("devices 1; fail nvmlInitWithFlags 1+ 4");
    expect_without_nvml(GPUHAL_MISSING_NO_PERMISSION);
}

TEST(a_device_that_nvml_may_not_open_costs_its_values_alone)
{
    use_machine("devices 1; fail nvmlDeviceGetHandleByUUID 1+ 4; fail nvmlDeviceGetHandleByPciBusId_v2 1+ 4");
    expect_without_nvml(GPUHAL_MISSING_NO_PERMISSION);
}

TEST(nvml_that_hangs_is_given_up_and_the_devices_are_there)
{
    use_machine("devices 1; hang nvmlInitWithFlags 1");
    begin_tree(); /* the kernel reports the version because NVML does not */
    put("sys/module/nvidia/version", "570.12.34\n");
    const double begun = seconds_now();
    expect_without_nvml(GPUHAL_MISSING_TIMED_OUT);
    assert_true(seconds_now() - begun < 20);
    remove_tree();
}

/* As under WSL: no kernel file contains the driver's version. */
TEST(nvml_that_hangs_while_devices_are_listed_is_given_up_and_they_are_there)
{
    use_machine("devices 1; hang nvmlInitWithFlags 1");
    begin_tree();
    const double begun = seconds_now();
    expect_without_nvml(GPUHAL_MISSING_TIMED_OUT);
    assert_true(seconds_now() - begun < 20);
    remove_tree();
}

/* The program calls nvmlShutdown() more often than nvmlInit(). This also ends the library's NVML session. */
TEST(values_come_back_after_the_program_has_shut_nvml_down_once_too_often)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    void *library = dlopen(getenv("GPUHAL_NVML_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    unsigned (*shut_down)(void);
    *(void **)(void *)&shut_down = dlsym(library, "nvmlShutdown");
    for (int i = 0; i < 3; i++) {
        gpuhal_value value = {.key = GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS};
        assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
        assert_int_equal(value.missing, 0);
        assert_int_equal(shut_down(), 0);
        assert_int_equal(shut_down(), 1); /* NVML_ERROR_UNINITIALIZED */
    }
    dlclose(library);
    close_clean(gpu);
}

/* Only the first sample waits for the call that hangs. While it hangs, later samples do not call NVML. */
TEST(nvml_that_hangs_costs_the_first_sample_its_time_and_later_ones_nothing)
{
    use_machine("devices 2; hang nvmlDeviceGetPowerUsage 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, "cuda:0"), *other = select_or_fail(gpu, "cuda:1");
    gpuhal_value values[] = {{.key = GPUHAL_VALUE_MEMORY_FREE_BYTES},
                             {.key = GPUHAL_VALUE_POWER_MICROWATTS},
                             {.key = GPUHAL_VALUE_FAN_PERMILLE}};
    assert_ok(gpuhal_device_sample(one, 0, values, 3, NULL));
    assert_int_equal(values[0].missing, 0);
    assert_int_equal(values[1].missing, GPUHAL_MISSING_TIMED_OUT);
    assert_int_equal(values[2].missing, GPUHAL_MISSING_TIMED_OUT);
    const double begun = seconds_now();
    for (int i = 0; i < 10; i++) {
        assert_ok(gpuhal_device_sample(other, 0, values, 3, NULL));
        assert_int_equal(values[0].missing, GPUHAL_MISSING_TIMED_OUT);
        expect_word(values[0].why, "an earlier call of NVML hangs");
    }
    assert_true(seconds_now() - begun < 4);
    assert_ok(gpuhal_device_verify(one));
    close_clean(gpu);
}

TEST(nvml_that_hangs_once_it_is_asked_for_values_is_given_up)
{
    use_machine("devices 1; hang nvmlDeviceGetTemperature 1; hang nvmlDeviceGetTemperatureV 1");
    expect_without_nvml(GPUHAL_MISSING_TIMED_OUT);
}

/* ---- devices that are taken or lost */

TEST(a_device_that_another_process_has_exclusively_is_busy_and_the_other_one_works)
{
    use_machine("devices 2; mode 0 exclusive taken");
    gpuhal *gpu = open_backend(0);
    assert_int_equal(open_refused(gpu, "cuda:0"), GPUHAL_ERROR_BUSY);
    expect_word(gpuhal_last_error()->sentence, "exclusive");
    assert_int_equal(gpuhal_last_error()->vendor_code, CUDA_ERROR_DEVICE_UNAVAILABLE);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cuda:1")));
    close_clean(gpu);
}

TEST(an_unused_device_in_exclusive_mode_works)
{
    use_machine("devices 1; mode 0 exclusive");
    gpuhal *gpu = open_backend(0);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cuda:0")));
    close_clean(gpu);
}

TEST(a_device_in_prohibited_mode_is_no_permission)
{
    use_machine("devices 1; mode 0 prohibited");
    gpuhal *gpu = open_backend(0);
    assert_int_equal(open_refused(gpu, "cuda:0"), GPUHAL_ERROR_NO_PERMISSION);
    expect_word(gpuhal_last_error()->sentence, "prohibited");
    close_clean(gpu);
}

TEST(prohibited_mode_is_no_permission_with_the_code_of_the_documentation_too)
{
    use_machine("devices 1; mode 0 prohibited; fail cuDevicePrimaryCtxRetain 1+ 999");
    gpuhal *gpu = open_backend(0);
    assert_int_equal(open_refused(gpu, "cuda:0"), GPUHAL_ERROR_NO_PERMISSION);
    expect_word(gpuhal_last_error()->sentence, "prohibited");
    close_clean(gpu);
}

TEST(a_gpu_that_is_not_on_pci_has_no_address)
{
    use_machine("devices 1; pci 0 0000:00:00.0; attribute 0 18 1");
    gpuhal *gpu = open_backend(0);
    uint64_t type = 0;
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type));
    assert_int_equal(type, GPUHAL_DEVICE_INTEGRATED_GPU);
    assert_int_equal(gpuhal_device_missing(device, GPUHAL_FACT_PCI_ADDRESS, NULL), GPUHAL_MISSING_FAILED);
    assert_ok(gpuhal_device_verify(device));
    close_clean(gpu);
}

/* Attribute 88 without attribute 100 means that pages migrate when they are accessed. The plugin must not use this
 * migration for copies. Attribute 100 means a coherent link such as Grace's. */
TEST(ordinary_memory_is_staged_unless_the_device_reads_through_the_hosts_page_tables)
{
    use_machine("devices 2; attribute 0 88 1; attribute 1 88 1; attribute 1 100 1");
    gpuhal *gpu = open_backend(0);
    uint64_t staged = 0, direct = 0;
    assert_ok(gpuhal_device_u64(select_or_fail(gpu, "cuda:0"), GPUHAL_FACT_PAGEABLE_ACCESS, &staged));
    assert_ok(gpuhal_device_u64(select_or_fail(gpu, "cuda:1"), GPUHAL_FACT_PAGEABLE_ACCESS, &direct));
    assert_int_equal(staged, 1);
    assert_int_equal(direct, 2);
    gpuhal_close(gpu);
    remove_reports();
}

/* The calls of each sample may take up to 5 s. The calls of both samples together take longer. */
static void *sample_slowly(void *device)
{
    gpuhal_value value = {.key = GPUHAL_VALUE_POWER_MICROWATTS};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    assert_int_equal(value.missing, 0);
    return NULL;
}

TEST(waiting_for_another_ones_slow_question_to_nvml_takes_nothing_from_ones_own_time)
{
    use_machine("devices 1; smi_sleep_ms 900");
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, sample_slowly, device), 0);
    (void)sample_slowly(device);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close_clean(gpu);
}

TEST(a_device_that_has_fallen_off_the_bus_is_lost_and_the_other_one_goes_on)
{
    expect_lost_device("devices 2; lose 0 " CALLED(MemsetD8Async) " 1 999", FAKE_ERROR_UNKNOWN);
}

/* The first error has the previous test's code, but affects only one call. The second code means that a
 * kernel does not suit the driver's texturing mode. Neither loses the device. */
TEST(a_device_goes_on_after_failures_that_concern_one_call)
{
    use_machine("devices 1; fail cuMemsetD8Async 1 999; fail cuMemsetD8Async 2 703");
    gpuhal *gpu = open_backend(0);
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "cuda:0"), GPUHAL_MEMORY_DEVICE, 4096);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 4096, 1, 1), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 4096, 1, 1), GPUHAL_ERROR_DRIVER);
    assert_ok(gpuhal_fill(NULL, buffer, 0, 4096, 1, 1));
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

#include "test_main.h"
