/* Tests the CUDA plugin with the fake driver, through the public API: device facts and the cost of reading them.
 * vendor_use_test.c tests what works in the same way with HIP. */
#include "cuda_fake.h"

TEST(devices_are_listed_with_their_identity_and_no_context_is_made)
{
    use_machine("devices 2; memory 1 512M; name 1 Fake B200; pci 0 0000:c1:00.0");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, "cuda:0"), *two = select_or_fail(gpu, "cuda:1");
    expect_text(one, GPUHAL_FACT_NAME, "Fake H100");
    expect_text(two, GPUHAL_FACT_NAME, "Fake B200");
    expect_text(one, GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0");
    expect_text(two, GPUHAL_FACT_UUID, "10111213-1415-1617-1819-1a1b1c1d1e1f");
    expect_text(one, GPUHAL_FACT_DRIVER_VERSION, "580.65.06");
    assert_int_equal(number_of(two, GPUHAL_FACT_NATIVE_INDEX), 1);
    assert_int_equal(number_of(two, GPUHAL_FACT_MEMORY_TOTAL_BYTES), 512 * MIB);
    assert_int_equal(number_of(one, GPUHAL_FACT_TYPE), GPUHAL_DEVICE_GPU);
    assert_int_equal(number_of(one, GPUHAL_FACT_SOFTWARE), 0);
    gpuhal_device *chosen = select_or_fail(gpu, "auto"); /* the device with the most memory */
    assert_string_equal(gpuhal_device_id(chosen), "cuda:1");
    assert_int_equal(contexts_ever(), 0);
    gpuhal_close(gpu);
    remove_reports();
}

/* An engine gets its functions in this way. They come from the library that GPUHAL_CUDA_LIBRARY names here, not from
 * the installed library. */
TEST(functions_of_the_vendor_come_from_the_library_that_the_plugin_works_with)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_vendor_fn *found = NULL;
    void *library = dlopen(getenv("GPUHAL_CUDA_LIBRARY"), RTLD_NOW | RTLD_LOCAL), *wanted = NULL;
    assert_non_null(library);
    assert_ok(gpuhal_device_symbol(device, "cuMemAlloc_v2", &found));
    memcpy(&wanted, &found, sizeof wanted);
    assert_ptr_equal(wanted, dlsym(library, "cuMemAlloc_v2"));
    assert_int_equal(gpuhal_device_symbol(device, "cuMemAlloc_v9", &found), GPUHAL_ERROR_NOT_FOUND);
    assert_null(found);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "libcuda.so.1 has no function cuMemAlloc_v9"));
    assert_int_equal(gpuhal_device_symbol(device, NULL, &found), GPUHAL_ERROR_INVALID_ARGUMENT);
    close_clean(gpu);
}

/* An engine chooses kernels and memory by these facts. The attribute numbers are those of cuda.h; the H100 data
 * sheet states 3.35 TB/s. */
TEST(facts_state_the_data_types_group_sizes_and_bandwidth_of_a_device)
{
    use_machine("devices 2; attribute 1 75 6; attribute 1 76 1; attribute 1 37 0");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, "cuda:0"), *two = select_or_fail(gpu, "cuda:1");
    const uint64_t hosts =
        1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK | 1u << GPUHAL_MEMORY_MIGRATING;
    const uint32_t all = GPUHAL_DATA_FP16 | GPUHAL_DATA_BF16 | GPUHAL_DATA_FP64 | GPUHAL_DATA_FP8 | GPUHAL_DATA_INT8 |
                         GPUHAL_DATA_INT16 | GPUHAL_DATA_INT64 | GPUHAL_DATA_INT8_DOT | GPUHAL_DATA_INT4;
    expect_text(one, GPUHAL_FACT_TARGET_ARCHITECTURE, "sm_90");
    expect_text(two, GPUHAL_FACT_TARGET_ARCHITECTURE, "sm_61");
    assert_int_equal(number_of(one, GPUHAL_FACT_DATA_TYPES), all);
    assert_int_equal(number_of(two, GPUHAL_FACT_DATA_TYPES),
                     all & ~(uint32_t)(GPUHAL_DATA_BF16 | GPUHAL_DATA_FP8 | GPUHAL_DATA_INT4));
    assert_int_equal(number_of(one, GPUHAL_FACT_SUBGROUP_SIZE_MIN), 32);
    assert_int_equal(number_of(one, GPUHAL_FACT_SUBGROUP_SIZE_MAX), 32);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_SIZE_MAX), 1024);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_SIZE_MAX_X), 1024);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_SIZE_MAX_Y), 1024);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_SIZE_MAX_Z), 64);
    assert_int_equal(number_of(one, GPUHAL_FACT_GROUP_MEMORY_BYTES), 48 << 10);
    assert_int_equal(number_of(one, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND), UINT64_C(3352320000000));
    assert_int_equal(gpuhal_device_missing(two, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, NULL),
                     GPUHAL_MISSING_FAILED);
    assert_int_equal(number_of(one, GPUHAL_FACT_HOST_VISIBLE_KINDS), hosts);
    assert_int_equal(number_of(one, GPUHAL_FACT_HOST_COHERENT_KINDS), hosts);
    close_clean(gpu);
}

TEST(free_memory_is_sampled_without_opening_and_without_a_context)
{
    use_machine("devices 2; memory * 1G; used 1 100M");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:1");
    gpuhal_value value = sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_int_equal(value.missing, 0);
    assert_int_equal(value.u64, 924 * MIB);
    assert_int_equal(contexts_ever(), 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 64 * MIB);
    uint64_t before = value.u64;
    value = sample_one(device, GPUHAL_VALUE_MEMORY_FREE_BYTES);
    assert_true(value.u64 <= before - 64 * MIB);
    assert_int_equal(contexts_ever(), 1);
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

TEST(other_values_are_sampled_in_the_units_of_their_names)
{
    use_machine("devices 1; value 0 ecc_uncorrected 2");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    assert_int_equal(sample_one(device, GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS).u64, 41000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_TEMPERATURE_MEMORY_MILLICELSIUS).u64, 55000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_POWER_MICROWATTS).u64, 123456000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_POWER_LIMIT_MICROWATTS).u64, 700000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_CLOCK_CORE_HERTZ).u64, 1755000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_CLOCK_MEMORY_HERTZ).u64, 2619000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE).u64, 370);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_UTILIZATION_MEMORY_PERMILLE).u64, 120);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND).u64, 5000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND).u64, 3000000);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_THROTTLE_REASONS).u64, GPUHAL_THROTTLE_POWER_CAP);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_ECC_CORRECTED_TOTAL).u64, 3);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_ECC_UNCORRECTED_TOTAL).u64, 2);
    assert_int_equal(sample_one(device, GPUHAL_VALUE_FAN_PERMILLE).missing, GPUHAL_MISSING_NOT_SUPPORTED);
    assert_int_equal(contexts_ever(), 0);
    close_clean(gpu);
}

TEST(the_primary_context_is_shared_with_the_program_and_lives_as_long_as_it_wants)
{
    use_machine("devices 1");
    const vendor_api api = load_api();
    CUcontext primary = NULL;
    assert_int_equal(api.cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
    gpuhal *gpu = open_backend(GPUHAL_ISOLATION_NEVER);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_device_native(device, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_CUDA_DEVICE);
    assert_ptr_equal((void *)(uintptr_t)native.values[0], primary);
    gpuhal_close(gpu);
    assert_int_equal(fake_report_get()->contexts_alive, 1);
    assert_int_equal(fake_report_get()->contexts_created, 1);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    expect_clean();
}

#include "test_main.h"
