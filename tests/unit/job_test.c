/* Jobs with a deadline (base/job.h) and the threads that run them. Threads must be reused, and no thread may be left
 * after the object is closed. */
#include "support/mock.h"
#include "support/process.h"
#include "test.h"

#include "base/job.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS        UINT64_C(1000000)
#define IN_TIME_S 8.0 /* generous, because threads run late on a busy machine */

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static gpuhal_missing sample(gpuhal *gpu, gpuhal_key key)
{
    gpuhal_value value = {.key = key};
    assert_int_equal(gpuhal_device_sample(gpuhal_device_at(gpu, 0), 0, &value, 1, NULL), GPUHAL_OK);
    return value.missing;
}

/* ---- threads */

static void expect_ended(long thread)
{
    double begun = seconds_now();
    while (syscall(SYS_tgkill, getpid(), thread, 0) == 0) {
        assert_true(seconds_now() - begun < IN_TIME_S);
        pause_ms(1);
    }
}

TEST(consecutive_samples_are_served_by_one_thread_which_ends_with_the_object)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    int before = count_threads_first();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    assert_int_equal(sample(gpu, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    long thread = gpuhal_mock.sample_thread;
    assert_int_not_equal(thread, syscall(SYS_gettid));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(sample(gpu, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
        assert_int_equal(gpuhal_mock.sample_thread, thread);
    }
    gpuhal_close(gpu);
    expect_ended(thread);
    assert_true(threads_come_down_to(before));
}

TEST(gpuhal_open_leaves_no_thread_so_that_the_program_may_fork)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    int before = count_threads_first();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    assert_true(threads_come_down_to(before));
    gpuhal_close(gpu);
}

TEST(another_object_goes_on_sampling_once_one_was_closed)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *one = gpuhal_mock_open(NULL, 0), *other = gpuhal_mock_open(NULL, 0);
    assert_int_equal(sample(other, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    gpuhal_close(one);
    assert_int_equal(sample(other, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    gpuhal_close(other);
}

TEST(an_abandoned_thread_serves_no_other_sample_and_ends_when_the_driver_returns)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .stop_key = GPUHAL_VALUE_POWER_MICROWATTS};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.hang_ns = 100 * MS}, 0);
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    assert_int_equal(sample(gpu, GPUHAL_VALUE_POWER_MICROWATTS), GPUHAL_MISSING_TIMED_OUT);
    long stuck = gpuhal_mock.sample_thread;
    assert_int_equal(sample(gpu, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    long thread = gpuhal_mock.sample_thread;
    assert_int_not_equal(thread, stuck);
    gpuhal_mock.stops = 0;
    expect_ended(stuck);
    assert_int_equal(sample(gpu, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    assert_int_equal(gpuhal_mock.sample_thread, thread);
    gpuhal_close(gpu);
    expect_ended(thread);
}

static void *sample_once(void *gpu)
{
    assert_int_equal(sample(gpu, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    return NULL;
}

TEST(of_many_samples_at_once_few_threads_stay)
{
    enum { AT_ONCE = 12, STAY = 8 };
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    int before = count_threads_first();
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    pthread_t threads[AT_ONCE];
    gpuhal_mock.stops = GPUHAL_MOCK_SAMPLE;
    for (int i = 0; i < AT_ONCE; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, sample_once, gpu), 0);
    }
    double begun = seconds_now();
    while (gpuhal_mock.stopped < AT_ONCE && seconds_now() - begun < IN_TIME_S) {
        pause_ms(1);
    }
    gpuhal_mock.stops = 0;
    for (int i = 0; i < AT_ONCE; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(threads_come_down_to(before + STAY));
    gpuhal_close(gpu);
    assert_true(threads_come_down_to(before));
}

/* The parent's sampling thread does not exist in the child. */
TEST(the_child_of_a_fork_samples_on_a_thread_of_its_own)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    SKIP_TEST("the sanitizers' own allocators may be locked for ever in the child of a threaded process");
#endif
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .fork_safe = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    assert_int_equal(sample(gpu, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20);
        gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
        gpuhal *own = gpuhal_mock_open(NULL, 0);
        gpuhal_status status = gpuhal_device_sample(gpuhal_device_at(own, 0), 0, &value, 1, NULL);
        gpuhal_close(own);
        _exit(status || value.missing);
    }
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_int_equal(state, 0);
    assert_int_equal(sample(gpu, GPUHAL_VALUE_MEMORY_FREE_BYTES), 0);
    gpuhal_close(gpu);
}

/* Both openings fail on the same thread. */
TEST(the_words_of_a_vendor_on_one_failure_are_not_repeated_for_the_next)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2,
                                    .devices = {{.fail_open = GPUHAL_ERROR_NO_PERMISSION},
                                                {.fail_open = GPUHAL_ERROR_NO_PERMISSION, .quiet_failures = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    assert_int_equal(gpuhal_device_open(gpuhal_device_at(gpu, 0)), GPUHAL_ERROR_NO_PERMISSION);
    assert_string_equal(gpuhal_last_error()->vendor_call, "mockOpen");
    assert_int_equal(gpuhal_device_open(gpuhal_device_at(gpu, 1)), GPUHAL_ERROR_NO_PERMISSION);
    assert_string_equal(gpuhal_last_error()->vendor_call, "");
    gpuhal_close(gpu);
}

/* ---- one job */

typedef struct slow_job {
    gpuhal_job job;
    uint32_t rounds;
} slow_job;

static _Atomic int runs, lates, frees;

static void take_steps(gpuhal_job *job)
{
    for (uint32_t i = 0; i < ((slow_job *)job)->rounds; i++) {
        pause_ms(60);
        gpuhal_job_step(job);
    }
    gpuhal_error_set(GPUHAL_ERROR_BUSY, "the job's words");
    runs++;
}

static void come_late(gpuhal_job *job)
{
    (void)job;
    lates++;
}

static void free_job(gpuhal_job *job)
{
    free(job);
    frees++;
}

static slow_job *make_job(uint32_t rounds)
{
    slow_job *own = calloc(1, sizeof *own);
    assert_non_null(own);
    gpuhal_job_init(&own->job, take_steps, come_late, free_job);
    own->rounds = rounds;
    return own;
}

TEST(a_job_that_goes_on_is_waited_for_and_one_that_does_not_is_abandoned)
{
    slow_job *own = make_job(20);
    assert_int_equal(gpuhal_job_run(&own->job, 1000 * MS), GPUHAL_JOB_DONE);
    assert_string_equal(own->job.detail.sentence, "the job's words");
    assert_string_equal(gpuhal_last_error()->sentence, "");
    assert_int_equal(lates, 0);
    gpuhal_job_release(&own->job);
    own = make_job(3);
    assert_int_equal(gpuhal_job_run(&own->job, 1 * MS), GPUHAL_JOB_ABANDONED);
    gpuhal_job_release(&own->job);
    double begun = seconds_now();
    while (frees < 2) {
        assert_true(seconds_now() - begun < IN_TIME_S);
    }
    assert_int_equal(runs, 2);
    assert_int_equal(lates, 1);
}

#include "test_main.h"
