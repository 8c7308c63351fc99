/* progress.h: the current wait of the program: one line on the terminal, once a second. */
#ifndef PROBE_PROGRESS_H
#define PROBE_PROGRESS_H

#include "../common/subprocess.h"

#include <stdint.h>

/* Shows "checking cuda:0: 9 s of 15 s", from now on until gpuhal_probe_wait_end(). One wait at a time; without a thread
 * to count the seconds the line stays unchanged. */
void gpuhal_probe_wait_begin(const char *what, uint64_t limit_ns);
void gpuhal_probe_wait_end(void);

/* Does gpuhal_tool_fork() while the thread that counts the seconds is stopped: its locks would stay locked in the
 * child. */
bool gpuhal_probe_wait_fork(void (*work)(void *user, int to), void *user, gpuhal_tool_child *out_child);

/* Listens to the log of an opening, and shows the plugins that are being probed: "checking cuda, vulkan: 9 s of 15 s".
 * A gpuhal_log_fn; needs GPUHAL_PROBE_WAIT_LEVEL. */
enum { GPUHAL_PROBE_WAIT_LEVEL = 4 };
void gpuhal_probe_wait_listen(void *user, int32_t level, const char *line);

#endif
