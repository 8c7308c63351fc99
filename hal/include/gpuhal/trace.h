/** gpuhal/trace.h: what queues and pools did and when, recorded.
 *
 *  There are two kinds of traces, each with its own ring, in which the newest records overwrite the oldest, and its own
 *  format of files: of queues and of pools. Either can be on without the other.
 *
 *  While a trace of queues is on, every piece of work of every queue of the gpuhal object is recorded. A piece of work
 *  is a write, a read, a copy, a fill, a copy of a rectangle, a launch of a kernel, a transfer of a file or a call of a
 *  function. Calls without a queue are not recorded. The environment variable GPUHAL_TRACE names a file: then the trace
 *  is on from gpuhal_open() on, and gpuhal_close() writes it there.
 *
 *  It is written as one JSON document in the trace event format of Chrome, which https://ui.perfetto.dev opens.
 *  Each queue that has done work is a lane (`tid`), named by its device and its number, as "opencl:1 queue 3"; the
 *  gpuhal object is a process. Each piece is a complete event ("ph": "X"). `name` is the kernel's, or the kind, which
 *  `cat` has: `write`, `read`, `copy`, `fill`, `rect`, `launch`, `file` or `call`. `ts` and `dur` are in microseconds
 *  of the system's monotonic clock; in one lane they are a nanosecond apart or more. `args` has:
 *
 *  - `number`: of the piece, from 1 on, in the order in which all queues of the object were given work.
 *  - `enqueued`: when it was enqueued, as `ts`.
 *  - `clock`: `device`: the times were taken by the device, around the work, and fitted to the host's clock: the work
 *    begins no earlier than it was given to the driver, and ends no later than that was noticed. `host`: the device
 *    takes no times, so the work was given to the driver at `ts`, or the piece before ended then, and its end was
 *    noticed at the end, which is late where no thread waits; or the queue's own thread did the work, and both are
 *    exact. `none`: it did not begin, or its end cannot be known.
 *  - `path`: `direct` (the device's own queue), `peer`, `shared`, `staged` as gpuhal_path, else `worker`: the queue's
 *    own thread.
 *  - `bytes`, and `usage`: the counter of gpuhal_usage that has them, `written`, `read`, `filled` or `copied`; `pair`
 *    where gpuhal_pair_usage() has them. Of transfers alone.
 *  - `from`, `to`: the devices of a copy between two. `groups`: three numbers, of a launch.
 *  - `status`: the gpuhal_status_name() of its error, of a piece that failed or was dropped by a failure. All others
 *    have ended well, and the sums of their bytes by `usage` are what the counters have of work with a queue.
 *
 *  Each gpuhal_event_record() is an instant ("ph": "i", "s": "t", `name` and `cat` `event`) in its queue's lane, at the
 *  time when the work before it had ended; its `args` have `number`, `enqueued`, `clock` and `status`. It is one of the
 *  pieces in the ring.
 *
 *  Where gpuhal_queue_wait() made a queue wait for another one, an arrow ("s" and "f") goes from the last piece before
 *  the event to the first piece behind the wait; of a piece that waits for more than four queues the first four are
 *  shown. The document begins with `schema` ("gpuhal.trace/1") and `library_version`; `otherData` has how many pieces
 *  are in the file (`pieces`), were overwritten (`dropped`) and have not ended (`unfinished`), which are not in the
 *  file, nor are arrows at them.
 *
 *  Around each piece that a driver gets, two timed events are recorded, so a trace costs as much as these. Only queues
 *  that are created while the trace is on, or with GPUHAL_QUEUE_TIMED, have times of the device.
 *
 *  While a trace of pools is on, every operation of every pool of the gpuhal object is recorded, the newest 65536 in 6
 *  MiB of host memory, taken as they are written. The environment variable GPUHAL_POOL_TRACE names a file: then the
 *  trace is on from gpuhal_open() on, and gpuhal_close() writes it there.
 *
 *  It is written as JSON Lines. The first line has the members `schema` ("gpuhal.pool-trace/1") and
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
#ifndef GPUHAL_TRACE_H
#define GPUHAL_TRACE_H

#include <gpuhal/instance.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a trace is of. Bits, so that one call can begin or end both. */
typedef uint32_t gpuhal_trace_kind;
enum { GPUHAL_TRACE_QUEUES = 1u << 0, GPUHAL_TRACE_POOLS = 1u << 1 };

/** What is recorded. All members but `size` may be 0. */
typedef struct gpuhal_trace_desc {
    uint32_t size;   /**< sizeof(gpuhal_trace_desc), set by the caller. */
    uint32_t pieces; /**< Of queues: how many are kept, at most 16777216 (2^24); 0: 65536. Each takes 128 bytes. */
    gpuhal_trace_kind kinds; /**< GPUHAL_TRACE_ bits; 0: GPUHAL_TRACE_QUEUES. */
} gpuhal_trace_desc;

/** Begins a trace of each kind of @p desc, of all queues or pools of the object, also of those that it has already.
 *  What was recorded of that kind before is dropped. NULL for @p desc: as if all members were 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_trace_start(gpuhal *gpu, const gpuhal_trace_desc *desc);

/** Ends the recording of @p kinds, GPUHAL_TRACE_ bits. What was recorded can still be written, with the end of work
 *  that goes on.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_trace_stop(gpuhal *gpu, gpuhal_trace_kind kinds);

/** Writes what was recorded of one kind until now to the file @p path; a trace that is on goes on, and no queue or pool
 *  waits for the file. Without a trace the file has no events, or its first line alone. Once all of it is there, the
 *  new file takes the place of an old one, whose mode and owner it does not keep. Only an empty file and an older trace
 *  of this kind are replaced, so a mistake in the name costs no other file: INVALID_ARGUMENT for any other, for pipes,
 *  and for the file to which the program's own output goes, also as /dev/stdout. A symbolic link stays, and the file
 *  that it leads to is replaced (NOT_FOUND if it leads to none).
 *  @return GPUHAL_OK; INVALID_ARGUMENT, NOT_FOUND, NO_PERMISSION and FILE as gpuhal_write_file(), with the system's
 *  call in the detail, and then a file that was there is as it was; HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: for the file. */
GPUHAL_API gpuhal_status gpuhal_trace_write(gpuhal *gpu, gpuhal_trace_kind kind, const char *path);

#ifdef __cplusplus
}
#endif
#endif
