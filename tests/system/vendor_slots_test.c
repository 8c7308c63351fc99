/* Tests the slots of a vendor's plugin with its fake (direct.h): queues, events, peers and programs.
 * cuda_slots_own_test.c and rocm_slots_own_test.c have the tests of one vendor. */
#include "bench.h"

/* ---- queues and events */

/* Writes to memory that work may still read. The race is intended. */
__attribute__((no_sanitize("thread"))) static void overwrite(volatile char *to, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = text[i];
    }
}

TEST(work_of_a_queue_goes_on_while_the_caller_does_and_its_time_is_measured)
{
    bench with = begin_on("devices 1; slow_us 200000", 1);
    gpuhal_memory host = allocate(&with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_UPLOAD, .bytes = 4096});
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 4096});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_event *before = event_on(&with, 0), *after = event_on(&with, 0);
    char got[8] = "";
    memcpy(host.host, "old", 4);
    expect_fine(with.ops.queues->event_record(queue, before), &with, "event_record");
    expect_fine(with.ops.copy(with.devices[0], queue, &memory, 0, &host, 0, 4096), &with, "copy");
    expect_fine(with.ops.queues->event_record(queue, after), &with, "event_record");
    expect_fine(with.ops.queues->queue_flush(queue), &with, "flush");
    assert_int_equal(with.ops.queues->event_query(after), GPUHAL_NOT_READY);
    overwrite(host.host, "new", 4); /* the copy has not begun */
    expect_fine(with.ops.queues->event_block(after, 10000 * MS_NS), &with, "event_block");
    assert_int_equal(with.ops.queues->event_query(after), GPUHAL_OK);
    uint64_t took = 0;
    expect_fine(with.ops.queues->elapsed(before, after, &took), &with, "elapsed");
    assert_true(took >= 199 * MS_NS && took < 5000 * MS_NS);
    expect_fine(with.ops.read(with.devices[0], NULL, got, &memory, 0, 4), &with, "read");
    assert_string_equal(got, "new");
    with.ops.queues->event_destroy(before);
    with.ops.queues->event_destroy(after);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &host);
    with.ops.release(with.devices[0], &memory);
    end_clean(&with);
}

TEST(a_queue_waits_for_an_event_of_another_device)
{
    bench with = begin_on("devices 2; slow_us 20000", 2);
    gpuhal_memory first = allocate(&with, 0, (gpuhal_alloc){.bytes = 64}),
                  second = allocate(&with, 1, (gpuhal_alloc){.bytes = 64});
    gpuhal_memory between = allocate(&with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_READBACK, .bytes = 64});
    gpuhal_plugin_queue *one = queue_on(&with, 0), *two = queue_on(&with, 1);
    gpuhal_plugin_event *written = event_on(&with, 0), *copied = event_on(&with, 1);
    unsigned char got[64] = {0};
    memset(between.host, 0, 64);
    expect_fine(with.ops.fill(with.devices[0], one, &first, 0, 64, 0x61, 1), &with, "fill");
    expect_fine(with.ops.copy(with.devices[0], one, &between, 0, &first, 0, 64), &with, "copy");
    expect_fine(with.ops.queues->event_record(one, written), &with, "event_record");
    expect_fine(with.ops.queues->queue_wait(two, written), &with, "queue_wait");
    expect_fine(with.ops.copy(with.devices[1], two, &second, 0, &between, 0, 64), &with, "copy");
    expect_fine(with.ops.queues->event_record(two, copied), &with, "event_record");
    expect_fine(with.ops.queues->event_block(copied, 10000 * MS_NS), &with, "event_block");
    expect_fine(with.ops.read(with.devices[1], NULL, got, &second, 0, 64), &with, "read");
    assert_memory_equal(got, between.host, 64);
    assert_int_equal(got[63], 0x61);
    with.ops.queues->event_destroy(written);
    with.ops.queues->event_destroy(copied);
    with.ops.queues->queue_destroy(one);
    with.ops.queues->queue_destroy(two);
    with.ops.release(with.devices[0], &first);
    with.ops.release(with.devices[1], &second);
    with.ops.release(with.devices[0], &between);
    end_clean(&with);
}

TEST(an_event_after_work_that_failed_says_so_and_only_this_device_is_lost)
{
    bench with = begin_on("devices 2; slow_us 200000; lose 0 " CALLED(MemsetD8Async) " 1 700", 2);
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 64}),
                  other = allocate(&with, 1, (gpuhal_alloc){.bytes = 64});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_event *event = event_on(&with, 0);
    expect_fine(with.ops.fill(with.devices[0], queue, &memory, 0, 64, 1, 1), &with, "fill");
    expect_fine(with.ops.queues->event_record(queue, event), &with, "event_record");
    assert_int_equal(with.ops.queues->event_block(event, 10000 * MS_NS), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.queues->event_query(event), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.query_health(with.devices[0]), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(with.ops.query_health(with.devices[1]), GPUHAL_OK);
    expect_fine(with.ops.fill(with.devices[1], NULL, &other, 0, 64, 1, 1), &with, "fill on the other device");
    with.ops.queues->event_destroy(event);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    with.ops.release(with.devices[1], &other);
    end_clean(&with);
}

/* ---- rectangles */

/* Simulates ZLUDA, which does not have these copies. */
TEST(a_rectangle_is_copied_row_by_row_if_the_driver_has_no_copy_for_it)
{
    bench with = begin_on("devices 1; fail " OF("cuMemcpy2DAsync_v2", "hipMemcpy2DAsync") " 1+ 801", 1);
    gpuhal_memory from = allocate(&with, 0, (gpuhal_alloc){.bytes = 64}),
                  to = allocate(&with, 0, (gpuhal_alloc){.bytes = 64});
    static const char sent[64] = "abcd----efgh----ijkl----", wanted[12] = "bcd..fgh..jk";
    char got[64] = "";
    const gpuhal_plugin_rect there = {.memory = &to, .row_pitch = 5, .slice_pitch = 15},
                             here = {.memory = &from, .offset = 1, .row_pitch = 8, .slice_pitch = 24};
    expect_fine(with.ops.write(with.devices[0], NULL, &from, 0, sent, sizeof sent), &with, "write");
    expect_fine(with.ops.fill(with.devices[0], NULL, &to, 0, 64, '.', 1), &with, "fill");
    expect_fine(with.ops.copy_rect(with.devices[0], NULL, &there, &here, (const uint64_t[]){3, 3, 1}), &with, "rect");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &to, 0, 64), &with, "read");
    assert_memory_equal(got, wanted, sizeof wanted);
    with.ops.release(with.devices[0], &from);
    with.ops.release(with.devices[0], &to);
    end_clean(&with);
}

/* ---- peers */

static void copy_to_peer(const bench *with, unsigned char *out_got)
{
    gpuhal_memory from = allocate(with, 0, (gpuhal_alloc){.bytes = 64}),
                  to = allocate(with, 1, (gpuhal_alloc){.bytes = 64});
    expect_fine(with->ops.fill(with->devices[0], NULL, &from, 0, 64, 0x61, 1), with, "fill");
    expect_fine(with->ops.fill(with->devices[1], NULL, &to, 0, 64, 0x62, 1), with, "fill");
    expect_fine(with->ops.peers->peer_copy(NULL, with->devices[1], &to, 0, with->devices[0], &from, 0, 64), with,
                "peer_copy");
    expect_fine(with->ops.read(with->devices[1], NULL, out_got, &to, 0, 64), with, "read");
    with->ops.release(with->devices[0], &from);
    with->ops.release(with->devices[1], &to);
}

TEST(a_peer_copy_brings_the_bytes_with_access_and_without)
{
    bench with = begin_on("devices 2; link 0 1 " OWN_LINK "; slow_us 100", 2);
    unsigned char got[64] = {0};
    copy_to_peer(&with, got);
    assert_int_equal(got[0] + got[63], 2 * 0x61);
    expect_fine(with.ops.peers->peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    expect_fine(with.ops.peers->peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable again");
    memset(got, 0, sizeof got);
    copy_to_peer(&with, got);
    assert_int_equal(got[0] + got[63], 2 * 0x61);
    with.ops.peers->peer_disable(with.devices[1], with.devices[0]);
    with.ops.peers->peer_disable(with.devices[1], with.devices[0]);
    end_clean(&with);
}

/* A link has several users. The link is disabled when its last user releases it. */
TEST(access_whose_second_use_fails_is_switched_off_after_the_first)
{
    bench with = begin_on("devices 2; fail " OF("cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess") " 2 2", 2);
    expect_fine(with.ops.peers->peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    assert_int_equal(with.ops.peers->peer_enable(with.devices[1], with.devices[0]), GPUHAL_ERROR_OUT_OF_MEMORY);
    with.ops.peers->peer_disable(with.devices[1], with.devices[0]);
    assert_int_equal(calls_of(OF("cuCtxDisablePeerAccess", "hipDeviceDisablePeerAccess")), 1);
    end_clean(&with);
}

TEST(devices_without_access_to_each_other_are_refused_as_peers)
{
    bench with = begin_on("devices 2; link 0 1 system", 2);
    assert_int_equal(with.ops.peers->peer_enable(with.devices[0], with.devices[1]), GPUHAL_ERROR_NOT_SUPPORTED);
    end_clean(&with);
}

/* The driver reports access and the copy returns OK, but no byte arrives. This is why the core must verify links. */
TEST(a_link_that_lies_is_not_noticed_by_status_codes)
{
    bench with = begin_on("devices 2; silent 0 1", 2);
    unsigned char got[64] = {0};
    expect_fine(with.ops.peers->peer_enable(with.devices[1], with.devices[0]), &with, "peer_enable");
    copy_to_peer(&with, got);
    assert_int_equal(got[0] + got[63], 2 * 0x62);
    with.ops.peers->peer_disable(with.devices[1], with.devices[0]);
    end_clean(&with);
}

/* ---- programs */

static void launch(const bench *with, gpuhal_plugin_queue *queue, gpuhal_plugin_kernel *kernel, uint32_t threads,
                   const gpuhal_plugin_argument *arguments, uint32_t count)
{
    const gpuhal_plugin_launch how = {.size = sizeof how,
                                      .groups = {(threads + 63) / 64, 1, 1},
                                      .group_size = {64, 1, 1},
                                      .threads = {(threads + 63) / 64 * 64, 1, 1},
                                      .argument_count = count,
                                      .arguments = arguments};
    expect_fine(with->ops.programs->launch(queue, kernel, &how), with, "launch");
}

TEST(kernels_run_with_values_memory_and_offsets_in_the_order_of_their_queue)
{
    enum { COUNT = 1000 };
    bench with = begin_on("devices 1; slow_us 500", 1);
    gpuhal_memory one = allocate(&with, 0, (gpuhal_alloc){.bytes = 8192}),
                  two = allocate(&with, 0, (gpuhal_alloc){.bytes = 8192});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_plugin_program *program = load_kernels(&with);
    gpuhal_plugin_kernel *fill = kernel_of(&with, program, "fill"), *add = kernel_of(&with, program, "add");
    uint32_t seven = 7, five = 5, count = COUNT, got[2048] = {0};
    const gpuhal_plugin_argument number[] = {memory_argument(&one, 4), value_argument(&seven, sizeof seven),
                                             value_argument(&count, sizeof count)};
    const gpuhal_plugin_argument other[] = {memory_argument(&two, 0), value_argument(&five, sizeof five),
                                            value_argument(&count, sizeof count)};
    const gpuhal_plugin_argument sum[] = {memory_argument(&two, 0), memory_argument(&one, 4), memory_argument(&two, 0),
                                          value_argument(&count, sizeof count)};
    launch(&with, queue, fill, COUNT, number, 3);
    launch(&with, queue, fill, COUNT, other, 3);
    launch(&with, queue, add, COUNT, sum, 4);
    seven = five = count = 0; /* the launch has already copied the values */
    finish(&with, queue);
    expect_fine(with.ops.read(with.devices[0], NULL, got, &two, 0, sizeof got), &with, "read");
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(got[i], 12);
    }
    assert_int_equal(got[COUNT], 0xcdcdcdcd);
    with.ops.programs->kernel_destroy(fill);
    with.ops.programs->kernel_destroy(add);
    with.ops.programs->program_unload(program);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &one);
    with.ops.release(with.devices[0], &two);
    end_clean(&with);
}

#include "test_main.h"
