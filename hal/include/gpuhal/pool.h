/** gpuhal/pool.h: buffers as parts of larger allocations of a device, for programs that allocate often.
 *
 *  A pool belongs to one device and has one kind of memory. It takes segments from the driver, as
 *  gpuhal_buffer_create() would, or, with GPUHAL_CAPABILITY_VIRTUAL_MEMORY and in the cases that docs/memory.md lists,
 *  pieces of one range of addresses. Its buffers are parts of them. Every call that takes a buffer takes these, and
 *  gpuhal_buffer_release() gives them back. Only with `export_kinds` can they be mapped, exported and shared with other
 *  devices; otherwise that would give away their neighbours (NOT_SUPPORTED). gpuhal_buffer_host() returns an address
 *  only if the kind of memory has a coherent one. Only a mapping makes the host's writes to other memory visible, so
 *  use transfers there.
 *
 *  Releasing follows the order of queues, without waiting: a queue can at once reuse memory that was released after the
 *  queue's work, since its later work runs after that. Another queue, or a request without a queue, can reuse it once
 *  that work has ended. The pool knows of all work that was enqueued through the library: transfers, launches and
 *  gpuhal_queue_keep(). Call gpuhal_buffer_use() for other work. A buffer that was allocated for a queue counts as used
 *  there.
 *
 *  When memory is short a pool tries these steps, in this order, and searches again after each: memory that another
 *  queue released before an event that the queue waits for; memory whose work has ended; a further segment; giving
 *  unused segments back for a larger one; memory that other queues released, once the caller's queue was made to wait
 *  for an event of theirs; waiting for their work, the oldest first, as long as the caller allows; having stores move
 *  unpinned entries, if the free pieces suffice together; asking stores, first for entries that they have a copy of,
 *  then for entries that they have to copy first; callbacks (gpuhal_device_on_pressure()), the lowest priority first;
 *  moving once more, if these gave something. A store or callback that gave something is asked again, for twice as
 *  much, at most 64 times and for at most all memory of the device. A source that gives nothing, or as much as the
 *  device has, is not asked again for this allocation. A request above a limit of the pool or of the device is refused
 *  before any of this, and no memory is given up for it. If the limit leaves no room for a request beside pinned
 *  entries and beside buffers of pools that are no entries, and there is no callback, the request takes only the steps
 *  before the stores. gpuhal_buffer_create() takes those of the steps that give memory back to the driver, and
 *  waits for work of all queues. If there are stores or callbacks to ask, waiting for work before them takes at most
 *  half of the caller's time, and never more than a second; the call also waits for the time that is left after them.
 *  Calls into the driver, and a callback that ignores its time, may exceed it.
 *
 *  In the child of a fork every call on a pool of the parent returns FORKED, and releasing does nothing.
 */
#ifndef GPUHAL_POOL_H
#define GPUHAL_POOL_H

#include <gpuhal/buffer.h>
#include <gpuhal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Memory of one device that is given out as buffers. */
typedef struct gpuhal_pool gpuhal_pool;

/** Flags of pools. They turn off CUDA's reuse policies, which are all on by default, and turn on checking mode. */
enum {
    /** Memory that another queue released is not taken when that queue's work happens to have ended. */
    GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC = 1u,
    /** No queue is made to wait for the work of another queue in order to reuse memory that the other queue released.
     *  Without this flag a queue that was made to wait fails if that work fails (queue.h), and its reset waits for that
     *  work as well. */
    GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES = 2u,
    /** A queue that gpuhal_queue_wait() has made wait for an event does not reuse memory that another queue released
     *  before that event. Without this flag the same is true as for internal dependencies. */
    GPUHAL_POOL_NO_REUSE_FOLLOW_EVENT_DEPENDENCIES = 4u,
    /** Checking mode, also by the environment variable GPUHAL_POOL_CHECK: for finding errors, slow. New buffers are
     *  full of bytes 0xc5. Once all work enqueued before a buffer's release has ended, at the latest the next call that
     *  allocates from the pool, releases a buffer to it, or trims, maintains or destroys it checks the bytes beyond the
     *  end of that buffer, and fills its memory with 0xd9; until then no queue gets it, not even its own. A write
     *  within 256 bytes beyond the end is logged at level 1 (error), with the tag of the buffer, and so is releasing
     *  one of the last 4096 released buffers again. */
    GPUHAL_POOL_CHECKING = 0x100u
};

/** The pool to create. */
typedef struct gpuhal_pool_desc {
    uint32_t size;           /**< sizeof(gpuhal_pool_desc). */
    gpuhal_memory_kind kind; /**< 0: device memory. */
    /** The most that all segments may have together; UINT64_MAX: this pool has no limit. 0: limit_permille decides; if
     *  that is 0 as well, 900 thousandths for device memory, and no limit for other kinds. The limits of the device
     *  always count: gpuhal_device_limit_memory() and, for device memory, the bytes that the process's control groups
     *  leave of it (dmem.max of the kernel's version 2). */
    uint64_t limit_bytes;
    /** The same in thousandths of the device's memory, 1000 at most; 0: as limit_bytes says. The lower of the two
     *  limits counts. */
    uint32_t limit_permille;
    uint32_t flags;          /**< GPUHAL_POOL_ bits. */
    /** Bytes that the pool leaves to others: it takes no segment that would leave the device less free memory, if the
     *  driver returns GPUHAL_VALUE_MEMORY_FREE_BYTES. 0: none. Asking the driver costs as much as a sample, and is done
     *  only when a segment is taken. */
    uint64_t headroom_bytes;
    /** Unused segments above this many bytes go back to the driver when the last part of one is released; if work of
     *  queues still uses it, at the next such release or trim. 0: they are kept until gpuhal_pool_trim() or until
     *  memory is short. */
    uint64_t keep_bytes;
    /** Bytes of a segment; 0: 64 MiB. The first segments have an eighth, a quarter and a half of it. A buffer that
     *  needs more than half of it gets a segment for itself, or, with virtual memory, a piece with just the missing
     *  bytes. */
    uint64_t segment_bytes;
    /** As gpuhal_buffer_desc.alignment, for every buffer. Buffers begin in their segment at multiples of it, of 256,
     *  and of the alignments that the device needs for binding, copying and filling. */
    uint64_t alignment;
    const char *tag; /**< Of its buffers, as gpuhal_buffer_set_tag(); NULL: none. Copied. */
    /** As gpuhal_buffer_desc.export_kinds, for every buffer; 0: none. If it is not 0, each buffer has its own segment
     *  with exactly its bytes, since a handle cannot state where in an allocation a buffer begins, and segment_bytes
     *  does not count. A segment is kept for buffers of the same size. Handles of a buffer stay handles of its memory
     *  when another buffer gets that memory, so release a buffer only after its importers have finished; a buffer that
     *  gpuhal_buffer_share() made keeps the memory by itself. */
    uint32_t export_kinds;
} gpuhal_pool_desc;

/** Creates a pool, which has no memory yet. @p desc may be NULL. Opens the device if needed.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED for a kind that the device lacks, HOST_MEMORY, and the errors of
 *  gpuhal_device_open()
 *  Owner: caller, gpuhal_pool_destroy(). Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_create(gpuhal_device *device, const gpuhal_pool_desc *desc,
                                            gpuhal_pool **out_pool);

/** Destroys the pool: unused segments go back to the driver. Buffers that are out stay valid. Their segment goes back
 *  with its last buffer, once the work before their release has ended.
 *  Owner: @p pool is invalid afterwards. Threads: any, with no other call on @p pool in progress. Blocks: yes, for the
 *  driver. */
GPUHAL_API void gpuhal_pool_destroy(gpuhal_pool *pool);

/** Allocates a buffer. With @p queue, work of that queue may use the buffer at once, even though earlier work of the
 *  queue may still use its memory. Any other use has to come after that work, as with any buffer that two queues share.
 *  Without a queue, every use may begin at once. @p flags: GPUHAL_ALLOCATE_ bits (buffer.h). @p timeout_ns: how long
 *  the call may wait when memory is short; 0: not at all. Contents are undefined.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for 0 bytes); TOO_LARGE above the largest single allocation,
 *  rounded down to the alignment; OUT_OF_MEMORY, with asked, free and limit in the detail, and with
 *  gpuhal_last_memory_report(); HOST_MEMORY; DEVICE_LOST; FORKED
 *  Owner: caller, gpuhal_buffer_release(). Threads: any. Blocks: for the driver when the pool grows, and up to @p
 *  timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_pool_allocate(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                              uint64_t timeout_ns, gpuhal_buffer **out_buffer);

/** States that work in @p queue uses a buffer of a pool although the library does not see it, such as a kernel that was
 *  submitted during native access. After the buffer's release its memory is given to others once all work enqueued
 *  there until then has ended. One call for a buffer and a queue suffices.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for a buffer that is not of a pool (gpuhal_queue_keep() keeps those);
 *  HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_use(gpuhal_buffer *buffer, gpuhal_queue *queue);

/** Changes the limit, also one that came from limit_permille; 0 or UINT64_MAX: this pool has none. If the pool has
 *  more, unused segments go back to the driver; used segments stay, and the pool does not grow until it is below the
 *  limit.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_set_limit(gpuhal_pool *pool, uint64_t limit_bytes);

/** Gives unused segments back to the driver until at most @p keep_bytes of them are left. Memory released after work
 *  that has not ended is in use. @p out_freed may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_trim(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t *out_freed);

/** Trims all pools of a device, as gpuhal_pool_trim() does; @p keep_bytes is for all of them together.
 *  @return as gpuhal_pool_trim(), and HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_device_trim(gpuhal_device *device, uint64_t keep_bytes, uint64_t *out_freed);

/** Trims all pools of the gpuhal object, as gpuhal_pool_trim() does; @p keep_bytes is for all of them together.
 *  @return as gpuhal_device_trim()
 *  Owner: nothing. Threads: any. Blocks: yes, for the drivers. */
GPUHAL_API gpuhal_status gpuhal_trim(gpuhal *gpu, uint64_t keep_bytes, uint64_t *out_freed);

/** Is asked for memory of a device when an allocation there would fail: releases memory that it can spare, and returns
 *  how many bytes that were; 0: nothing. @p bytes: how many the allocation needs in one piece, and more if it is asked
 *  again because the freed memory was not contiguous; if some bytes are free already, less may suffice. It shall return
 *  within @p timeout_ns, the time that the allocation has left, and must not wait if that is 0. It may call the
 *  library, also to remove itself, but not gpuhal_close(); allocations made in it ask no store and no callback. It must
 *  not wait for a thread that allocates: that thread may be waiting for the callback. */
typedef uint64_t gpuhal_pressure_fn(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns);

/** Has @p fn called when memory of the device is short, on the thread that allocates, one call at a time for each
 *  device: callbacks with a lower @p priority first, and those of equal priority in the order of these calls. Several
 *  libraries in one process may each register one, also the same function with another @p user.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also if the device has the function with this user already; HOST_MEMORY; FORKED
 *  Owner: caller must keep @p user until gpuhal_device_off_pressure() or gpuhal_close(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_on_pressure(gpuhal_device *device, int32_t priority, gpuhal_pressure_fn *fn,
                                                   void *user);

/** Removes the callback: after this returns the function neither runs nor is called with this user, unless it makes
 *  this call itself.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_FOUND if the device does not have it; FORKED
 *  Owner: nothing. Threads: any. Blocks: until a running call has ended. */
GPUHAL_API gpuhal_status gpuhal_device_off_pressure(gpuhal_device *device, gpuhal_pressure_fn *fn, void *user);

/** Maintains pools from a loop: each @p every_n-th call for the gpuhal object, from any thread, does the work; the
 *  others only count. Memory of pools whose work has ended becomes free for every queue. Unused segments go back to the
 *  driver only if they are above a pool's keep_bytes, or if other programs leave the device less free memory than the
 *  pool's headroom_bytes: then as many as are missing. The driver is asked for the free memory.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for 0; HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: in each @p every_n-th call, for the drivers. */
GPUHAL_API gpuhal_status gpuhal_maintain(gpuhal *gpu, uint32_t every_n);

/** A quantity over time. */
typedef struct gpuhal_pool_amount {
    uint64_t current, peak;
    uint64_t total_in, total_out; /**< The sums of all additions and removals: current is their difference. */
} gpuhal_pool_amount;

/** The state of a pool. */
typedef struct gpuhal_pool_statistics {
    uint32_t size;                /**< sizeof(gpuhal_pool_statistics). */
    uint32_t segments;            /**< How many there are. */
    gpuhal_pool_amount reserved;  /**< Bytes of segments: the sum of used, free and ordered ones. */
    gpuhal_pool_amount used;      /**< Bytes of buffers that are out, rounded to the alignment. */
    gpuhal_pool_amount requested; /**< The same as requested, not rounded. */
    gpuhal_pool_amount buffers;   /**< Buffers that are out. */
    uint64_t limit_bytes;         /**< 0: none. */
    uint64_t free_bytes;          /**< Usable at once, with any queue. */
    /** In one piece; the largest piece may be up to 1/32 larger. 1 - largest_free_bytes / free_bytes is the
     *  fragmentation. */
    uint64_t largest_free_bytes;
    /** Released after work of queues. They count here even when that work has ended, until an allocation that needs
     *  them, a trim or gpuhal_maintain() notices; until then they are not among the free and the allocatable bytes. */
    uint64_t ordered_bytes;
    uint64_t unused_segment_bytes; /**< Of segments without any part in use: a trim would give them back. */
    uint64_t searches_failed;     /**< Allocations for which more than a search was needed. */
    uint64_t out_of_memory;       /**< Allocations that failed for lack of memory. */
    /** The largest buffer that may fit once the pool's unused segments are given back: under its limit and the
     *  device's, and in the device's memory. The driver is not asked how much of that other programs use. */
    uint64_t allocatable_bytes;
    /** The peak of `reserved` divided by the peak of `used`, in thousandths: 1000 is no waste. 0: nothing was used. */
    uint64_t peak_permille;
} gpuhal_pool_statistics;

/** Reads the state, without a lock: no allocation waits for it. At most `size` bytes are written. The figures are of
 *  one moment, unless other threads change the pool all the time: then each is right by itself.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_pool_get_statistics(gpuhal_pool *pool, gpuhal_pool_statistics *out_statistics);

/** Memory of a device, as one gpuhal object has it. */
typedef struct gpuhal_memory_statistics {
    uint32_t size;                 /**< sizeof(gpuhal_memory_statistics). */
    uint32_t pools;                /**< How many there are, including destroyed ones whose buffers are out. */
    gpuhal_pool_amount allocated;  /**< Bytes that the driver gave: for buffers, and for segments of pools. */
    uint64_t limit_bytes;          /**< Of gpuhal_device_limit_memory(); 0: none. */
    uint64_t reserved_bytes;       /**< This and the next six are sums over gpuhal_pool_statistics. */
    uint64_t used_bytes;
    uint64_t requested_bytes;
    uint64_t buffers;
    uint64_t free_bytes;
    uint64_t ordered_bytes;
    uint64_t unused_segment_bytes; /**< gpuhal_device_trim() would give them back. */
    uint64_t largest_free_bytes;   /**< In one piece of any pool. */
    uint64_t allocatable_bytes;    /**< As of a pool, for gpuhal_buffer_create(), once all unused segments are back. */
} gpuhal_memory_statistics;

/** Reads how a device's memory is used. At most `size` bytes are written. No allocation of a pool waits for it.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_get_memory_statistics(gpuhal_device *device,
                                                             gpuhal_memory_statistics *out_statistics);

#ifdef __cplusplus
}
#endif
#endif
