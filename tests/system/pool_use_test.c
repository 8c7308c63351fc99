/* Tests pools on every device: memory of unfinished work, the vendor's object of a suballocation, callbacks when memory
 * is short, and page-locked memory. */
#include "pools.h"

#include <gpuhal/share.h>

/* An event that the host signals delays the first queue's work until every other caller has requested the same
 * memory. */
static void expect_kept_behind_work(gpuhal_device *device)
{
    gpuhal *gpu = gpuhal_device_owner(device);
    gpuhal_pool *pool = pool_or_fail(device, (gpuhal_pool_desc){.limit_bytes = SEGMENT, .segment_bytes = SEGMENT});
    gpuhal_queue *first = queue_or_fail(device, 0), *second = queue_or_fail(device, 0);
    gpuhal_event *blocked = event_or_fail(gpu, GPUHAL_EVENT_HOST);
    static unsigned char of_first[SEGMENT], of_second[SEGMENT];
    gpuhal_buffer *buffer = NULL, *other = NULL;
    assert_ok(gpuhal_pool_allocate(pool, first, SEGMENT, 0, 0, &buffer));
    assert_ok(gpuhal_queue_wait(first, blocked));
    assert_ok(gpuhal_fill(first, buffer, 0, SEGMENT, 0x11, 1));
    assert_ok(gpuhal_read(first, of_first, buffer, 0, SEGMENT));
    gpuhal_buffer_release(buffer);
    assert_int_equal(gpuhal_pool_allocate(pool, NULL, 1, 0, 5 * MILLISECOND_NS, &other), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_pool_allocate(pool, second, SEGMENT, 0, 0, &other));
    assert_ok(gpuhal_fill(second, other, 0, SEGMENT, 0x22, 1));
    assert_ok(gpuhal_read(second, of_second, other, 0, SEGMENT));
    assert_int_equal(gpuhal_queue_synchronize(second, 5 * MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
    assert_ok(gpuhal_event_signal(blocked, GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(first, PATIENCE_NS));
    assert_ok(gpuhal_queue_synchronize(second, PATIENCE_NS));
    for (int i = 0; i < SEGMENT; i++) {
        assert_int_equal(of_first[i], 0x11);
        assert_int_equal(of_second[i], 0x22);
    }
    gpuhal_buffer_release(other);
    expect_all_free(pool, 2);
    gpuhal_event_destroy(blocked);
    gpuhal_queue_destroy(first);
    gpuhal_queue_destroy(second);
    gpuhal_pool_destroy(pool);
}

TEST(memory_with_unfinished_work_behind_it_goes_to_another_queue_only_after_that)
{
    on_each_device(expect_kept_behind_work);
}

/* If the vendor's handle is an object, it is the object of the whole segment. After the object is wrapped, the
 * suballocation's bytes start at the reported offset. If the handle is a pointer, it points to the suballocation
 * itself. */
static uint64_t stated_offset(const gpuhal_buffer *part, const gpuhal_native *native, const gpuhal_native *first)
{
    if (native->type == GPUHAL_NATIVE_CUDA_MEMORY || native->type == GPUHAL_NATIVE_HIP_MEMORY) {
        assert_int_equal(gpuhal_buffer_offset(part), 0);
        return native->values[0] - first->values[0];
    }
    assert_true(native->values[0] == first->values[0]);
    return native->type == GPUHAL_NATIVE_OPENCL_BUFFER ? native->values[1] : gpuhal_buffer_offset(part);
}

static void expect_native_offset(gpuhal_device *device)
{
    gpuhal_pool *pool = pool_or_fail(device, (gpuhal_pool_desc){.segment_bytes = SEGMENT});
    gpuhal_buffer *parts[3] = {NULL}, *whole = NULL;
    gpuhal_native native = {.size = sizeof native}, first = {.size = sizeof first};
    for (int i = 0; i < 3; i++) {
        assert_ok(gpuhal_pool_allocate(pool, NULL, 1000, 0, 0, &parts[i]));
        assert_ok(gpuhal_fill(NULL, parts[i], 0, 1000, 0x30 + (uint32_t)i, 1));
    }
    gpuhal_status status = gpuhal_buffer_native(parts[0], &first);
    assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_NOT_SUPPORTED);
    for (int i = 0; i < 3 && !status; i++) {
        unsigned char got[1000];
        assert_ok(gpuhal_buffer_native(parts[i], &native));
        assert_int_equal(stated_offset(parts[i], &native, &first), i * 1024);
        if (!whole && gpuhal_buffer_wrap(device, &first, 3 * 1024, NULL, NULL, &whole) == GPUHAL_ERROR_NOT_SUPPORTED) {
            continue;
        }
        assert_non_null(whole);
        assert_ok(gpuhal_read(NULL, got, whole, (uint64_t)i * 1024, sizeof got));
        assert_true(got[0] == 0x30 + i && got[999] == 0x30 + i);
    }
    gpuhal_buffer_release(whole);
    for (int i = 0; i < 3; i++) {
        gpuhal_buffer_release(parts[i]);
    }
    gpuhal_pool_destroy(pool);
}

TEST(the_vendors_object_of_a_part_has_its_bytes_at_the_offset)
{
    on_each_device(expect_native_offset);
}

/* A cache of the application, which contains either suballocations of a pool or buffers. */
typedef struct spare {
    gpuhal_buffer *buffers[8];
    uint32_t count, calls;
} spare;

static uint64_t give_spare(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    spare *own = user;
    uint64_t given = 0;
    (void)device, (void)timeout_ns;
    own->calls++;
    while (own->count > 0 && given < bytes) {
        given += gpuhal_buffer_bytes(own->buffers[--own->count]);
        gpuhal_buffer_release(own->buffers[own->count]);
    }
    return given;
}

/* The device's memory limit is reached: a pool uses half of the memory, and buffers use the other half. Work still uses
 * the memory when the callbacks release it. The work must be short, because after a second the library requests that
 * more memory is released. */
static void expect_given_under_pressure(gpuhal_device *device)
{
    enum { PART = SEGMENT / 4, TOUCHED = 4096 };
    spare parts = {.count = 0}, plain = {.count = 0};
    gpuhal_pool *pool = pool_or_fail(device, (gpuhal_pool_desc){.limit_bytes = SEGMENT, .segment_bytes = SEGMENT});
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = PART};
    gpuhal_buffer *part = NULL, *buffer = NULL;
    assert_ok(gpuhal_pool_allocate(pool, queue, SEGMENT, 0, 0, &part)); /* creates one segment */
    gpuhal_buffer_release(part);
    while (parts.count < 4) {
        assert_ok(gpuhal_pool_allocate(pool, queue, PART, 0, 0, &parts.buffers[parts.count]));
        assert_ok(gpuhal_fill(queue, parts.buffers[parts.count++], 0, TOUCHED, 0x11, 1));
        assert_ok(gpuhal_buffer_create(device, &desc, &plain.buffers[plain.count]));
        assert_ok(gpuhal_fill(queue, plain.buffers[plain.count++], 0, TOUCHED, 0x22, 1));
    }
    assert_ok(gpuhal_device_limit_memory(device, 2 * SEGMENT));
    assert_ok(gpuhal_device_on_pressure(device, 0, give_spare, &parts));
    assert_ok(gpuhal_device_on_pressure(device, 1, give_spare, &plain));
    assert_ok(gpuhal_pool_allocate(pool, NULL, 2 * PART, 0, PATIENCE_NS, &part));
    assert_int_equal(parts.count, 2);
    assert_int_equal(plain.calls, 0);
    desc.bytes = 2 * PART;
    desc.flags = GPUHAL_ALLOCATE_NO_EVICT;
    desc.timeout_ns = MILLISECOND_NS;
    assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_memory_report()->used_bytes, 2 * SEGMENT);
    desc.flags = 0;
    desc.timeout_ns = PATIENCE_NS;
    assert_ok(gpuhal_buffer_create(device, &desc, &buffer));
    assert_int_equal(parts.count, 0); /* this callback runs first, and does not free a whole segment */
    assert_true(plain.count <= 2);
    assert_ok(gpuhal_device_off_pressure(device, give_spare, &parts));
    assert_ok(gpuhal_device_off_pressure(device, give_spare, &plain));
    (void)give_spare(&plain, device, UINT64_MAX, 0);
    gpuhal_buffer_release(part);
    gpuhal_buffer_release(buffer);
    assert_ok(gpuhal_device_limit_memory(device, 0));
    gpuhal_queue_destroy(queue);
    gpuhal_pool_destroy(pool);
}

TEST(callbacks_give_memory_to_pools_and_buffers_under_pressure)
{
    on_each_device(expect_given_under_pressure);
}

/* The host writes bytes to page-locked memory, and the bytes are copied to the device and back. If the memory has no
 * device address, only transfers can use it. */
static void expect_page_locked_pools(gpuhal_device *device)
{
    enum { BYTES = 5001 };
    gpuhal_pool *pools[2] = {pool_or_fail(device, (gpuhal_pool_desc){.kind = GPUHAL_MEMORY_UPLOAD}),
                             pool_or_fail(device, (gpuhal_pool_desc){.kind = GPUHAL_MEMORY_READBACK})};
    gpuhal_buffer *up[2] = {NULL}, *down = NULL, *on_device = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    static unsigned char bytes[BYTES], got[BYTES];
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 256);
    }
    assert_ok(gpuhal_pool_allocate(pools[0], NULL, BYTES, 0, 0, &up[0]));
    assert_ok(gpuhal_pool_allocate(pools[0], NULL, BYTES, 0, 0, &up[1]));
    assert_ok(gpuhal_pool_allocate(pools[1], NULL, BYTES, 0, 0, &down));
    void *to = gpuhal_buffer_host(up[1]);
    assert_int_equal(to != NULL, gpuhal_buffer_is_coherent(up[1]));
    if (to) {
        memcpy(to, bytes, BYTES);
    } else {
        assert_ok(gpuhal_write(NULL, up[1], 0, bytes, BYTES));
    }
    assert_ok(gpuhal_fill(NULL, up[0], 0, BYTES, 0xee, 1));
    assert_ok(gpuhal_copy(NULL, on_device, 0, up[1], 0, BYTES));
    assert_ok(gpuhal_copy(NULL, down, 0, on_device, 0, BYTES));
    assert_ok(gpuhal_read(NULL, got, down, 0, BYTES));
    assert_memory_equal(got, bytes, BYTES);
    const void *from = gpuhal_buffer_host(down);
    assert_true(!from || memcmp(from, bytes, BYTES) == 0);
    gpuhal_pool_statistics state = {.size = sizeof state};
    assert_ok(gpuhal_pool_get_statistics(pools[0], &state));
    assert_true(state.used.current >= 2 * BYTES && state.used.current < 2 * BYTES + 2 * 4096);
    printf("%s: host addresses %s\n", gpuhal_device_id(device), to ? "yes" : "no");
    gpuhal_buffer_release(up[0]);
    gpuhal_buffer_release(up[1]);
    gpuhal_buffer_release(down);
    gpuhal_buffer_release(on_device);
    gpuhal_pool_destroy(pools[0]);
    gpuhal_pool_destroy(pools[1]);
}

TEST(page_locked_pools_keep_the_bytes_of_the_host_on_every_device)
{
    on_each_device(expect_page_locked_pools);
}

#include "test_main.h"
