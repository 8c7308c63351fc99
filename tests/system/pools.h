/* tests/system/pools.h: pools on every device of this machine, or with CUDA's fake, which has virtual memory. */
#ifndef GPUHAL_TEST_POOLS_H
#define GPUHAL_TEST_POOLS_H

#ifdef GPUHAL_CUDA_PLUGIN
#include "cuda_fake.h"
#endif
#include "queues.h"

#include <gpuhal/pool.h>

#include <time.h>

#ifdef GPUHAL_CUDA_PLUGIN /* memory is mapped in pages of 2 MiB */
enum { SEGMENT = 4 << 20 };
static const char *const selectors[] = {BACKEND ":0"};

static inline gpuhal *open_all(void)
{
    use_machine("devices 1; memory 0 256M; slow_us 20");
    return open_backend(0);
}
#else
enum { SEGMENT = 32 * 1024 };
static const char *const selectors[] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};

static inline gpuhal *open_all(void)
{
    return open_or_fail(NULL);
}
#endif

static inline gpuhal_pool *pool_or_fail(gpuhal_device *device, gpuhal_pool_desc desc)
{
    gpuhal_pool *pool = NULL;
    desc.size = sizeof desc;
    assert_ok(gpuhal_pool_create(device, &desc, &pool));
    return pool;
}

/* Expects that no memory is in use after all work has ended, and that the statistics add up. A thread of the library
 * finishes a queue that was destroyed with unfinished work, and the queue's memory stays in use until then. */
static inline void expect_all_free(gpuhal_pool *pool, uint64_t allocated)
{
    gpuhal_pool_statistics state = {.size = sizeof state};
    for (uint64_t waited_ns = 0; waited_ns < PATIENCE_NS; waited_ns += MILLISECOND_NS) {
        assert_ok(gpuhal_pool_trim(pool, 0, NULL));
        assert_ok(gpuhal_pool_get_statistics(pool, &state));
        if (state.reserved.current == 0) {
            break;
        }
        const struct timespec pause = {.tv_nsec = MILLISECOND_NS};
        nanosleep(&pause, NULL);
    }
    assert_int_equal(state.reserved.current, 0);
    assert_int_equal(state.segments, 0);
    assert_int_equal(state.used.current, 0);
    assert_int_equal(state.ordered_bytes, 0);
    assert_int_equal(state.buffers.total_in, allocated);
    assert_int_equal(state.buffers.total_out, allocated);
}

static inline void on_each_device(void (*check)(gpuhal_device *device))
{
    gpuhal *gpu = open_all();
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        gpuhal_device *device = find(gpu, selectors[i]);
        if (device) {
            check(device);
        }
    }
    gpuhal_close(gpu);
}

#endif
