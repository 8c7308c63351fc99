/* apart.h: work in a child process, where a driver that crashes or hangs costs nothing but its answer. */
#ifndef PROBE_APART_H
#define PROBE_APART_H

#include <gpuhal/gpuhal.h>

#include <stdbool.h>
#include <sys/types.h>

/* What came of a trial of a device or a link. */
typedef struct gpuhal_probe_verdict {
    gpuhal_status status;
    char sentence[512]; /* "" with GPUHAL_OK */
} gpuhal_probe_verdict;

/* The status of a call that has just returned, with its sentence, which shall not repeat `subject`: what it is shown behind. */
void gpuhal_probe_judge(gpuhal_status status, const char *subject, gpuhal_probe_verdict *out_verdict);

/* A child that sends answers of one size, each smaller than PIPE_BUF: they arrive whole or not at all. */
typedef struct gpuhal_probe_child {
    pid_t pid;
    int from;
} gpuhal_probe_child;

typedef enum gpuhal_probe_answer { PROBE_ANSWERED, PROBE_ENDED, PROBE_TIMED_OUT } gpuhal_probe_answer;

/* Has `work` run in a child, which ends with it; false when there is none to be had. */
bool gpuhal_probe_child_start(void (*work)(void *user, int to), void *user, gpuhal_probe_child *out_child);
/* In the child: sends an answer; the child ends where nobody takes it. */
void gpuhal_probe_child_send(int to, const void *answer, size_t bytes);
/* Waits for the next answer. ENDED: the child ended without one. */
gpuhal_probe_answer gpuhal_probe_child_hear(const gpuhal_probe_child *child, uint64_t timeout_ns, void *answer, size_t bytes);
/* Ends the child. Unless it `ANSWERED` last, what went wrong is the verdict. */
void gpuhal_probe_child_end(gpuhal_probe_child *child, gpuhal_probe_answer last, uint64_t timeout_ns, gpuhal_probe_verdict *out_verdict);

#endif
