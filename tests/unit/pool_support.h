/* tests/unit/pool_support.h: common code for tests of pools. */
#ifndef GPUHAL_TEST_POOL_SUPPORT_H
#define GPUHAL_TEST_POOL_SUPPORT_H

#include "support/mock.h"
#include "test.h"

#include <gpuhal/pool.h>
#include <gpuhal/transfer.h>

#include <time.h>

enum { SEGMENT = 64 * 1024, UNIT = 256 };
#define PATIENCE_NS UINT64_C(60000000000)

static inline gpuhal *open_one(void)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    return gpuhal_mock_open(NULL, 0);
}

/* Creates a pool. The default is segments of SEGMENT bytes and no limit. */
static inline gpuhal_pool *pool_or_fail(gpuhal *gpu, gpuhal_pool_desc desc)
{
    gpuhal_pool *pool = NULL;
    desc.size = sizeof desc;
    desc.limit_bytes = desc.limit_bytes || desc.limit_permille ? desc.limit_bytes : UINT64_MAX;
    desc.segment_bytes = desc.segment_bytes ? desc.segment_bytes : SEGMENT;
    assert_ok(gpuhal_pool_create(gpuhal_device_at(gpu, 0), &desc, &pool));
    return pool;
}

static inline gpuhal_buffer *take(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_buffer *buffer = NULL;
    assert_ok(gpuhal_pool_allocate(pool, queue, bytes, 0, 0, &buffer));
    assert_int_equal(gpuhal_buffer_bytes(buffer), bytes);
    return buffer;
}

/* Allocates a buffer, releases it immediately, and returns the status of the allocation. */
static inline gpuhal_status attempt(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                    uint64_t timeout_ns)
{
    gpuhal_buffer *buffer = NULL;
    gpuhal_status status = gpuhal_pool_allocate(pool, queue, bytes, flags, timeout_ns, &buffer);
    assert_int_equal(status == GPUHAL_OK, buffer != NULL);
    gpuhal_buffer_release(buffer);
    return status;
}

static inline gpuhal_pool_statistics state_of(gpuhal_pool *pool)
{
    gpuhal_pool_statistics state = {.size = sizeof state};
    assert_ok(gpuhal_pool_get_statistics(pool, &state));
    assert_int_equal(state.reserved.current, state.reserved.total_in - state.reserved.total_out);
    assert_int_equal(state.reserved.current, state.used.current + state.free_bytes + state.ordered_bytes);
    assert_true(state.requested.current <= state.used.current && state.used.current <= state.used.peak);
    assert_true(state.largest_free_bytes <= state.free_bytes);
    return state;
}

static inline gpuhal_queue *queue_or_fail(gpuhal *gpu)
{
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue));
    return queue;
}

/* Blocks later work in the queue until open_gate(). */
static inline gpuhal_event *close_gate(gpuhal *gpu, gpuhal_queue *queue)
{
    gpuhal_event *gate = NULL;
    assert_ok(gpuhal_event_create(gpu, GPUHAL_EVENT_HOST, &gate));
    assert_ok(gpuhal_queue_wait(queue, gate));
    return gate;
}

static inline void open_gate(gpuhal_event *gate)
{
    assert_ok(gpuhal_event_signal(gate, GPUHAL_OK));
    gpuhal_event_destroy(gate);
}

static inline void expect_nothing_left(void)
{
    for (uint32_t i = 0; i < gpuhal_mock.count; i++) {
        assert_int_equal(gpuhal_mock.devices[i].allocations, 0);
        assert_int_equal(gpuhal_mock.devices[i].openings, 0);
    }
}

static inline void expect_nothing_left_soon(void)
{
    for (int i = 0; i < 60000 && gpuhal_mock.devices[0].openings > 0; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
    }
    expect_nothing_left();
}

#endif
