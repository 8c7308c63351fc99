/* launcher.h: one kernel in the formats of three APIs, ready to be launched by the library: y = a * x + y. */
#ifndef GPUHAL_BENCH_LAUNCHER_H
#define GPUHAL_BENCH_LAUNCHER_H

#include "bench.h"

enum { GPUHAL_BENCH_GROUP_SIZE = 64 };

/* The kernel in OpenCL C. saxpy_spirv.h contains the same kernel in SPIR-V, with the entry point main. */
extern const char gpuhal_bench_saxpy_source[];

typedef struct gpuhal_bench_launcher {
    gpuhal_queue *queue;
    gpuhal_program *program;
    gpuhal_kernel *kernel;
    gpuhal_buffer *y;
    gpuhal_buffer *x;
    uint64_t offset; /* The offset in both buffers, in bytes. */
    float a;
    uint32_t count;
} gpuhal_bench_launcher;

/* Makes a queue, the kernel, and two buffers. The arrays x and y of @count numbers start at the offset. Each y is 0,
 * and x counts from 0 to 999 repeatedly. Returns false and sets gpuhal_bench_failure() on failure. Call close in any
 * case. */
bool gpuhal_bench_launcher_open(gpuhal_device *device, uint32_t count, uint64_t offset,
                                gpuhal_bench_launcher *out_launcher);
void gpuhal_bench_launcher_close(gpuhal_bench_launcher *launcher);

/* enqueue() launches the kernel once, in @queue or, if @queue is NULL, as a blocking call. record() adds the launch to
 * a recording. await() sleeps until the launcher's queue is idle. */
bool gpuhal_bench_launcher_enqueue(const gpuhal_bench_launcher *launcher, gpuhal_queue *queue);
bool gpuhal_bench_launcher_record(const gpuhal_bench_launcher *launcher, gpuhal_recording *recording);
bool gpuhal_bench_launcher_await(const gpuhal_bench_launcher *launcher);
/* Sets each y to 0, as after opening the launcher. */
bool gpuhal_bench_launcher_clear(const gpuhal_bench_launcher *launcher);
/* Checks that each y is @launches times the result of one launch. Then sets each y to 0. */
bool gpuhal_bench_launcher_prove(const gpuhal_bench_launcher *launcher, uint64_t launches);

/* Creates the program and its kernel. Returns false and sets gpuhal_bench_failure() on failure. */
bool gpuhal_bench_launcher_make(gpuhal_device *device, gpuhal_program **out_program, gpuhal_kernel **out_kernel);

#endif
