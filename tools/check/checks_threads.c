/* checks_threads.c: eight concurrent threads. Each thread checks its own bytes; a failure names the thread that
 * detected the fault. */
#include "area.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 24, RULE_BYTES = 23, RULE_THREADS = 24 };

typedef struct worker {
    const gpuhal_context *context;
    const gpuhal_opened *opened;
    const gpuhal_memory *shared[2]; /* source and target of threads_one_memory; each thread uses its own slice */
    uint64_t slice_bytes;
    unsigned number, rounds;
    pthread_barrier_t *together;
    pthread_t thread;
} worker;

/* A fault that also occurs with a single thread is a fault of the transfers, not of the locks. */
static void work_alone(worker workers[THREADS], void *(*work)(void *))
{
    pthread_barrier_t alone;
    pthread_barrier_init(&alone, NULL, 1);
    gpuhal_rule(RULE_BYTES);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t].together = &alone;
        workers[t].rounds = 1;
        work(&workers[t]);
    }
    gpuhal_rule(RULE_THREADS);
    pthread_barrier_destroy(&alone);
}

/* All threads start at a barrier, so that even short work overlaps. */
static void start_threads(worker workers[THREADS], const worker *model, const gpuhal_opened *all_opened,
                          void *(*work)(void *))
{
    pthread_barrier_t together;
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t] = *model;
        workers[t].number = t;
        workers[t].opened = all_opened != NULL ? &all_opened[t] : model->opened;
    }
    work_alone(workers, work);
    pthread_barrier_init(&together, NULL, THREADS);
    for (unsigned t = 0; t < THREADS; t++) {
        workers[t].together = &together;
        workers[t].rounds = ROUNDS;
        if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0) {
            gpuhal_fail("gpuhal-check cannot make a thread");
        }
    }
    for (unsigned t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
    }
    pthread_barrier_destroy(&together);
}

static const char *how(const worker *self)
{
    return self->rounds == 1 ? "alone" : "at once";
}

static void *use_own_memory(void *user)
{
    const worker *self = user;
    const uint64_t unit = gpuhal_copy_unit(self->context);
    const uint64_t bytes = gpuhal_round_up(16384 + self->number * 3000, unit) + 8 * unit;
    pthread_barrier_wait(self->together);
    for (unsigned round = 0; round < self->rounds; round++) {
        gpuhal_area from, to;
        gpuhal_area_init(&from, self->context, self->opened, GPUHAL_MEMORY_DEVICE, bytes);
        gpuhal_area_init(&to, self->context, self->opened, GPUHAL_MEMORY_DEVICE, bytes);
        gpuhal_area_reset(&from, 1000 * (self->number + 1) + 2 * round, ROUTE_ANY);
        gpuhal_area_reset(&to, 1000 * (self->number + 1) + 2 * round + 1, ROUTE_ANY);
        const uint64_t offset = unit * (self->number % 4), count = bytes - 8 * unit;
        gpuhal_plain_copy(self->opened, &to.memory, offset, &from.memory, 4 * unit, count);
        gpuhal_area_changed(&to, offset, from.expected + 4 * unit, count);
        gpuhal_area_verify(&to, (gpuhal_claim){.offset = offset, .bytes = count}, ROUTE_ANY,
                           "thread %u of %d working %s, copy of %" PRIu64 " bytes", self->number, THREADS, how(self),
                           count);
        gpuhal_area_finish(&to);
        gpuhal_area_finish(&from);
    }
    return NULL;
}

/* Calls only the slots, so that calls often overlap. Sizes differ between the threads, and each memory object is used
 * by one thread. */
static void *allocate_often(void *user)
{
    enum { TIMES = 16 };
    const worker *self = user;
    const uint64_t bytes =
        gpuhal_round_up(4096 + (THREADS - self->number) * UINT64_C(1024), gpuhal_copy_unit(self->context));
    pthread_barrier_wait(self->together);
    for (unsigned round = 0; round < self->rounds * TIMES; round++) {
        gpuhal_memory memory;
        gpuhal_expect_ok(gpuhal_plain_allocate(self->opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &memory), "allocate");
        if (memory.bytes < bytes) {
            gpuhal_fail("thread %u of %d allocating %s asked for %" PRIu64 " bytes and got %" PRIu64, self->number,
                        THREADS, how(self), bytes, memory.bytes);
        }
        gpuhal_plain_release(self->opened, &memory);
    }
    return NULL;
}

void gpuhal_check_threads_one_opening(gpuhal_context *context)
{
    worker workers[THREADS];
    const worker model = {.context = context, .opened = &context->opened};
    start_threads(workers, &model, NULL, use_own_memory);
    start_threads(workers, &model, NULL, allocate_often);
}

/* The core treats opened devices as independent, but a plugin may have state that all of them share. */
void gpuhal_check_threads_openings(gpuhal_context *context)
{
    worker workers[THREADS];
    gpuhal_opened all_opened[THREADS];
    const worker model = {.context = context};
    for (unsigned t = 0; t < THREADS; t++) {
        gpuhal_session_open(context, &all_opened[t]);
    }
    start_threads(workers, &model, all_opened, use_own_memory);
    for (unsigned t = 0; t < THREADS; t++) {
        gpuhal_session_close(context, &all_opened[t]);
    }
}

/* The core runs transfers on one memory object concurrently. Only release, map and unmap have exclusive access to the
 * object. */
static void *use_slice(void *user)
{
    const worker *self = user;
    const uint64_t bytes = self->slice_bytes, offset = bytes * self->number;
    unsigned char *expected = gpuhal_own(malloc((size_t)bytes)), *actual = gpuhal_own(malloc((size_t)bytes));
    pthread_barrier_wait(self->together);
    for (unsigned round = 0; round < self->rounds; round++) {
        gpuhal_pattern(expected, bytes, 100 * (self->number + 1) + round);
        gpuhal_plain_put(self->opened, self->shared[0], offset, expected, bytes, ROUTE_ANY);
        gpuhal_plain_copy(self->opened, self->shared[1], offset, self->shared[0], offset, bytes);
        memset(actual, 0, (size_t)bytes);
        gpuhal_plain_get(self->opened, self->shared[1], offset, actual, bytes, ROUTE_ANY);
        char fault[400];
        const gpuhal_claim claim = {.expected = expected, .actual = actual, .total = bytes, .bytes = bytes};
        if (!gpuhal_claim_holds(&claim, fault, sizeof fault)) {
            gpuhal_fail("thread %u of %d, working %s, with its own part of one memory object: %s", self->number,
                        THREADS, how(self), fault);
        }
    }
    free(actual);
    free(expected);
    return NULL;
}

void gpuhal_check_threads_one_memory(gpuhal_context *context)
{
    worker workers[THREADS];
    gpuhal_memory from, to;
    const uint64_t slice = gpuhal_round_up(20000, gpuhal_copy_unit(context));
    gpuhal_expect_ok(gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, slice * THREADS, 0, &from),
                     "allocate");
    gpuhal_expect_ok(gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, slice * THREADS, 0, &to),
                     "allocate");
    const worker model = {.context = context, .opened = &context->opened, .shared = {&from, &to}, .slice_bytes = slice};
    start_threads(workers, &model, NULL, use_slice);
    gpuhal_plain_release(&context->opened, &from);
    gpuhal_plain_release(&context->opened, &to);
}
