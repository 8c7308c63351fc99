/* pool/kept.c: released parts that a lane keeps unchanged. If the queue's next request has the same size as the part
 * that was kept last, it receives this part. Such a request locks only the lane's mutex, which is rarely contended. Any
 * other request of the queue first releases the lane's kept parts. A request that finds no free block, and any other
 * call that looks for free memory, releases the kept parts of all lanes.
 *
 * A part is kept only if, since the part's allocation, the queue has allocated and released only kept parts. Without
 * keeping, the pool would have the same free memory as before the allocation, so keeping wastes nothing. Only the order
 * of similar free blocks may differ. */
#include "pool/pool.h"

/* Each store has release order, as in the pool's statistics. */
static void add(_Atomic uint64_t *figure, uint64_t more)
{
    atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + more, memory_order_release);
}

static void begin_change(gpuhal_lane *lane)
{
    atomic_store_explicit(&lane->changes, atomic_load_explicit(&lane->changes, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void end_change(gpuhal_lane *lane)
{
    atomic_store_explicit(&lane->changes, atomic_load_explicit(&lane->changes, memory_order_relaxed) + 1,
                          memory_order_release);
}

static void count(_Atomic uint64_t sums[GPUHAL_SUM_COUNT], const gpuhal_part *part)
{
    add(&sums[GPUHAL_SUM_USED], part->buffer.memory.bytes);
    add(&sums[GPUHAL_SUM_REQUESTED], part->buffer.bytes);
    add(&sums[GPUHAL_SUM_BUFFERS], 1);
}

void gpuhal_lane_forget(gpuhal_lane *lane, const gpuhal_part *part)
{
    add(&lane->keeps[GPUHAL_SUM_USED], -part->buffer.memory.bytes);
    add(&lane->keeps[GPUHAL_SUM_REQUESTED], -part->buffer.bytes);
    add(&lane->keeps[GPUHAL_SUM_BUFFERS], (uint64_t)-1);
}

/* The caller holds the lane's mutex. */
static void list_lane(gpuhal_pool *pool, gpuhal_lane *lane)
{
    lane->listed = true;
    lane->keeping = atomic_load_explicit(&pool->keeping, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&pool->keeping, &lane->keeping, lane, memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

/* Keeps no part during a trace, because the trace must record the release in order with the pool's other operations. */
bool gpuhal_part_keep(gpuhal_part *part)
{
    gpuhal_lane *lane = part->home;
    if (!lane || part->uses || part->of_store || !part->pool->keeps || gpuhal_trace_is_on(part->pool)) {
        return false;
    }
    gpuhal_mutex_lock(&lane->mutex);
    const uint32_t now =
        lane->kept ? lane->kept->began : atomic_load_explicit(&lane->operations, memory_order_relaxed);
    const bool keeps = !lane->closed && part->made == now;
    if (keeps) {
        part->stamp = gpuhal_timepoint_newest();
        part->is_kept = true;
        part->next = lane->kept;
        lane->kept = part;
        begin_change(lane);
        count(lane->keeps, part);
        end_change(lane);
        if (!lane->listed) {
            list_lane(part->pool, lane);
        }
    }
    gpuhal_mutex_unlock(&lane->mutex);
    return keeps;
}

gpuhal_part *gpuhal_part_take_kept(gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes)
{
    gpuhal_lane *lane = queue && pool->keeps && !gpuhal_trace_is_on(pool) ? gpuhal_lane_find(pool, queue) : NULL;
    if (!lane || gpuhal_lane_kept_count(lane) == 0) {
        return NULL;
    }
    gpuhal_mutex_lock(&lane->mutex);
    gpuhal_part *part = lane->kept && lane->kept->buffer.bytes == bytes ? lane->kept : NULL;
    if (part) {
        lane->kept = part->next;
        part->is_kept = false;
        begin_change(lane);
        gpuhal_lane_forget(lane, part);
        count(lane->again, part);
        end_change(lane);
    }
    gpuhal_mutex_unlock(&lane->mutex);
    return part;
}

/* A thread may be interrupted while it changes a lane. After this many tries the lane's values are used as read. */
enum { TRIES = 100 };

/* Adds the lane's values, and returns the matching value of `changes`. */
static uint32_t read_lane(const gpuhal_lane *lane, uint64_t keeps[GPUHAL_SUM_COUNT], uint64_t again[GPUHAL_SUM_COUNT])
{
    uint64_t read[2][GPUHAL_SUM_COUNT];
    uint32_t before, after;
    int tries = 0;
    do {
        before = atomic_load_explicit(&lane->changes, memory_order_acquire);
        for (int i = 0; i < GPUHAL_SUM_COUNT; i++) {
            read[0][i] = atomic_load_explicit(&lane->keeps[i], memory_order_acquire);
            read[1][i] = atomic_load_explicit(&lane->again[i], memory_order_acquire);
        }
        after = atomic_load_explicit(&lane->changes, memory_order_relaxed);
    } while ((before != after || before % 2 == 1) && ++tries < TRIES);
    for (int i = 0; i < GPUHAL_SUM_COUNT; i++) {
        keeps[i] += read[0][i];
        again[i] += read[1][i];
    }
    return before;
}

bool gpuhal_lanes_read(const gpuhal_pool *pool, uint64_t keeps[GPUHAL_SUM_COUNT], uint64_t again[GPUHAL_SUM_COUNT])
{
    uint32_t before = 0, after = 0; /* sums of monotonic counters */
    for (const gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        before += read_lane(lane, keeps, again);
    }
    for (const gpuhal_lane *lane = pool->lanes; lane; lane = lane->next) {
        after += atomic_load_explicit(&lane->changes, memory_order_acquire);
    }
    return before == after;
}

uint64_t gpuhal_pool_used_now(const gpuhal_pool *pool)
{
    uint64_t used = gpuhal_amount_now(&pool->used);
    const gpuhal_lane *lane = atomic_load_explicit(&pool->keeping, memory_order_acquire);
    for (; lane; lane = lane->keeping) {
        used -= atomic_load_explicit(&lane->keeps[GPUHAL_SUM_USED], memory_order_relaxed);
    }
    return used;
}
