/* progress.h: what the program is waiting for, while it waits: one line on the terminal, once a second. */
#ifndef PROBE_PROGRESS_H
#define PROBE_PROGRESS_H

#include <stdint.h>

/* "checking cuda:0: 9 s of 15 s", from now on until gpuhal_probe_wait_end(). One at a time; without a thread to count
 * the seconds the line stays as it is. */
void gpuhal_probe_wait_begin(const char *what, uint64_t limit_ns);
void gpuhal_probe_wait_end(void);

/* Listens to the log of an opening, and waits for the plugins that are being probed: "checking cuda, vulkan: 9 s of
 * 15 s". A gpuhal_log_fn; needs GPUHAL_PROBE_WAIT_LEVEL. */
enum { GPUHAL_PROBE_WAIT_LEVEL = 4 };
void gpuhal_probe_wait_listen(void *user, int32_t level, const char *line);

#endif
