/* pool/pool.h: a pool as the files of this folder see it.
 *
 * A pool has segments, which are device buffers, and a table of the blocks in them (memory/blocks.h). A block is either
 * in use as a part (a suballocation) or free. A free block is in the bins of one owner: all queues (`common`), a lane,
 * or a pending entry. If the plugin supports virtual memory, one segment is the range: addresses, some of which are
 * backed by pieces of memory (piece.c).
 *
 * A lane belongs to a queue. Its bins contain the blocks that were released behind work of that queue; the queue can
 * reuse them immediately. Blocks released while the queue has no work are common. While only one queue uses the pool, a
 * second view of the blocks combines both kinds in one set of bins and serves that queue's requests (sole.c).
 *
 * If parts are released in the reverse order of their allocation, a lane keeps them unchanged for the next requests of
 * its queue, so that threads with different queues do not wait for each other (kept.c). When another owner needs a
 * lane's blocks, the pool records an event in the lane's queue, and all these blocks become pending behind it. A single
 * block that several queues have used is pending behind one event per queue. Pending blocks become common once all
 * their events are done.
 *
 * `mutex` protects all members that are not atomic. It is never held during a call to a plugin, a queue or the
 * application. Lanes exist until the pool is freed, so a thread may walk them without the mutex. A lane's queue may
 * change during the walk, unless it is the thread's own queue.
 */
#ifndef GPUHAL_POOL_POOL_H
#define GPUHAL_POOL_POOL_H

#include "memory/blocks.h"
#include "memory/buffer.h"
#include "os/os.h"
#include "pool/pressure.h"
#include "pool/trace_ring.h"
#include "queue/timepoint.h"

#include <gpuhal/pool.h>

/* Sums over parts: block bytes, requested bytes, and the number of parts. */
enum { GPUHAL_SUM_USED, GPUHAL_SUM_REQUESTED, GPUHAL_SUM_BUFFERS, GPUHAL_SUM_COUNT };

/* For a block in the bins, `stamp` is the value of gpuhal_timepoint_newest() at its release or later. */
typedef struct gpuhal_lane {
    _Atomic(struct gpuhal_lane *) next; /* newer */
    _Atomic(gpuhal_queue *) queue; /* with a reference to the structure; NULL: free for reuse */
    gpuhal_bins *bins;
    _Atomic(struct gpuhal_lane *) *slot; /* the pool's slot that points to it; NULL: only in the list */
    uint64_t submitted;     /* work submitted by its queue, as of the last release behind that work */
    uint64_t idle_releases; /* since `submitted` changed */
    uint64_t parts; /* parts whose home it is; it keeps its queue until all their blocks are returned */
    struct gpuhal_lane *keeping; /* the next one in the pool's list */
    gpuhal_mutex mutex; /* protects the members below; locked after the pool's */
    struct gpuhal_part *kept; /* newest first; counted as in use in the table and in the pool's statistics */
    bool listed; /* in the pool's list `keeping`, like every lane that keeps parts */
    bool closed; /* keeps no more parts, because the pool was destroyed */
    _Atomic uint32_t operations; /* allocations and releases of its queue that locked the pool's mutex */
    _Atomic uint32_t changes; /* like the pool's `changes` */
    _Atomic uint64_t keeps[GPUHAL_SUM_COUNT], again[GPUHAL_SUM_COUNT]; /* over `kept`; over all parts taken from it */
} gpuhal_lane;

/* A queue whose work must end first. */
typedef struct gpuhal_pool_wait {
    gpuhal_queue *queue;         /* with a reference */
    gpuhal_timepoint *timepoint; /* NULL: not yet recorded */
} gpuhal_pool_wait;

typedef struct gpuhal_pending {
    struct gpuhal_pending *next; /* older ones come first */
    uint64_t number;             /* sequence number in the pool */
    uint32_t users;              /* threads that use the entry without the mutex */
    bool recording;              /* a thread may be changing `waits`; no other thread may read it */
    gpuhal_bins *bins;           /* a lane's bins; NULL: one block, which the table still lists as in use */
    gpuhal_block_id block;
    gpuhal_lane *home; /* home of the released part, which is still counted there; NULL: none */
    const gpuhal_tag *tag; /* of the released buffer, like `bytes`, until the check is done; else NULL */
    uint64_t bytes;
    /* Queues that can take blocks from the bins: the lane's queue, and one that waits for it. The pointers are only
     * compared. They may dangle: all work of a destroyed queue has ended, and a new queue at its address has only later
     * work. */
    const gpuhal_queue *owner, *follower;
    size_t count;
    gpuhal_pool_wait waits[];
} gpuhal_pending;

typedef struct gpuhal_part {
    gpuhal_buffer buffer; /* must be first */
    gpuhal_pool *pool;
    struct gpuhal_part *next; /* while it is spare or kept */
    gpuhal_block_id block;
    uint32_t segment; /* its number */
    uint64_t number;  /* sequence number in the pool, for the trace */
    gpuhal_lane *home; /* lane of the queue that it was allocated for, or of the first queue that used it; NULL: none */
    uint32_t began, made; /* its home's `operations` before and after the allocation */
    bool is_kept;      /* by its home since `stamp` */
    uint64_t stamp;
    uint64_t mark; /* number of the last search that counted it as movable; compact.c */
    gpuhal_pending *uses; /* the entry for its release, if other queues have used it. Allocated at the first such use,
                           * because a release must not fail. Its `waits` list the other queues. */
    size_t use_space;
    bool of_store; /* counted in `store_bytes` */
} gpuhal_part;

typedef struct gpuhal_segment {
    gpuhal_buffer *buffer; /* NULL: unused segment number */
    uint64_t bytes;
    gpuhal_block_id first; /* its first block, cached; sole.c */
} gpuhal_segment;

/* Memory that backs a stretch of the range. The driver can only take it back as a whole. */
typedef struct gpuhal_piece {
    uint64_t offset, bytes;
    gpuhal_block_id leaving; /* its used block while the driver takes the memory back; else 0 */
} gpuhal_piece;

typedef struct gpuhal_pool_range {
    gpuhal_buffer *buffer; /* NULL: none */
    uint32_t region;
    uint64_t page_bytes;  /* all pieces begin and end at multiples of this */
    gpuhal_bins *holes;   /* addresses without memory */
    gpuhal_piece *pieces; /* lowest address first */
    size_t piece_count, piece_space;
    bool tried;    /* creating the range was tried; written by the thread that grows the pool */
    bool changing; /* a thread is committing or decommitting memory */
} gpuhal_pool_range;

/* A place in the range for a new piece. */
typedef struct gpuhal_hole {
    gpuhal_block_id hole;
    uint64_t offset, least, most; /* `least` bytes are enough, `most` are requested */
} gpuhal_hole;

/* Written with the mutex held, between gpuhal_pool_begin_change() and gpuhal_pool_end_change(); read without it. */
typedef struct gpuhal_amount {
    _Atomic uint64_t in, out, peak;
} gpuhal_amount;

/* A stretch of a segment that is being vacated, with bins for its free blocks (compact.c). */
typedef struct gpuhal_fence {
    gpuhal_bins *bins; /* NULL: none */
    uint32_t region;
    uint64_t begin, bytes;
} gpuhal_fence;

/* The blocks as the pool's only queue can use them. It has the pool's regions and used blocks; the rest is free
 * (sole.c). */
typedef struct gpuhal_sole {
    gpuhal_blocks blocks;
    gpuhal_bins *bins; /* NULL: no such view */
    bool ended;        /* the view must not begin again */
} gpuhal_sole;

/* A queue's lane is in the first free slot of GPUHAL_LANE_PROBES slots, counted from the slot that the queue's address
 * hashes to. */
enum { GPUHAL_LANE_SLOT_BITS = 10, GPUHAL_LANE_SLOTS = 1 << GPUHAL_LANE_SLOT_BITS, GPUHAL_LANE_PROBES = 4 };

struct gpuhal_pool {
    gpuhal_device *device;
    gpuhal_pool *next;           /* in the gpuhal object's list; protected by gpuhal_pools.mutex */
    struct gpuhal_trace *trace;  /* of the gpuhal object */
    uint32_t number;             /* sequence number in the gpuhal object, for the trace */
    gpuhal_pool_desc desc;       /* with defaults filled in */
    gpuhal_tag *tag; /* for parts without a tag of their own */
    uint64_t unit; /* all blocks begin and end at multiples of this in their segment */
    bool checks;   /* checking mode; check.c */
    bool keeps;    /* its lanes keep parts */
    _Atomic uint64_t limit_bytes; /* 0: none */

    gpuhal_mutex mutex;
    gpuhal_condition condition; /* signalled when a thread has finished growing the pool or changing the range */
    bool growing;               /* only one thread at a time requests a segment, so that none is requested in vain */
    gpuhal_memory_report *report; /* of the thread that grows the pool; no other thread uses it */
    bool insists;                 /* that thread requests no more than it needs */
    bool destroyed;
    bool has_unused; /* a whole segment may have become free since the last check */
    uint64_t references; /* the application's, and one per part; 0: being freed */
    gpuhal_blocks blocks;
    gpuhal_bins *common;
    gpuhal_sole sole;
    _Atomic(gpuhal_lane *) lanes; /* oldest first */
    _Atomic(gpuhal_lane *) slots[GPUHAL_LANE_SLOTS]; /* hash table of the lanes; written with the mutex held */
    /* The lanes that keep parts, so that these need not be searched among hundreds of lanes. Any thread that holds the
     * lane's mutex may add the lane at the front. Removing a lane that is not the first also requires this mutex. */
    _Atomic(gpuhal_lane *) keeping;
    gpuhal_pending *pending, **pending_end;
    uint64_t pending_number;  /* of the newest entry */
    gpuhal_segment *segments; /* indexed by region number */
    _Atomic uint32_t segment_count; /* includes each piece of the range; written with the mutex held */
    uint32_t segment_space;
    gpuhal_pool_range range;
    gpuhal_fence fence;
    uint64_t marks; /* number of searches for movable parts */
    gpuhal_part *spare, **spare_end;
    uint32_t spare_count; /* in checking mode */
    _Atomic uint32_t changes; /* odd while statistics are written; a reader retries if the number has changed */
    gpuhal_amount reserved, used, requested, buffers; /* the last three include kept parts */
    _Atomic uint64_t free_bytes, largest_bytes, unused_bytes; /* of `common`, at the last change */
    _Atomic uint64_t searches_failed, out_of_memory;
    /* Block bytes of parts that belong to stores (written with this mutex held), and how many of these bytes no store
     * can give up now. The second number is never too high; stores write it with the store's mutex held. */
    _Atomic uint64_t store_bytes, fixed_bytes;
};

/* All pools of a gpuhal object, including destroyed pools with parts in use. */
typedef struct gpuhal_pools {
    gpuhal_mutex mutex; /* protects the list and the count; locked before a pool's mutex */
    gpuhal_pool *first;
    gpuhal_pressure pressure;
    uint32_t created;
    gpuhal_trace trace;
    _Atomic uint32_t maintained; /* number of gpuhal_maintain() calls */
} gpuhal_pools;

/* An allocation in progress. */
typedef struct gpuhal_request {
    gpuhal_pool *pool;
    gpuhal_queue *queue;
    uint64_t bytes, block_bytes; /* as requested, and rounded up */
    uint32_t flags;
    uint64_t deadline_ns;
    bool of_store;
} gpuhal_request;

/* The functions of each file follow, lowest layer first. Each file calls only files above it in this list. */

/* ---- kept.c */

/* Keeps a part without references if its home can do so. If it returns false, the caller must release the part. Call
 * without the mutex. */
bool gpuhal_part_keep(gpuhal_part *part);
/* Takes the most recently kept part for the queue (may be NULL) if its size is exactly `bytes`; otherwise returns NULL.
 * Call without the mutex. */
gpuhal_part *gpuhal_part_take_kept(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Stops counting a part that is no longer kept. Call with the lane's mutex held. */
void gpuhal_lane_forget(gpuhal_lane *lane, const gpuhal_part *part);
/* Adds the statistics of all lanes. Returns false if a thread changed them during the read. */
bool gpuhal_lanes_read(const gpuhal_pool *pool, uint64_t keeps[GPUHAL_SUM_COUNT], uint64_t again[GPUHAL_SUM_COUNT]);
/* Returns the block bytes of parts in use, without kept parts. Call with the mutex held. */
uint64_t gpuhal_pool_used_now(const gpuhal_pool *pool);

/* Returns the bytes of used blocks that no store could give up now; never too many. Call with the mutex held. */
static inline uint64_t gpuhal_pool_fixed_now(const gpuhal_pool *pool)
{
    const uint64_t used = gpuhal_pool_used_now(pool), given = atomic_load(&pool->store_bytes);
    return (used > given ? used - given : 0) + atomic_load(&pool->fixed_bytes);
}

/* Counts an operation and returns the previous count. Call with the pool's mutex held. */
static inline uint32_t gpuhal_lane_count(gpuhal_lane *lane)
{
    const uint32_t before = atomic_load_explicit(&lane->operations, memory_order_relaxed);
    atomic_store_explicit(&lane->operations, before + 1, memory_order_relaxed);
    return before;
}

static inline uint64_t gpuhal_lane_kept_count(const gpuhal_lane *lane)
{
    return atomic_load_explicit(&lane->keeps[GPUHAL_SUM_BUFFERS], memory_order_relaxed);
}

/* Takes the slot from the upper bits of the product, which depend on the whole address. */
static inline size_t gpuhal_lane_slot(const gpuhal_queue *queue, size_t probe)
{
    const uint32_t mixed = (uint32_t)((uintptr_t)queue >> 4) * UINT32_C(0x9e3779b1);
    return ((mixed >> (32 - GPUHAL_LANE_SLOT_BITS)) + probe) % GPUHAL_LANE_SLOTS;
}

/* Returns a queue's lane, or NULL. The caller holds the mutex or is in a call of that queue. */
static inline gpuhal_lane *gpuhal_lane_find(const gpuhal_pool *pool, const gpuhal_queue *queue)
{
    for (size_t i = 0; i < GPUHAL_LANE_PROBES; i++) {
        gpuhal_lane *lane = atomic_load_explicit(&pool->slots[gpuhal_lane_slot(queue, i)], memory_order_acquire);
        if (lane && atomic_load_explicit(&lane->queue, memory_order_relaxed) == queue) {
            return lane;
        }
    }
    gpuhal_lane *lane = atomic_load_explicit(&pool->lanes, memory_order_acquire);
    while (lane && atomic_load_explicit(&lane->queue, memory_order_relaxed) != queue) {
        lane = atomic_load_explicit(&lane->next, memory_order_acquire);
    }
    return lane;
}

/* ---- trace_ring.c and trace_file.c are in trace_ring.h */

/* Trace hooks. Call with the pool's mutex held. Each costs one load while no trace is recorded. */
static inline bool gpuhal_trace_is_on(const gpuhal_pool *pool)
{
    return __builtin_expect(atomic_load_explicit(&pool->trace->on, memory_order_relaxed), 0);
}

static inline void gpuhal_trace_pool(const gpuhal_pool *pool, gpuhal_trace_operation operation, uint32_t segment,
                                     uint64_t bytes)
{
    if (gpuhal_trace_is_on(pool)) {
        gpuhal_trace_add(pool, (gpuhal_trace_record){
                                   .operation = (uint16_t)operation, .segment = segment, .bytes = bytes});
    }
}

static inline void gpuhal_trace_refusal(const gpuhal_pool *pool, gpuhal_trace_operation operation,
                                        const gpuhal_queue *queue, uint64_t bytes, gpuhal_status status)
{
    if (gpuhal_trace_is_on(pool)) {
        gpuhal_trace_add(pool, (gpuhal_trace_record){.operation = (uint16_t)operation,
                                                     .queue = queue,
                                                     .bytes = bytes,
                                                     .status = (int16_t)status});
    }
}

static inline void gpuhal_trace_part(const gpuhal_part *part, gpuhal_trace_operation operation,
                                     const gpuhal_queue *queue)
{
    if (gpuhal_trace_is_on(part->pool)) {
        gpuhal_trace_add(part->pool, (gpuhal_trace_record){.operation = (uint16_t)operation,
                                                           .queue = queue,
                                                           .buffer = part->number,
                                                           .bytes = part->buffer.bytes,
                                                           .offset = part->buffer.begin,
                                                           .segment = part->segment});
    }
}

/* ---- piece.c */

/* Waits until no thread changes the range, or the driver hangs. Call with the mutex held. */
void gpuhal_pool_await_pieces_unlocks(gpuhal_pool *pool);
/* Chooses a place for a piece of `bytes` bytes: at most `room`, and large enough that one free block will have `need`
 * bytes. If it returns true, only this thread changes the range until gpuhal_pool_end_piece(). Call with the mutex
 * held. */
bool gpuhal_pool_begin_piece(gpuhal_pool *pool, uint64_t bytes, uint64_t need, uint64_t room, gpuhal_hole *out_place);
/* Adds the committed bytes; 0 if the commit failed. On HOST_MEMORY it returns them to the driver. Call without the
 * mutex. */
gpuhal_status gpuhal_pool_end_piece(gpuhal_pool *pool, const gpuhal_hole *place, uint64_t bytes);
/* Return the bytes of unused pieces, and whether a free block contains a whole piece. Call with the mutex held. */
uint64_t gpuhal_pool_unused_piece_bytes(const gpuhal_pool *pool);
bool gpuhal_pool_has_piece(const gpuhal_pool *pool, const gpuhal_block *block);
/* Withdraws unused pieces from allocation until they have `want_bytes`. Returns their bytes. Unless that is 0,
 * gpuhal_pool_give_pieces() must follow. Call with the mutex held. */
uint64_t gpuhal_pool_take_pieces(gpuhal_pool *pool, uint64_t want_bytes);
/* Returns the withdrawn pieces to the driver. Call without the mutex. */
void gpuhal_pool_give_pieces(gpuhal_pool *pool);
/* Frees the range when the pool is freed. The range's buffer is not freed here, because it is a segment. */
void gpuhal_pool_free_range(gpuhal_pool *pool);

/* ---- pool statistics, in this file; call with the mutex held
 *
 * Each store releases the stores before it, so a reader that sees a new value also sees that `changes` is odd. */

static inline void gpuhal_pool_begin_change(gpuhal_pool *pool)
{
    atomic_store_explicit(&pool->changes, atomic_load_explicit(&pool->changes, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static inline void gpuhal_pool_end_change(gpuhal_pool *pool)
{
    const gpuhal_bins *common = pool->common;
    atomic_store_explicit(&pool->free_bytes, gpuhal_bins_free_bytes(common), memory_order_release);
    atomic_store_explicit(&pool->largest_bytes, gpuhal_bins_large(&pool->blocks, common), memory_order_release);
    atomic_store_explicit(&pool->unused_bytes, gpuhal_bins_whole_bytes(common), memory_order_release);
    atomic_store_explicit(&pool->changes, atomic_load_explicit(&pool->changes, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* Updates the statistics after blocks were added to or removed from the common bins. */
static inline void gpuhal_pool_changed(gpuhal_pool *pool)
{
    gpuhal_pool_begin_change(pool);
    gpuhal_pool_end_change(pool);
}

/* ---- sole.c: call with the mutex held */

/* Begins the view if this lane's queue is the only queue that ever used the pool. Call before a block is added to the
 * lane of a queue with pending work. */
void gpuhal_sole_begin(gpuhal_pool *pool, const gpuhal_lane *lane);
/* Records that the pool has a lane for another queue. */
void gpuhal_sole_note_queue(gpuhal_pool *pool);
/* Ends the view permanently, because other queues may take blocks from now on. */
void gpuhal_sole_end(gpuhal_pool *pool);
/* Takes a block for the only queue; `lane` is its lane. Returns 0 if no block fits. Both gpuhal_blocks must be
 * reserved. */
gpuhal_block_id gpuhal_sole_take(gpuhal_pool *pool, const gpuhal_lane *lane, uint64_t bytes);
/* Records that a used block with this twin became free and was merged into `merged`. */
void gpuhal_sole_give(gpuhal_pool *pool, gpuhal_block_id twin, gpuhal_block_id merged);
/* Add a segment to the view; remove an unused one. */
void gpuhal_sole_add(gpuhal_pool *pool, uint32_t region, uint64_t bytes);
void gpuhal_sole_remove(gpuhal_pool *pool, uint32_t region);

/* ---- lane.c: call with the mutex held */

/* Returns a queue's lane, which it creates if necessary; NULL if out of host memory. */
gpuhal_lane *gpuhal_lane_get(gpuhal_pool *pool, gpuhal_queue *queue);
/* Takes the best-fitting block that the queue (NULL: none) can use now. Returns 0 if none fits. */
gpuhal_block_id gpuhal_pool_search(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Merges neighbouring blocks that the queue can use now into its lane. It merges no more than `bytes` requires, because
 * other queues lose these blocks. Returns false if there are none or `queue` is NULL. */
bool gpuhal_lane_gather(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Adds a queue that uses the part. Returns false if out of host memory. */
bool gpuhal_part_add_use(gpuhal_part *part, gpuhal_queue *queue);
/* Allocates `uses` with the queue that the part is for (may be NULL). In checking mode every release needs it. */
bool gpuhal_part_begin_uses(gpuhal_part *part, gpuhal_queue *queue);
/* Returns a recycled or new structure for a part, or NULL if out of host memory. In checking mode structures are
 * recycled late. */
gpuhal_part *gpuhal_part_take(gpuhal_pool *pool);
void gpuhal_part_put_back(gpuhal_part *part);
/* Appends a new entry. gpuhal_pending_record() must record its events. */
void gpuhal_pending_append(gpuhal_pool *pool, gpuhal_pending *pending);
/* Releases a block behind all work that used the part, and frees the part. Returns an entry whose events
 * gpuhal_pending_record() must record, or NULL. If the part is kept, the caller also holds its home's mutex. */
gpuhal_pending *gpuhal_part_give(gpuhal_part *part);

/* Release the kept parts of one lane (before its queue allocates or releases a part that is not kept), and of all
 * lanes. The second returns the number of parts. */
void gpuhal_lane_give_kept(gpuhal_pool *pool, gpuhal_lane *lane);
uint64_t gpuhal_pool_give_kept(gpuhal_pool *pool);
/* Releases kept parts if counting this block would set a new peak. Kept and used parts together must not exceed the
 * peak; therefore taking a kept part without the mutex never sets a new peak. Call before counting the block. */
void gpuhal_pool_limit_kept(gpuhal_pool *pool, uint64_t block_bytes, uint64_t bytes);
/* Stops keeping, because the pool was destroyed. The next poll releases the kept parts. */
void gpuhal_pool_close_lanes(gpuhal_pool *pool);

/* ---- segment.c */

/* Returns the bytes in the device's pools that no store could give up now. The caller holds no lock. */
uint64_t gpuhal_device_fixed_bytes(const gpuhal_device *device);
/* Returns OUT_OF_MEMORY with details if `need` alone exceeds a limit of the pool or the device. With `all` it also
 * checks the control group's limit, which it reads from files. Unless the application has callbacks, `all` also adds
 * the bytes that no store could give up now to the request. */
gpuhal_status gpuhal_pool_check_limits(gpuhal_pool *pool, uint64_t need, bool all);
/* Allocates a segment or piece from the driver with room for `need` bytes. OUT_OF_MEMORY with details, also above a
 * limit. Call without the mutex. */
gpuhal_status gpuhal_pool_grow(gpuhal_pool *pool, uint64_t need);
/* Removes unused segments from the table until they have `want_bytes` or at most `keep_bytes` remain. Returns a list of
 * buffers for gpuhal_segments_release(), linked by `next_released`. Call with the mutex held. */
gpuhal_buffer *gpuhal_pool_take_unused(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t want_bytes,
                                       uint64_t *out_bytes);
/* Return the bytes of unused segments and pieces. Call the first with the mutex held, the second without. The second
 * locks the mutex only if the device has virtual memory, because pieces must be searched among the blocks. */
uint64_t gpuhal_pool_unused_bytes(const gpuhal_pool *pool);
uint64_t gpuhal_pool_unused_now(gpuhal_pool *pool);
/* Releases such a list. Call without the mutex, with a reference to the pool. */
void gpuhal_segments_release(gpuhal_buffer *list);

/* ---- check.c: checking mode; call without the mutex */

/* Guard bytes after each buffer. */
enum { GPUHAL_CHECK_BYTES = 256 };

/* Prepares a new buffer for a queue, which may be NULL. */
gpuhal_status gpuhal_check_begin(gpuhal_buffer *buffer, gpuhal_queue *queue);
/* Checks a released buffer's memory once, after the work submitted before its release has ended. */
void gpuhal_check_end(gpuhal_pool *pool, gpuhal_pending *pending);
void gpuhal_check_released_twice(gpuhal_buffer *buffer);

/* ---- pending.c: memory that other queues can use once work has ended; call without the mutex */

/* Records the missing events. */
void gpuhal_pending_record(gpuhal_pool *pool, gpuhal_pending *pending);
/* Makes memory common if its work has ended: pending entries and lanes of idle queues. Returns the number of bytes. */
uint64_t gpuhal_pool_poll(gpuhal_pool *pool);
/* Makes lanes of other queues pending if they have `bytes` in one block. Returns the newest entry's number. */
uint64_t gpuhal_pool_part_lanes(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Makes the queue wait for the oldest entry that has `bytes` in one block, so that the queue can use the whole entry
 * (*out_bytes). Returns false if there is no such entry. */
bool gpuhal_pool_follow(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes);
/* Lets the queue use memory that another queue released before an event that this queue already waits for, if one block
 * of it has `bytes`. *out_bytes is the total. Returns false if there is no such memory. */
bool gpuhal_pool_follow_event(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes);
/* Makes queues keep the segments alive as long as they may use them, when the pool is freed. */
void gpuhal_pool_hold_segments(gpuhal_pool *pool);
void gpuhal_pending_free_all(gpuhal_pool *pool);
/* Waits for the oldest entry. Returns false if all entries are newer than number `newest`, or at the deadline. */
bool gpuhal_pool_wait_oldest(gpuhal_pool *pool, uint64_t newest, uint64_t deadline_ns);

/* ---- compact.c: for owners of movable parts; call without the mutex */

/* Returns whether scattered free memory and the memory that the driver may still provide add up to `bytes`. */
bool gpuhal_compact_may_help(gpuhal_pool *pool, uint64_t bytes);
/* Chooses a stretch of `bytes` (0: a whole segment) with only `movable` parts in use and room for them elsewhere; among
 * several, the stretch with the fewest bytes to move. Memory behind work that does not end before the deadline counts
 * as used. Nothing is allocated in the stretch from now on. Returns its bytes, or 0 if there is none or another thread
 * is compacting. Unless it returns 0, gpuhal_compact_end() must follow. */
uint64_t gpuhal_compact_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes,
                              uint64_t deadline_ns);
/* Returns whether a part is in the stretch. */
bool gpuhal_compact_has(gpuhal_pool *pool, const gpuhal_buffer *buffer);
/* Releases parts that were moved, so that nothing is allocated in their old places. */
void gpuhal_compact_release(gpuhal_pool *pool, gpuhal_buffer *const *moved, size_t count);
/* Makes the freed memory common. Returns false if part of it is still in use, for example because work that uses the
 * old places did not end before the deadline. */
bool gpuhal_compact_end(gpuhal_pool *pool, uint64_t deadline_ns);
/* Returns unused segments to the driver until `bytes` are reached. Returns the number of bytes. */
uint64_t gpuhal_compact_trim(gpuhal_pool *pool, uint64_t bytes);

/* ---- ladder.c */

/* Tries each step of the ladder after a search has failed. Returns OK with a block, or the error. */
gpuhal_status gpuhal_pool_climb(const gpuhal_request *request, gpuhal_block_id *out_block);
/* Refuses a request above a limit of the pool or the device, like gpuhal_pool_climb(), without side effects. A store
 * must not evict entries for such a request. OUT_OF_MEMORY with its report. */
gpuhal_status gpuhal_pool_check_request(const gpuhal_request *request);
/* Returns the time until which to wait for work while there are sources to call, so that they have time left. */
uint64_t gpuhal_ladder_patience(uint64_t deadline_ns);
/* Sizes for an allocation that may wait for work. */
typedef struct gpuhal_shortage {
    uint64_t bytes;         /* needed */
    uint64_t ordered_bytes; /* free once queued work has ended */
    uint64_t free_bytes;    /* free in the pool; else 0 */
    uint64_t left_bytes;    /* free outside the pool, according to the last refusal; UINT64_MAX: unknown */
} gpuhal_shortage;
/* Returns whether to wait for newer work as well, once all work that was enqueued when the wait began has ended. */
bool gpuhal_ladder_waits_on(const gpuhal_shortage *shortage, uint64_t deadline_ns, uint64_t callers_deadline_ns);

/* ---- statistics.c */

/* Reads a statistic, with or without the mutex. */
gpuhal_pool_amount gpuhal_amount_read(const gpuhal_amount *figure);

/* ---- pool.c */

/* Allocates for a store, like gpuhal_pool_allocate(). */
gpuhal_status gpuhal_pool_allocate_for_store(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                             uint64_t timeout_ns, gpuhal_buffer **out_buffer);
/* Counts a part that the application allocated as a store's part. It stays counted even if the store refuses it. */
void gpuhal_part_join_store(gpuhal_buffer *buffer);
/* Releases one reference. The thread holds no lock. */
void gpuhal_pool_unreference(gpuhal_pool *pool);

/* ---- left.c, for hal/gpuhal.c */

void gpuhal_pools_report_left(gpuhal *gpu);

/* ---- pool.c and state.c, for hal/gpuhal.c */

gpuhal_pools *gpuhal_pools_create(void);
void gpuhal_pools_destroy(gpuhal_pools *pools);
void gpuhal_part_release(gpuhal_buffer *buffer);
gpuhal_status gpuhal_part_use(gpuhal_buffer *buffer, gpuhal_queue *queue);
gpuhal_buffer *gpuhal_part_find(gpuhal_buffer *segment, uint64_t *offset);

/* ---- state.c: for all pools of a device, or of a gpuhal object (device NULL) */

/* Polls, and returns unused segments to the driver until `want_bytes` are reached or only `keep_bytes` remain.
 * HOST_MEMORY. */
gpuhal_status gpuhal_pools_trim(gpuhal *gpu, const gpuhal_device *device, uint64_t keep_bytes, uint64_t want_bytes,
                                uint64_t *out_polled, uint64_t *out_freed);
/* Makes all lanes pending. HOST_MEMORY. */
gpuhal_status gpuhal_pools_part_lanes(const gpuhal_device *device);
/* Completes the report of an allocation outside pools with the device's memory and how much of it is in pools. */
void gpuhal_pools_report(const gpuhal_device *device, gpuhal_memory_report *report);

/* ---- relief.c, for hal/gpuhal.c */

/* Implements gpuhal_layers.relieve, as the public pool.h specifies for buffers outside pools. */
gpuhal_status gpuhal_pools_relieve(gpuhal_relief *relief);

static inline void gpuhal_amount_add(gpuhal_amount *amount, uint64_t bytes)
{
    uint64_t in = atomic_load_explicit(&amount->in, memory_order_relaxed) + bytes;
    uint64_t now = in - atomic_load_explicit(&amount->out, memory_order_relaxed);
    atomic_store_explicit(&amount->in, in, memory_order_release);
    if (now > atomic_load_explicit(&amount->peak, memory_order_relaxed)) {
        atomic_store_explicit(&amount->peak, now, memory_order_release);
    }
}

static inline void gpuhal_amount_remove(gpuhal_amount *amount, uint64_t bytes)
{
    uint64_t out = atomic_load_explicit(&amount->out, memory_order_relaxed) + bytes;
    atomic_store_explicit(&amount->out, out, memory_order_release);
}

static inline uint64_t gpuhal_amount_now(const gpuhal_amount *amount)
{
    return atomic_load_explicit(&amount->in, memory_order_relaxed) -
           atomic_load_explicit(&amount->out, memory_order_relaxed);
}

#endif
