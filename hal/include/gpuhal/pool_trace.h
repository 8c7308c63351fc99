/** gpuhal/pool_trace.h: what pools did, recorded.
 *
 *  While a trace is on, every operation of every pool of the gpuhal object is recorded in a ring of 65536 records, 6
 *  MiB of host memory, taken as they are written; the newest ones overwrite the oldest. The environment variable
 *  GPUHAL_POOL_TRACE names a file: then the trace is on from gpuhal_open() on, and gpuhal_close() writes it there.
 *
 *  A trace is written as JSON Lines. The first line has the members `schema` ("gpuhal.pool-trace/1") and
 *  `library_version`. Each further line is an operation and has all of the members below, null where one does not
 *  apply; a line with the member `lost` alone stands where so many records were overwritten before they were written.
 *
 *  - `time_ns`: of the system's monotonic clock; never less than in the line before.
 *  - `operation`: `create`, `destroy`, `allocate`, `release`, `use`, `grow`, `trim` or `limit`. Calls with invalid
 *    arguments are none.
 *  - `result`: `ok`, or, of `allocate` and `grow`, the gpuhal_status_name() of the error.
 *  - `device`: its id. `pool`: its number in the gpuhal object, from 1 on.
 *  - `buffer`: its number in its pool, from 1 on, never given again.
 *  - `queue`: a number that no other living queue has. Of `release` the queue whose later work may have the memory at
 *    once.
 *  - `bytes`: as asked for; of `grow` and `trim` those of the segment, or what was needed of one that was refused; of
 *    `limit` the new limit.
 *  - `segment`, `offset`: number of the segment in the pool, given again once it was trimmed; where in it the buffer
 *    begins. Pieces of virtual memory have the number of their range of addresses.
 *  - `used`, `reserved`, `free`: the pool's bytes after the operation, as `used`, `reserved` and `free_bytes` in
 *    gpuhal_pool_statistics.
 *  - `thread`: the system's number of the calling thread.
 *
 *  The pool of host memory that a store makes for its copies is recorded like any other.
 *
 *  `gpuhal-bench --replay` makes the same requests of one pool without limits on `--device`, and with `--baseline` of
 *  the driver; `gpuhal-plot` draws them.
 */
#ifndef GPUHAL_POOL_TRACE_H
#define GPUHAL_POOL_TRACE_H

#include <gpuhal/instance.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Begins a trace of all pools of the object, also of those that it has already. What was recorded before is dropped.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_pool_trace_start(gpuhal *gpu);

/** Ends the recording. What was recorded can still be written.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_pool_trace_stop(gpuhal *gpu);

/** Writes what was recorded until now to the file @p path; a trace that is on goes on, and no operation of a pool waits
 *  for the file. Without a trace the file has its first line alone. An empty file and an older trace of pools are
 *  replaced, and other files refused, as by gpuhal_trace_write().
 *  @return GPUHAL_OK; INVALID_ARGUMENT, NOT_FOUND, NO_PERMISSION and FILE as gpuhal_write_file(), with the system's
 *  call in the detail, and then a file that was there is as it was; HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: for the file. */
GPUHAL_API gpuhal_status gpuhal_pool_trace_write(gpuhal *gpu, const char *path);

#ifdef __cplusplus
}
#endif
#endif
