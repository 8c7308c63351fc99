/* The fake CUDA driver itself: it has to refuse what the real one refuses, or tests over it mean nothing. */
#include "cuda_fake.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define assert_code(call, code) assert_int_equal(call, code)

/* The calls of the test until here broke so many rules. */
static void expect_violations(unsigned count)
{
    assert_int_equal(fake_report_get()->violations, count);
}

/* A driver with the primary context of device 0 current. */
static driver begin_in_context(const char *machine, CUcontext *out_context)
{
    use_machine(machine);
    const driver api = load_driver();
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
    const driver api = load_driver();
    CUdeviceptr memory = 0;
    assert_code(api.cuDeviceGetCount(&count), CUDA_SUCCESS);
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_ERROR_INVALID_CONTEXT);
    expect_violations(2);
    remove_reports();
}

TEST(contexts_are_a_stack_of_each_thread)
{
    CUcontext primary, mine, current;
    const driver api = begin_in_context("devices 2", &primary);
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

TEST(memory_that_was_freed_or_is_too_short_is_refused)
{
    CUcontext context;
    const driver api = begin_in_context("devices 1", &context);
    CUdeviceptr memory = 0;
    unsigned char bytes[512] = {0};
    assert_code(api.cuMemAlloc_v2(&memory, 256), CUDA_SUCCESS);
    assert_code(api.cuMemcpyHtoDAsync_v2(memory + 1, bytes, 256, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_code(api.cuMemcpyDtoHAsync_v2(bytes, memory, 257, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_code(api.cuMemFree_v2(memory + 1), CUDA_ERROR_INVALID_VALUE);
    assert_code(api.cuMemFree_v2(memory), CUDA_SUCCESS);
    assert_code(api.cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
    assert_code(api.cuMemsetD8Async(memory, 0, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    expect_violations(5);
    remove_reports();
}

TEST(streams_and_events_of_another_context_are_refused)
{
    CUcontext one, two;
    const driver api = begin_in_context("devices 2", &one);
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

TEST(copies_from_page_locked_memory_are_asynchronous_and_from_ordinary_memory_staged)
{
    CUcontext context;
    const driver api = begin_in_context("devices 1; slow_us 200000", &context);
    CUdeviceptr memory[2] = {0};
    CUstream stream;
    unsigned char *locked = NULL, ordinary[64], got[64];
    assert_code(api.cuMemAlloc_v2(&memory[0], 64), CUDA_SUCCESS);
    assert_code(api.cuMemAlloc_v2(&memory[1], 64), CUDA_SUCCESS);
    assert_code(api.cuMemHostAlloc((void **)(void *)&locked, 64, 0), CUDA_SUCCESS);
    assert_code(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    memset(locked, 1, 64);
    memset(ordinary, 1, 64);
    assert_code(api.cuMemcpyHtoDAsync_v2(memory[0], locked, 64, stream), CUDA_SUCCESS);
    assert_code(api.cuMemcpyHtoDAsync_v2(memory[1], ordinary, 64, stream), CUDA_SUCCESS);
    memset(locked, 2, 64);
    memset(ordinary, 2, 64);
    assert_code(api.cuMemcpyDtoHAsync_v2(got, memory[0], 64, stream), CUDA_SUCCESS);
    assert_int_equal(got[63], 2);
    assert_code(api.cuMemcpyDtoHAsync_v2(got, memory[1], 64, stream), CUDA_SUCCESS);
    assert_int_equal(got[63], 1);
    expect_violations(0);
    remove_reports();
}

TEST(the_null_stream_waits_for_blocking_streams_and_not_for_the_others)
{
    CUcontext context;
    const driver api = begin_in_context("devices 1; slow_us 200000", &context);
    CUdeviceptr memory = 0;
    CUstream blocking, other;
    CUevent event;
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
    assert_code(api.cuStreamCreate(&blocking, 0), CUDA_SUCCESS);
    assert_code(api.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_code(api.cuEventCreate(&event, 0), CUDA_SUCCESS);
    assert_code(api.cuMemsetD8Async(memory, 1, 64, other), CUDA_SUCCESS);
    assert_code(api.cuEventRecord(event, NULL), CUDA_SUCCESS);
    assert_code(api.cuEventSynchronize(event), CUDA_SUCCESS);
    assert_code(api.cuEventRecord(event, other), CUDA_SUCCESS);
    assert_code(api.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    assert_code(api.cuStreamSynchronize(other), CUDA_SUCCESS);
    assert_code(api.cuMemsetD8Async(memory, 1, 64, blocking), CUDA_SUCCESS);
    assert_code(api.cuEventRecord(event, NULL), CUDA_SUCCESS);
    assert_code(api.cuEventQuery(event), CUDA_ERROR_NOT_READY);
    expect_violations(0);
    remove_reports();
}

TEST(a_failure_sticks_to_its_context_until_the_context_ends)
{
    CUcontext context;
    const driver api = begin_in_context("devices 1; lose 0 cuMemsetD8Async 1 700", &context);
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

TEST(a_call_that_a_capture_forbids_spoils_it_unless_the_thread_is_relaxed)
{
    CUcontext context;
    const driver api = begin_in_context("devices 1", &context);
    CUstream stream;
    CUdeviceptr memory = 0;
    CUgraph graph;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    assert_code(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_code(api.cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_code(api.cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_code(api.cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
    assert_code(api.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
    assert_code(api.cuEventRecord(NULL, stream), CUDA_ERROR_INVALID_HANDLE);
    assert_code(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    expect_violations(1); /* work in the captured stream */
    remove_reports();
}

TEST(a_context_that_was_reset_answers_so_until_it_is_retained_anew)
{
    CUcontext context, anew;
    const driver api = begin_in_context("devices 1", &context);
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

TEST(a_program_that_touches_device_memory_dies)
{
    CUcontext context;
    const driver api = begin_in_context("devices 1", &context);
    CUdeviceptr memory = 0;
    assert_code(api.cuMemAlloc_v2(&memory, 64), CUDA_SUCCESS);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        *(volatile char *)(uintptr_t)memory = 1;
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    remove_reports();
}

TEST(the_child_of_a_fork_has_no_driver)
{
    CUcontext context;
    const driver api = begin_in_context("devices 1", &context);
    const pid_t child = fork();
    if (child == 0) {
        CUdeviceptr memory = 0;
        _exit(api.cuMemAlloc_v2(&memory, 64) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    remove_reports();
}

TEST(a_machine_that_breaks_the_grammar_ends_the_process)
{
    static const char *const wrong[] = {"devices",       "devices 17",   "memory 1 1G", "link 0 0 rope",
                                        "fail cuInit 1", "colour 0 red", "uuid 0 12",   "memory 0 12Q"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const pid_t child = fork();
        if (child == 0) {
            use_machine(wrong[i]);
            unsetenv("FAKE_CUDA_REPORT");
            (void)load_driver();
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 99);
    }
}

#include "test_main.h"
