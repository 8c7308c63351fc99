/* progress.h: shows the operation that the program is waiting for, on one line of the terminal, updated every
 * second. */
#ifndef PROBE_PROGRESS_H
#define PROBE_PROGRESS_H

#include "../common/subprocess.h"

#include <stdint.h>

/* Shows "checking cuda:0: 9 s of 15 s" until gpuhal_probe_wait_end(). Waits do not nest. If the counting thread cannot
 * be created, the seconds do not advance. */
void gpuhal_probe_wait_begin(const char *what, uint64_t limit_ns);
void gpuhal_probe_wait_end(void);

/* Calls gpuhal_tool_fork() while the counting thread is stopped, because locks held by the thread would stay locked in
 * the child. */
bool gpuhal_probe_wait_fork(void (*work)(void *user, int to), void *user, gpuhal_tool_child *out_child);

/* A gpuhal_log_fn that reads the log while the library opens, and shows the plugins that are being probed: "checking
 * cuda, vulkan: 9 s of 15 s". Requires GPUHAL_PROBE_WAIT_LEVEL. */
enum { GPUHAL_PROBE_WAIT_LEVEL = 4 };
void gpuhal_probe_wait_listen(void *user, int32_t level, const char *line);

#endif
