/* Makes each memory allocation of gpuhal_recording_finish() fail in turn, in the library and in a vendor's plugin, with
 * the vendor's fake. vendor_sweep_test.c makes the driver's calls fail. */
#include "support/faults.h"
#include "vendor.h"

extern gpuhal_builtin_fn OF(gpuhal_cuda_plugin_query, gpuhal_rocm_plugin_query);

static gpuhal *open_linked(void)
{
    static gpuhal_builtin_fn *const builtins[] = {OF(gpuhal_cuda_plugin_query, gpuhal_rocm_plugin_query), NULL};
    const gpuhal_config config = {
        .size = sizeof config, .backends = BACKEND, .isolation = GPUHAL_ISOLATION_NEVER, .builtins = builtins};
    return open_or_fail(&config);
}

TEST(a_recording_can_be_finished_again_after_each_allocation_that_fails)
{
    enum { STEPS = 300, PLACES_AT_MOST = 50 };
    use_machine("devices 1");
    gpuhal *gpu = open_linked();
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 4 * STEPS);
    int at = 0, refused = 0;
    for (bool failed = true; failed; at++) {
        gpuhal_recording *recording = NULL;
        assert_ok(gpuhal_recording_create(device, NULL, &recording));
        for (uint32_t i = 0; i < STEPS; i++) {
            assert_ok(gpuhal_recording_fill(recording, buffer, 4 * i, 4, i, 4));
        }
        gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, (unsigned)at + 1, 0);
        const gpuhal_status status = gpuhal_recording_finish(recording);
        failed = gpuhal_fault_end();
        if (status != GPUHAL_OK) { /* a list that cannot become smaller is no error */
            assert_true(failed);
            assert_int_equal(status, GPUHAL_ERROR_HOST_MEMORY);
            assert_int_equal(fake_report_get()->graphs, 0);
            assert_ok(gpuhal_recording_finish(recording));
            refused++;
        }
        assert_int_equal(fake_report_get()->graphs, 4); /* two parts */
        assert_string_equal(gpuhal_recording_form(recording), "driver");
        gpuhal_recording_release(recording);
        assert_int_equal(fake_report_get()->graphs, 0);
        assert_true(at < PLACES_AT_MOST);
    }
    assert_true(refused > 6);
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

#include "test_main.h"
