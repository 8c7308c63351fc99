/* The CUDA plugin over the fake driver, slot by slot (direct.h): what is CUDA's own of links and programs, and the caller's own
 * contexts and streams. What it shares with other vendors is in vendor_slots_test.c. */
#include "cuda_bench.h"

TEST(links_are_told_apart_with_kind_generation_and_count)
{
    use_machine("devices 3; link 0 1 nvlink 4 18; link 0 2 system; link 1 2 pcie");
    bench with;
    start(&with);
    told link = link_of(&with, 0, 1);
    assert_int_equal(link.kind, GPUHAL_LINK_NVLINK);
    assert_int_equal(link.advertised, 1);
    assert_int_equal(link.generation, 4);
    assert_int_equal(link.count, 18);
    link = link_of(&with, 0, 2);
    assert_int_equal(link.kind, GPUHAL_LINK_SYSTEM);
    assert_int_equal(link.advertised, 0);
    assert_int_equal(link_of(&with, 2, 1).kind, GPUHAL_LINK_PCIE_SWITCH);
    assert_int_equal(fake_report_get()->contexts_created, 0);
    expect_clean();
}

TEST(code_that_cannot_be_loaded_is_refused_with_the_compilers_words_and_the_device_goes_on)
{
    static const char wrong[] = ".visible .entry fill() { ret; }";
    unsigned char elf[4096] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    use_machine("devices 1");
    bench with;
    begin(&with, 1);
    gpuhal_plugin_program *program = NULL;
    gpuhal_status status = with.ops.program_load(with.devices[0], "ptx", wrong, sizeof wrong, NULL, &program);
    assert_true(status < 0);
    gpuhal_direct_failed(with.plugin, status, "program_load");
    assert_non_null(strstr(gpuhal_last_error()->sentence, "Missing .version"));
    assert_true(with.ops.program_load(with.devices[0], "cubin", elf, sizeof elf, NULL, &program) < 0);
    assert_int_equal(with.ops.program_load(with.devices[0], "spirv", elf, sizeof elf, NULL, &program),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    program = load_kernels(&with);
    gpuhal_plugin_kernel *kernel = NULL;
    assert_int_equal(with.ops.kernel(program, "absent", &kernel), GPUHAL_ERROR_NOT_FOUND);
    with.ops.program_unload(program);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    end(&with);
    expect_clean();
}

TEST(access_that_the_program_switched_on_stays_on)
{
    use_machine("devices 2");
    const driver api = load_driver();
    CUcontext contexts[2] = {NULL}, popped = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(api.cuDevicePrimaryCtxRetain(&contexts[i], i), CUDA_SUCCESS);
    }
    assert_int_equal(api.cuCtxPushCurrent_v2(contexts[1]), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxEnablePeerAccess(contexts[0], 0), CUDA_SUCCESS);
    bench with;
    begin(&with, 2);
    expect_fine(with.ops.peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    with.ops.peer_disable(with.devices[1], with.devices[0]);
    assert_int_equal(api.cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    end(&with);
    assert_int_equal(api.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
    expect_clean();
}

TEST(an_adopted_context_is_worked_in_and_left_to_the_caller)
{
    use_machine("devices 2");
    const driver api = load_driver();
    CUcontext mine = NULL, current = NULL;
    CUstream stream = NULL;
    assert_int_equal(api.cuCtxCreate_v2(&mine, 0, 0), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    bench with;
    start(&with);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_DEVICE, .values = {(uintptr_t)mine, 0, (uintptr_t)stream}};
    assert_int_equal(open_device(&with, 1, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    with.devices[1] = NULL;
    expect_fine(open_device(&with, 0, &native), &with, "open");
    CUdeviceptr own = 0;
    assert_int_equal(api.cuMemAlloc_v2(&own, 256), CUDA_SUCCESS);
    assert_int_equal(api.cuMemsetD8Async(own, 0x42, 256, stream), CUDA_SUCCESS);
    gpuhal_memory wrapped = {.size = sizeof wrapped}, taken = allocate(&with, 0, (gpuhal_alloc){.bytes = 256});
    const gpuhal_native memory = {.size = sizeof memory, .type = GPUHAL_NATIVE_CUDA_MEMORY, .values = {own}};
    expect_fine(with.ops.wrap_memory(with.devices[0], &memory, 256, &wrapped), &with, "wrap_memory");
    unsigned char got[256] = {0};
    expect_fine(with.ops.copy(with.devices[0], NULL, &taken, 0, &wrapped, 0, 256), &with, "copy");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &taken, 0, 256), &with, "read");
    assert_int_equal(got[0] + got[255], 2 * 0x42);
    with.ops.release(with.devices[0], &wrapped);
    with.ops.release(with.devices[0], &taken);
    end(&with);
    assert_int_equal(api.cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, mine);
    assert_int_equal(fake_report_get()->contexts_created, 1);
    assert_int_equal(api.cuMemFree_v2(own), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxDestroy_v2(mine), CUDA_SUCCESS);
    expect_clean();
}

TEST(blocking_calls_come_after_what_the_adopted_stream_had_been_given)
{
    use_machine("devices 1; slow_us 20000");
    const driver api = load_driver();
    CUcontext mine = NULL;
    CUstream stream = NULL;
    CUdeviceptr own = 0;
    assert_int_equal(api.cuCtxCreate_v2(&mine, 0, 0), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(api.cuMemAlloc_v2(&own, 256), CUDA_SUCCESS);
    bench with;
    start(&with);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_DEVICE, .values = {(uintptr_t)mine, 0, (uintptr_t)stream}};
    const gpuhal_native memory = {.size = sizeof memory, .type = GPUHAL_NATIVE_CUDA_MEMORY, .values = {own}};
    expect_fine(open_device(&with, 0, &native), &with, "open");
    gpuhal_memory wrapped = {.size = sizeof wrapped};
    expect_fine(with.ops.wrap_memory(with.devices[0], &memory, 256, &wrapped), &with, "wrap_memory");
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(api.cuMemsetD8Async(own, (unsigned char)i, 256, stream), CUDA_SUCCESS);
    }
    unsigned char got[256] = {0};
    expect_fine(with.ops.read(with.devices[0], NULL, got, &wrapped, 0, 256), &with, "read");
    assert_int_equal(got[255], 4);
    with.ops.release(with.devices[0], &wrapped);
    end(&with);
    assert_int_equal(api.cuMemFree_v2(own), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxDestroy_v2(mine), CUDA_SUCCESS);
    expect_clean();
}

#include "test_main.h"
