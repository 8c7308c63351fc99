/* pool/pool.h: the internals of a pool, for the files of this folder.
 *
 * A pool has segments, which are device buffers, and a table of all their blocks (memory/blocks.h). A block is either
 * free or in use as a part (a suballocation). A free block is in the bins of exactly one owner: all queues (`common`),
 * a lane, or a pending entry; or it is behind the fence (compact.c) or without memory (piece.c). If the plugin supports
 * virtual memory, one segment is the range: reserved addresses that are partly backed by pieces of memory (piece.c).
 *
 * A lane belongs to a queue. The lane's bins contain the blocks that were released behind the queue's work; the queue
 * can reuse them immediately. Blocks that are released while the queue has no work become common. While only one queue
 * uses the pool, a second view of the blocks has the lane's and the common blocks in one set of bins, and serves the
 * queue's requests (sole.c).
 *
 * If parts are released in the reverse order of their allocation, a lane keeps them unchanged for the next requests of
 * its queue, so that threads with different queues do not wait for each other (kept.c). When another owner needs a
 * lane's blocks, the pool records an event in the lane's queue, and all the lane's blocks become pending behind the
 * event. A single block that several queues have used is pending behind one event per queue other than its home's.
 * Pending blocks become common once all their events are done, except a single block with a home, which is added to its
 * home lane.
 *
 * `mutex` protects all members that are not atomic. It is never held during a call to a plugin or the application, not
 * even through a queue. Lanes exist until the pool is freed, so a thread may walk them without the mutex. A lane's
 * queue may change during the walk, unless the walking thread is in a call of that queue.
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
    _Atomic(struct gpuhal_lane *) *slot; /* the pool's slot for this lane; NULL if it is only in the list */
    uint64_t submitted;     /* number of the queue's newest submission at the last release */
    uint64_t idle_releases; /* releases since `submitted` changed */
    uint64_t parts; /* parts with this lane as their home; the lane keeps its queue until all their blocks are
                     * returned */
    struct gpuhal_lane *keeping; /* next lane in the pool's list */
    gpuhal_mutex mutex; /* protects the members below; locked after the pool's */
    struct gpuhal_part *kept; /* newest first; counted as in use in the table and in the pool's amounts */
    bool listed; /* in the pool's list `keeping`; true for every lane that keeps parts */
    bool closed; /* keeps no more parts, because the pool was destroyed */
    _Atomic uint32_t operations; /* allocations and releases of its queue that locked the pool's mutex */
    _Atomic uint32_t changes; /* like the pool's `changes` */
    _Atomic uint64_t keeps[GPUHAL_SUM_COUNT], again[GPUHAL_SUM_COUNT]; /* sums over `kept`, and over all parts that were
                                                                        * taken from `kept` */
} gpuhal_lane;

/* A queue whose work must end first. */
typedef struct gpuhal_pool_wait {
    gpuhal_queue *queue;         /* with a reference */
    gpuhal_timepoint *timepoint; /* NULL if not yet recorded */
} gpuhal_pool_wait;

typedef struct gpuhal_pending {
    struct gpuhal_pending *next; /* older entries come first */
    uint64_t number;             /* sequence number in the pool */
    uint32_t users;              /* threads that use the entry without the mutex */
    bool recording;              /* a thread may be changing `waits`; no other thread may read it */
    gpuhal_bins *bins;           /* a lane's bins; NULL if the entry has one block, which the table still lists as in
                                  * use */
    gpuhal_block_id block;
    gpuhal_lane *home; /* home of the released part, which still counts the part; NULL if none */
    const gpuhal_tag *tag; /* the released buffer's tag and size; `bytes` is 0 if there is nothing to check */
    uint64_t bytes;
    /* Queues that can take blocks from the bins: the lane's queue, and a queue that waits for the entry's event. The
     * pointers are only compared. A dangling pointer is harmless: all work of a destroyed queue has ended, and a new
     * queue at the same address has only later work. */
    const gpuhal_queue *owner, *follower;
    size_t count;
    gpuhal_pool_wait waits[];
} gpuhal_pending;

typedef struct gpuhal_part {
    gpuhal_buffer buffer; /* must be first */
    gpuhal_pool *pool;
    struct gpuhal_part *next; /* in the list of spare parts or of kept parts */
    gpuhal_block_id block;
    uint32_t segment; /* number of the segment */
    uint64_t number;  /* sequence number in the pool, for the trace */
    gpuhal_lane *home; /* lane of the queue that the part was allocated for, or of the first that used it; else NULL */
    uint32_t began, made; /* its home's `operations` before and after the allocation */
    bool is_kept;      /* kept by its home since `stamp` */
    uint64_t stamp;
    uint64_t mark; /* number of the last search (compact.c) that counted the part as movable */
    gpuhal_pending *uses; /* pending entry for the release, allocated when another queue first uses the part, because a
                           * release must not fail. `uses->waits` lists the other queues. */
    size_t use_space;
    bool of_store; /* counted in `store_bytes` */
} gpuhal_part;

typedef struct gpuhal_segment {
    gpuhal_buffer *buffer; /* NULL: unused segment number */
    uint64_t bytes;
    gpuhal_block_id first; /* id of its first block, cached by sole.c */
} gpuhal_segment;

/* Memory that backs a stretch of the range. It can only be returned to the driver as a whole. */
typedef struct gpuhal_piece {
    uint64_t offset, bytes;
    gpuhal_block_id leaving; /* the block that marks it as used while it is returned to the driver; else 0 */
} gpuhal_piece;

typedef struct gpuhal_pool_range {
    gpuhal_buffer *buffer; /* NULL: none */
    uint32_t region;
    uint64_t page_bytes;  /* all pieces begin and end at multiples of this size */
    gpuhal_bins *holes;   /* addresses without memory */
    gpuhal_piece *pieces; /* lowest address first */
    size_t piece_count, piece_space;
    bool tried;    /* true after the first attempt to create the range; written by the thread that grows the pool */
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

/* The pool's regions and used blocks; all other blocks are free (sole.c). */
typedef struct gpuhal_sole {
    gpuhal_blocks blocks;
    gpuhal_bins *bins; /* NULL if there is no view */
    bool ended;        /* the view must not begin again */
} gpuhal_sole;

/* A queue's lane is in the first free slot of GPUHAL_LANE_PROBES slots, counted from the slot that the queue's address
 * hashes to. */
enum { GPUHAL_LANE_SLOT_BITS = 10, GPUHAL_LANE_SLOTS = 1 << GPUHAL_LANE_SLOT_BITS, GPUHAL_LANE_PROBES = 4 };

struct gpuhal_pool {
    gpuhal_device *device;
    gpuhal_pool *next;           /* in the gpuhal object's list; protected by gpuhal_pools.mutex */
    struct gpuhal_trace *trace;  /* the gpuhal object's trace */
    uint32_t number;             /* sequence number in the gpuhal object, for the trace */
    gpuhal_pool_desc desc;       /* with defaults filled in */
    gpuhal_tag *tag; /* for parts without a tag of their own */
    uint64_t unit; /* all blocks begin and end at a multiple of `unit` in their segment */
    bool checks;   /* checking mode; check.c */
    bool keeps;    /* the pool's lanes keep parts */
    _Atomic uint64_t limit_bytes; /* 0: none */

    gpuhal_mutex mutex;
    gpuhal_condition condition; /* signalled when a thread has finished growing the pool or changing the range */
    bool growing;               /* a thread requests a segment; other threads wait */
    gpuhal_memory_report *report; /* used only by the thread that grows the pool */
    bool insists;                 /* the thread that grows the pool requests no more than it needs */
    bool destroyed;
    bool has_unused; /* a segment or piece may have become unused since the last check */
    uint64_t references; /* the application's, one per part, and temporary ones of state.c; 0 while being freed */
    gpuhal_blocks blocks;
    gpuhal_bins *common;
    gpuhal_sole sole;
    _Atomic(gpuhal_lane *) lanes; /* oldest first */
    _Atomic(gpuhal_lane *) slots[GPUHAL_LANE_SLOTS]; /* hash table of the lanes; written with the mutex held */
    /* The lanes that keep parts, so that a search for kept parts need not visit all lanes. A thread that holds a lane's
     * mutex may add the lane at the front. Lanes other than the first may be removed; for this a thread must also hold
     * the pool's mutex. */
    _Atomic(gpuhal_lane *) keeping;
    gpuhal_pending *pending, **pending_end;
    uint64_t pending_number;  /* number of the newest entry */
    gpuhal_segment *segments; /* indexed by region number */
    _Atomic uint32_t segment_count; /* the range counts by its pieces; written with the mutex held */
    uint32_t segment_space;
    gpuhal_pool_range range;
    gpuhal_fence fence;
    uint64_t marks; /* number of searches for movable parts */
    gpuhal_part *spare, **spare_end;
    uint32_t spare_count; /* used in checking mode */
    _Atomic uint32_t changes; /* odd while a thread writes statistics; a reader retries if the number has changed */
    gpuhal_amount reserved, used, requested, buffers; /* the last three include kept parts */
    _Atomic uint64_t free_bytes, largest_bytes, unused_bytes; /* sizes of `common`'s blocks at the last change */
    _Atomic uint64_t searches_failed, out_of_memory;
    /* `store_bytes` is the sum of block bytes of parts that belong to stores; written with the pool's mutex held.
     * `fixed_bytes` is how many of these bytes no store can give up now, or less; stores write it with their mutex
     * held. */
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

typedef struct gpuhal_request {
    gpuhal_pool *pool;
    gpuhal_queue *queue;
    uint64_t bytes, block_bytes; /* as requested, and rounded up */
    uint32_t flags;
    uint64_t deadline_ns;
    bool of_store;
} gpuhal_request;

/* The functions of each file follow, lowest layer first. Each file calls only functions of the files before it. */

/* ---- kept.c */

/* Keeps a part without references, if its home can. Otherwise returns false, and the caller must release it. The caller
 * must not hold the mutex. */
bool gpuhal_part_keep(gpuhal_part *part);
/* Takes the part that the queue's lane kept last, if its size is exactly `bytes`; otherwise returns NULL. `queue` may
 * be NULL. The caller must not hold the mutex. */
gpuhal_part *gpuhal_part_take_kept(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Stops counting a part that is no longer kept. The caller holds the lane's mutex. */
void gpuhal_lane_forget(gpuhal_lane *lane, const gpuhal_part *part);
/* Adds the statistics of all lanes. Returns false if a thread changed them during the call. */
bool gpuhal_lanes_read(const gpuhal_pool *pool, uint64_t keeps[GPUHAL_SUM_COUNT], uint64_t again[GPUHAL_SUM_COUNT]);
/* Returns the block bytes of parts in use, without kept parts. The caller holds the mutex. */
uint64_t gpuhal_pool_used_now(const gpuhal_pool *pool);

/* Returns how many bytes of used blocks no store could give up now, or less. The caller holds the mutex. */
static inline uint64_t gpuhal_pool_fixed_now(const gpuhal_pool *pool)
{
    const uint64_t used = gpuhal_pool_used_now(pool), given = atomic_load(&pool->store_bytes);
    return (used > given ? used - given : 0) + atomic_load(&pool->fixed_bytes);
}

/* Counts an operation of the lane's queue. Returns the previous count. The caller holds the pool's mutex. */
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

/* Each hook costs one load while no trace is recorded. The caller of a hook that may record holds the pool's mutex, or
 * that of the pools while it creates the pool. */
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

/* Waits until no thread changes the range, or the driver hangs. The caller holds the mutex. */
void gpuhal_pool_await_pieces_unlocks(gpuhal_pool *pool);
/* Chooses a place for a piece of about `bytes` bytes. The piece has at most `room` bytes, and enough that one free
 * block will have `need` bytes. After true is returned, only this thread may change the range until
 * gpuhal_pool_end_piece(). The caller holds the mutex. */
bool gpuhal_pool_begin_piece(gpuhal_pool *pool, uint64_t bytes, uint64_t need, uint64_t room, gpuhal_hole *out_place);
/* Adds the committed bytes to the pool; 0 means that the commit failed. If out of host memory, returns the bytes to the
 * driver, and returns HOST_MEMORY. The caller must not hold the mutex. */
gpuhal_status gpuhal_pool_end_piece(gpuhal_pool *pool, const gpuhal_hole *place, uint64_t bytes);
/* Return the total size of the unused pieces, and whether a free block contains a whole piece. The caller holds the
 * mutex. */
uint64_t gpuhal_pool_unused_piece_bytes(const gpuhal_pool *pool);
bool gpuhal_pool_has_piece(const gpuhal_pool *pool, const gpuhal_block *block);
/* Excludes unused pieces from allocation until at least `want_bytes` are excluded. Returns the number of excluded
 * bytes. Unless this number is 0, the caller must call gpuhal_pool_give_pieces(). The caller holds the mutex. */
uint64_t gpuhal_pool_take_pieces(gpuhal_pool *pool, uint64_t want_bytes);
/* Returns the excluded pieces to the driver. The caller must not hold the mutex. */
void gpuhal_pool_give_pieces(gpuhal_pool *pool);
/* The range's buffer is not freed here, because it is a segment. */
void gpuhal_pool_free_range(gpuhal_pool *pool);

/* ---- pool statistics, in this file; call with the mutex held
 *
 * Each store of a value has release order, so a reader that sees a new value also sees that `changes` is odd. */

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

/* Call after a change of the common bins. */
static inline void gpuhal_pool_changed(gpuhal_pool *pool)
{
    gpuhal_pool_begin_change(pool);
    gpuhal_pool_end_change(pool);
}

/* ---- sole.c: call with the mutex held */

/* Begins the view, unless it has ended, the lane has blocks, or the pool has exportable memory, a range, a stretch or
 * pending entries. Call before a block is added to the lane of a queue with pending work. */
void gpuhal_sole_begin(gpuhal_pool *pool, const gpuhal_lane *lane);
/* Call after a queue got a lane. Ends the view if the pool has lanes of several queues. */
void gpuhal_sole_note_queue(gpuhal_pool *pool);
/* Ends the view permanently, even before it began, because other queues may take blocks from now on. */
void gpuhal_sole_end(gpuhal_pool *pool);
/* Takes a block for the only queue; `lane` is its lane. Returns 0 if none fits. Both gpuhal_blocks must be reserved. */
gpuhal_block_id gpuhal_sole_take(gpuhal_pool *pool, const gpuhal_lane *lane, uint64_t bytes);
/* Records that the used block with this twin became free and was merged into `merged`. */
void gpuhal_sole_give(gpuhal_pool *pool, gpuhal_block_id twin, gpuhal_block_id merged);
/* A removed segment must be unused. */
void gpuhal_sole_add(gpuhal_pool *pool, uint32_t region, uint64_t bytes);
void gpuhal_sole_remove(gpuhal_pool *pool, uint32_t region);

/* ---- lane.c: call with the mutex held */

/* Creates the lane if necessary. Returns NULL if out of host memory. */
gpuhal_lane *gpuhal_lane_get(gpuhal_pool *pool, gpuhal_queue *queue);
/* Takes the best block that the queue can use now. Returns 0 if none fits. `queue` may be NULL. */
gpuhal_block_id gpuhal_pool_search(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Moves neighbouring blocks that the queue can use now to its lane, so that they merge. Moves no more than `bytes`
 * requires, because other queues lose them. Returns false if there are none or `queue` is NULL. */
bool gpuhal_lane_gather(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Records that the queue uses the part. Returns false if out of host memory. */
bool gpuhal_part_add_use(gpuhal_part *part, gpuhal_queue *queue);
/* Allocates `uses` with the part's queue, which may be NULL. In checking mode every release needs `uses`. Returns false
 * if out of host memory. */
bool gpuhal_part_begin_uses(gpuhal_part *part, gpuhal_queue *queue);
/* Returns a structure for a part, new or recycled, or NULL if out of host memory. In checking mode structures are
 * recycled late. */
gpuhal_part *gpuhal_part_take(gpuhal_pool *pool);
void gpuhal_part_put_back(gpuhal_part *part);
/* Appends a new entry. gpuhal_pending_record() must record its events. */
void gpuhal_pending_append(gpuhal_pool *pool, gpuhal_pending *pending);
/* Releases the part's block behind all work that used the part, and frees the part. Returns an entry whose events
 * gpuhal_pending_record() must record, or NULL. If the part is kept, the caller must also hold the mutex of its
 * home. */
gpuhal_pending *gpuhal_part_give(gpuhal_part *part);

/* The first function releases one lane's kept parts; call it before the lane's queue allocates or releases a part that
 * is not kept. The second releases those of all lanes, and returns their number. */
void gpuhal_lane_give_kept(gpuhal_pool *pool, gpuhal_lane *lane);
uint64_t gpuhal_pool_give_kept(gpuhal_pool *pool);
/* Releases kept parts if counting this block would set a new peak. Kept and used parts together must not exceed the
 * peak; therefore taking a kept part without the mutex never sets a new peak. Call before counting the block. */
void gpuhal_pool_limit_kept(gpuhal_pool *pool, uint64_t block_bytes, uint64_t bytes);
/* Called when the pool is destroyed. The next poll releases the kept parts. */
void gpuhal_pool_close_lanes(gpuhal_pool *pool);

/* ---- segment.c */

/* Returns how many used bytes of the device's pools no store could give up now. The caller must hold no lock. */
uint64_t gpuhal_device_fixed_bytes(const gpuhal_device *device);
/* Returns OK without a check if the pool has already reserved enough memory. Otherwise returns OUT_OF_MEMORY with
 * details if `need` alone exceeds a limit of the pool or the device. If `all` is set, then also checks the control
 * group's limit, which is read from files. If `all` is set and the application has no callbacks, the used bytes that no
 * store could give up now are added to `need`, except for the control group's limit. */
gpuhal_status gpuhal_pool_check_limits(gpuhal_pool *pool, uint64_t need, bool all);
/* Allocates a segment or piece from the driver with room for `need` bytes. Returns OUT_OF_MEMORY with details if the
 * driver refuses or a limit would be exceeded. The caller must not hold the mutex. */
gpuhal_status gpuhal_pool_grow(gpuhal_pool *pool, uint64_t need);
/* Removes unused segments from the table, and then excludes unused pieces from allocation, until `want_bytes` are
 * removed or at most `keep_bytes` remain. Returns a list of buffers for gpuhal_segments_release(), linked by
 * `next_released`. *out_bytes is the number of removed bytes. The caller holds the mutex. */
gpuhal_buffer *gpuhal_pool_take_unused(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t want_bytes,
                                       uint64_t *out_bytes);
/* Return the bytes of unused segments and pieces. Call the first function with the mutex held, and the second without
 * it. The second locks the mutex only if the device has virtual memory, to search the blocks for unused pieces. */
uint64_t gpuhal_pool_unused_bytes(const gpuhal_pool *pool);
uint64_t gpuhal_pool_unused_now(gpuhal_pool *pool);
/* The caller must hold a reference to the pool, and must not hold the mutex. */
void gpuhal_segments_release(gpuhal_buffer *list);

/* ---- check.c: checking mode; call without the mutex */

/* Minimum number of guard bytes after each buffer. */
enum { GPUHAL_CHECK_BYTES = 256 };

/* Prepares a new buffer that was allocated for the queue, which may be NULL. */
gpuhal_status gpuhal_check_begin(gpuhal_buffer *buffer, gpuhal_queue *queue);
/* Checks a released buffer's memory once, after the earlier work of the queues that used it has ended. */
void gpuhal_check_end(gpuhal_pool *pool, gpuhal_pending *pending);
void gpuhal_check_released_twice(gpuhal_buffer *buffer);

/* ---- pending.c: memory that other queues can use once work has ended; call without the mutex */

void gpuhal_pending_record(gpuhal_pool *pool, gpuhal_pending *pending);
/* Frees the blocks of entries whose work has ended, and makes idle queues' lanes common. Returns the number of
 * bytes. */
uint64_t gpuhal_pool_poll(gpuhal_pool *pool);
/* Makes the lane of each other queue pending if it has `bytes` in one block. Returns the newest entry's number. */
uint64_t gpuhal_pool_part_lanes(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Makes the queue wait for the oldest entry that has `bytes` in one block and that the queue may wait for. The queue
 * can then use all blocks of the entry; *out_bytes is their size. Returns false if there is no such entry. */
bool gpuhal_pool_follow(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes);
/* If this queue already waits for an event of another queue, lets it use the memory that the other queue released
 * before that event. One block of the memory must have `bytes`. *out_bytes is the memory's size. Returns false if there
 * is no such memory. */
bool gpuhal_pool_follow_event(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes);
/* Makes each queue keep the segments alive as long as its work may use them. */
void gpuhal_pool_hold_segments(gpuhal_pool *pool);
void gpuhal_pending_free_all(gpuhal_pool *pool);
/* Waits for the oldest entry. Returns false if all entries are newer than number `newest`, or at the deadline. */
bool gpuhal_pool_wait_oldest(gpuhal_pool *pool, uint64_t newest, uint64_t deadline_ns);

/* ---- compact.c: for owners of movable parts; call without the mutex */

/* Returns whether the scattered free memory plus the memory that the driver may still provide is at least `bytes`. */
bool gpuhal_compact_may_help(gpuhal_pool *pool, uint64_t bytes);
/* Chooses a stretch of at least `bytes` bytes, or a whole segment if `bytes` is 0. All used blocks in the stretch must
 * be `movable` parts, and there must be room for them elsewhere. Among several stretches, chooses the one with the
 * fewest bytes to move. Memory behind work that does not end before the deadline counts as used. From now on no block
 * is allocated in the stretch. Returns the stretch's size, or 0 if there is none or another thread is compacting.
 * Unless the result is 0, the caller must call gpuhal_compact_end(). */
uint64_t gpuhal_compact_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes,
                              uint64_t deadline_ns);
/* Returns whether the part begins in the stretch. */
bool gpuhal_compact_has(gpuhal_pool *pool, const gpuhal_buffer *buffer);
/* Releases the old blocks of parts that were moved. */
void gpuhal_compact_release(gpuhal_pool *pool, gpuhal_buffer *const *moved, size_t count);
/* Makes the stretch common. Returns false if part of the stretch is still in use, for example because work on the old
 * blocks did not end before the deadline. */
bool gpuhal_compact_end(gpuhal_pool *pool, uint64_t deadline_ns);
/* Returns unused segments to the driver until at least `bytes` are returned. Returns the number of bytes. */
uint64_t gpuhal_compact_trim(gpuhal_pool *pool, uint64_t bytes);

/* ---- ladder.c */

/* Tries each step of the ladder after a search has failed. Returns OK with a block, or the error. */
gpuhal_status gpuhal_pool_climb(const gpuhal_request *request, gpuhal_block_id *out_block);
/* Refuses a request that exceeds a limit, like gpuhal_pool_climb(), but tries no rung: a store must not evict entries
 * for such a request. Returns OUT_OF_MEMORY with its report. */
gpuhal_status gpuhal_pool_check_request(const gpuhal_request *request);
/* Returns the time until which to wait for work if there are sources to call. It is before the deadline, so that the
 * sources have time. */
uint64_t gpuhal_ladder_patience(uint64_t deadline_ns);
/* Sizes for an allocation that may wait for work. */
typedef struct gpuhal_shortage {
    uint64_t bytes;         /* needed */
    uint64_t ordered_bytes; /* will be free once queued work has ended */
    uint64_t free_bytes;    /* free in the pool; 0 without a pool */
    uint64_t left_bytes;    /* free outside the pool, according to the last failure's report; UINT64_MAX if unknown */
} gpuhal_shortage;
/* Called once all work that was enqueued before the wait has ended. Returns whether to wait for newer work too. */
bool gpuhal_ladder_waits_on(const gpuhal_shortage *shortage, uint64_t deadline_ns, uint64_t callers_deadline_ns);

/* ---- statistics.c */

/* Reads a statistic, with or without the mutex. */
gpuhal_pool_amount gpuhal_amount_read(const gpuhal_amount *figure);

/* ---- pool.c */

/* Allocates for a store, like gpuhal_pool_allocate(). */
gpuhal_status gpuhal_pool_allocate_for_store(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                             uint64_t timeout_ns, gpuhal_buffer **out_buffer);
/* Counts an application's part as a store's, even if the store then refuses it. */
void gpuhal_part_join_store(gpuhal_buffer *buffer);
/* Releases one reference. The caller must hold no lock. */
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

/* Polls, and returns unused segments to the driver until `want_bytes` are returned or only `keep_bytes` remain. May
 * return HOST_MEMORY. */
gpuhal_status gpuhal_pools_trim(gpuhal *gpu, const gpuhal_device *device, uint64_t keep_bytes, uint64_t want_bytes,
                                uint64_t *out_polled, uint64_t *out_freed);
/* Makes all lanes pending. May return HOST_MEMORY. */
gpuhal_status gpuhal_pools_part_lanes(const gpuhal_device *device);
/* Adds the device's memory, and how much of it is in pools, to the report of an allocation outside pools. */
void gpuhal_pools_report(const gpuhal_device *device, gpuhal_memory_report *report);

/* ---- relief.c, for hal/gpuhal.c */

/* Implements gpuhal_layers.relieve, as gpuhal/pool.h specifies for buffers outside pools. */
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
