/* Tests pools of a vendor's plugin with its fake, which has virtual memory. A pool has a single address range, except
 * on a device with peers. */
#include "vendor.h"
#include "support/random.h"

#include "support/pattern.h"

#include <gpuhal/pool.h>

#define RESERVE OF("cuMemAddressReserve", "hipMemAddressReserve")
#define PEER_COPY OF("cuMemcpyPeerAsync", "hipMemcpyPeerAsync")
#define CREATE OF("cuMemCreate", "hipMemCreate")

static gpuhal_pool *pool_or_fail(gpuhal_device *device, gpuhal_pool_desc desc)
{
    gpuhal_pool *pool = NULL;
    desc.size = sizeof desc;
    assert_ok(gpuhal_pool_create(device, &desc, &pool));
    return pool;
}

static gpuhal_buffer *take(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_pool_allocate(pool, queue, bytes, 0, 0, &buffer));
    return buffer;
}

static uint64_t reserved_by(gpuhal_pool *pool)
{
    gpuhal_pool_statistics state = {.size = sizeof state};
    assert_ok(gpuhal_pool_get_statistics(pool, &state));
    return state.reserved.current;
}

TEST(a_pool_grows_within_one_range_and_gives_its_pieces_back)
{
    use_machine("devices 1; memory 0 256M; slow_us 20");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_pool *pool = pool_or_fail(device, (gpuhal_pool_desc){.segment_bytes = 16 * MIB});
    gpuhal_queue *queue = NULL;
    uint64_t freed = 0;
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    gpuhal_buffer *small = take(pool, queue, MIB), *large = take(pool, queue, 40 * MIB);
    const uint64_t before = fake_report_get()->device_bytes[0] - reserved_by(pool);
    assert_int_equal(calls_of(RESERVE), 1);
    unsigned char *sent = bytes_of_seed(5, 40 * MIB), *got = bytes_of_seed(6, 40 * MIB);
    assert_ok(gpuhal_write(queue, large, 0, sent, 40 * MIB));
    assert_ok(gpuhal_copy(queue, small, 0, large, 39 * MIB, MIB));
    assert_ok(gpuhal_read(queue, got, small, 0, MIB));
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    assert_memory_equal(got, sent + 39 * MIB, MIB);
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_buffer_native(large, &native));
    assert_int_equal(native.values[0], gpuhal_buffer_address(large));
    gpuhal_buffer_release(large);
    gpuhal_buffer *larger = take(pool, queue, 60 * MIB);
    assert_true(reserved_by(pool) < 64 * MIB); /* includes the previous 40 MiB */
    assert_ok(gpuhal_write(queue, larger, 20 * MIB, sent, 40 * MIB));
    assert_ok(gpuhal_read(queue, got, larger, 20 * MIB, 40 * MIB));
    assert_ok(gpuhal_queue_synchronize(queue, UINT64_MAX));
    assert_memory_equal(got, sent, 40 * MIB);
    assert_int_equal(calls_of(RESERVE), 1);
    gpuhal_buffer_release(larger);
    assert_ok(gpuhal_pool_trim(pool, 0, &freed));
    assert_true(freed >= 58 * MIB);
    assert_int_equal(fake_report_get()->device_bytes[0] - before, reserved_by(pool));
    gpuhal_buffer_release(small);
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
    assert_int_equal(fake_report_get()->device_bytes[0], before);
    free(sent);
    free(got);
    close_clean(gpu);
}

TEST(a_full_device_makes_pieces_smaller_and_then_is_out_of_memory)
{
    use_machine("devices 1; memory 0 64M");
    gpuhal *gpu = open_backend(0);
    gpuhal_pool *pool = pool_or_fail(select_or_fail(gpu, BACKEND ":0"), (gpuhal_pool_desc){.limit_bytes = UINT64_MAX});
    gpuhal_buffer *buffers[64];
    uint32_t count = 0;
    gpuhal_status status = GPUHAL_OK;
    while (count < 64 && (status = gpuhal_pool_allocate(pool, NULL, 2 * MIB, 0, 0, &buffers[count])) == GPUHAL_OK) {
        assert_ok(gpuhal_fill(NULL, buffers[count], 0, 2 * MIB, count, 1));
        count++;
    }
    assert_int_equal(status, GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_word(gpuhal_last_error()->sentence, CREATE);
    assert_true(count > 20);
    for (uint32_t i = 0; i < count; i++) {
        unsigned char byte = 0;
        assert_ok(gpuhal_read(NULL, &byte, buffers[i], 2 * MIB - 1, 1));
        assert_int_equal(byte, i);
        gpuhal_buffer_release(buffers[i]);
    }
    gpuhal_buffer *all = take(pool, NULL, count * 2 * MIB);
    assert_int_equal(calls_of(RESERVE), 1);
    gpuhal_buffer_release(all);
    gpuhal_pool_destroy(pool);
    close_clean(gpu);
}

TEST(on_a_device_with_peers_pools_have_segments_that_these_reach)
{
    use_machine("devices 2; slow_us 20");
    gpuhal *gpu = open_backend(0);
    gpuhal_pool *pools[2];
    gpuhal_buffer *buffers[2];
    enum { BYTES = 300001 };
    unsigned char *sent = bytes_of_seed(7, BYTES), *got = bytes_of_seed(8, BYTES);
    for (int i = 0; i < 2; i++) {
        pools[i] = pool_or_fail(select_or_fail(gpu, i ? BACKEND ":1" : BACKEND ":0"), (gpuhal_pool_desc){0});
        buffers[i] = take(pools[i], NULL, BYTES);
    }
    assert_ok(gpuhal_write(NULL, buffers[0], 0, sent, BYTES));
    assert_ok(gpuhal_copy(NULL, buffers[1], 0, buffers[0], 0, BYTES));
    assert_ok(gpuhal_read(NULL, got, buffers[1], 0, BYTES));
    assert_memory_equal(got, sent, BYTES);
    assert_int_equal(calls_of(RESERVE), 0);
    assert_true(calls_of(PEER_COPY) > 0);
    for (int i = 0; i < 2; i++) {
        gpuhal_buffer_release(buffers[i]);
        gpuhal_pool_destroy(pools[i]);
    }
    free(sent);
    free(got);
    close_clean(gpu);
}

#include "test_main.h"
