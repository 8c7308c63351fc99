/* The ring of staging memory, its limits, and the threads that help with staged copies. */
#include "transfer_support.h"
#include "support/process.h"

#include "base/config.h"
#include "base/error.h"
#include "memory/buffer.h"
#include "transfer/thread_pool.h"
#include "transfer/staged.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Opens devices whose memory the host cannot access, so that copies between them are staged. */
static gpuhal *open_hidden(uint32_t count, const gpuhal_config *config)
{
    gpuhal_mock = (gpuhal_mock_state){.count = count, .fork_safe = 1};
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_mock.devices[i].hidden = 1;
    }
    return gpuhal_mock_open(config, 0);
}

/* ---- the thread pool */

typedef struct helping {
    sem_t came, go;
    _Atomic int runs, unblocked;
} helping;

static void help(void *user)
{
    helping *h = user;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    h->unblocked += !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGCHLD);
    h->runs++;
    sem_post(&h->came);
    sem_wait(&h->go);
}

TEST(helpers_come_with_signals_blocked_and_are_awaited_when_the_work_is_withdrawn)
{
    gpuhal *gpu = open_hidden(1, NULL);
    int before = count_threads_first();
    helping h = {.runs = 0};
    sem_init(&h.came, 0, 0);
    sem_init(&h.go, 0, 0);
    gpuhal_thread_pool_job job = {.work = help, .user = &h};
    gpuhal_thread_pool_submit(gpu, &job, 1);
    sem_wait(&h.came);
    for (uint32_t i = 0; i < 1000; i++) {
        sem_post(&h.go);
    }
    gpuhal_thread_pool_submit(gpu, &job, 500);
    gpuhal_thread_pool_cancel(gpu, &job);
    int runs = h.runs;
    assert_true(runs >= 1 && runs <= 501);
    assert_int_equal(h.unblocked, 0);
    assert_true(threads_come_down_to(before + (int)gpuhal_thread_pool_most() - 1));
    gpuhal_close(gpu);
    assert_int_equal(h.runs, runs);
    assert_true(threads_come_down_to(before));
}

static uint64_t processor_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Threads that poll would use CPU time in every measurement. */
TEST(a_thread_pool_sleeps_until_it_has_work)
{
    gpuhal *gpu = open_hidden(2, NULL);
    gpuhal_buffer *from = gpuhal_mock_buffer(gpu, 0, 8 << 20), *to = gpuhal_mock_buffer(gpu, 1, 8 << 20);
    assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, 8 << 20), GPUHAL_OK);
    bool slept = false;
    for (int window = 0; window < 50 && !slept; window++) {
        uint64_t before = processor_time_ns();
        usleep(100000);
        slept = processor_time_ns() - before < 50000000u;
    }
    assert_true(slept);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    gpuhal_close(gpu);
}

static void post(void *user)
{
    sem_post(user);
}

TEST(the_child_of_a_fork_has_a_thread_pool_of_its_own)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP_TEST("the sanitizers' own allocators may be locked for ever in the child of a threaded process");
#endif
    gpuhal *gpu = open_hidden(1, NULL);
    sem_t came;
    sem_init(&came, 0, 0);
    gpuhal_thread_pool_job job = {.work = post, .user = &came};
    gpuhal_thread_pool_submit(gpu, &job, 1);
    sem_wait(&came);
    gpuhal_thread_pool_cancel(gpu, &job);
    pid_t child = fork();
    if (child == 0) {
        alarm(10);
        gpuhal_thread_pool_job own = {.work = post, .user = &came};
        gpu = gpuhal_mock_open(NULL, 0);
        gpuhal_thread_pool_submit(gpu, &own, 1);
        sem_wait(&came);
        gpuhal_thread_pool_cancel(gpu, &own);
        gpuhal_close(gpu);
        _exit(threads_come_down_to(1) ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    gpuhal_close(gpu);
}

/* ---- the ring */

typedef struct taking {
    unsigned char *got;
    _Atomic uint64_t bytes;
    uint64_t phase, next, unaligned, out_of_order, fail_at;
    pthread_mutex_t mutex;
} taking;

static gpuhal_status take(void *user, void *chunk, uint64_t done, uint64_t bytes)
{
    taking *t = user;
    pthread_mutex_lock(&t->mutex);
    t->unaligned += done > 0 && (t->phase + done) % GPUHAL_STAGED_PAGE_BYTES != 0;
    t->out_of_order += done != t->next;
    t->next = done + bytes;
    pthread_mutex_unlock(&t->mutex);
    if (t->fail_at && done >= t->fail_at) {
        return gpuhal_error_set(GPUHAL_ERROR_CANCELLED, "it was enough");
    }
    memcpy(t->got + done, chunk, bytes);
    t->bytes += bytes;
    return GPUHAL_OK;
}

static void take_pieces(gpuhal *gpu, gpuhal_buffer *buffer, const unsigned char *model)
{
    for (int round = 0; round < 40; round++) {
        uint64_t offset = next_random() % BYTES, bytes = 1 + next_random() % (BYTES - offset);
        taking t = {.got = calloc(1, bytes), .phase = next_random() % 10000, .mutex = PTHREAD_MUTEX_INITIALIZER};
        gpuhal_staged_copy copy = {.device = gpuhal_device_at(gpu, 0), .direction = GPUHAL_FROM_DEVICE,
                                 .memory = &buffer->memory, .offset = offset, .bytes = bytes, .phase = t.phase,
                                 .move = take, .user = &t, .in_order = round % 2};
        assert_int_equal(gpuhal_staged_run(&copy), GPUHAL_OK);
        assert_int_equal(t.bytes, bytes);
        assert_int_equal(t.unaligned, 0);
        assert_true(!copy.in_order || t.out_of_order == 0);
        assert_memory_equal(t.got, model + offset, bytes);
        free(t.got);
    }
}

TEST(a_ring_moves_each_byte_once_in_pieces_that_begin_on_pages)
{
    gpuhal *gpu = open_hidden(1, &(gpuhal_config){.staging_limit_bytes = 200000});
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, BYTES);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, BYTES), GPUHAL_OK);
    take_pieces(gpu, buffer, model);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(model);
}

TEST(the_consumer_can_end_a_ring_with_an_error_of_its_own)
{
    gpuhal *gpu = open_hidden(1, &(gpuhal_config){.staging_limit_bytes = 128 << 10});
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, BYTES);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, BYTES), GPUHAL_OK);
    taking t = {.got = calloc(1, BYTES), .fail_at = BYTES / 2, .mutex = PTHREAD_MUTEX_INITIALIZER};
    gpuhal_staged_copy copy = {.device = gpuhal_device_at(gpu, 0),
                             .direction = GPUHAL_FROM_DEVICE,
                             .memory = &buffer->memory,
                             .bytes = BYTES,
                             .move = take,
                             .user = &t};
    assert_int_equal(gpuhal_staged_run(&copy), GPUHAL_ERROR_CANCELLED);
    assert_string_equal(gpuhal_last_error()->sentence, "it was enough");
    assert_true(t.bytes < BYTES);
    take_pieces(gpu, buffer, model);
    assert_true(gpuhal_mock.devices[0].staging_bytes_most <= 128 << 10);
    free(t.got);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    free(model);
}

/* ---- the process-wide limit */

TEST(all_staging_memory_of_the_process_stays_within_its_total_and_unused_chunks_make_room)
{
    enum { DEVICES = 6, TOTAL = 1 << 20 };
    gpuhal *gpu = open_hidden(DEVICES, &(gpuhal_config){.staging_limit_bytes = TOTAL, .staging_total_bytes = TOTAL});
    unsigned char *model = random_bytes(BYTES);
    gpuhal_buffer *buffers[DEVICES];
    for (uint32_t i = 0; i < DEVICES; i++) {
        buffers[i] = gpuhal_mock_buffer(gpu, i, BYTES);
    }
    assert_int_equal(gpuhal_write(NULL, buffers[0], 0, model, BYTES), GPUHAL_OK);
    for (uint32_t i = 1; i < 4 * DEVICES; i++) {
        gpuhal_buffer *to = buffers[i % DEVICES], *from = buffers[(i - 1) % DEVICES];
        assert_int_equal(gpuhal_copy(NULL, to, 0, from, 0, BYTES), GPUHAL_OK);
        expect_contents(to, model, BYTES);
        int64_t now = 0;
        for (uint32_t d = 0; d < DEVICES; d++) {
            now += gpuhal_mock.devices[d].staging_bytes;
        }
        assert_true(now > 0 && now <= TOTAL);
        assert_int_equal(gpuhal_staging_process_bytes(), now);
    }
    for (uint32_t i = 0; i < DEVICES; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_staging_process_bytes(), 0);
    free(model);
}

typedef struct circle {
    gpuhal_buffer *to, *from;
    const unsigned char *model;
    _Atomic int wrong;
} circle;

static void *go_round(void *user)
{
    circle *c = user;
    for (int round = 0; round < 4; round++) {
        c->wrong += gpuhal_copy(NULL, c->to, 0, c->from, 0, BYTES) != GPUHAL_OK;
        c->wrong += gpuhal_copy(NULL, c->from, 0, c->to, 0, BYTES) != GPUHAL_OK;
    }
    return NULL;
}

TEST(copies_from_every_device_to_every_other_go_on_if_the_total_is_one_chunk)
{
    enum { DEVICES = 4 };
    gpuhal *gpu =
        open_hidden(DEVICES, &(gpuhal_config){.staging_limit_bytes = 128 << 10, .staging_total_bytes = 64 << 10});
    for (uint32_t i = 0; i < DEVICES; i++) {
        gpuhal_mock.devices[i].refuses = i % 2 ? GPUHAL_MOCK_READ_WRITE : 0;
    }
    unsigned char *model = random_bytes(BYTES);
    circle circles[DEVICES * DEVICES] = {{0}};
    pthread_t threads[DEVICES * DEVICES];
    uint32_t count = 0;
    for (uint32_t a = 0; a < DEVICES; a++) {
        for (uint32_t b = 0; b < DEVICES; b++) {
            if (a != b) {
                circles[count] =
                    (circle){.to = gpuhal_mock_buffer(gpu, a, BYTES), .from = gpuhal_mock_buffer(gpu, b, BYTES)};
                assert_int_equal(gpuhal_write(NULL, circles[count].from, 0, model, BYTES), GPUHAL_OK);
                count++;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, go_round, &circles[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(circles[i].wrong, 0);
        expect_contents(circles[i].to, model, BYTES);
        expect_contents(circles[i].from, model, BYTES);
        gpuhal_buffer_release(circles[i].to);
        gpuhal_buffer_release(circles[i].from);
    }
    for (uint32_t i = 0; i < DEVICES; i++) {
        assert_true(gpuhal_mock.devices[i].staging_bytes_most <= 2 * (128 << 10));
    }
    gpuhal_close(gpu);
    free(model);
}

TEST(the_total_is_read_from_the_environment_with_its_unit)
{
    static const struct {
        const char *text;
        uint64_t bytes; /* 0 if the setting is an error */
    } cases[] = {{"64K", 64 << 10},
                 {"100000", 100000},
                 {"3M", 3 << 20},
                 {"2G", UINT64_C(2) << 30},
                 {"", 256 << 20},
                 {"63K", 0},
                 {"64k", 0},
                 {"M", 0},
                 {"1MB", 0},
                 {"-1", 0},
                 {" 64K", 0},
                 {"99999999999999999999", 0},
                 {"18446744073709551615G", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_settings settings;
        setenv("GPUHAL_STAGING_TOTAL", cases[i].text, 1);
        gpuhal_status status = gpuhal_settings_make(NULL, &settings);
        if (cases[i].bytes == 0) {
            assert_int_equal(status, GPUHAL_ERROR_INVALID_ARGUMENT);
            assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_STAGING_TOTAL"));
        } else {
            assert_int_equal(status, GPUHAL_OK);
            assert_int_equal(settings.staging_total_bytes, cases[i].bytes);
            gpuhal_settings_finish(&settings);
        }
    }
    unsetenv("GPUHAL_STAGING_TOTAL");
    gpuhal_settings settings;
    const gpuhal_config small = {.size = sizeof small, .staging_total_bytes = 1000};
    assert_int_equal(gpuhal_settings_make(&small, &settings), GPUHAL_ERROR_INVALID_ARGUMENT);
}

#include "test_main.h"
