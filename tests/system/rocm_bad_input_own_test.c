/* Tests the ROCm plugin with fake runtimes that list no device or are too new, and with hidden devices.
 * vendor_bad_input_test.c contains the tests that also apply to CUDA. */
#include "rocm_fake.h"

TEST(a_runtime_that_lists_no_device_is_no_device_with_its_own_words)
{
    use_machine("devices 0");
    expect_state(GPUHAL_PLUGIN_NO_DEVICE, "hipErrorNoDevice");
}

TEST(a_runtime_of_version_5_that_lists_no_device_is_no_device_too)
{
    use_machine("devices 0");
    use_runtime("", 5);
    expect_state(GPUHAL_PLUGIN_NO_DEVICE, "hipError");
}

TEST(a_kernel_driver_that_is_too_old_is_incompatible)
{
    use_machine("init 35");
    expect_state(GPUHAL_PLUGIN_INCOMPATIBLE, "hipErrorInsufficientDriver");
}

/* ---- visible devices */

TEST(hip_visible_devices_decides_and_the_ordinal_is_the_native_index)
{
    use_machine("devices 4");
    setenv("HIP_VISIBLE_DEVICES", "2,0,9,1", 1);
    gpuhal *gpu = open_backend(0);
    uint64_t ordinal = 0;
    assert_int_equal(report_of_backend(gpu).device_count, 2);
    expect_text(select_or_fail(gpu, "rocm:0"), GPUHAL_FACT_PCI_ADDRESS, "0000:31:00.0");
    expect_text(select_or_fail(gpu, "rocm:1"), GPUHAL_FACT_PCI_ADDRESS, "0000:11:00.0");
    assert_ok(gpuhal_device_u64(select_or_fail(gpu, "rocm:1"), GPUHAL_FACT_NATIVE_INDEX, &ordinal));
    assert_int_equal(ordinal, 1);
    close_clean(gpu);
}

TEST(both_variables_together_leave_the_devices_that_each_lets_through)
{
    use_machine("devices 4");
    setenv("ROCR_VISIBLE_DEVICES", "3,GPU-1011121314151617,0", 1);
    setenv("HIP_VISIBLE_DEVICES", "1", 1);
    gpuhal *gpu = open_backend(0);
    assert_int_equal(report_of_backend(gpu).device_count, 1);
    expect_text(select_or_fail(gpu, "rocm:0"), GPUHAL_FACT_PCI_ADDRESS, "0000:21:00.0");
    close_clean(gpu);
}

TEST(a_list_that_hides_every_device_is_no_device)
{
    use_machine("devices 2");
    setenv("HIP_VISIBLE_DEVICES", "-1", 1);
    expect_state(GPUHAL_PLUGIN_NO_DEVICE, "hipErrorNoDevice");
}

#include "test_main.h"
