/** gpuhal/pool.h: buffers out of larger allocations of a device, for programs that allocate often.
 *
 *  A pool is of one device and one kind of memory. It takes segments from the driver, as gpuhal_buffer_create() would,
 *  or with GPUHAL_CAPABILITY_VIRTUAL_MEMORY as pieces of one range of addresses where docs/memory.md says so, and gives
 *  buffers that are parts of them. Every call that takes a buffer takes these, and gpuhal_buffer_release()
 *  gives them back. Only with `export_kinds` can they be mapped, exported and shared with other devices; else that
 *  would give away their neighbours (NOT_SUPPORTED). gpuhal_buffer_host() has an address where the kind of memory has
 *  one that is coherent: what the host writes to other memory is only made visible by a mapping, so there transfers are
 *  the way.
 *
 *  Memory is given back in the order of queues, without waiting: what was released behind work of a queue is given to
 *  that queue again at once, since its later work comes after; for another queue, or without one, once that work has
 *  ended. The pool knows of all work that was enqueued through the library, transfers and
 *  gpuhal_queue_keep(); for other work there is gpuhal_buffer_use(). A buffer that was allocated for a queue
 *  counts as used there.
 *
 *  When memory is short a pool tries, in this order, and searches again after each: memory that another queue released
 *  before an event for which the queue waits; memory whose work has ended; a
 *  further segment; giving unused segments back for a larger one; memory that waits for other queues, behind an event;
 *  waiting for them, the oldest first, as long as the caller allows; stores, which move unpinned entries where what is
 *  free in pieces suffices together; stores, first for what they have a copy of, then for what they have to copy first;
 *  callbacks (gpuhal_device_on_pressure()), the lowest priority first; moving once more, where these gave something.
 *  A store or callback that gave something is asked again, for twice as much, at most 64 times and for at most all
 *  memory of the device. One that gives nothing, or as much as the device has, is asked no more for this allocation.
 *  What is more than a limit of the pool or of the device is refused before any of this: nothing is given up for it.
 *  Nor is anything for what the limit leaves no room for beside pinned entries and beside buffers of pools that are no
 *  entries, unless there is a callback.
 *  gpuhal_buffer_create() does the same as far as it gives memory back to the driver, and waits
 *  for work of all queues. If there are stores or callbacks to ask, waiting for work before them takes at most half of
 *  the caller's time, and never more than a second; what is left of the time after them is waited, too. Calls into the
 *  driver are not bounded by that time, nor is a callback that ignores it.
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

/** Memory of one device, out of which buffers are given. */
typedef struct gpuhal_pool gpuhal_pool;

/** Flags of pools: which of CUDA's reuse policies are off, all of which are on by default; and checking mode. */
enum {
    /** Memory that another queue released is not taken when that queue's work happens to have ended. */
    GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC = 1u,
    /** No queue is made to wait for the work of another one so that it can have memory that this one released. Where it
     *  is, it fails if that work does (queue.h), and a reset of it waits for that work as well. */
    GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES = 2u,
    /** Memory that another queue released before an event is not taken by a queue that gpuhal_queue_wait() has made
     *  wait for that event. Where it is, the same is true as for internal dependencies. */
    GPUHAL_POOL_NO_REUSE_FOLLOW_EVENT_DEPENDENCIES = 4u,
    /** Checking mode, also by the environment variable GPUHAL_POOL_CHECK: for finding errors, slow. New buffers are
     *  full of bytes 0xc5. Once all work behind which a buffer was released has ended, at the next call on the pool,
     *  what is behind its end is looked at, and its memory is filled with 0xd9; until then no queue gets it, its own
     *  neither. A write within 256 bytes beyond the end is stated at level 1 (error) of the log, with the tag of the
     *  buffer, and so is the release of one that is released already, of the last 4096. */
    GPUHAL_POOL_CHECKING = 0x100u
};

/** What to create. */
typedef struct gpuhal_pool_desc {
    uint32_t size;           /**< sizeof(gpuhal_pool_desc). */
    gpuhal_memory_kind kind; /**< 0: device memory. */
    /** Most of all segments together; UINT64_MAX: no limit of its own. 0: what limit_permille says; where that is
     *  0 as well, 900 thousandths for device memory, and no limit for other kinds. The limits of the device always
     *  count: gpuhal_device_limit_memory() and, for device memory, what the process's control groups leave of it
     *  (dmem.max of the kernel's version 2). */
    uint64_t limit_bytes;
    /** Most of all segments together, in thousandths of the device's memory, 1000 at most; 0: as limit_bytes says. The
     *  lower one counts. */
    uint32_t limit_permille;
    uint32_t flags;          /**< GPUHAL_POOL_ bits. */
    /** Bytes that the pool leaves to others: it takes no segment after which the device would have less free memory,
     *  where the driver returns GPUHAL_VALUE_MEMORY_FREE_BYTES. 0: none. Asking costs as much as a sample, and is done
     *  only when a segment is taken. */
    uint64_t headroom_bytes;
    /** Unused segments above so many bytes go back to the driver when the last part of one is released; where work of
     *  queues still uses it, at the next such release or trim. 0: they are kept until gpuhal_pool_trim() or until
     *  memory is short. */
    uint64_t keep_bytes;
    /** Bytes of a segment; 0: 64 MiB. The first ones have an eighth, a quarter and a half of it. What needs more than
     *  half of it gets a segment of its own, or a piece of the bytes that are missing. */
    uint64_t segment_bytes;
    /** As gpuhal_buffer_desc.alignment, for every buffer. They begin at multiples of it in their segment, and of 256,
     *  and of what the device needs for binding, copying and filling. */
    uint64_t alignment;
    const char *tag; /**< Of its buffers, as gpuhal_buffer_set_tag(); NULL: none. Copied. */
    /** As gpuhal_buffer_desc.export_kinds, for every buffer; 0: none. Not 0, each buffer has a segment of its own with
     *  exactly its bytes, since a handle cannot state where in an allocation a buffer begins; segment_bytes does not
     *  count then. A segment is kept for buffers of the same size. Handles of a buffer stay handles of its memory when
     *  that is given again, so release a buffer after those who imported it have done; a buffer that
     *  gpuhal_buffer_share() made keeps the memory by itself. */
    uint32_t export_kinds;
} gpuhal_pool_desc;

/** Creates a pool, which has no memory yet. @p desc may be NULL. Opens the device if needed.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED for a kind that the device lacks, HOST_MEMORY, and what
 *  gpuhal_device_open() returns
 *  Owner: caller, gpuhal_pool_destroy(). Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_create(gpuhal_device *device, const gpuhal_pool_desc *desc,
                                            gpuhal_pool **out_pool);

/** Destroys the pool: unused segments go back to the driver. Buffers that are out stay valid; the segment of each goes
 *  back with its last buffer, once the work has ended behind which they were released.
 *  Owner: @p pool is invalid afterwards. Threads: any, with no other call on @p pool in progress. Blocks: yes, for the
 *  driver. */
GPUHAL_API void gpuhal_pool_destroy(gpuhal_pool *pool);

/** Gives a buffer. With @p queue its work may use the buffer at once, also memory that earlier work of that queue still
 *  uses; any other use has to come after that work, as with any buffer that two queues share. Without a queue every
 *  use may begin at once. @p flags: GPUHAL_ALLOCATE_ bits (buffer.h). @p timeout_ns: how long the call may wait when
 *  memory is short; 0: not at all. Contents are undefined.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for 0 bytes); TOO_LARGE above the largest single allocation,
 *  rounded down to the alignment; OUT_OF_MEMORY, with asked, free and limit in the detail, and with
 *  gpuhal_last_memory_report(); HOST_MEMORY; DEVICE_LOST; FORKED
 *  Owner: caller, gpuhal_buffer_release(). Threads: any. Blocks: for the driver when the pool grows, and up to @p
 *  timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_pool_allocate(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                              uint64_t timeout_ns, gpuhal_buffer **out_buffer);

/** States that work in @p queue uses a buffer of a pool although the library does not see it, such as a kernel that was
 *  submitted during native access: after its release the memory is given to others once everything enqueued there until
 *  then has ended. Once for a buffer and a queue suffices.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for a buffer that is not of a pool (gpuhal_queue_keep() keeps those);
 *  HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_use(gpuhal_buffer *buffer, gpuhal_queue *queue);

/** Changes the limit, also one that came from limit_permille; 0 or UINT64_MAX: none of its own. Below what the pool
 *  has, unused segments go back to the driver; what is in use stays, and the pool grows no more until it is below
 *  the limit.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_set_limit(gpuhal_pool *pool, uint64_t limit_bytes);

/** Gives unused segments back to the driver until at most @p keep_bytes of them are left. Memory behind
 *  work that has not ended is in use. @p out_freed may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_trim(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t *out_freed);

/** The same for all pools of a device together.
 *  @return as gpuhal_pool_trim(), and HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_device_trim(gpuhal_device *device, uint64_t keep_bytes, uint64_t *out_freed);

/** The same for all pools of the gpuhal object together.
 *  @return as gpuhal_device_trim()
 *  Owner: nothing. Threads: any. Blocks: yes, for the drivers. */
GPUHAL_API gpuhal_status gpuhal_trim(gpuhal *gpu, uint64_t keep_bytes, uint64_t *out_freed);

/** Is asked for memory of a device when an allocation there would fail: releases what it can spare, and returns how
 *  many bytes that were; 0: nothing. @p bytes: how many the allocation needs in one piece, and more when it is asked
 *  again since what came free did not lie together; where some are free already, less may suffice.
 *  It shall return within @p timeout_ns, the time that the allocation has left, and wait for nothing where that is 0.
 *  It may call the library, also to remove itself, but not gpuhal_close(); allocations made in it ask no store and no
 *  callback. It must not wait for a thread that allocates: that one may be waiting for it. */
typedef uint64_t gpuhal_pressure_fn(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns);

/** Has @p fn called when memory of the device is short, on the thread that allocates, one call at a time for each
 *  device: those with a lower @p priority first, and of the same priority the one that came first. Several libraries in
 *  one process may each have theirs, also the same function with another @p user.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also where the device has the function with this user already; HOST_MEMORY;
 *  FORKED
 *  Owner: caller must keep @p user until gpuhal_device_off_pressure() or gpuhal_close(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_on_pressure(gpuhal_device *device, int32_t priority, gpuhal_pressure_fn *fn,
                                                   void *user);

/** Ends that: the function is not called with this user after this returns, except where it makes this call itself.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_FOUND where the device does not have it; FORKED
 *  Owner: nothing. Threads: any. Blocks: until a running call has ended. */
GPUHAL_API gpuhal_status gpuhal_device_off_pressure(gpuhal_device *device, gpuhal_pressure_fn *fn, void *user);

/** For loops that tidy now and then: each @p every_n-th call for the gpuhal object, from any thread, does so; the
 *  others only count. Memory of pools whose work has ended becomes free for every queue. Unused segments go back to the
 *  driver under pressure alone: those above a pool's keep_bytes, and where the device has less free memory than its
 *  headroom_bytes, because others have taken some, as many as are missing; for that the driver is asked.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for 0; HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: in each @p every_n-th call, for the drivers. */
GPUHAL_API gpuhal_status gpuhal_maintain(gpuhal *gpu, uint32_t every_n);

/** A quantity over time. */
typedef struct gpuhal_pool_amount {
    uint64_t current, peak;
    uint64_t total_in, total_out; /**< All that was ever added and removed: current is their difference. */
} gpuhal_pool_amount;

/** The state of a pool. */
typedef struct gpuhal_pool_statistics {
    uint32_t size;                /**< sizeof(gpuhal_pool_statistics). */
    uint32_t segments;            /**< How many there are. */
    gpuhal_pool_amount reserved;  /**< Bytes of segments: the sum of used, free and ordered ones. */
    gpuhal_pool_amount used;      /**< Bytes of buffers that are out, rounded to the alignment. */
    gpuhal_pool_amount requested; /**< The same as they were asked for. */
    gpuhal_pool_amount buffers;   /**< Buffers that are out. */
    uint64_t limit_bytes;         /**< 0: none. */
    uint64_t free_bytes;          /**< Usable at once, with any queue. */
    /** In one piece; another may be up to 1/32 larger. 1 - largest_free_bytes / free_bytes is the fragmentation. */
    uint64_t largest_free_bytes;
    /** Released behind work of queues. Also where that has ended, until an allocation that needs them, a trim or
     *  gpuhal_maintain() looks; until then they are not among the free and the allocatable ones. */
    uint64_t ordered_bytes;
    uint64_t unused_segment_bytes; /**< Of segments without any part in use: what a trim would give back. */
    uint64_t searches_failed;     /**< Allocations for which more than a search was needed. */
    uint64_t out_of_memory;       /**< Allocations that failed for lack of memory. */
    /** The largest buffer that there may be room for once the pool's unused segments are given back: under its limit
     *  and the device's, and in the device's memory. What other programs have of that is not asked of the driver. */
    uint64_t allocatable_bytes;
    /** The most that was reserved by the most that was used, in thousandths: 1000 is no waste. 0: nothing was used. */
    uint64_t peak_permille;
} gpuhal_pool_statistics;

/** Reads the state, without a lock: no allocation waits for it. At most `size` bytes are written. The figures are of
 *  one moment, unless other threads change the pool all the time: then each by itself is right.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_pool_get_statistics(gpuhal_pool *pool, gpuhal_pool_statistics *out_statistics);

/** Memory of a device, as one gpuhal object has it. */
typedef struct gpuhal_memory_statistics {
    uint32_t size;                 /**< sizeof(gpuhal_memory_statistics). */
    uint32_t pools;                /**< How many there are, with destroyed ones of which buffers are out. */
    gpuhal_pool_amount allocated;  /**< Bytes that the driver gave: of buffers, and of segments of pools. */
    uint64_t limit_bytes;          /**< Of gpuhal_device_limit_memory(); 0: none. */
    uint64_t reserved_bytes;       /**< This and the next six are sums of what gpuhal_pool_statistics has. */
    uint64_t used_bytes;
    uint64_t requested_bytes;
    uint64_t buffers;
    uint64_t free_bytes;
    uint64_t ordered_bytes;
    uint64_t unused_segment_bytes; /**< What gpuhal_device_trim() would give back. */
    uint64_t largest_free_bytes;   /**< In one piece of any pool. */
    uint64_t allocatable_bytes;    /**< As of a pool, for gpuhal_buffer_create(), once all unused segments are back. */
} gpuhal_memory_statistics;

/** Reads what a device's memory is used for. At most `size` bytes are written. No allocation of a pool waits for it.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_get_memory_statistics(gpuhal_device *device,
                                                             gpuhal_memory_statistics *out_statistics);

#ifdef __cplusplus
}
#endif
#endif
