/* transfer/staging.c: see staging.h. A pool is made under the device's mutex; its chunks are counted and handed out under the pool's own,
 * which is not held while a plugin allocates. */
#include "transfer/staging.h"

#include "core/error.h"
#include "transfer/bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Measured (docs/measurements): below it, waking the driver's threads for each piece costs more than moving the piece. */
#define CHUNK_BYTES (2u << 20)

struct gpuhal_staging {
    gpuhal_mutex mutex;         /* protects what follows */
    gpuhal_condition condition; /* a chunk was given back */
    gpuhal_chunk *free;
    uint64_t made, most; /* chunks in existence, and how many there may be */
    uint32_t generation; /* fork generation that they belong to */
};

static uint64_t chunk_bytes(const gpuhal_device *device)
{
    uint64_t limit = device->gpu->settings.staging_limit_bytes;
    return limit / 2 < CHUNK_BYTES ? (limit / 2) & ~(uint64_t)4095 : CHUNK_BYTES;
}

/* Made when first asked for: most devices never stage. */
static struct gpuhal_staging *pool_of(gpuhal_device *device, gpuhal_staging_direction direction)
{
    gpuhal_mutex_lock(&device->mutex);
    struct gpuhal_staging *pool = device->staging[direction];
    if (!pool && (pool = calloc(1, sizeof *pool))) {
        gpuhal_mutex_init(&pool->mutex);
        gpuhal_condition_init(&pool->condition);
        pool->generation = gpuhal_os_fork_generation();
        pool->most = device->gpu->settings.staging_limit_bytes / chunk_bytes(device);
        device->staging[direction] = pool;
    }
    gpuhal_mutex_unlock(&device->mutex);
    return pool;
}

/* Chunks that threads of the parent held at a fork never come back in the child: it counts from none. Called with the mutex held. */
static void forget_parents_chunks(struct gpuhal_staging *pool)
{
    uint32_t now = gpuhal_os_fork_generation();
    if (pool->generation != now) {
        pool->generation = now;
        pool->free = NULL;
        pool->made = 0;
    }
}

static gpuhal_memory_kind kind_of(gpuhal_staging_direction direction)
{
    return direction == GPUHAL_STAGING_TO_DEVICE ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_READBACK;
}

/* Whether chunks are memory of the device; otherwise they are plain pages. */
static bool has_memory(const gpuhal_device *device, gpuhal_staging_direction direction)
{
    return device->memory_kinds & 1u << kind_of(direction);
}

/* Called with no lock held: a plugin may take long to page-lock memory. */
static gpuhal_status chunk_create(gpuhal_device *device, gpuhal_staging_direction direction, gpuhal_chunk **out_chunk)
{
    gpuhal_chunk *chunk = calloc(1, sizeof *chunk);
    if (!chunk) {
        return gpuhal_error_host_memory();
    }
    chunk->bytes = chunk_bytes(device);
    chunk->memory.size = sizeof chunk->memory;
    if (has_memory(device, direction)) {
        const gpuhal_alloc alloc = {.size = sizeof alloc, .kind = kind_of(direction), .bytes = chunk->bytes};
        gpuhal_error_forget_report();
        gpuhal_status status = device->ops.allocate(device->handle, &alloc, &chunk->memory);
        if (!status && (!chunk->memory.host || chunk->memory.bytes < chunk->bytes)) {
            device->ops.release(device->handle, &chunk->memory);
            status = GPUHAL_ERROR_DRIVER;
        }
        if (status) {
            free(chunk);
            return gpuhal_device_failed(device, status, "allocating %" PRIu64 " KiB for staging", chunk_bytes(device) >> 10);
        }
        chunk->host = chunk->memory.host;
    } else {
        chunk->plain = true;
        chunk->host = gpuhal_os_pages_map(chunk->bytes);
    }
    if (!chunk->host) {
        free(chunk);
        return gpuhal_error_host_memory();
    }
    *out_chunk = chunk;
    return GPUHAL_OK;
}

static void chunk_destroy(gpuhal_device *device, gpuhal_chunk *chunk)
{
    bool reachable = device->generation == 0 || device->generation == gpuhal_os_fork_generation();
    if (chunk->plain) {
        gpuhal_os_pages_unmap(chunk->host, chunk->bytes);
    } else if (reachable) {
        device->ops.release(device->handle, &chunk->memory);
    }
    free(chunk);
}

/* A free chunk, or the right to make one (*out_make), or neither. Called with the pool's mutex held. */
static gpuhal_chunk *take_free(struct gpuhal_staging *pool, bool *out_make)
{
    forget_parents_chunks(pool);
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

/* Makes the chunk that take_free allowed. When there is no memory for it and others exist, `wait` tells to wait for one of those. */
static gpuhal_status make(gpuhal_device *device, gpuhal_staging_direction direction, struct gpuhal_staging *pool,
                          gpuhal_chunk **out_chunk, bool *out_wait)
{
    gpuhal_status status = chunk_create(device, direction, out_chunk);
    if (status) {
        gpuhal_mutex_lock(&pool->mutex);
        pool->made--;
        *out_wait = pool->made > 0;
        gpuhal_condition_signal_all(&pool->condition);
        gpuhal_mutex_unlock(&pool->mutex);
    }
    return status;
}

gpuhal_status gpuhal_staging_take(gpuhal_device *device, gpuhal_staging_direction direction, gpuhal_chunk **out_chunk)
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
        while (!chunk && !(make_one && may_make)) {
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
        gpuhal_status status = make(device, direction, pool, out_chunk, &wait);
        if (!status || !wait) {
            return status;
        }
        may_make = false;
    }
}

gpuhal_chunk *gpuhal_staging_try_take(gpuhal_device *device, gpuhal_staging_direction direction)
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

void gpuhal_staging_give(gpuhal_device *device, gpuhal_staging_direction direction, gpuhal_chunk *chunk)
{
    struct gpuhal_staging *pool = pool_of(device, direction);
    gpuhal_mutex_lock(&pool->mutex);
    chunk->next = pool->free;
    pool->free = chunk;
    gpuhal_condition_signal_all(&pool->condition);
    gpuhal_mutex_unlock(&pool->mutex);
}

static void pool_destroy(gpuhal_device *device, gpuhal_staging_direction direction)
{
    struct gpuhal_staging *pool = device->staging[direction];
    while (pool && pool->free) {
        gpuhal_chunk *chunk = pool->free;
        pool->free = chunk->next;
        chunk_destroy(device, chunk);
    }
    if (pool) {
        gpuhal_condition_finish(&pool->condition);
        gpuhal_mutex_finish(&pool->mutex);
        free(pool);
    }
    device->staging[direction] = NULL;
}

void gpuhal_staging_destroy_all(gpuhal *gpu)
{
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        pool_destroy(gpu->devices[d], GPUHAL_STAGING_TO_DEVICE);
        pool_destroy(gpu->devices[d], GPUHAL_STAGING_FROM_DEVICE);
    }
}

static gpuhal_status clean(gpuhal_device *device, const gpuhal_chunk *chunk, uint64_t bytes, int32_t invalidate)
{
    if ((chunk->memory.flags & GPUHAL_MEMORY_HOST_COHERENT) || !device->ops.clean) {
        return GPUHAL_OK;
    }
    gpuhal_error_forget_report();
    gpuhal_status status = device->ops.clean(device->handle, &chunk->memory, 0, bytes, invalidate);
    return status ? gpuhal_device_failed(device, status, "making staging memory coherent") : GPUHAL_OK;
}

uint64_t gpuhal_staging_payload_bytes(const gpuhal_device *device)
{
    uint64_t bytes = chunk_bytes(device);
    return device->copy_mask == 0 ? bytes : (bytes - 2 * (device->copy_mask + 1)) & ~device->copy_mask;
}

gpuhal_status gpuhal_chunk_fill(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *from, uint64_t from_offset,
                                uint64_t bytes)
{
    if (chunk->plain) {
        return gpuhal_bytes_read(device, chunk->host, from, from_offset, bytes);
    }
    uint64_t lead = from_offset & device->copy_mask;
    uint64_t whole = (lead + bytes + device->copy_mask) & ~device->copy_mask;
    gpuhal_error_forget_report();
    gpuhal_status status = device->ops.copy(device->handle, NULL, &chunk->memory, 0, from, from_offset - lead, whole);
    if (status) {
        return gpuhal_device_failed(device, status, "copying to staging memory");
    }
    status = clean(device, chunk, whole, 1);
    if (!status && lead > 0) {
        memmove(chunk->host, (char *)chunk->host + lead, (size_t)bytes);
    }
    return status;
}

gpuhal_status gpuhal_chunk_empty(gpuhal_device *device, gpuhal_chunk *chunk, const gpuhal_memory *to, uint64_t to_offset, uint64_t bytes)
{
    gpuhal_status status = clean(device, chunk, bytes, 0);
    if (status) {
        return status;
    }
    gpuhal_error_forget_report();
    status = device->ops.copy(device->handle, NULL, to, to_offset, &chunk->memory, 0, bytes);
    return status ? gpuhal_device_failed(device, status, "copying from staging memory") : GPUHAL_OK;
}
