/* bench.h: the common part of all groups of rows: the opened library, the devices to measure, rows, buffers and
 * blocking moves. */
#ifndef GPUHAL_BENCH_BENCH_H
#define GPUHAL_BENCH_BENCH_H

#include "baselines.h"
#include "measure.h"
#include "options.h"
#include "output.h"
#include "replay.h"

#include <gpuhal/gpuhal.h>

typedef struct gpuhal_bench {
    const gpuhal_bench_options *options;
    gpuhal *gpu;
    gpuhal_device *only; /* NULL: every device. */
    gpuhal_bench_output *output;
    gpuhal_bench_times times; /* Of the current row. */
} gpuhal_bench;

/* The groups of rows, each of one device. Each reports its own failures and continues with the next row. */
void gpuhal_bench_rows_call(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_lease(gpuhal_bench *bench, gpuhal_device *device);
/* The folder of this run's ledger. The library makes it, and the bench removes it at the end. */
const char *gpuhal_bench_lease_folder(void);
void gpuhal_bench_lease_remove(void);
void gpuhal_bench_rows_queue(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_batch(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_launch(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_allocate(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_threads(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_open(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_sample(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_share(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_file(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_store(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_hit(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_copy(gpuhal_bench *bench, gpuhal_device *device);

/* Of all devices together. */
void gpuhal_bench_rows_open_all(gpuhal_bench *bench);
void gpuhal_bench_rows_pairs(gpuhal_bench *bench);

/* Of no device. */
void gpuhal_bench_rows_blocks(gpuhal_bench *bench);
void gpuhal_bench_rows_place(gpuhal_bench *bench);

/* Of recorded requests. */
void gpuhal_bench_rows_replay(gpuhal_bench *bench, gpuhal_device *device, const gpuhal_bench_replay *replay);

/* Opens the library with one backend (and the CPU, which is always there). The user's environment decides only the
 * places of plugins and vendors' libraries. The registry is neither read nor written. @isolation:
 * GPUHAL_ISOLATION_NEVER to probe the plugin in this process. */
bool gpuhal_bench_open_alone(const char *backend, uint32_t isolation, gpuhal **out_gpu);

bool gpuhal_bench_is_cpu(const gpuhal_device *device);
bool gpuhal_bench_is_software(const gpuhal_device *device);

/* Returns the first device of the CPU; NULL: there is none. */
gpuhal_device *gpuhal_bench_cpu(const gpuhal *gpu);

/* Returns whether it is a device of CUDA or HIP. Memory of kind UPLOAD and READBACK is page-locked there, and the host
 * alone copies it. */
bool gpuhal_bench_is_streamed(const gpuhal_device *device);

/* Returns the memory whose copies cost only the call: the plugin makes them with the processor, before it returns. */
gpuhal_memory_kind gpuhal_bench_call_kind(const gpuhal_device *device);

/* Return whether it is PoCL's device `basic`, which works inside the call, or another one of PoCL's, which wakes a
 * thread for every command, allocations too. */
bool gpuhal_bench_is_inline(const gpuhal_device *device);
bool gpuhal_bench_is_threaded(const gpuhal_device *device);

/* Return the rounds for copies, and for rows of short samples, which can have many more of them. If the row is not
 * @judged, less certainty is enough. */
gpuhal_bench_plan gpuhal_bench_plan_copies(const gpuhal_bench *bench, bool judged);
gpuhal_bench_plan gpuhal_bench_plan_calls(const gpuhal_bench *bench);

/* Returns an empty row of the device, without a budget; its unit is ns unless it is about copies. */
gpuhal_bench_row gpuhal_bench_row_of(const gpuhal_device *device, const char *test, gpuhal_bench_kind kind);

/* Adds the row with the time of @side as gpuhal's, the baseline's time and the result, all from bench->times. @baseline
 * equal to @side: there is no baseline, hence no ratio. */
void gpuhal_bench_report(gpuhal_bench *bench, gpuhal_bench_row row, size_t side, size_t baseline);

/* Measures the sides and adds the row of the first two. One side: there is no baseline. False with
 * gpuhal_bench_failure(). */
bool gpuhal_bench_measure_row(gpuhal_bench *bench, gpuhal_bench_row row, const gpuhal_bench_side *sides,
                              size_t side_count, const gpuhal_bench_plan *plan);

/* Reports that the current row has no result, because of gpuhal_bench_failure(). The run does not fail if a buffer
 * could not be allocated because the device has not that much memory. */
void gpuhal_bench_not_measured(gpuhal_bench *bench);

/* Adds a row whose samples are separate processes, gpuhal's (@words, child.h) and the baseline's in turn; a @baseline
 * of NULL: there is nothing to compare with. False: they failed, which is reported. */
bool gpuhal_bench_children_row(gpuhal_bench *bench, gpuhal_bench_row row, const char *const *words,
                               const char *const *baseline);

/* Adds a row of one figure, which one child process found. A failure is reported. */
void gpuhal_bench_child_row(gpuhal_bench *bench, gpuhal_bench_row row, const char *const *words);

/* Returns which of two sides of bench->times is the slower one over all rounds. Taking the slower one of each round
 * would flatter a result that is compared with it, by the noise of two samples. */
size_t gpuhal_bench_slower(const gpuhal_bench *bench, size_t one, size_t other);

/* Returns whether a buffer pair of @bytes on each device fits, beside as much memory of the host; otherwise reports
 * that the row is left out. Memory of devices that work in the host's counts as the host's. @to and @from may be the
 * same. */
bool gpuhal_bench_fits(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, const char *test, uint64_t bytes);

/* If the device's memory is the host's, limits it to half of the free memory, since the requests of a file may be for
 * any amount. False with gpuhal_bench_failure(). */
bool gpuhal_bench_leave_memory(gpuhal_bench *bench, gpuhal_device *device);

/* Make a buffer in memory of the device itself, and one of any kind. False with gpuhal_bench_failure(). */
bool gpuhal_bench_buffer(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer);
bool gpuhal_bench_buffer_of(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes, gpuhal_buffer **out_buffer);

/* Finds the vendor's object behind a buffer. False with gpuhal_bench_failure(). */
bool gpuhal_bench_native_of(gpuhal_buffer *buffer, gpuhal_native *out_native);

/* Repeat the same blocking move @count times. False with gpuhal_bench_failure(). */
bool gpuhal_bench_copies(gpuhal_buffer *to, gpuhal_buffer *from, uint64_t bytes, uint64_t count);
bool gpuhal_bench_writes(gpuhal_buffer *to, const void *from, uint64_t bytes, uint64_t count);
bool gpuhal_bench_reads(void *to, gpuhal_buffer *from, uint64_t bytes, uint64_t count);
bool gpuhal_bench_memcpys(void *to, const void *from, uint64_t bytes, uint64_t count);

/* Allocates host memory at a page, and writes it before it is returned. NULL with gpuhal_bench_failure(); free() it. */
void *gpuhal_bench_host_memory(uint64_t bytes);

/* Removes a temporary folder of the run, with all its contents. */
void gpuhal_bench_remove_folder(const char *path);

/* Writes a pattern without repetition, so that bytes in the wrong place are seen. */
void gpuhal_bench_pattern(void *memory, uint64_t bytes, uint64_t seed);

/* Checks that the memory has the pattern. False with gpuhal_bench_failure(). */
bool gpuhal_bench_pattern_is(const void *memory, uint64_t bytes, uint64_t seed);

/* Writes the pattern to @from, copies it to @to and reads it back; @host has @bytes. It proves that the calls to be
 * measured move the bytes, and leaves no page of either side unwritten. */
bool gpuhal_bench_prove(gpuhal_buffer *to, gpuhal_buffer *from, void *host, uint64_t bytes);

#endif
