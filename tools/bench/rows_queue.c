/* rows_queue.c: the cost of the smallest copy on a queue of the library: enqueueing the copy, waiting for its event,
 * and waiting for its completion descriptor. Each cost is compared with a program's code on the vendor's queue. */
#include "fd_thread.h"
#include "queued.h"

#include <math.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PIECES = GPUHAL_BENCH_PIECES, PIECE_BYTES = 256 };

static const double descriptor_budget = 1 / 1.25;
static const double descriptor_budget_ns =
    40000; /* in addition to the vendor's wait, on PoCL devices that wake a thread */
static const double synchronize_budget = 1 / 2.5; /* after work that has already ended, on PoCL's `basic` */
static const int timeout_ms = 10000;

typedef struct small_copies {
    gpuhal_bench_queued queued;
    gpuhal_bench_fd_thread *thread; /* NULL without a comparison. */
    int gpuhal;                     /* One epoll instance for each side, like in a program; -1 if there is none. */
    int direct;
} small_copies;

static bool submit_by_gpuhal(void *user, uint64_t count)
{
    const small_copies *s = user;
    return gpuhal_bench_queued_enqueue(&s->queued, 0, count);
}

static bool settle_by_gpuhal(void *user)
{
    const small_copies *s = user;
    return gpuhal_bench_queued_record(&s->queued) && gpuhal_bench_queued_await(&s->queued);
}

static bool enqueue_direct(const gpuhal_bench_queued *q, uint64_t pieces)
{
    return q->baseline->calls->enqueue(q->baseline, &q->native_to, &q->native_from, PIECE_BYTES, pieces);
}

static bool submit_direct(void *user, uint64_t count)
{
    const small_copies *s = user;
    return enqueue_direct(&s->queued, count);
}

static bool settle_direct(void *user)
{
    const gpuhal_bench_queued *q = &((const small_copies *)user)->queued;
    return q->baseline->calls->submit(q->baseline) && q->baseline->calls->await(q->baseline);
}

static bool await_by_gpuhal(void *user, uint64_t count)
{
    const small_copies *s = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!gpuhal_bench_queued_enqueue(&s->queued, 0, 1) || !settle_by_gpuhal(user)) {
            return false;
        }
    }
    return true;
}

static bool synchronize_by_gpuhal(void *user, uint64_t count)
{
    const small_copies *s = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!gpuhal_bench_queued_enqueue(&s->queued, 0, 1) || !gpuhal_bench_queued_synchronize(&s->queued)) {
            return false;
        }
    }
    return true;
}

static bool await_direct(void *user, uint64_t count)
{
    const small_copies *s = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!enqueue_direct(&s->queued, 1) || !settle_direct(user)) {
            return false;
        }
    }
    return true;
}

static bool becomes_readable(int epoll)
{
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, timeout_ms) == 1 ||
           gpuhal_bench_failed("the descriptor did not become readable");
}

static bool poll_by_gpuhal(void *user, uint64_t count)
{
    const small_copies *s = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!gpuhal_bench_queued_enqueue(&s->queued, 0, 1) || !gpuhal_bench_queued_record(&s->queued) ||
            !becomes_readable(s->gpuhal)) {
            return false;
        }
        if (gpuhal_event_poll(s->queued.event) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_event_poll");
        }
    }
    return true;
}

static bool poll_direct(void *user, uint64_t count)
{
    const small_copies *s = user;
    const gpuhal_bench_queued *q = &s->queued;
    for (uint64_t i = 0; i < count; i++) {
        if (!enqueue_direct(q, 1) || !q->baseline->calls->submit(q->baseline) ||
            !gpuhal_bench_fd_thread_watch(s->thread) || !becomes_readable(s->direct) ||
            !gpuhal_bench_fd_thread_accept(s->thread)) {
            return false;
        }
    }
    return true;
}

static bool watch(int descriptor, int *out_epoll)
{
    struct epoll_event event = {.events = EPOLLIN};
    *out_epoll = epoll_create1(EPOLL_CLOEXEC);
    return (*out_epoll >= 0 && epoll_ctl(*out_epoll, EPOLL_CTL_ADD, descriptor, &event) == 0) ||
           gpuhal_bench_failed("no epoll for the descriptor");
}

/* The earlier rows have recorded the event. The descriptor of an event without a recording would be readable
 * immediately. */
static bool open_descriptors(small_copies *s, gpuhal_os_handle *out_descriptor)
{
    if (gpuhal_event_descriptor(s->queued.event, out_descriptor) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_event_descriptor");
    }
    if (!watch((int)*out_descriptor, &s->gpuhal)) {
        return false;
    }
    if (s->queued.baseline == NULL) {
        return true;
    }
    s->thread = gpuhal_bench_fd_thread_start(s->queued.baseline);
    return s->thread != NULL && watch(gpuhal_bench_fd_thread_descriptor(s->thread), &s->direct);
}

static gpuhal_bench_row row_of(const gpuhal_device *device, const char *test, gpuhal_bench_kind kind, double budget)
{
    gpuhal_bench_row row = gpuhal_bench_row_of(device, test, kind);
    row.budget = budget;
    return row;
}

static bool measure(gpuhal_bench *bench, gpuhal_bench_row row, small_copies *s, const gpuhal_bench_side *sides,
                    size_t side_count)
{
    const size_t last = s->queued.baseline != NULL ? side_count - 1 : 0;
    gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    plan.max_count = PIECES;
    gpuhal_bench_begin(bench->output, &row);
    for (size_t i = 0; i <= last; i++) {
        /* The other sides copy one piece repeatedly with the same calls. */
        if (sides[i].settle != NULL && !gpuhal_bench_queued_prove(&s->queued, &sides[i], PIECES, i + 1)) {
            return false;
        }
    }
    return gpuhal_bench_measure_row(bench, row, sides, last + 1, &plan);
}

static bool one_device(gpuhal_bench *bench, const gpuhal_device *device, small_copies *s,
                       gpuhal_os_handle *out_descriptor)
{
    const gpuhal_bench_side submit[] = {{submit_by_gpuhal, s, settle_by_gpuhal}, {submit_direct, s, settle_direct}};
    const gpuhal_bench_side await[] = {{await_by_gpuhal, s, NULL}, {await_direct, s, NULL}};
    const gpuhal_bench_side synchronize[] = {{synchronize_by_gpuhal, s, NULL}, {await_direct, s, NULL}};
    const gpuhal_bench_side polling[] = {{poll_by_gpuhal, s, NULL}, {poll_direct, s, NULL}, {await_direct, s, NULL}};
    const bool compared = s->queued.baseline != NULL;
    const double budget = gpuhal_bench_is_inline(device) ? synchronize_budget : NAN;
    if (!measure(bench, row_of(device, "submit", GPUHAL_BENCH_TIMES, NAN), s, submit, 2) ||
        !measure(bench, row_of(device, "queued_copy", GPUHAL_BENCH_TIMES, NAN), s, await, 2) ||
        !measure(bench, row_of(device, "synchronize", GPUHAL_BENCH_TIMES, budget), s, synchronize, 2) ||
        !open_descriptors(s, out_descriptor) ||
        !measure(bench, row_of(device, "event_to_fd", GPUHAL_BENCH_TIMES, descriptor_budget), s, polling, 3)) {
        return false;
    }
    if (compared) {
        const double late = gpuhal_bench_is_threaded(device) ? descriptor_budget_ns : NAN;
        gpuhal_bench_report(bench, row_of(device, "fd_after_event", GPUHAL_BENCH_AMOUNT, late), 0, 2);
    }
    return true;
}

void gpuhal_bench_rows_queue(gpuhal_bench *bench, gpuhal_device *device)
{
    gpuhal_os_handle descriptor = -1;
    small_copies s = {.gpuhal = -1, .direct = -1};
    const gpuhal_bench_row row = gpuhal_bench_row_of(device, "submit", GPUHAL_BENCH_TIMES);
    gpuhal_bench_begin(bench->output, &row);
    if (!gpuhal_bench_queued_open(bench, device, PIECE_BYTES, PIECES, &s.queued) ||
        !one_device(bench, device, &s, &descriptor)) {
        gpuhal_bench_not_measured(bench);
    }
    gpuhal_bench_fd_thread_stop(s.thread);
    const int open_ones[] = {s.gpuhal, s.direct, (int)descriptor};
    for (size_t i = 0; i < sizeof open_ones / sizeof *open_ones; i++) {
        if (open_ones[i] >= 0) {
            close(open_ones[i]);
        }
    }
    gpuhal_bench_queued_close(&s.queued);
}
