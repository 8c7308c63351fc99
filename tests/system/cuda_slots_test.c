/* The CUDA plugin over the fake driver, slot by slot (direct.h): queues, events, peers, programs, and the caller's
 * own context and stream. */
#include "cuda_bench.h"

/* ---- queues and events */

TEST(work_of_a_queue_goes_on_while_the_caller_does_and_its_time_is_measured)
{
    use_machine("devices 1; slow_us 200000");
    bench with;
    begin(&with, 1);
    gpuhal_memory host = allocate(&with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_UPLOAD, .bytes = 4096});
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 4096});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_event *before = event_on(&with, 0), *after = event_on(&with, 0);
    char got[8] = "";
    memcpy(host.host, "old", 4);
    expect_fine(with.ops.event_record(queue, before), &with, "event_record");
    expect_fine(with.ops.copy(with.devices[0], queue, &memory, 0, &host, 0, 4096), &with, "copy");
    expect_fine(with.ops.event_record(queue, after), &with, "event_record");
    expect_fine(with.ops.flush(queue), &with, "flush");
    assert_int_equal(with.ops.event_query(after), GPUHAL_NOT_READY);
    memcpy(host.host, "new", 4); /* the copy has not begun */
    expect_fine(with.ops.event_block(after, 10000 * MS_NS), &with, "event_block");
    assert_int_equal(with.ops.event_query(after), GPUHAL_OK);
    uint64_t took = 0;
    expect_fine(with.ops.elapsed(before, after, &took), &with, "elapsed");
    assert_true(took >= 199 * MS_NS && took < 5000 * MS_NS);
    expect_fine(with.ops.read(with.devices[0], NULL, got, &memory, 0, 4), &with, "read");
    assert_string_equal(got, "new");
    with.ops.event_destroy(before);
    with.ops.event_destroy(after);
    with.ops.queue_destroy(queue);
    with.ops.release(with.devices[0], &host);
    with.ops.release(with.devices[0], &memory);
    end(&with);
    expect_clean();
}

TEST(a_queue_waits_for_an_event_of_another_device)
{
    use_machine("devices 2; slow_us 20000");
    bench with;
    begin(&with, 2);
    gpuhal_memory first = allocate(&with, 0, (gpuhal_alloc){.bytes = 64}),
                  second = allocate(&with, 1, (gpuhal_alloc){.bytes = 64});
    gpuhal_memory between = allocate(&with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_READBACK, .bytes = 64});
    gpuhal_plugin_queue *one = queue_on(&with, 0), *two = queue_on(&with, 1);
    gpuhal_plugin_event *written = event_on(&with, 0), *copied = event_on(&with, 1);
    unsigned char got[64] = {0};
    memset(between.host, 0, 64);
    expect_fine(with.ops.fill(with.devices[0], one, &first, 0, 64, 0x61, 1), &with, "fill");
    expect_fine(with.ops.copy(with.devices[0], one, &between, 0, &first, 0, 64), &with, "copy");
    expect_fine(with.ops.event_record(one, written), &with, "event_record");
    expect_fine(with.ops.queue_wait(two, written), &with, "queue_wait");
    expect_fine(with.ops.copy(with.devices[1], two, &second, 0, &between, 0, 64), &with, "copy");
    expect_fine(with.ops.event_record(two, copied), &with, "event_record");
    expect_fine(with.ops.event_block(copied, 10000 * MS_NS), &with, "event_block");
    expect_fine(with.ops.read(with.devices[1], NULL, got, &second, 0, 64), &with, "read");
    assert_memory_equal(got, between.host, 64);
    assert_int_equal(got[63], 0x61);
    with.ops.event_destroy(written);
    with.ops.event_destroy(copied);
    with.ops.queue_destroy(one);
    with.ops.queue_destroy(two);
    with.ops.release(with.devices[0], &first);
    with.ops.release(with.devices[1], &second);
    with.ops.release(with.devices[0], &between);
    end(&with);
    expect_clean();
}

TEST(an_event_after_work_that_failed_says_so_and_only_this_device_is_lost)
{
    use_machine("devices 2; slow_us 1000; lose 0 cuMemsetD8Async 1 700");
    bench with;
    begin(&with, 2);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64}),
                  other = allocate(&with, 1, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_event *event = event_on(&with, 0);
    expect_fine(with.ops.fill(with.devices[0], queue, &memory, 0, 64, 1, 1), &with, "fill");
    expect_fine(with.ops.event_record(queue, event), &with, "event_record");
    assert_int_equal(with.ops.event_block(event, 10000 * MS_NS), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.event_query(event), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.query_health(with.devices[1]), GPUHAL_OK);
    expect_fine(with.ops.fill(with.devices[1], NULL, &other, 0, 64, 1, 1), &with, "fill on the other device");
    with.ops.event_destroy(event);
    with.ops.queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    with.ops.release(with.devices[1], &other);
    end(&with);
    expect_clean();
}

/* ---- peers */

typedef struct told {
    uint64_t kind, advertised, generation, count;
} told;

/* A link's facts reach the listener of a whole enumeration only; so they are taken by a host of the test. */
static void take_u64(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    (void)host;
    told *out = (told *)(void *)sink;
    *(key == GPUHAL_LINK_KIND              ? &out->kind
      : key == GPUHAL_LINK_PEER_ADVERTISED ? &out->advertised
      : key == GPUHAL_LINK_GENERATION      ? &out->generation
                                           : &out->count) = key == GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND ? out->count : value;
}

static void take_missing(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason, const char *why)
{
    (void)host;
    (void)sink;
    (void)key;
    (void)reason;
    (void)why;
}

static told link_of(const bench *with, uint32_t from, uint32_t to)
{
    told out = {0};
    gpuhal_host host = *gpuhal_direct_host();
    host.u64 = take_u64;
    host.missing = take_missing;
    expect_fine(with->plugin->link(&host, from, to, (gpuhal_sink *)(void *)&out), with, "link");
    return out;
}

TEST(links_are_told_apart_with_kind_generation_and_count)
{
    use_machine("devices 3; link 0 1 nvlink 4 18; link 0 2 system; link 1 2 pcie");
    bench with;
    start(&with);
    told link = link_of(&with, 0, 1);
    assert_int_equal(link.kind, GPUHAL_LINK_NVLINK);
    assert_int_equal(link.advertised, 1);
    assert_int_equal(link.generation, 4);
    assert_int_equal(link.count, 18);
    link = link_of(&with, 0, 2);
    assert_int_equal(link.kind, GPUHAL_LINK_SYSTEM);
    assert_int_equal(link.advertised, 0);
    assert_int_equal(link_of(&with, 2, 1).kind, GPUHAL_LINK_PCIE_SWITCH);
    assert_int_equal(fake_report_get()->contexts_created, 0);
    expect_clean();
}

static void copy_to_peer(const bench *with, unsigned char *out_got)
{
    gpuhal_memory from = allocate(with, 0, (gpuhal_alloc){.bytes = 64}), to = allocate(with, 1, (gpuhal_alloc){.bytes = 64});
    expect_fine(with->ops.fill(with->devices[0], NULL, &from, 0, 64, 0x61, 1), with, "fill");
    expect_fine(with->ops.fill(with->devices[1], NULL, &to, 0, 64, 0x62, 1), with, "fill");
    expect_fine(with->ops.peer_copy(NULL, with->devices[1], &to, 0, with->devices[0], &from, 0, 64), with, "peer_copy");
    expect_fine(with->ops.read(with->devices[1], NULL, out_got, &to, 0, 64), with, "read");
    with->ops.release(with->devices[0], &from);
    with->ops.release(with->devices[1], &to);
}

TEST(a_peer_copy_brings_the_bytes_with_access_and_without)
{
    use_machine("devices 2; link 0 1 nvlink 4 18; slow_us 100");
    bench with;
    begin(&with, 2);
    unsigned char got[64] = {0};
    copy_to_peer(&with, got);
    assert_int_equal(got[0] + got[63], 2 * 0x61);
    expect_fine(with.ops.peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    expect_fine(with.ops.peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable again");
    memset(got, 0, sizeof got);
    copy_to_peer(&with, got);
    assert_int_equal(got[0] + got[63], 2 * 0x61);
    with.ops.peer_disable(with.devices[1], with.devices[0]);
    with.ops.peer_disable(with.devices[1], with.devices[0]);
    end(&with);
    expect_clean();
}

TEST(access_that_the_program_switched_on_stays_on)
{
    use_machine("devices 2");
    const driver api = load_driver();
    CUcontext contexts[2] = {NULL}, popped = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(api.cuDevicePrimaryCtxRetain(&contexts[i], i), CUDA_SUCCESS);
    }
    assert_int_equal(api.cuCtxPushCurrent_v2(contexts[1]), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxEnablePeerAccess(contexts[0], 0), CUDA_SUCCESS);
    bench with;
    begin(&with, 2);
    expect_fine(with.ops.peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    with.ops.peer_disable(with.devices[1], with.devices[0]);
    assert_int_equal(api.cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    end(&with);
    assert_int_equal(api.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
    expect_clean();
}

TEST(devices_without_access_to_each_other_are_refused_as_peers)
{
    use_machine("devices 2; link 0 1 system");
    bench with;
    begin(&with, 2);
    assert_int_equal(with.ops.peer_enable(with.devices[0], with.devices[1]), GPUHAL_ERROR_NOT_SUPPORTED);
    end(&with);
    expect_clean();
}

/* What a core that verifies has to find out: the driver says yes, the copy says OK, and no byte arrives. */
TEST(a_link_that_lies_is_not_noticed_by_status_codes)
{
    use_machine("devices 2; silent 0 1");
    bench with;
    begin(&with, 2);
    unsigned char got[64] = {0};
    expect_fine(with.ops.peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    copy_to_peer(&with, got);
    assert_int_equal(got[0] + got[63], 2 * 0x62);
    with.ops.peer_disable(with.devices[1], with.devices[0]);
    end(&with);
    expect_clean();
}

/* ---- programs */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry fill(.param .u64 a, .param .u32 b, .param .u32 c)\n{\n ret;\n}\n"
                          ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 d)\n{\n ret;\n}\n";

static gpuhal_plugin_kernel *kernel_of(const bench *with, gpuhal_plugin_program *program, const char *name)
{
    gpuhal_plugin_kernel *kernel = NULL;
    expect_fine(with->ops.kernel(program, name, &kernel), with, name);
    return kernel;
}

static void launch(const bench *with, gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel, uint32_t threads,
                   const gpuhal_argument *arguments, uint32_t count)
{
    const gpuhal_launch how = {.size = sizeof how,
                               .groups = {(threads + 63) / 64, 1, 1},
                               .group_size = {64, 1, 1},
                               .argument_count = count,
                               .arguments = arguments};
    expect_fine(with->ops.launch(queue, kernel, &how), with, "launch");
}

TEST(kernels_run_with_values_memory_and_offsets_in_the_order_of_their_queue)
{
    enum { COUNT = 1000 };
    use_machine("devices 1; slow_us 500");
    bench with;
    begin(&with, 1);
    gpuhal_memory one = allocate(&with, 0, (gpuhal_alloc){.bytes = 8192}),
                  two = allocate(&with, 0, (gpuhal_alloc){.bytes = 8192});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_program *program = NULL;
    expect_fine(with.ops.program_load(with.devices[0], "ptx", ptx, sizeof ptx, NULL, &program), &with, "program_load");
    gpuhal_plugin_kernel *fill = kernel_of(&with, program, "fill"), *add = kernel_of(&with, program, "add");
    uint32_t seven = 7, five = 5, count = COUNT, got[2048] = {0};
    const gpuhal_argument number[] = {
        {.kind = 1, .memory = &one, .offset = 4}, {.bytes = 4, .value = &seven}, {.bytes = 4, .value = &count}};
    const gpuhal_argument other[] = {{.kind = 1, .memory = &two}, {.bytes = 4, .value = &five}, {.bytes = 4, .value = &count}};
    const gpuhal_argument sum[] = {{.kind = 1, .memory = &two},
                                   {.kind = 1, .memory = &one, .offset = 4},
                                   {.kind = 1, .memory = &two},
                                   {.bytes = 4, .value = &count}};
    launch(&with, queue, fill, COUNT, number, 3);
    launch(&with, queue, fill, COUNT, other, 3);
    launch(&with, queue, add, COUNT, sum, 4);
    seven = five = count = 0; /* values were taken at the launch */
    finish(&with, queue);
    expect_fine(with.ops.read(with.devices[0], NULL, got, &two, 0, sizeof got), &with, "read");
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(got[i], 12);
    }
    assert_int_equal(got[COUNT], 0xcdcdcdcd);
    with.ops.program_unload(program);
    with.ops.queue_destroy(queue);
    with.ops.release(with.devices[0], &one);
    with.ops.release(with.devices[0], &two);
    end(&with);
    expect_clean();
}

TEST(code_that_cannot_be_loaded_is_refused_with_the_compilers_words_and_the_device_goes_on)
{
    static const char wrong[] = ".visible .entry fill() { ret; }";
    unsigned char elf[4096] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    use_machine("devices 1");
    bench with;
    begin(&with, 1);
    gpuhal_plugin_program *program = NULL;
    gpuhal_status status = with.ops.program_load(with.devices[0], "ptx", wrong, sizeof wrong, NULL, &program);
    assert_true(status < 0);
    gpuhal_direct_failed(with.plugin, status, "program_load");
    assert_non_null(strstr(gpuhal_last_error()->sentence, "Missing .version"));
    assert_true(with.ops.program_load(with.devices[0], "cubin", elf, sizeof elf, NULL, &program) < 0);
    assert_int_equal(with.ops.program_load(with.devices[0], "spirv", elf, sizeof elf, NULL, &program),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    expect_fine(with.ops.program_load(with.devices[0], "ptx", ptx, sizeof ptx, NULL, &program), &with, "program_load");
    gpuhal_plugin_kernel *kernel = NULL;
    assert_int_equal(with.ops.kernel(program, "absent", &kernel), GPUHAL_ERROR_NOT_FOUND);
    with.ops.program_unload(program);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    end(&with);
    expect_clean();
}

/* ---- the caller's own */

TEST(an_adopted_context_is_worked_in_and_left_to_the_caller)
{
    use_machine("devices 2");
    const driver api = load_driver();
    CUcontext mine = NULL, current = NULL;
    CUstream stream = NULL;
    assert_int_equal(api.cuCtxCreate_v2(&mine, 0, 0), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    bench with;
    start(&with);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_DEVICE, .values = {(uintptr_t)mine, 0, (uintptr_t)stream}};
    assert_int_equal(open_device(&with, 1, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    with.devices[1] = NULL;
    expect_fine(open_device(&with, 0, &native), &with, "open");
    CUdeviceptr own = 0;
    assert_int_equal(api.cuMemAlloc_v2(&own, 256), CUDA_SUCCESS);
    assert_int_equal(api.cuMemsetD8Async(own, 0x42, 256, stream), CUDA_SUCCESS);
    gpuhal_memory wrapped = {.size = sizeof wrapped}, taken = allocate(&with, 0, (gpuhal_alloc){.bytes = 256});
    const gpuhal_native memory = {.size = sizeof memory, .type = GPUHAL_NATIVE_CUDA_MEMORY, .values = {own}};
    expect_fine(with.ops.wrap_memory(with.devices[0], &memory, 256, &wrapped), &with, "wrap_memory");
    unsigned char got[256] = {0};
    expect_fine(with.ops.copy(with.devices[0], NULL, &taken, 0, &wrapped, 0, 256), &with, "copy");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &taken, 0, 256), &with, "read");
    assert_int_equal(got[0] + got[255], 2 * 0x42);
    with.ops.release(with.devices[0], &wrapped);
    with.ops.release(with.devices[0], &taken);
    end(&with);
    assert_int_equal(api.cuCtxGetCurrent(&current), CUDA_SUCCESS);
    assert_ptr_equal(current, mine);
    assert_int_equal(fake_report_get()->contexts_created, 1);
    assert_int_equal(api.cuMemFree_v2(own), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxDestroy_v2(mine), CUDA_SUCCESS);
    expect_clean();
}

TEST(blocking_calls_come_after_what_the_adopted_stream_had_been_given)
{
    use_machine("devices 1; slow_us 20000");
    const driver api = load_driver();
    CUcontext mine = NULL;
    CUstream stream = NULL;
    CUdeviceptr own = 0;
    assert_int_equal(api.cuCtxCreate_v2(&mine, 0, 0), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(api.cuMemAlloc_v2(&own, 256), CUDA_SUCCESS);
    bench with;
    start(&with);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_DEVICE, .values = {(uintptr_t)mine, 0, (uintptr_t)stream}};
    const gpuhal_native memory = {.size = sizeof memory, .type = GPUHAL_NATIVE_CUDA_MEMORY, .values = {own}};
    expect_fine(open_device(&with, 0, &native), &with, "open");
    gpuhal_memory wrapped = {.size = sizeof wrapped};
    expect_fine(with.ops.wrap_memory(with.devices[0], &memory, 256, &wrapped), &with, "wrap_memory");
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(api.cuMemsetD8Async(own, (unsigned char)i, 256, stream), CUDA_SUCCESS);
    }
    unsigned char got[256] = {0};
    expect_fine(with.ops.read(with.devices[0], NULL, got, &wrapped, 0, 256), &with, "read");
    assert_int_equal(got[255], 4);
    with.ops.release(with.devices[0], &wrapped);
    end(&with);
    assert_int_equal(api.cuMemFree_v2(own), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxDestroy_v2(mine), CUDA_SUCCESS);
    expect_clean();
}

#include "test_main.h"
