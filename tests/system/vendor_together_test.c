/* Tests a vendor's plugin with its fake and several callers at the same time: threads that wait, threads that copy, and
 * several owners of the same page-locked host memory. */
#include "bench.h"

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
    own->status = own->with->ops.queues->event_block(own->event, 60000 * MS_NS);
    own->done = true;
    return NULL;
}

TEST(twelve_threads_that_wait_for_queues_hold_up_neither_copies_nor_other_waits)
{
    enum { QUEUES = 12, PIECES = 20 };
    bench with = begin_on("devices 1; slow_us 100000", 1);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64 * (QUEUES + 2)});
    gpuhal_plugin_queue *queues[QUEUES + 1];
    blocked waits[QUEUES];
    for (int i = 0; i <= QUEUES; i++) {
        queues[i] = queue_on(&with, 0);
    }
    for (int i = 0; i < QUEUES; i++) {
        for (int piece = 0; piece < PIECES; piece++) {
            expect_fine(with.ops.fill(with.devices[0], queues[i], &memory, 64 * (uint64_t)i, 64, 1, 1), &with, "fill");
        }
        waits[i] = (blocked){.with = &with, .event = event_on(&with, 0)};
        expect_fine(with.ops.queues->event_record(queues[i], waits[i].event), &with, "event_record");
        assert_int_equal(pthread_create(&waits[i].thread, NULL, block_on_it, &waits[i]), 0);
    }
    while (calls_of(CALLED(EventSynchronize)) < QUEUES) {
        usleep(1000);
    }
    char byte = 7;
    expect_fine(with.ops.write(with.devices[0], NULL, &memory, 64 * (QUEUES + 1), &byte, 1), &with, "write");
    expect_fine(with.ops.fill(with.devices[0], queues[QUEUES], &memory, 64 * QUEUES, 64, 1, 1), &with, "fill");
    finish(&with, queues[QUEUES]);
    for (int i = 0; i < QUEUES; i++) { /* all calls above returned before the awaited work ended */
        assert_false(waits[i].done);
    }
    for (int i = 0; i < QUEUES; i++) {
        assert_int_equal(pthread_join(waits[i].thread, NULL), 0);
        expect_fine(waits[i].status, &with, "event_block");
        with.ops.queues->event_destroy(waits[i].event);
        with.ops.queues->queue_destroy(queues[i]);
    }
    with.ops.queues->queue_destroy(queues[QUEUES]);
    with.ops.release(with.devices[0], &memory);
    end_clean(&with);
}

typedef struct filling {
    const bench *with;
    gpuhal_memory *memory;
    uint64_t offset;
    _Atomic bool done;
    pthread_t thread;
} filling;

static void *fill_it(void *argument)
{
    filling *own = argument;
    expect_fine(own->with->ops.fill(own->with->devices[0], NULL, own->memory, own->offset, 64, 1, 1), own->with,
                "fill");
    own->done = true;
    return NULL;
}

static void wait_for_calls(const char *function, uint64_t calls)
{
    while (calls_of(function) < calls) {
        usleep(1000);
    }
}

/* Runs in a separate process. The process exits while a thread is inside the driver. */
static void expect_two_of_three(const void *what)
{
    (void)what;
    bench with = begin_on("devices 1; slow_us 1000000; hang " CALLED(StreamCreateWithPriority) " 2", 1);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 3 * 64});
    filling fills[3];
    for (int i = 0; i < 3; i++) {
        fills[i] = (filling){.with = &with, .memory = &memory, .offset = 64 * (uint64_t)i};
        assert_int_equal(pthread_create(&fills[i].thread, NULL, fill_it, &fills[i]), 0);
        wait_for_calls(i == 1 ? CALLED(StreamCreateWithPriority) : CALLED(MemsetD8Async), i == 0 ? 1 : 2);
    }
    assert_int_equal(pthread_join(fills[0].thread, NULL), 0);
    assert_int_equal(pthread_join(fills[2].thread, NULL), 0);
    assert_false(fills[1].done);
    assert_int_equal(calls_of(CALLED(StreamCreateWithPriority)), 3);
    expect_no_violation();
    remove_reports();
}

/* The driver hangs in the call that creates a second stream. */
TEST(a_driver_that_hangs_while_it_makes_a_stream_stops_only_the_caller_that_asked_for_it)
{
    assert_true(passes_in_child(expect_two_of_three, NULL));
}

/* ---- host memory that several callers have page-locked */

static gpuhal_alloc import_of(void *memory, uint64_t bytes)
{
    return (gpuhal_alloc){.bytes = bytes, .handle = {.kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = memory}};
}

/* The device writes to the shared memory and copies its bytes to device memory. */
static void expect_transfers(const bench *with, uint32_t index, const gpuhal_memory *shared, unsigned char value)
{
    gpuhal_memory memory = allocate(with, index, (gpuhal_alloc){.bytes = 4096});
    gpuhal_plugin_queue *queue = queue_on(with, index);
    gpuhal_plugin_event *event = event_on(with, index);
    unsigned char got[4096] = {0};
    expect_fine(with->ops.fill(with->devices[index], queue, shared, 0, 4096, value, 1), with, "fill");
    expect_fine(with->ops.copy(with->devices[index], queue, &memory, 0, shared, 0, 4096), with, "copy");
    expect_fine(with->ops.queues->event_record(queue, event), with, "event_record");
    expect_fine(with->ops.queues->event_block(event, 10000 * MS_NS), with, "event_block");
    expect_fine(with->ops.read(with->devices[index], NULL, got, &memory, 0, 4096), with, "read");
    assert_int_equal(got[0] + got[4095], 2 * value);
    assert_int_equal(((unsigned char *)shared->host)[4095], value);
    with->ops.queues->event_destroy(event);
    with->ops.queues->queue_destroy(queue);
    with->ops.release(with->devices[index], &memory);
}

TEST(two_devices_import_the_same_host_memory_and_each_keeps_it_when_the_other_lets_go)
{
    for (uint32_t first = 0; first < 2; first++) {
        use_machine("devices 2");
        bench with;
        begin(&with, 2);
        char *own = aligned_alloc(4096, 16384);
        gpuhal_memory whole = allocate(&with, first, import_of(own, 16384)),
                      part = allocate(&with, 1 - first, import_of(own + 4096, 4096));
        assert_ptr_equal(part.host, own + 4096);
        assert_int_equal(fake_report_get()->registrations, 1);
        expect_transfers(&with, first, &whole, 0x11);
        expect_transfers(&with, 1 - first, &part, 0x22);
        with.ops.release(with.devices[first], &whole);
        assert_int_equal(fake_report_get()->registrations, 1);
        expect_transfers(&with, 1 - first, &part, 0x33);
        with.plugin->close(
            with.devices[first]); /* the context that registered the memory is still in use by the other device */
        with.devices[first] = NULL;
        expect_transfers(&with, 1 - first, &part, 0x44);
        with.ops.release(with.devices[1 - first], &part);
        assert_int_equal(fake_report_get()->registrations, 0);
        free(own);
        end(&with);
        expect_no_violation();
        assert_int_equal(alive(), 0);
    }
    expect_clean();
}

TEST(registrations_and_imports_of_the_same_memory_are_counted_together)
{
    bench with = begin_on("devices 2", 2);
    char *own = aligned_alloc(4096, 16384);
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_alloc overlapping = import_of(own + 4096, 12288);
    overlapping.size = sizeof overlapping;
    expect_fine(with.ops.register_host(with.devices[0], own, 8192), &with, "register_host");
    expect_fine(with.ops.register_host(with.devices[1], own, 8192), &with, "register_host");
    gpuhal_memory part = allocate(&with, 1, import_of(own, 4096));
    assert_int_equal(with.ops.allocate(with.devices[1], &overlapping, &memory), GPUHAL_ERROR_BUSY);
    expect_fine(with.ops.unregister_host(with.devices[0], own), &with, "unregister_host");
    expect_fine(with.ops.unregister_host(with.devices[1], own), &with, "unregister_host");
    assert_int_equal(fake_report_get()->registrations, 1);
    expect_transfers(&with, 1, &part, 0x55);
    with.ops.release(with.devices[1], &part);
    assert_int_equal(fake_report_get()->registrations, 0);
    assert_int_equal(with.ops.unregister_host(with.devices[1], own), GPUHAL_ERROR_INVALID_ARGUMENT);
    memory = allocate(&with, 1, import_of(own + 4096, 12288));
    with.ops.release(with.devices[1], &memory);
    free(own);
    end_clean(&with);
}

TEST(memory_that_the_engine_registered_is_busy_and_stays_the_engines)
{
    bench with = begin_on("devices 1", 1);
    char *own = aligned_alloc(4096, 8192);
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_alloc alloc = import_of(own, 8192);
    alloc.size = sizeof alloc;
    assert_true(engine_locks(own, 8192));
    assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_BUSY);
    assert_int_equal(with.ops.register_host(with.devices[0], own, 4096), GPUHAL_ERROR_BUSY);
    assert_int_equal(with.ops.register_host(with.devices[0], own + 4096, 4096), GPUHAL_ERROR_BUSY);
    assert_true(engine_unlocks(own));
    gpuhal_memory imported = allocate(&with, 0, import_of(own, 8192));
    with.ops.release(with.devices[0], &imported);
    assert_true(engine_locks(own, 8192));
    assert_true(engine_unlocks(own));
    free(own);
    end_clean(&with);
}

/* The engine registered only a page in the middle, so the driver knows neither the first page nor the last. */
TEST(memory_around_a_piece_that_the_engine_registered_is_busy_and_that_stays_the_engines)
{
    bench with = begin_on("devices 1", 1);
    char *own = aligned_alloc(4096, 16384);
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_alloc alloc = import_of(own, 16384);
    alloc.size = sizeof alloc;
    assert_true(engine_locks(own + 4096, 4096));
    assert_int_equal(with.ops.register_host(with.devices[0], own, 16384), GPUHAL_ERROR_BUSY);
    assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_BUSY);
    assert_int_equal(fake_report_get()->registrations, 1);
    gpuhal_memory behind = allocate(&with, 0, import_of(own + 8192, 8192));
    with.ops.release(with.devices[0], &behind);
    assert_true(engine_unlocks(own + 4096));
    gpuhal_memory whole = allocate(&with, 0, import_of(own, 16384));
    with.ops.release(with.devices[0], &whole);
    free(own);
    end_clean(&with);
}

typedef struct importing {
    const bench *with;
    uint32_t index, number;
    char *own;
    pthread_t thread;
} importing;

static void *import_often(void *argument)
{
    const importing *own = argument;
    for (int i = 0; i < 200; i++) {
        gpuhal_memory memory = allocate(own->with, own->index, import_of(own->own, 8192));
        ((char *)memory.host)[own->number] = 1;
        own->with->ops.release(own->with->devices[own->index], &memory);
    }
    return NULL;
}

TEST(threads_that_import_the_same_memory_at_once_all_get_it)
{
    bench with = begin_on("devices 2", 2);
    importing all[4];
    char *own = aligned_alloc(4096, 16384);
    gpuhal_memory whole = allocate(&with, 0, import_of(own, 16384));
    for (uint32_t i = 0; i < 4; i++) {
        all[i] = (importing){.with = &with, .index = i % 2, .number = i, .own = own};
        assert_int_equal(pthread_create(&all[i].thread, NULL, import_often, &all[i]), 0);
    }
    with.ops.release(with.devices[0], &whole);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    }
    free(own);
    end_clean(&with);
}

/* ---- a reset on a machine with one device */

/* Without a check the CPU would access memory that no longer exists. */
TEST(page_locked_memory_that_a_reset_took_is_not_touched_by_blocking_copies)
{
    bench with = begin_on("devices 1", 1);
    gpuhal_memory host = allocate(&with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_UPLOAD, .bytes = 8192}),
                  other = allocate(&with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_READBACK, .bytes = 8192});
    char bytes[8192] = {0};
    const gpuhal_plugin_rect to = {.memory = &host, .row_pitch = 64, .slice_pitch = 4096},
                             from = {.memory = &other, .row_pitch = 64, .slice_pitch = 4096};
    expect_fine(with.ops.write(with.devices[0], NULL, &host, 0, bytes, 8192), &with, "write");
    reset_by_engine();
    assert_int_equal(with.ops.write(with.devices[0], NULL, &host, 0, bytes, 8192), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.read(with.devices[0], NULL, bytes, &other, 0, 8192), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.copy(with.devices[0], NULL, &host, 0, &other, 0, 8192), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.fill(with.devices[0], NULL, &host, 0, 8192, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.copy_rect(with.devices[0], NULL, &to, &from, (uint64_t[3]){32, 4, 1}),
                     GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_ERROR_DEVICE_LOST);
    with.ops.release(with.devices[0], &host);
    with.ops.release(with.devices[0], &other);
    end_clean(&with);
}

/* After the reset a new opening of the device has registered the same memory again. When the old opening gives its
 * memory back, the plugin must not undo this registration. */
TEST(a_registration_that_a_reset_took_is_neither_shared_nor_given_back)
{
    bench with = begin_on("devices 1", 1);
    char *own = aligned_alloc(4096, 4096);
    gpuhal_memory imported = allocate(&with, 0, import_of(own, 4096));
    expect_fine(with.ops.register_host(with.devices[0], own, 4096), &with, "register_host");
    reset_by_engine();
    assert_int_equal(with.ops.fill(with.devices[0], NULL, &imported, 0, 64, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_plugin_device *old = with.devices[0];
    expect_fine(open_device(&with, 0, NULL), &with, "open");
    gpuhal_memory again = allocate(&with, 0, import_of(own, 4096));
    expect_transfers(&with, 0, &again, 0x66);
    with.ops.release(old, &imported);
    expect_fine(with.ops.unregister_host(old, own), &with, "unregister_host");
    expect_transfers(&with, 0, &again, 0x77);
    with.ops.release(with.devices[0], &again);
    assert_int_equal(fake_report_get()->registrations, 0);
    with.plugin->close(old);
    free(own);
    end_clean(&with);
}

#include "test_main.h"
