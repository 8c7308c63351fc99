/* bench.h: what all groups of rows share: the opened library, the devices to measure, and small help with buffers. */
#ifndef GPUHAL_BENCH_BENCH_H
#define GPUHAL_BENCH_BENCH_H

#include "measure.h"
#include "options.h"
#include "output.h"

#include <gpuhal/gpuhal.h>

typedef struct gpuhal_bench {
    const gpuhal_bench_options *options;
    gpuhal *gpu;
    gpuhal_device *only; /* NULL: every device. */
    gpuhal_bench_output *output;
    gpuhal_bench_times times; /* Of the row at work. */
} gpuhal_bench;

/* The groups of rows. Each reports its own failures and goes on with the next row. */
void gpuhal_bench_rows_call(gpuhal_bench *bench);
void gpuhal_bench_rows_copy(gpuhal_bench *bench);
void gpuhal_bench_rows_pairs(gpuhal_bench *bench);
void gpuhal_bench_rows_allocate(gpuhal_bench *bench);
void gpuhal_bench_rows_open(gpuhal_bench *bench);
void gpuhal_bench_rows_batch(gpuhal_bench *bench);
void gpuhal_bench_rows_share(gpuhal_bench *bench);
void gpuhal_bench_rows_queue(gpuhal_bench *bench);
void gpuhal_bench_rows_file(gpuhal_bench *bench);

/* The library with one backend (and the CPU, which is always there), whatever the user's environment says; only where plugins and
 * vendors' libraries are found is theirs to say. Nothing is taken from the registry, nor kept in it.
 * @isolation: GPUHAL_ISOLATION_NEVER to meet the plugin in this process. */
bool gpuhal_bench_open_alone(const char *backend, uint32_t isolation, gpuhal **out_gpu);

/* Whether the device is to be measured. */
bool gpuhal_bench_wants(const gpuhal_bench *bench, const gpuhal_device *device);
bool gpuhal_bench_is_cpu(const gpuhal_device *device);
bool gpuhal_bench_is_software(const gpuhal_device *device);

/* Whether it is a device of CUDA or HIP. Memory of kind UPLOAD and READBACK is page-locked there, and copied by the host alone.
 */
bool gpuhal_bench_is_streamed(const gpuhal_device *device);

/* The memory whose copies cost nothing but the call: the plugin makes them with the processor, before it returns. */
gpuhal_memory_kind gpuhal_bench_call_kind(const gpuhal_device *device);

/* Whether it is PoCL's device `basic`, which works inside the call, or another one of PoCL's, which wakes a thread for
 * everything, allocations too. */
bool gpuhal_bench_is_inline(const gpuhal_device *device);
bool gpuhal_bench_is_threaded(const gpuhal_device *device);

/* Rounds for copies, and for rows of short samples, which can have many more of them. Where nothing is @judged, less certainty
 * will do. */
gpuhal_bench_plan gpuhal_bench_plan_copies(const gpuhal_bench *bench, bool judged);
gpuhal_bench_plan gpuhal_bench_plan_calls(const gpuhal_bench *bench);

/* Takes ours, baseline and result of a row from bench->times. @baseline equal to @ours: there is none, and no ratio then. */
void gpuhal_bench_row_take(const gpuhal_bench *bench, size_t ours, size_t baseline, gpuhal_bench_row *row);

/* Which of two sides of bench->times is the slower one over all rounds: taking the slower one of each round would flatter what is
 * held against it, by the noise of two samples. */
size_t gpuhal_bench_slower(const gpuhal_bench *bench, size_t one, size_t other);

/* Whether a buffer pair of @bytes on each device fits, beside as much memory of the host; else says that the row is left out.
 * Memory of devices that work in the host's counts as the host's. @to and @from may be the same. */
bool gpuhal_bench_fits(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, const char *test, uint64_t bytes);

/* A buffer in memory of the device itself, and one of any kind. False with gpuhal_bench_failure(). */
bool gpuhal_bench_buffer(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer);
bool gpuhal_bench_buffer_of(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes, gpuhal_buffer **out_buffer);

/* Reports that a row failed; it is no failure of the run when @no_buffer is true and the device has not that much memory. */
void gpuhal_bench_not_measured(gpuhal_bench *bench, const char *device, const char *test, bool no_buffer);

/* Host memory at a page, written before it is handed out. NULL with gpuhal_bench_failure(); free() it. */
void *gpuhal_bench_host_memory(uint64_t bytes);

/* A pattern without repetition, so that bytes that came to the wrong place are seen. */
void gpuhal_bench_pattern(void *memory, uint64_t bytes, uint64_t seed);
bool gpuhal_bench_pattern_is(const void *memory, uint64_t bytes, uint64_t seed);

/* Writes the pattern to @from, copies it to @to and reads it back; @host has @bytes. It proves that the calls to be measured move
 * the bytes, and leaves no page of either side unwritten. */
bool gpuhal_bench_prove(gpuhal_buffer *to, gpuhal_buffer *from, void *host, uint64_t bytes);

#endif
