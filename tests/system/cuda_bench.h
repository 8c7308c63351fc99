/* tests/system/cuda_bench.h: the CUDA part of bench.h. */
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

#endif
