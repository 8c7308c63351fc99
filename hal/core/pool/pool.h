/* pool/pool.h: a pool as the files of this folder see it.
 *
 * A pool has segments, buffers of the device, and a table of the blocks in them (memory/blocks.h). A block is out, as a
 * part, or free in the bins of one owner: of everybody (`common`), of a lane, or of a pending. Where the plugin has
 * virtual memory, one segment is the range: addresses, and pieces of memory behind some of them (piece.c).
 *
 * A lane belongs to a queue. Its bins have the blocks that were released behind work of that queue, which may take them
 * again at once; what is released while the queue has no work is common. While one queue alone uses the pool, a second
 * view of the blocks has both in one set of bins, and its requests are served from there (sole.c).
 *
 * Parts that were released in the reverse order of their allocation a lane keeps as they are, for the next requests of
 * its queue: so threads with queues of their own do not wait for each other (kept.c). When another owner needs the
 * blocks, an event is recorded in the queue, and all blocks of the lane become pending behind it. A single block that
 * several queues have used is pending behind an event of each. What is pending becomes common once all its events are
 * done.
 *
 * `mutex` protects everything that is not atomic. It is never held across a call of a plugin, of a queue or of the
 * application. Lanes stay until the pool is freed, so a thread may go through them without the mutex; the queue of one
 * may change then, unless it is the thread's own.
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

/* Sums over parts: bytes of their blocks, bytes as asked for, and how many there are. */
enum { GPUHAL_SUM_USED, GPUHAL_SUM_REQUESTED, GPUHAL_SUM_BUFFERS, GPUHAL_SUM_COUNT };

/* `stamp` of a block in the bins is gpuhal_timepoint_newest() when it was released, or later. */
typedef struct gpuhal_lane {
    _Atomic(struct gpuhal_lane *) next; /* a newer one */
    _Atomic(gpuhal_queue *) queue; /* with a reference to the structure; NULL: to be used again */
    gpuhal_bins *bins;
    _Atomic(struct gpuhal_lane *) *slot; /* of the pool, which leads to it; NULL: only the list does */
    uint64_t submitted;     /* by its queue, at the last release behind it */
    uint64_t idle_releases; /* since that changed */
    uint64_t parts; /* whose home it is, until their blocks have come back: it has its queue as long */
    struct gpuhal_lane *keeping; /* the next one in the pool's list */
    gpuhal_mutex mutex; /* protects what follows; locked after the pool's */
    struct gpuhal_part *kept; /* the newest first; for the table and in the pool's figures they are out */
    bool listed; /* in the pool's list `keeping`: one that keeps anything always is */
    bool closed; /* keeps no more: the pool is destroyed */
    _Atomic uint32_t operations; /* allocations and releases of its queue that took the pool's mutex */
    _Atomic uint32_t changes; /* as the pool's */
    _Atomic uint64_t keeps[GPUHAL_SUM_COUNT], again[GPUHAL_SUM_COUNT]; /* of `kept`, and of all that came of it */
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
    gpuhal_bins *bins;           /* of a lane; NULL: one block, which is still out for the table */
    gpuhal_block_id block;
    gpuhal_lane *home; /* of the part that the block was, and still counts for there; NULL: it had none */
    const gpuhal_tag *tag; /* of the buffer that the block was, and its bytes, until they are checked; else 0 */
    uint64_t bytes;
    /* Queues that may take of the bins: the lane's, and one that waits for it. Only compared: the work of one that is
     * gone has ended, and that of a new one at its address comes later. */
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
    gpuhal_lane *home; /* of the queue that it was given to, or the first that used it; NULL: none did */
    uint32_t began, made; /* its home's `operations` before and after it was allocated */
    bool is_kept;      /* by its home, since `stamp` */
    uint64_t stamp;
    uint64_t mark; /* the last search for what can move that it could move in; compact.c */
    gpuhal_pending *uses; /* what it will be released behind, where other queues have used it: made when the first does,
                             since a release cannot fail. Its `waits` have the other queues. */
    size_t use_space;
    bool of_store; /* counted in `store_bytes` of the pool */
} gpuhal_part;

typedef struct gpuhal_segment {
    gpuhal_buffer *buffer; /* NULL: no segment has this number */
    uint64_t bytes;
    gpuhal_block_id first; /* its first block was this one, at the last look; sole.c */
} gpuhal_segment;

/* Memory behind a part of the range: the driver takes it back whole. */
typedef struct gpuhal_piece {
    uint64_t offset, bytes;
    gpuhal_block_id leaving; /* while it is given back: the used block that it is; else 0 */
} gpuhal_piece;

typedef struct gpuhal_pool_range {
    gpuhal_buffer *buffer; /* NULL: none */
    uint32_t region;
    uint64_t page_bytes;  /* all pieces begin and end at multiples of it */
    gpuhal_bins *holes;   /* addresses without memory */
    gpuhal_piece *pieces; /* the lowest first */
    size_t piece_count, piece_space;
    bool tried;    /* written by the thread that grows the pool: there is a range, or there will be none */
    bool changing; /* a thread has the driver put memory there or take it back */
} gpuhal_pool_range;

/* Where in the range a piece may be added. */
typedef struct gpuhal_hole {
    gpuhal_block_id hole;
    uint64_t offset, least, most; /* bytes that suffice, and bytes that are meant */
} gpuhal_hole;

/* Written with the mutex held, between gpuhal_pool_begin_change() and gpuhal_pool_end_change(); read without. */
typedef struct gpuhal_amount {
    _Atomic uint64_t in, out, peak;
} gpuhal_amount;

/* A stretch of a segment that is to come free: what is free in it already. compact.c */
typedef struct gpuhal_fence {
    gpuhal_bins *bins; /* NULL: there is none */
    uint32_t region;
    uint64_t begin, bytes;
} gpuhal_fence;

/* What the only queue of the pool may have: the pool's regions and used blocks, and all else free. sole.c */
typedef struct gpuhal_sole {
    gpuhal_blocks blocks;
    gpuhal_bins *bins; /* NULL: there is no such view */
    bool ended;        /* and there will be none */
} gpuhal_sole;

/* A queue's lane is in the first slot that was free, of so many from that on to which the queue's address leads. */
enum { GPUHAL_LANE_SLOT_BITS = 10, GPUHAL_LANE_SLOTS = 1 << GPUHAL_LANE_SLOT_BITS, GPUHAL_LANE_PROBES = 4 };

struct gpuhal_pool {
    gpuhal_device *device;
    gpuhal_pool *next;           /* in the object's list; protected by that one's mutex */
    struct gpuhal_trace *trace;  /* of the object */
    uint32_t number;             /* counts the object's pools, for the trace */
    gpuhal_pool_desc desc;       /* completed */
    gpuhal_tag *tag; /* of parts that are not given another */
    uint64_t unit; /* every block begins and ends at a multiple of it in its segment */
    bool checks;   /* checking mode; check.c */
    bool keeps;    /* its lanes do */
    _Atomic uint64_t limit_bytes; /* 0: none */

    gpuhal_mutex mutex;
    gpuhal_condition condition; /* a thread has finished growing the pool */
    bool growing;               /* one thread at a time asks for a segment, so none is asked for in vain */
    gpuhal_memory_report *report; /* of that thread, which alone uses it */
    bool insists;                 /* that thread asks for no more than it needs */
    bool destroyed;
    bool has_unused; /* since the last look a whole segment may have come free */
    uint64_t references; /* the application's, and one for each part; 0: being freed */
    gpuhal_blocks blocks;
    gpuhal_bins *common;
    gpuhal_sole sole;
    _Atomic(gpuhal_lane *) lanes; /* the oldest first */
    _Atomic(gpuhal_lane *) slots[GPUHAL_LANE_SLOTS]; /* of the same; written with the mutex held */
    /* A list, so that what no lane keeps is not looked for in hundreds: any thread adds at its front, with the lane's
     * mutex held; others than the first are taken out with this one held, too. */
    _Atomic(gpuhal_lane *) keeping;
    gpuhal_pending *pending, **pending_end;
    uint64_t pending_number;  /* of the newest one that ever was */
    gpuhal_segment *segments; /* by the number of their region */
    _Atomic uint32_t segment_count; /* the range counts by its pieces; written with the mutex held */
    uint32_t segment_space;
    gpuhal_pool_range range;
    gpuhal_fence fence;
    uint64_t marks; /* searches for what can move */
    gpuhal_part *spare, **spare_end;
    uint32_t spare_count; /* in checking mode */
    _Atomic uint32_t changes; /* odd while figures are written: a reader that finds another number tries again */
    gpuhal_amount reserved, used, requested, buffers; /* the last three with what lanes keep */
    _Atomic uint64_t free_bytes, largest_bytes, unused_bytes; /* of `common`, as of the last change */
    _Atomic uint64_t searches_failed, out_of_memory;
    /* Bytes of blocks that are parts of stores, written with this mutex held. Of these the bytes that cannot leave now,
     * never too many: written by stores with their own mutex held. */
    _Atomic uint64_t store_bytes, fixed_bytes;
};

/* All pools of a gpuhal object, also destroyed ones of which parts are out. */
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
    uint64_t bytes, block_bytes; /* as asked for, and rounded */
    uint32_t flags;
    uint64_t deadline_ns;
    bool of_store;
} gpuhal_request;

/* The functions of each file follow, from the bottom: each file uses only those above it here. */

/* ---- kept.c */

/* Without the mutex. Keeps a part without references, if its home does; false: it is to be given back. */
bool gpuhal_part_keep(gpuhal_part *part);
/* Without the mutex. The part that was kept last, if it has so many bytes, for the queue, which may be NULL; else
 * NULL. */
gpuhal_part *gpuhal_part_take_kept(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* A kept part is given back: no longer counted. With both mutexes held. */
void gpuhal_lane_forget(gpuhal_lane *lane, const gpuhal_part *part);
/* Adds the figures of all lanes. Returns whether no thread changed them meanwhile. */
bool gpuhal_lanes_read(const gpuhal_pool *pool, uint64_t keeps[GPUHAL_SUM_COUNT], uint64_t again[GPUHAL_SUM_COUNT]);
/* Bytes of blocks that are parts now, without what is kept. With the mutex held. */
uint64_t gpuhal_pool_used_now(const gpuhal_pool *pool);

/* Bytes of blocks in use that no store could give up now: not more than there are. With the mutex held. */
static inline uint64_t gpuhal_pool_fixed_now(const gpuhal_pool *pool)
{
    const uint64_t used = gpuhal_pool_used_now(pool), given = atomic_load(&pool->store_bytes);
    return (used > given ? used - given : 0) + atomic_load(&pool->fixed_bytes);
}

/* Counts an operation; returns how many there were before. With the pool's mutex held. */
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

/* The upper bits of the product, which depend on all of the address. */
static inline size_t gpuhal_lane_slot(const gpuhal_queue *queue, size_t probe)
{
    const uint32_t mixed = (uint32_t)((uintptr_t)queue >> 4) * UINT32_C(0x9e3779b1);
    return ((mixed >> (32 - GPUHAL_LANE_SLOT_BITS)) + probe) % GPUHAL_LANE_SLOTS;
}

/* The lane of a queue; NULL: the queue has none. With the mutex held, or by a caller of the queue. */
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

/* The hooks, with the pool's mutex held: a load each while there is no trace. */
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
/* Chooses where a piece of `bytes` may be added, of at most `room` and at least as much as makes `need` of them free in
 * one piece. Where it returns true, only this thread changes the range until gpuhal_pool_end_piece(). With the mutex
 * held. */
bool gpuhal_pool_begin_piece(gpuhal_pool *pool, uint64_t bytes, uint64_t need, uint64_t room, gpuhal_hole *out_place);
/* `bytes` were committed there, 0: none. HOST_MEMORY, and they are given back. Without the mutex. */
gpuhal_status gpuhal_pool_end_piece(gpuhal_pool *pool, const gpuhal_hole *place, uint64_t bytes);
/* With the mutex held: bytes of the pieces of which nothing is in use; whether a free block has a whole piece. */
uint64_t gpuhal_pool_unused_piece_bytes(const gpuhal_pool *pool);
bool gpuhal_pool_has_piece(const gpuhal_pool *pool, const gpuhal_block *block);
/* Takes unused pieces out of what can be allocated, until `want_bytes` are reached. Returns how many bytes these are:
 * not 0, gpuhal_pool_give_pieces() has to follow. With the mutex held. */
uint64_t gpuhal_pool_take_pieces(gpuhal_pool *pool, uint64_t want_bytes);
/* Has the driver take them back, without the mutex. */
void gpuhal_pool_give_pieces(gpuhal_pool *pool);
/* When the pool ends. The buffer is a segment like any other. */
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

/* After blocks were moved to the common bins or out of them. */
static inline void gpuhal_pool_changed(gpuhal_pool *pool)
{
    gpuhal_pool_begin_change(pool);
    gpuhal_pool_end_change(pool);
}

/* ---- sole.c: with the mutex held */

/* A block is about to come to the lane of a queue that has work. The view begins, if only that queue ever used the
 * pool. */
void gpuhal_sole_begin(gpuhal_pool *pool, const gpuhal_lane *lane);
/* The pool has a lane for one more queue. */
void gpuhal_sole_note_queue(gpuhal_pool *pool);
/* Others than the only queue may take blocks from now on. */
void gpuhal_sole_end(gpuhal_pool *pool);
/* A block for the only queue, whose lane this is; 0: none fits. Both gpuhal_blocks have been reserved. */
gpuhal_block_id gpuhal_sole_take(gpuhal_pool *pool, const gpuhal_lane *lane, uint64_t bytes);
/* A used block with this twin has become free, merged into `merged`. */
void gpuhal_sole_give(gpuhal_pool *pool, gpuhal_block_id twin, gpuhal_block_id merged);
/* A segment was added; and an unused one is removed. */
void gpuhal_sole_add(gpuhal_pool *pool, uint32_t region, uint64_t bytes);
void gpuhal_sole_remove(gpuhal_pool *pool, uint32_t region);

/* ---- lane.c: with the mutex held */

/* The lane of a queue, made where it is missing; NULL without memory. */
gpuhal_lane *gpuhal_lane_get(gpuhal_pool *pool, gpuhal_queue *queue);
/* A block for the queue (NULL: none): the best fit of all that it may have now; 0: no block fits. */
gpuhal_block_id gpuhal_pool_search(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Merges neighbours that the queue may have at once in its lane, only as many as give so many bytes: others lose them.
 * False: there are none, or no queue (NULL). */
bool gpuhal_lane_gather(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* The part gets room for one more queue; false without memory. */
bool gpuhal_part_add_use(gpuhal_part *part, gpuhal_queue *queue);
/* In checking mode every part is released behind `uses`, which has the queue that it was given to; may be NULL. */
bool gpuhal_part_begin_uses(gpuhal_part *part, gpuhal_queue *queue);
/* A structure for a part, old or new; NULL without memory. In checking mode one that was released long ago. */
gpuhal_part *gpuhal_part_take(gpuhal_pool *pool);
void gpuhal_part_put_back(gpuhal_part *part);
/* Adds a new pending, whose events gpuhal_pending_record() has to record. */
void gpuhal_pending_append(gpuhal_pool *pool, gpuhal_pending *pending);
/* Gives a block back behind everything that the part was used in, and frees the part. Returns a pending whose events
 * gpuhal_pending_record() has to record, or NULL. Of one that is kept with its home's mutex held, too. */
gpuhal_pending *gpuhal_part_give(gpuhal_part *part);

/* Gives back what the lane keeps: before its queue allocates, and before what it keeps not is released. And what all
 * lanes keep. Returns how many parts. */
void gpuhal_lane_give_kept(gpuhal_pool *pool, gpuhal_lane *lane);
uint64_t gpuhal_pool_give_kept(gpuhal_pool *pool);
/* Before a block is counted as used: what is kept and what is used must not be more than was ever used at once, so that
 * no part which is taken without the mutex makes a new peak. */
void gpuhal_pool_limit_kept(gpuhal_pool *pool, uint64_t block_bytes, uint64_t bytes);
/* The pool was destroyed: nothing more is kept. What is comes back with the next poll. */
void gpuhal_pool_close_lanes(gpuhal_pool *pool);

/* ---- segment.c */

/* Bytes of the device's pools that no store could give up now. The caller holds no lock. */
uint64_t gpuhal_device_fixed_bytes(const gpuhal_device *device);
/* OUT_OF_MEMORY with its detail, if the bytes alone are more than a limit of the pool or the device. With `all` the
 * limit of a control group counts, too, which is read from files; and the bytes that no store could give up now count
 * beside the request, unless the application has callbacks. */
gpuhal_status gpuhal_pool_check_limits(gpuhal_pool *pool, uint64_t need, bool all);
/* Asks the driver for a segment with room for so many bytes. OUT_OF_MEMORY with its detail, also above a limit. Without
 * the mutex. */
gpuhal_status gpuhal_pool_grow(gpuhal_pool *pool, uint64_t need);
/* Takes unused segments out of the table, as long as more than `keep_bytes` of them are left and `want_bytes` are not
 * reached: a list of buffers for gpuhal_segments_release(), by their `next_released`. With the mutex held. */
gpuhal_buffer *gpuhal_pool_take_unused(gpuhal_pool *pool, uint64_t keep_bytes, uint64_t want_bytes,
                                       uint64_t *out_bytes);
/* Bytes of segments and pieces of which nothing is in use: with the mutex held; and without it, which is taken only
 * where the device has virtual memory, since pieces are found among the blocks. */
uint64_t gpuhal_pool_unused_bytes(const gpuhal_pool *pool);
uint64_t gpuhal_pool_unused_now(gpuhal_pool *pool);
/* Without the mutex, with a reference to the pool. */
void gpuhal_segments_release(gpuhal_buffer *list);

/* ---- check.c: in checking mode. Without the mutex. */

/* Bytes behind each buffer that belong to it. */
enum { GPUHAL_CHECK_BYTES = 256 };

/* Prepares a new buffer of a queue, which may be NULL. */
gpuhal_status gpuhal_check_begin(gpuhal_buffer *buffer, gpuhal_queue *queue);
/* Once the work behind which a buffer was released has ended: looks at its memory, the first time. */
void gpuhal_check_end(gpuhal_pool *pool, gpuhal_pending *pending);
void gpuhal_check_released_twice(gpuhal_buffer *buffer);

/* ---- pending.c: what others may have once work has ended. Without the mutex. */

/* Records the events that are missing. */
void gpuhal_pending_record(gpuhal_pool *pool, gpuhal_pending *pending);
/* Makes common what has ended: what is pending, and what the lanes of idle queues have. Returns how many bytes. */
uint64_t gpuhal_pool_poll(gpuhal_pool *pool);
/* Makes pending what the lanes of other queues have, of those with so many bytes in one piece. Returns the number of
 * the newest pending. */
uint64_t gpuhal_pool_part_lanes(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes);
/* Makes the queue wait for the oldest pending in which so many bytes are in one piece, so that it may have all that is
 * in there: *out_bytes. False: none suits. */
bool gpuhal_pool_follow(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes);
/* Lets the queue have what another one released before an event for which this one was made to wait, where there are
 * so many bytes in one piece of that: *out_bytes in all. False: there is nothing like that. */
bool gpuhal_pool_follow_event(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint64_t *out_bytes);
/* When the pool ends: queues hold the segments as long as they may use them. */
void gpuhal_pool_hold_segments(gpuhal_pool *pool);
void gpuhal_pending_free_all(gpuhal_pool *pool);
/* Waits for the oldest pending. False: none is as old as the one with number `newest`, or the time is over. */
bool gpuhal_pool_wait_oldest(gpuhal_pool *pool, uint64_t newest, uint64_t deadline_ns);

/* ---- compact.c: without the mutex; for owners of parts that can move them */

/* Whether what is free, in pieces, and may still be taken from the driver suffice together for so many bytes. */
bool gpuhal_compact_may_help(gpuhal_pool *pool, uint64_t bytes);
/* Chooses a stretch of so many bytes (0: a whole segment) in which nothing is used but by `movable` parts, which find
 * room elsewhere; of several the one in which they have least. Memory behind work that does not end before the deadline
 * is used. From now on nothing comes to lie there. Returns its bytes; 0: there is none, or another thread has
 * one. Not 0, gpuhal_compact_end() has to follow. */
uint64_t gpuhal_compact_begin(gpuhal_pool *pool, gpuhal_buffer *const *movable, size_t count, uint64_t bytes,
                              uint64_t deadline_ns);
/* Whether a part lies there. */
bool gpuhal_compact_has(gpuhal_pool *pool, const gpuhal_buffer *buffer);
/* Releases parts that have moved, so that nothing comes to lie in their place. */
void gpuhal_compact_release(gpuhal_pool *pool, gpuhal_buffer *const *moved, size_t count);
/* What has come free is for everybody. False: not all has, also since work did not end before the deadline that uses
 * the old places. */
bool gpuhal_compact_end(gpuhal_pool *pool, uint64_t deadline_ns);
/* Gives unused segments back until so many bytes are reached. Returns how many. */
uint64_t gpuhal_compact_trim(gpuhal_pool *pool, uint64_t bytes);

/* ---- ladder.c */

/* What to do when a search fails. OK with a block, or the error. */
gpuhal_status gpuhal_pool_climb(const gpuhal_request *request, gpuhal_block_id *out_block);
/* Refuses what is above a limit of the pool or the device, as climbing does, and does nothing else: for a store, whose
 * own entries shall not leave for it. OUT_OF_MEMORY with its report. */
gpuhal_status gpuhal_pool_check_request(const gpuhal_request *request);
/* Until when to wait for work while there are sources to ask, so that they have time, too. */
uint64_t gpuhal_ladder_patience(uint64_t deadline_ns);
/* What an allocation that waits for work may count on. */
typedef struct gpuhal_shortage {
    uint64_t bytes;         /* are needed */
    uint64_t ordered_bytes; /* come free when queued work ends */
    uint64_t free_bytes;    /* are free in the pool; else 0 */
    uint64_t left_bytes;    /* are free outside, as the last refusal states; UINT64_MAX: not known */
} gpuhal_shortage;
/* Whether to wait for work that came meanwhile, too, once all has ended that was enqueued when a wait began. */
bool gpuhal_ladder_waits_on(const gpuhal_shortage *shortage, uint64_t deadline_ns, uint64_t callers_deadline_ns);

/* ---- statistics.c */

/* Without the mutex, or with it. */
gpuhal_pool_amount gpuhal_amount_read(const gpuhal_amount *figure);

/* ---- pool.c */

/* gpuhal_pool_allocate() for a store. */
gpuhal_status gpuhal_pool_allocate_for_store(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                             uint64_t timeout_ns, gpuhal_buffer **out_buffer);
/* A part that the application allocated and gives to a store. It stays counted so, also if the store refuses it. */
void gpuhal_part_join_store(gpuhal_buffer *buffer);
/* Gives back one reference, which a thread has that holds no lock. */
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
/* Makes pending what all lanes have. HOST_MEMORY. */
gpuhal_status gpuhal_pools_part_lanes(const gpuhal_device *device);
/* Fills in the report of an allocation that was none of a pool: what the device has, and what of it is in pools. */
void gpuhal_pools_report(const gpuhal_device *device, gpuhal_memory_report *report);

/* ---- relief.c, for hal/gpuhal.c */

/* For gpuhal_layers.relieve: what pool.h (the public one) says of buffers that are not of a pool. */
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
