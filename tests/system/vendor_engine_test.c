/* Tests the slots of a vendor's plugin with its fake and a typical engine in the same process. The engine captures
 * graphs, resets devices, loses one of two devices, and passes streams of every kind. rocm_engine_own_test.c tests what
 * is specific to HIP. */
#include "bench.h"

#include <pthread.h>

static gpuhal_native whole_of(const bench *with, uint64_t stream)
{
    gpuhal_native native = {.size = sizeof native};
    expect_fine(with->ops.native->native_device(with->devices[0], &native), with, "native_device");
    native.values[2] = stream;
    return native;
}

static gpuhal_native part_of(uint64_t stream)
{
    return (gpuhal_native){.size = sizeof(gpuhal_native),
                           .type = OF(GPUHAL_NATIVE_CUDA_STREAM, GPUHAL_NATIVE_HIP_STREAM),
                           .values = {stream}};
}

/* ---- graphs */

static void *use_everything(void *argument)
{
    const bench *with = argument;
    unsigned char byte = 0x5a, got = 0, *own = aligned_alloc(4096, 4096);
    gpuhal_memory memory = allocate(with, 0, (gpuhal_alloc){.bytes = 4096});
    gpuhal_memory host = allocate(with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_UPLOAD, .bytes = 4096});
    expect_fine(with->ops.register_host(with->devices[0], own, 4096), with, "register_host");
    expect_fine(with->ops.write(with->devices[0], NULL, &memory, 7, &byte, 1), with, "write");
    expect_fine(with->ops.read(with->devices[0], NULL, &got, &memory, 7, 1), with, "read");
    assert_int_equal(got, byte);
    gpuhal_plugin_queue *queue = queue_on(with, 0);
    gpuhal_plugin_event *event = event_on(with, 0);
    expect_fine(with->ops.queues->event_record(queue, event), with, "event_record");
    assert_true(with->ops.queues->event_query(event) >= 0);
    expect_fine(with->ops.queues->event_block(event, 10000 * MS_NS), with, "event_block");
    with->ops.queues->event_destroy(event);
    with->ops.queues->queue_destroy(queue);
    expect_fine(with->ops.unregister_host(with->devices[0], own), with, "unregister_host");
    with->ops.release(with->devices[0], &host);
    with->ops.release(with->devices[0], &memory);
    free(own);
    return NULL;
}

TEST(a_graph_that_the_engine_captures_is_not_spoiled_by_any_call_on_any_thread)
{
    bench with = begin_on("devices 1", 1);
    engine own = engine_begin(0);
    vendor_stream stream = engine_stream(&own.api);
    vendor_graph graph = NULL;
    pthread_t thread;
    assert_int_equal(own.api.VENDOR(StreamBeginCapture)(stream, 0), FAKE_OK);
    (void)use_everything(&with);
    assert_int_equal(pthread_create(&thread, NULL, use_everything, &with), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(own.api.VENDOR(StreamEndCapture)(stream, &graph), FAKE_OK);
    unsigned mode = 0;
    assert_int_equal(own.api.VENDOR(ThreadExchangeStreamCaptureMode)(&mode), FAKE_OK);
    assert_int_equal(mode, 0); /* the engine's own setting */
    assert_int_equal(own.api.VENDOR(StreamDestroy)(stream), FAKE_OK);
    engine_end(&own);
    end_clean(&with);
}

TEST(calls_that_come_after_an_adopted_stream_are_busy_while_it_is_captured)
{
    bench with = begin_on("devices 1", 1);
    engine own = engine_begin(0);
    vendor_stream stream = engine_stream(&own.api);
    vendor_graph graph = NULL;
    const gpuhal_native whole = whole_of(&with, (uintptr_t)stream), part = part_of((uintptr_t)stream);
    with.plugin->close(with.devices[0]);
    expect_fine(open_device(&with, 0, &whole), &with, "open");
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(with.ops.queues->queue_create(with.devices[0], QUEUE_DESC(.adopt = &part), &queue), &with,
                "queue_create");
    gpuhal_plugin_event *event = event_on(&with, 0);
    assert_int_equal(own.api.VENDOR(StreamBeginCapture)(stream, 0), FAKE_OK);
    assert_int_equal(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 1, 1), GPUHAL_ERROR_BUSY);
    assert_int_equal(with.ops.queues->event_record(queue, event), GPUHAL_ERROR_BUSY);
    assert_int_equal(own.api.VENDOR(StreamEndCapture)(stream, &graph), FAKE_OK);
    expect_fine(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 1, 1), &with, "fill");
    expect_fine(with.ops.queues->event_record(queue, event), &with, "event_record");
    with.ops.queues->event_destroy(event);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    end(&with);
    assert_int_equal(own.api.VENDOR(StreamDestroy)(stream), FAKE_OK);
    engine_end(&own);
    expect_clean();
}

TEST(no_event_is_recorded_into_a_graph_that_the_engine_captures_by_native_access)
{
    bench with = begin_on("devices 1", 1);
    engine own = engine_begin(0);
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_event *event = event_on(&with, 0);
    gpuhal_native native = {.size = sizeof native};
    expect_fine(with.ops.native->native_queue(queue, &native), &with, "native_queue");
    vendor_stream stream = (vendor_stream)(uintptr_t)native.values[0];
    vendor_graph graph = NULL;
    assert_int_equal(own.api.VENDOR(StreamBeginCapture)(stream, 0), FAKE_OK);
    assert_int_equal(with.ops.queues->event_record(queue, event), GPUHAL_ERROR_BUSY);
    assert_int_equal(own.api.VENDOR(StreamEndCapture)(stream, &graph), FAKE_OK);
    expect_fine(with.ops.queues->event_record(queue, event), &with, "event_record");
    with.ops.queues->event_destroy(event);
    with.ops.queues->queue_destroy(queue);
    engine_end(&own);
    end_clean(&with);
}

/* ---- devices */

TEST(after_the_engine_reset_the_device_its_openings_are_lost_and_a_new_one_works)
{
    bench with = begin_on("devices 1", 1);
    unsigned char *own = aligned_alloc(4096, 4096);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    gpuhal_memory shared =
        allocate(&with, 0, (gpuhal_alloc){.bytes = 64, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    expect_fine(with.ops.register_host(with.devices[0], own, 4096), &with, "register_host");
    reset_by_engine();
    assert_int_equal(with.ops.fill(with.devices[0], queue, &memory, 0, 64, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_plugin_device *old = with.devices[0];
    expect_fine(open_device(&with, 0, NULL), &with, "open");
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    assert_int_equal(with.ops.query_health(old), GPUHAL_ERROR_DEVICE_LOST);
    (void)use_everything(&with);
    expect_fine(with.ops.unregister_host(old, own), &with, "unregister_host");
    with.ops.queues->queue_destroy(queue);
    with.ops.release(old, &shared);
    with.ops.release(old, &memory);
    with.plugin->close(old);
    (void)use_everything(&with);
    free(own);
    end(&with);
    expect_no_violation();
    remove_reports();
}

TEST(a_peer_whose_device_is_lost_does_not_take_the_other_one_with_it)
{
    bench with = begin_on("devices 2; lose 1 " CALLED(MemsetD8Async) " 1 700", 2);
    gpuhal_memory here = allocate(&with, 0, (gpuhal_alloc){.bytes = 64}),
                  there = allocate(&with, 1, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = queue_on(&with, 1);
    engine own = engine_begin(1);
    expect_fine(with.ops.fill(with.devices[1], queue, &there, 0, 64, 1, 1), &with, "fill");
    gpuhal_native stream = {.size = sizeof stream};
    expect_fine(with.ops.native->native_queue(queue, &stream), &with, "native_queue");
    assert_int_equal(own.api.VENDOR(StreamSynchronize)((vendor_stream)(uintptr_t)stream.values[0]),
                     FAKE_ERROR_ILLEGAL_ADDRESS);
    engine_end(&own);
    for (int i = 0; i < 2; i++) { /* in the second round the plugin already knows of the loss */
        assert_int_equal(with.ops.peers->peer_copy(NULL, with.devices[0], &here, 0, with.devices[1], &there, 0, 64),
                         GPUHAL_ERROR_DEVICE_LOST);
        assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
        assert_int_equal(with.ops.query_health(with.devices[1]), GPUHAL_ERROR_DEVICE_LOST);
    }
    assert_int_equal(calls_of(CALLED(MemcpyPeerAsync)), 1);
    expect_fine(with.ops.fill(with.devices[0], NULL, &here, 0, 64, 1, 2), &with, "fill of the other device");
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &here);
    with.ops.release(with.devices[1], &there);
    end(&with);
    remove_reports();
}

/* ---- handles of the engine */

static void expect_no_stream(const bench *with, uint64_t name)
{
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_device *device = NULL;
    gpuhal_ops ops = {.size = sizeof ops};
    const gpuhal_native whole = whole_of(with, name), part = part_of(name);
    assert_int_equal(with->ops.queues->queue_create(with->devices[0], QUEUE_DESC(.adopt = &part), &queue),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(with->plugin->open(gpuhal_direct_host(), with->instance, 0, &whole, &device, &ops),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
}

TEST(the_stream_of_a_thread_is_no_stream_that_threads_can_share)
{
    bench with = begin_on("devices 1", 1);
    expect_no_stream(&with, 2);
    end_clean(&with);
}

/* The real HIP does not check this handle; it dereferences it as a pointer. */
TEST(the_name_of_the_default_stream_is_a_stream_of_cuda_alone)
{
    bench with = begin_on("devices 1", 1);
#ifdef GPUHAL_CUDA_PLUGIN
    const gpuhal_native part = part_of(1);
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(with.ops.queues->queue_create(with.devices[0], QUEUE_DESC(.adopt = &part), &queue), &with,
                "queue_create");
    with.ops.queues->queue_destroy(queue);
#else
    expect_no_stream(&with, 1);
#endif
    end_clean(&with);
}

TEST(page_locked_memory_that_the_system_does_not_give_is_memory_of_the_host)
{
    use_machine("devices 1; fail " CALLED(HostAlloc) " 1 2; fail " CALLED(HostRegister) " 1 2" OF(
        "", "; fail hipHostRegister 2 1")); /* HIP has two error codes for this failure */
    bench with;
    begin(&with, 1);
    unsigned char *own = aligned_alloc(4096, 4096);
    gpuhal_memory memory = {.size = sizeof memory};
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = GPUHAL_MEMORY_UPLOAD, .bytes = 4096};
    assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_HOST_MEMORY);
    for (int i = 0; i < OF(1, 2); i++) {
        assert_int_equal(with.ops.register_host(with.devices[0], own, 4096), GPUHAL_ERROR_HOST_MEMORY);
    }
    (void)use_everything(&with);
    free(own);
    end_clean(&with);
}

#include "test_main.h"
