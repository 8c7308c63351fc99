/* Tests queues under load. 8 threads enqueue random copies, fills, waits and releases on 6 queues of 4 devices, and the
 * bytes must equal those of a sequential model.
 *
 * Every buffer belongs to one queue, so its contents equal the model's after the same operations in enqueue order.
 * Another queue may read the buffer, but events order this read after the earlier work of the buffer's own queue and
 * before the later work.
 *
 * Another test creates queues and events for only one copy, in four threads. Mesa 22.3 writes to a semaphore shortly
 * after the work that waited for it has ended; this crashed within a few hundred rounds. A third test destroys queues
 * while other threads record the end of all work of the device. */
#include "exercise.h"
#include "support/random.h"
#include "support/count.h"
#include "system.h"

#include <pthread.h>

#define PATIENCE_NS (UINT64_C(300) * 1000000000u)
enum { THREADS = 8, QUEUES = 6, DEVICES = 4, BUFFERS = 4, BYTES = 16384, STEPS = 25000, IN_FLIGHT = 64 };

static const char *const selectors[DEVICES] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};

/* A buffer, and its contents after all enqueued work. */
typedef struct copy {
    gpuhal_buffer *buffer;
    unsigned char *model;
} copy;

typedef struct lane {
    pthread_mutex_t mutex; /* makes enqueueing and updating the model atomic */
    gpuhal_device *device;
    gpuhal_queue *queue;
    gpuhal_event *event;
    copy copies[BUFFERS];
    unsigned char *written[IN_FLIGHT]; /* host memory of writes that the queue has not finished */
    unsigned written_count;
} lane;

typedef struct stress {
    gpuhal *gpu;
    lane lanes[QUEUES];
} stress;

typedef struct worker {
    stress *all;
    uint64_t seed;
    unsigned steps;
    gpuhal_status failed;
    char sentence[512];
} worker;

static copy make_copy(gpuhal_device *device)
{
    copy made = {.buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES), .model = calloc(1, BYTES)};
    assert_ok(gpuhal_fill(NULL, made.buffer, 0, BYTES, 0, 4));
    return made;
}

static gpuhal_status let_go_of_writes(lane *own)
{
    gpuhal_status status = gpuhal_queue_synchronize(own->queue, PATIENCE_NS);
    for (unsigned i = 0; i < own->written_count; i++) {
        free(own->written[i]);
    }
    own->written_count = 0;
    return status;
}

static gpuhal_status step_write(lane *own, uint64_t *seed)
{
    copy *to = &own->copies[exercise_random(seed, BUFFERS)];
    uint64_t offset = exercise_random(seed, BYTES), bytes = 1 + exercise_random(seed, BYTES - offset);
    gpuhal_status status = own->written_count == IN_FLIGHT ? let_go_of_writes(own) : GPUHAL_OK;
    unsigned char *from = malloc((size_t)bytes);
    fill_randomly(from, bytes, *seed);
    own->written[own->written_count++] = from;
    memcpy(to->model + offset, from, (size_t)bytes);
    return status ? status : gpuhal_write(own->queue, to->buffer, offset, from, bytes);
}

static gpuhal_status step_fill(lane *own, uint64_t *seed)
{
    copy *to = &own->copies[exercise_random(seed, BUFFERS)];
    uint64_t offset = exercise_random(seed, BYTES), bytes = 1 + exercise_random(seed, BYTES - offset);
    uint32_t value = (uint32_t)exercise_random(seed, 256);
    memset(to->model + offset, (int)value, (size_t)bytes);
    return gpuhal_fill(own->queue, to->buffer, offset, bytes, value, 1);
}

static gpuhal_status step_copy(lane *own, uint64_t *seed)
{
    uint64_t one = exercise_random(seed, BUFFERS), other = (one + 1 + exercise_random(seed, BUFFERS - 1)) % BUFFERS;
    uint64_t to_offset = exercise_random(seed, BYTES), from_offset = exercise_random(seed, BYTES);
    uint64_t most = BYTES - (to_offset > from_offset ? to_offset : from_offset),
             bytes = 1 + exercise_random(seed, most);
    memcpy(own->copies[one].model + to_offset, own->copies[other].model + from_offset, (size_t)bytes);
    return gpuhal_copy(own->queue, own->copies[one].buffer, to_offset, own->copies[other].buffer, from_offset, bytes);
}

/* Copies from another lane's buffer into a buffer of this lane, in this lane's queue. */
static gpuhal_status step_across(lane *own, lane *other, uint64_t *seed)
{
    copy *to = &own->copies[exercise_random(seed, BUFFERS)], *from = &other->copies[exercise_random(seed, BUFFERS)];
    uint64_t offset = exercise_random(seed, BYTES), bytes = 1 + exercise_random(seed, BYTES - offset);
    memcpy(to->model + offset, from->model + offset, (size_t)bytes);
    gpuhal_status status = gpuhal_event_record(other->event, other->queue);
    status = status ? status : gpuhal_queue_wait(own->queue, other->event);
    status = status ? status : gpuhal_copy(own->queue, to->buffer, offset, from->buffer, offset, bytes);
    status = status ? status : gpuhal_event_record(own->event, own->queue);
    return status ? status : gpuhal_queue_wait(other->queue, own->event);
}

static gpuhal_status step_release(lane *own, uint64_t *seed)
{
    copy *gone = &own->copies[exercise_random(seed, BUFFERS)];
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = BYTES};
    gpuhal_buffer_release(gone->buffer);
    gone->buffer = NULL;
    gpuhal_status status = gpuhal_buffer_create(own->device, &desc, &gone->buffer);
    memset(gone->model, 0x55, BYTES);
    return status ? status : gpuhal_fill(own->queue, gone->buffer, 0, BYTES, 0x55, 1);
}

static gpuhal_status step(stress *all, uint64_t *seed)
{
    unsigned one = (unsigned)exercise_random(seed, QUEUES), other = (unsigned)exercise_random(seed, QUEUES);
    unsigned what = (unsigned)exercise_random(seed, 100);
    lane *own = &all->lanes[one], *second = one != other && what < 10 ? &all->lanes[other] : NULL;
    lane *low = second && second < own ? second : own, *high = low == own ? second : own;
    pthread_mutex_lock(&low->mutex);
    if (high) {
        pthread_mutex_lock(&high->mutex);
    }
    gpuhal_status status = second      ? step_across(own, second, seed)
                           : what < 35 ? step_write(own, seed)
                           : what < 60 ? step_fill(own, seed)
                           : what < 90 ? step_copy(own, seed)
                           : what < 93 ? step_release(own, seed)
                           : what < 97 ? gpuhal_queue_flush(own->queue)
                                       : gpuhal_event_record(own->event, own->queue);
    if (!status && what == 99) {
        status = gpuhal_event_wait(own->event, PATIENCE_NS);
    }
    if (high) {
        pthread_mutex_unlock(&high->mutex);
    }
    pthread_mutex_unlock(&low->mutex);
    return status;
}

static void *work(void *user)
{
    worker *own = user;
    for (unsigned i = 0; i < own->steps && !own->failed; i++) {
        own->failed = step(own->all, &own->seed);
        if (own->failed) {
            snprintf(own->sentence, sizeof own->sentence, "step %u: %s", i, gpuhal_last_error()->sentence);
        }
    }
    return NULL;
}

static void open_lane(lane *own, gpuhal *gpu, const char *selector)
{
    pthread_mutex_init(&own->mutex, NULL);
    own->device = select_or_fail(gpu, selector);
    assert_ok(gpuhal_queue_create(own->device, NULL, &own->queue));
    assert_ok(gpuhal_event_create(gpu, 0, &own->event));
    for (unsigned b = 0; b < BUFFERS; b++) {
        own->copies[b] = make_copy(own->device);
    }
}

static void close_lane(lane *own)
{
    unsigned char *got = malloc(BYTES);
    assert_ok(let_go_of_writes(own));
    for (unsigned b = 0; b < BUFFERS; b++) {
        assert_ok(gpuhal_read(NULL, got, own->copies[b].buffer, 0, BYTES));
        assert_memory_equal(got, own->copies[b].model, BYTES);
        gpuhal_buffer_release(own->copies[b].buffer);
        free(own->copies[b].model);
    }
    free(got);
    gpuhal_event_destroy(own->event);
    gpuhal_queue_destroy(own->queue);
    pthread_mutex_destroy(&own->mutex);
}

TEST(random_steps_of_eight_threads_give_the_bytes_of_a_sequential_model)
{
    static stress all;
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    all.gpu = open_or_fail(NULL);
    for (unsigned q = 0; q < QUEUES; q++) {
        open_lane(&all.lanes[q], all.gpu, selectors[q % DEVICES]);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t] = (worker){.all = &all, .seed = 1000 + t, .steps = test_count(STEPS) / THREADS};
        assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        if (workers[t].failed) {
            fail_msg("%s", workers[t].sentence);
        }
    }
    for (unsigned q = 0; q < QUEUES; q++) {
        assert_ok(let_go_of_writes(&all.lanes[q]));
    }
    for (unsigned q = 0; q < QUEUES; q++) {
        close_lane(&all.lanes[q]);
    }
    gpuhal_close(all.gpu);
}

typedef struct hasty {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_status failed;
    char sentence[512];
} hasty;

static gpuhal_status live_briefly(const hasty *own, gpuhal_buffer *one, gpuhal_buffer *two)
{
    gpuhal_queue *first = NULL, *second = NULL;
    gpuhal_event *event = NULL;
    gpuhal_status status = gpuhal_queue_create(own->device, NULL, &first);
    status = status ? status : gpuhal_queue_create(own->device, NULL, &second);
    status = status ? status : gpuhal_event_create(own->gpu, 0, &event);
    status = status ? status : gpuhal_copy(first, two, 0, one, 0, BYTES);
    status = status ? status : gpuhal_event_record(event, first);
    status = status ? status : gpuhal_queue_wait(second, event);
    status = status ? status : gpuhal_copy(second, one, 0, two, 0, BYTES);
    status = status ? status : gpuhal_queue_synchronize(second, PATIENCE_NS);
    gpuhal_event_destroy(event);
    gpuhal_queue_destroy(first);
    gpuhal_queue_destroy(second);
    return status;
}

static void *hurry(void *user)
{
    hasty *own = user;
    gpuhal_buffer *one = buffer_or_fail(own->device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *two = buffer_or_fail(own->device, GPUHAL_MEMORY_DEVICE, BYTES);
    for (int round = 0; round < (int)test_count(200) && !own->failed; round++) {
        own->failed = live_briefly(own, one, two);
    }
    snprintf(own->sentence, sizeof own->sentence, "%s", own->failed ? gpuhal_last_error()->sentence : "");
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    return NULL;
}

TEST(queues_and_events_that_live_for_one_copy_are_destroyed_at_once_on_every_device)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (unsigned d = 0; d < DEVICES; d++) {
        hasty all[4];
        pthread_t threads[4];
        for (unsigned t = 0; t < 4; t++) {
            all[t] = (hasty){.gpu = gpu, .device = select_or_fail(gpu, selectors[d])};
            assert_int_equal(pthread_create(&threads[t], NULL, hurry, &all[t]), 0);
        }
        for (unsigned t = 0; t < 4; t++) {
            pthread_join(threads[t], NULL);
            if (all[t].failed) {
                fail_msg("%s: %s", selectors[d], all[t].sentence);
            }
        }
    }
    gpuhal_close(gpu);
}

typedef struct watcher {
    gpuhal_device *device;
    _Atomic bool *ends;
    gpuhal_status failed;
} watcher;

static void *keep_synchronizing(void *user)
{
    watcher *own = user;
    while (!*own->ends && !own->failed) {
        own->failed = gpuhal_device_synchronize(own->device, PATIENCE_NS);
    }
    return NULL;
}

/* Queues are not ordered with each other, so each queue fills different bytes. */
static void live_for_one_fill(gpuhal_device *device, gpuhal_buffer *buffer, unsigned round)
{
    gpuhal_queue *queue = NULL;
    assert_ok(gpuhal_queue_create(device, NULL, &queue));
    assert_ok(gpuhal_fill(queue, buffer, round % (BYTES / 16) * 16, 16, 1, 4));
    gpuhal_queue_destroy(queue);
}

TEST(a_device_is_synchronized_by_several_threads_while_its_queues_come_and_go)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (unsigned d = 0; d < DEVICES; d++) {
        _Atomic bool ends = false;
        watcher all[3];
        pthread_t threads[3];
        gpuhal_device *device = select_or_fail(gpu, selectors[d]);
        gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, BYTES);
        for (unsigned t = 0; t < 3; t++) {
            all[t] = (watcher){.device = device, .ends = &ends};
            assert_int_equal(pthread_create(&threads[t], NULL, keep_synchronizing, &all[t]), 0);
        }
        for (unsigned i = 0; i < test_count(1000); i++) {
            live_for_one_fill(device, buffer, i);
        }
        ends = true;
        for (unsigned t = 0; t < 3; t++) {
            pthread_join(threads[t], NULL);
            assert_int_equal(all[t].failed, GPUHAL_OK);
        }
        gpuhal_buffer_release(buffer);
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
