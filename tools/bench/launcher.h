/* launcher.h: one kernel in the forms of three APIs, ready for launches by the library: y = a * x + y. */
#ifndef GPUHAL_BENCH_LAUNCHER_H
#define GPUHAL_BENCH_LAUNCHER_H

#include "bench.h"

enum { GPUHAL_BENCH_GROUP_SIZE = 64 };

/* The kernel in OpenCL C. In SPIR-V it is saxpy_spirv.h, whose entry point is main. */
extern const char gpuhal_bench_saxpy_source[];

typedef struct gpuhal_bench_launcher {
    gpuhal_queue *queue;
    gpuhal_program *program;
    gpuhal_kernel *kernel;
    gpuhal_buffer *y;
    gpuhal_buffer *x;
    uint64_t offset; /* Of both, in their buffers. */
    float a;
    uint32_t count;
} gpuhal_bench_launcher;

/* Makes a queue, the kernel, and two buffers of @count numbers, from the offset on; y is 0, and x counts from 0. False
 * with gpuhal_bench_failure(); close it in any case. */
bool gpuhal_bench_launcher_open(gpuhal_device *device, uint32_t count, uint64_t offset,
                                gpuhal_bench_launcher *out_launcher);
void gpuhal_bench_launcher_close(gpuhal_bench_launcher *launcher);

/* Launches once, in the launcher's queue or blocking. */
bool gpuhal_bench_launcher_enqueue(const gpuhal_bench_launcher *launcher, gpuhal_queue *queue);
/* Sleeps until the queue is idle. */
bool gpuhal_bench_launcher_await(const gpuhal_bench_launcher *launcher);
/* Makes each y 0, as after opening the launcher. */
bool gpuhal_bench_launcher_clear(const gpuhal_bench_launcher *launcher);
/* Checks that each y is @launches times the result of one launch; makes them 0 again. */
bool gpuhal_bench_launcher_prove(const gpuhal_bench_launcher *launcher, uint64_t launches);

/* Makes the program, and a kernel of it with these parameters. False with gpuhal_bench_failure(). */
bool gpuhal_bench_launcher_make(gpuhal_device *device, gpuhal_program **out_program, gpuhal_kernel **out_kernel);

#endif
