/** gpuhal/pool.h: suballocates buffers from larger allocations of a device, for programs that allocate often.
 *
 *  A pool belongs to one device and has one kind of memory. It allocates segments from the driver, as
 *  gpuhal_buffer_create() does, or, with GPUHAL_CAPABILITY_VIRTUAL_MEMORY and in the cases that docs/memory.md lists,
 *  memory that it maps piece by piece into one range of addresses. A pool's buffers are suballocations. Every call that
 *  accepts a buffer accepts a pool's buffers, and gpuhal_buffer_release() returns them to the pool. They can be mapped,
 *  exported and shared with other devices only if the pool has `export_kinds`. Otherwise such access would expose
 *  neighbouring buffers, so the calls return NOT_SUPPORTED. gpuhal_buffer_host() returns an address only if the host's
 *  address of this kind of memory is coherent (gpuhal_buffer_is_coherent()). In other memory the host's writes would
 *  become visible only through a mapping, so use transfers there.
 *
 *  Releasing does not wait; it is ordered with the work in queues. A queue can immediately reuse memory that only its
 *  own work has used, since its later work runs after that. Another queue, or a request without a queue, can reuse the
 *  memory once the work that used it has ended. The pool tracks all work that was enqueued through the library:
 *  transfers, launches and gpuhal_queue_keep(). Call gpuhal_buffer_use() for other work. A buffer that was allocated
 *  for a queue counts as used in that queue.
 *
 *  When memory is short, a pool takes these steps, in this order, and searches again after each step:
 *  - reuse memory that another queue released before an event that the queue waits for
 *  - reuse memory whose work has ended
 *  - allocate another segment
 *  - free unused segments to make room for a larger segment
 *  - reuse memory that other queues released, after making the caller's queue wait for an event in these queues
 *  - wait for the other queues' work, the oldest first, as long as the caller allows
 *  - make stores move unpinned entries, if the free chunks together suffice
 *  - make stores evict entries, first entries that need not be copied, then entries that must be copied first
 *  - call the callbacks of gpuhal_device_on_pressure(), the lowest priority first
 *  - make stores move entries once more, if stores or callbacks freed memory
 *  A store or callback that freed memory is called again, for twice as much, at most 64 times and for at most all
 *  memory of the device. A store or callback that freed nothing, or as much as the device has, is not called again for
 *  this allocation. A request above a limit of the pool or of the device is rejected before these steps, and nothing is
 *  freed for it. If the limit has no room for the request in addition to pinned entries and to pool buffers that are
 *  not entries, and there is no callback, the pool takes only the steps that precede the stores' steps.
 *  gpuhal_buffer_create() takes the steps that return memory to the driver, and waits for work of all queues. If there
 *  are stores or callbacks, waiting for work before they are called takes at most half of the caller's time, and never
 *  more than a second; afterwards the call waits for the rest of the time as well. Calls into the driver, and a
 *  callback that ignores its timeout, may exceed the caller's time.
 *
 *  In a forked child every call on a pool of the parent returns FORKED, and releasing does nothing.
 *
 *      gpuhal_pool *pool = NULL;
 *      gpuhal_buffer *buffer = NULL;
 *      gpuhal_pool_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_DEVICE};
 *      gpuhal_status status = gpuhal_pool_create(device, &desc, &pool);
 *      status = status ? status : gpuhal_pool_allocate(pool, queue, bytes, 0, UINT64_MAX, &buffer);
 *      status = status ? status : gpuhal_write(queue, buffer, 0, host, bytes);
 *      gpuhal_buffer_release(buffer);                   // later work of the queue can use the memory at once
 *      gpuhal_pool_destroy(pool);
 */
#ifndef GPUHAL_POOL_H
#define GPUHAL_POOL_H

#include <gpuhal/buffer.h>
#include <gpuhal/queue.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A source of buffers in the memory of one device. */
typedef struct gpuhal_pool gpuhal_pool;

/** Flags of pools. The first three turn off reuse policies that CUDA's pools also have; all are on by default. The
 *  last turns on checking mode. */
enum {
    /** Memory that another queue released is not reused merely because that queue's work happens to have ended. */
    GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC = 1u,
    /** The pool never makes a queue wait for another queue's work in order to reuse memory that the other queue
     *  released. Without this flag, a queue that was made to wait fails if that work fails (queue.h), and its reset
     *  waits for that work as well. */
    GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES = 2u,
    /** A queue that gpuhal_queue_wait() has made wait for an event does not reuse memory that another queue released
     *  before that event. Without this flag, failures and resets have the same effect as with internal dependencies. */
    GPUHAL_POOL_NO_REUSE_FOLLOW_EVENT_DEPENDENCIES = 4u,
    /** Checking mode, for debugging; slow. The environment variable GPUHAL_POOL_CHECK also turns it on. New buffers are
     *  filled with bytes 0xc5. Once all work enqueued before a buffer's release has ended, the pool checks the bytes
     *  beyond the end of the buffer and fills its memory with 0xd9, at the latest in the next call that allocates from
     *  the pool, releases a buffer to it, or trims, maintains or destroys it. Until then no queue can reuse the memory,
     *  not even the queue that used it. A write within 256 bytes beyond the end is logged at level 1 (error), with the
     *  buffer's tag; so is a second release of one of the last 4096 released buffers. */
    GPUHAL_POOL_CHECKING = 0x100u
};

/** The pool to create. */
typedef struct gpuhal_pool_desc {
    uint32_t size;           /**< sizeof(gpuhal_pool_desc). */
    gpuhal_memory_kind kind; /**< 0 means device memory. */
    /** Maximum size of all segments together. UINT64_MAX means that this pool has no limit. With 0, limit_permille
     *  applies; if it is 0 as well, the limit is 900 thousandths for device memory, and there is no limit for other
     *  kinds. The device's limits always apply: gpuhal_device_limit_memory() and, for device memory, the bytes that the
     *  process's control groups leave (dmem.max of cgroup version 2). */
    uint64_t limit_bytes;
    /** The limit in thousandths of the device's memory, at most 1000; for 0 see limit_bytes. The lower of the two
     *  limits applies. */
    uint32_t limit_permille;
    uint32_t flags;          /**< GPUHAL_POOL_ bits. */
    /** Bytes that the pool leaves free for other users of the device, or 0. If the driver returns
     *  GPUHAL_VALUE_MEMORY_FREE_BYTES, the pool allocates no segment that would leave the device with less free memory.
     *  Querying the driver costs as much as a sample, and is done only when a segment is allocated. */
    uint64_t headroom_bytes;
    /** Unused segments beyond this many bytes are returned to the driver when the last buffer in a segment is released,
     *  or, if work of queues still uses the segment, at the next such release or trim. With 0, they are kept until
     *  gpuhal_pool_trim() or until memory is short. */
    uint64_t keep_bytes;
    /** Size of a segment; 0 means 64 MiB. The first segments have an eighth, a quarter and a half of this size. A
     *  buffer that needs more than half of this size gets a separate segment; with virtual memory, the pool commits
     *  just the missing bytes instead. */
    uint64_t segment_bytes;
    /** Like gpuhal_buffer_desc.alignment, for every buffer. In their segment, buffers start at multiples of this value,
     *  of 256, and of the alignments that the device requires for binding, copying and filling. */
    uint64_t alignment;
    const char *tag; /**< Tag of the pool's buffers (see gpuhal_buffer_set_tag()), or NULL. Copied. */
    /** Like gpuhal_buffer_desc.export_kinds, for every buffer, or 0. If not 0, each buffer has its own segment of
     *  exactly the buffer's size, since a handle cannot state where in an allocation a buffer begins; segment_bytes is
     *  then ignored. A segment is kept for buffers of the same size. A buffer's handles still refer to its memory after
     *  another buffer has got that memory, so release a buffer only after its importers have finished. A buffer that
     *  gpuhal_buffer_share() made keeps the memory alive by itself. */
    uint32_t export_kinds;
} gpuhal_pool_desc;

/** Creates an empty pool. @p desc may be NULL. Opens the device if needed.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED for a kind that the device lacks, HOST_MEMORY, and the errors of
 *  gpuhal_device_open()
 *  Owner: caller, gpuhal_pool_destroy(). Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_create(gpuhal_device *device, const gpuhal_pool_desc *desc,
                                            gpuhal_pool **out_pool);

/** Destroys the pool, and returns unused segments to the driver. Buffers that are still allocated stay valid. Their
 *  segment is freed with its last buffer, once the work before their release has ended.
 *  Owner: @p pool is invalid afterwards. Threads: any, with no other call on @p pool in progress. Blocks: yes, for the
 *  driver. */
GPUHAL_API void gpuhal_pool_destroy(gpuhal_pool *pool);

/** Allocates a buffer. With @p queue, work of that queue may use the buffer immediately, although earlier work of the
 *  queue may still use its memory. Any other use must be ordered after that work, as with any buffer that two queues
 *  share. Without a queue, every use may begin immediately. @p flags: GPUHAL_ALLOCATE_ bits (buffer.h). @p timeout_ns:
 *  how long the call may wait when memory is short; 0 means not at all. Contents are undefined.
 *  @return GPUHAL_OK; INVALID_ARGUMENT (also for 0 bytes); TOO_LARGE above the largest single allocation, rounded down
 *  to the alignment; OUT_OF_MEMORY, with the requested bytes, the free bytes and the limit in the detail, and with
 *  gpuhal_last_memory_report(); HOST_MEMORY; DEVICE_LOST; FORKED
 *  Owner: caller, gpuhal_buffer_release(). Threads: any. Blocks: for the driver when the pool grows, and up to @p
 *  timeout_ns. */
GPUHAL_API gpuhal_status gpuhal_pool_allocate(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                              uint64_t timeout_ns, gpuhal_buffer **out_buffer);

/** Declares that a pool's buffer is used by work in @p queue that was not enqueued through the library, such as a
 *  kernel submitted during native access. After the buffer's release, others can reuse its memory once all work that
 *  was enqueued in the queue before the release has ended. One call per buffer and queue suffices.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for a buffer that does not belong to a pool (use gpuhal_queue_keep() for
 *  those); HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_buffer_use(gpuhal_buffer *buffer, gpuhal_queue *queue);

/** Changes the limit, even a limit that came from limit_permille. 0 or UINT64_MAX removes the pool's limit. If the pool
 *  exceeds the limit, unused segments are returned to the driver; used segments stay, and the pool does not grow until
 *  it is below the limit.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_set_limit(gpuhal_pool *pool, uint64_t limit_bytes);

/** Returns unused segments to the driver until at most @p keep_bytes of them are left. Released memory whose work has
 *  not ended is still in use. @p out_freed may be NULL.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_pool_trim(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t *out_freed);

/** Trims all pools of a device, like gpuhal_pool_trim(); @p keep_bytes applies to all of them together.
 *  @return as gpuhal_pool_trim(), and HOST_MEMORY
 *  Owner: nothing. Threads: any. Blocks: yes, for the driver. */
GPUHAL_API gpuhal_status gpuhal_device_trim(gpuhal_device *device, uint64_t keep_bytes, uint64_t *out_freed);

/** Trims all pools of the gpuhal object, like gpuhal_pool_trim(); @p keep_bytes applies to all of them together.
 *  @return as gpuhal_device_trim()
 *  Owner: nothing. Threads: any. Blocks: yes, for the drivers. */
GPUHAL_API gpuhal_status gpuhal_trim(gpuhal *gpu, uint64_t keep_bytes, uint64_t *out_freed);

/** Called when an allocation on a device would fail. The callback releases memory that it can spare, and returns the
 *  number of released bytes, or 0. @p bytes is the number of contiguous bytes that the allocation requires, or more if
 *  the callback is called again because the freed memory was not contiguous. Less may suffice if some memory is free
 *  already. The callback must return within @p timeout_ns, the time that the allocation has left, and must not wait if
 *  @p timeout_ns is 0. It may call the library, even to remove itself, but not gpuhal_close(). Allocations by the
 *  callback call no store and no callback. The callback must not wait for a thread that allocates, because this thread
 *  may be waiting for the callback. */
typedef uint64_t gpuhal_pressure_fn(void *user, gpuhal_device *device, uint64_t bytes, uint64_t timeout_ns);

/** Registers @p fn to be called when memory of the device is short. It is called on the thread that allocates, one call
 *  at a time for each device: callbacks with a lower @p priority first, those of equal priority in the order of
 *  registration. Several libraries in one process may each register a callback, even the same function with another @p
 *  user.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also if @p fn is already registered with this @p user; HOST_MEMORY; FORKED
 *  Owner: caller must keep @p user until gpuhal_device_off_pressure() or gpuhal_close(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_on_pressure(gpuhal_device *device, int32_t priority, gpuhal_pressure_fn *fn,
                                                   void *user);

/** Removes the callback. When this call has returned, the function is not called with this @p user again, and is not
 *  running, unless it made this call itself.
 *  @return GPUHAL_OK; INVALID_ARGUMENT; NOT_FOUND if it is not registered; FORKED
 *  Owner: nothing. Threads: any. Blocks: until a running call has ended. */
GPUHAL_API gpuhal_status gpuhal_device_off_pressure(gpuhal_device *device, gpuhal_pressure_fn *fn, void *user);

/** Maintains pools; meant to be called in a loop. Each @p every_n-th call for the gpuhal object, from any thread, does
 *  the work; all other calls only count. Memory of pools whose work has ended becomes free for every queue. Unused
 *  segments are returned to the driver only if they exceed a pool's keep_bytes, or if other programs leave the device
 *  less free memory than the pool's headroom_bytes; in the latter case, only as many segments as are missing. The
 *  driver is queried for the free memory.
 *  @return GPUHAL_OK; INVALID_ARGUMENT, also for 0; HOST_MEMORY; FORKED
 *  Owner: nothing. Threads: any. Blocks: in each @p every_n-th call, for the drivers. */
GPUHAL_API gpuhal_status gpuhal_maintain(gpuhal *gpu, uint32_t every_n);

/** A quantity over time. */
typedef struct gpuhal_pool_amount {
    uint64_t current, peak;
    uint64_t total_in, total_out; /**< Sums of all additions and removals; current is their difference. */
} gpuhal_pool_amount;

/** The state of a pool. */
typedef struct gpuhal_pool_statistics {
    uint32_t size;                /**< sizeof(gpuhal_pool_statistics). */
    uint32_t segments;            /**< Number of segments. */
    gpuhal_pool_amount reserved;  /**< Bytes of segments: the sum of used, free and ordered bytes. */
    gpuhal_pool_amount used;      /**< Bytes of allocated buffers, rounded to the alignment. */
    gpuhal_pool_amount requested; /**< Bytes of allocated buffers as requested, not rounded. */
    gpuhal_pool_amount buffers;   /**< Number of allocated buffers. */
    uint64_t limit_bytes;         /**< 0 means no limit. */
    uint64_t free_bytes;          /**< Bytes that any queue can use immediately. */
    /** Largest contiguous free range; the actual range may be up to 1/32 larger. 1 - largest_free_bytes / free_bytes
     *  is the fragmentation. */
    uint64_t largest_free_bytes;
    /** Released bytes that work of queues may still use. They count here even when that work has ended, until an
     *  allocation that needs them, a trim or gpuhal_maintain() notices. Until then they count neither as free nor as
     *  allocatable. */
    uint64_t ordered_bytes;
    uint64_t unused_segment_bytes; /**< Bytes of entirely unused segments, which a trim would return. */
    uint64_t searches_failed;     /**< Number of allocations that needed more than a search. */
    uint64_t out_of_memory;       /**< Number of allocations that failed for lack of memory. */
    /** The largest buffer that may fit once the pool's unused segments are returned, within the pool's limit, the
     *  device's limit and the device's memory. The driver is not queried for the memory that other programs use. */
    uint64_t allocatable_bytes;
    /** The peak of `reserved` divided by the peak of `used`, in thousandths. 1000 means no waste; 0 means that nothing
     *  was used. */
    uint64_t peak_permille;
} gpuhal_pool_statistics;

/** Reads the state without a lock, so that no allocation waits for it. At most `size` bytes are written. The figures
 *  are a consistent snapshot, unless other threads change the pool all the time; in that case only each single figure
 *  is correct.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_pool_get_statistics(gpuhal_pool *pool, gpuhal_pool_statistics *out_statistics);

/** Memory of a device that one gpuhal object uses. */
typedef struct gpuhal_memory_statistics {
    uint32_t size;                 /**< sizeof(gpuhal_memory_statistics). */
    uint32_t pools;                /**< Number of pools, including destroyed pools with allocated buffers. */
    gpuhal_pool_amount allocated;  /**< Bytes allocated from the driver, for buffers and for segments of pools. */
    uint64_t limit_bytes;          /**< Limit of gpuhal_device_limit_memory(), or 0. */
    uint64_t reserved_bytes;       /**< This member and the next six are sums over the statistics of all pools. */
    uint64_t used_bytes;
    uint64_t requested_bytes;
    uint64_t buffers;
    uint64_t free_bytes;
    uint64_t ordered_bytes;
    uint64_t unused_segment_bytes; /**< Bytes that gpuhal_device_trim() would return. */
    uint64_t largest_free_bytes;   /**< Largest contiguous free range of any pool. */
    /** Like a pool's allocatable_bytes, but for gpuhal_buffer_create(), once all unused segments are returned. */
    uint64_t allocatable_bytes;
} gpuhal_memory_statistics;

/** Reads how a device's memory is used. At most `size` bytes are written. Pool allocations do not wait for this call.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, FORKED
 *  Owner: caller. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_get_memory_statistics(gpuhal_device *device,
                                                             gpuhal_memory_statistics *out_statistics);

#ifdef __cplusplus
}
#endif
#endif
