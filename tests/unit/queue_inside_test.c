/* The internal guarantees of a queue: its lock, its native accesses, the flags of the vendor's queue, the order of work
 * from other queues, the queue that owns a failure, and the threads that are notified of the failure. */
#include "support/halting.h"
#include "test.h"

#include "device/device.h"
#include "queue/queue.h"

#include <pthread.h>
#include <unistd.h>

typedef struct objects {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_queue *queue;
} objects;

static objects begin(void)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_halting_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .builtins = builtins};
    objects o;
    assert_ok(gpuhal_open(&config, &o.gpu));
    assert_ok(gpuhal_select(o.gpu, "halting:0", 0, &o.device, NULL));
    assert_ok(gpuhal_queue_create(o.device, NULL, &o.queue));
    return o;
}

static void end(objects *o)
{
    gpuhal_queue_destroy(o->queue);
    gpuhal_close(o->gpu);
    assert_int_equal(gpuhal_halting.openings, 0);
    assert_int_equal(gpuhal_halting.events, 0);
}

typedef struct second {
    gpuhal_queue *queue;
    gpuhal_timepoint *timepoint;
    _Atomic bool ready, inside;
} second;

static void *lock_too(void *user)
{
    second *own = user;
    own->ready = true;
    gpuhal_queue_lock(own->queue);
    own->inside = true;
    gpuhal_mutex_unlock(&own->queue->mutex);
    return NULL;
}

TEST(the_lock_of_a_queue_keeps_every_other_thread_out)
{
    objects o = begin();
    second own = {.queue = o.queue};
    pthread_t thread;
    gpuhal_queue_lock(o.queue);
    assert_int_equal(pthread_create(&thread, NULL, lock_too, &own), 0);
    while (!own.ready) {
        usleep(1000);
    }
    usleep(50000);
    assert_false(own.inside);
    gpuhal_mutex_unlock(&o.queue->mutex);
    pthread_join(thread, NULL);
    assert_true(own.inside);
    end(&o);
}

static void *wait_too(void *user)
{
    second *own = user;
    own->ready = true;
    assert_int_equal(gpuhal_host_timepoint_wait(own->timepoint, 0), GPUHAL_ERROR_TIMEOUT);
    own->inside = true;
    return NULL;
}

static void *signal_too(void *user)
{
    second *own = user;
    own->ready = true;
    assert_true(gpuhal_host_timepoint_signal(own->timepoint, NULL));
    own->inside = true;
    return NULL;
}

/* Without the lock, a thread could miss a signal between its check and its sleep. */
TEST(a_timepoint_of_the_host_is_waited_for_and_signalled_under_its_lock)
{
    void *(*const acts[])(void *user) = {wait_too, signal_too};
    gpuhal_timepoint *timepoint = gpuhal_host_timepoint_create();
    assert_non_null(timepoint);
    for (size_t i = 0; i < 2; i++) {
        second own = {.timepoint = timepoint};
        pthread_t thread;
        gpuhal_timepoint_lock(timepoint);
        assert_int_equal(pthread_create(&thread, NULL, acts[i], &own), 0);
        while (!own.ready) {
            usleep(1000);
        }
        usleep(50000);
        assert_false(own.inside);
        gpuhal_timepoint_unlock(timepoint);
        pthread_join(thread, NULL);
    }
    gpuhal_timepoint_release(timepoint);
}

static gpuhal_status take_count(void *user, const gpuhal_native *native)
{
    const objects *o = user;
    (void)native;
    return atomic_load(&o->device->native_accesses) == 1 ? GPUHAL_OK : GPUHAL_ERROR_CANCELLED;
}

TEST(a_call_with_the_vendors_queue_counts_as_one_native_access_until_it_has_ended)
{
    objects o = begin();
    gpuhal_native native = {.size = sizeof native};
    for (int round = 0; round < 2; round++) {
        assert_ok(gpuhal_queue_native_call(o.queue, take_count, &o));
        assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
        assert_int_equal(atomic_load(&o.device->native_accesses), 0);
        assert_ok(gpuhal_queue_native_begin(o.queue, UINT64_MAX, &native));
        assert_int_equal(atomic_load(&o.device->native_accesses), 1);
        assert_ok(gpuhal_queue_native_end(o.queue));
        assert_int_equal(atomic_load(&o.device->native_accesses), 0);
    }
    end(&o);
}

static gpuhal_status expect_one_lock(void *user, const gpuhal_native *native)
{
    (void)user, (void)native;
    return gpuhal_halting.native_locks == 1 ? GPUHAL_OK : GPUHAL_ERROR_CANCELLED;
}

TEST(the_vendors_queue_is_unlocked_as_often_as_it_was_locked)
{
    objects o = begin();
    gpuhal_queue *other = NULL;
    gpuhal_native native = {.size = sizeof native};
    assert_ok(gpuhal_queue_create(o.device, NULL, &other));
    assert_ok(gpuhal_queue_native_call(o.queue, expect_one_lock, NULL));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    assert_int_equal(gpuhal_halting.native_locks, 0);
    assert_ok(gpuhal_queue_native_begin(o.queue, UINT64_MAX, &native));
    assert_ok(gpuhal_queue_native_begin(other, UINT64_MAX, &native));
    assert_int_equal(gpuhal_halting.native_locks, 2);
    assert_ok(gpuhal_queue_native_end(other));
    assert_ok(gpuhal_queue_native_end(o.queue));
    assert_int_equal(gpuhal_halting.native_locks, 0);
    gpuhal_queue_destroy(other);
    end(&o);
}

TEST(a_vendors_queue_is_created_with_times_for_a_timed_queue_or_a_trace_alone)
{
    const gpuhal_queue_desc timed = {.size = sizeof timed, .flags = GPUHAL_QUEUE_TIMED};
    const struct {
        const gpuhal_queue_desc *desc;
        bool traced;
        uint32_t flags;
    } cases[] = {{NULL, false, 0}, {&timed, false, GPUHAL_TIMED}, {NULL, true, GPUHAL_TIMED}};
    objects o = begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_queue *queue = NULL;
        assert_ok(cases[i].traced ? gpuhal_trace_start(o.gpu, NULL) : GPUHAL_OK);
        assert_ok(gpuhal_queue_create(o.device, cases[i].desc, &queue));
        assert_int_equal(gpuhal_halting.queue_flags, cases[i].flags);
        gpuhal_queue_destroy(queue);
    }
    end(&o);
}

static gpuhal_timepoint *record(gpuhal_queue *queue)
{
    gpuhal_timepoint *timepoint = NULL;
    assert_ok(gpuhal_queue_record(queue, false, &timepoint));
    return timepoint;
}

TEST(followed_timepoints_that_a_queue_takes_over_stay_in_recording_order)
{
    enum { OTHERS = 3 };
    objects o = begin();
    gpuhal_queue *middle = NULL, *others[OTHERS];
    gpuhal_timepoint *later[OTHERS];
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_queue_create(o.device, NULL, &middle));
    gpuhal_timepoint *early = record(middle);
    for (int i = 0; i < OTHERS; i++) {
        assert_ok(gpuhal_queue_create(o.device, NULL, &others[i]));
        later[i] = record(others[i]);
        assert_ok(gpuhal_queue_follow(middle, later[i]));
    }
    assert_ok(gpuhal_queue_follow(o.queue, early));
    assert_int_equal(o.queue->followed_count, 1 + OTHERS);
    assert_ptr_equal(o.queue->followed[0], early);
    for (int i = 0; i < OTHERS; i++) {
        assert_ptr_equal(o.queue->followed[1 + i], later[i]);
    }
    gpuhal_halting.work_goes_on = 0;
    gpuhal_timepoint_release(early);
    for (int i = 0; i < OTHERS; i++) {
        gpuhal_timepoint_release(later[i]);
        gpuhal_queue_destroy(others[i]);
    }
    gpuhal_queue_destroy(middle);
    end(&o);
}

TEST(a_queue_does_not_keep_a_followed_timepoint_that_ended_well)
{
    objects o = begin();
    gpuhal_queue *other = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &other));
    for (int i = 0; i < 3; i++) {
        gpuhal_timepoint *timepoint = record(other);
        assert_ok(gpuhal_queue_follow(o.queue, timepoint));
        assert_int_equal(o.queue->followed_count, 1);
        assert_ok(gpuhal_timepoint_wait(timepoint, UINT64_MAX));
        gpuhal_timepoint_release(timepoint);
    }
    gpuhal_queue_destroy(other);
    end(&o);
}

/* The failure must have the driver's message about the first queue's work, regardless of the order of the two waits. */
TEST(a_queue_that_waits_for_work_that_fails_has_the_failure_of_that_work)
{
    objects o = begin();
    gpuhal_queue *other = NULL;
    gpuhal_event *first = NULL, *last = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &other));
    assert_ok(gpuhal_event_create(o.gpu, 0, &first));
    assert_ok(gpuhal_event_create(o.gpu, 0, &last));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_event_record(first, other));
    assert_ok(gpuhal_queue_wait(o.queue, first));
    assert_ok(gpuhal_event_record(last, o.queue));
    gpuhal_halting.query_says = GPUHAL_ERROR_DRIVER;
    gpuhal_halting.work_goes_on = 0;
    assert_int_equal(gpuhal_event_poll(last), GPUHAL_ERROR_DRIVER);
    assert_true(gpuhal_queue_has_failed(other));
    assert_true(gpuhal_queue_has_failed(o.queue));
    assert_ptr_equal(o.queue->failure, other->failure);
    gpuhal_halting.query_says = GPUHAL_OK;
    gpuhal_event_destroy(first);
    gpuhal_event_destroy(last);
    gpuhal_queue_destroy(other);
    end(&o);
}

/* ---- threads that are waiting while a queue fails */

static void wait_until_waiting(gpuhal_queue *queue, gpuhal_queue_place place)
{
    for (bool waiting = false; !waiting;) {
        usleep(1000);
        gpuhal_queue_lock(queue);
        waiting = queue->waiting[place] > 0;
        gpuhal_mutex_unlock(&queue->mutex);
    }
}

typedef struct caller {
    gpuhal_queue *queue;
    gpuhal_buffer *buffers[2];
    _Atomic bool ended;
    gpuhal_status status;
    pthread_t thread;
} caller;

static void begin_caller(caller *own, void *(*run)(void *own))
{
    assert_int_equal(pthread_create(&own->thread, NULL, run, own), 0);
}

static void *synchronize(void *user)
{
    caller *own = user;
    own->status = gpuhal_queue_synchronize(own->queue, UINT64_MAX);
    own->ended = true;
    return NULL;
}

TEST(a_thread_that_waits_for_a_queue_notices_that_the_device_was_lost)
{
    objects o = begin();
    caller own = {.queue = o.queue};
    gpuhal_queue *other = NULL;
    gpuhal_event *gate = NULL, *event = NULL;
    assert_ok(gpuhal_queue_create(o.device, NULL, &other));
    assert_ok(gpuhal_event_create(o.gpu, GPUHAL_EVENT_HOST, &gate));
    assert_ok(gpuhal_event_create(o.gpu, 0, &event));
    assert_ok(gpuhal_queue_wait(o.queue, gate));
    begin_caller(&own, synchronize);
    wait_until_waiting(o.queue, GPUHAL_WAITS_TIMEPOINT);
    gpuhal_halting.query_says = GPUHAL_ERROR_DEVICE_LOST;
    assert_ok(gpuhal_event_record(event, other));
    assert_int_equal(gpuhal_event_poll(event), GPUHAL_ERROR_DEVICE_LOST);
    for (int i = 0; i < 20000 && !own.ended; i++) {
        usleep(1000);
    }
    assert_true(own.ended);
    assert_int_equal(pthread_join(own.thread, NULL), 0);
    assert_int_equal(own.status, GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_event_signal(gate, GPUHAL_OK));
    gpuhal_event_destroy(event);
    gpuhal_event_destroy(gate);
    gpuhal_queue_destroy(other);
    gpuhal_queue_destroy(o.queue);
    gpuhal_close(o.gpu);
}

static void *copy(void *user)
{
    caller *own = user;
    own->status = gpuhal_copy(own->queue, own->buffers[0], 0, own->buffers[1], 0, 64);
    return NULL;
}

TEST(a_queue_that_fails_while_its_thread_waits_to_call_the_plugin_can_be_reset)
{
    static const uint64_t second_ns = 1000000000;
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 64};
    objects o = begin();
    caller own = {.queue = o.queue};
    gpuhal_event *event = NULL;
    assert_ok(gpuhal_buffer_create(o.device, &desc, &own.buffers[0]));
    assert_ok(gpuhal_buffer_create(o.device, &desc, &own.buffers[1]));
    assert_ok(gpuhal_event_create(o.gpu, 0, &event));
    gpuhal_halting.work_goes_on = 1;
    assert_ok(gpuhal_event_record(event, o.queue));
    gpuhal_halting.slot = "queued_copy";
    begin_caller(&own, copy);
    while (gpuhal_halting.stopped == 0) {
        usleep(1000);
    }
    assert_int_equal(gpuhal_queue_synchronize(o.queue, 1), GPUHAL_ERROR_TIMEOUT); /* deferred to the queue's thread */
    wait_until_waiting(o.queue, GPUHAL_WAITS_CALL);
    gpuhal_halting.query_says = GPUHAL_ERROR_DRIVER;
    gpuhal_halting.work_goes_on = 0;
    assert_int_equal(gpuhal_event_poll(event), GPUHAL_ERROR_DRIVER);
    gpuhal_halting.query_says = GPUHAL_OK;
    gpuhal_halting.slot = NULL;
    assert_int_equal(pthread_join(own.thread, NULL), 0);
    assert_ok(gpuhal_queue_reset(o.queue, 20 * second_ns));
    assert_ok(gpuhal_queue_synchronize(o.queue, 20 * second_ns));
    gpuhal_event_destroy(event);
    gpuhal_buffer_release(own.buffers[0]);
    gpuhal_buffer_release(own.buffers[1]);
    end(&o);
}

#include "test_main.h"
