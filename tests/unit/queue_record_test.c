/* Events that a queue records itself (docs/transfers.md promises one after every 256 submissions), and objects of
 * launches, which a queue keeps alive until the work has ended. */
#include "support/halting.h"
#include "test.h"

#include <gpuhal/program.h>

#include <pthread.h>

enum { EVERY = 256, THREADS = 4, LAUNCHES = 200000, DEFERRED = 1000 };

typedef struct objects {
    gpuhal *gpu;
    gpuhal_program *program;
    gpuhal_kernel *kernel;
    gpuhal_buffer *buffers[2];
    gpuhal_queue *queue;
} objects;

static void begin(objects *o)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .builtins = builtins};
    const gpuhal_code code = {.size = sizeof code, .format = "halting", .code = "code", .bytes = 4};
    const gpuhal_program_desc program = {.size = sizeof program, .codes = &code, .code_count = 1};
    const gpuhal_kernel_desc kernel = {.size = sizeof kernel, .name = "kernel"};
    const gpuhal_buffer_desc buffer = {.size = sizeof buffer, .bytes = 64};
    gpuhal_device *device = NULL;
    assert_ok(gpuhal_open(&config, &o->gpu));
    assert_ok(gpuhal_select(o->gpu, "halting:0", 0, &device, NULL));
    assert_ok(gpuhal_program_create(device, &program, &o->program));
    assert_ok(gpuhal_kernel_create(o->program, &kernel, &o->kernel));
    for (int i = 0; i < 2; i++) {
        assert_ok(gpuhal_buffer_create(device, &buffer, &o->buffers[i]));
    }
    assert_ok(gpuhal_queue_create(device, NULL, &o->queue));
}

static void end(objects *o)
{
    gpuhal_queue_destroy(o->queue);
    for (int i = 0; i < 2; i++) {
        gpuhal_buffer_release(o->buffers[i]);
    }
    gpuhal_kernel_release(o->kernel);
    gpuhal_program_release(o->program);
    gpuhal_close(o->gpu);
    assert_int_equal(gpuhal_halting.openings, 0);
}

static void launch(const objects *o, uint32_t buffer)
{
    const gpuhal_argument argument = {.buffer = o->buffers[buffer]};
    const gpuhal_launch how = {.size = sizeof how, .argument_count = 1, .arguments = &argument, .groups = {1, 1, 1}};
    assert_ok(gpuhal_kernel_launch(o->queue, o->kernel, &how));
}

static void *launch_many(void *user)
{
    const objects *o = user;
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        launch(o, i / 2 % 2);
    }
    return NULL;
}

TEST(a_queue_records_an_event_after_every_256_launches_of_several_threads)
{
    objects o;
    pthread_t threads[THREADS];
    begin(&o);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, launch_many, &o), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(gpuhal_halting.unrecorded_most, EVERY);
    end(&o);
}

TEST(a_queue_records_an_event_after_every_256_launches_that_were_deferred)
{
    objects o;
    gpuhal_event *signal = NULL;
    begin(&o);
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &signal));
    assert_ok(gpuhal_queue_wait(o.queue, signal));
    for (uint32_t i = 0; i < DEFERRED; i++) {
        launch(&o, 0);
    }
    assert_ok(gpuhal_event_signal(signal, GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    assert_int_equal(gpuhal_halting.unrecorded_most, EVERY);
    gpuhal_event_destroy(signal);
    end(&o);
}

static uint64_t bytes_of(gpuhal_device *device)
{
    gpuhal_memory_statistics statistics = {.size = sizeof statistics};
    assert_ok(gpuhal_device_get_memory_statistics(device, &statistics));
    return statistics.allocated.current;
}

/* The second and the third launch join the newest submission, which keeps their kernels and buffers, too. Sanitizers
 * detect kernels that are freed too early. */
TEST(kernels_and_buffers_of_launches_stay_until_the_work_has_ended)
{
    enum { BYTES = 4096, COUNT = 3 };
    const gpuhal_kernel_desc kernel = {.size = sizeof kernel, .name = "kernel"};
    const gpuhal_buffer_desc buffer = {.size = sizeof buffer, .bytes = BYTES};
    objects o;
    begin(&o);
    gpuhal_device *device = gpuhal_buffer_device(o.buffers[0]);
    const uint64_t before = bytes_of(device);
    gpuhal_halting.work_goes_on = 1;
    for (int i = 0; i < COUNT; i++) {
        objects own = o;
        assert_ok(gpuhal_kernel_create(o.program, &kernel, &own.kernel));
        assert_ok(gpuhal_buffer_create(device, &buffer, &own.buffers[0]));
        launch(&own, 0);
        gpuhal_kernel_release(own.kernel);
        gpuhal_buffer_release(own.buffers[0]);
    }
    assert_int_equal(bytes_of(device), before + COUNT * BYTES);
    gpuhal_halting.work_goes_on = 0;
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    assert_int_equal(bytes_of(device), before);
    end(&o);
}

#include "test_main.h"
