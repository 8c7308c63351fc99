/* Tests the fake CUDA driver itself. The fake must refuse the calls that the real driver refuses; otherwise tests with
 * the fake prove nothing. The calls that the HIP driver refuses, too, are in vendor_rules_test.c. */
#include "cuda_fake.h"

#define assert_code(call, code) assert_int_equal(call, code)

static void expect_violations(unsigned count)
{
    assert_int_equal(fake_report_get()->violations, count);
}

/* Loads the driver and makes device 0's primary context current. */
static vendor_api begin_in_context(const char *machine, CUcontext *out_context)
{
    use_machine(machine);
    const vendor_api api = load_api();
    assert_code(api.cuDevicePrimaryCtxRetain(out_context, 0), CUDA_SUCCESS);
    assert_code(api.cuCtxPushCurrent_v2(*out_context), CUDA_SUCCESS);
    return api;
}

TEST(nothing_works_before_initialisation_and_nothing_without_a_context)
{
    use_machine("devices 1");
    int count = 0;
    CUresult (*early)(int *) = NULL;
    void *library = dlopen(getenv("GPUHAL_CUDA_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    *(void **)(void *)&early = dlsym(library, "cuDeviceGetCount");
    assert_code(early(&count), CUDA_ERROR_NOT_INITIALIZED);
    const vendor_api api = load_api();
    CUdeviceptr memory = 0;
    assert_code(api.cuDeviceGetCount(&count), CUDA_SUCCESS);
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_ERROR_INVALID_CONTEXT);
    expect_violations(2);
    remove_reports();
}

TEST(contexts_are_a_stack_of_each_thread)
{
    CUcontext primary, mine, current;
    const vendor_api api = begin_in_context("devices 2", &primary);
    assert_code(api.cuCtxCreate_v2(&mine, 0, 1), CUDA_SUCCESS);
    assert_code(api.cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, mine);
    assert_code(api.cuCtxDestroy_v2(mine), CUDA_SUCCESS);
    assert_code(api.cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, primary);
    assert_code(api.cuCtxPopCurrent_v2(&current), CUDA_SUCCESS);
    assert_code(api.cuCtxPopCurrent_v2(&current), CUDA_ERROR_INVALID_CONTEXT);
    assert_code(api.cuCtxPushCurrent_v2(mine), CUDA_ERROR_INVALID_CONTEXT);
    assert_code(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_code(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    expect_violations(3);
    remove_reports();
}

TEST(streams_and_events_of_another_context_are_refused)
{
    CUcontext one, two;
    const vendor_api api = begin_in_context("devices 2", &one);
    CUstream stream;
    CUevent event;
    assert_code(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_code(api.cuEventCreate(&event, 0), CUDA_SUCCESS);
    assert_code(api.cuDevicePrimaryCtxRetain(&two, 1), CUDA_SUCCESS);
    assert_code(api.cuCtxPushCurrent_v2(two), CUDA_SUCCESS);
    assert_code(api.cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    assert_code(api.cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_code(api.cuCtxPopCurrent_v2(&two), CUDA_SUCCESS);
    assert_code(api.cuEventRecord(event, stream), CUDA_SUCCESS);
    assert_code(api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_code(api.cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
    expect_violations(3);
    remove_reports();
}

TEST(a_failure_sticks_to_its_context_until_the_context_ends)
{
    CUcontext context;
    const vendor_api api = begin_in_context("devices 1; lose 0 cuMemsetD8Async 1 700", &context);
    CUdeviceptr memory = 0, more = 0;
    size_t free_bytes, total;
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
    assert_code(api.cuMemsetD8Async(memory, 0, 64, NULL), CUDA_SUCCESS);
    assert_code(api.cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_code(api.cuMemAlloc_v2(&more, 64), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_code(api.cuMemGetInfo_v2(&free_bytes, &total), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_code(api.cuMemFree_v2(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_code(api.cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    assert_code(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(fake_report_get()->allocations, 0);
    assert_code(api.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    assert_code(api.cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
    expect_violations(0);
    remove_reports();
}

TEST(a_context_that_was_reset_answers_so_until_it_is_retained_anew)
{
    CUcontext context, anew;
    const vendor_api api = begin_in_context("devices 1", &context);
    CUdeviceptr memory = 0;
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
    assert_code(api.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    assert_code(api.cuMemsetD8Async(memory, 0, 64, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_code(api.cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    assert_code(api.cuDevicePrimaryCtxRetain(&anew, 0), CUDA_SUCCESS);
    assert_int_equal(fake_report_get()->allocations, 0);
    assert_code(api.cuCtxPushCurrent_v2(anew), CUDA_SUCCESS);
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
    assert_code(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_code(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(fake_report_get()->contexts_alive, 0);
    expect_violations(0);
    remove_reports();
}

#include "test_main.h"
