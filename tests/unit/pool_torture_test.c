/* Each allocation and each system call of a pool fails once. */
#include "support/torture.h"
#include "support/torture_mock.h"
#include "support/trace_file.h"

#include <gpuhal/pool.h>
#include <gpuhal/transfer.h>

enum { BYTES = 3000, BUFFERS = 12, QUEUES = 3 };
#define PATIENCE_NS UINT64_C(20000000000)

static uint64_t page_bytes; /* granularity of the device's virtual memory; 0 if not supported */
static bool checks;

typedef struct objects {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_queue *queues[QUEUES];
    gpuhal_buffer *buffers[BUFFERS];
} objects;

static gpuhal_status open_objects(objects *o)
{
    const gpuhal_pool_desc desc = {.size = sizeof desc,
                                   .segment_bytes = 8192,
                                   .limit_bytes = 6 * 8192,
                                   .keep_bytes = 8192,
                                   .tag = "torture",
                                   .flags = checks ? GPUHAL_POOL_CHECKING : 0};
    gpuhal_device *device = NULL;
    gpuhal_mock.devices[0].page_bytes = page_bytes;
    gpuhal_mock.devices[0].total_bytes = 1 << 20;
    gpuhal_status status = open_mock(&o->gpu);
    status = status ? status : start_pool_trace(o->gpu);
    status = status ? status : gpuhal_select(o->gpu, "mock:0", 0, &device, NULL);
    status = status ? status : gpuhal_pool_create(device, &desc, &o->pool);
    for (int i = 0; i < QUEUES && !status; i++) {
        status = gpuhal_queue_create(device, NULL, &o->queues[i]);
    }
    return status;
}

/* Each queue fills its buffers and reads them back. The next queue uses every second buffer as well, so these buffers
 * are released behind work of two queues. */
static gpuhal_status use_buffers(objects *o)
{
    static unsigned char got[BUFFERS][BYTES];
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < BUFFERS && !status; i++) {
        gpuhal_queue *queue = o->queues[i % QUEUES], *next = o->queues[(i + 1) % QUEUES];
        status = gpuhal_pool_allocate(o->pool, queue, BYTES, 0, PATIENCE_NS, &o->buffers[i]);
        status = status ? status : gpuhal_fill(queue, o->buffers[i], 0, BYTES, i, 1);
        status = status ? status : gpuhal_read(queue, got[i], o->buffers[i], 0, BYTES);
        status = status || i % 2 ? status : gpuhal_buffer_use(o->buffers[i], next);
        if (!status && i >= 4) {
            gpuhal_buffer_release(o->buffers[i - 4]);
            o->buffers[i - 4] = NULL;
        }
    }
    for (int i = 0; i < QUEUES && !status; i++) {
        status = gpuhal_queue_synchronize(o->queues[i], PATIENCE_NS);
    }
    for (uint32_t i = 0; i < BUFFERS && !status; i++) {
        assert_true(got[i][0] == i && got[i][BYTES - 1] == i);
        gpuhal_buffer_release(o->buffers[i]);
        o->buffers[i] = NULL;
    }
    return status;
}

static gpuhal_status pool_around(void)
{
    objects o = {.gpu = NULL};
    uint64_t freed = 0;
    gpuhal_buffer *late = NULL;
    gpuhal_status status = open_objects(&o);
    status = status ? status : use_buffers(&o);
    status = status ? status : gpuhal_pool_allocate(o.pool, NULL, 4 * 8192, 0, PATIENCE_NS, &late);
    status = status ? status : gpuhal_pool_trim(o.pool, 0, &freed);
    status = status ? status : gpuhal_trim(o.gpu, 0, NULL);
    status = status ? status : gpuhal_trace_write(o.gpu, GPUHAL_TRACE_POOLS, trace_path);
    if (o.pool) {
        gpuhal_pool_statistics state = {.size = sizeof state};
        assert_int_equal(gpuhal_pool_get_statistics(o.pool, &state), GPUHAL_OK);
        assert_int_equal(state.reserved.current, state.used.current + state.free_bytes + state.ordered_bytes);
    }
    gpuhal_pool_destroy(o.pool);
    for (int i = 0; i < QUEUES; i++) {
        gpuhal_queue_destroy(o.queues[i]);
    }
    for (int i = 0; i < BUFFERS; i++) {
        gpuhal_buffer_release(o.buffers[i]);
    }
    gpuhal_buffer_release(late);
    gpuhal_close(o.gpu);
    expect_mock_closed();
    assert_int_equal(gpuhal_mock.devices[0].ranges, 0);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes, 0);
    return status;
}

static void torture_pool(gpuhal_fault kind)
{
    begin_traces();
    torture(pool_around, kind, NULL);
    end_traces();
}

TEST(every_allocation_of_a_pool_and_its_queues_may_fail)
{
    torture_pool(GPUHAL_FAULT_ALLOCATION);
}

TEST(every_allocation_of_a_pool_in_checking_mode_may_fail)
{
    checks = true;
    torture_pool(GPUHAL_FAULT_ALLOCATION);
}

TEST(every_call_of_a_pool_and_its_queues_may_fail)
{
    torture_pool(GPUHAL_FAULT_FAIL);
}

TEST(every_allocation_of_a_pool_in_virtual_memory_may_fail)
{
    page_bytes = 4096;
    torture_pool(GPUHAL_FAULT_ALLOCATION);
}

#include "test_main.h"
