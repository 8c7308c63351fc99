/* tests/system/cuda_bench.h: CUDA's own part of bench.h. */
#ifndef GPUHAL_TEST_CUDA_BENCH_H
#define GPUHAL_TEST_CUDA_BENCH_H

#define OWN_LINK "nvlink 4 18"

typedef struct engine {
    vendor_api api;
    CUcontext context;
    int device;
} engine;

static inline engine engine_begin(int device)
{
    engine own = {.api = load_api(), .device = device};
    assert_int_equal(own.api.cuDevicePrimaryCtxRetain(&own.context, device), CUDA_SUCCESS);
    assert_int_equal(own.api.cuCtxPushCurrent_v2(own.context), CUDA_SUCCESS);
    return own;
}

static inline void engine_end(engine *own)
{
    assert_int_equal(own->api.cuCtxPopCurrent_v2(&own->context), CUDA_SUCCESS);
    assert_int_equal(own->api.cuDevicePrimaryCtxRelease_v2(own->device), CUDA_SUCCESS);
}

static inline void engine_resets(engine *own)
{
    assert_int_equal(own->api.cuDevicePrimaryCtxReset_v2(own->device), CUDA_SUCCESS);
}

static inline gpuhal_plugin_program *load_kernels(const bench *with)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry fill(.param .u64 a, .param .u32 b, .param .u32 c)\n{\n ret;\n}\n"
        ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d)\n{\n ret;\n}\n";
    gpuhal_plugin_program *program = NULL;
    expect_fine(load(with, "ptx", ptx, sizeof ptx, &program), with, "program_load");
    return program;
}

#endif
