/* rows_threads.c: threads that allocate from one pool at the same time, each for its own queue. The baseline is the
 * same threads with an additional mutex around every call of the pool. A pool that requires an external mutex could not
 * be faster. */
#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 8 };

/* Long enough to make the time for waking the threads negligible. */
static const uint64_t sample_ns = 2000000, quick_sample_ns = 200000;

typedef struct team {
    gpuhal_pool *pool;
    gpuhal_queue *queues[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    size_t started;
    pthread_mutex_t *around; /* locked around every call of the pool; may be NULL */
    pthread_mutex_t gate;    /* locked until the barriers are initialised */
    pthread_barrier_t begin, end;
    uint64_t count; /* written before `begin`; if 0, the threads exit */
    _Atomic size_t next;
    _Atomic bool failed;
} team;

static gpuhal_status pair(const team *t, gpuhal_queue *queue)
{
    gpuhal_buffer *buffer = NULL;
    if (t->around != NULL) {
        pthread_mutex_lock(t->around);
    }
    const gpuhal_status status = gpuhal_pool_allocate(t->pool, queue, 4 << 10, 0, 0, &buffer);
    if (t->around != NULL) {
        pthread_mutex_unlock(t->around);
        pthread_mutex_lock(t->around);
    }
    gpuhal_buffer_release(buffer);
    if (t->around != NULL) {
        pthread_mutex_unlock(t->around);
    }
    return status;
}

static void *work(void *user)
{
    team *t = user;
    gpuhal_queue *queue = t->queues[atomic_fetch_add(&t->next, 1)];
    pthread_mutex_lock(&t->gate);
    pthread_mutex_unlock(&t->gate);
    for (;;) {
        pthread_barrier_wait(&t->begin);
        if (t->count == 0) {
            return NULL;
        }
        for (uint64_t i = 0; i < t->count; i++) {
            if (pair(t, queue) != GPUHAL_OK) {
                t->failed = true;
            }
        }
        pthread_barrier_wait(&t->end);
    }
}

static bool run(void *user, uint64_t count)
{
    team *t = user;
    t->count = count;
    pthread_barrier_wait(&t->begin);
    pthread_barrier_wait(&t->end);
    return !t->failed || gpuhal_bench_failed("gpuhal_pool_allocate failed in a thread");
}

static void end_team(team *t)
{
    if (t->started > 0) {
        t->count = 0;
        pthread_barrier_wait(&t->begin);
    }
    for (size_t i = 0; i < t->started; i++) {
        pthread_join(t->threads[i], NULL);
    }
    for (size_t i = 0; i < THREADS_MAX; i++) {
        gpuhal_queue_destroy(t->queues[i]);
    }
    gpuhal_pool_destroy(t->pool);
}

/* The barriers are initialised for the number of threads that have started. The threads wait for this
 * initialisation. */
static bool begin_team(team *t, gpuhal_device *device, size_t threads, pthread_mutex_t *around)
{
    *t = (team){.around = around, .gate = PTHREAD_MUTEX_INITIALIZER};
    bool good =
        gpuhal_pool_create(device, NULL, &t->pool) == GPUHAL_OK || gpuhal_bench_failed_call("gpuhal_pool_create");
    for (size_t i = 0; good && i < threads; i++) {
        good = gpuhal_queue_create(device, NULL, &t->queues[i]) == GPUHAL_OK ||
               gpuhal_bench_failed_call("gpuhal_queue_create");
    }
    pthread_mutex_lock(&t->gate);
    while (good && t->started < threads) {
        good = pthread_create(&t->threads[t->started], NULL, work, t) == 0 ||
               gpuhal_bench_failed("a thread does not start");
        t->started += good;
    }
    pthread_barrier_init(&t->begin, NULL, (unsigned)t->started + 1);
    pthread_barrier_init(&t->end, NULL, (unsigned)t->started + 1);
    pthread_mutex_unlock(&t->gate);
    return good;
}

static void measure(gpuhal_bench *bench, gpuhal_device *device, const char *test, size_t threads, double budget)
{
    static team alone, behind;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    gpuhal_bench_row row = gpuhal_bench_row_of(device, test, GPUHAL_BENCH_TIMES);
    gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, false);
    const gpuhal_bench_side sides[] = {{run, &alone, NULL}, {run, &behind, NULL}};
    const size_t side_count = bench->options->baseline ? 2 : 1;
    plan.series = gpuhal_bench_plan_calls(bench).series;
    plan.sample_ns = bench->options->quick ? quick_sample_ns : sample_ns;
    row.budget = budget;
    gpuhal_bench_begin(bench->output, &row);
    const bool begun = begin_team(&alone, device, threads, NULL), both = begin_team(&behind, device, threads, &mutex);
    const bool good = begun && both && gpuhal_bench_measure(sides, side_count, &plan, &bench->times);
    end_team(&behind);
    end_team(&alone);
    if (!good) {
        gpuhal_bench_not_measured(bench);
        return;
    }
    for (size_t round = 0; round < bench->times.rounds; round++) {
        bench->times.ns[0][round] /= (double)threads;
        bench->times.ns[1][round] /= (double)threads;
    }
    gpuhal_bench_report(bench, row, 0, side_count - 1);
}

void gpuhal_bench_rows_threads(gpuhal_bench *bench, gpuhal_device *device)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    measure(bench, device, "pool_threads_2", 2, processors >= 2 ? 1 : NAN);
    if (processors >= 4) {
        measure(bench, device, "pool_threads_8", 8, NAN);
    }
}
