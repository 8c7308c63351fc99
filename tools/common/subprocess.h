/* subprocess.h: child processes of the programs. In a child a driver may crash or hang, or is started for the first
 * time.
 *
 * A child answers through a pipe, with records or with printed text. A record is smaller than PIPE_BUF, so it arrives
 * whole or not at all. */
#ifndef GPUHAL_TOOL_SUBPROCESS_H
#define GPUHAL_TOOL_SUBPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* In the place of any time: without end. */
#define GPUHAL_TOOL_FOREVER UINT64_MAX

typedef struct gpuhal_tool_child {
    pid_t pid;
    int from; /* the pipe; -1: it has none */
} gpuhal_tool_child;

typedef enum gpuhal_tool_heard { GPUHAL_TOOL_HEARD, GPUHAL_TOOL_ENDED, GPUHAL_TOOL_TIMED_OUT } gpuhal_tool_heard;

/* Reads the monotonic clock. */
uint64_t gpuhal_tool_now_ns(void);

/* Forks a child that calls @work with the pipe to write to, and ends with status 0 when that returns. The child leads a
 * new process group, ends with this thread, and leaves no core dump. A backend that was started in this process does
 * not work in the child. Returns false without a child. */
bool gpuhal_tool_fork(void (*work)(void *user, int to), void *user, gpuhal_tool_child *out_child);

/* In the child: sends a record. The child ends with status 1 when the parent has closed its end. */
void gpuhal_tool_send(int to, const void *record, size_t bytes);

/* Starts a program; @arguments end with NULL. It prints into the pipe, or into @output unless that is -1. Returns false
 * if it did not start. */
bool gpuhal_tool_spawn(const char *file, const char *const *arguments, int output, gpuhal_tool_child *out_child);

/* Waits until @until_ns for the next @bytes. ENDED: the other end of the pipe was closed before; bytes that came until
 * then are in @record. */
gpuhal_tool_heard gpuhal_tool_hear(const gpuhal_tool_child *child, uint64_t until_ns, void *record, size_t bytes);

/* Waits up to @patience_ns for the end of the child, kills it with its group, and reaps it. *out_status is that of
 * waitpid(), or -1 when that is unknown: a child that is stuck inside a driver cannot be reaped, and is left behind.
 * Returns false if it had to be killed. */
bool gpuhal_tool_end(gpuhal_tool_child *child, uint64_t patience_ns, int *out_status);

#endif
