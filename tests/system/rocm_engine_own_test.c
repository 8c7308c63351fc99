/* Tests the slots of the ROCm plugin with the fake runtime and an engine in the same process: HIP's particular rules
 * for event queries, device resets and exported memory. vendor_engine_test.c has the tests that also apply to CUDA. */
#include "bench.h"
#include "support/process.h"

#include <fcntl.h>
#include <pthread.h>

/* ---- events */

typedef struct blocked {
    const bench *with;
    gpuhal_plugin_event *event;
    gpuhal_status status;
    _Atomic bool done;
} blocked;

static void *block_on_it(void *argument)
{
    blocked *own = argument;
    own->status = own->with->ops.queues->event_block(own->event, 60000 * MS_NS);
    own->done = true;
    return NULL;
}

TEST(an_event_can_be_asked_for_and_waited_for_by_queues_while_a_thread_is_blocked_on_it)
{
    bench with = begin_on("devices 1; slow_us 1000000", 1);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = queue_on(&with, 0), *other = queue_on(&with, 0);
    blocked own = {.with = &with, .event = event_on(&with, 0)};
    expect_fine(with.ops.fill(with.devices[0], queue, &memory, 0, 64, 1, 1), &with, "fill");
    expect_fine(with.ops.queues->event_record(queue, own.event), &with, "event_record");
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, block_on_it, &own), 0);
    while (calls_of("hipEventSynchronize") == 0) {
        usleep(1000);
    }
    assert_int_equal(with.ops.queues->event_query(own.event), GPUHAL_NOT_READY);
    expect_fine(with.ops.queues->queue_wait(other, own.event), &with, "queue_wait");
    assert_false(own.done);
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect_fine(own.status, &with, "event_block");
    assert_int_equal(with.ops.queues->event_query(own.event), GPUHAL_OK);
    with.ops.queues->event_destroy(own.event);
    with.ops.queues->queue_destroy(other);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    end_clean(&with);
}

TEST(a_queue_goes_with_its_stream_once_its_event_was_recorded_elsewhere)
{
    bench with = begin_on("devices 1", 1);
    gpuhal_plugin_queue *queue = queue_on(&with, 0), *next = queue_on(&with, 0);
    gpuhal_plugin_event *event = event_on(&with, 0);
    expect_fine(with.ops.queues->event_record(queue, event), &with, "event_record");
    expect_fine(with.ops.queues->event_record(next, event), &with, "event_record");
    const unsigned streams = fake_report_get()->streams;
    with.ops.queues->queue_destroy(queue);
    assert_int_equal(fake_report_get()->streams, streams - 1);
    expect_fine(with.ops.queues->event_block(event, 1000 * MS_NS), &with, "event_block");
    with.ops.queues->event_destroy(event);
    with.ops.queues->queue_destroy(next);
    end_clean(&with);
}

/* ---- devices */

/* After the reset the event's memory may belong to another object. The runtime would also dereference the stream in
 * which the event was recorded. */
TEST(objects_of_a_device_that_the_engine_reset_are_not_used_by_another)
{
    bench with = begin_on("devices 2", 2);
    const vendor_api api = load_api();
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64}),
                  other = allocate(&with, 1, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = queue_on(&with, 0), *others = queue_on(&with, 1);
    gpuhal_plugin_event *event = event_on(&with, 1);
    expect_fine(with.ops.queues->event_record(others, event), &with, "event_record");
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    assert_int_equal(api.hipDeviceReset(), hipSuccess);
    assert_int_equal(api.hipSetDevice(0), hipSuccess);
    assert_int_equal(with.ops.peers->peer_copy(queue, with.devices[0], &memory, 0, with.devices[1], &other, 0, 64),
                     GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.queues->queue_wait(queue, event), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(calls_of("hipMemcpyPeerAsync") + calls_of("hipStreamWaitEvent"), 0);
    expect_fine(with.ops.fill(with.devices[0], queue, &memory, 0, 64, 1, 1), &with, "fill");
    finish(&with, queue);
    with.ops.queues->event_destroy(event);
    with.ops.queues->queue_destroy(others);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[1], &other);
    with.ops.release(with.devices[0], &memory);
    end(&with);
    expect_no_violation();
    remove_reports();
}

/* The engine's next streams reuse the addresses of the plugin's destroyed streams, and the plugin must not use the
 * engine's streams. */
static void expect_reset_noticed(int major)
{
    use_machine("devices 1");
    use_runtime("", major);
    bench with;
    begin(&with, 1);
    const vendor_api api = load_api();
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    assert_int_equal(api.hipDeviceReset(), hipSuccess);
    hipStream_t streams[2] = {engine_stream(&api), engine_stream(&api)};
    assert_int_equal(with.ops.fill(with.devices[0], queue, &memory, 0, 64, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    end(&with);
    assert_int_equal(fake_report_get()->streams, 2);
    assert_int_equal(api.hipStreamDestroy(streams[0]) + api.hipStreamDestroy(streams[1]), 0);
    expect_clean();
}

TEST(a_reset_is_noticed_even_if_new_streams_have_our_old_addresses_in_hip_6)
{
    expect_reset_noticed(6);
}

TEST(a_reset_is_noticed_even_if_new_streams_have_our_old_addresses_in_hip_7)
{
    expect_reset_noticed(7);
}

/* The engine may have allocated at the same address after the reset, so the plugin must not free the memory. */
TEST(memory_that_a_reset_took_is_not_freed_a_second_time)
{
    bench with = begin_on("devices 1", 1);
    const vendor_api api = load_api();
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    assert_int_equal(api.hipDeviceReset(), hipSuccess);
    with.ops.release(with.devices[0], &memory);
    assert_int_equal(calls_of("hipFree"), 0);
    end(&with);
    assert_int_equal(calls_of("hipStreamDestroy"), 0);
    expect_clean();
}

TEST(a_stream_that_the_engine_destroyed_costs_its_queue_and_not_the_device)
{
    bench with = begin_on("devices 1", 1);
    const vendor_api api = load_api();
    hipStream_t stream = engine_stream(&api);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_HIP_STREAM, .values = {(uintptr_t)stream}};
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(with.ops.queues->queue_create(with.devices[0], QUEUE_DESC(.adopt = &native), &queue), &with,
                "queue_create");
    assert_int_equal(api.hipStreamDestroy(stream), hipSuccess);
    assert_int_equal(with.ops.fill(with.devices[0], queue, &memory, 0, 64, 1, 1), GPUHAL_ERROR_DRIVER);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    expect_fine(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 1, 1), &with, "fill");
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    end(&with);
    assert_int_equal(alive(), 0);
    remove_reports(); /* the engine itself used a destroyed stream */
}

/* ---- last errors */

TEST(an_error_that_the_engine_has_not_asked_for_yet_survives_a_question_for_an_event)
{
    bench with = begin_on("devices 1; slow_us 50000", 1);
    const vendor_api api = load_api();
    void *nothing = NULL;
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_event *event = event_on(&with, 0);
    gpuhal_status asked = GPUHAL_OK; /* on a stalled machine the work may already have ended */
    for (int i = 0; i < 20 && asked == GPUHAL_OK; i++) {
        expect_fine(with.ops.fill(with.devices[0], queue, &memory, 0, 64, 1, 1), &with, "fill");
        expect_fine(with.ops.queues->event_record(queue, event), &with, "event_record");
        assert_int_equal(api.hipMalloc(&nothing, SIZE_MAX / 2), hipErrorOutOfMemory);
        asked = with.ops.queues->event_query(event);
    }
    assert_int_equal(asked, GPUHAL_NOT_READY);
    assert_int_equal(api.hipGetLastError(), hipErrorOutOfMemory);
    with.ops.queues->event_destroy(event);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    end_clean(&with);
}

/* ---- exported objects */

/* Checks that the plugin passes the descriptor as each version expects it. A runtime that expects a pointer to the
 * descriptor crashes if it gets the descriptor itself. */
static void expect_import(const char *machine, bool by_0)
{
    bench with = begin_on(machine, 1);
    unsigned char sent = 0x5a, got = 0;
    gpuhal_memory from =
        allocate(&with, 0, (gpuhal_alloc){.bytes = 4096, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD});
    gpuhal_handle handle = {0};
    uint64_t offset = 0;
    expect_fine(with.ops.export_memory(with.devices[0], &from, GPUHAL_HANDLE_OPAQUE_FD, &handle, &offset), &with,
                "export");
    if (by_0) {
        assert_int_equal(dup2((int)handle.as.os, 0), 0);
        assert_int_equal(close((int)handle.as.os), 0);
        handle.as.os = 0;
    }
    gpuhal_memory to = allocate(&with, 0, (gpuhal_alloc){.bytes = 4096, .handle = handle, .import_offset = offset});
    expect_fine(with.ops.write(with.devices[0], NULL, &from, 9, &sent, 1), &with, "write");
    expect_fine(with.ops.read(with.devices[0], NULL, &got, &to, 9, 1), &with, "read");
    assert_int_equal(got, sent);
    assert_int_equal(calls_of("hipImportExternalMemory"), 0);
    with.ops.release(with.devices[0], &to);
    with.ops.release(with.devices[0], &from);
    end_clean(&with);
}

TEST(memory_is_taken_in_by_a_runtime_that_wants_a_pointer_to_the_descriptor)
{
    expect_import("devices 1; driver 70051831", false);
}

TEST(memory_is_taken_in_by_a_runtime_that_wants_the_descriptor_itself)
{
    expect_import("devices 1; driver 70125424", false);
}

/* A program that has closed its standard input may get descriptor 0. */
TEST(memory_is_taken_in_by_descriptor_0_which_the_runtime_takes_for_none)
{
    expect_import("devices 1; driver 70125424", true);
}

TEST(memory_of_another_api_leaves_no_descriptor_open)
{
    bench with = begin_on("devices 1", 1);
    char name[] = "/tmp/gpuhal-external-XXXXXX";
    const int file = mkstemp(name);
    assert_true(file >= 0 && unlink(name) == 0 && ftruncate(file, 65536) == 0);
    size_t before = 0;
    for (int i = 0; i < 3; i++) {
        const gpuhal_handle handle = {.kind = GPUHAL_HANDLE_OPAQUE_FD, .as.os = dup(file)};
        gpuhal_memory memory =
            allocate(&with, 0, (gpuhal_alloc){.bytes = 4096, .handle = handle, .import_offset = 4096});
        with.ops.release(with.devices[0], &memory);
        before = before ? before : count_descriptors();
    }
    assert_int_equal(count_descriptors(), before);
    close(file);
    end_clean(&with);
}

#include "test_main.h"
