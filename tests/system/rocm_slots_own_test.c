/* Tests the slots of the ROCm plugin with the fake runtime (direct.h): link and program features that only ROCm has,
 * and the caller's own streams and memory. vendor_slots_test.c tests the slots that the plugin shares with other
 * vendors. */
#include "bench.h"

TEST(amds_own_links_are_reported_with_their_bandwidth)
{
    use_machine("devices 3; link 0 1 xgmi 1; link 0 2 system; link 1 2 pcie");
    bench with;
    start(&with);
    link_facts link = link_of(&with, 0, 1);
    assert_int_equal(link.kind, GPUHAL_LINK_XGMI);
    assert_int_equal(link.advertised, 1);
    assert_int_equal(link.bandwidth, UINT64_C(64000000000));
    link = link_of(&with, 0, 2);
    assert_int_not_equal(link.kind, GPUHAL_LINK_XGMI);
    assert_int_equal(link.advertised, 0);
    assert_int_equal(link_of(&with, 2, 1).advertised, 1);
    assert_int_equal(fake_report_get()->contexts_created, 0);
    expect_clean();
}

TEST(code_that_cannot_be_loaded_is_refused_and_the_device_goes_on)
{
    unsigned char code[CODE_BYTES], wrong[CODE_BYTES];
    bench with = begin_on("devices 1; fail hipModuleLoadData 1 209; fail hipModuleLoadData 2 218", 1);
    make_code(code);
    memcpy(wrong, code, sizeof wrong);
    wrong[18] = 62; /* EM_X86_64 */
    gpuhal_plugin_program *program = NULL;
    assert_int_equal(load(&with, "hsaco", wrong, sizeof wrong, &program),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(load(&with, "hsaco", code, 63, &program),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    for (int i = 0; i < 2; i++) { /* HIP has two error codes for code of another GPU */
        assert_int_equal(load(&with, "hsaco", code, sizeof code, &program),
                         GPUHAL_ERROR_INCOMPATIBLE);
    }
    assert_int_equal(load(&with, "spirv", code, sizeof code, &program),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    program = load_kernels(&with);
    gpuhal_plugin_kernel *kernel = NULL;
    assert_int_equal(find_kernel(&with, program, "absent", &kernel), GPUHAL_ERROR_NOT_FOUND);
    with.ops.programs->program_unload(program);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_OK);
    end_clean(&with);
}

TEST(access_that_the_program_switched_on_stays_on)
{
    use_machine("devices 2");
    const vendor_api api = load_api();
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    assert_int_equal(api.hipDeviceEnablePeerAccess(0, 0), hipSuccess);
    bench with;
    begin(&with, 2);
    expect_fine(with.ops.peers->peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    with.ops.peers->peer_disable(with.devices[1], with.devices[0]);
    assert_int_equal(api.hipDeviceEnablePeerAccess(0, 0), hipErrorPeerAccessAlreadyEnabled);
    end_clean(&with);
}

TEST(an_adopted_stream_comes_first_and_is_left_to_the_caller)
{
    use_machine("devices 2; slow_us 20000");
    const vendor_api api = load_api();
    hipStream_t stream = NULL;
    void *own = NULL;
    int current = -1;
    assert_int_equal(api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    assert_int_equal(api.hipMalloc(&own, 256), hipSuccess);
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    bench with;
    start(&with);
    gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_HIP_DEVICE, .values = {1, 0, (uintptr_t)stream}};
    /* the stream belongs to device 0 */
    assert_int_equal(open_device(&with, 1, &native), GPUHAL_ERROR_INVALID_ARGUMENT);
    with.devices[1] = NULL;
    native.values[0] = 0;
    expect_fine(open_device(&with, 0, &native), &with, "open");
    assert_int_equal(api.hipSetDevice(0), hipSuccess);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(api.hipMemsetD8Async(own, (unsigned char)i, 256, stream), hipSuccess);
    }
    assert_int_equal(api.hipSetDevice(1), hipSuccess);
    gpuhal_memory wrapped = {.size = sizeof wrapped}, taken = allocate(&with, 0, (gpuhal_alloc){.bytes = 256});
    const gpuhal_native memory = {.size = sizeof memory, .type = GPUHAL_NATIVE_HIP_MEMORY, .values = {(uintptr_t)own}};
    expect_fine(with.ops.native->wrap_memory(with.devices[0], &memory, 256, &wrapped), &with, "wrap_memory");
    unsigned char got[256] = {0};
    expect_fine(with.ops.copy(with.devices[0], NULL, &taken, 0, &wrapped, 0, 256), &with, "copy");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &taken, 0, 256), &with, "read");
    assert_int_equal(got[0] + got[255], 2 * 4);
    with.ops.release(with.devices[0], &wrapped);
    with.ops.release(with.devices[0], &taken);
    end(&with);
    assert_int_equal(api.hipGetDevice(&current), hipSuccess);
    assert_int_equal(current, 1);
    assert_int_equal(api.hipFree(own), hipSuccess);
    assert_int_equal(api.hipStreamDestroy(stream), hipSuccess);
    expect_clean();
}

/* HIP 5 numbers the memory types differently. */
TEST(memory_of_hip_5_is_distinguished_from_the_hosts)
{
    use_machine("devices 1");
    use_runtime("", 5);
    const vendor_api api = load_api();
    void *own = NULL, *locked = NULL;
    assert_int_equal(api.hipMalloc(&own, 256), hipSuccess);
    assert_int_equal(api.hipHostMalloc(&locked, 256, 0), hipSuccess);
    bench with;
    begin(&with, 1);
    gpuhal_memory wrapped = {.size = sizeof wrapped};
    gpuhal_native memory = {.size = sizeof memory, .type = GPUHAL_NATIVE_HIP_MEMORY, .values = {(uintptr_t)own}};
    expect_fine(with.ops.native->wrap_memory(with.devices[0], &memory, 256, &wrapped), &with, "wrap_memory");
    with.ops.release(with.devices[0], &wrapped);
    memory.values[0] = (uintptr_t)locked;
    wrapped = (gpuhal_memory){.size = sizeof wrapped};
    assert_true(with.ops.native->wrap_memory(with.devices[0], &memory, 256, &wrapped) < 0);
    end(&with);
    assert_int_equal(api.hipFree(own), hipSuccess);
    assert_int_equal(api.hipHostFree(locked), hipSuccess);
    expect_clean();
}

/* Simulates chipStar. */
TEST(a_runtime_that_knows_no_graphs_records_events_in_queues_that_were_taken_over)
{
    bench with = begin_on("devices 1; fail hipStreamIsCapturing 1+ 801", 1);
    const vendor_api api = load_api();
    hipStream_t stream = NULL;
    gpuhal_plugin_queue *queue = NULL;
    assert_int_equal(api.hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_HIP_STREAM, .values = {(uintptr_t)stream}};
    expect_fine(with.ops.queues->queue_create(with.devices[0], QUEUE_DESC(.adopt = &native), &queue), &with,
                "queue_create");
    finish(&with, queue);
    with.ops.queues->queue_destroy(queue);
    assert_int_equal(api.hipStreamDestroy(stream), hipSuccess);
    end_clean(&with);
}

TEST(an_export_is_busy_if_hip_is_not_ready_for_it)
{
    bench with = begin_on("devices 1; fail hipMemExportToShareableHandle 1 600", 1);
    gpuhal_memory memory =
        allocate(&with, 0, (gpuhal_alloc){.bytes = 4096, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD});
    gpuhal_handle handle = {.size = sizeof handle};
    uint64_t offset = 0;
    assert_int_equal(with.ops.export_memory(with.devices[0], &memory, GPUHAL_HANDLE_OPAQUE_FD, &handle, &offset),
                     GPUHAL_ERROR_BUSY);
    (void)gpuhal_direct_failed(with.plugin, GPUHAL_ERROR_BUSY, "export_memory");
    expect_word(gpuhal_last_error()->sentence, "HIP cannot export the memory now; try again");
    with.ops.release(with.devices[0], &memory);
    end_clean(&with);
}

TEST(pages_that_hip_6_does_not_lock_get_both_reasons)
{
    bench with = begin_on("devices 1; fail hipHostRegister 1 1", 1);
    char *own = aligned_alloc(4096, 4096);
    assert_int_equal(with.ops.register_host(with.devices[0], own, 4096), GPUHAL_ERROR_HOST_MEMORY);
    (void)gpuhal_direct_failed(with.plugin, GPUHAL_ERROR_HOST_MEMORY, "register_host");
    expect_word(gpuhal_last_error()->sentence,
                "the limit of locked memory is reached (ulimit -l), or the memory is read-only");
    free(own);
    end_clean(&with);
}

#include "test_main.h"
