/* A vendor's plugin over its fake, used by several callers at once: threads that wait and threads that copy, and host memory that
 * more than one of them has page-locked. */
#include "vendor_bench.h"

#include <pthread.h>

/* ---- waits and blocking calls */

typedef struct blocked {
    const bench *with;
    gpuhal_plugin_event *event;
    gpuhal_status status;
    _Atomic bool done;
    pthread_t thread;
} blocked;

static void *block_on_it(void *argument)
{
    blocked *own = argument;
    own->status = own->with->ops.event_block(own->event, 60000 * MS_NS);
    own->done = true;
    return NULL;
}

TEST(twelve_threads_that_wait_for_queues_hold_up_neither_copies_nor_other_waits)
{
    enum { QUEUES = 12, PIECES = 20 };
    use_machine("devices 1; slow_us 100000");
    bench with;
    begin(&with, 1);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queues[QUEUES + 1];
    blocked waits[QUEUES];
    for (int i = 0; i <= QUEUES; i++) {
        queues[i] = queue_on(&with, 0);
    }
    for (int i = 0; i < QUEUES; i++) {
        for (int piece = 0; piece < PIECES; piece++) {
            expect_fine(with.ops.fill(with.devices[0], queues[i], &memory, 0, 64, 1, 1), &with, "fill");
        }
        waits[i] = (blocked){.with = &with, .event = event_on(&with, 0)};
        expect_fine(with.ops.event_record(queues[i], waits[i].event), &with, "event_record");
        assert_int_equal(pthread_create(&waits[i].thread, NULL, block_on_it, &waits[i]), 0);
    }
    while (calls_of(EVENT_WAIT_FUNCTION) < QUEUES) {
        usleep(1000);
    }
    char byte = 7;
    expect_fine(with.ops.write(with.devices[0], NULL, &memory, 0, &byte, 1), &with, "write");
    expect_fine(with.ops.fill(with.devices[0], queues[QUEUES], &memory, 0, 64, 1, 1), &with, "fill");
    finish(&with, queues[QUEUES]);
    for (int i = 0; i < QUEUES; i++) { /* all of that took less time than the work that they wait for */
        assert_false(waits[i].done);
    }
    for (int i = 0; i < QUEUES; i++) {
        assert_int_equal(pthread_join(waits[i].thread, NULL), 0);
        expect_fine(waits[i].status, &with, "event_block");
        with.ops.event_destroy(waits[i].event);
        with.ops.queue_destroy(queues[i]);
    }
    with.ops.queue_destroy(queues[QUEUES]);
    with.ops.release(with.devices[0], &memory);
    end(&with);
    expect_clean();
}

typedef struct filling {
    const bench *with;
    gpuhal_memory *memory;
    _Atomic bool done;
    pthread_t thread;
} filling;

static void *fill_it(void *argument)
{
    filling *own = argument;
    expect_fine(own->with->ops.fill(own->with->devices[0], NULL, own->memory, 0, 64, 1, 1), own->with, "fill");
    own->done = true;
    return NULL;
}

static void wait_for_calls(const char *function, uint64_t calls)
{
    while (calls_of(function) < calls) {
        usleep(1000);
    }
}

/* The driver hangs in the call that makes a second stream; a third caller must not wait for the one that hangs. */
TEST(a_driver_that_hangs_while_it_makes_a_stream_stops_only_the_caller_that_asked_for_it)
{
    use_machine("devices 1; slow_us 1000000; hang " STREAM_FUNCTION " 2");
    static bench with; /* a thread goes on using it */
    begin(&with, 1);
    static gpuhal_memory memory;
    memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    static filling fills[3];
    for (int i = 0; i < 3; i++) {
        fills[i] = (filling){.with = &with, .memory = &memory};
        assert_int_equal(pthread_create(&fills[i].thread, NULL, fill_it, &fills[i]), 0);
        wait_for_calls(i == 1 ? STREAM_FUNCTION : FILL_FUNCTION, i == 0 ? 1 : 2);
    }
    assert_int_equal(pthread_join(fills[0].thread, NULL), 0);
    assert_int_equal(pthread_join(fills[2].thread, NULL), 0);
    assert_false(fills[1].done);
    assert_int_equal(calls_of(STREAM_FUNCTION), 3);
    expect_no_violation();
    remove_reports();
}

#include "test_main.h"
