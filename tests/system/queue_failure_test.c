/* Tests queues with a CUDA driver that fails or is slow. Every call and wait must report a failure with its original
 * cause, and each callback must report it only once. No memory may be freed too early, and a reset must make the queue
 * usable again. */
#include "cuda_fake.h"
#include "support/random.h"
#include "queues.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BYTES = 65536 };
static const char slow_machine[] = "devices 2; slow_us 300000";

static gpuhal *open_machine(const char *script)
{
    use_machine(script);
    return open_backend(GPUHAL_ISOLATION_NEVER);
}

/* A CUDA queue with operations that depend on each other, and a CPU queue that waits for them. */
typedef struct chain {
    gpuhal *gpu;
    gpuhal_device *cuda, *cpu;
    gpuhal_queue *queue, *other;
    gpuhal_buffer *one, *two, *near, *landing;
    gpuhal_event *event, *behind;
    unsigned char *in, *out; /* `out` is page-locked, so the driver reads directly into it */
    gpuhal_os_handle descriptor;
    calls first, second;
} chain;

static void open_chain(chain *c, const char *script)
{
    c->gpu = open_machine(script);
    c->cuda = select_or_fail(c->gpu, "cuda:0");
    c->cpu = select_or_fail(c->gpu, "cpu:0");
    c->one = buffer_or_fail(c->cuda, GPUHAL_MEMORY_DEVICE, BYTES);
    c->two = buffer_or_fail(c->cuda, GPUHAL_MEMORY_DEVICE, BYTES);
    c->near = buffer_or_fail(c->cpu, GPUHAL_MEMORY_DEVICE, BYTES);
    c->landing = buffer_or_fail(c->cuda, GPUHAL_MEMORY_READBACK, BYTES);
    c->out = gpuhal_buffer_host(c->landing);
    c->queue = queue_or_fail(c->cuda, 0);
    c->other = queue_or_fail(c->cpu, 0);
    c->event = event_or_fail(c->gpu, 0);
    c->behind = event_or_fail(c->gpu, 0);
    c->in = bytes_of_seed(3, BYTES);
    assert_ok(gpuhal_event_descriptor(c->event, &c->descriptor));
}

static void close_chain(chain *c)
{
    close((int)c->descriptor);
    gpuhal_buffer_release(c->one);
    gpuhal_buffer_release(c->two);
    gpuhal_buffer_release(c->near);
    gpuhal_buffer_release(c->landing);
    gpuhal_queue_destroy(c->queue);
    gpuhal_queue_destroy(c->other);
    gpuhal_event_destroy(c->event);
    gpuhal_event_destroy(c->behind);
    gpuhal_close(c->gpu);
    free(c->in);
}

static gpuhal_status enqueue_chain(chain *c)
{
    gpuhal_status status = gpuhal_write(c->queue, c->one, 0, c->in, BYTES);
    status = status ? status : gpuhal_fill(c->queue, c->one, 0, 64, 7, 4);
    status = status ? status : gpuhal_copy(c->queue, c->two, 0, c->one, 0, BYTES);
    status = status ? status : gpuhal_read(c->queue, c->out, c->two, 0, BYTES);
    return status ? status : gpuhal_event_record(c->event, c->queue);
}

static void expect_chain(chain *c)
{
    static const unsigned char sevens[4] = {7, 0, 0, 0};
    memset(c->out, 0, BYTES);
    assert_ok(enqueue_chain(c));
    assert_ok(gpuhal_event_wait(c->event, PATIENCE_NS));
    assert_true(is_readable(c->descriptor, 10000));
    assert_memory_equal(c->out, sevens, 4);
    assert_memory_equal(c->out + 64, c->in + 64, BYTES - 64);
}

static void refuse(const char *function)
{
    static chain c;
    char script[128], first[512];
    snprintf(script, sizeof script, "fail %s 1 999", function);
    open_chain(&c, script);
    gpuhal_status status = enqueue_chain(&c);
    assert_int_not_equal(status, GPUHAL_OK);
    snprintf(first, sizeof first, "%s", gpuhal_last_error()->sentence);
    assert_int_equal(gpuhal_fill(c.queue, c.one, 0, 64, 1, 4), status);
    assert_string_equal(gpuhal_last_error()->sentence, first);
    assert_int_equal(gpuhal_event_record(c.event, c.queue), status);
    assert_int_equal(gpuhal_queue_flush(c.queue), status);
    assert_int_equal(gpuhal_queue_synchronize(c.queue, PATIENCE_NS), status);
    assert_string_equal(gpuhal_last_error()->sentence, first);
    assert_int_equal(gpuhal_device_synchronize(c.cuda, PATIENCE_NS), status);
    assert_string_equal(gpuhal_last_error()->sentence, first);
    assert_ok(gpuhal_queue_reset(c.queue, PATIENCE_NS));
    expect_chain(&c);
    assert_ok(round_trip(c.cpu));
    close_chain(&c);
    expect_clean();
}

static void in_child(void (*play)(const char *function), const char *function)
{
    int state = 0;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(100);
        play(function);
        exit(0);
    }
    assert_int_equal(waitpid(child, &state, 0), child);
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
        fail_msg("%s: state 0x%x", function, (unsigned)state);
    }
}

TEST(after_a_call_that_the_driver_refused_all_answer_with_its_cause_until_the_reset)
{
    static const char *const functions[] = {"cuMemcpyHtoDAsync_v2", "cuMemsetD32Async", "cuMemcpyDtoDAsync_v2",
                                            "cuMemcpyDtoHAsync_v2", "cuEventRecord"};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        in_child(refuse, functions[i]);
    }
}

/* The calls succeed, but the device's work fails later. */
static void lose(const char *function)
{
    static chain c;
    char script[128], first[512];
    gpuhal_os_handle behind = -1;
    void *user = NULL;
    gpuhal_status ended = GPUHAL_OK;
    snprintf(script, sizeof script, "devices 2; slow_us 200000; lose 0 %s 1 719", function);
    open_chain(&c, script);
    assert_ok(gpuhal_write(c.queue, c.one, 0, c.in, BYTES));
    assert_ok(gpuhal_fill(c.queue, c.one, 0, 64, 7, 4));
    assert_ok(gpuhal_copy(c.queue, c.two, 0, c.one, 0, BYTES));
    assert_ok(gpuhal_event_record(c.event, c.queue));
    assert_ok(gpuhal_event_on_completion(c.event, count_call, &c.first));
    assert_ok(gpuhal_event_watch(c.event, &c));
    assert_ok(gpuhal_queue_wait(c.other, c.event));
    assert_ok(gpuhal_fill(c.other, c.near, 0, BYTES, 1, 1));
    assert_ok(gpuhal_event_record(c.behind, c.other));
    assert_ok(gpuhal_event_on_completion(c.behind, count_call, &c.second));
    assert_ok(gpuhal_event_descriptor(c.behind, &behind));
    assert_true(is_readable(behind, 20000));
    assert_true(is_readable(c.descriptor, 20000));
    gpuhal_status status = gpuhal_event_wait(c.event, PATIENCE_NS);
    assert_int_not_equal(status, GPUHAL_OK);
    snprintf(first, sizeof first, "%s", gpuhal_last_error()->sentence);
    assert_int_equal(gpuhal_event_wait(c.behind, PATIENCE_NS), status);
    assert_string_equal(gpuhal_last_error()->sentence, first);
    assert_int_equal(gpuhal_queue_synchronize(c.other, PATIENCE_NS), status);
    assert_string_equal(gpuhal_last_error()->sentence, first);
    expect_called_once(&c.first, status);
    expect_called_once(&c.second, status);
    assert_ok(gpuhal_next_completion(c.gpu, &user, &ended));
    assert_ptr_equal(user, &c);
    assert_int_equal(ended, status);
    assert_int_equal(gpuhal_next_completion(c.gpu, &user, &ended), GPUHAL_NOT_READY);
    assert_ok(gpuhal_queue_reset(c.other, PATIENCE_NS));
    assert_ok(gpuhal_fill(c.other, c.near, 0, BYTES, 1, 1));
    assert_ok(gpuhal_queue_synchronize(c.other, PATIENCE_NS));
    assert_ok(round_trip(select_or_fail(c.gpu, "cuda:1")));
    close((int)behind);
    close_chain(&c);
    expect_no_violation();
    assert_int_equal(fake_report_get()->streams, 0);
    assert_int_equal(fake_report_get()->events, 0);
    remove_reports();
}

TEST(work_that_fails_on_the_device_is_reported_to_every_wait_with_its_cause)
{
    in_child(lose, "cuMemcpyHtoDAsync_v2");
    in_child(lose, "cuMemsetD32Async");
    in_child(lose, "cuMemcpyDtoDAsync_v2");
}

/* The library's own queue copies with blocking calls, and these calls fail. A queue of the driver waits for the
 * copy. */
TEST(a_blocking_step_that_fails_fails_the_queues_that_wait_for_it)
{
    static chain c;
    char first[512];
    static gate held;
    open_chain(&c, "fail cuStreamSynchronize 1 999");
    enqueue_gate(&held, c.other, c.near);
    assert_ok(gpuhal_copy(c.other, c.one, 0, c.near, 0, BYTES));
    assert_ok(gpuhal_event_record(c.behind, c.other));
    assert_ok(gpuhal_queue_wait(c.queue, c.behind));
    atomic_store(&held.open, true);
    assert_ok(gpuhal_event_wait(c.behind, PATIENCE_NS) == GPUHAL_ERROR_DRIVER ? GPUHAL_OK : GPUHAL_ERROR_DRIVER);
    snprintf(first, sizeof first, "%s", gpuhal_last_error()->sentence);
    assert_int_equal(gpuhal_queue_synchronize(c.queue, PATIENCE_NS), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->sentence, first);
    assert_ok(gpuhal_queue_reset(c.other, PATIENCE_NS));
    assert_ok(gpuhal_queue_reset(c.queue, PATIENCE_NS));
    expect_chain(&c);
    assert_ok(gpuhal_copy(c.other, c.one, 0, c.near, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(c.other, PATIENCE_NS));
    close_chain(&c);
    expect_clean();
}

TEST(a_buffer_that_is_released_during_a_copy_stays_until_the_copy_is_done)
{
    gpuhal *gpu = open_machine(slow_machine);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_event *event = event_or_fail(gpu, 0);
    unsigned before = fake_report_get()->allocations;
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 1, 4));
    assert_ok(gpuhal_event_record(event, queue));
    gpuhal_buffer_release(buffer);
    assert_int_equal(gpuhal_event_poll(event), GPUHAL_NOT_READY);
    assert_int_equal(fake_report_get()->allocations, before + 1);
    assert_ok(gpuhal_event_wait(event, PATIENCE_NS));
    for (int i = 0; i < 5000 && fake_report_get()->allocations > before; i++) {
        pause_ms(1);
    }
    assert_int_equal(fake_report_get()->allocations, before);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    close_clean(gpu);
}

TEST(waiting_ends_in_its_time_and_uses_no_processor_time)
{
    gpuhal *gpu = open_machine(slow_machine);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_event *event = event_or_fail(gpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    struct rusage before, after;
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 1, 4));
    assert_ok(gpuhal_event_record(event, queue));
    assert_int_equal(gpuhal_event_wait(event, 0), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_event_wait(event, 10 * MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_queue_synchronize(queue, MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_device_synchronize(device, MILLISECOND_NS), GPUHAL_ERROR_TIMEOUT);
    double began = seconds_now();
    getrusage(RUSAGE_SELF, &before);
    assert_ok(gpuhal_event_wait(event, PATIENCE_NS));
    getrusage(RUSAGE_SELF, &after);
    assert_true(seconds_now() - began > 0.1);
    /* All threads together must use less than a tenth of the CPU time that one polling thread would use. */
    double used =
        (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
        (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec) /
            1e6;
    assert_true(used < 0.02);
    assert_ok(gpuhal_queue_synchronize(queue, 0) == GPUHAL_ERROR_TIMEOUT ? gpuhal_queue_synchronize(queue, PATIENCE_NS)
                                                                         : GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    close_clean(gpu);
}

/* The application releases the gpuhal object and the queue before the event's callback has run. The callback destroys
 * the event. */
typedef struct parting {
    gpuhal_event *event;
    calls seen;
} parting;

static void part(void *user, gpuhal_status status)
{
    parting *p = user;
    gpuhal_event_destroy(p->event);
    count_call(&p->seen, status);
}

TEST(the_last_reference_may_go_in_a_callback)
{
    static parting p;
    gpuhal *gpu = open_machine(slow_machine);
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    p.event = event_or_fail(gpu, 0);
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 1, 4));
    assert_ok(gpuhal_event_record(p.event, queue));
    assert_ok(gpuhal_event_on_completion(p.event, part, &p));
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    gpuhal_queue_destroy(queue);
    expect_called_once(&p.seen, GPUHAL_OK);
    for (int i = 0; i < 5000 && fake_report_get()->contexts_alive > 0; i++) {
        pause_ms(1);
    }
    pause_ms(50);
    expect_clean();
}

TEST(completions_are_reported_in_order)
{
    enum { COUNT = 20 };
    gpuhal *gpu = open_machine("slow_us 5000");
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_event *event = event_or_fail(gpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    static int numbers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 1, 4));
        assert_ok(gpuhal_event_record(event, queue));
        assert_ok(gpuhal_event_watch(event, &numbers[i]));
    }
    pause_ms(50);
    assert_ok(gpuhal_event_wait(event, PATIENCE_NS));
    for (int i = 0; i < COUNT; i++) {
        void *user = NULL;
        gpuhal_status status = GPUHAL_NOT_READY;
        for (int turn = 0; turn < 5000 && gpuhal_next_completion(gpu, &user, &status); turn++) {
            pause_ms(1);
        }
        assert_ptr_equal(user, &numbers[i]);
        assert_ok(status);
    }
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(queue);
    close_clean(gpu);
}

TEST(a_queue_that_was_only_flushed_goes_quietly)
{
    gpuhal *gpu = open_machine("devices 1");
    gpuhal_queue *queue = queue_or_fail(select_or_fail(gpu, "cuda:0"), 0);
    assert_ok(gpuhal_queue_flush(queue));
    assert_ok(gpuhal_queue_flush(queue));
    double began = seconds_now();
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    assert_true(seconds_now() - began < 10);
    expect_clean();
}

TEST(buffers_of_two_other_devices_are_refused_and_ranges_may_not_overlap)
{
    gpuhal *gpu = open_machine("devices 2");
    gpuhal_queue *queue = queue_or_fail(select_or_fail(gpu, "cuda:0"), 0);
    gpuhal_buffer *far = buffer_or_fail(select_or_fail(gpu, "cuda:1"), GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *near = buffer_or_fail(select_or_fail(gpu, "cpu:0"), GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *own = buffer_or_fail(select_or_fail(gpu, "cuda:0"), GPUHAL_MEMORY_DEVICE, BYTES);
    assert_int_equal(gpuhal_copy(queue, far, 0, near, 0, BYTES), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_copy(queue, own, 0, own, 16, 32), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_ok(gpuhal_copy(queue, own, 0, far, 0, BYTES));
    assert_ok(gpuhal_copy(queue, near, 0, own, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    gpuhal_buffer_release(own);
    gpuhal_buffer_release(far);
    gpuhal_buffer_release(near);
    gpuhal_queue_destroy(queue);
    close_clean(gpu);
}

TEST(native_access_keeps_the_order_and_the_queue_to_itself)
{
    gpuhal *gpu = open_machine("slow_us 2000");
    vendor_api api = load_api();
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_queue *queue = queue_or_fail(device, 0);
    gpuhal_event *event = event_or_fail(gpu, 0);
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_native native = {.size = sizeof native}, memory = {.size = sizeof memory},
                  context = {.size = sizeof context};
    gpuhal_native none = {.size = sizeof none};
    unsigned char got[BYTES], first[BYTES];
    CUcontext popped = NULL;
    assert_ok(gpuhal_buffer_native(buffer, &memory));
    assert_ok(gpuhal_device_native(device, &context));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 0x11, 1));
    assert_ok(gpuhal_read(queue, first, buffer, 0, BYTES));
    assert_ok(gpuhal_queue_native_begin(queue, PATIENCE_NS, &native));
    assert_int_equal(native.type, GPUHAL_NATIVE_CUDA_STREAM);
    assert_int_equal(gpuhal_fill(queue, buffer, 0, BYTES, 1, 1), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_queue_flush(queue), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_event_record(event, queue), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_queue_synchronize(queue, PATIENCE_NS), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_queue_native_begin(queue, 0, &none), GPUHAL_ERROR_BUSY);
    assert_int_equal(api.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)context.values[0]), CUDA_SUCCESS);
    assert_int_equal(
        api.cuMemsetD8Async((CUdeviceptr)memory.values[0], 0x22, BYTES / 2, (CUstream)(uintptr_t)native.values[0]),
        CUDA_SUCCESS);
    assert_int_equal(api.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    assert_ok(gpuhal_queue_native_end(queue));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES / 4, 0x33, 1));
    assert_ok(gpuhal_read(queue, got, buffer, 0, BYTES));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    for (unsigned i = 0; i < BYTES; i++) {
        assert_int_equal(first[i], 0x11);
        assert_int_equal(got[i], i < BYTES / 4 ? 0x33 : i < BYTES / 2 ? 0x22 : 0x11);
    }
    /* Native access cannot begin within a microsecond, because the queue waits for another queue's slow work. */
    static gate held;
    gpuhal_buffer *slow = buffer_or_fail(select_or_fail(gpu, "cpu:0"), GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_queue *on_cpu = queue_or_fail(select_or_fail(gpu, "cpu:0"), 0);
    enqueue_gate(&held, on_cpu, slow);
    assert_ok(gpuhal_event_record(event, on_cpu));
    assert_ok(gpuhal_queue_wait(queue, event));
    assert_int_equal(gpuhal_queue_native_begin(queue, 1000, &none), GPUHAL_ERROR_TIMEOUT);
    atomic_store(&held.open, true);
    assert_ok(gpuhal_queue_native_begin(queue, PATIENCE_NS, &native));
    gpuhal_queue_destroy(queue); /* also allowed during native access */
    gpuhal_queue_destroy(on_cpu);
    gpuhal_buffer_release(slow);
    gpuhal_buffer_release(buffer);
    gpuhal_event_destroy(event);
    close_clean(gpu);
}

TEST(a_stream_is_taken_over_and_survives_reset_and_destruction)
{
    gpuhal *gpu = open_machine("fail cuMemsetD32Async 1 999");
    vendor_api api = load_api();
    gpuhal_device *device = select_or_fail(gpu, "cuda:0");
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_native context = {.size = sizeof context};
    CUstream stream = NULL;
    CUcontext popped = NULL;
    unsigned char got[64], wanted[64];
    memset(wanted, 5, sizeof wanted);
    assert_ok(gpuhal_device_native(device, &context));
    assert_int_equal(api.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)context.values[0]), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamCreate(&stream, 1), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    gpuhal_queue *queue = NULL;
    const gpuhal_native native = {
        .size = sizeof native, .type = GPUHAL_NATIVE_CUDA_STREAM, .values = {(uintptr_t)stream}};
    const gpuhal_queue_desc desc = {.size = sizeof desc, .priority = 7, .adopt = &native};
    assert_ok(gpuhal_queue_create(device, &desc, &queue));
    assert_int_equal(gpuhal_fill(queue, buffer, 0, BYTES, 9, 4), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_queue_flush(queue), GPUHAL_ERROR_DRIVER);
    assert_ok(gpuhal_queue_reset(queue, PATIENCE_NS));
    assert_ok(gpuhal_fill(queue, buffer, 0, BYTES, 5, 1));
    assert_ok(gpuhal_read(queue, got, buffer, 0, sizeof got));
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    assert_memory_equal(got, wanted, sizeof got);
    gpuhal_queue_destroy(queue);
    const gpuhal_queue_desc urgent = {.size = sizeof urgent, .priority = INT32_MAX},
                            idle = {.size = sizeof idle, .priority = INT32_MIN};
    assert_ok(gpuhal_queue_create(device, &urgent, &queue));
    gpuhal_queue_destroy(queue);
    assert_ok(gpuhal_queue_create(device, &idle, &queue));
    gpuhal_queue_destroy(queue);
    assert_int_equal(api.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)context.values[0]), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamSynchronize(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    assert_int_equal(api.cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
    gpuhal_buffer_release(buffer);
    close_clean(gpu);
}

#include "test_main.h"
