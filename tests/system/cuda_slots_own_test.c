/* Tests the slots of the CUDA plugin with the fake driver (direct.h): link and program features that only CUDA has, and
 * the caller's own contexts and streams. vendor_slots_test.c tests the slots that the plugin shares with other vendors.
 */
#include "bench.h"
#include "support/random.h"

#include <pthread.h>

TEST(links_are_reported_with_kind_generation_and_count)
{
    use_machine("devices 3; link 0 1 nvlink 4 18; link 0 2 system; link 1 2 pcie");
    bench with;
    start(&with);
    link_facts link = link_of(&with, 0, 1);
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

TEST(code_that_cannot_be_loaded_is_refused_with_the_compilers_words_and_the_device_goes_on)
{
    static const char wrong[] = ".visible .entry fill() { ret; }";
    unsigned char elf[4096] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    bench with = begin_on("devices 1", 1);
    gpuhal_plugin_program *program = NULL;
    gpuhal_status status = load(&with, "ptx", wrong, sizeof wrong, &program);
    assert_true(status < 0);
    gpuhal_direct_failed(with.plugin, status, "program_load");
    assert_non_null(strstr(gpuhal_last_error()->sentence, "Missing .version"));
    assert_true(load(&with, "cubin", elf, sizeof elf, &program) < 0);
    assert_int_equal(load(&with, "spirv", elf, sizeof elf, &program), GPUHAL_ERROR_NOT_SUPPORTED);
    program = load_kernels(&with);
    gpuhal_plugin_kernel *kernel = NULL;
    assert_int_equal(find_kernel(&with, program, "absent", &kernel), GPUHAL_ERROR_NOT_FOUND);
    with.ops.programs->program_unload(program);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    end_clean(&with);
}

/* Generates a program with so many kernels that its log exceeds the plugin's first log buffer. */
static char *make_program(unsigned kernels)
{
    const size_t size = 64 + 96 * (size_t)kernels;
    char *text = malloc(size);
    assert_non_null(text);
    size_t used = (size_t)snprintf(text, size, ".version 7.0\n.target sm_70\n");
    for (unsigned i = 0; i < kernels; i++) {
        used +=
            (size_t)snprintf(text + used, size - used, ".visible .entry kernel_%u(.param .u64 a)\n{\n ret;\n}\n", i);
    }
    return text;
}

TEST(the_output_of_the_compiler_is_complete_even_if_it_succeeds)
{
    enum { KERNELS = 2000 };
    bench with = begin_on("devices 1", 1);
    char *text = make_program(KERNELS), last[64];
    static char log[1 << 18];
    const gpuhal_code code = {.size = sizeof code, .format = "ptx", .code = text, .bytes = strlen(text)};
    gpuhal_plugin_program *program = NULL;
    expect_fine(load_into(&with, &code, log, sizeof log, &program), &with, "program_load");
    snprintf(last, sizeof last, "entry function 'kernel_%d'\n", KERNELS - 1);
    assert_non_null(strstr(log, "entry function 'kernel_0'\n"));
    assert_non_null(strstr(log, last));
    assert_int_equal(fake_report_get()->modules, 1); /* the modules of the earlier attempts have been unloaded */
    with.ops.programs->program_unload(program);
    free(text);
    end_clean(&with);
}

TEST(options_of_the_compiler_reach_the_driver)
{
    char log[1024];
    bench with = begin_on("devices 1", 1);
    gpuhal_code code = kernels_code();
    gpuhal_plugin_program *program = NULL;
    code.options = "-O1 -g -maxrregcount=32  -lineinfo -O3";
    expect_fine(load_into(&with, &code, log, sizeof log, &program), &with, "program_load");
    assert_non_null(strstr(log, "option 7: 3\noption 11: 1\noption 0: 32\noption 13: 1\n"));
    with.ops.programs->program_unload(program);
    static const char *const wrong[] = {
        "-O5", "-O", "-maxrregcount=", "-maxrregcount=1234", "-maxrregcount=3x", "-gpu=1", "lineinfo", "-O3 -x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        code.options = wrong[i];
        assert_int_equal(load_with(&with, &code, &program), GPUHAL_ERROR_INVALID_ARGUMENT);
    }
    unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    elf[52] = elf[58] = 64;
    code = (gpuhal_code){.size = sizeof code, .format = "cubin", .code = elf, .bytes = sizeof elf, .options = "-g"};
    /* fails before any compilation */
    assert_int_equal(load_with(&with, &code, &program), GPUHAL_ERROR_INVALID_ARGUMENT);
    end_clean(&with);
}

/* Since CUDA 12.4 the driver reports the number and sizes of a kernel's parameters. */
TEST(parameters_are_compared_with_those_of_the_code)
{
    static const char ptx[] =
        ".version 7.0\n.target sm_70\n"
        ".visible .entry odd(.param .u64 a, .param .align 8 .b8 b[24], .param .u16 c)\n{\n ret;\n}\n"
        ".visible .entry none()\n{\n ret;\n}\n";
    static const struct {
        gpuhal_parameter parameters[4];
        uint32_t count;
        const char *word; /* NULL if the parameters match */
    } all[] = {
        {{{1, 0, 0, 0}, {2, 24, 0, 0}, {2, 2, 0, 0}}, 3, NULL},
        {{{1, 0, 0, 0}, {3, 0, 0, 0}, {2, 24, 0, 0}, {2, 2, 0, 0}}, 4, NULL},
        {{{2, 8, 0, 0}, {2, 24, 0, 0}, {2, 2, 0, 0}}, 3, NULL},
        {{{1, 0, 0, 0}, {2, 24, 0, 0}}, 2, "more parameters than the 2"},
        {{{1, 0, 0, 0}, {2, 24, 0, 0}, {2, 2, 0, 0}, {2, 4, 0, 0}}, 4, "parameter 3 is one too many: its code has 3"},
        {{{1, 0, 0, 0}, {2, 16, 0, 0}, {2, 2, 0, 0}}, 3, "parameter 1 has 16 bytes in the description, and 24"},
        {{{2, 4, 0, 0}, {2, 24, 0, 0}, {2, 2, 0, 0}}, 3, "parameter 0 has 4 bytes in the description, and 8"},
        {{{0, 0, 0, 0}}, 0, "more parameters than the 0"},
    };
    bench with = begin_on("devices 1", 1);
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_kernel_info info;
    expect_fine(load(&with, "ptx", ptx, sizeof ptx, &program), &with, "program_load");
    gpuhal_kernel_desc desc = {.size = sizeof desc, .name = "odd", .group_size = {64, 1, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        desc.parameters = all[i].parameters;
        desc.parameter_count = all[i].count;
        const gpuhal_status status = kernel_with(&with, program, &desc, &info, &kernel);
        if (!all[i].word) {
            expect_fine(status, &with, "kernel_create");
            with.ops.programs->kernel_destroy(kernel);
            continue;
        }
        assert_int_equal(status, GPUHAL_ERROR_INVALID_ARGUMENT);
        (void)gpuhal_direct_failed(with.plugin, status, "kernel_create");
        expect_word(gpuhal_last_error()->sentence, all[i].word);
    }
    desc = (gpuhal_kernel_desc){.size = sizeof desc, .name = "none", .group_size = {1, 1, 1}};
    expect_fine(kernel_with(&with, program, &desc, &info, &kernel), &with, "kernel_create");
    assert_int_equal(info.parameter_count, 0);
    with.ops.programs->kernel_destroy(kernel);
    with.ops.programs->program_unload(program);
    end_clean(&with);
}

/* The kernel's static shared memory and the launch's dynamic shared memory share 48 KiB by default. A caller may
 * request more, up to the device's limit. */
TEST(a_kernel_with_its_own_shared_memory_gets_the_bytes_of_the_launch)
{
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.shared .align 4 .b8 own[20480];\n"
                              ".visible .entry fill(.param .u64 a, .param .u32 b, .param .u32 c)\n{\n ret;\n}\n";
    bench with = begin_on("devices 1", 1);
    gpuhal_plugin_program *program = NULL;
    gpuhal_plugin_kernel *kernel = NULL, *again = NULL;
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(load(&with, "ptx", ptx, sizeof ptx, &program), &with, "program_load");
    expect_fine(find_kernel(&with, program, "fill", &kernel), &with, "kernel");
    expect_fine(find_kernel(&with, program, "fill", &again), &with, "kernel");
    expect_fine(with.ops.queues->queue_create(with.devices[0], QUEUE_DESC(.flags = 0), &queue), &with, "queue_create");
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 256});
    uint32_t count = 64, value = 7;
    const gpuhal_plugin_argument arguments[] = {memory_argument(&memory, 0), value_argument(&value, sizeof value),
                                                value_argument(&count, sizeof count)};
    gpuhal_plugin_launch how = {.size = sizeof how,
                                .groups = {1, 1, 1},
                                .group_size = {64, 1, 1},
                                .threads = {64, 1, 1},
                                .arguments = arguments,
                                .argument_count = 3};
    static const uint32_t asked[] = {28672, 40960, 1024, 200000};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        how.local_bytes = asked[i];
        expect_fine(with.ops.programs->launch(queue, kernel, &how), &with, "launch");
    }
    how.local_bytes = 150000;
    expect_fine(with.ops.programs->launch(queue, again, &how), &with, "launch");
    how.local_bytes = 200000; /* the launch with `again` must not have lowered the limit */
    expect_fine(with.ops.programs->launch(queue, kernel, &how), &with, "launch");
    how.local_bytes = 232448; /* together with the kernel's static memory this exceeds the device's limit */
    assert_int_equal(with.ops.programs->launch(queue, kernel, &how), GPUHAL_ERROR_INVALID_ARGUMENT);
    finish(&with, queue);
    with.ops.programs->kernel_destroy(kernel);
    with.ops.programs->kernel_destroy(again);
    with.ops.programs->program_unload(program);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    end_clean(&with);
}

/* Sections of NVIDIA's types "global" and "shared" have a size, but no bytes in the file. */
TEST(a_cubin_that_can_be_linked_further_is_not_taken_for_one_that_is_cut_off)
{
    unsigned char elf[64 + 2 * 64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    elf[40] = 64; /* offset of the section headers */
    elf[58] = 64;
    elf[60] = 2;
    unsigned char *section = elf + 128;
    section[4] = 0x0a;
    section[7] = 0x70;
    section[24] = sizeof elf; /* offset at the end of the file; the size is 4 KiB */
    section[33] = 0x10;
    bench with = begin_on("devices 1", 1);
    gpuhal_plugin_program *program = NULL;
    assert_int_equal(load(&with, "cubin", elf, sizeof elf, &program), GPUHAL_ERROR_INCOMPATIBLE);
    section[4] = 1; /* a section with bytes, which the file does not contain */
    section[7] = 0;
    assert_int_equal(load(&with, "cubin", elf, sizeof elf, &program), GPUHAL_ERROR_INVALID_ARGUMENT);
    end_clean(&with);
}

TEST(host_memory_of_any_alignment_has_an_address_on_the_device)
{
    enum { ALIGNMENT = 1 << 20, PIECES = 8 };
    bench with = begin_on("devices 1", 1);
    gpuhal_memory pieces[PIECES];
    for (unsigned i = 0; i < PIECES; i++) {
        pieces[i] =
            allocate(&with, 0, (gpuhal_alloc){.bytes = 4096, .kind = GPUHAL_MEMORY_UPLOAD, .alignment = ALIGNMENT});
        assert_int_equal((uintptr_t)pieces[i].host % ALIGNMENT, 0);
        assert_int_equal(pieces[i].address, (uintptr_t)pieces[i].host);
    }
    for (unsigned i = 0; i < PIECES; i++) {
        with.ops.release(with.devices[0], &pieces[i]);
    }
    end_clean(&with);
}

TEST(access_that_the_program_switched_on_stays_on)
{
    use_machine("devices 2");
    const vendor_api api = load_api();
    CUcontext contexts[2] = {NULL}, popped = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(api.cuDevicePrimaryCtxRetain(&contexts[i], i), CUDA_SUCCESS);
    }
    assert_int_equal(api.cuCtxPushCurrent_v2(contexts[1]), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxEnablePeerAccess(contexts[0], 0), CUDA_SUCCESS);
    bench with;
    begin(&with, 2);
    expect_fine(with.ops.peers->peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    with.ops.peers->peer_disable(with.devices[1], with.devices[0]);
    assert_int_equal(api.cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    end(&with);
    assert_int_equal(api.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    assert_int_equal(api.cuDevicePrimaryCtxRelease_v2(1), CUDA_SUCCESS);
    expect_clean();
}

TEST(an_adopted_context_is_worked_in_and_left_to_the_caller)
{
    use_machine("devices 2");
    const vendor_api api = load_api();
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
    expect_fine(with.ops.native->wrap_memory(with.devices[0], &memory, 256, &wrapped), &with, "wrap_memory");
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

/* Simulates ZLUDA, which cannot report the context of a stream. Only the caller knows it. */
TEST(a_stream_is_adopted_even_if_the_driver_cannot_name_its_context)
{
    use_machine("devices 1; fail cuStreamGetCtx 1+ 801");
    engine own = engine_begin(0);
    CUstream stream = engine_stream(&own.api);
    bench with;
    start(&with);
    const gpuhal_native context = {.size = sizeof context,
                                   .type = GPUHAL_NATIVE_CUDA_DEVICE,
                                   .values = {(uintptr_t)own.context, 0, (uintptr_t)stream}};
    expect_fine(open_device(&with, 0, &context), &with, "open");
    const gpuhal_native adopt = {
        .size = sizeof adopt, .type = GPUHAL_NATIVE_CUDA_STREAM, .values = {(uintptr_t)stream}};
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(with.ops.queues->queue_create(with.devices[0], QUEUE_DESC(.adopt = &adopt), &queue), &with,
                "queue_create");
    with.ops.queues->queue_destroy(queue);
    end(&with);
    assert_int_equal(own.api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    engine_end(&own);
    expect_clean();
}

TEST(blocking_calls_come_after_earlier_work_of_the_adopted_stream)
{
    use_machine("devices 1; slow_us 20000");
    const vendor_api api = load_api();
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
    expect_fine(with.ops.native->wrap_memory(with.devices[0], &memory, 256, &wrapped), &with, "wrap_memory");
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

TEST(memory_of_an_allocator_that_grows_in_place_is_wrapped_over_all_its_pieces)
{
    bench with = begin_on("devices 1", 1);
    uint64_t piece = 0;
    gpuhal_memory range_memory = {.size = sizeof range_memory}, wrapped = {.size = sizeof wrapped};
    gpuhal_plugin_range *range = NULL;
    expect_fine(with.ops.ranges->range_granularity(with.devices[0], 1 << 20, &piece), &with, "range_granularity");
    expect_fine(with.ops.ranges->range_reserve(with.devices[0], 4 * piece, &range_memory, &range), &with,
                "range_reserve");
    for (uint64_t i = 0; i < 3; i++) {
        expect_fine(with.ops.ranges->range_commit(range, i * piece, piece, NULL, 0), &with, "range_commit");
    }
    gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_MEMORY, .values = {range_memory.address + 100}};
    const uint64_t most = 3 * piece - 100;
    assert_int_equal(with.ops.native->wrap_memory(with.devices[0], &native, most + 1, &wrapped),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(with.ops.native->wrap_memory(with.devices[0], &native, UINT64_MAX, &wrapped),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_fine(with.ops.native->wrap_memory(with.devices[0], &native, most, &wrapped), &with, "wrap_memory");
    unsigned char *sent = bytes_of_seed(3, most), *got = bytes_of_seed(4, most);
    expect_fine(with.ops.write(with.devices[0], NULL, &wrapped, 0, sent, most), &with, "write");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &wrapped, 0, most), &with, "read");
    assert_memory_equal(got, sent, most);
    free(sent);
    free(got);
    with.ops.release(with.devices[0], &wrapped);
    with.ops.ranges->range_release(range);
    end_clean(&with);
}

enum { LONG_BYTES = 256 << 20 }; /* from this size on, a blocking call waits for an event */

typedef struct long_fill {
    const bench *with;
    gpuhal_memory memory;
    uint64_t bytes;
    unsigned char last; /* the last byte when the call returned */
    pthread_t thread;
} long_fill;

static void *fill_all(void *argument)
{
    long_fill *own = argument;
    expect_fine(own->with->ops.fill(own->with->devices[0], NULL, &own->memory, 0, own->bytes, 7, 1), own->with, "fill");
    own->last = ((unsigned char *)own->memory.host)[own->bytes - 1];
    return NULL;
}

static void begin_fill(long_fill *own)
{
    own->memory = allocate(own->with, 0, (gpuhal_alloc){.bytes = own->bytes, .kind = GPUHAL_MEMORY_UPLOAD});
    assert_int_equal(pthread_create(&own->thread, NULL, fill_all, own), 0);
}

/* Only one stream exists, and both callers must use it. The first caller has recorded its event, but does not wait for
 * it yet. */
TEST(a_long_call_returns_after_its_work_while_another_one_shares_its_stream)
{
    use_machine("devices 1; memory 0 1G; slow_us 300000; fail cuStreamCreateWithPriority 2+ 2");
    const vendor_api api = load_api();
    CUcontext mine = NULL;
    CUstream stream = NULL;
    assert_int_equal(api.cuCtxCreate_v2(&mine, 0, 0), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    bench with;
    start(&with);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_DEVICE, .values = {(uintptr_t)mine, 0, (uintptr_t)stream}};
    expect_fine(open_device(&with, 0, &native), &with, "open");
    long_fill one = {.with = &with, .bytes = LONG_BYTES}, other = {.with = &with, .bytes = 64};
    fake_report_get()->stop = "cuEventSynchronize";
    begin_fill(&one);
    while (fake_report_get()->stopped == 0) {
        usleep(1000);
    }
    begin_fill(&other);
    while (calls_of("cuMemsetD8Async") < 2) {
        usleep(1000);
    }
    fake_report_get()->stop = NULL;
    assert_int_equal(pthread_join(one.thread, NULL), 0);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
    assert_int_equal(one.last, 7);
    assert_int_equal(other.last, 7);
    with.ops.release(with.devices[0], &one.memory);
    with.ops.release(with.devices[0], &other.memory);
    end(&with);
    assert_int_equal(api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxDestroy_v2(mine), CUDA_SUCCESS);
    expect_clean();
}

#include "test_main.h"
