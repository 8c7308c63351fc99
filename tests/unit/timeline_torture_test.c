/* Each allocation and each system call fails once while work is traced and the trace is written. Also tests a driver
 * that hangs in each slot that a trace uses. */
#include "program_support.h"
#include "support/child.h"
#include "support/halting.h"
#include "support/torture.h"
#include "support/torture_mock.h"
#include "support/trace.h"

#include "pool/pool.h"
#include "queue/timeline.h"

#include <pthread.h>

static gpuhal_status open_programs_mock(gpuhal **out_gpu)
{
    gpuhal_mock.devices[0].formats = "mock";
    gpuhal_mock.fork_safe = 1; /* rounds are forked children, and this process may have used the mock */
    return open_mock(out_gpu);
}

typedef struct objects {
    gpuhal *gpu;
    gpuhal_program *program;
    gpuhal_kernel *kernel;
    gpuhal_buffer *buffer;
    gpuhal_queue *queue, *second;
    gpuhal_event *event;
} objects;

static gpuhal_status make(objects *o)
{
    const gpuhal_kernel_desc kernel_desc = {.size = sizeof kernel_desc, .name = "add"};
    const gpuhal_buffer_desc buffer_desc = {.size = sizeof buffer_desc, .bytes = 64};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &plain_code, .code_count = 1};
    gpuhal_status status = open_programs_mock(&o->gpu);
    gpuhal_device *device = status ? NULL : gpuhal_device_at(o->gpu, 0);
    status = status ? status : gpuhal_program_create(device, &desc, &o->program);
    status = status ? status : gpuhal_kernel_create(o->program, &kernel_desc, &o->kernel);
    status = status ? status : gpuhal_buffer_create(device, &buffer_desc, &o->buffer);
    status = status ? status : gpuhal_trace_start(o->gpu, NULL);
    status = status ? status : gpuhal_queue_create(device, NULL, &o->queue);
    status = status ? status : gpuhal_queue_create(device, NULL, &o->second);
    return status ? status : gpuhal_event_create(o->gpu, 0, &o->event);
}

static void give_back(const objects *o)
{
    gpuhal_event_destroy(o->event);
    gpuhal_queue_destroy(o->queue);
    gpuhal_queue_destroy(o->second);
    gpuhal_buffer_release(o->buffer);
    gpuhal_kernel_release(o->kernel);
    gpuhal_program_release(o->program);
    gpuhal_close(o->gpu);
}

static size_t files(void)
{
    size_t count = 0;
    DIR *folder = opendir(test_folder);
    folder = folder ? folder : opendir(test_folder); /* the fault may have hit the first call */
    assert_non_null(folder);
    while (readdir(folder)) {
        count++;
    }
    closedir(folder);
    return count - 2; /* the count includes . and .. */
}

static gpuhal_status trace_work(void)
{
    objects o = {.gpu = NULL};
    gpuhal_status status = make(&o);
    status = status ? status : gpuhal_fill(o.queue, o.buffer, 0, 64, 1, 4);
    status = status ? status : add_to(o.queue, o.kernel, o.buffer, 1);
    status = status ? status : gpuhal_event_record(o.event, o.queue);
    status = status ? status : gpuhal_queue_wait(o.second, o.event);
    status = status ? status : add_to(o.second, o.kernel, o.buffer, 1);
    status = status ? status : gpuhal_queue_synchronize(o.second, UINT64_C(20000000000));
    status = status ? status : gpuhal_queue_synchronize(o.queue, UINT64_C(20000000000));
    status = status ? status : gpuhal_trace_write(o.gpu, GPUHAL_TRACE_QUEUES, trace_path);
    if (!status) {
        expect_numbers(o.buffer, 3);
    }
    give_back(&o);
    expect_mock_closed();
    assert_true(files() == 1 || status); /* the temporary file of a failed write was removed */
    assert_true(files() <= 1);
    return status;
}

static void forget_trace(void)
{
    unlink(trace_path);
}

TEST(every_allocation_of_a_trace_may_fail_once)
{
    begin_traces();
    torture(trace_work, GPUHAL_FAULT_ALLOCATION, forget_trace);
    end_traces();
}

TEST(every_system_call_of_a_trace_may_fail_once)
{
    begin_traces();
    torture(trace_work, GPUHAL_FAULT_FAIL, forget_trace);
    end_traces();
}

static gpuhal_status start_both(void)
{
    const gpuhal_trace_desc both = {.size = sizeof both, .kinds = GPUHAL_TRACE_QUEUES | GPUHAL_TRACE_POOLS};
    gpuhal *gpu = NULL;
    gpuhal_status status = open_programs_mock(&gpu);
    if (!status) {
        status = gpuhal_trace_start(gpu, &both);
        const bool queues = atomic_load(&gpu->layers.timeline->on), pools = atomic_load(&gpu->layers.pools->trace.on);
        assert_true(queues == !status && pools == !status);
    }
    gpuhal_close(gpu);
    return status;
}

TEST(a_start_of_both_kinds_that_fails_leaves_neither_on)
{
    torture(start_both, GPUHAL_FAULT_FAIL, NULL);
}

/* ---- drivers that hang, refuse, or never end */

static gpuhal *open_halting(uint64_t hang_ns)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .registry = "none",
                                  .backends = "halting",
                                  .hang_ns = hang_ns,
                                  .builtins = builtins};
    gpuhal *gpu = NULL;
    assert_ok(gpuhal_open(&config, &gpu));
    return gpu;
}

typedef struct halting_objects {
    gpuhal *gpu;
    gpuhal_queue *queue;
    gpuhal_buffer *one, *other;
} halting_objects;

static halting_objects begin_halting(uint64_t hang_ns)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 64};
    halting_objects o = {.gpu = open_halting(hang_ns)};
    gpuhal_device *device = gpuhal_device_at(o.gpu, 0);
    begin_traces();
    assert_ok(gpuhal_buffer_create(device, &desc, &o.one));
    assert_ok(gpuhal_buffer_create(device, &desc, &o.other));
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    assert_ok(gpuhal_queue_create(device, NULL, &o.queue));
    return o;
}

static void end_halting(const halting_objects *o)
{
    gpuhal_buffer_release(o->one);
    gpuhal_buffer_release(o->other);
    gpuhal_close(o->gpu);
    end_traces();
}

TEST(each_piece_gives_its_events_back_once_its_end_was_noticed)
{
    for (uint32_t honors = 0; honors < 2; honors++) {
        gpuhal_halting.honors_timeouts = honors;
        halting_objects o = begin_halting(0);
        for (int i = 0; i < 500; i++) {
            assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, 64));
            assert_true(gpuhal_halting.events <= 40); /* cached events, and the events of the newest work */
        }
        assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
        traced all = write_traced(o.gpu);
        assert_int_equal(all.count, 500);
        assert_string_equal(all.pieces[499].clock, "device");
        free_traced(&all);
        gpuhal_queue_destroy(o.queue);
        end_halting(&o);
        assert_int_equal(gpuhal_halting.events, 0);
    }
}

TEST(work_that_goes_on_is_unfinished_and_has_its_end_in_a_later_file)
{
    gpuhal_halting.honors_timeouts = 1;
    halting_objects o = begin_halting(0);
    gpuhal_halting.work_goes_on = 1;
    for (int i = 0; i < 5; i++) {
        assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, 64));
    }
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 0);
    assert_int_equal(all.unfinished, 5);
    free_traced(&all);
    gpuhal_halting.work_goes_on = 0;
    gpuhal_queue_destroy(o.queue);
    for (int i = 0; i < 10000 && gpuhal_halting.events > 0; i++) {
        gpuhal_os_sleep(1000000);
    }
    all = write_traced(o.gpu);
    assert_int_equal(all.count, 5);
    assert_int_equal(all.unfinished, 0);
    free_traced(&all);
    end_halting(&o);
    assert_int_equal(gpuhal_halting.events, 0);
}

TEST(a_plugin_that_records_no_event_now_costs_the_times_alone)
{
    gpuhal_halting.honors_timeouts = 1;
    halting_objects o = begin_halting(0);
    gpuhal_halting.record_says = GPUHAL_NOT_READY;
    assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, 64));
    gpuhal_halting.record_says = GPUHAL_OK;
    assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, 64));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.pieces[0].clock, "none");
    assert_string_equal(all.pieces[0].status, "ok");
    assert_string_equal(all.pieces[1].clock, "device");
    free_traced(&all);
    gpuhal_queue_destroy(o.queue);
    end_halting(&o);
}

/* A queue that was created before the trace has no device times. The library detects the ends of both pieces of work at
 * the same time. */
TEST(pieces_with_times_of_the_host_do_not_overlap)
{
    gpuhal_halting.honors_timeouts = 1;
    halting_objects o = begin_halting(0);
    gpuhal_queue_destroy(o.queue);
    assert_ok(gpuhal_trace_stop(o.gpu, GPUHAL_TRACE_QUEUES));
    assert_ok(gpuhal_queue_create(gpuhal_device_at(o.gpu, 0), NULL, &o.queue));
    assert_ok(gpuhal_trace_start(o.gpu, NULL));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, 64));
    assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, 64));
    gpuhal_halting.work_goes_on = 0;
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 2);
    assert_string_equal(all.pieces[0].clock, "host");
    assert_string_equal(all.pieces[1].clock, "host");
    assert_true(all.pieces[0].end < all.pieces[1].begin);
    free_traced(&all);
    gpuhal_queue_destroy(o.queue);
    end_halting(&o);
}

static gpuhal_status fail_with_cancelled(void *user)
{
    (void)user;
    return GPUHAL_ERROR_CANCELLED;
}

TEST(a_time_that_cannot_be_read_does_not_replace_the_failure_of_later_work)
{
    gpuhal_halting.honors_timeouts = 1;
    halting_objects o = begin_halting(0);
    gpuhal_halting.work_goes_on = 1;
    gpuhal_halting.elapsed_says = GPUHAL_ERROR_DRIVER;
    assert_ok(gpuhal_copy(o.queue, o.one, 0, o.other, 0, 64));
    assert_ok(gpuhal_queue_call(o.queue, fail_with_cancelled, NULL));
    gpuhal_halting.work_goes_on = 0;
    assert_int_equal(gpuhal_queue_synchronize(o.queue, UINT64_MAX), GPUHAL_ERROR_CANCELLED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "a function that the queue called returned"));
    traced all = write_traced(o.gpu);
    assert_int_equal(all.count, 2);
    free_traced(&all);
    gpuhal_halting.elapsed_says = GPUHAL_OK;
    gpuhal_queue_destroy(o.queue);
    end_halting(&o);
}

static void *copy_twice(void *user)
{
    const halting_objects *o = user;
    const gpuhal_status first = gpuhal_copy(o->queue, o->one, 0, o->other, 0, 64);
    const gpuhal_status status = first ? first : gpuhal_copy(o->queue, o->one, 0, o->other, 0, 64);
    assert_int_equal(status, GPUHAL_ERROR_DEVICE_LOST);
    return NULL;
}

static void hang_in(const char *slot)
{
    pthread_t thread;
    halting_objects o = begin_halting(UINT64_C(200000000));
    gpuhal_halting.slot = slot;
    assert_int_equal(pthread_create(&thread, NULL, copy_twice, &o), 0);
    while (gpuhal_device_status(gpuhal_device_at(o.gpu, 0)) != GPUHAL_ERROR_DEVICE_LOST) {
        gpuhal_os_sleep(1000000);
    }
    traced all = write_traced(o.gpu);
    assert_true(all.count + all.unfinished >= 1);
    free_traced(&all);
    gpuhal_halting.slot = NULL;
    assert_int_equal(pthread_join(thread, NULL), 0);
    all = write_traced(o.gpu);
    for (size_t k = 1; k < all.count; k++) {
        assert_string_not_equal(all.pieces[k].status, "ok");
    }
    free_traced(&all);
    gpuhal_queue_destroy(o.queue);
    end_halting(&o);
}

/* If the driver hangs in a slot that a trace calls, the thread that enqueues work stays blocked. All other threads must
 * continue. Objects of a hanging device are never released, so each case is a separate process. */
TEST(a_driver_that_hangs_keeps_no_thread_from_writing_the_trace)
{
    static const char *const slots[] = {"event_create", "event_record", "event_query", "elapsed", "queued_copy"};
    gpuhal_halting.honors_timeouts = 1;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        const pid_t child = begin_child();
        if (child == 0) {
            hang_in(slots[i]);
            _exit(0);
        }
        int state = -1;
        assert_int_equal(waitpid(child, &state, 0), child);
        if (state) {
            fail_msg("%s: wait status 0x%x", slots[i], (unsigned)state);
        }
    }
}

#include "test_main.h"
