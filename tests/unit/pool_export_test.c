/* Pools whose buffers can be exported. Each buffer has a segment of its own. */
#include "pool/pool.h"
#include "pool_support.h"

#include <gpuhal/share.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UUID "00112233-4455-6677-8899-aabbccddeeff"
enum { FD = 1u << GPUHAL_HANDLE_OPAQUE_FD, BYTES = 1000 };

/* Opens two devices. The memory of the first device has no host address, and can be exported and mapped. */
static gpuhal *open_two(void)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 2,
        .devices = {{.hidden = 1, .mappable = 1, .export_kinds = FD, .uuid = UUID, .driver_uuid = UUID},
                    {.hidden = 1, .import_kinds = FD, .uuid = UUID, .driver_uuid = UUID}}};
    return gpuhal_mock_open(NULL, 0);
}

static void expect_bytes(gpuhal_buffer *buffer, unsigned char pattern)
{
    unsigned char got[BYTES];
    assert_ok(gpuhal_read(NULL, got, buffer, 0, sizeof got));
    for (size_t i = 0; i < sizeof got; i++) {
        assert_int_equal(got[i], pattern);
    }
}

TEST(each_buffer_has_a_segment_of_its_size_that_the_next_of_that_size_gets)
{
    gpuhal *gpu = open_two();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.export_kinds = FD});
    gpuhal_buffer *a = take(pool, NULL, BYTES), *b = take(pool, NULL, BYTES), *c = take(pool, NULL, 5 * BYTES);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 3);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 7 * BYTES);
    assert_int_equal(state_of(pool).used.current, 7 * BYTES);
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(c);
    a = take(pool, NULL, BYTES);
    c = take(pool, NULL, 4 * BYTES); /* not a suballocation of the larger buffer's segment */
    assert_int_equal(gpuhal_mock.devices[0].allocations, 4);
    assert_int_equal(state_of(pool).segments, 4);
    assert_int_equal(state_of(pool).unused_segment_bytes, 5 * BYTES);
    gpuhal_queue *queue = queue_or_fail(gpu);
    gpuhal_buffer_release(take(pool, queue, 5 * BYTES));
    assert_null(pool->keeping);
    gpuhal_queue_destroy(queue);
    assert_ok(gpuhal_maintain(gpu, 1));
    /* at the limit, an unused segment of another size is freed */
    assert_ok(gpuhal_pool_set_limit(pool, 11 * BYTES));
    gpuhal_buffer *d = take(pool, NULL, 2 * BYTES);
    assert_int_equal(state_of(pool).reserved.current, 8 * BYTES);
    gpuhal_buffer_release(a);
    gpuhal_buffer_release(b);
    gpuhal_buffer_release(c);
    gpuhal_buffer_release(d);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_handle_has_exactly_the_bytes_of_the_buffer)
{
    gpuhal *gpu = open_two();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.export_kinds = FD});
    gpuhal_buffer *other = take(pool, NULL, BYTES), *buffer = take(pool, NULL, BYTES);
    gpuhal_handle handle = {.size = sizeof handle};
    struct stat info;
    assert_ok(gpuhal_fill(NULL, other, 0, BYTES, 1, 1));
    assert_ok(gpuhal_fill(NULL, buffer, 0, BYTES, 2, 1));
    assert_ok(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_OPAQUE_FD, &handle));
    assert_int_equal(fstat((int)handle.as.os, &info), 0);
    assert_int_equal(info.st_size, BYTES);
    const unsigned char *seen = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, (int)handle.as.os, 0);
    assert_true(seen != MAP_FAILED && seen[0] == 2 && seen[BYTES - 1] == 2);
    munmap((void *)(uintptr_t)seen, BYTES);
    close((int)handle.as.os);
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_DMABUF_FD, &handle), GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_buffer_release(other);
    gpuhal_buffer_release(buffer);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_mapped_buffer_refuses_transfers_until_it_is_unmapped)
{
    gpuhal *gpu = open_two();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.export_kinds = FD});
    gpuhal_buffer *buffer = take(pool, NULL, BYTES), *plain = NULL;
    void *seen = NULL, *again = NULL;
    assert_int_equal(gpuhal_buffer_map(buffer, 1, BYTES, GPUHAL_ACCESS_WRITE, &seen), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_ok(gpuhal_buffer_map(buffer, 0, BYTES, GPUHAL_ACCESS_WRITE, &seen));
    assert_int_equal(gpuhal_buffer_map(buffer, 0, 1, GPUHAL_ACCESS_WRITE, &again), GPUHAL_ERROR_BUSY);
    memset(seen, 0x33, BYTES);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, BYTES, 1, 1), GPUHAL_ERROR_BUSY);
    assert_ok(gpuhal_buffer_unmap(buffer, seen));
    assert_int_equal(gpuhal_mock.devices[0].maps, 0);
    expect_bytes(buffer, 0x33);
    gpuhal_buffer_release(buffer);
    /* without export_kinds, buffers share a segment */
    gpuhal_pool *other = pool_or_fail(gpu, (gpuhal_pool_desc){0});
    plain = take(other, NULL, BYTES);
    gpuhal_handle handle = {.size = sizeof handle};
    assert_int_equal(gpuhal_buffer_map(plain, 0, BYTES, GPUHAL_ACCESS_WRITE, &seen), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_export(plain, GPUHAL_HANDLE_OPAQUE_FD, &handle), GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_buffer_release(plain);
    gpuhal_pool_destroy(other);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(a_shared_buffer_keeps_the_memory_of_the_released_one)
{
    gpuhal *gpu = open_two();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.export_kinds = FD});
    gpuhal_buffer *buffer = take(pool, NULL, BYTES), *shared = NULL;
    assert_ok(gpuhal_buffer_share(buffer, gpuhal_device_at(gpu, 1), &shared));
    assert_ok(gpuhal_fill(NULL, buffer, 0, BYTES, 0x44, 1));
    gpuhal_buffer_release(buffer);
    assert_int_equal(state_of(pool).buffers.current, 1);
    gpuhal_buffer *next = take(pool, NULL, BYTES);
    assert_ok(gpuhal_fill(NULL, next, 0, BYTES, 0x55, 1));
    expect_bytes(shared, 0x44);
    gpuhal_buffer_release(shared);
    assert_int_equal(state_of(pool).buffers.current, 1);
    gpuhal_buffer *third = take(pool, NULL, BYTES);
    assert_int_equal(state_of(pool).segments, 2);
    gpuhal_buffer_release(third);
    gpuhal_buffer_release(next);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

TEST(work_of_another_device_gives_the_memory_back_when_it_has_ended)
{
    gpuhal *gpu = open_two();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.export_kinds = FD, .keep_bytes = 1});
    gpuhal_queue *queue = NULL, *own = queue_or_fail(gpu);
    gpuhal_buffer *buffer = take(pool, own, BYTES), *shared = NULL;
    assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 1), NULL, &queue));
    assert_ok(gpuhal_fill(own, buffer, 0, BYTES, 0x66, 1));
    assert_ok(gpuhal_queue_synchronize(own, PATIENCE_NS));
    assert_ok(gpuhal_buffer_share(buffer, gpuhal_device_at(gpu, 1), &shared));
    gpuhal_event *gate = close_gate(gpu, queue);
    static unsigned char got[BYTES];
    assert_ok(gpuhal_read(queue, got, shared, 0, BYTES));
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(shared);
    assert_int_equal(state_of(pool).buffers.current, 1);
    open_gate(gate);
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_true(got[0] == 0x66 && got[BYTES - 1] == 0x66);
    assert_int_equal(state_of(pool).buffers.current, 0);
    gpuhal_queue_destroy(queue);
    gpuhal_queue_destroy(own);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

TEST(the_order_of_queues_is_that_of_other_pools)
{
    gpuhal *gpu = open_two();
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.export_kinds = FD, .limit_bytes = BYTES});
    gpuhal_queue *one = queue_or_fail(gpu), *two = queue_or_fail(gpu);
    gpuhal_event *gate = close_gate(gpu, one);
    gpuhal_buffer *buffer = take(pool, one, BYTES);
    assert_ok(gpuhal_fill(one, buffer, 0, BYTES, 1, 1));
    gpuhal_buffer_release(buffer);
    assert_int_equal(attempt(pool, NULL, BYTES, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(attempt(pool, one, BYTES, 0, 0), GPUHAL_OK);
    assert_int_equal(attempt(pool, two, BYTES, 0, 0), GPUHAL_OK); /* waits for an event first */
    open_gate(gate);
    gpuhal_queue_destroy(one);
    gpuhal_queue_destroy(two);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left_soon();
}

TEST(kinds_of_handles_that_the_device_lacks_are_refused_when_the_pool_is_made)
{
    gpuhal *gpu = open_two();
    gpuhal_pool *pool = NULL;
    const gpuhal_pool_desc desc = {.size = sizeof desc, .export_kinds = 1u << GPUHAL_HANDLE_DMABUF_FD};
    assert_int_equal(gpuhal_pool_create(gpuhal_device_at(gpu, 0), &desc, &pool), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(pool);
    gpuhal_close(gpu);
}

TEST(an_exporting_pool_has_segments_also_with_virtual_memory)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.export_kinds = FD, .page_bytes = 4096}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.export_kinds = FD});
    gpuhal_buffer_release(take(pool, NULL, BYTES));
    assert_int_equal(gpuhal_mock.devices[0].ranges, 0);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, BYTES);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

#include "test_main.h"
