/* fd_thread.h: a hand-written completion descriptor: a thread that sleeps in the vendor's wait function and then writes
 * to an eventfd. */
#ifndef GPUHAL_BENCH_FD_THREAD_H
#define GPUHAL_BENCH_FD_THREAD_H

#include "baseline.h"

typedef struct gpuhal_bench_fd_thread gpuhal_bench_fd_thread;

/* Starts the thread. The baseline must outlive it. Returns NULL and sets gpuhal_bench_failure() on failure. */
gpuhal_bench_fd_thread *gpuhal_bench_fd_thread_start(gpuhal_bench_baseline *baseline);

/* @p thread may be NULL. */
void gpuhal_bench_fd_thread_stop(gpuhal_bench_fd_thread *thread);

/* watch() makes the thread wait for the last submission. The descriptor becomes readable once the submission has
 * finished or failed. accept() returns whether the submission succeeded, and resets the descriptor. */
bool gpuhal_bench_fd_thread_watch(gpuhal_bench_fd_thread *thread);
bool gpuhal_bench_fd_thread_accept(gpuhal_bench_fd_thread *thread);
int gpuhal_bench_fd_thread_descriptor(const gpuhal_bench_fd_thread *thread);

#endif
