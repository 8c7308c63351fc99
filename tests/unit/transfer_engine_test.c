/* Transfers on devices with queues and links. Work runs only when a thread waits for it, and a test can make every slot
 * fail. Bytes that are staged or copied over a link must be correct. A failure must not leak anything. */
#include "engine_support.h"

#include "device/device.h"
#include "transfer/thread_pool.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- staging */

static void move_at_random(gpuhal *gpu, int rounds)
{
    unsigned char *model = random_bytes(BYTES), *got = malloc(BYTES);
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 0, BYTES), *to = gpuhal_mock_buffer(gpu, 1, BYTES);
    assert_int_equal(gpuhal_write(NULL, from, 0, model, BYTES), GPUHAL_OK);
    for (int round = 0; round < rounds; round++) {
        uint64_t bytes = 1 + next_random() % BYTES, at = next_random() % (BYTES - bytes + 1),
                 of = next_random() % (BYTES - bytes + 1);
        assert_int_equal(gpuhal_copy(NULL, to, at, from, of, bytes), GPUHAL_OK);
        assert_int_equal(gpuhal_read(NULL, got, to, at, bytes), GPUHAL_OK);
        assert_memory_equal(got, model + of, bytes);
        assert_int_equal(gpuhal_write(NULL, from, of, got, bytes), GPUHAL_OK);
    }
    expect_contents(from, model, BYTES);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    free(got);
}

static void move_with_steps_of(uint64_t one, uint64_t other)
{
    gpuhal_mock.devices[0].copy_alignment = one;
    gpuhal_mock.devices[1].copy_alignment = other;
    gpuhal *gpu = open_engine();
    move_at_random(gpu, 25);
    close_engine(gpu);
}

TEST(work_that_begins_only_when_it_is_awaited_is_staged_exactly)
{
    move_with_steps_of(1, 1);
}

TEST(it_is_from_a_device_of_small_steps_to_one_of_pages)
{
    move_with_steps_of(4, 4096);
}

TEST(it_is_from_a_device_of_pages_to_one_of_small_steps)
{
    move_with_steps_of(4096, 16);
}

static void fail_each(slot which, gpuhal_status failure, const char *call)
{
    enum { SOME = 1024 * 1024 + 11 }; /* needs several chunks */
    int failures = 0;
    unsigned char *model = random_bytes(SOME), *got = malloc(SOME);
    bool reached = true;
    for (int at = 1; at <= 40 && reached; at++) {
        engine.failure = failure;
        gpuhal *gpu = open_engine();
        gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 0, SOME), *to = gpuhal_mock_buffer(gpu, 1, SOME);
        engine.calls[which] = 0;
        engine.fail_at[which] = at;
        gpuhal_status status = gpuhal_write(NULL, from, 0, model, SOME);
        status = status ? status : gpuhal_copy(NULL, to, 0, from, 0, SOME);
        status = status ? status : gpuhal_read(NULL, got, to, 0, SOME);
        if (status) {
            failures++;
            assert_int_equal(status, failure);
            assert_string_equal(gpuhal_last_error()->vendor_call, call);
            assert_int_equal(gpuhal_last_error()->vendor_code, 77);
        }
        reached = engine.calls[which] >= at;
        engine.fail_at[which] = 0;
        assert_int_equal(gpuhal_write(NULL, from, 0, model, SOME), GPUHAL_OK);
        assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, SOME), GPUHAL_OK);
        expect_contents(to, model, SOME);
        gpuhal_buffer_release(from);
        gpuhal_buffer_release(to);
        close_engine(gpu);
    }
    assert_true(failures > 0);
    free(model);
    free(got);
}

TEST(a_failure_in_the_middle_is_reported_with_its_cause_and_the_chunks_stay_usable)
{
    fail_each(QUEUE, GPUHAL_ERROR_DRIVER, "engineQueue");
    fail_each(EVENT, GPUHAL_ERROR_OUT_OF_MEMORY, "engineEvent");
    fail_each(RECORD, GPUHAL_ERROR_DRIVER, "engineRecord");
    fail_each(BLOCK, GPUHAL_ERROR_DRIVER, "engineBlock");
    fail_each(COPY, GPUHAL_ERROR_OUT_OF_MEMORY, "engineCopy");
}

TEST(nothing_of_a_device_that_hangs_is_given_back_to_its_driver)
{
    engine.peers = true;
    gpuhal *gpu = open_engine();
    move_at_random(gpu, 2);
    int64_t chunks = gpuhal_mock.devices[0].staging_bytes, queues = engine.queues, accesses = engine.accesses;
    assert_true(chunks > 0 && queues > 0 && accesses > 0);
    atomic_store(&gpuhal_device_at(gpu, 0)->lost, GPUHAL_LOST_HUNG);
    atomic_store(&gpuhal_device_at(gpu, 1)->lost, GPUHAL_LOST_HUNG);
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].staging_bytes, chunks);
    assert_int_equal(engine.queues, queues);
    assert_int_equal(engine.accesses, accesses);
    assert_int_equal(gpuhal_staging_process_bytes(), 0);
}

/* ---- links */

static gpuhal_path path_of_copies(gpuhal *gpu)
{
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 0, BYTES), *to = gpuhal_mock_buffer(gpu, 1, BYTES);
    unsigned char *model = random_bytes(BYTES);
    gpuhal_path path = 0;
    assert_int_equal(gpuhal_write(NULL, from, 0, model, BYTES), GPUHAL_OK);
    assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_OK);
    expect_contents(to, model, BYTES);
    assert_int_equal(gpuhal_copy_path(to, from, &path), GPUHAL_OK);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(model);
    return path;
}

TEST(a_link_that_takes_no_queue_is_proven_and_used_without)
{
    engine.peers = engine.peers_take_no_queue = true;
    gpuhal *gpu = open_engine();
    assert_int_equal(path_of_copies(gpu), GPUHAL_PATH_PEER);
    close_engine(gpu);
}

TEST(a_plugin_that_takes_no_memory_for_its_link_has_none_and_nothing_is_broken)
{
    engine.peers = engine.peers_take_nothing = true;
    gpuhal *gpu = open_engine();
    assert_int_equal(path_of_copies(gpu), GPUHAL_PATH_STAGED);
    assert_int_equal(gpuhal_link_verify(gpuhal_device_at(gpu, 0), gpuhal_device_at(gpu, 1)), GPUHAL_OK);
    close_engine(gpu);
}

TEST(a_link_that_delivers_nothing_is_given_up_and_closing_does_not_wait_for_it)
{
    engine.peers = engine.peers_get_stuck = true;
    gpuhal *gpu = open_engine();
    assert_int_equal(path_of_copies(gpu), GPUHAL_PATH_STAGED);
    assert_int_equal(engine.peer_copies, 1);
    assert_int_equal(gpuhal_link_verify(gpuhal_device_at(gpu, 0), gpuhal_device_at(gpu, 1)), GPUHAL_ERROR_DRIVER);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "did not end"));
    gpuhal_close(gpu);
    assert_int_equal(engine.queues, 1);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 1);
    assert_int_equal(gpuhal_mock.devices[1].allocations, 1);
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    assert_int_equal(gpuhal_mock.devices[1].openings, 1);
}

TEST(a_copy_over_a_proven_link_that_fails_says_why_and_the_next_one_is_right)
{
    engine.peers = true;
    gpuhal *gpu = open_engine();
    assert_int_equal(path_of_copies(gpu), GPUHAL_PATH_PEER);
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 0, 64), *to = gpuhal_mock_buffer(gpu, 1, 64);
    engine.fail_at[PEER] = engine.calls[PEER] + 1;
    assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, 64), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->vendor_call, "enginePeer");
    assert_non_null(strstr(gpuhal_last_error()->sentence, "from mock:0 to mock:1"));
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    assert_int_equal(path_of_copies(gpu), GPUHAL_PATH_PEER);
    close_engine(gpu);
}

TEST(a_queue_does_not_touch_the_link_to_a_device_that_was_lost)
{
    engine.peers = true;
    gpuhal *gpu = open_engine();
    assert_int_equal(path_of_copies(gpu), GPUHAL_PATH_PEER);
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 0, 64), *to = gpuhal_mock_buffer(gpu, 1, 64);
    gpuhal_queue *queue = NULL;
    assert_int_equal(gpuhal_queue_create(gpuhal_device_at(gpu, 1), NULL, &queue), GPUHAL_OK);
    int64_t before = engine.peer_copies;
    atomic_store(&gpuhal_device_at(gpu, 0)->lost, GPUHAL_LOST_HUNG);
    assert_int_equal(gpuhal_copy(queue, to, 0, from, 0, 64), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(engine.peer_copies, before);
    atomic_store(&gpuhal_device_at(gpu, 0)->lost, GPUHAL_NOT_LOST);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    close_engine(gpu);
}

TEST(buffers_of_two_gpuhal_objects_have_no_path)
{
    gpuhal *gpu = open_engine();
    gpuhal_mock.count = GPUHAL_MOCK_DEVICES;
    gpuhal *many = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *here = gpuhal_mock_buffer(gpu, 0, 64),
                  *there = gpuhal_mock_buffer(many, GPUHAL_MOCK_DEVICES - 1, 64);
    gpuhal_path path = GPUHAL_PATH_PEER;
    assert_int_equal(gpuhal_copy_path(there, here, &path), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(path, 0);
    assert_int_equal(gpuhal_copy_path(here, there, &path), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(here);
    gpuhal_buffer_release(there);
    gpuhal_close(many);
    close_engine(gpu);
}

/* ---- the thread pool */

typedef struct late {
    gpuhal *gpu;
    gpuhal_thread_pool_job *own, *other;
    sem_t came, go;
    _Atomic int runs, other_runs;
} late;

static void help_others(void *user)
{
    late *l = user;
    l->other_runs++;
    sem_wait(&l->go);
}

/* Requests another helper for its own job while that job is being cancelled, then submits the other job. */
static void ask_late(void *user)
{
    late *l = user;
    if (++l->runs > 1) {
        return;
    }
    sem_post(&l->came);
    usleep(100000);
    gpuhal_thread_pool_submit(l->gpu, l->own, 1);
    gpuhal_thread_pool_submit(l->gpu, l->other, gpuhal_thread_pool_most());
}

TEST(work_that_was_withdrawn_gets_no_helper_even_if_one_of_its_own_asks_for_it)
{
    late l = {.gpu = open_engine()};
    sem_init(&l.came, 0, 0);
    sem_init(&l.go, 0, 0);
    gpuhal_thread_pool_job own = {.work = ask_late, .user = &l}, other = {.work = help_others, .user = &l};
    l.own = &own;
    l.other = &other;
    gpuhal_thread_pool_submit(l.gpu, &own, 1);
    sem_wait(&l.came);
    gpuhal_thread_pool_cancel(l.gpu, &own);
    assert_false(own.listed);
    assert_int_equal(own.running, 0);
    for (uint32_t i = 0; i < gpuhal_thread_pool_most(); i++) {
        sem_post(&l.go);
    }
    gpuhal_thread_pool_cancel(l.gpu, &other);
    assert_int_equal(l.runs, 1);
    close_engine(l.gpu);
}

/* ---- forks */

typedef struct busy {
    gpuhal *gpu;
    _Atomic bool stop;
} busy;

static void *keep_copying(void *user)
{
    busy *b = user;
    gpuhal_buffer *from = gpuhal_mock_buffer(b->gpu, 0, BYTES), *to = gpuhal_mock_buffer(b->gpu, 1, BYTES);
    while (!b->stop) {
        assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_OK);
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    return NULL;
}

TEST(a_child_that_is_forked_in_the_middle_of_staged_copies_makes_its_own_and_closes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP_TEST("the sanitizers' own allocators may be locked for ever in the child of a threaded process");
#endif
    enum { THREADS = 3, CHILDREN = 20 };
    gpuhal_mock.fork_safe = 1;
    busy b = {.gpu = open_engine()};
    gpuhal_buffer *from = gpuhal_mock_buffer(b.gpu, 0, BYTES), *to = gpuhal_mock_buffer(b.gpu, 1, BYTES);
    unsigned char *model = random_bytes(BYTES);
    pthread_t threads[THREADS];
    assert_int_equal(gpuhal_write(NULL, from, 0, model, BYTES), GPUHAL_OK);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, keep_copying, &b), 0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        usleep(1000 * (unsigned)i);
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            gpuhal *own = open_engine();
            gpuhal_buffer *first = gpuhal_mock_buffer(own, 0, BYTES), *second = gpuhal_mock_buffer(own, 1, BYTES);
            unsigned char *got = malloc(BYTES);
            bool good = gpuhal_staging_process_bytes() == 0 &&
                        gpuhal_write(NULL, first, 0, model, BYTES) == GPUHAL_OK &&
                        gpuhal_copy(NULL, second, 3, first, 1, BYTES - 9) == GPUHAL_OK &&
                        gpuhal_read(NULL, got, second, 3, BYTES - 9) == GPUHAL_OK &&
                        memcmp(got, model + 1, BYTES - 9) == 0;
            gpuhal_buffer_release(first);
            gpuhal_buffer_release(second);
            gpuhal_close(own);
            _exit(good && gpuhal_copy(NULL, to, 3, from, 1, BYTES - 9) == GPUHAL_ERROR_FORKED ? 0 : 1);
        }
        int status = 1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    b.stop = true;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    close_engine(b.gpu);
    free(model);
}

#include "test_main.h"
