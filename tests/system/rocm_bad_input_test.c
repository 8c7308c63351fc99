/* The ROCm plugin over the fake runtime: runtimes that are missing, wrong, slow or broken, and devices that are hidden or lost.
 * What is left is still there, and a sentence says what is not. */
#include "rocm_fake.h"

/* The plugin ends in this state, with a sentence in which the words stand; the CPU is there all the same. */
static void expect_state(gpuhal_plugin_state state, const char *const *words)
{
    gpuhal *gpu = open_rocm(0);
    const gpuhal_plugin_report report = report_of_plugin(gpu, "rocm");
    if (report.state != state) {
        fail_msg("state %s: %s", gpuhal_plugin_state_name(report.state), report.reason);
    }
    for (; *words; words++) {
        expect_word(report.reason, *words);
    }
    assert_int_equal(gpuhal_device_count(gpu), 1);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cpu:0")));
    gpuhal_close(gpu);
    remove_reports();
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- the runtime */

TEST(without_a_runtime_the_sentence_says_what_was_tried)
{
    use_machine("devices 1");
    setenv("GPUHAL_HIP_LIBRARY", "/nowhere/libamdhip64.so.6", 1);
    expect_state(GPUHAL_PLUGIN_NO_DRIVER, WORDS("/nowhere/libamdhip64.so.6"));
}

TEST(a_runtime_that_lists_no_device_is_no_device_with_its_own_words)
{
    use_machine("devices 0");
    expect_state(GPUHAL_PLUGIN_NO_DEVICE, WORDS("hipErrorNoDevice"));
}

TEST(a_runtime_of_version_5_that_lists_no_device_is_no_device_too)
{
    use_machine("devices 0");
    use_runtime("", 5);
    expect_state(GPUHAL_PLUGIN_NO_DEVICE, WORDS("hipError"));
}

TEST(a_kernel_driver_that_is_too_old_is_incompatible)
{
    use_machine("init 35");
    expect_state(GPUHAL_PLUGIN_INCOMPATIBLE, WORDS("hipErrorInsufficientDriver"));
}

TEST(a_runtime_that_fails_without_words_is_broken_with_its_code)
{
    use_machine("init 999");
    expect_state(GPUHAL_PLUGIN_FAILED, WORDS("hipErrorUnknown"));
}

TEST(a_runtime_without_a_function_that_is_needed_is_no_driver_and_the_function_is_named)
{
    use_machine("devices 1");
    use_runtime("crippled/", 5);
    expect_state(GPUHAL_PLUGIN_NO_DRIVER, WORDS("hipMalloc"));
}

TEST(a_runtime_that_hangs_is_given_up_after_the_deadline)
{
    use_machine("hang hipGetDeviceCount 1; hang hipInit 1");
    const double begun = seconds_now();
    gpuhal *gpu = open_or_fail(
        &(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "rocm", .helper_deadline_ns = UINT64_C(1000000000)});
    assert_true(seconds_now() - begun < 10);
    assert_int_equal(report_of_plugin(gpu, "rocm").state, GPUHAL_PLUGIN_TIMED_OUT);
    gpuhal_close(gpu);
    remove_reports();
}

/* ---- what is visible */

static void expect_pci(gpuhal *gpu, const char *id, const char *wanted)
{
    const char *address = NULL;
    assert_ok(gpuhal_device_text(select_or_fail(gpu, id), GPUHAL_FACT_PCI_ADDRESS, &address));
    assert_string_equal(address, wanted);
}

TEST(hip_visible_devices_decides_and_the_ordinal_is_the_native_index)
{
    use_machine("devices 4");
    setenv("HIP_VISIBLE_DEVICES", "2,0,9,1", 1);
    gpuhal *gpu = open_rocm(0);
    uint64_t ordinal = 0;
    assert_int_equal(report_of_plugin(gpu, "rocm").device_count, 2);
    expect_pci(gpu, "rocm:0", "0000:31:00.0");
    expect_pci(gpu, "rocm:1", "0000:11:00.0");
    assert_ok(gpuhal_device_u64(select_or_fail(gpu, "rocm:1"), GPUHAL_FACT_NATIVE_INDEX, &ordinal));
    assert_int_equal(ordinal, 1);
    gpuhal_close(gpu);
    expect_clean();
}

TEST(both_variables_together_leave_what_both_let_through)
{
    use_machine("devices 4");
    setenv("ROCR_VISIBLE_DEVICES", "3,GPU-1011121314151617,0", 1);
    setenv("HIP_VISIBLE_DEVICES", "1", 1);
    gpuhal *gpu = open_rocm(0);
    assert_int_equal(report_of_plugin(gpu, "rocm").device_count, 1);
    expect_pci(gpu, "rocm:0", "0000:21:00.0");
    gpuhal_close(gpu);
    expect_clean();
}

TEST(a_list_that_hides_every_device_is_no_device)
{
    use_machine("devices 2");
    setenv("HIP_VISIBLE_DEVICES", "-1", 1);
    expect_state(GPUHAL_PLUGIN_NO_DEVICE, WORDS("hipErrorNoDevice"));
}

/* ---- devices that are lost */

static gpuhal_status open_refused(gpuhal *gpu, const char *id)
{
    gpuhal_status status = gpuhal_device_open(select_or_fail(gpu, id));
    assert_int_not_equal(status, GPUHAL_OK);
    assert_string_equal(gpuhal_last_error()->device, id);
    assert_true(gpuhal_last_error()->sentence[0] != '\0');
    return status;
}

/* Work that fails spoils the device: this call and all later ones say so, the other device goes on. */
static void expect_lost_device(const char *machine, int code)
{
    use_machine(machine);
    gpuhal *gpu = open_rocm(0);
    gpuhal_device *one = select_or_fail(gpu, "rocm:0"), *two = select_or_fail(gpu, "rocm:1");
    gpuhal_buffer *lost = buffer_or_fail(one, GPUHAL_MEMORY_DEVICE, 4096),
                  *kept = buffer_or_fail(two, GPUHAL_MEMORY_DEVICE, 4096);
    char bytes[64] = "here", got[64] = "";
    assert_ok(gpuhal_write(NULL, kept, 0, bytes, sizeof bytes));
    assert_int_equal(gpuhal_fill(NULL, lost, 0, 4096, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_last_error()->vendor_code, code);
    assert_string_equal(gpuhal_last_error()->device, "rocm:0");
    assert_true(gpuhal_last_error()->sentence[0] != '\0');
    assert_int_equal(gpuhal_write(NULL, lost, 0, bytes, sizeof bytes), GPUHAL_ERROR_DEVICE_LOST);
    expect_word(gpuhal_last_error()->sentence, "rocm:0: the device was lost");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 64};
    gpuhal_buffer *none = NULL;
    assert_int_equal(gpuhal_buffer_create(one, &desc, &none), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_copy(NULL, kept, 64, lost, 0, 64), GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_read(NULL, got, kept, 0, sizeof got));
    assert_string_equal(got, "here");
    assert_ok(gpuhal_device_verify(two));
    gpuhal_buffer_release(lost);
    gpuhal_buffer_release(kept);
    gpuhal_close(gpu);
    expect_no_violation(); /* HIP lets nothing of a lost device go */
    remove_reports();
}

TEST(a_device_whose_work_fails_is_lost_and_the_other_one_goes_on)
{
    expect_lost_device("devices 2; lose 0 hipMemsetD8Async 1 719", hipErrorLaunchFailure);
}

TEST(a_device_with_a_memory_error_is_lost_and_the_other_one_goes_on)
{
    expect_lost_device("devices 2; lose 0 hipMemsetD8Async 1 214", hipErrorECCNotCorrectable);
}

TEST(a_device_that_vanishes_after_it_was_listed_cannot_be_opened_and_says_so)
{
    use_machine("devices 2; fail hipStreamCreateWithPriority 1 101");
    gpuhal *gpu = open_rocm(0);
    (void)open_refused(gpu, "rocm:0");
    assert_int_equal(gpuhal_last_error()->vendor_code, hipErrorInvalidDevice);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "rocm:1")));
    gpuhal_close(gpu);
    expect_clean();
}

TEST(devices_that_vanish_between_listing_and_opening_are_refused_and_the_rest_works)
{
    use_machine("devices 2");
    gpuhal *gpu = open_rocm(0);
    setenv("FAKE_HIP", "devices 1", 1); /* the helper process saw two, this one will see one */
    assert_true(open_refused(gpu, "rocm:1") < 0);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "rocm:0")));
    gpuhal_close(gpu);
    expect_clean();
}

TEST(a_runtime_that_finds_no_device_any_more_is_refused_and_the_cpu_works)
{
    use_machine("devices 1");
    gpuhal *gpu = open_rocm(0);
    setenv("FAKE_HIP", "devices 0", 1);
    assert_true(open_refused(gpu, "rocm:0") < 0);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cpu:0")));
    gpuhal_close(gpu);
    expect_clean();
}

#include "test_main.h"
