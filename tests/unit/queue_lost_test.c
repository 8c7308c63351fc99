/* A lost device while host memory is short: all queues of the device fail. */
#include "engine_support.h"
#include "support/faults.h"

#include "queue/queue.h"

enum { PIECE = 4096, QUEUES = 3 };

TEST(all_queues_of_a_lost_device_fail_whichever_allocation_fails)
{
    bool failed_one = true;
    for (unsigned at = 1; failed_one; at++) {
        gpuhal *gpu = open_engine();
        gpuhal_buffer *to = gpuhal_mock_buffer(gpu, 0, PIECE), *from = gpuhal_mock_buffer(gpu, 0, PIECE);
        gpuhal_queue *queues[QUEUES];
        gpuhal_event *events[QUEUES];
        for (size_t i = 0; i < QUEUES; i++) {
            assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queues[i]));
            assert_ok(gpuhal_event_create(gpu, 0, &events[i]));
            assert_ok(gpuhal_copy(queues[i], to, 0, from, 0, PIECE));
            assert_ok(gpuhal_event_record(events[i], queues[i]));
        }
        engine.never_done = true;
        engine.failure = GPUHAL_ERROR_DEVICE_LOST;
        engine.fail_at[COPY] = engine.calls[COPY] + 1;
        gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, at, 0);
        const gpuhal_status status = gpuhal_copy(queues[0], to, 0, from, 0, PIECE);
        failed_one = gpuhal_fault_end();
        assert_true(status == GPUHAL_ERROR_DEVICE_LOST || status == GPUHAL_ERROR_HOST_MEMORY);
        for (size_t i = 0; i < QUEUES; i++) {
            if (!gpuhal_queue_is_broken(queues[i])) {
                fail_msg("allocation %u: queue %zu goes on", at, i);
            }
            const gpuhal_status ended = gpuhal_event_poll(events[i]);
            assert_true(ended == GPUHAL_ERROR_DEVICE_LOST || ended == GPUHAL_ERROR_HOST_MEMORY);
        }
        engine.never_done = false;
        for (size_t i = 0; i < QUEUES; i++) {
            gpuhal_event_destroy(events[i]);
            gpuhal_queue_destroy(queues[i]);
        }
        gpuhal_buffer_release(to);
        gpuhal_buffer_release(from);
        gpuhal_close(gpu);
        engine.failure = GPUHAL_ERROR_DRIVER;
    }
}

#include "test_main.h"
