/* Tests that transferred bytes are counted by direction, by pair of devices and by path. */
#include "system.h"

#include <gpuhal/usage.h>

#define SECOND_NS UINT64_C(1000000000)
enum { SMALL = 1000, LARGE = 1 << 20 };

static gpuhal_usage usage_of(const gpuhal_device *device)
{
    gpuhal_usage usage = {.size = sizeof usage};
    assert_ok(gpuhal_device_usage(device, &usage));
    return usage;
}

static gpuhal_pair_traffic traffic_of(const gpuhal_device *from, const gpuhal_device *to)
{
    gpuhal_pair_traffic traffic = {.size = sizeof traffic};
    assert_ok(gpuhal_pair_usage(from, to, &traffic));
    return traffic;
}

static void assert_traffic(gpuhal_traffic traffic, uint64_t operations, uint64_t bytes, uint64_t timed)
{
    assert_int_equal(traffic.operations, operations);
    assert_int_equal(traffic.bytes, bytes);
    assert_int_equal(traffic.timed_operations, timed);
    assert_int_equal(traffic.timed_ns > 0, timed > 0);
}

TEST(each_direction_is_counted_and_large_ones_are_timed)
{
    static unsigned char host[LARGE];
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = select_or_fail(gpu, "opencl:0");
    gpuhal_buffer *one = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, LARGE),
                  *two = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, LARGE);
    assert_ok(gpuhal_write(NULL, one, 0, host, SMALL));
    assert_ok(gpuhal_write(NULL, one, 0, host, LARGE));
    assert_ok(gpuhal_fill(NULL, one, 0, LARGE, 7, 4));
    assert_ok(gpuhal_copy(NULL, two, 0, one, 0, LARGE));
    assert_ok(gpuhal_copy(NULL, two, 0, one, 0, SMALL));
    assert_ok(gpuhal_read(NULL, host, two, 0, SMALL));
    assert_int_equal(gpuhal_read(NULL, host, two, 1, LARGE), GPUHAL_ERROR_OUT_OF_RANGE);
    const gpuhal_rect to = {.buffer = one}, from = {.host = host};
    assert_ok(gpuhal_copy_rect(NULL, &to, &from, (const uint64_t[3]){10, 4, 1}));
    const gpuhal_usage usage = usage_of(device);
    assert_traffic(usage.written, 3, SMALL + LARGE + 40, 1);
    assert_traffic(usage.filled, 1, LARGE, 1);
    assert_traffic(usage.copied, 2, LARGE + SMALL, 1);
    assert_traffic(usage.read, 1, SMALL, 0);
    assert_traffic(traffic_of(device, device).native, 2, LARGE + SMALL, 1);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    gpuhal_close(gpu);
}

TEST(work_of_queues_is_counted_once)
{
    static unsigned char host[LARGE];
    static const char *const selectors[] = {"cpu:0", "opencl:0", "vulkan:0"};
    gpuhal *gpu = open_or_fail(NULL);
    for (size_t d = 0; d < sizeof selectors / sizeof *selectors; d++) {
        gpuhal_device *device = select_or_fail(gpu, selectors[d]);
        gpuhal_queue *queue = NULL;
        gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, LARGE);
        assert_ok(gpuhal_queue_create(device, NULL, &queue));
        for (unsigned i = 0; i < 10; i++) {
            assert_ok(gpuhal_write(queue, buffer, 0, host, SMALL));
            assert_ok(gpuhal_fill(queue, buffer, 0, SMALL, 1, 4));
            assert_ok(gpuhal_read(queue, host, buffer, 0, SMALL));
        }
        assert_ok(gpuhal_queue_synchronize(queue, 60 * SECOND_NS));
        const gpuhal_usage usage = usage_of(device);
        assert_int_equal(usage.written.operations, 10);
        assert_int_equal(usage.filled.bytes, 10 * SMALL);
        assert_int_equal(usage.read.operations, 10);
        gpuhal_buffer_release(buffer);
        gpuhal_queue_destroy(queue);
    }
    gpuhal_close(gpu);
}

TEST(a_pair_counts_by_the_way_that_was_taken)
{
    gpuhal *gpu = open_or_fail(NULL);
    skip_without_two_opencl_devices(gpu);
    gpuhal_device *from_device = select_or_fail(gpu, "opencl:0"), *to_device = select_or_fail(gpu, "opencl:1");
    gpuhal_buffer *from = buffer_or_fail(from_device, GPUHAL_MEMORY_DEVICE, LARGE),
                  *to = buffer_or_fail(to_device, GPUHAL_MEMORY_DEVICE, LARGE);
    gpuhal_path path = 0;
    assert_ok(gpuhal_fill(NULL, from, 0, LARGE, 1, 4));
    assert_ok(gpuhal_copy(NULL, to, 0, from, 0, LARGE));
    assert_ok(gpuhal_copy_path(to, from, &path));
    const gpuhal_pair_traffic there = traffic_of(from_device, to_device), back = traffic_of(to_device, from_device);
    assert_traffic(path == GPUHAL_PATH_STAGED ? there.staged : there.shared, 1, LARGE, 1);
    assert_traffic(path == GPUHAL_PATH_STAGED ? there.shared : there.staged, 0, 0, 0);
    assert_traffic(back.staged, 0, 0, 0);
    assert_traffic(there.peer, 0, 0, 0);
    assert_int_equal(gpuhal_device_usage(from_device, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_pair_usage(from_device, NULL, &(gpuhal_pair_traffic){.size = 8}),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_close(gpu);
}

#include "test_main.h"
