/* Each host allocation fails once while a device is short of memory. */
#include "support/torture.h"
#include "support/torture_mock.h"

#include "pool/pressure.h"

#include <gpuhal/transfer.h>

enum { UNIT = 256, LIMIT = 16 * UNIT, PARTS = 8 };
#define PATIENCE_NS UINT64_C(20000000000)

typedef struct objects {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_pool *pool;
    gpuhal_queue *queue;
    gpuhal_buffer *parts[PARTS], *plain, *made, *other;
    gpuhal_pressure_entry *entry;
    uint64_t called;
} objects;

static uint64_t give(void *user, gpuhal_device *device, gpuhal_pool *pool, uint64_t bytes, uint64_t deadline_ns)
{
    objects *o = user;
    uint64_t given = 0;
    (void)device, (void)pool, (void)deadline_ns;
    for (int i = 0; i < PARTS && given < bytes; i++) {
        given += o->parts[i] ? gpuhal_buffer_bytes(o->parts[i]) : 0;
        gpuhal_buffer_release(o->parts[i]);
        o->parts[i] = NULL;
    }
    return given;
}

static uint64_t call(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns)
{
    objects *o = user;
    (void)device, (void)bytes, (void)timeout_ns;
    const uint64_t given = gpuhal_buffer_bytes(o->plain);
    gpuhal_buffer_release(o->plain);
    o->plain = NULL;
    o->called++;
    return given;
}

static gpuhal_status make_objects(objects *o)
{
    const gpuhal_pool_desc desc = {.size = sizeof desc, .segment_bytes = LIMIT, .limit_bytes = LIMIT};
    const gpuhal_buffer_desc plain = {.size = sizeof plain, .bytes = LIMIT};
    const gpuhal_pressure_source source = {.rung = GPUHAL_PRESSURE_EVICT, .give = give, .user = o};
    gpuhal_status status = open_mock(&o->gpu);
    status = status ? status : gpuhal_select(o->gpu, "mock:0", 0, &o->device, NULL);
    status = status ? status : gpuhal_device_open(o->device);
    status = status ? status : gpuhal_device_limit_memory(o->device, 2 * LIMIT);
    status = status ? status : gpuhal_pool_create(o->device, &desc, &o->pool);
    status = status ? status : gpuhal_queue_create(o->device, NULL, &o->queue);
    status = status ? status : gpuhal_buffer_create(o->device, &plain, &o->plain);
    status = status ? status : gpuhal_pressure_add(o->device, &source, &o->entry);
    return status ? status : gpuhal_device_on_pressure(o->device, 0, call, o);
}

/* The pool is full of suballocations that a queue's work uses, so a caller has to wait for evicted memory. The pool and
 * a separate buffer fill the device. */
static gpuhal_status be_short(objects *o)
{
    gpuhal_status status = GPUHAL_OK;
    for (int i = 0; i < PARTS && !status; i++) {
        status = gpuhal_pool_allocate(o->pool, o->queue, LIMIT / PARTS, 0, 0, &o->parts[i]);
        status = status ? status : gpuhal_fill(o->queue, o->parts[i], 0, LIMIT / PARTS, 1, 1);
    }
    status = status ? status : gpuhal_pool_allocate(o->pool, NULL, LIMIT / 2, 0, PATIENCE_NS, &o->made);
    if (status) {
        return status;
    }
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = LIMIT, .timeout_ns = PATIENCE_NS};
    status = gpuhal_buffer_create(o->device, &desc, &o->other);
    assert_true(status || o->called == 1);
    return status ? status : gpuhal_device_trim(o->device, 0, NULL);
}

static gpuhal_status short_of_memory(void)
{
    objects o = {.gpu = NULL};
    gpuhal_status status = make_objects(&o);
    status = status ? status : be_short(&o);
    gpuhal_pressure_remove(o.entry);
    gpuhal_queue_destroy(o.queue);
    for (int i = 0; i < PARTS; i++) {
        gpuhal_buffer_release(o.parts[i]);
    }
    gpuhal_buffer_release(o.plain);
    gpuhal_buffer_release(o.made);
    gpuhal_buffer_release(o.other);
    gpuhal_pool_destroy(o.pool);
    gpuhal_close(o.gpu);
    expect_mock_closed();
    return status;
}

TEST(every_allocation_of_host_memory_may_fail_while_a_device_is_short)
{
    torture(short_of_memory, GPUHAL_FAULT_ALLOCATION, NULL);
}

TEST(trimming_without_host_memory_says_so)
{
    objects o = {.gpu = NULL};
    assert_int_equal(make_objects(&o), GPUHAL_OK);
    uint64_t freed = 7;
    gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, 1, 0);
    const gpuhal_status status = gpuhal_trim(o.gpu, 0, &freed);
    gpuhal_fault_end();
    assert_int_equal(status, GPUHAL_ERROR_HOST_MEMORY);
    assert_int_equal(freed, 0);
    assert_int_equal(gpuhal_device_trim(o.device, 0, &freed), GPUHAL_OK);
    gpuhal_pressure_remove(o.entry);
    gpuhal_queue_destroy(o.queue);
    gpuhal_buffer_release(o.plain);
    gpuhal_pool_destroy(o.pool);
    gpuhal_close(o.gpu);
}

#include "test_main.h"
