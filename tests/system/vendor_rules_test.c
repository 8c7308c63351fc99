/* Tests a vendor's fake itself. The fake must refuse the calls that the real library refuses; otherwise tests with the
 * fake prove nothing. The calls that only one vendor's library refuses are in cuda_rules_own_test.c and
 * rocm_rules_own_test.c. */
#include "bench.h"

#include <pthread.h>
#include <signal.h>

#define assert_code(call, code) assert_int_equal(call, code)

static void expect_violations(unsigned count)
{
    assert_int_equal(fake_report_get()->violations, count);
}

static engine engine_on(const char *machine)
{
    use_machine(machine);
    return engine_begin(0);
}

static vendor_pointer allocate_64(const vendor_api *api)
{
    vendor_pointer memory = 0;
    assert_code(api->VENDOR(MemAlloc)(&memory, 64), FAKE_OK);
    return memory;
}

static vendor_pointer behind(vendor_pointer memory, size_t bytes)
{
    return (vendor_pointer)((uintptr_t)memory + bytes);
}

static fake_code upload(const vendor_api *api, vendor_pointer to, const void *from, size_t bytes, vendor_stream stream)
{
    return OF(api->cuMemcpyHtoDAsync_v2(to, from, bytes, stream),
              api->hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, stream));
}

static fake_code download(const vendor_api *api, void *to, vendor_pointer from, size_t bytes, vendor_stream stream)
{
    return OF(api->cuMemcpyDtoHAsync_v2(to, from, bytes, stream),
              api->hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, stream));
}

TEST(memory_that_was_freed_or_is_too_short_is_refused)
{
    const vendor_api api = engine_on("devices 1").api;
    vendor_pointer memory = allocate_64(&api);
    unsigned char bytes[128] = {0};
    assert_code(upload(&api, behind(memory, 1), bytes, 64, NULL), FAKE_ERROR_INVALID_VALUE);
    assert_code(download(&api, bytes, memory, 65, NULL), FAKE_ERROR_INVALID_VALUE);
    assert_code(api.VENDOR(MemFree)(behind(memory, 1)), FAKE_ERROR_INVALID_VALUE);
    assert_code(api.VENDOR(MemFree)(memory), FAKE_OK);
    assert_code(api.VENDOR(MemFree)(memory), FAKE_ERROR_INVALID_VALUE);
    assert_code(api.VENDOR(MemsetD8Async)(memory, 0, 1, NULL), FAKE_ERROR_INVALID_VALUE);
    expect_violations(5);
    remove_reports();
}

/* Writes to memory that a copy still reads. This race is intended, so ThreadSanitizer must not report it. */
__attribute__((no_sanitize("thread"))) static void overwrite(volatile unsigned char *bytes, unsigned char value)
{
    for (size_t i = 0; i < 64; i++) {
        bytes[i] = value;
    }
}

TEST(copies_from_page_locked_memory_are_asynchronous_and_from_ordinary_memory_staged)
{
    const vendor_api api = engine_on("devices 1; slow_us 200000").api;
    vendor_pointer memory[2] = {allocate_64(&api), allocate_64(&api)};
    vendor_stream stream = engine_stream(&api);
    void *locked = NULL;
    unsigned char ordinary[64], got[64];
    assert_code(api.VENDOR(HostAlloc)(&locked, 64, 0), FAKE_OK);
    memset(locked, 1, 64);
    memset(ordinary, 1, 64);
    assert_code(upload(&api, memory[0], locked, 64, stream), FAKE_OK);
    assert_code(upload(&api, memory[1], ordinary, 64, stream), FAKE_OK);
    assert_code(api.VENDOR(StreamQuery)(stream), FAKE_ERROR_NOT_READY);
    overwrite(locked, 2);
    overwrite(ordinary, 2);
    assert_code(download(&api, got, memory[0], 64, stream), FAKE_OK);
    assert_int_equal(got[63], 2);
    assert_code(download(&api, got, memory[1], 64, stream), FAKE_OK);
    assert_int_equal(got[63], 1);
    expect_violations(0);
    remove_reports();
}

TEST(the_null_stream_waits_for_blocking_streams_and_not_for_the_others)
{
    const vendor_api api = engine_on("devices 1; slow_us 200000").api;
    vendor_pointer memory = allocate_64(&api);
    vendor_stream blocking = NULL, other = engine_stream(&api);
    vendor_event event = NULL;
    assert_code(api.VENDOR(StreamCreate)(&blocking, 0), FAKE_OK);
    assert_code(api.VENDOR(EventCreate)(&event, 0), FAKE_OK);
    assert_code(api.VENDOR(MemsetD8Async)(memory, 1, 64, other), FAKE_OK);
    assert_code(api.VENDOR(EventRecord)(event, NULL), FAKE_OK);
    assert_code(api.VENDOR(EventSynchronize)(event), FAKE_OK);
    assert_code(api.VENDOR(EventRecord)(event, other), FAKE_OK);
    assert_code(api.VENDOR(EventQuery)(event), FAKE_ERROR_NOT_READY);
    assert_code(api.VENDOR(StreamSynchronize)(other), FAKE_OK);
    assert_code(api.VENDOR(MemsetD8Async)(memory, 1, 64, blocking), FAKE_OK);
    assert_code(api.VENDOR(EventRecord)(event, NULL), FAKE_OK);
    assert_code(api.VENDOR(EventQuery)(event), FAKE_ERROR_NOT_READY);
    expect_violations(0);
    remove_reports();
}

TEST(a_failure_sticks_to_its_device_and_the_other_one_works)
{
    engine first = engine_on("devices 2; lose 0 " CALLED(MemsetD8Async) " 1 700");
    const vendor_api api = first.api;
    vendor_pointer memory = allocate_64(&api), more = 0;
    size_t free_bytes, total;
    assert_code(api.VENDOR(MemsetD8Async)(memory, 0, 64, NULL), FAKE_OK);
    assert_code(api.VENDOR(StreamSynchronize)(NULL), FAKE_ERROR_ILLEGAL_ADDRESS);
    assert_code(api.VENDOR(MemAlloc)(&more, 64), FAKE_ERROR_ILLEGAL_ADDRESS);
    assert_code(api.VENDOR(MemGetInfo)(&free_bytes, &total), FAKE_ERROR_ILLEGAL_ADDRESS);
    engine other = engine_begin(1);
    (void)allocate_64(&api);
    engine_end(&other);
    expect_violations(0);
    remove_reports();
}

/* ---- capture */

static void *allocate_elsewhere(void *user)
{
    const vendor_api *api = user;
    engine own = engine_begin(0);
    vendor_pointer memory = 0;
    const fake_code code = api->VENDOR(MemAlloc)(&memory, 64);
    engine_end(&own);
    return code == FAKE_ERROR_CAPTURE_UNSUPPORTED ? user : NULL;
}

TEST(a_global_capture_is_spoiled_by_an_allocation_on_any_thread_unless_the_thread_is_relaxed)
{
    vendor_api api = engine_on("devices 1").api;
    vendor_stream stream = engine_stream(&api);
    vendor_graph graph = NULL;
    vendor_event event = NULL;
    vendor_pointer memory = 0;
    unsigned status = 0, mode = 2; /* relaxed */
    void *refused = NULL;
    pthread_t thread;
    assert_code(api.VENDOR(EventCreate)(&event, 0), FAKE_OK);
    assert_code(api.VENDOR(StreamBeginCapture)(stream, 0), FAKE_OK);
    assert_code(api.VENDOR(MemAlloc)(&memory, 64), FAKE_ERROR_CAPTURE_UNSUPPORTED);
    assert_code(api.VENDOR(StreamEndCapture)(stream, &graph), FAKE_ERROR_CAPTURE_INVALIDATED);
    assert_code(api.VENDOR(StreamBeginCapture)(stream, 0), FAKE_OK);
    assert_code(api.VENDOR(ThreadExchangeStreamCaptureMode)(&mode), FAKE_OK);
    assert_code(api.VENDOR(MemAlloc)(&memory, 64), FAKE_OK);
    assert_code(api.VENDOR(StreamIsCapturing)(stream, &status), FAKE_OK);
    assert_int_equal(status, 1);
    expect_violations(0);
    assert_int_not_equal(api.VENDOR(EventRecord)(event, stream), FAKE_OK);
    expect_violations(1); /* recording an event in a captured stream breaks a rule */
    assert_int_equal(pthread_create(&thread, NULL, allocate_elsewhere, &api), 0);
    pthread_join(thread, &refused);
    assert_ptr_equal(refused, &api);
    assert_code(api.VENDOR(StreamIsCapturing)(stream, &status), FAKE_OK);
    assert_int_equal(status, 2);
    assert_code(api.VENDOR(StreamEndCapture)(stream, &graph), FAKE_ERROR_CAPTURE_INVALIDATED);
    expect_violations(1);
    remove_reports();
}

/* ---- graphs */

/* Adds a node that fills 64 bytes, after another node or none. */
static fake_code fill_node(const engine *own, vendor_node *out_node, vendor_graph graph, const vendor_node *after,
                           vendor_pointer to, unsigned value)
{
    const size_t count = after ? 1 : 0;
#ifdef GPUHAL_CUDA_PLUGIN
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = to, .value = value, .elementSize = 4, .width = 16, .height = 1};
    return own->api.cuGraphAddMemsetNode(out_node, graph, after, count, &fill, own->context);
#else
    const hipMemsetParams fill = {.dst = to, .value = value, .elementSize = 4, .width = 16, .height = 1};
    return own->api.hipGraphAddMemsetNode(out_node, graph, after, count, &fill);
#endif
}

static vendor_executable instantiate(const vendor_api *api, vendor_graph graph)
{
    vendor_executable executable = NULL;
    assert_code(api->VENDOR(GraphInstantiateWithFlags)(&executable, graph, 0), FAKE_OK);
    return executable;
}

static unsigned after_launch(const vendor_api *api, vendor_executable executable, vendor_pointer memory)
{
    unsigned got[16];
    vendor_stream stream = engine_stream(api);
    assert_code(api->VENDOR(GraphLaunch)(executable, stream), FAKE_OK);
    assert_code(download(api, got, memory, 64, stream), FAKE_OK);
    assert_code(api->VENDOR(StreamDestroy)(stream), FAKE_OK);
    return got[15];
}

TEST(nodes_without_an_edge_between_them_do_not_run_in_the_order_of_their_creation)
{
    const engine own = engine_on("devices 1");
    const vendor_api *api = &own.api;
    vendor_pointer memory = allocate_64(api);
    vendor_graph graph = NULL;
    vendor_node first = NULL, second = NULL, third = NULL;
    assert_code(api->VENDOR(GraphCreate)(&graph, 0), FAKE_OK);
    assert_code(fill_node(&own, &first, graph, NULL, memory, 1), FAKE_OK);
    assert_code(fill_node(&own, &second, graph, &first, memory, 2), FAKE_OK);
    vendor_executable ordered = instantiate(api, graph);
    assert_code(fill_node(&own, &third, graph, NULL, memory, 3), FAKE_OK);
    assert_int_equal(after_launch(api, ordered, memory), 2);
    assert_int_equal(after_launch(api, instantiate(api, graph), memory), 2);
    assert_code(api->VENDOR(GraphExecDestroy)(ordered), FAKE_OK);
    assert_code(api->VENDOR(GraphDestroy)(graph), FAKE_OK);
    assert_int_equal(fake_report_get()->graphs, 1);
    expect_violations(0);
    remove_reports();
}

TEST(launches_of_one_executable_graph_follow_each_other_even_in_two_streams)
{
    const engine own = engine_on("devices 1; slow_us 200000");
    const vendor_api *api = &own.api;
    vendor_pointer memory = allocate_64(api);
    vendor_stream one = engine_stream(api), other = engine_stream(api);
    vendor_graph graph = NULL;
    vendor_node node = NULL;
    assert_code(api->VENDOR(GraphCreate)(&graph, 0), FAKE_OK);
    assert_code(fill_node(&own, &node, graph, NULL, memory, 1), FAKE_OK);
    vendor_executable executable = instantiate(api, graph);
    assert_code(api->VENDOR(GraphLaunch)(executable, one), FAKE_OK);
    assert_code(api->VENDOR(GraphLaunch)(executable, other), FAKE_OK);
    assert_code(api->VENDOR(GraphExecDestroy)(executable), FAKE_OK); /* both launches still run */
    assert_code(api->VENDOR(StreamSynchronize)(one), FAKE_OK);
    assert_code(api->VENDOR(StreamQuery)(other), FAKE_ERROR_NOT_READY);
    assert_code(api->VENDOR(StreamSynchronize)(other), FAKE_OK);
    expect_violations(0);
    remove_reports();
}

TEST(destroyed_graphs_and_nodes_of_other_graphs_are_refused)
{
    const engine own = engine_on("devices 1");
    const vendor_api *api = &own.api;
    vendor_pointer memory = allocate_64(api);
    vendor_graph graph = NULL, other = NULL;
    vendor_node first = NULL, second = NULL;
    vendor_kernel_node kernel = {0};
    assert_code(api->VENDOR(GraphCreate)(&graph, 1), FAKE_ERROR_INVALID_VALUE);
    assert_code(api->VENDOR(GraphCreate)(&graph, 0), FAKE_OK);
    assert_code(api->VENDOR(GraphCreate)(&other, 0), FAKE_OK);
    assert_code(fill_node(&own, &first, graph, NULL, memory, 1), FAKE_OK);
    assert_code(fill_node(&own, &second, graph, NULL, behind(memory, 2), 1), FAKE_ERROR_INVALID_VALUE);
    expect_violations(0);
    assert_code(fill_node(&own, &second, other, &first, memory, 1), FAKE_ERROR_INVALID_VALUE);
    expect_violations(1);
    vendor_executable executable = instantiate(api, graph), gone = instantiate(api, other);
    assert_code(api->VENDOR(GraphExecKernelNodeSetParams)(executable, first, &kernel), FAKE_ERROR_INVALID_VALUE);
    expect_violations(1); /* a node of another kind */
    assert_code(api->VENDOR(GraphExecKernelNodeSetParams)(gone, first, &kernel), FAKE_ERROR_INVALID_VALUE);
    expect_violations(2);
    assert_code(api->VENDOR(GraphExecDestroy)(gone), FAKE_OK);
    assert_code(api->VENDOR(GraphLaunch)(gone, NULL), FAKE_ERROR_INVALID_VALUE);
    expect_violations(3);
    assert_code(api->VENDOR(GraphDestroy)(graph), FAKE_OK);
    assert_code(api->VENDOR(GraphDestroy)(graph), FAKE_ERROR_INVALID_VALUE);
    expect_violations(4);
    assert_code(api->VENDOR(GraphKernelNodeSetParams)(first, &kernel), FAKE_ERROR_INVALID_VALUE);
    expect_violations(5);
    assert_code(api->VENDOR(MemFree)(memory), FAKE_OK);
    assert_code(api->VENDOR(GraphLaunch)(executable, NULL), FAKE_ERROR_INVALID_VALUE);
    assert_true(fake_report_get()->violations > 5); /* the memory of its node is gone */
    remove_reports();
}

/* ---- processes */

TEST(a_program_that_touches_device_memory_dies)
{
    const vendor_api api = engine_on("devices 1").api;
    vendor_pointer memory = allocate_64(&api);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        *(volatile char *)(uintptr_t)memory = 1;
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    remove_reports();
}

static void expect_no_library(const void *what)
{
    const vendor_api *api = what;
    vendor_pointer memory = 0;
    assert_code(api->VENDOR(MemAlloc)(&memory, 64), FAKE_ERROR_NOT_INITIALIZED);
}

TEST(the_child_of_a_fork_has_no_library)
{
    const vendor_api api = engine_on("devices 1").api;
    assert_true(passes_in_child(expect_no_library, &api));
    remove_reports();
}

TEST(a_machine_that_breaks_the_grammar_ends_the_process)
{
    static const char *const wrong[] = {
        "devices",      "devices 33", "memory 1 1G",  "link 0 0 rope", "fail " CALLED(Init) " 1",
        "colour 0 red", "uuid 0 12",  "memory 0 12Q", "link 0 0 xgmi"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const pid_t child = fork();
        if (child == 0) {
            use_machine(wrong[i]);
            unsetenv(fake_vendor.report_variable);
            const vendor_api api = load_api();
            (void)api.VENDOR(Init)(0);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 99);
    }
}

#include "test_main.h"
