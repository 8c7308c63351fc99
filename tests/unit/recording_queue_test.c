/* Recordings: the objects that they keep, and the order of their runs in one queue and in several. */
#include "recording_support.h"

#include <pthread.h>

static void a_recording_keeps_its_objects_until_its_runs_have_ended_in(driver_form form)
{
    objects o = begin(form);
    gpuhal_recording *recording = new_recording(o.device, 1);
    assert_int_equal(record_add(recording, o.add, o.one, 4), 0);
    assert_ok(gpuhal_recording_slot(recording, 0, 0, 0));
    assert_ok(gpuhal_recording_copy(recording, o.other, 0, o.one, 0, BYTES));
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_buffer *result = gpuhal_buffer_retain(o.other), *slot = make_buffer(o.device);
    gpuhal_kernel_release(o.add);
    gpuhal_program_release(o.program);
    gpuhal_buffer_release(o.one);
    gpuhal_buffer_release(o.other);
    o.add = NULL;
    o.program = NULL;
    o.one = o.other = NULL;
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    const gpuhal_slot_value other = {.argument = {.buffer = slot}};
    assert_ok(gpuhal_recording_run(o.queue, gpuhal_recording_retain(recording), &other, 1));
    gpuhal_recording_release(recording);
    gpuhal_recording_release(recording);
    gpuhal_buffer_release(slot);
    assert_ok(gpuhal_event_signal(go, GPUHAL_OK));
    expect(o.queue, result, 4);
    gpuhal_buffer_release(result);
    gpuhal_event_destroy(go);
    gpuhal_recording_release(NULL);
    assert_null(gpuhal_recording_retain(NULL));
    end(&o);
}

TEST(a_recording_keeps_its_objects_until_its_runs_have_ended)
{
    in_both_forms(a_recording_keeps_its_objects_until_its_runs_have_ended_in);
}

static void memory_of_a_pool_belongs_to_the_recording_until_it_is_freed_in(driver_form form)
{
    objects o = begin(form);
    gpuhal_pool_desc desc = {.size = sizeof desc, .segment_bytes = SEGMENT, .limit_bytes = SEGMENT};
    gpuhal_pool *pool = NULL;
    assert_ok(gpuhal_pool_create(o.device, &desc, &pool));
    gpuhal_buffer *part = take(pool, o.queue, SEGMENT);
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, part, 1);
    assert_ok(gpuhal_recording_fill(recording, part, 0, 64, 0, 4));
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_buffer_release(part);
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    assert_int_equal(attempt(pool, NULL, 1, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_recording_release(recording);
    assert_ok(attempt(pool, NULL, SEGMENT, 0, 0));
    gpuhal_pool_destroy(pool);
    end(&o);
}

TEST(memory_of_a_pool_belongs_to_the_recording_until_it_is_freed)
{
    in_both_forms(memory_of_a_pool_belongs_to_the_recording_until_it_is_freed_in);
}

static void runs_in_two_queues_do_not_overlap_in(driver_form form)
{
    objects o = begin(form);
    gpuhal_queue *second = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &second));
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_recording_run(second, recording, NULL, 0));
    assert_int_equal(gpuhal_queue_synchronize(second, 50000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_halting.launches, 0);
    assert_ok(gpuhal_event_signal(go, GPUHAL_OK));
    expect(second, o.one, 2);
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    gpuhal_queue_destroy(o.queue);
    o.queue = second;
    assert_ok(gpuhal_recording_run(second, recording, NULL, 0));
    expect(second, o.one, 4);
    gpuhal_event_destroy(go);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(runs_in_two_queues_do_not_overlap)
{
    in_both_forms(runs_in_two_queues_do_not_overlap_in);
}

static void a_recording_can_be_run_in_another_queue_after_its_queue_has_failed_in(driver_form form)
{
    objects o = begin(form);
    gpuhal_queue *second = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &second));
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_finish(recording));
    gpuhal_event *go = NULL;
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &go));
    assert_ok(gpuhal_queue_wait(o.queue, go));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_event_signal(go, GPUHAL_ERROR_FILE));
    assert_int_equal(gpuhal_queue_synchronize(o.queue, PATIENCE_NS), GPUHAL_ERROR_FILE);
    assert_int_equal(gpuhal_recording_run(o.queue, recording, NULL, 0), GPUHAL_ERROR_FILE);
    gpuhal_status status = gpuhal_recording_run(second, recording, NULL, 0);
    assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_BUSY);
    assert_ok(gpuhal_queue_reset(o.queue, PATIENCE_NS));
    assert_ok(gpuhal_recording_run(second, recording, NULL, 0));
    expect(second, o.one, status ? 1 : 2);
    gpuhal_queue_destroy(second);
    gpuhal_event_destroy(go);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_recording_can_be_run_in_another_queue_after_its_queue_has_failed)
{
    in_both_forms(a_recording_can_be_run_in_another_queue_after_its_queue_has_failed_in);
}

/* Each later submission retires earlier work while it has the right to call the driver. */
static void a_run_that_ends_may_free_memory_of_a_pool_that_another_queue_uses_in(driver_form form)
{
    for (int destroyed = 0; destroyed < 2; destroyed++) {
        objects o = begin(form);
        gpuhal_queue *home = NULL;
        assert_ok(gpuhal_queue_create(o.device, NULL, &home));
        gpuhal_pool_desc desc = {.size = sizeof desc, .segment_bytes = SEGMENT, .limit_bytes = 16 * SEGMENT};
        gpuhal_pool *pool = NULL;
        assert_ok(gpuhal_pool_create(o.device, &desc, &pool));
        gpuhal_buffer *part = take(pool, destroyed ? o.queue : home, 4096);
        gpuhal_recording *recording = new_recording(o.device, 0);
        assert_ok(gpuhal_recording_fill(recording, part, 0, 64, 1, 4));
        assert_ok(gpuhal_recording_finish(recording));
        assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
        gpuhal_buffer_release(part);
        gpuhal_recording_release(recording);
        if (destroyed) {
            gpuhal_pool_destroy(pool);
        }
        for (int i = 0; i < 4 * EVERY; i++) {
            assert_ok(gpuhal_fill(o.queue, i % 2 ? o.one : o.other, 0, BYTES, 1, 4));
        }
        assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
        if (!destroyed) {
            gpuhal_pool_destroy(pool);
        }
        gpuhal_queue_destroy(home);
        end(&o);
    }
}

TEST(a_run_that_ends_may_free_memory_of_a_pool_that_another_queue_uses)
{
    in_both_forms(a_run_that_ends_may_free_memory_of_a_pool_that_another_queue_uses_in);
}

/* The driver records no event after the failure, so only its queue_destroy, which a timed event delays and which stops
 * in this test, shows that the run has ended. */
static void a_run_of_a_failed_queue_does_not_overlap_the_next_run_in(driver_form form)
{
    for (int destroys = 0; destroys < 2; destroys++) {
        objects o = begin(form);
        const gpuhal_queue_desc desc = {.size = sizeof desc, .flags = GPUHAL_QUEUE_TIMED};
        const char *const why = "its previous run is in another queue that has failed";
        gpuhal_queue *failed = NULL;
        gpuhal_event *timed = NULL;
        gpuhal_recording *recording = new_recording(o.device, 0);
        (void)record_add(recording, o.add, o.one, 1);
        assert_ok(gpuhal_recording_finish(recording));
        assert_ok(gpuhal_queue_create(o.device, &desc, &failed));
        assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_TIMED, &timed));
        assert_ok(gpuhal_event_record(timed, failed));
        assert_ok(gpuhal_event_wait(timed, PATIENCE_NS));
        assert_ok(gpuhal_recording_run(failed, recording, NULL, 0));
        gpuhal_halting.launch_says = gpuhal_halting.run_says = gpuhal_halting.record_says = GPUHAL_ERROR_DRIVER;
        assert_int_equal(gpuhal_recording_run(failed, recording, NULL, 0), GPUHAL_ERROR_DRIVER);
        gpuhal_halting.launch_says = gpuhal_halting.run_says = GPUHAL_OK;
        gpuhal_halting.slot = "queue_destroy";
        if (destroys) {
            gpuhal_queue_destroy(failed);
        }
        for (int kept = 1; kept >= 0; kept--) {
            if (!kept) {
                gpuhal_event_destroy(timed);
            }
            const gpuhal_status reset = destroys ? GPUHAL_ERROR_TIMEOUT : gpuhal_queue_reset(failed, 50000000);
            assert_int_equal(reset, GPUHAL_ERROR_TIMEOUT);
            for (int i = 0; i < 20000 && gpuhal_halting.stopped == 0 && (!kept || i < 50); i++) {
                gpuhal_os_sleep(1000000);
            }
            assert_int_equal(gpuhal_halting.stopped, !kept);
            refused(gpuhal_recording_run(o.queue, recording, NULL, 0), GPUHAL_ERROR_BUSY, why);
        }
        gpuhal_halting.slot = NULL;
        gpuhal_halting.record_says = GPUHAL_OK;
        if (!destroys) {
            assert_ok(gpuhal_queue_reset(failed, PATIENCE_NS));
            gpuhal_queue_destroy(failed);
        }
        gpuhal_status status = GPUHAL_ERROR_BUSY;
        for (int i = 0; i < 20000 && (status = gpuhal_recording_run(o.queue, recording, NULL, 0)); i++) {
            assert_int_equal(status, GPUHAL_ERROR_BUSY);
            gpuhal_os_sleep(1000000);
        }
        expect(o.queue, o.one, 2);
        gpuhal_recording_release(recording);
        end(&o);
    }
}

TEST(a_run_of_a_failed_queue_does_not_overlap_the_next_run)
{
    in_both_forms(a_run_of_a_failed_queue_does_not_overlap_the_next_run_in);
}

static void the_order_of_runs_holds_after_a_queue_between_them_has_failed_in(driver_form form)
{
    objects o = begin(form);
    gpuhal_queue *queues[2] = {NULL, NULL};
    gpuhal_event *gates[2] = {NULL, NULL};
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_finish(recording));
    for (int i = 0; i < 2; i++) {
        assert_ok(gpuhal_queue_create(o.device, NULL, &queues[i]));
        assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &gates[i]));
    }
    assert_ok(gpuhal_queue_wait(o.queue, gates[0]));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0)); /* waits for its gate until the end */
    assert_ok(gpuhal_queue_wait(queues[0], gates[1]));
    assert_ok(gpuhal_recording_run(queues[0], recording, NULL, 0));
    assert_ok(gpuhal_event_signal(gates[1], GPUHAL_ERROR_FILE));
    assert_int_equal(gpuhal_queue_synchronize(queues[0], PATIENCE_NS), GPUHAL_ERROR_FILE);
    refused(gpuhal_recording_run(queues[1], recording, NULL, 0), GPUHAL_ERROR_BUSY, "another queue that has failed");
    assert_int_equal(gpuhal_queue_reset(queues[0], 50000000), GPUHAL_ERROR_TIMEOUT);
    assert_int_equal(gpuhal_halting.launches, 0);
    assert_ok(gpuhal_event_signal(gates[0], GPUHAL_OK));
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    assert_ok(gpuhal_queue_reset(queues[0], PATIENCE_NS));
    assert_ok(gpuhal_recording_run(queues[1], recording, NULL, 0));
    expect(queues[1], o.one, 2);
    for (int i = 0; i < 2; i++) {
        gpuhal_queue_destroy(queues[i]);
        gpuhal_event_destroy(gates[i]);
    }
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(the_order_of_runs_holds_after_a_queue_between_them_has_failed)
{
    in_both_forms(the_order_of_runs_holds_after_a_queue_between_them_has_failed_in);
}

static void a_run_that_is_refused_leaves_no_wait_in_its_queue_in(driver_form form)
{
    objects o = begin(form);
    gpuhal_queue *second = NULL;
    gpuhal_event *gate = NULL;
    void *mapped = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &second));
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &gate));
    gpuhal_recording *recording = new_recording(o.device, 0);
    (void)record_add(recording, o.add, o.one, 1);
    assert_ok(gpuhal_recording_finish(recording));
    assert_ok(gpuhal_queue_wait(o.queue, gate));
    assert_ok(gpuhal_recording_run(o.queue, recording, NULL, 0));
    assert_ok(gpuhal_buffer_map(o.one, 0, BYTES, GPUHAL_ACCESS_READ, &mapped));
    refused(gpuhal_recording_run(second, recording, NULL, 0), GPUHAL_ERROR_BUSY, "is mapped");
    assert_ok(gpuhal_buffer_unmap(o.one, mapped));
    assert_ok(gpuhal_queue_synchronize(second, PATIENCE_NS));
    assert_ok(gpuhal_event_signal(gate, GPUHAL_OK));
    expect(o.queue, o.one, 1);
    gpuhal_queue_destroy(second);
    gpuhal_event_destroy(gate);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_run_that_is_refused_leaves_no_wait_in_its_queue)
{
    in_both_forms(a_run_that_is_refused_leaves_no_wait_in_its_queue_in);
}

/* The driver compiles at a kernel's first launch, not at a step without groups. */
static void a_step_without_groups_is_not_the_first_launch_of_its_kernel_in(driver_form form)
{
    objects o = begin(form);
    const uint32_t value = 1;
    o.add->info.group_size[1] = 8;
    gpuhal_recording *recording = new_recording(o.device, 1);
    const uint32_t step = record_add(recording, o.add, o.one, value);
    assert_ok(gpuhal_recording_slot(recording, 0, step, GPUHAL_SLOT_GROUPS));
    assert_ok(gpuhal_recording_finish(recording));
    const gpuhal_slot_value none = {.groups = {0, 1, 1}}, one = {.groups = {1, 1, 1}};
    assert_ok(gpuhal_recording_run(o.queue, recording, &none, 1));
    assert_ok(gpuhal_queue_synchronize(o.queue, PATIENCE_NS));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_recording_run(o.queue, recording, &one, 1));
    refused(gpuhal_queue_synchronize(o.queue, 10000000), GPUHAL_ERROR_TIMEOUT,
            "recording token ran for the first time, and the driver may still be compiling its kernels");
    gpuhal_halting.work_goes_on = 0;
    expect(o.queue, o.one, 1);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(a_step_without_groups_is_not_the_first_launch_of_its_kernel)
{
    in_both_forms(a_step_without_groups_is_not_the_first_launch_of_its_kernel_in);
}

enum { THREADS = 4, RUNS = 500 };

typedef struct runner {
    const objects *o;
    gpuhal_recording *recording;
    gpuhal_queue *queue;
    uint32_t value;
    pthread_t thread;
} runner;

static void *run_many(void *user)
{
    const runner *own = user;
    for (int i = 0; i < RUNS; i++) {
        const gpuhal_slot_value value = value_of(0, &own->value);
        assert_ok(gpuhal_recording_run(own->queue, own->recording, &value, 1));
    }
    assert_ok(gpuhal_queue_synchronize(own->queue, PATIENCE_NS));
    return NULL;
}

static void threads_may_run_one_recording_at_once_in_one_queue_and_in_several_in(driver_form form)
{
    objects o = begin(form);
    runner runners[THREADS];
    gpuhal_queue *second = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &second));
    gpuhal_recording *recording = new_recording(o.device, 1);
    assert_ok(gpuhal_recording_slot(recording, 0, record_add(recording, o.add, o.one, 1), 1));
    assert_ok(gpuhal_recording_finish(recording));
    for (uint32_t i = 0; i < THREADS; i++) {
        runners[i] = (runner){&o, recording, i == 0 ? second : o.queue, i + 1, 0};
        assert_int_equal(pthread_create(&runners[i].thread, NULL, run_many, &runners[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(runners[i].thread, NULL);
    }
    expect(o.queue, o.one, RUNS * THREADS * (THREADS + 1) / 2);
    gpuhal_queue_destroy(second);
    gpuhal_recording_release(recording);
    end(&o);
}

TEST(threads_may_run_one_recording_at_once_in_one_queue_and_in_several)
{
    in_both_forms(threads_may_run_one_recording_at_once_in_one_queue_and_in_several_in);
}

/* The mock has no queues, so the worker makes all calls. */
TEST(a_device_without_queues_of_its_own_runs_recordings)
{
    gpuhal *gpu = open_programs(NULL);
    gpuhal_program *program = load_program(gpu);
    gpuhal_kernel *add = make_kernel(program, "add");
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 32);
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(gpuhal_device_at(gpu, 0), NULL, &queue));
    gpuhal_recording *recording = new_recording(gpuhal_device_at(gpu, 0), 1);
    assert_ok(gpuhal_recording_fill(recording, buffer, 0, 32, 5, 4));
    assert_ok(gpuhal_recording_slot(recording, 0, record_add(recording, add, buffer, 1), 1));
    assert_ok(gpuhal_recording_finish(recording));
    for (uint32_t i = 0; i < 20; i++) {
        const gpuhal_slot_value value = value_of(0, &i);
        assert_ok(gpuhal_recording_run(queue, recording, &value, 1));
    }
    assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    expect_numbers(buffer, 24);
    gpuhal_mock.devices[0].fail_launch = GPUHAL_ERROR_DRIVER;
    assert_ok(gpuhal_recording_run(queue, recording, NULL, 0));
    refused(gpuhal_queue_synchronize(queue, PATIENCE_NS), GPUHAL_ERROR_DRIVER,
            "recording token, step 1: launching kernel add");
    gpuhal_mock.devices[0].fail_launch = GPUHAL_OK;
    gpuhal_recording_release(recording);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    gpuhal_kernel_release(add);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    expect_mock_has_no_programs();
}

#include "test_main.h"
