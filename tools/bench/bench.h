/* bench.h: common code of all groups of rows: the opened library, the devices to measure, rows, buffers and blocking
 * transfers. */
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
    gpuhal_device *only; /* NULL for all devices. */
    gpuhal_bench_output *output;
    gpuhal_bench_times times; /* The current row's times. */
} gpuhal_bench;

/* The groups of rows for one device. Each group reports its own failures and continues with the next row. */
void gpuhal_bench_rows_call(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_lease(gpuhal_bench *bench, gpuhal_device *device);
/* The folder of this run's ledger. The library creates it, and the bench removes it at the end. */
const char *gpuhal_bench_lease_folder(void);
void gpuhal_bench_lease_remove(void);
void gpuhal_bench_rows_queue(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_batch(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_launch(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_recording(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_allocate(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_threads(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_open(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_sample(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_share(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_file(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_store(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_hit(gpuhal_bench *bench, gpuhal_device *device);
void gpuhal_bench_rows_copy(gpuhal_bench *bench, gpuhal_device *device);

/* Groups for all devices together. */
void gpuhal_bench_rows_open_all(gpuhal_bench *bench);
void gpuhal_bench_rows_pairs(gpuhal_bench *bench);

/* Groups without a device. */
void gpuhal_bench_rows_blocks(gpuhal_bench *bench);
void gpuhal_bench_rows_place(gpuhal_bench *bench);

/* The group that replays recorded requests. */
void gpuhal_bench_rows_replay(gpuhal_bench *bench, gpuhal_device *device, const gpuhal_bench_replay *replay);

/* Opens the library with one backend (and the CPU, which always exists). The user's environment only determines where
 * plugins and vendor libraries are found. The registry is neither read nor written. If @isolation is
 * GPUHAL_ISOLATION_NEVER, probes the plugin in this process. */
bool gpuhal_bench_open_alone(const char *backend, uint32_t isolation, gpuhal **out_gpu);

bool gpuhal_bench_is_cpu(const gpuhal_device *device);
bool gpuhal_bench_is_software(const gpuhal_device *device);

/* Returns the first CPU device, or NULL. */
gpuhal_device *gpuhal_bench_cpu(const gpuhal *gpu);

/* Returns whether the device is a CUDA or HIP device. With CUDA and HIP, memory of the kinds UPLOAD and READBACK is
 * page-locked, and the host copies it without the device. */
bool gpuhal_bench_is_streamed(const gpuhal_device *device);

/* Returns the kind of memory for measuring the cost of a call. The plugins of the CPU, CUDA and HIP copy this memory
 * with the CPU before the call returns. */
gpuhal_memory_kind gpuhal_bench_call_kind(const gpuhal_device *device);

/* is_inline() returns whether the device is PoCL's `basic`, which works inside the call. is_threaded() returns whether
 * it is another PoCL device, which wakes a thread for every command, including allocations. */
bool gpuhal_bench_is_inline(const gpuhal_device *device);
bool gpuhal_bench_is_threaded(const gpuhal_device *device);

/* Return the plan for copies, and the plan for rows with short samples, which can have many more rounds. If the row is
 * not @judged, a less certain result is enough. */
gpuhal_bench_plan gpuhal_bench_plan_copies(const gpuhal_bench *bench, bool judged);
gpuhal_bench_plan gpuhal_bench_plan_calls(const gpuhal_bench *bench);

/* Returns an empty row for the device, without a budget. The unit is ns, except for rows about copies. */
gpuhal_bench_row gpuhal_bench_row_of(const gpuhal_device *device, const char *test, gpuhal_bench_kind kind);

/* Adds the row with gpuhal's time (@side), the baseline's time and the result, all from bench->times. If @baseline
 * equals @side, there is no baseline and no ratio. */
void gpuhal_bench_report(gpuhal_bench *bench, gpuhal_bench_row row, size_t side, size_t baseline);

/* Measures the sides and adds a row with the results of the first two sides. With only one side there is no baseline.
 * Returns false and sets gpuhal_bench_failure() on failure. */
bool gpuhal_bench_measure_row(gpuhal_bench *bench, gpuhal_bench_row row, const gpuhal_bench_side *sides,
                              size_t side_count, const gpuhal_bench_plan *plan);

/* Reports that the current row has no result, with gpuhal_bench_failure() as the reason. The run does not fail if the
 * device did not have enough memory for a buffer. */
void gpuhal_bench_not_measured(gpuhal_bench *bench);

/* Adds a row whose samples are separate processes. Processes with gpuhal's @words (child.h) alternate with processes
 * with the words in @baseline, which may be NULL. Reports a failure of the processes and returns false. */
bool gpuhal_bench_children_row(gpuhal_bench *bench, gpuhal_bench_row row, const char *const *words,
                               const char *const *baseline);

/* Adds a row with one number from a child process. A failure is reported. */
void gpuhal_bench_child_row(gpuhal_bench *bench, gpuhal_bench_row row, const char *const *words);

/* Returns the side of bench->times that is slower over all rounds. Choosing the slower side in each round would make
 * the compared result look better, because of the noise of two samples. */
size_t gpuhal_bench_slower(const gpuhal_bench *bench, size_t one, size_t other);

/* Returns whether there is enough memory for a buffer of @bytes on each device, and for @bytes of host memory;
 * otherwise reports that the row is skipped. The memory of devices that use host memory counts as host memory. @to and
 * @from may be the same device, which then needs memory for two buffers. */
bool gpuhal_bench_fits(gpuhal_bench *bench, gpuhal_device *to, gpuhal_device *from, const char *test, uint64_t bytes);

/* If the device uses host memory, limits the device to half of the free memory, since a file may contain requests of
 * any size. Returns false and sets gpuhal_bench_failure() on failure. */
bool gpuhal_bench_leave_memory(gpuhal_bench *bench, gpuhal_device *device);

/* Create a buffer in the device's own memory, or of any kind. Return false and set gpuhal_bench_failure() on
 * failure. */
bool gpuhal_bench_buffer(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer);
bool gpuhal_bench_buffer_of(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes, gpuhal_buffer **out_buffer);

/* Finds the vendor's object of a buffer. Returns false and sets gpuhal_bench_failure() on failure. */
bool gpuhal_bench_native_of(gpuhal_buffer *buffer, gpuhal_native *out_native);

/* Repeat a blocking transfer @count times. Return false and set gpuhal_bench_failure() on failure. */
bool gpuhal_bench_copies(gpuhal_buffer *to, gpuhal_buffer *from, uint64_t bytes, uint64_t count);
bool gpuhal_bench_writes(gpuhal_buffer *to, const void *from, uint64_t bytes, uint64_t count);
bool gpuhal_bench_reads(void *to, gpuhal_buffer *from, uint64_t bytes, uint64_t count);
bool gpuhal_bench_memcpys(void *to, const void *from, uint64_t bytes, uint64_t count);

/* Allocates page-aligned host memory and writes all of it. Returns NULL and sets gpuhal_bench_failure() on failure. The
 * caller frees it with free(). */
void *gpuhal_bench_host_memory(uint64_t bytes);

void gpuhal_bench_remove_folder(const char *path);

/* Writes a pattern without repetition, so that misplaced bytes are detected. */
void gpuhal_bench_pattern(void *memory, uint64_t bytes, uint64_t seed);

/* Checks that the memory contains the pattern; otherwise returns false and sets gpuhal_bench_failure(). */
bool gpuhal_bench_pattern_is(const void *memory, uint64_t bytes, uint64_t seed);

/* Writes the pattern to @from, copies it to @to and reads it back; @host has @bytes. This proves that the measured
 * calls move the bytes, and touches every page of both buffers. */
bool gpuhal_bench_prove(gpuhal_buffer *to, gpuhal_buffer *from, void *host, uint64_t bytes);

#endif
