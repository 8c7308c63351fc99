/* Forks while the parent's other threads work. The child closes the objects that it inherited, and opens a new one.
 * fork_refusals_test.c tests the calls that the child may not make. */
#include "fork_support.h"

#include <link.h>
#include <pthread.h>

static void skip_under_sanitizers(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP_TEST("the sanitizers' own allocators may be locked for ever in the child of a threaded process");
#endif
}

typedef struct work {
    gpuhal *gpu;
    gpuhal_queue *queue;
    _Atomic bool stops;
} work;

static void *transfer_and_wait(void *user)
{
    work *w = user;
    gpuhal_buffer *buffer = gpuhal_mock_buffer(w->gpu, 0, BYTES), *on_cpu = gpuhal_mock_buffer(w->gpu, 2, BYTES);
    while (!w->stops) {
        assert_int_equal(gpuhal_fill(w->queue, buffer, 0, BYTES, 1, 4), GPUHAL_OK);
        assert_int_equal(gpuhal_copy(NULL, on_cpu, 0, buffer, 0, BYTES), GPUHAL_OK);
        assert_int_equal(gpuhal_queue_synchronize(w->queue, UINT64_MAX), GPUHAL_OK);
    }
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(on_cpu);
    return NULL;
}

static void *rescan_and_sample(void *user)
{
    const work *w = user;
    while (!w->stops) {
        gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
        assert_int_equal(gpuhal_rescan(w->gpu, NULL), GPUHAL_OK);
        assert_int_equal(gpuhal_device_sample(gpuhal_device_at(w->gpu, 0), 0, &value, 1, NULL), GPUHAL_OK);
    }
    return NULL;
}

static void *open_and_close(void *user)
{
    const work *w = user;
    _Atomic uint64_t lines = 0;
    while (!w->stops) {
        gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.log = count_line, .log_user = &lines, .log_level = 4}, 1);
        gpuhal_buffer_release(gpuhal_mock_buffer(gpu, 2, BYTES));
        gpuhal_close(gpu);
    }
    return NULL;
}

static void expect_released_and_own_object_works(objects *own)
{
    release_objects(own);
    expect_own_object_works();
}

TEST(a_fork_in_the_middle_of_the_parents_work_lets_the_child_open_and_close)
{
    skip_under_sanitizers();
    void *(*const runs[])(void *) = {transfer_and_wait, rescan_and_sample, open_and_close};
    enum { CHILDREN = 20, THREADS = sizeof runs / sizeof *runs };
    objects own;
    pthread_t threads[THREADS];
    make_objects(&own);
    work w = {.gpu = own.gpu, .queue = own.queue};
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, runs[i], &w), 0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        usleep(500u * (unsigned)(i % 7));
        run_in_child(expect_released_and_own_object_works, &own);
    }
    w.stops = true;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    unmap_and_release_objects(&own);
}

/* The stage is 0 before the thread has the dynamic loader's lock, 1 while it has the lock, 2 when it must return. */
static int stay_in_loader(__attribute__((unused)) struct dl_phdr_info *object, __attribute__((unused)) size_t size,
                          void *user)
{
    _Atomic int *stage = user;
    *stage = *stage == 0 ? 1 : *stage;
    while (*stage == 1) {
        usleep(1000);
    }
    return 1;
}

static void *walk_libraries(void *user)
{
    dl_iterate_phdr(stay_in_loader, user);
    return NULL;
}

TEST(a_fork_while_a_thread_is_in_the_dynamic_loader_lets_the_child_open_and_close)
{
    skip_under_sanitizers();
    _Atomic int stage = 0;
    objects own;
    pthread_t thread;
    make_objects(&own);
    assert_int_equal(pthread_create(&thread, NULL, walk_libraries, &stage), 0);
    while (stage == 0) {
        usleep(1000);
    }
    run_in_child(expect_refused_and_own_object_works, &own);
    stage = 2;
    pthread_join(thread, NULL);
    unmap_and_release_objects(&own);
}

/* Starts a thread that runs `run` and blocks in the given call of the mock (GPUHAL_MOCK_START …). */
static pthread_t hang_in(uint32_t call, void *(*run)(void *), void *user)
{
    pthread_t thread;
    gpuhal_mock.stops = call;
    assert_int_equal(pthread_create(&thread, NULL, run, user), 0);
    while (gpuhal_mock.stopped == 0) {
        usleep(1000);
    }
    return thread;
}

static void let_return(pthread_t thread)
{
    gpuhal_mock.stops = 0;
    pthread_join(thread, NULL);
}

static void *open_device(void *user)
{
    assert_int_equal(gpuhal_device_open(user), GPUHAL_OK);
    return NULL;
}

TEST(a_fork_while_a_driver_hangs_lets_the_child_close_at_once)
{
    skip_under_sanitizers();
    objects own;
    make_objects(&own);
    const pthread_t thread = hang_in(GPUHAL_MOCK_OPEN, open_device, own.other);
    run_in_child(expect_refused_and_own_object_works, &own);
    let_return(thread);
    unmap_and_release_objects(&own);
}

/* Blocks in the mock's start, before the mock's "cpu" is started. */
static void *open_object(void *user)
{
    *(gpuhal **)user = gpuhal_mock_open(NULL, 1);
    return NULL;
}

TEST(a_fork_while_a_driver_starts_leaves_that_driver_to_the_parent)
{
    skip_under_sanitizers();
    gpuhal *gpu = NULL;
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    const pthread_t thread = hang_in(GPUHAL_MOCK_START, open_object, &gpu);
    const pid_t child = begin_child();
    if (child == 0) {
        expect_own_object_works();
        _exit(0);
    }
    expect_ended_well(child);
    let_return(thread);
    gpuhal_close(gpu);
}

#include "test_main.h"
