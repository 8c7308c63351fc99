/* The CUDA plugin over the fake driver, slot by slot, beside an engine that does what engines do in the same process: it captures
 * graphs, resets devices, loses one of two, and hands over memory and streams of every kind. */
#include "cuda_bench.h"

#include <pthread.h>

static CUcontext context_of(const bench *with, uint32_t index)
{
    gpuhal_native native = {.size = sizeof native};
    expect_fine(with->ops.native_device(with->devices[index], &native), with, "native_device");
    return (CUcontext)(uintptr_t)native.values[0];
}

/* A stream of the engine in the context of device 0, which is current afterwards. */
static CUstream engine_stream(const driver *api, CUcontext context)
{
    CUstream stream;
    assert_int_equal(api->cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    assert_int_equal(api->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return stream;
}

static void drop_engine_stream(const driver *api, CUstream stream)
{
    CUcontext context;
    assert_int_equal(api->cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(api->cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
}

/* ---- graphs */

/* Allocates, copies, asks and waits. */
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
    expect_fine(with->ops.event_record(queue, event), with, "event_record");
    assert_true(with->ops.event_query(event) >= 0);
    expect_fine(with->ops.event_block(event, 10000 * MS_NS), with, "event_block");
    with->ops.event_destroy(event);
    with->ops.queue_destroy(queue);
    expect_fine(with->ops.unregister_host(with->devices[0], own), with, "unregister_host");
    with->ops.release(with->devices[0], &host);
    with->ops.release(with->devices[0], &memory);
    free(own);
    return NULL;
}

TEST(a_graph_that_the_engine_captures_is_not_spoiled_by_any_call_on_any_thread)
{
    use_machine("devices 1");
    bench with;
    begin(&with, 1);
    const driver api = load_driver();
    CUstream stream = engine_stream(&api, context_of(&with, 0));
    CUgraph graph;
    pthread_t thread;
    assert_int_equal(api.cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
    (void)use_everything(&with);
    assert_int_equal(pthread_create(&thread, NULL, use_everything, &with), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CUstreamCaptureMode mode = 0;
    assert_int_equal(api.cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    assert_int_equal(mode, 0); /* as the engine had it */
    drop_engine_stream(&api, stream);
    end(&with);
    expect_clean();
}

TEST(calls_that_come_after_an_adopted_stream_are_busy_while_it_is_captured)
{
    use_machine("devices 1");
    bench with;
    start(&with);
    const driver api = load_driver();
    CUcontext context;
    assert_int_equal(api.cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    CUstream stream = engine_stream(&api, context);
    CUgraph graph;
    const gpuhal_native whole = {
        .size = sizeof whole, .type = GPUHAL_NATIVE_CUDA_DEVICE, .values = {(uintptr_t)context, 0, (uintptr_t)stream}};
    const gpuhal_native part = {.size = sizeof part, .type = GPUHAL_NATIVE_CUDA_STREAM, .values = {(uintptr_t)stream}};
    expect_fine(open_device(&with, 0, &whole), &with, "open");
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(with.ops.queue_create(with.devices[0], 0, 0, &part, &queue), &with, "queue_create");
    gpuhal_plugin_event *event = event_on(&with, 0);
    assert_int_equal(api.cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
    assert_int_equal(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 1, 1), GPUHAL_ERROR_BUSY);
    assert_int_equal(with.ops.event_record(queue, event), GPUHAL_ERROR_BUSY);
    assert_int_equal(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    expect_fine(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 1, 1), &with, "fill");
    expect_fine(with.ops.event_record(queue, event), &with, "event_record");
    with.ops.event_destroy(event);
    with.ops.queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    end(&with);
    drop_engine_stream(&api, stream);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    expect_clean();
}

TEST(no_event_is_recorded_into_a_graph_that_the_engine_captures_by_native_access)
{
    use_machine("devices 1");
    bench with;
    begin(&with, 1);
    const driver api = load_driver();
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_event *event = event_on(&with, 0);
    gpuhal_native native = {.size = sizeof native};
    expect_fine(with.ops.native_queue(queue, &native), &with, "native_queue");
    CUstream stream = (CUstream)(uintptr_t)native.values[0];
    CUgraph graph;
    assert_int_equal(api.cuCtxPushCurrent_v2(context_of(&with, 0)), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
    assert_int_equal(with.ops.event_record(queue, event), GPUHAL_ERROR_BUSY);
    assert_int_equal(api.cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    CUcontext context;
    assert_int_equal(api.cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    expect_fine(with.ops.event_record(queue, event), &with, "event_record");
    with.ops.event_destroy(event);
    with.ops.queue_destroy(queue);
    end(&with);
    expect_clean();
}

/* ---- contexts */

TEST(after_the_engine_reset_the_device_its_openings_are_lost_and_a_new_one_works)
{
    use_machine("devices 1");
    bench with;
    begin(&with, 1);
    const driver api = load_driver();
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    assert_int_equal(api.cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    assert_int_equal(with.ops.fill(with.devices[0], NULL, &memory, 0, 64, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_plugin_device *old = with.devices[0];
    expect_fine(open_device(&with, 0, NULL), &with, "open");
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    assert_int_equal(with.ops.query_health(old), GPUHAL_ERROR_DEVICE_LOST);
    (void)use_everything(&with);
    with.ops.release(old, &memory);
    with.plugin->close(old);
    (void)use_everything(&with);
    end(&with);
    expect_clean();
}

TEST(a_peer_whose_device_is_lost_does_not_take_the_other_one_with_it)
{
    use_machine("devices 2; lose 1 cuMemsetD8Async 1 700");
    bench with;
    begin(&with, 2);
    gpuhal_memory here = allocate(&with, 0, (gpuhal_alloc){.bytes = 64}), there = allocate(&with, 1, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = queue_on(&with, 1);
    expect_fine(with.ops.fill(with.devices[1], queue, &there, 0, 64, 1, 1), &with, "fill");
    gpuhal_native stream = {.size = sizeof stream};
    expect_fine(with.ops.native_queue(queue, &stream), &with, "native_queue");
    const driver api = load_driver();
    CUcontext context = context_of(&with, 1);
    assert_int_equal(api.cuCtxPushCurrent_v2(context), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamSynchronize((CUstream)(uintptr_t)stream.values[0]), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(api.cuCtxPopCurrent_v2(&context), CUDA_SUCCESS);
    for (int i = 0; i < 2; i++) { /* the driver says so; from then on it is known */
        assert_int_equal(with.ops.peer_copy(NULL, with.devices[0], &here, 0, with.devices[1], &there, 0, 64),
                         GPUHAL_ERROR_DEVICE_LOST);
        assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
        assert_int_equal(with.ops.query_health(with.devices[1]), GPUHAL_ERROR_DEVICE_LOST);
    }
    assert_int_equal(calls_of("cuMemcpyPeerAsync"), 1);
    expect_fine(with.ops.fill(with.devices[0], NULL, &here, 0, 64, 1, 2), &with, "fill of the other device");
    with.ops.queue_destroy(queue);
    with.ops.release(with.devices[0], &here);
    with.ops.release(with.devices[1], &there);
    end(&with);
    remove_reports();
}

/* ---- what is handed over */

TEST(the_stream_of_a_thread_is_no_stream_that_threads_can_share)
{
    use_machine("devices 1");
    bench with;
    begin(&with, 1);
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_device *device = NULL;
    gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_CUDA_STREAM, .values = {2}};
    assert_int_equal(with.ops.queue_create(with.devices[0], 0, 0, &native, &queue), GPUHAL_ERROR_INVALID_ARGUMENT);
    native.values[0] = 1;
    expect_fine(with.ops.queue_create(with.devices[0], 0, 0, &native, &queue), &with, "queue_create");
    with.ops.queue_destroy(queue);
    native = (gpuhal_native){.size = sizeof native, .type = GPUHAL_NATIVE_CUDA_DEVICE};
    native.values[0] = (uintptr_t)context_of(&with, 0);
    native.values[2] = 2;
    assert_int_equal(with.plugin->open(gpuhal_direct_host(), with.instance, 0, &native, &device, &with.ops),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    end(&with);
    expect_clean();
}

TEST(memory_of_an_allocator_that_grows_in_place_is_wrapped_over_all_its_pieces)
{
    use_machine("devices 1");
    bench with;
    begin(&with, 1);
    uint64_t piece = 0;
    gpuhal_memory range_memory = {.size = sizeof range_memory}, wrapped = {.size = sizeof wrapped};
    gpuhal_plugin_range *range = NULL;
    expect_fine(with.ops.range_granularity(with.devices[0], &piece), &with, "range_granularity");
    expect_fine(with.ops.range_reserve(with.devices[0], 4 * piece, &range_memory, &range), &with, "range_reserve");
    for (uint64_t i = 0; i < 3; i++) {
        expect_fine(with.ops.range_commit(range, i * piece, piece, NULL, 0), &with, "range_commit");
    }
    gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_CUDA_MEMORY, .values = {range_memory.address + 100}};
    const uint64_t most = 3 * piece - 100;
    assert_int_equal(with.ops.wrap_memory(with.devices[0], &native, most + 1, &wrapped), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(with.ops.wrap_memory(with.devices[0], &native, UINT64_MAX, &wrapped), GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_fine(with.ops.wrap_memory(with.devices[0], &native, most, &wrapped), &with, "wrap_memory");
    unsigned char *sent = pattern_of(3, most), *got = pattern_of(4, most);
    expect_fine(with.ops.write(with.devices[0], NULL, &wrapped, 0, sent, most), &with, "write");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &wrapped, 0, most), &with, "read");
    assert_memory_equal(got, sent, most);
    free(sent);
    free(got);
    with.ops.release(with.devices[0], &wrapped);
    with.ops.range_release(range);
    end(&with);
    expect_clean();
}

TEST(page_locked_memory_that_the_system_does_not_give_is_memory_of_the_host)
{
    use_machine("devices 1; fail cuMemHostAlloc 1 2; fail cuMemHostRegister_v2 1 2");
    bench with;
    begin(&with, 1);
    unsigned char *own = aligned_alloc(4096, 4096);
    gpuhal_memory memory = {.size = sizeof memory};
    const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = GPUHAL_MEMORY_UPLOAD, .bytes = 4096};
    assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_HOST_MEMORY);
    assert_int_equal(with.ops.register_host(with.devices[0], own, 4096), GPUHAL_ERROR_HOST_MEMORY);
    (void)use_everything(&with);
    free(own);
    end(&with);
    expect_clean();
}

#include "test_main.h"
