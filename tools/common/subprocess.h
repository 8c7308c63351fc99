/* subprocess.h: child processes of the programs, in which a driver may crash or hang, or is started for the first
 * time.
 *
 * A child answers through a pipe, with records or with what it prints. A record is smaller than PIPE_BUF, so it
 * arrives whole or not at all. */
#ifndef GPUHAL_TOOL_SUBPROCESS_H
#define GPUHAL_TOOL_SUBPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Wherever a time is asked for: without end. */
#define GPUHAL_TOOL_FOREVER UINT64_MAX

typedef struct gpuhal_tool_child {
    pid_t pid;
    int from; /* the pipe; -1: it has none */
} gpuhal_tool_child;

typedef enum gpuhal_tool_heard { GPUHAL_TOOL_HEARD, GPUHAL_TOOL_ENDED, GPUHAL_TOOL_TIMED_OUT } gpuhal_tool_heard;

/* The monotonic clock. */
uint64_t gpuhal_tool_now_ns(void);

/* Forks a child that calls @work with the pipe to write to, and ends with status 0 when that returns. The child leads
 * a process group of its own, ends with this thread, and leaves no core dump. A backend that was started here does not
 * work in it. False: no child. */
bool gpuhal_tool_fork(void (*work)(void *user, int to), void *user, gpuhal_tool_child *out_child);

/* In the child: sends a record. The child ends with status 1 when the parent has closed its end. */
void gpuhal_tool_send(int to, const void *record, size_t bytes);

/* Starts a program; @arguments end with NULL. It prints into the pipe, or into @output unless that is -1. False: it
 * did not start. */
bool gpuhal_tool_spawn(const char *file, const char *const *arguments, int output, gpuhal_tool_child *out_child);

/* Waits until @until_ns for the next @bytes. ENDED: the other end of the pipe was closed before; what came until then
 * is there. */
gpuhal_tool_heard gpuhal_tool_hear(const gpuhal_tool_child *child, uint64_t until_ns, void *record, size_t bytes);

/* Waits up to @patience_ns for the end of the child, kills it with its group, and gives the child back. *out_status is
 * of waitpid(), or -1 when that is unknown: a child that is stuck inside a driver cannot be reaped, and is left behind.
 * False: it had to be killed. */
bool gpuhal_tool_end(gpuhal_tool_child *child, uint64_t patience_ns, int *out_status);

#endif
