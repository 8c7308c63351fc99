/* Tests a vendor's plugin with its fake, which stops in one driver function after the other. All other threads must be
 * notified of the stop in time: by a status, a listener and the registry. The library's own calls with a deadline must
 * return in time. */
#include "vendor.h"

#include "support/stops.h"

static void stop_driver(const char *function)
{
    fake_report_get()->stop = function;
}

static bool driver_has_stopped(void)
{
    return fake_report_get()->stopped > 0;
}

/* SLOW: when the call begins, other work is running and ends a second later. A driver may wait for this work. */
enum { SLOW = 1 << 16 };

static gpuhal *open_object(uint32_t isolation)
{
    return open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                         .backends = BACKEND,
                                         .isolation = isolation,
                                         .hang_ns = HANG_NS,
                                         .helper_deadline_ns = HANG_NS});
}

static void open_fixture(fixture *s)
{
    use_machine(s->what->flags & SLOW ? "devices 2; slow_us 1000000" : "devices 2");
    use_registry();
    s->gpu = open_object(GPUHAL_ISOLATION_NEVER);
    s->device = select_or_fail(s->gpu, BACKEND ":0");
    s->other = select_or_fail(s->gpu, BACKEND ":1");
    assert_ok(gpuhal_on_change(s->gpu, count_change, s));
}

/* ---- calls of the application */

static gpuhal_status do_allocate_upload(fixture *s)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_UPLOAD, .bytes = BYTES};
    gpuhal_buffer *buffer = NULL;
    return gpuhal_buffer_create(s->device, &desc, &buffer);
}

static void prepare_upload(fixture *s)
{
    gpuhal_buffer_release(s->spare);
    s->spare = buffer_or_fail(s->device, GPUHAL_MEMORY_UPLOAD, BYTES);
}

static gpuhal_status do_queued_fill(fixture *s)
{
    return gpuhal_fill(s->queue, s->a, 0, BYTES, 1, 4);
}

static gpuhal_recording *recording;

/* Runs a recording of a launch whose value is in a slot. */
static void prepare_recording(fixture *s)
{
    static const uint32_t value = 7, count = 64;
    const gpuhal_code code = kernels_code();
    const gpuhal_program_desc program_desc = {.size = sizeof program_desc, .codes = &code, .code_count = 1};
    const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                           {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                           {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
    const gpuhal_kernel_desc kernel_desc = {
        .size = sizeof kernel_desc, .name = "fill", .parameters = parameters, .parameter_count = 3, .group_size = {64}};
    const gpuhal_argument arguments[] = {
        {.buffer = s->a}, {.value = &value, .bytes = 4}, {.value = &count, .bytes = 4}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .arguments = arguments, .argument_count = 3, .groups = {1, 1, 1}};
    const gpuhal_recording_desc desc = {.size = sizeof desc, .slot_count = 1};
    gpuhal_program *program = NULL;
    gpuhal_kernel *kernel = NULL;
    assert_ok(gpuhal_program_create(s->device, &program_desc, &program));
    assert_ok(gpuhal_kernel_create(program, &kernel_desc, &kernel));
    assert_ok(gpuhal_recording_create(s->device, &desc, &recording));
    assert_ok(gpuhal_recording_launch(recording, kernel, &launch, NULL));
    assert_ok(gpuhal_recording_slot(recording, 0, 0, 1));
    assert_ok(gpuhal_recording_finish(recording));
    assert_string_equal(gpuhal_recording_form(recording), "driver");
    assert_ok(gpuhal_recording_run(s->queue, recording, NULL, 0)); /* the first run may compile, which takes long */
    assert_ok(gpuhal_queue_synchronize(s->queue, UINT64_MAX));
}

static gpuhal_status do_run(fixture *s)
{
    const uint32_t other = 8;
    const gpuhal_slot_value value = {.argument = {.value = &other, .bytes = 4}};
    return gpuhal_recording_run(s->queue, recording, &value, 1);
}

static gpuhal_status do_recording_release(fixture *s)
{
    (void)s;
    gpuhal_recording_release(recording);
    return GPUHAL_OK;
}

static const stop stops[] = {
    {OF("cuMemAlloc_v2", "hipMalloc"), NULL, do_allocate, 0},
    {OF("cuMemHostAlloc", "hipHostMalloc"), NULL, do_allocate_upload, 0},
    {OF("cuMemFree_v2", "hipFree"), NULL, do_release, SILENT},
    {OF("cuMemFreeHost", "hipHostFree"), prepare_upload, do_release, SILENT},
    {OF("cuMemcpyDtoDAsync_v2", "hipMemcpyAsync"), NULL, do_copy, 0},
    {OF("cuMemcpyHtoDAsync_v2", "hipMemcpyAsync"), NULL, do_write, 0},
    {OF("cuMemcpyDtoHAsync_v2", "hipMemcpyAsync"), NULL, do_read, 0},
    {OF("cuMemsetD32Async", "hipMemsetD32Async"), NULL, do_fill, 0},
    {OF("cuStreamSynchronize", "hipStreamSynchronize"), NULL, do_fill, 0},
    {OF("cuMemcpy2DAsync_v2", "hipMemcpy2DAsync"), NULL, do_rect, 0},
    {OF("cuMemExportToShareableHandle", "hipMemExportToShareableHandle"), prepare_export, do_export, 0},
    {OF("cuStreamCreateWithPriority", "hipStreamCreateWithPriority"), NULL, do_queue_create, 0},
    {OF("cuStreamDestroy_v2", "hipStreamDestroy"), NULL, do_queue_destroy, SILENT},
    {OF("cuEventCreate", "hipEventCreateWithFlags"), NULL, do_record, 0},
    {OF("cuEventDestroy_v2", "hipEventDestroy"), prepare_spare_event, do_queue_end, SILENT},
    {OF("cuEventRecord", "hipEventRecord"), NULL, do_record, 0},
    {OF("cuEventQuery", "hipEventQuery"), prepare_record, do_poll, SLOW},
    {OF("cuEventSynchronize", "hipEventSynchronize"), prepare_record, do_wait, SLOW},
    {OF("cuStreamWaitEvent", "hipStreamWaitEvent"), prepare_record, do_queue_wait, SLOW},
    {OF("cuEventElapsedTime", "hipEventElapsedTime"), prepare_elapsed, do_elapsed, 0},
    {OF("cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess"), NULL, do_peer_copy, 0},
    {OF("cuMemcpyPeerAsync", "hipMemcpyPeerAsync"), NULL, do_peer_copy, 0},
    {OF("cuMemcpyDtoDAsync_v2", "hipMemcpyAsync"), NULL, do_queued_copy, 0},
    {OF("cuMemsetD32Async", "hipMemsetD32Async"), NULL, do_queued_fill, 0},
    {CALLED(GraphExecKernelNodeSetParams), prepare_recording, do_run, 0},
    {CALLED(GraphLaunch), prepare_recording, do_run, 0},
    {CALLED(GraphExecDestroy), prepare_recording, do_recording_release, SILENT},
};

static void play(fixture *s)
{
    pthread_t thread;
    open_fixture(s);
    fill_fixture(s);
    if (s->what->prepare) {
        s->what->prepare(s);
    }
    begin_act(s, &thread);
    expect_lost(s);
    close_in_time(s);
    remove_reports();
    end_now();
}

TEST(a_driver_that_stops_in_any_function_costs_its_device_alone)
{
    enum { ALL = sizeof stops / sizeof *stops };
    play_all(stops, ALL, ALL, play);
}

/* ---- calls of the library with a deadline */

static gpuhal_device *device_of(fixture *s, const char *id)
{
    s->device = select_or_fail(s->gpu, id);
    return s->device;
}

static void prepare_object(fixture *s)
{
    s->gpu = open_object(GPUHAL_ISOLATION_NEVER);
}

static void prepare_device(fixture *s)
{
    prepare_object(s);
    assert_ok(gpuhal_device_open(device_of(s, BACKEND ":0")));
}

static void prepare_peers(fixture *s)
{
    prepare_object(s);
    s->other = select_or_fail(s->gpu, BACKEND ":1");
    s->a = buffer_on(device_of(s, BACKEND ":0"), 0);
    s->far = buffer_on(s->other, 0);
    assert_ok(do_peer_copy(s));
    gpuhal_buffer_release(s->a);
    gpuhal_buffer_release(s->far);
}

/* Writes pageable memory, which is staged in the library's page-locked memory. */
static void prepare_staging(fixture *s)
{
    enum { LARGE = 64 << 20 };
    char *memory = calloc(1, LARGE);
    assert_non_null(memory);
    prepare_object(s);
    gpuhal_buffer *buffer = buffer_or_fail(device_of(s, BACKEND ":0"), GPUHAL_MEMORY_DEVICE, LARGE);
    assert_ok(gpuhal_write(NULL, buffer, 0, memory, LARGE));
    gpuhal_buffer_release(buffer);
    free(memory);
}

/* On a busy machine even a working helper process may exceed the deadline that detects a stopped helper. */
static gpuhal *open_with_helper(uint32_t isolation)
{
    gpuhal *gpu = open_object(isolation);
    for (int tries = 1; tries < 4 && report_of(gpu, BACKEND).state == GPUHAL_PLUGIN_TIMED_OUT; tries++) {
        gpuhal_close(gpu);
        remove_registry();
        use_registry();
        gpu = open_object(isolation);
    }
    return gpu;
}

/* The devices come from the registry, so this process neither loads the vendor's library nor starts a helper
 * process. */
static void prepare_warm(fixture *s)
{
    gpuhal_close(open_with_helper(GPUHAL_ISOLATION_ONCE));
    s->gpu = open_object(GPUHAL_ISOLATION_ONCE);
    assert_int_equal(report_of(s->gpu, BACKEND).cached, 1);
    (void)device_of(s, BACKEND ":0");
}

static void prepare_isolated(fixture *s)
{
    s->gpu = open_with_helper(GPUHAL_ISOLATION_ALWAYS);
    assert_ok(gpuhal_device_open(device_of(s, BACKEND ":0")));
}

static gpuhal_status do_open(fixture *s)
{
    prepare_object(s);
    assert_int_equal(report_of(s->gpu, BACKEND).state, GPUHAL_PLUGIN_TIMED_OUT);
    assert_ok(gpuhal_device_open(select_or_fail(s->gpu, "cpu:0")));
    return GPUHAL_OK;
}

/* A process lists the driver's devices only once, so the driver must stop in a helper process. */
static gpuhal_status do_rescan(fixture *s)
{
    char script[128];
    snprintf(script, sizeof script, "devices 2; hang %s 1", s->what->slot);
    setenv(fake_vendor.variable, script, 1);
    assert_ok(gpuhal_rescan(s->gpu, NULL));
    assert_int_equal(report_of(s->gpu, BACKEND).state, GPUHAL_PLUGIN_TIMED_OUT);
    return GPUHAL_OK;
}

static gpuhal_status do_device_open(fixture *s)
{
    return gpuhal_device_open(s->device ? s->device : device_of(s, BACKEND ":0"));
}

static gpuhal_status do_sample(fixture *s)
{
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    assert_ok(gpuhal_device_sample(s->device, 0, &value, 1, NULL));
    assert_int_equal(value.missing, GPUHAL_MISSING_TIMED_OUT);
    return gpuhal_device_status(s->device);
}

static gpuhal_status do_link(fixture *s)
{
    uint64_t value = 0;
    gpuhal_device *other = select_or_fail(s->gpu, BACKEND ":1");
    (void)gpuhal_link_u64(s->device, other, GPUHAL_LINK_PEER_ADVERTISED, &value);
    gpuhal_missing missing = gpuhal_link_missing(s->device, other, GPUHAL_LINK_PEER_ADVERTISED, NULL);
    assert_int_equal(missing, GPUHAL_MISSING_TIMED_OUT);
    return gpuhal_device_status(s->device);
}

static gpuhal_status do_close(fixture *s)
{
    gpuhal_close(s->gpu);
    s->gpu = NULL;
    return GPUHAL_OK;
}

/* FAILS: the call fails with TIMEOUT or DEVICE_LOST. HELPER: the driver stops in another process. */
enum { FAILS = 1 << 17, HELPER = 1 << 18 };

static const stop timed[] = {
    {OF("cuInit", "hipInit"), NULL, do_open, 0},
    {OF("cuDeviceGetCount", "hipGetDeviceCount"), NULL, do_open, 0},
    {OF("cuDeviceGetName", "hipDeviceGetName"), NULL, do_open, 0},
    {OF("cuDeviceGetCount", "hipGetDeviceCount"), prepare_isolated, do_rescan, HELPER},
    {OF("cuDevicePrimaryCtxRetain", "hipMalloc"), prepare_object, do_device_open, FAILS},
    {OF("cuInit", "hipInit"), prepare_warm, do_device_open, FAILS},
    {OF("cuDeviceGetCount", "hipGetDeviceCount"), prepare_warm, do_device_open, FAILS},
    {OF("cuDevicePrimaryCtxRetain", "hipMalloc"), prepare_warm, do_device_open, FAILS},
    {OF("nvmlDeviceGetMemoryInfo_v2", "amdsmi_get_gpu_memory_total"), prepare_device, do_sample, 0},
    {OF("cuDeviceCanAccessPeer", "hipDeviceCanAccessPeer"), prepare_device, do_link, 0},
    {OF("cuCtxDisablePeerAccess", "hipDeviceDisablePeerAccess"), prepare_peers, do_close, 0},
    {OF("cuMemFreeHost", "hipHostFree"), prepare_staging, do_close, 0},
    {OF("cuStreamDestroy_v2", "hipStreamDestroy"), prepare_staging, do_close, 0},
    {OF("cuDevicePrimaryCtxRelease_v2", "hipFree"), prepare_device, do_close, 0},
};

static void play_timed(fixture *s)
{
    use_machine("devices 2");
    use_registry();
    if (s->what->prepare) {
        s->what->prepare(s);
    }
    stop_driver(s->what->slot);
    double began = now();
    gpuhal_status status = s->what->act(s);
    expect_in_time(began, s->what->slot);
    printf("%s: %.2f s\n", s->what->slot, now() - began);
    if (!(s->what->flags & HELPER)) {
        wait_for_stop(s->what->slot);
    }
    bool failed = status == GPUHAL_ERROR_TIMEOUT || status == GPUHAL_ERROR_DEVICE_LOST;
    assert_true(s->what->flags & FAILS ? failed : status == GPUHAL_OK);
    close_in_time(s);
    remove_reports();
    end_now();
}

TEST(opening_listing_sampling_linking_and_closing_return_in_time_from_a_driver_that_stops)
{
    enum { ALL = sizeof timed / sizeof *timed };
    play_all(timed, ALL, ALL, play_timed);
}

#include "test_main.h"
