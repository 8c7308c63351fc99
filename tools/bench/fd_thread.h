/* fd_thread.h: a hand-written descriptor for the end of work on a device: a thread that sleeps in the vendor's wait and
 * then writes to an eventfd. */
#ifndef GPUHAL_BENCH_FD_THREAD_H
#define GPUHAL_BENCH_FD_THREAD_H

#include "baseline.h"

typedef struct gpuhal_bench_fd_thread gpuhal_bench_fd_thread;

/* Starts the thread. NULL with gpuhal_bench_failure(). The baseline has to outlive it. */
gpuhal_bench_fd_thread *gpuhal_bench_fd_thread_start(gpuhal_bench_baseline *baseline);

/* Takes NULL. */
void gpuhal_bench_fd_thread_stop(gpuhal_bench_fd_thread *thread);

/* Makes the thread await the last submission. The descriptor is readable when it has ended, or has failed, until
 * accept() returns which of the two. */
bool gpuhal_bench_fd_thread_watch(gpuhal_bench_fd_thread *thread);
bool gpuhal_bench_fd_thread_accept(gpuhal_bench_fd_thread *thread);
int gpuhal_bench_fd_thread_descriptor(const gpuhal_bench_fd_thread *thread);

#endif
