/* subprocess.h: child processes. The programs start drivers in them, because a driver may crash or hang, or
 * must be started for the first time.
 *
 * A child replies through a pipe with records or with printed text. A record is smaller than PIPE_BUF, so writing it is
 * atomic. */
#ifndef GPUHAL_TOOL_SUBPROCESS_H
#define GPUHAL_TOOL_SUBPROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Used as a timeout: wait forever. */
#define GPUHAL_TOOL_FOREVER UINT64_MAX

typedef struct gpuhal_tool_child {
    pid_t pid;
    int from; /* read end of the pipe; -1 if there is none */
} gpuhal_tool_child;

typedef enum gpuhal_tool_heard { GPUHAL_TOOL_HEARD, GPUHAL_TOOL_ENDED, GPUHAL_TOOL_TIMED_OUT } gpuhal_tool_heard;

uint64_t gpuhal_tool_now_ns(void);

/* Forks a child that calls @work with the pipe's write end and exits with status 0 when @work returns. The child leads
 * a new process group, is killed when this thread exits, and writes no core dump. Backends already started in this
 * process do not work in the child. Returns false if no child could be forked. */
bool gpuhal_tool_fork(void (*work)(void *user, int to), void *user, gpuhal_tool_child *out_child);

/* Sends a record from the child. The child exits with status 1 if the parent has closed its end. */
void gpuhal_tool_send(int to, const void *record, size_t bytes);

/* Starts a program; @arguments end with NULL. Its standard output is the pipe, or @output unless @output is -1. Returns
 * false if the program did not start. */
bool gpuhal_tool_spawn(const char *file, const char *const *arguments, int output, gpuhal_tool_child *out_child);

/* Waits until @until_ns for the next @bytes. ENDED means that the write end was closed before all bytes arrived;
 * @record contains the bytes received so far. */
gpuhal_tool_heard gpuhal_tool_hear(const gpuhal_tool_child *child, uint64_t until_ns, void *record, size_t bytes);

/* Waits up to @patience_ns for the child to exit, kills the child and its group, and reaps the child. *out_status is
 * the status from waitpid(). It is -1 if unknown: a child that is stuck inside a driver cannot be reaped and is
 * abandoned. Returns false if the child had to be killed. */
bool gpuhal_tool_end(gpuhal_tool_child *child, uint64_t patience_ns, int *out_status);

#endif
