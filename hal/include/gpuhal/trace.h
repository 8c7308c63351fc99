/** gpuhal/trace.h: records the work of queues and pools, with times.
 *
 *  There are two kinds of traces: traces of queues and traces of pools. Each kind has a separate file format and a
 *  separate ring of records. In a full ring, new records overwrite the oldest. Each kind can be on without the other.
 *
 *  While a trace of queues is on, every piece of work of every queue of the gpuhal object is recorded. A piece of work
 *  is a write, a read, a copy, a fill, a copy of a rectangle, a launch of a kernel, a run of a recording, a transfer of
 *  a file or a call of a function. Calls without a queue are not recorded. If the environment variable GPUHAL_TRACE
 *  names a file, the trace starts in gpuhal_open(), and gpuhal_close() writes it to that file.
 *
 *  The trace is one JSON document in Chrome's trace event format, which https://ui.perfetto.dev opens. Each queue that
 *  has done work is a lane (`tid`), named after its device and its number, such as "opencl:1 queue 3"; the gpuhal
 *  object is a process. Each piece is a complete event ("ph": "X"). `name` is the name of the kernel or recording,
 *  or the kind. `cat` is the kind: `write`, `read`, `copy`, `fill`, `rect`, `launch`, `recording`, `file` or `call`.
 *  `ts` and `dur` are in microseconds of the system's monotonic clock; pieces of one lane are at least a nanosecond
 *  apart. `args` has:
 *
 *  - `number`: the piece's number, from 1 up, in the order of enqueueing in all queues of the gpuhal object.
 *  - `enqueued`: when the piece was enqueued, like `ts`.
 *  - `clock`: `device` if the device took time stamps around the work. They are fitted to the host's clock, so that the
 *    work begins no earlier than its submission to the driver, and ends no later than its end was noticed. `host` if
 *    the device took no time stamps. If the queue's own thread did the work, both times are exact. Otherwise `ts` is
 *    the time of submission to the driver or of the end of the preceding piece, and the end is the time when it was
 *    noticed; this time is late if no thread waits. `none` if the work did not begin, or its end cannot be known.
 *  - `path`: `direct` (the device's own queue), `peer`, `shared`, `staged` as in gpuhal_path, otherwise `worker` (the
 *    queue's own thread).
 *  - `bytes`, and `usage`: the counter of gpuhal_usage that includes them, `written`, `read`, `filled` or `copied`, or
 *    `pair` if gpuhal_pair_usage() includes them. Only for transfers.
 *  - `from`, `to`: the devices of a copy between two devices. `groups`: the three group counts of a launch.
 *  - `status`: the gpuhal_status_name() of the error, for a piece that failed or was dropped by a failure. All other
 *    pieces have succeeded, and the sums of their bytes for each `usage` equal the counters of work with a queue,
 *    less the copies and fills of recordings.
 *
 *  Each gpuhal_event_record() is an instant ("ph": "i", "s": "t", `name` and `cat` `event`) in its queue's lane, at the
 *  time when the work before it had ended; its `args` have `number`, `enqueued`, `clock` and `status`. It counts as a
 *  piece in the ring.
 *
 *  If gpuhal_queue_wait() made a queue wait for another queue, an arrow ("s" and "f") leads from the last piece before
 *  the event to the first piece after the wait; if a piece waits for more than four queues, only the first four are
 *  shown. The document begins with `schema` ("gpuhal.trace/1") and `library_version`; `otherData` has the number of
 *  pieces that are in the file (`pieces`), were overwritten (`dropped`) and have not ended (`unfinished`). Overwritten
 *  and unfinished pieces, and arrows from or to them, are not in the file.
 *
 *  Two timed events are recorded around each piece that is submitted to a driver; they are the cost of a trace. Only
 *  queues that are created while the trace is on, or with GPUHAL_QUEUE_TIMED, have device times.
 *
 *  While a trace of pools is on, every operation of every pool of the gpuhal object is recorded. The newest 65536
 *  operations are kept in 6 MiB of host memory, whose pages are committed when they are first written. If the
 *  environment variable GPUHAL_POOL_TRACE names a file, the trace starts in gpuhal_open(), and gpuhal_close() writes it
 *  to that file.
 *
 *  The trace is written as JSON Lines. The first line has the members `schema` ("gpuhal.pool-trace/1") and
 *  `library_version`. Each further line is an operation and has all of the members below; a member that does not apply
 *  is null. A line with the single member `lost` states how many records were overwritten at this position before they
 *  could be written.
 *
 *  - `time_ns`: time of the system's monotonic clock; never less than in the preceding line.
 *  - `operation`: `create`, `destroy`, `allocate`, `release`, `use`, `grow`, `trim` or `limit`. Calls with invalid
 *    arguments are not operations.
 *  - `result`: `ok`, or, for `allocate` and `grow`, the gpuhal_status_name() of the error.
 *  - `device`: the device's id. `pool`: the pool's number in the gpuhal object, from 1 up.
 *  - `buffer`: the buffer's number in its pool, from 1 up, never reused.
 *  - `queue`: a number that no other existing queue has; for `release`, the number of the queue whose later work can
 *    reuse the memory immediately.
 *  - `bytes`: the requested bytes; for `grow` and `trim` the bytes of the segment, or, if it was refused, the bytes
 *    that were needed; for `limit` the new limit.
 *  - `segment`, `offset`: the segment's number in the pool, reused once the segment was trimmed, and the buffer's
 *    offset in the segment. With virtual memory `segment` is the number of the address range.
 *  - `used`, `reserved`, `free`: the pool's bytes after the operation, like `used`, `reserved` and `free_bytes` in
 *    gpuhal_pool_statistics.
 *  - `thread`: the system's id of the calling thread.
 *
 *  If a store creates a pool of host memory for its copies, this pool is also recorded.
 *
 *  `gpuhal-bench --replay` repeats the requests on one pool of `--device` without limits, and with `--baseline` also on
 *  the driver; `gpuhal-plot` draws traces of pools.
 *
 *      gpuhal_trace_desc desc = {.size = sizeof desc, .kinds = GPUHAL_TRACE_QUEUES};
 *      gpuhal_status status = gpuhal_trace_start(gpu, &desc);
 *      status = status ? status : gpuhal_write(queue, buffer, 0, host, bytes);
 *      status = status ? status : gpuhal_trace_write(gpu, GPUHAL_TRACE_QUEUES, "work.json"); // for ui.perfetto.dev
 */
#ifndef GPUHAL_TRACE_H
#define GPUHAL_TRACE_H

#include <gpuhal/instance.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of traces. They are bits, so that one call can begin or end both. */
typedef uint32_t gpuhal_trace_kind;
enum { GPUHAL_TRACE_QUEUES = 1u << 0, GPUHAL_TRACE_POOLS = 1u << 1 };

/** The trace to begin. All members except `size` may be 0. */
typedef struct gpuhal_trace_desc {
    uint32_t size;   /**< sizeof(gpuhal_trace_desc), set by the caller. */
    /** For queues: how many pieces are kept, at most 16777216 (2^24); 0 means 65536. Each piece takes 128 bytes. */
    uint32_t pieces;
    gpuhal_trace_kind kinds; /**< GPUHAL_TRACE_ bits; 0 means GPUHAL_TRACE_QUEUES. */
} gpuhal_trace_desc;

/** Starts a trace of each kind in @p desc, for all queues or pools of the gpuhal object, including existing ones.
 *  Earlier records of the same kind are dropped. A NULL @p desc counts as a description whose members are all 0.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, HOST_MEMORY, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_trace_start(gpuhal *gpu, const gpuhal_trace_desc *desc);

/** Ends the recording of @p kinds, GPUHAL_TRACE_ bits. The records can still be written to a file later. The end of
 *  work that is still running is still recorded.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_trace_stop(gpuhal *gpu, gpuhal_trace_kind kinds);

/** Writes the records of one kind so far to the file @p path. A running trace continues, and no queue or pool waits for
 *  the file. Without a trace the file has no events, or only its first line. Once the new file is complete, it replaces
 *  an existing file, whose mode and owner are not kept. Only an empty file or an older trace of this kind is replaced,
 *  so that a mistyped name destroys no other file: INVALID_ARGUMENT for any other file, for pipes, and for the file
 *  that receives the program's own output, even as /dev/stdout. A symbolic link is kept, and its target is replaced
 *  (NOT_FOUND if there is no target).
 *  @return GPUHAL_OK; INVALID_ARGUMENT, NOT_FOUND, NO_PERMISSION and FILE as gpuhal_write_file(), with the system call
 *  in the detail; an existing file is then unchanged; HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: for the file. */
GPUHAL_API gpuhal_status gpuhal_trace_write(gpuhal *gpu, gpuhal_trace_kind kind, const char *path);

#ifdef __cplusplus
}
#endif
#endif
