/* Tests queues with a CUDA driver that does not return from a call. Every wait must return within its timeout, other
 * devices must continue, and the process must be able to exit. Each case runs in a separate child, and the parent
 * measures the time. */
#include "cuda_fake.h"
#include "queues.h"
#include "own_registry.h"

#include <gpuhal/usage.h>

#include <pthread.h>
#include <sys/wait.h>

#ifdef __SANITIZE_THREAD__
/* The objects of a hung device are never freed, and their threads are never joined. The sanitizer looks up this
 * function by name. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}
#endif

enum { BYTES = 65536, FILLS = 8 };
#define HANG_NS  (300 * MILLISECOND_NS)
#define SHORT_NS (100 * MILLISECOND_NS)

typedef struct hang {
    const char *function;
    bool held;       /* the hang is in the queue's own thread */
    bool lost;       /* the device is eventually reported as hung */
    unsigned number; /* number of the call that hangs */
} hang;

typedef struct fixture {
    const hang *what;
    gpuhal *gpu;
    gpuhal_device *device, *second, *cpu;
    gpuhal_queue *queue, *on_cpu;
    gpuhal_buffer *buffer;
    gpuhal_event *event, *gate, *behind;
    unsigned char bytes[BYTES];
    calls seen;
    gpuhal_os_handle descriptor;
    _Atomic bool recorded;
    gate shut;
} fixture;

static void *submit(void *user)
{
    fixture *s = user;
    gpuhal_status status = s->what->held ? gpuhal_queue_wait(s->queue, s->gate) : GPUHAL_OK;
    status = status ? status : gpuhal_write(s->queue, s->buffer, 0, s->bytes, BYTES);
    for (unsigned i = 0; i < FILLS && !status; i++) {
        status = gpuhal_fill(s->queue, s->buffer, 0, BYTES, 7, 4);
    }
    status = status ? status : gpuhal_event_record(s->event, s->queue);
    if (!status && !gpuhal_event_on_completion(s->event, count_call, &s->seen) &&
        !gpuhal_event_descriptor(s->event, &s->descriptor)) {
        atomic_store(&s->recorded, true);
    }
    (void)gpuhal_event_poll(s->event);
    return NULL;
}

static void expect_in_time(double began, uint64_t timeout_ns, const char *call)
{
    double took = seconds_now() - began;
    if (took > (double)timeout_ns / 1e9 + 3) {
        fail_msg("%s took %.1f s", call, took);
    }
}

/* Repeats short waits while they time out. Returns the status of the last gpuhal_queue_synchronize(). */
static gpuhal_status wait_shortly(fixture *s)
{
    gpuhal_status status = GPUHAL_ERROR_TIMEOUT;
    for (int i = 0; i < (s->what->lost ? 50 : 5) && status == GPUHAL_ERROR_TIMEOUT; i++) {
        double began = seconds_now();
        status = gpuhal_queue_synchronize(s->queue, SHORT_NS);
        expect_in_time(began, SHORT_NS, "gpuhal_queue_synchronize");
        began = seconds_now();
        (void)gpuhal_device_synchronize(s->device, SHORT_NS);
        expect_in_time(began, SHORT_NS, "gpuhal_device_synchronize");
        if (atomic_load(&s->recorded)) {
            began = seconds_now();
            (void)gpuhal_event_wait(s->event, SHORT_NS);
            expect_in_time(began, SHORT_NS, "gpuhal_event_wait");
        }
    }
    return status;
}

static void play(fixture *s)
{
    pthread_t thread;
    s->gpu = open_or_fail(&(gpuhal_config){
        .size = sizeof(gpuhal_config), .backends = "cuda", .isolation = GPUHAL_ISOLATION_NEVER, .hang_ns = HANG_NS});
    gpuhal_os_handle changes = -1;
    assert_ok(gpuhal_change_descriptor(s->gpu, &changes));
    s->device = select_or_fail(s->gpu, "cuda:0");
    s->second = select_or_fail(s->gpu, "cuda:1");
    s->cpu = select_or_fail(s->gpu, "cpu:0");
    s->queue = queue_or_fail(s->device, 0);
    s->on_cpu = queue_or_fail(s->cpu, 0);
    s->event = event_or_fail(s->gpu, 0);
    s->gate = event_or_fail(s->gpu, 0);
    s->buffer = buffer_or_fail(s->device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *slow = buffer_or_fail(s->cpu, GPUHAL_MEMORY_DEVICE, 64);
    enqueue_gate(&s->shut, s->on_cpu, slow);
    assert_ok(gpuhal_event_record(s->gate, s->on_cpu));
    assert_int_equal(pthread_create(&thread, NULL, submit, s), 0);
    pthread_detach(thread);
    while (s->what->held && !atomic_load(&s->recorded)) {
        pause_ms(1);
    }
    pause_ms(100);
    atomic_store(&s->shut.open, true);

    gpuhal_status status = wait_shortly(s);
    if (s->what->lost) {
        assert_int_equal(status, GPUHAL_ERROR_DEVICE_LOST);
        expect_word(gpuhal_last_error()->sentence, "hung");
        expect_fault_on_disk("hang", 1);
        assert_int_equal(gpuhal_queue_flush(s->queue), GPUHAL_ERROR_DEVICE_LOST);
        assert_int_equal(gpuhal_queue_reset(s->queue, SHORT_NS), GPUHAL_ERROR_DEVICE_LOST);
        gpuhal_change change = {.size = sizeof change};
        assert_true(is_readable(changes, 5000));
        assert_ok(gpuhal_next_change(s->gpu, &change));
        assert_int_equal(change.kind, GPUHAL_CHANGE_LOST);
        assert_ptr_equal(change.device, s->device);
        expect_word(change.sentence, "hung");
        assert_int_equal(gpuhal_device_status(s->device), GPUHAL_ERROR_DEVICE_LOST);
    }
    close((int)changes);
    if (s->what->lost && atomic_load(&s->recorded)) {
        assert_int_equal(gpuhal_event_wait(s->event, UINT64_MAX), GPUHAL_ERROR_DEVICE_LOST);
        assert_true(is_readable(s->descriptor, 5000));
        expect_called_once(&s->seen, GPUHAL_ERROR_DEVICE_LOST);
    }
    if (s->what->number > 1) {
        gpuhal_usage usage = {.size = sizeof usage};
        assert_ok(gpuhal_device_usage(s->device, &usage));
        assert_int_equal(usage.filled.operations, s->what->number - 1);
    }
    assert_ok(round_trip(s->cpu));
    if (gpuhal_queue_synchronize(s->on_cpu, 10 * SECOND_NS)) {
        fail_msg("cpu:0: %s", gpuhal_last_error()->sentence);
    }
    assert_ok(round_trip(s->second));
    gpuhal_buffer_release(slow);
    gpuhal_event_destroy(s->gate);
    gpuhal_queue_destroy(s->on_cpu);
}

/* Runs the scenario in a child, because a thread stays stuck. The child's exit code is the result. */
static void run_in_child(const hang *what, void (*scenario)(fixture *s))
{
    double began = seconds_now();
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static fixture s;
        char script[128];
        alarm(40);
        s.what = what;
        snprintf(script, sizeof script, "devices 2; hang %s %u", what->function, what->number);
        use_machine(script);
        use_registry();
        scenario(&s);
        if (what->held || what->number > 1) { /* a stuck thread does not prevent closing */
            gpuhal_event_destroy(s.event);
            gpuhal_queue_destroy(s.queue);
            gpuhal_buffer_release(s.buffer);
            gpuhal_close(s.gpu);
        }
        remove_reports();
        exit(0);
    }
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        fail_msg("%s%s: state 0x%x", what->function, what->held ? " (held)" : "", (unsigned)state);
    }
    expect_in_time(began, 20 * SECOND_NS, what->function);
}

TEST(a_caller_that_is_stuck_in_the_driver_blocks_no_other_caller)
{
    static const hang hangs[] = {
        {"cuMemcpyHtoDAsync_v2", false, true, 1},
        {"cuMemsetD32Async", false, true, 1},
        {"cuEventRecord", false, true, 1},
        {"cuEventQuery", false, false, 1},
    };
    for (size_t i = 0; i < sizeof hangs / sizeof *hangs; i++) {
        run_in_child(&hangs[i], play);
    }
}

TEST(a_thread_of_the_library_that_is_stuck_in_the_driver_is_given_up)
{
    static const hang hangs[] = {
        {"cuMemcpyHtoDAsync_v2", true, true, 1},
        {"cuMemsetD32Async", true, true, 1},
        {"cuEventRecord", true, true, 1},
        {"cuEventSynchronize", true, false, 1},
    };
    for (size_t i = 0; i < sizeof hangs / sizeof *hangs; i++) {
        run_in_child(&hangs[i], play);
    }
}

/* All operations of a batch except the first one take another code path into the driver. */
TEST(a_piece_in_the_middle_of_a_batch_that_hangs_blocks_no_other_caller)
{
    static const hang hangs[] = {{"cuMemsetD32Async", false, true, 5}, {"cuMemsetD32Async", true, true, 5}};
    for (size_t i = 0; i < sizeof hangs / sizeof *hangs; i++) {
        run_in_child(&hangs[i], play);
    }
}

/* Nothing waits for the hung queue except a descriptor, a callback and a CPU queue. */
static void play_with_descriptors(fixture *s)
{
    s->gpu = open_or_fail(&(gpuhal_config){
        .size = sizeof(gpuhal_config), .backends = "cuda", .isolation = GPUHAL_ISOLATION_NEVER, .hang_ns = HANG_NS});
    s->device = select_or_fail(s->gpu, "cuda:0");
    s->cpu = select_or_fail(s->gpu, "cpu:0");
    s->queue = queue_or_fail(s->device, 0);
    s->on_cpu = queue_or_fail(s->cpu, 0);
    s->event = event_or_fail(s->gpu, 0);
    s->gate = event_or_fail(s->gpu, 0);
    s->behind = event_or_fail(s->gpu, 0);
    s->buffer = buffer_or_fail(s->device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *slow = buffer_or_fail(s->cpu, GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_os_handle behind = -1;
    enqueue_gate(&s->shut, s->on_cpu, slow);
    assert_ok(gpuhal_event_record(s->gate, s->on_cpu));
    submit(s);
    assert_true(s->recorded);
    assert_ok(gpuhal_queue_wait(s->on_cpu, s->event));
    assert_ok(gpuhal_event_record(s->behind, s->on_cpu));
    assert_ok(gpuhal_event_descriptor(s->behind, &behind));
    atomic_store(&s->shut.open, true);
    assert_true(is_readable(s->descriptor, 20000));
    assert_true(is_readable(behind, 20000));
    assert_int_equal(gpuhal_event_poll(s->event), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_event_poll(s->behind), GPUHAL_ERROR_DEVICE_LOST);
    expect_word(gpuhal_last_error()->sentence, "cuda:0");
    expect_called_once(&s->seen, GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_queue_reset(s->on_cpu, 10 * SECOND_NS));
    assert_ok(gpuhal_fill(s->on_cpu, slow, 0, 64, 1, 1));
    assert_ok(gpuhal_queue_synchronize(s->on_cpu, 10 * SECOND_NS));
    assert_ok(round_trip(s->cpu));
    close((int)behind);
    gpuhal_event_destroy(s->gate);
    gpuhal_event_destroy(s->behind);
    gpuhal_queue_destroy(s->on_cpu);
    gpuhal_buffer_release(slow);
}

TEST(descriptors_and_callbacks_report_a_driver_that_hangs)
{
    static const hang hangs[] = {{"cuMemcpyHtoDAsync_v2", true, true, 1}, {"cuEventRecord", true, true, 1}};
    for (size_t i = 0; i < sizeof hangs / sizeof *hangs; i++) {
        run_in_child(&hangs[i], play_with_descriptors);
    }
}

/* A CPU queue does the copy, and the other device hangs. */
static void play_across(fixture *s)
{
    s->gpu = open_or_fail(&(gpuhal_config){
        .size = sizeof(gpuhal_config), .backends = "cuda", .isolation = GPUHAL_ISOLATION_NEVER, .hang_ns = HANG_NS});
    s->device = select_or_fail(s->gpu, "cuda:0");
    s->cpu = select_or_fail(s->gpu, "cpu:0");
    s->queue = queue_or_fail(s->cpu, 0);
    s->event = event_or_fail(s->gpu, 0);
    s->buffer = buffer_or_fail(s->device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *near = buffer_or_fail(s->cpu, GPUHAL_MEMORY_DEVICE, BYTES);
    assert_ok(gpuhal_copy(s->queue, s->buffer, 0, near, 0, BYTES));
    assert_ok(gpuhal_event_record(s->event, s->queue));
    assert_int_equal(gpuhal_event_wait(s->event, UINT64_MAX), GPUHAL_ERROR_DEVICE_LOST);
    expect_word(gpuhal_last_error()->sentence, "cuda:0");
    gpuhal_buffer_release(near);
    assert_ok(round_trip(s->cpu));
    assert_int_equal(gpuhal_device_synchronize(s->device, SHORT_NS), GPUHAL_ERROR_DEVICE_LOST);
}

TEST(a_device_without_a_driver_is_not_blamed_for_one_that_hangs)
{
    static const hang what = {"cuStreamSynchronize", true, true, 1};
    run_in_child(&what, play_across);
}

#include "test_main.h"
