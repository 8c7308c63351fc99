/* tests/system/rocm_bench.h: the HIP part of bench.h. */
#ifndef GPUHAL_TEST_ROCM_BENCH_H
#define GPUHAL_TEST_ROCM_BENCH_H

#define OWN_LINK "xgmi 1"

typedef struct engine {
    vendor_api api;
} engine;

static inline engine engine_begin(int device)
{
    const engine own = {load_api()};
    assert_int_equal(own.api.hipSetDevice(device), hipSuccess);
    return own;
}

static inline void engine_end(engine *own)
{
    assert_int_equal(own->api.hipSetDevice(0), hipSuccess);
}

static inline void engine_resets(engine *own)
{
    assert_int_equal(own->api.hipDeviceReset(), hipSuccess);
}

#endif
