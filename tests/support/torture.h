/* tests/support/torture.h: runs a task repeatedly, each time with a different failing call.
 *
 * Each round is a separate process. A round runs the task with a fault, and again without a fault. The second run must
 * succeed. At the end no other thread and no child may exist. The numbers of descriptors, allocations and mappings must
 * not be larger than after a task without a fault. If a round crashes or hangs, the message names the failing call. If
 * there are more calls than rounds, the failing calls are spread evenly; GPUHAL_TEST_ROUNDS sets the number of rounds,
 * and GPUHAL_TEST_CALL selects a single call. */
#ifndef GPUHAL_TEST_TORTURE_H
#define GPUHAL_TEST_TORTURE_H

#include "support/faults.h"
#include "support/process.h"

#include <gpuhal/gpuhal.h>

#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TORTURE_ROUNDS = 240, TORTURE_PATIENCE_S = 60 };

/* A round's report, in memory that the processes share. */
typedef struct torture_round {
    _Atomic unsigned calls;
    _Atomic int64_t held, held_once; /* at the end; after the first run without a fault */
    _Atomic size_t descriptors, descriptors_once;
    _Atomic int status, clean_status; /* status of the run with the fault; status of the run without a fault */
    char name[32], sentence[256];
} torture_round;

/* Runs the task, checks its results if it succeeds, and releases everything in either case. */
typedef gpuhal_status torture_work(void);

/* This thread, and ThreadSanitizer's threads; it starts another one in the child of a fork. */
#if defined __SANITIZE_THREAD__
enum { TORTURE_THREADS = 3 };
#else
enum { TORTURE_THREADS = 1 };
#endif

/* Retries, since a killed helper may exit late on a busy machine. */
static inline bool has_children(void)
{
    siginfo_t info;
    int found = 0;
    for (int i = 0; i < 5000 && (found = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT)) == 0; i++) {
        usleep(1000);
    }
    return found == 0;
}

static inline void torture_child(torture_work *task, gpuhal_fault kind, unsigned at, void (*before)(void),
                                 torture_round *round)
{
    alarm(TORTURE_PATIENCE_S);
    if (before) {
        before();
    }
    gpuhal_fault_begin(kind, at, 0);
    gpuhal_status status = task();
    gpuhal_fault_end();
    round->calls = gpuhal_fault_calls();
    round->status = status;
    snprintf(round->name, sizeof round->name, "%s", gpuhal_fault_name());
    snprintf(round->sentence, sizeof round->sentence, "%s", status ? gpuhal_last_error()->sentence : "");
    if (status && (gpuhal_last_error()->status != status || !round->sentence[0])) {
        snprintf(round->sentence, sizeof round->sentence, "no detail: status %d, the detail's is %d", status,
                 gpuhal_last_error()->status);
        _exit(3);
    }
    if (at == UINT_MAX) {
        (void)threads_come_down_to(TORTURE_THREADS);
        round->held_once = gpuhal_fault_held();
        round->descriptors_once = count_descriptors();
    }
    round->clean_status = task();
    if (round->clean_status) {
        snprintf(round->sentence, sizeof round->sentence, "%s", gpuhal_last_error()->sentence);
    }
    const bool settled = threads_come_down_to(TORTURE_THREADS);
    round->held = gpuhal_fault_held();
    round->descriptors = count_descriptors();
    _exit(has_children() ? 4 : settled ? 0 : 5);
}

static inline void torture_round_of(torture_work *task, gpuhal_fault kind, unsigned at, void (*before)(void),
                                    torture_round *round)
{
    int status = -1;
    memset(round, 0, sizeof *round);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        torture_child(task, kind, at, before, round);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status || round->clean_status) {
        const char *what = WIFSIGNALED(status)         ? WTERMSIG(status) == SIGALRM ? "hangs" : "crashes"
                           : round->clean_status       ? "leaves a library that does not work"
                           : WEXITSTATUS(status) == 3 ? "fails without a detail"
                           : WEXITSTATUS(status) == 4 ? "leaves a child process"
                           : WEXITSTATUS(status) == 5 ? "leaves a thread"
                                                       : "fails a check";
        fail_msg("call %u, %s: it %s (wait status %#x, clean run %d): %s", at, round->name, what, status,
                 round->clean_status, round->sentence);
    }
}

/* Distance between two failing calls. */
static inline unsigned torture_step(unsigned calls)
{
    const char *wanted = getenv("GPUHAL_TEST_ROUNDS");
    const unsigned rounds = wanted ? (unsigned)strtoul(wanted, NULL, 10) : TORTURE_ROUNDS;
    return (calls + rounds - 1) / rounds;
}

/* Makes each call, or each n-th call, fail once. Each round begins with `before`, which may be NULL. */
static inline void torture(torture_work *task, gpuhal_fault kind, void (*before)(void))
{
    torture_round *round = mmap(NULL, sizeof *round, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(round != MAP_FAILED);
    torture_round_of(task, kind, UINT_MAX, before, round);
    assert_int_equal(round->status, GPUHAL_OK);
    assert_int_equal(round->held, round->held_once);
    assert_int_equal(round->descriptors, round->descriptors_once);
    const int64_t held = round->held;
    const size_t descriptors = round->descriptors;
    const unsigned calls = round->calls;
    const unsigned step = torture_step(calls);
    const char *one = getenv("GPUHAL_TEST_CALL");
    const unsigned first = one ? (unsigned)strtoul(one, NULL, 10) : 1, last = one ? first : calls;
    assert_true(calls > 0);
    unsigned refused = 0;
    for (unsigned at = first; at <= last; at += step) {
        torture_round_of(task, kind, at, before, round);
        refused += round->status != 0;
        if (round->held > held || round->descriptors > descriptors) {
            fail_msg("call %u, %s: %lld pieces of memory and %zu descriptors are held, should be %lld and %zu (status "
                     "%d: %s)",
                     at, round->name, (long long)round->held, (size_t)round->descriptors, (long long)held, descriptors,
                     round->status, round->sentence);
        }
    }
    printf("%u calls, every %u. failed; %u rounds were refused\n", calls, step, refused);
    munmap(round, sizeof *round);
}

#endif
