/* transfer/staging.c: see staging.h. Pools are created under the device's mutex. A pool's own mutex protects the pool's
 * chunk count and free list, and is not held while a plugin allocates. */
#include "transfer/staging.h"

#include "base/error.h"
#include "device/link.h"
#include "memory/buffer.h"
#include "transfer/plugin_event.h"
#include "transfer/thread_pool.h"

#include <stdlib.h>

/* Measured (docs/measurements): waking a software device's threads for a piece takes as long as moving 512 KiB, and
 * chunks above 2 MiB do not stay in the cache. */
#define CHUNK_BYTES (2u << 20)
/* Chunk size for devices with asynchronous copies. Many pieces must be in flight, so each thread that fills chunks has
 * two chunks. Five to eight threads at 8 to 12 GB/s each are needed to saturate a 64 GB/s link, and the default
 * pool of 16 MiB must be enough for them. */
#define ENGINE_CHUNK_BYTES (1u << 20)

/* All chunks of this process. */
static struct {
    gpuhal_mutex mutex; /* protects the members below; no other mutex is locked while it is held */
    uint64_t bytes;
    uint32_t generation; /* fork generation of `bytes` */
} process = {.mutex = GPUHAL_MUTEX_INITIALIZER};

struct gpuhal_staging {
    gpuhal_mutex mutex;         /* protects the members below */
    gpuhal_condition condition; /* a chunk was returned or could not be created, or the device is lost */
    gpuhal_chunk *free;
    uint64_t made, most; /* number of existing chunks, and maximum number */
    uint64_t chunk_bytes;
    _Atomic uint32_t threads; /* atomic, not protected; see gpuhal_staging_threads() */
};

/* Without event_block, the library would have to poll. A software device copies with the CPU, so an asynchronous copy
 * would not free the CPU, and a blocking copy is faster (docs/measurements). */
bool gpuhal_staging_has_engine(const gpuhal_device *device)
{
    return device->queues.queue_create && device->queues.event_block &&
           gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_SOFTWARE, 0) == 0;
}

static uint64_t chunk_bytes(const gpuhal_device *device)
{
    uint64_t half = device->gpu->settings.staging_limit_bytes / 2;
    uint64_t wanted = gpuhal_staging_has_engine(device) ? ENGINE_CHUNK_BYTES : CHUNK_BYTES;
    return half < wanted ? half & ~(uint64_t)4095 : wanted;
}

/* The pool is created on first use, because most devices never stage. */
static struct gpuhal_staging *pool_of(gpuhal_device *device, gpuhal_direction direction)
{
    gpuhal_mutex_lock(&device->mutex);
    struct gpuhal_staging *pool = device->staging[direction];
    if (!pool && (pool = calloc(1, sizeof *pool))) {
        gpuhal_mutex_init(&pool->mutex);
        gpuhal_condition_init(&pool->condition);
        pool->chunk_bytes = chunk_bytes(device);
        pool->most = device->gpu->settings.staging_limit_bytes / pool->chunk_bytes;
        atomic_init(&pool->threads, 1);
        device->staging[direction] = pool;
    }
    gpuhal_mutex_unlock(&device->mutex);
    return pool;
}

/* ---- one chunk */

/* Called with no lock held: a plugin may take long to page-lock memory. */
static gpuhal_status chunk_create(gpuhal_device *device, gpuhal_direction direction, uint64_t bytes,
                                  gpuhal_chunk **out_chunk)
{
    gpuhal_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk) {
        return gpuhal_error_host_memory();
    }
    chunk->device = device;
    chunk->direction = direction;
    chunk->bytes = bytes;
    chunk->plain = !gpuhal_staging_has_memory(device, direction);
    chunk->can_begin = !chunk->plain && gpuhal_staging_has_engine(device);
    gpuhal_status status = GPUHAL_OK;
    if (chunk->plain) {
        uint32_t node = 0;
        chunk->host =
            gpuhal_device_node(device, &node) ? gpuhal_os_pages_map_on(bytes, node) : gpuhal_os_pages_map(bytes);
        status = chunk->host ? GPUHAL_OK : gpuhal_error_host_memory();
    } else {
        status = gpuhal_slot_allocate(device, direction, bytes, &chunk->memory);
        chunk->host = status ? NULL : chunk->memory.host;
    }
    if (status) {
        free(chunk);
        return status;
    }
    *out_chunk = chunk;
    return GPUHAL_OK;
}

/* Destroys the event before the queue, because plugins must not receive events of a destroyed queue. */
void gpuhal_staging_drop_queue(gpuhal_chunk *chunk)
{
    gpuhal_device *device = chunk->device;
    bool reachable = gpuhal_device_is_reachable(device);
    if (chunk->event && reachable) {
        gpuhal_plugin_event_destroy(device, chunk->event);
    }
    if (chunk->queue && reachable) {
        const gpuhal_call call = gpuhal_call_blocking(device, 0);
        device->queues.queue_destroy(chunk->queue);
        gpuhal_call_end(call);
    }
    chunk->queue = NULL;
    chunk->event = NULL;
    chunk->under_way = false;
}

static void chunk_destroy(gpuhal_chunk *chunk)
{
    gpuhal_staging_drop_queue(chunk);
    if (chunk->plain) {
        gpuhal_os_pages_unmap(chunk->host, chunk->bytes);
    } else {
        gpuhal_memory_release(chunk->device, &chunk->memory);
    }
    free(chunk);
}

/* ---- the limit of the process */

/* Takes a free chunk from any pool of the gpuhal object, or returns NULL. */
static gpuhal_chunk *take_anybodys(gpuhal *gpu)
{
    for (uint32_t i = 0; i < 2 * gpuhal_device_count(gpu); i++) {
        gpuhal_device *device = gpuhal_device_at(gpu, i / 2);
        gpuhal_mutex_lock(&device->mutex);
        struct gpuhal_staging *pool = device->staging[i % 2];
        gpuhal_mutex_unlock(&device->mutex);
        if (!pool) {
            continue;
        }
        gpuhal_mutex_lock(&pool->mutex);
        gpuhal_chunk *chunk = pool->free;
        if (chunk) {
            pool->free = chunk->next;
            pool->made--;
        }
        gpuhal_mutex_unlock(&pool->mutex);
        if (chunk) {
            return chunk;
        }
    }
    return NULL;
}

/* In a forked child, resets the counter first. */
static void lock_process(void)
{
    uint32_t now = gpuhal_os_fork_generation();
    gpuhal_mutex_lock(&process.mutex);
    if (process.generation != now) {
        process.generation = now;
        process.bytes = 0;
    }
}

/* Adds to the process's byte count, unless the sum would exceed `most`, and subtracts `take_away`. */
static bool account(uint64_t add, uint64_t take_away, uint64_t most)
{
    lock_process();
    bool fits = process.bytes + add <= most;
    process.bytes += fits ? add : 0;
    process.bytes -= take_away;
    gpuhal_mutex_unlock(&process.mutex);
    return fits;
}

static void give_up(gpuhal_chunk *chunk)
{
    uint64_t bytes = chunk->bytes;
    chunk_destroy(chunk);
    account(0, bytes, UINT64_MAX);
}

/* Makes room within the process limit by freeing unused chunks of the gpuhal object's pools. A pool's first chunk is
 * always allowed, because waiting for other pools could deadlock. */
static bool reserve(gpuhal *gpu, uint64_t bytes, bool is_first)
{
    gpuhal_chunk *unused = NULL;
    while (!account(bytes, 0, gpu->settings.staging_total_bytes)) {
        if (!(unused = take_anybodys(gpu))) {
            return is_first && account(bytes, 0, UINT64_MAX);
        }
        give_up(unused);
    }
    return true;
}

/* ---- taking and returning */

/* Returns a free chunk, or NULL. If it returns NULL, *out_make is true if the caller may create a chunk. Called with
 * the pool's mutex held. */
static gpuhal_chunk *take_free(struct gpuhal_staging *pool, bool *out_make)
{
    gpuhal_chunk *chunk = pool->free;
    *out_make = false;
    if (chunk) {
        pool->free = chunk->next;
        chunk->next = NULL;
    } else if (pool->made < pool->most) {
        pool->made++;
        *out_make = true;
    }
    return chunk;
}

/* If the chunk cannot be created but the pool has other chunks, sets *out_wait so that the caller waits for one of
 * these. Also sets *out_wait if the process limit leaves no room for the chunk. */
static gpuhal_status make(gpuhal_device *device, gpuhal_direction direction, struct gpuhal_staging *pool,
                          gpuhal_chunk **out_chunk, bool *out_wait)
{
    gpuhal_mutex_lock(&pool->mutex);
    bool is_first = pool->made == 1;
    gpuhal_mutex_unlock(&pool->mutex);
    bool reserved = reserve(device->gpu, pool->chunk_bytes, is_first);
    gpuhal_status status =
        reserved ? chunk_create(device, direction, pool->chunk_bytes, out_chunk) : GPUHAL_ERROR_OUT_OF_MEMORY;
    if (status) {
        account(0, reserved ? pool->chunk_bytes : 0, UINT64_MAX);
        gpuhal_mutex_lock(&pool->mutex);
        pool->made--;
        *out_wait = pool->made > 0 || !reserved;
        gpuhal_condition_signal_all(&pool->condition);
        gpuhal_mutex_unlock(&pool->mutex);
    }
    return status;
}

gpuhal_status gpuhal_staging_take(gpuhal_device *device, gpuhal_direction direction, gpuhal_chunk **out_chunk)
{
    struct gpuhal_staging *pool = pool_of(device, direction);
    if (!pool) {
        return gpuhal_error_host_memory();
    }
    bool may_make = true;
    for (;;) {
        bool make_one = false, wait = false;
        gpuhal_mutex_lock(&pool->mutex);
        gpuhal_chunk *chunk = take_free(pool, &make_one);
        while (!chunk && !(make_one && may_make) && gpuhal_device_is_reachable(device)) {
            pool->made -= make_one;
            if (pool->made == 0) {
                may_make = true;
            } else {
                gpuhal_condition_wait(&pool->condition, &pool->mutex);
            }
            chunk = take_free(pool, &make_one);
        }
        gpuhal_mutex_unlock(&pool->mutex);
        if (chunk) {
            *out_chunk = chunk;
            return GPUHAL_OK;
        }
        if (!make_one) { /* the threads that hold chunks are stuck in the driver */
            return gpuhal_device_unusable(device);
        }
        gpuhal_status status = make(device, direction, pool, out_chunk, &wait);
        if (!status || !wait) {
            return status;
        }
        may_make = false;
    }
}

gpuhal_chunk *gpuhal_staging_try_take(gpuhal_device *device, gpuhal_direction direction)
{
    struct gpuhal_staging *pool = pool_of(device, direction);
    bool make_one = false, wait = false;
    if (!pool) {
        return NULL;
    }
    gpuhal_mutex_lock(&pool->mutex);
    gpuhal_chunk *chunk = take_free(pool, &make_one);
    gpuhal_mutex_unlock(&pool->mutex);
    if (make_one && make(device, direction, pool, &chunk, &wait)) {
        chunk = NULL;
    }
    return chunk;
}

void gpuhal_staging_give(gpuhal_chunk *chunk)
{
    struct gpuhal_staging *pool = pool_of(chunk->device, chunk->direction);
    gpuhal_mutex_lock(&pool->mutex);
    chunk->next = pool->free;
    pool->free = chunk;
    gpuhal_condition_signal_all(&pool->condition);
    gpuhal_mutex_unlock(&pool->mutex);
}

void gpuhal_staging_wake(gpuhal_device *device)
{
    for (int direction = 0; direction < 2; direction++) {
        gpuhal_mutex_lock(&device->mutex);
        struct gpuhal_staging *pool = device->staging[direction];
        gpuhal_mutex_unlock(&device->mutex);
        if (pool) {
            gpuhal_mutex_lock(&pool->mutex);
            gpuhal_condition_signal_all(&pool->condition);
            gpuhal_mutex_unlock(&pool->mutex);
        }
    }
}

uint32_t gpuhal_staging_threads(gpuhal_device *device, gpuhal_direction direction)
{
    struct gpuhal_staging *pool = pool_of(device, direction);
    return pool ? atomic_load_explicit(&pool->threads, memory_order_relaxed) : 1;
}

void gpuhal_staging_set_threads(gpuhal_device *device, gpuhal_direction direction, uint32_t threads)
{
    struct gpuhal_staging *pool = pool_of(device, direction);
    if (pool) {
        atomic_store_explicit(&pool->threads, threads, memory_order_relaxed);
    }
}

uint64_t gpuhal_staging_process_bytes(void)
{
    lock_process();
    uint64_t bytes = process.bytes;
    gpuhal_mutex_unlock(&process.mutex);
    return bytes;
}

static void pool_destroy(gpuhal_device *device, gpuhal_direction direction)
{
    struct gpuhal_staging *pool = device->staging[direction];
    if (!pool) {
        return;
    }
    while (pool->free) {
        gpuhal_chunk *chunk = pool->free;
        pool->free = chunk->next;
        give_up(chunk);
    }
    gpuhal_condition_finish(&pool->condition);
    gpuhal_mutex_finish(&pool->mutex);
    free(pool);
    device->staging[direction] = NULL;
}

void gpuhal_staging_destroy_all(gpuhal *gpu)
{
    gpuhal_thread_pool_destroy(gpu);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        pool_destroy(gpuhal_device_at(gpu, d), GPUHAL_TO_DEVICE);
        pool_destroy(gpuhal_device_at(gpu, d), GPUHAL_FROM_DEVICE);
    }
}

uint64_t gpuhal_staging_payload_bytes(const gpuhal_device *device)
{
    uint64_t bytes = chunk_bytes(device);
    return device->copy_mask == 0 ? bytes : (bytes - 2 * (device->copy_mask + 1)) & ~device->copy_mask;
}
