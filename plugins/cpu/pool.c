/* cpu/pool.c: the threads that run the groups of a launch.
 *
 * The calling thread runs its own launch with the help of idle pool threads, so a launch never waits for another
 * launch. A pool thread helps the launch with the fewest helpers. After a block of items, the thread chooses again if
 * another launch has started. Threads take items from one counter, in blocks that grow to some tens of microseconds of
 * work and shrink towards the end. All threads finish at about the same time, even if items differ in duration.
 *
 * A launch wakes one thread. Each thread that joins wakes two more threads while there is work and an idle thread. A
 * few steps therefore wake many threads, and no thread wakes for a finished launch.
 *
 * The threads are started by the first launch with several groups, and end when the last device is closed. The child of
 * a fork has no threads, and its copy of the pool's lock may be locked. So the child creates a new pool, and keeps the
 * old pool untouched until stop(). The child recognizes the old pool by its process id. The system zeroes this id in
 * the child, because the child may have the same id in another namespace.
 */
#include "../common/clock.h"
#include "../common/thread.h"
#include "device.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK_SHORT_NS UINT64_C(20000) /* after a shorter block the block size is doubled */
#define BLOCK_LONG_NS  UINT64_C(100000)

/* One launch. The object is on the caller's stack. */
typedef struct job {
    gpuhal_cpu_work_fn *work;
    void *user;
    uint64_t total;
    uint32_t slots;
    /* Protected by the pool's mutex. */
    bool waited_for;
    uint32_t helpers;
    struct job *next;
    pthread_cond_t left; /* signalled when the last helper has left */
    uint64_t taken_slots[GPUHAL_CPU_THREADS_MAX / 64];
    _Alignas(64) _Atomic uint64_t taken; /* has its own cache line, since threads write it often */
} job;

struct gpuhal_cpu_pool {
    pid_t process;           /* the whole struct is zeroed in the child of a fork (since Linux 4.14) */
    gpuhal_cpu_pool *older;  /* pool of the process that forked this process */
    _Atomic uint32_t posted; /* changes when a launch starts */
    pthread_mutex_t mutex;   /* protects the members below */
    pthread_cond_t wanted;   /* a launch needs help, or the threads must end */
    job *jobs;
    uint32_t count, idle; /* number of threads */
    bool ending;
    const gpuhal_plugin_instance *instance;
    pthread_t threads[];
};

/* Takes up to @p size items, or fewer towards the end. Returns false if no items are left. */
static bool take(job *own, uint64_t size, uint64_t *out_first, uint64_t *out_end)
{
    uint64_t first = atomic_load_explicit(&own->taken, memory_order_relaxed), count;
    do {
        if (first >= own->total) {
            return false;
        }
        const uint64_t share = (own->total - first) / (2 * (uint64_t)own->slots);
        count = size < share ? size : share > 0 ? share : 1;
    } while (!atomic_compare_exchange_weak_explicit(&own->taken, &first, first + count, memory_order_relaxed,
                                                    memory_order_relaxed));
    *out_first = first;
    *out_end = first + count;
    return true;
}

/* Runs blocks until no item is left, or until `posted` differs from @p seen because another launch has started. If @p
 * posted is NULL, ignores other launches. */
static void do_blocks(job *own, uint32_t slot, _Atomic uint32_t *posted, uint32_t seen)
{
    uint64_t size = 1, first, end, before = gpuhal_plugin_now_ns();
    while (take(own, size, &first, &end)) {
        own->work(own->user, slot, first, end);
        const uint64_t now = gpuhal_plugin_now_ns(), took = now - before;
        before = now;
        const bool may_grow = took < BLOCK_SHORT_NS && size <= own->total / 2;
        size = may_grow ? size * 2 : took > BLOCK_LONG_NS && size > 1 ? size / 2 : size;
        if (posted != NULL && atomic_load_explicit(posted, memory_order_relaxed) != seen) {
            return;
        }
    }
}

static job *choose(gpuhal_cpu_pool *pool)
{
    job *best = NULL;
    for (job *at = pool->jobs; at != NULL; at = at->next) {
        if (at->helpers + 1 < at->slots && atomic_load_explicit(&at->taken, memory_order_relaxed) < at->total &&
            (best == NULL || at->helpers < best->helpers)) {
            best = at;
        }
    }
    return best;
}

/* Slot 0 is the caller's. A slot is always free, because there are fewer helpers than slots. */
static uint32_t join(job *own)
{
    uint32_t slot = 1;
    while ((own->taken_slots[slot / 64] >> slot % 64 & 1) != 0) {
        slot++;
    }
    own->taken_slots[slot / 64] |= UINT64_C(1) << slot % 64;
    own->helpers++;
    return slot;
}

static void leave(job *own, uint32_t slot)
{
    own->taken_slots[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    if (--own->helpers == 0 && own->waited_for) {
        pthread_cond_signal(&own->left); /* the caller's frame may be gone once the mutex is released */
    }
}

static void help(gpuhal_cpu_pool *pool, job *own)
{
    const uint32_t slot = join(own), seen = atomic_load_explicit(&pool->posted, memory_order_relaxed);
    const bool wakes = pool->idle > 0 && choose(pool) != NULL;
    pthread_mutex_unlock(&pool->mutex);
    if (wakes) {
        pthread_cond_signal(&pool->wanted);
        pthread_cond_signal(&pool->wanted);
    }
    do_blocks(own, slot, &pool->posted, seen);
    pthread_mutex_lock(&pool->mutex);
    leave(own, slot);
}

static void *run_thread(void *user)
{
    gpuhal_cpu_pool *pool = user;
    (void)pthread_setname_np(pthread_self(), "gpuhal-cpu");
    if (pool->instance->has_mask) { /* the caller of a launch may be bound to one processor */
        (void)sched_setaffinity(0, sizeof pool->instance->mask, &pool->instance->mask);
    }
    pthread_mutex_lock(&pool->mutex);
    while (!pool->ending) {
        job *own = choose(pool);
        if (own != NULL) {
            help(pool, own);
            continue;
        }
        pool->idle++;
        pthread_cond_wait(&pool->wanted, &pool->mutex);
        pool->idle--;
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* If the system cannot start all threads, fewer threads suffice. */
static void start_threads(gpuhal_cpu_pool *pool)
{
    while (pool->count + 1 < pool->instance->threads &&
           gpuhal_plugin_thread_start(&pool->threads[pool->count], run_thread, pool) == 0) {
        pool->count++;
    }
}

static size_t bytes_of(const gpuhal_plugin_instance *instance)
{
    return sizeof(gpuhal_cpu_pool) + instance->threads * sizeof(pthread_t);
}

/* Returns the pool of this process, and creates it if necessary. Returns NULL if out of memory. If two threads create a
 * pool, only the first pool is kept. */
static gpuhal_cpu_pool *current_pool(gpuhal_plugin_instance *instance)
{
    const pid_t process = getpid();
    gpuhal_cpu_pool *pool = atomic_load(&instance->pool);
    if (pool != NULL && pool->process == process) {
        return pool;
    }
    void *pages = mmap(NULL, bytes_of(instance), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(pages, bytes_of(instance), MADV_WIPEONFORK);
    gpuhal_cpu_pool *made = pages;
    made->process = process;
    made->older = pool;
    made->instance = instance;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->wanted, NULL);
    if (!atomic_compare_exchange_strong(&instance->pool, &pool, made)) {
        munmap(made, bytes_of(instance));
        return pool;
    }
    return made;
}

static void begin(gpuhal_cpu_pool *pool, job *own)
{
    pthread_mutex_lock(&pool->mutex);
    if (pool->count == 0 && !pool->ending) {
        start_threads(pool);
    }
    own->next = pool->jobs;
    pool->jobs = own;
    atomic_fetch_add_explicit(&pool->posted, 1, memory_order_relaxed);
    const bool wakes = pool->idle > 0;
    pthread_mutex_unlock(&pool->mutex);
    if (wakes) {
        pthread_cond_signal(&pool->wanted);
    }
}

static void end(gpuhal_cpu_pool *pool, job *own)
{
    pthread_mutex_lock(&pool->mutex);
    job **at = &pool->jobs;
    while (*at != own) {
        at = &(*at)->next;
    }
    *at = own->next;
    own->waited_for = true;
    while (own->helpers > 0) {
        pthread_cond_wait(&own->left, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
}

void gpuhal_cpu_pool_run(gpuhal_plugin_instance *instance, uint32_t slots, uint64_t total, gpuhal_cpu_work_fn *work,
                         void *user)
{
    gpuhal_cpu_pool *pool = slots > 1 ? current_pool(instance) : NULL;
    if (!pool) {
        work(user, 0, 0, total);
        return;
    }
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* other threads use this frame */
    job own = {.work = work, .user = user, .total = total, .slots = slots};
    pthread_cond_init(&own.left, NULL);
    begin(pool, &own);
    do_blocks(&own, 0, NULL, 0);
    end(pool, &own);
    pthread_cond_destroy(&own.left);
    pthread_setcancelstate(cancel, NULL);
}

void gpuhal_cpu_pool_rest(gpuhal_plugin_instance *instance)
{
    gpuhal_cpu_pool *pool = atomic_load(&instance->pool);
    if (pool == NULL || pool->process != getpid()) {
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    const bool mine = !pool->ending; /* otherwise another thread that closes a device is already waiting for the pool's
                                      * threads */
    pool->ending = true;
    pthread_cond_broadcast(&pool->wanted);
    pthread_mutex_unlock(&pool->mutex);
    if (!mine) {
        return;
    }
    for (uint32_t i = 0; i < pool->count; i++) {
        pthread_join(pool->threads[i], NULL);
    }
    pthread_mutex_lock(&pool->mutex);
    pool->count = 0;
    pool->ending = false;
    pthread_mutex_unlock(&pool->mutex);
}

void gpuhal_cpu_pool_free(gpuhal_plugin_instance *instance)
{
    gpuhal_cpu_pool_rest(instance);
    for (gpuhal_cpu_pool *pool = instance->pool, *older; pool != NULL; pool = older) {
        older = pool->older;
        munmap(pool, bytes_of(instance));
    }
}
