/** gpuhal/trace.h: recording of the work of queues and pools, with times.
 *
 *  There are two kinds of traces: of queues and of pools. Each has its own file format and its own ring of records,
 *  whose newest records overwrite the oldest. Either can be on without the other.
 *
 *  While a trace of queues is on, every piece of work of every queue of the gpuhal object is recorded. A piece of work
 *  is a write, a read, a copy, a fill, a copy of a rectangle, a launch of a kernel, a transfer of a file or a call of a
 *  function. Calls without a queue are not recorded. If the environment variable GPUHAL_TRACE names a file, the trace
 *  is on from gpuhal_open() on, and gpuhal_close() writes it there.
 *
 *  It is written as one JSON document in the trace event format of Chrome, which https://ui.perfetto.dev opens. Each
 *  queue that has done work is a lane (`tid`), named by its device and its number, as "opencl:1 queue 3"; the gpuhal
 *  object is a process. Each piece is a complete event ("ph": "X"). `name` is the kernel's name, or the kind. `cat` is
 *  the kind: `write`, `read`, `copy`, `fill`, `rect`, `launch`, `file` or `call`. `ts` and `dur` are in microseconds of
 *  the system's monotonic clock; pieces of one lane are at least a nanosecond apart. `args` has:
 *
 *  - `number`: of the piece, from 1 on, in the order of enqueueing over all queues of the object.
 *  - `enqueued`: when it was enqueued, as `ts`.
 *  - `clock`: `device`: the device took the times, around the work, and they are fitted to the host's clock: the work
 *    begins no earlier than the driver got it, and ends no later than its end was noticed. `host`: the device takes no
 *    times. Then the driver got the work at `ts`, or the piece before ended then, and the end is the time when it was
 *    noticed, which is late if no thread waits; or the queue's own thread did the work, and both times are exact.
 *    `none`: the work did not begin, or its end cannot be known.
 *  - `path`: `direct` (the device's own queue), `peer`, `shared`, `staged` as gpuhal_path, else `worker`: the queue's
 *    own thread.
 *  - `bytes`, and `usage`: the counter of gpuhal_usage that has them, `written`, `read`, `filled` or `copied`, or
 *    `pair` if gpuhal_pair_usage() has them. Only for transfers.
 *  - `from`, `to`: the devices of a copy between two devices. `groups`: three numbers, of a launch.
 *  - `status`: the gpuhal_status_name() of the error of a piece that failed or was dropped by a failure. All other
 *    pieces have succeeded, and the sums of their bytes by `usage` equal the counters of work with a queue.
 *
 *  Each gpuhal_event_record() is an instant ("ph": "i", "s": "t", `name` and `cat` `event`) in its queue's lane, at the
 *  time when the work before it had ended; its `args` have `number`, `enqueued`, `clock` and `status`. It is one of the
 *  pieces in the ring.
 *
 *  If gpuhal_queue_wait() made a queue wait for another queue, an arrow ("s" and "f") goes from the last piece before
 *  the event to the first piece after the wait; if a piece waits for more than four queues, only the first four are
 *  shown. The document begins with `schema` ("gpuhal.trace/1") and `library_version`; `otherData` has how many pieces
 *  are in the file (`pieces`), were overwritten (`dropped`) and have not ended (`unfinished`). Neither overwritten nor
 *  unfinished pieces are in the file, nor arrows from or to them.
 *
 *  Two timed events are recorded around each piece that a driver gets, so a trace costs as much as these. Only queues
 *  that are created while the trace is on, or with GPUHAL_QUEUE_TIMED, have times of the device.
 *
 *  While a trace of pools is on, every operation of every pool of the gpuhal object is recorded, the newest 65536 in 6
 *  MiB of host memory, which is committed as it is written. If the environment variable GPUHAL_POOL_TRACE names a file,
 *  the trace is on from gpuhal_open() on, and gpuhal_close() writes it there.
 *
 *  It is written as JSON Lines. The first line has the members `schema` ("gpuhal.pool-trace/1") and `library_version`.
 *  Each further line is an operation and has all of the members below; a member that does not apply is null. A line
 *  with the single member `lost` states how many records at this place were overwritten before they could be written.
 *
 *  - `time_ns`: of the system's monotonic clock; never less than in the line before.
 *  - `operation`: `create`, `destroy`, `allocate`, `release`, `use`, `grow`, `trim` or `limit`. Calls with invalid
 *    arguments are not operations.
 *  - `result`: `ok`, or, of `allocate` and `grow`, the gpuhal_status_name() of the error.
 *  - `device`: the device's id. `pool`: the pool's number in the gpuhal object, from 1 on.
 *  - `buffer`: the buffer's number in its pool, from 1 on, never reused.
 *  - `queue`: a number that no other living queue has; for `release`, of the queue whose later work can reuse the
 *    memory at once.
 *  - `bytes`: the requested bytes; for `grow` and `trim` the bytes of the segment, or, if it was refused, the bytes
 *    that were needed; for `limit` the new limit.
 *  - `segment`, `offset`: number of the segment in the pool, reused once it was trimmed; where the buffer begins in it.
 *    Pieces of virtual memory have the number of their range of addresses.
 *  - `used`, `reserved`, `free`: the pool's bytes after the operation, as `used`, `reserved` and `free_bytes` in
 *    gpuhal_pool_statistics.
 *  - `thread`: the system's number of the calling thread.
 *
 *  The pool of host memory that a store makes for its copies is recorded like any other.
 *
 *  `gpuhal-bench --replay` repeats the requests on one pool of `--device` without limits, and with `--baseline` also on
 *  the driver; `gpuhal-plot` draws traces of pools.
 */
#ifndef GPUHAL_TRACE_H
#define GPUHAL_TRACE_H

#include <gpuhal/instance.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of traces. Bits, so that one call can begin or end both. */
typedef uint32_t gpuhal_trace_kind;
enum { GPUHAL_TRACE_QUEUES = 1u << 0, GPUHAL_TRACE_POOLS = 1u << 1 };

/** The trace to begin. All members except `size` may be 0. */
typedef struct gpuhal_trace_desc {
    uint32_t size;   /**< sizeof(gpuhal_trace_desc), set by the caller. */
    uint32_t pieces; /**< Of queues: how many are kept, at most 16777216 (2^24); 0: 65536. Each takes 128 bytes. */
    gpuhal_trace_kind kinds; /**< GPUHAL_TRACE_ bits; 0: GPUHAL_TRACE_QUEUES. */
} gpuhal_trace_desc;

/** Begins a trace of each kind of @p desc, of all queues or pools of the object, including existing ones. Earlier
 *  records of that kind are dropped. NULL for @p desc: as if all members were 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_trace_start(gpuhal *gpu, const gpuhal_trace_desc *desc);

/** Ends the recording of @p kinds, GPUHAL_TRACE_ bits. The records can still be written, with the end of work that is
 *  still running.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_trace_stop(gpuhal *gpu, gpuhal_trace_kind kinds);

/** Writes the records of one kind until now to the file @p path; a trace that is on goes on, and no queue or pool waits
 *  for the file. Without a trace the file has no events, or only its first line. Once it is complete, the new file
 *  replaces an old one, and does not keep its mode and owner. Only an empty file and an older trace of this kind are
 *  replaced, so that a mistake in the name destroys no other file: INVALID_ARGUMENT for any other file, for pipes, and
 *  for the file that receives the program's own output, also as /dev/stdout. A symbolic link stays, and the file that
 *  it leads to is replaced (NOT_FOUND if it leads to none).
 *  @return GPUHAL_OK; INVALID_ARGUMENT, NOT_FOUND, NO_PERMISSION and FILE as gpuhal_write_file(), with the system's
 *  call in the detail, and then an existing file is unchanged; HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: for the file. */
GPUHAL_API gpuhal_status gpuhal_trace_write(gpuhal *gpu, gpuhal_trace_kind kind, const char *path);

#ifdef __cplusplus
}
#endif
#endif
