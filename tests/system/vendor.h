/* tests/system/vendor.h: selects the vendor, for tests that are compiled once for each vendor. */
#ifndef GPUHAL_TEST_VENDOR_H
#define GPUHAL_TEST_VENDOR_H

#ifdef GPUHAL_CUDA_PLUGIN
#include "cuda_fake.h"
#define OF(cuda, hip) cuda
#else
#include "rocm_fake.h"
#define OF(cuda, hip) hip
#endif

/* Failed work loses the device. This call and all later calls on the device must return the error, and the other device
 * must continue. */
static inline void expect_lost_device(const char *machine, fake_code code)
{
    use_machine(machine);
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, BACKEND ":0"), *two = select_or_fail(gpu, BACKEND ":1");
    gpuhal_buffer *lost = buffer_or_fail(one, GPUHAL_MEMORY_DEVICE, 4096),
                  *kept = buffer_or_fail(two, GPUHAL_MEMORY_DEVICE, 4096);
    char bytes[64] = "here", got[64] = "";
    assert_ok(gpuhal_write(NULL, kept, 0, bytes, sizeof bytes));
    assert_int_equal(gpuhal_fill(NULL, lost, 0, 4096, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_last_error()->vendor_code, code);
    assert_string_equal(gpuhal_last_error()->device, BACKEND ":0");
    assert_true(gpuhal_last_error()->sentence[0] != '\0');
    assert_int_equal(gpuhal_write(NULL, lost, 0, bytes, sizeof bytes), GPUHAL_ERROR_DEVICE_LOST);
    expect_word(gpuhal_last_error()->sentence, BACKEND ":0: the device was lost");
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
#ifdef GPUHAL_CUDA_PLUGIN
    expect_clean();
#else
    expect_no_violation(); /* HIP releases no objects of a lost device */
    remove_reports();
#endif
}

#endif
