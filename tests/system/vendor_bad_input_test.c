/* Tests a vendor's plugin with its fake: libraries that are missing, unusable, slow or failing, and devices that are
 * lost. Everything else must still work, and an error message must name the failure. cuda_bad_input_own_test.c and
 * rocm_bad_input_own_test.c test what is specific to one vendor. */
#include "vendor.h"

#define LIBRARY_VARIABLE OF("GPUHAL_CUDA_LIBRARY", "GPUHAL_HIP_LIBRARY")

/* ---- the library */

TEST(without_a_library_the_sentence_names_the_path_that_was_tried)
{
    use_machine("devices 1");
    setenv(LIBRARY_VARIABLE, "/nowhere/libvendor.so.1", 1);
    expect_state(GPUHAL_PLUGIN_NO_DRIVER, "/nowhere/libvendor.so.1");
}

TEST(a_library_that_fails_without_words_is_broken_with_its_code)
{
    use_machine("init 999");
    expect_state(GPUHAL_PLUGIN_FAILED, OF("999", "hipErrorUnknown"));
}

TEST(a_library_without_a_function_that_is_needed_is_no_driver_and_the_function_is_named)
{
    use_machine("devices 1");
    setenv(LIBRARY_VARIABLE,
           OF(GPUHAL_FAKE_CUDA_DIRECTORY "/crippled/libcuda.so.1",
              GPUHAL_FAKE_ROCM_DIRECTORY "/crippled/libamdhip64.so.5"),
           1);
    expect_state(GPUHAL_PLUGIN_NO_DRIVER, CALLED(MemAlloc));
}

TEST(a_library_that_hangs_is_given_up_after_the_deadline)
{
    use_machine(OF("hang cuInit 1", "hang hipGetDeviceCount 1; hang hipInit 1"));
    const double begun = seconds_now();
    gpuhal *gpu = open_or_fail(&(gpuhal_config){
        .size = sizeof(gpuhal_config), .backends = BACKEND, .helper_deadline_ns = UINT64_C(1000000000)});
    assert_true(seconds_now() - begun < 10);
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_TIMED_OUT);
    gpuhal_close(gpu);
    remove_reports();
}

/* ---- devices that are lost */

TEST(a_device_whose_work_fails_is_lost_and_the_other_one_goes_on)
{
    expect_lost_device("devices 2; lose 0 " CALLED(MemsetD8Async) " 1 719", FAKE_ERROR_LAUNCH_FAILED);
}

TEST(a_device_with_a_memory_error_is_lost_and_the_other_one_goes_on)
{
    expect_lost_device("devices 2; lose 0 " CALLED(MemsetD8Async) " 1 214", FAKE_ERROR_ECC);
}

TEST(a_device_that_vanishes_after_it_was_listed_cannot_be_opened_and_says_so)
{
    use_machine("devices 2; fail " OF("cuDevicePrimaryCtxRetain", "hipStreamCreateWithPriority") " 1 101");
    gpuhal *gpu = open_backend(0);
    (void)open_refused(gpu, BACKEND ":0");
    assert_int_equal(gpuhal_last_error()->vendor_code, FAKE_ERROR_INVALID_DEVICE);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, BACKEND ":1")));
    close_clean(gpu);
}

TEST(devices_that_vanish_between_listing_and_opening_are_refused_and_the_rest_works)
{
    use_machine("devices 2");
    gpuhal *gpu = open_backend(0);
    setenv(fake_vendor.variable, "devices 1", 1); /* the helper process saw two devices, this process sees one */
    (void)open_refused(gpu, BACKEND ":1");
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, BACKEND ":0")));
    close_clean(gpu);
}

TEST(a_library_that_finds_no_device_any_more_is_refused_and_the_cpu_works)
{
    use_machine("devices 1");
    gpuhal *gpu = open_backend(0);
    setenv(fake_vendor.variable, OF("init 100", "devices 0"), 1);
    (void)open_refused(gpu, BACKEND ":0");
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    (void)gpuhal_device_sample(select_or_fail(gpu, BACKEND ":0"), 0, &value, 1, NULL);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cpu:0")));
    close_clean(gpu);
}

#include "test_main.h"
