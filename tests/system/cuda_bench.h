/* tests/system/cuda_bench.h: driving the CUDA plugin slot by slot, over the fake driver; and what is the vendor's own in
 * vendor_slots_test.c. */
#ifndef GPUHAL_TEST_CUDA_BENCH_H
#define GPUHAL_TEST_CUDA_BENCH_H

#include "cuda_fake.h"

#define GPUHAL_BENCH_PLUGIN GPUHAL_CUDA_PLUGIN
#include "bench.h"

#define FILL_FUNCTION       "cuMemsetD8Async"
#define EVENT_WAIT_FUNCTION "cuEventSynchronize"
#define STREAM_FUNCTION     "cuStreamCreateWithPriority"
#define OWN_LINK            "nvlink 4 18"

/* The engine in the same process, in the context of device 0. */
static inline bool engine_locks(const bench *with, void *memory, size_t bytes)
{
    const driver api = load_driver();
    gpuhal_native native = {.size = sizeof native};
    CUcontext context;
    expect_fine(with->ops.native_device(with->devices[0], &native), with, "native_device");
    assert_int_equal(api.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)native.values[0]), CUDA_SUCCESS);
    const CUresult code = api.cuMemHostRegister_v2(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE);
    assert_int_equal(api.cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    return code == CUDA_SUCCESS;
}

static inline bool engine_unlocks(const bench *with, void *memory)
{
    const driver api = load_driver();
    gpuhal_native native = {.size = sizeof native};
    CUcontext context;
    expect_fine(with->ops.native_device(with->devices[0], &native), with, "native_device");
    assert_int_equal(api.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)native.values[0]), CUDA_SUCCESS);
    const CUresult code = api.cuMemHostUnregister(memory);
    assert_int_equal(api.cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    return code == CUDA_SUCCESS;
}

static inline void engine_resets(void)
{
    assert_int_equal(load_driver().cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
}

/* A program with the kernels fill and add, which the fake knows. */
static inline gpuhal_plugin_program *load_kernels(const bench *with)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry fill(.param .u64 a, .param .u32 b, .param .u32 c)\n{\n ret;\n}\n"
                              ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d)\n{\n ret;\n}\n";
    gpuhal_plugin_program *program = NULL;
    expect_fine(with->ops.program_load(with->devices[0], "ptx", ptx, sizeof ptx, NULL, &program), with, "program_load");
    return program;
}

#endif
