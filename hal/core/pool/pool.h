/* pool/pool.h: a pool as the files of this folder see it.
 *
 * A pool has segments, which are buffers of the device, and a table of the blocks in them (memory/blocks.h). A block is
 * either in use as a part, or free in the bins of one owner: of all queues (`common`), of a lane, or of a pending
 * entry. If the plugin has virtual memory, one segment is the range: addresses, with pieces of memory behind some of
 * them (piece.c).
 *
 * A lane belongs to a queue. Its bins have the blocks that were released behind work of that queue, which can take them
 * again at once. Blocks released while the queue has no work are common. While only one queue uses the pool, a second
 * view of the blocks has both kinds in one set of bins and serves its requests (sole.c).
 *
 * A lane keeps parts that were released in the reverse order of their allocation as they are, for the next requests of
 * its queue, so that threads with different queues do not wait for each other (kept.c). When another owner needs the
 * blocks of a lane, an event is recorded in its queue, and all these blocks become pending behind it. A single block
 * that several queues have used is pending behind an event of each. Pending blocks become common once all their events
 * are done.
 *
 * `mutex` protects all members that are not atomic. It is never held across a call of a plugin, of a queue or of the
 * application. Lanes stay until the pool is freed, so a thread may walk them without the mutex. A lane's queue may
 * change meanwhile, unless it is the thread's own.
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

/* Sums over parts: bytes of their blocks, bytes as requested, and the number of parts. */
enum { GPUHAL_SUM_USED, GPUHAL_SUM_REQUESTED, GPUHAL_SUM_BUFFERS, GPUHAL_SUM_COUNT };

/* `stamp` of a block in the bins is gpuhal_timepoint_newest() when it was released, or later. */
typedef struct gpuhal_lane {
    _Atomic(struct gpuhal_lane *) next; /* a newer one */
    _Atomic(gpuhal_queue *) queue; /* with a reference to the structure; NULL: to be used again */
    gpuhal_bins *bins;
    _Atomic(struct gpuhal_lane *) *slot; /* the pool's slot that leads to it; NULL: only the list does */
    uint64_t submitted;     /* by its queue, at the last release behind it */
    uint64_t idle_releases; /* since `submitted` changed */
    uint64_t parts; /* parts whose home it is; it keeps its queue until all their blocks have come back */
    struct gpuhal_lane *keeping; /* the next one in the pool's list */
    gpuhal_mutex mutex; /* protects the members below; locked after the pool's */
    struct gpuhal_part *kept; /* newest first; the table and the pool's figures count them as in use */
    bool listed; /* in the pool's list `keeping`, as is every lane that keeps anything */
    bool closed; /* keeps no more: the pool is destroyed */
    _Atomic uint32_t operations; /* allocations and releases of its queue that took the pool's mutex */
    _Atomic uint32_t changes; /* like the pool's `changes` */
    _Atomic uint64_t keeps[GPUHAL_SUM_COUNT], again[GPUHAL_SUM_COUNT]; /* of `kept`, and of all parts taken from it */
} gpuhal_lane;

/* A queue whose work has to end. */
typedef struct gpuhal_pool_wait {
    gpuhal_queue *queue;         /* with a reference */
    gpuhal_timepoint *timepoint; /* NULL: could not be recorded yet */
} gpuhal_pool_wait;

typedef struct gpuhal_pending {
    struct gpuhal_pending *next; /* older ones come first */
    uint64_t number;             /* counts the pool's, for the order */
    uint32_t users;              /* threads that look at it without the mutex */
    bool recording;              /* one of them may change `waits`, so no other may read them */
    gpuhal_bins *bins;           /* the bins of a lane; NULL: one block, still in use according to the table */
    gpuhal_block_id block;
    gpuhal_lane *home; /* home of the released part, which still counts there; NULL: it had none */
    const gpuhal_tag *tag; /* of the released buffer, with its bytes, until they are checked; else 0 */
    uint64_t bytes;
    /* Queues that can take blocks from the bins: the lane's, and one that waits for it. They are only compared: all
     * work of a queue that is gone has ended, and the work of a new queue at its address comes later. */
    const gpuhal_queue *owner, *follower;
    size_t count;
    gpuhal_pool_wait waits[];
} gpuhal_pending;

typedef struct gpuhal_part {
    gpuhal_buffer buffer; /* comes first */
    gpuhal_pool *pool;
    struct gpuhal_part *next; /* while it is spare or kept */
    gpuhal_block_id block;
    uint32_t segment; /* its number */
    uint64_t number;  /* counts the pool's buffers, for the trace */
    gpuhal_lane *home; /* of the queue it was allocated for, or of the first queue that used it; NULL: none did */
    uint32_t began, made; /* its home's `operations` before and after it was allocated */
    bool is_kept;      /* by its home, since `stamp` */
    uint64_t stamp;
    uint64_t mark; /* number of the last search that could move it; compact.c */
    gpuhal_pending *uses; /* the entry for its release, if other queues have used it: made at the first such use, since
                             a release cannot fail. Its `waits` have the other queues. */
    size_t use_space;
    bool of_store; /* counted in the pool's `store_bytes` */
} gpuhal_part;

typedef struct gpuhal_segment {
    gpuhal_buffer *buffer; /* NULL: no segment has this number */
    uint64_t bytes;
    gpuhal_block_id first; /* its first block at the last look; sole.c */
} gpuhal_segment;

/* Memory behind a stretch of the range. The driver takes it back only as a whole. */
typedef struct gpuhal_piece {
    uint64_t offset, bytes;
    gpuhal_block_id leaving; /* its used block while the driver takes it back; else 0 */
} gpuhal_piece;

typedef struct gpuhal_pool_range {
    gpuhal_buffer *buffer; /* NULL: none */
    uint32_t region;
    uint64_t page_bytes;  /* all pieces begin and end at multiples of it */
    gpuhal_bins *holes;   /* addresses without memory */
    gpuhal_piece *pieces; /* the lowest first */
    size_t piece_count, piece_space;
    bool tried;    /* there is a range, or there will be none; written by the thread that grows the pool */
    bool changing; /* a thread has the driver put memory there or take it back */
} gpuhal_pool_range;

/* A place in the range for a new piece. */
typedef struct gpuhal_hole {
    gpuhal_block_id hole;
    uint64_t offset, least, most; /* `least` bytes suffice, `most` are asked for */
} gpuhal_hole;

/* Written with the mutex held, between gpuhal_pool_begin_change() and gpuhal_pool_end_change(); read without. */
typedef struct gpuhal_amount {
    _Atomic uint64_t in, out, peak;
} gpuhal_amount;

/* A stretch of a segment that is being emptied, with bins for its free blocks. compact.c */
typedef struct gpuhal_fence {
    gpuhal_bins *bins; /* NULL: there is none */
    uint32_t region;
    uint64_t begin, bytes;
} gpuhal_fence;

/* The blocks as the pool's only queue can use them: the pool's regions and used blocks, the rest free. sole.c */
typedef struct gpuhal_sole {
    gpuhal_blocks blocks;
    gpuhal_bins *bins; /* NULL: there is no such view */
    bool ended;        /* it will not begin again */
} gpuhal_sole;

/* A queue's lane is in the first slot that was free, out of GPUHAL_LANE_PROBES from the slot that the queue's address
 * gives. */
enum { GPUHAL_LANE_SLOT_BITS = 10, GPUHAL_LANE_SLOTS = 1 << GPUHAL_LANE_SLOT_BITS, GPUHAL_LANE_PROBES = 4 };

struct gpuhal_pool {
    gpuhal_device *device;
    gpuhal_pool *next;           /* in the object's list; protected by gpuhal_pools.mutex */
    struct gpuhal_trace *trace;  /* of the object */
    uint32_t number;             /* counts the object's pools, for the trace */
    gpuhal_pool_desc desc;       /* with defaults filled in */
    gpuhal_tag *tag; /* of parts that get no other tag */
    uint64_t unit; /* every block begins and ends at a multiple of it in its segment */
    bool checks;   /* checking mode; check.c */
    bool keeps;    /* its lanes keep parts */
    _Atomic uint64_t limit_bytes; /* 0: none */

    gpuhal_mutex mutex;
    gpuhal_condition condition; /* a thread has finished growing the pool or changing the range */
    bool growing;               /* one thread at a time asks for a segment, so none is asked for in vain */
    gpuhal_memory_report *report; /* of the thread that grows the pool, which alone uses it */
    bool insists;                 /* that thread asks for no more than it needs */
    bool destroyed;
    bool has_unused; /* a whole segment may have become free since the last look */
    uint64_t references; /* the application's, and one for each part; 0: being freed */
    gpuhal_blocks blocks;
    gpuhal_bins *common;
    gpuhal_sole sole;
    _Atomic(gpuhal_lane *) lanes; /* the oldest first */
    _Atomic(gpuhal_lane *) slots[GPUHAL_LANE_SLOTS]; /* hash table of the lanes; written with the mutex held */
    /* The lanes that keep parts, so that nothing looks for them among hundreds. Any thread adds at the front, with the
     * lane's mutex held. A lane that is not the first is taken out with this mutex held, too. */
    _Atomic(gpuhal_lane *) keeping;
    gpuhal_pending *pending, **pending_end;
    uint64_t pending_number;  /* of the newest entry so far */
    gpuhal_segment *segments; /* by the number of their region */
    _Atomic uint32_t segment_count; /* each piece of the range counts; written with the mutex held */
    uint32_t segment_space;
    gpuhal_pool_range range;
    gpuhal_fence fence;
    uint64_t marks; /* number of searches for movable parts */
    gpuhal_part *spare, **spare_end;
    uint32_t spare_count; /* in checking mode */
    _Atomic uint32_t changes; /* odd while figures are written: a reader that finds another number tries again */
    gpuhal_amount reserved, used, requested, buffers; /* the last three include kept parts */
    _Atomic uint64_t free_bytes, largest_bytes, unused_bytes; /* of `common`, as of the last change */
    _Atomic uint64_t searches_failed, out_of_memory;
    /* Bytes of blocks that are parts of stores, written with this mutex held; and how many of them cannot leave now,
     * never too many, written by stores with the store's mutex held. */
    _Atomic uint64_t store_bytes, fixed_bytes;
};

/* All pools of a gpuhal object, also destroyed ones whose parts are in use. */
typedef struct gpuhal_pools {
    gpuhal_mutex mutex; /* protects the list and the count; locked before a pool's */
    gpuhal_pool *first;
    gpuhal_pressure pressure;
    uint32_t created;
    gpuhal_trace trace;
    _Atomic uint32_t maintained; /* calls of gpuhal_maintain() */
} gpuhal_pools;

/* An allocation that is under way. */
typedef struct gpuhal_request {
    gpuhal_pool *pool;
    gpuhal_queue *queue;
    uint64_t bytes, block_bytes; /* as requested, and rounded */
    uint32_t flags;
    uint64_t deadline_ns;
    bool of_store;
} gpuhal_request;

/* The functions of each file follow, from the bottom: each file calls only those above it here. */

/* ---- kept.c */

/* Keeps a part without references if its home can. False: the caller must give it back. Without the mutex. */
bool gpuhal_part_keep(gpuhal_part *part);
/* Takes the part that was kept last if it has exactly `bytes`, for the queue, which may be NULL; else returns NULL.
 * Without the mutex. */
gpuhal_part *gpuhal_part_take_kept(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Stops counting a part that is kept no longer. With the lane's mutex held. */
void gpuhal_lane_forget(gpuhal_lane *lane, const gpuhal_part *part);
/* Adds the figures of all lanes. Returns whether no thread changed them meanwhile. */
bool gpuhal_lanes_read(const gpuhal_pool *pool, uint64_t keeps[GPUHAL_SUM_COUNT], uint64_t again[GPUHAL_SUM_COUNT]);
/* Returns the bytes of blocks that are parts now, without kept ones. With the mutex held. */
uint64_t gpuhal_pool_used_now(const gpuhal_pool *pool);

/* Returns the bytes of used blocks that no store could give up now, never too many. With the mutex held. */
static inline uint64_t gpuhal_pool_fixed_now(const gpuhal_pool *pool)
{
    const uint64_t used = gpuhal_pool_used_now(pool), given = atomic_load(&pool->store_bytes);
    return (used > given ? used - given : 0) + atomic_load(&pool->fixed_bytes);
}

/* Counts an operation and returns how many there were before. With the pool's mutex held. */
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

/* Returns a slot from the upper bits of the product, which depend on the whole address. */
static inline size_t gpuhal_lane_slot(const gpuhal_queue *queue, size_t probe)
{
    const uint32_t mixed = (uint32_t)((uintptr_t)queue >> 4) * UINT32_C(0x9e3779b1);
    return ((mixed >> (32 - GPUHAL_LANE_SLOT_BITS)) + probe) % GPUHAL_LANE_SLOTS;
}

/* Returns the lane of a queue; NULL: the queue has none. The caller holds the mutex or is in a call of the queue. */
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

/* The hooks, with the pool's mutex held. Each costs one load while there is no trace. */
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

/* Waits until no thread changes the range, or the driver hangs. With the mutex held. */
void gpuhal_pool_await_pieces_unlocks(gpuhal_pool *pool);
/* Chooses a place for a piece of `bytes`: at most `room`, and enough that `need` bytes are free in one block. After
 * true, only this thread changes the range until gpuhal_pool_end_piece(). With the mutex held. */
bool gpuhal_pool_begin_piece(gpuhal_pool *pool, uint64_t bytes, uint64_t need, uint64_t room, gpuhal_hole *out_place);
/* Adds the bytes that were committed there; 0: none were. On HOST_MEMORY they are given back. Without the mutex. */
gpuhal_status gpuhal_pool_end_piece(gpuhal_pool *pool, const gpuhal_hole *place, uint64_t bytes);
/* Returns the bytes of wholly unused pieces; and whether a free block has a whole piece. With the mutex held. */
uint64_t gpuhal_pool_unused_piece_bytes(const gpuhal_pool *pool);
bool gpuhal_pool_has_piece(const gpuhal_pool *pool, const gpuhal_block *block);
/* Withdraws unused pieces from allocation until `want_bytes` are reached. Returns their bytes. Unless that is 0,
 * gpuhal_pool_give_pieces() must follow. With the mutex held. */
uint64_t gpuhal_pool_take_pieces(gpuhal_pool *pool, uint64_t want_bytes);
/* Gives them back to the driver. Without the mutex. */
void gpuhal_pool_give_pieces(gpuhal_pool *pool);
/* Frees the range when the pool ends, except its buffer, which is a segment like any other. */
void gpuhal_pool_free_range(gpuhal_pool *pool);

/* ---- figures of pools, in this file; with the mutex held

 * Each store releases those before it, so that a reader that finds a new figure also finds `changes` odd. */

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

/* Updates the figures after blocks were moved to the common bins or out of them. */
static inline void gpuhal_pool_changed(gpuhal_pool *pool)
{
    gpuhal_pool_begin_change(pool);
    gpuhal_pool_end_change(pool);
}

/* ---- sole.c: with the mutex held */

/* Begins the view, if only this lane's queue ever used the pool. Called before a block comes to the lane of a queue
 * that has work. */
void gpuhal_sole_begin(gpuhal_pool *pool, const gpuhal_lane *lane);
/* Notes that the pool has a lane for one more queue. */
void gpuhal_sole_note_queue(gpuhal_pool *pool);
/* Ends the view for good, since others than the only queue may take blocks from now on. */
void gpuhal_sole_end(gpuhal_pool *pool);
/* Takes a block for the only queue, whose lane this is; 0: none fits. Both gpuhal_blocks have been reserved. */
gpuhal_block_id gpuhal_sole_take(gpuhal_pool *pool, const gpuhal_lane *lane, uint64_t bytes);
/* Notes that a used block with this twin has become free, merged into `merged`. */
void gpuhal_sole_give(gpuhal_pool *pool, gpuhal_block_id twin, gpuhal_block_id merged);
/* Add a segment to the view; remove an unused one. */
void gpuhal_sole_add(gpuhal_pool *pool, uint32_t region, uint64_t bytes);
void gpuhal_sole_remove(gpuhal_pool *pool, uint32_t region);

/* ---- lane.c: with the mutex held */

/* Returns the lane of a queue, and makes a missing one; NULL without memory. */
gpuhal_lane *gpuhal_lane_get(gpuhal_pool *pool, gpuhal_queue *queue);
/* Takes a block for the queue (NULL: none): the best fit among those it can use now; 0: none fits. */
gpuhal_block_id gpuhal_pool_search(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Merges neighbours that the queue can use at once in its lane. It merges no more than `bytes` need, since other queues
 * lose them. False: there are none, or no queue (NULL). */
bool gpuhal_lane_gather(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Adds a queue that uses the part; false without memory. */
bool gpuhal_part_add_use(gpuhal_part *part, gpuhal_queue *queue);
/* Makes `uses`, with the queue that the part is for (may be NULL): in checking mode every release needs it. */
bool gpuhal_part_begin_uses(gpuhal_part *part, gpuhal_queue *queue);
/* Returns an old or new structure for a part; NULL without memory. In checking mode it was released long ago. */
gpuhal_part *gpuhal_part_take(gpuhal_pool *pool);
void gpuhal_part_put_back(gpuhal_part *part);
/* Adds a new entry. gpuhal_pending_record() must record its events. */
void gpuhal_pending_append(gpuhal_pool *pool, gpuhal_pending *pending);
/* Gives a block back behind all work that used the part, and frees the part. Returns an entry whose events
 * gpuhal_pending_record() must record, or NULL. The caller also holds the home's mutex if the part is kept. */
gpuhal_pending *gpuhal_part_give(gpuhal_part *part);

/* Give back the kept parts of a lane, before its queue allocates or releases a part that is not kept; and of all lanes.
 * The latter returns how many parts. */
void gpuhal_lane_give_kept(gpuhal_pool *pool, gpuhal_lane *lane);
uint64_t gpuhal_pool_give_kept(gpuhal_pool *pool);
/* Gives kept parts back if counting this block would make a new peak: kept and used parts must not exceed the peak, so
 * that taking a part without the mutex never makes a new one. Called before the block is counted. */
void gpuhal_pool_limit_kept(gpuhal_pool *pool, uint64_t block_bytes, uint64_t bytes);
/* Ends keeping, since the pool was destroyed. Kept parts come back with the next poll. */
void gpuhal_pool_close_lanes(gpuhal_pool *pool);

/* ---- segment.c */

/* Returns the bytes of the device's pools that no store could give up now. The caller holds no lock. */
uint64_t gpuhal_device_fixed_bytes(const gpuhal_device *device);
/* Returns OUT_OF_MEMORY with its detail if `need` alone exceeds a limit of the pool or the device. With `all` it also
 * counts the limit of a control group, which it reads from files, and adds the bytes that no store could give up now to
 * the request, unless the application has callbacks. */
gpuhal_status gpuhal_pool_check_limits(gpuhal_pool *pool, uint64_t need, bool all);
/* Asks the driver for memory with room for `need` bytes. OUT_OF_MEMORY with its detail, also above a limit. Without the
 * mutex. */
gpuhal_status gpuhal_pool_grow(gpuhal_pool *pool, uint64_t need);
/* Takes unused segments out of the table until `want_bytes` are reached or at most `keep_bytes` are left. Returns a
 * list of buffers for gpuhal_segments_release(), linked by `next_released`. With the mutex held. */
gpuhal_buffer *gpuhal_pool_take_unused(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t want_bytes,
                                       uint64_t *out_bytes);
/* Return the bytes of unused segments and pieces: with the mutex held; and without it. The latter takes it only if the
 * device has virtual memory, since pieces are found among the blocks. */
uint64_t gpuhal_pool_unused_bytes(const gpuhal_pool *pool);
uint64_t gpuhal_pool_unused_now(gpuhal_pool *pool);
/* Releases such a list. Without the mutex, with a reference to the pool. */
void gpuhal_segments_release(gpuhal_buffer *list);

/* ---- check.c: in checking mode. Without the mutex. */

/* Bytes behind each buffer that belong to it. */
enum { GPUHAL_CHECK_BYTES = 256 };

/* Prepares a new buffer of a queue, which may be NULL. */
gpuhal_status gpuhal_check_begin(gpuhal_buffer *buffer, gpuhal_queue *queue);
/* Checks the memory of a released buffer once, after the work before its release has ended. */
void gpuhal_check_end(gpuhal_pool *pool, gpuhal_pending *pending);
void gpuhal_check_released_twice(gpuhal_buffer *buffer);

/* ---- pending.c: memory that others can use once work has ended. Without the mutex. */

/* Records the missing events. */
void gpuhal_pending_record(gpuhal_pool *pool, gpuhal_pending *pending);
/* Makes memory common whose work has ended: pending entries, and lanes of idle queues. Returns how many bytes. */
uint64_t gpuhal_pool_poll(gpuhal_pool *pool);
/* Makes the lanes of other queues pending that have `bytes` in one block. Returns the number of the newest entry. */
uint64_t gpuhal_pool_part_lanes(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Makes the queue wait for the oldest entry that has `bytes` in one block, so that it can use all of the entry:
 * *out_bytes. False: none suits. */
bool gpuhal_pool_follow(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes);
/* Lets the queue use memory that another queue released before an event this queue already waits for, if one block of
 * it has `bytes`: *out_bytes in all. False: there is none. */
bool gpuhal_pool_follow_event(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes);
/* Makes queues hold the segments while they may use them, when the pool ends. */
void gpuhal_pool_hold_segments(gpuhal_pool *pool);
void gpuhal_pending_free_all(gpuhal_pool *pool);
/* Waits for the oldest entry. False: none is as old as the one with number `newest`, or the time is over. */
bool gpuhal_pool_wait_oldest(gpuhal_pool *pool, uint64_t newest, uint64_t deadline_ns);

/* ---- compact.c: without the mutex; for owners of parts that can move them */

/* Returns whether free memory in pieces and memory that the driver may still give suffice together for `bytes`. */
bool gpuhal_compact_may_help(gpuhal_pool *pool, uint64_t bytes);
/* Chooses a stretch of `bytes` (0: a whole segment) where only `movable` parts are used and find room elsewhere; of
 * several the one with the least to move. Memory behind work that does not end before the deadline is used. From now on
 * nothing is placed there. Returns its bytes; 0: there is none, or another thread has one. Unless it is 0,
 * gpuhal_compact_end() must follow. */
uint64_t gpuhal_compact_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes,
                              uint64_t deadline_ns);
/* Returns whether a part lies there. */
bool gpuhal_compact_has(gpuhal_pool *pool, const gpuhal_buffer *buffer);
/* Releases parts that have moved, so that nothing is placed where they were. */
void gpuhal_compact_release(gpuhal_pool *pool, gpuhal_buffer *const *moved, size_t count);
/* Makes the freed memory common. False: not all is free, for example because work that uses the old places did not end
 * before the deadline. */
bool gpuhal_compact_end(gpuhal_pool *pool, uint64_t deadline_ns);
/* Gives unused segments back until `bytes` are reached. Returns how many bytes. */
uint64_t gpuhal_compact_trim(gpuhal_pool *pool, uint64_t bytes);

/* ---- ladder.c */

/* Climbs the ladder after a search has failed. Returns OK with a block, or the error. */
gpuhal_status gpuhal_pool_climb(const gpuhal_request *request, gpuhal_block_id *out_block);
/* Refuses a request above a limit of the pool or the device, as climbing does, and does nothing else: a store's entries
 * shall not leave for such a request. OUT_OF_MEMORY with its report. */
gpuhal_status gpuhal_pool_check_request(const gpuhal_request *request);
/* Returns until when to wait for work while there are sources to ask, so that they have time, too. */
uint64_t gpuhal_ladder_patience(uint64_t deadline_ns);
/* Figures of an allocation that may wait for work. */
typedef struct gpuhal_shortage {
    uint64_t bytes;         /* needed */
    uint64_t ordered_bytes; /* free once queued work ends */
    uint64_t free_bytes;    /* free in the pool; else 0 */
    uint64_t left_bytes;    /* free outside, as the last refusal states; UINT64_MAX: not known */
} gpuhal_shortage;
/* Returns whether to wait for newer work, too, after all work has ended that was enqueued when a wait began. */
bool gpuhal_ladder_waits_on(const gpuhal_shortage *shortage, uint64_t deadline_ns, uint64_t callers_deadline_ns);

/* ---- statistics.c */

/* Reads a figure, with or without the mutex. */
gpuhal_pool_amount gpuhal_amount_read(const gpuhal_amount *figure);

/* ---- pool.c */

/* Allocates for a store, as gpuhal_pool_allocate(). */
gpuhal_status gpuhal_pool_allocate_for_store(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                             uint64_t timeout_ns, gpuhal_buffer **out_buffer);
/* Counts a part that the application allocated as a store's. It stays counted so, even if the store refuses it. */
void gpuhal_part_join_store(gpuhal_buffer *buffer);
/* Gives back one reference. The thread holds no lock. */
void gpuhal_pool_unreference(gpuhal_pool *pool);

/* ---- left.c, for hal/gpuhal.c */

void gpuhal_pools_report_left(gpuhal *gpu);

/* ---- pool.c and state.c, for hal/gpuhal.c */

gpuhal_pools *gpuhal_pools_create(void);
void gpuhal_pools_destroy(gpuhal_pools *pools);
void gpuhal_part_release(gpuhal_buffer *buffer);
gpuhal_status gpuhal_part_use(gpuhal_buffer *buffer, gpuhal_queue *queue);
gpuhal_buffer *gpuhal_part_find(gpuhal_buffer *segment, uint64_t *offset);

/* ---- state.c, of all pools of a device, or of an object (NULL) */

/* Polls, and gives unused segments back until `want_bytes` are reached or only `keep_bytes` are left. HOST_MEMORY. */
gpuhal_status gpuhal_pools_trim(gpuhal *gpu, const gpuhal_device *device, uint64_t keep_bytes, uint64_t want_bytes,
                                uint64_t *out_polled, uint64_t *out_freed);
/* Makes all lanes pending. HOST_MEMORY. */
gpuhal_status gpuhal_pools_part_lanes(const gpuhal_device *device);
/* Completes the report of an allocation outside pools: the device's memory, and how much of it is in pools. */
void gpuhal_pools_report(const gpuhal_device *device, gpuhal_memory_report *report);

/* ---- relief.c, for hal/gpuhal.c */

/* Implements gpuhal_layers.relieve, as the public pool.h describes for buffers outside pools. */
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
