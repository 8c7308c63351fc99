/* pool/pool.c: the public pool functions. */
#include "pool/pool.h"

#include "base/error.h"
#include "queue/queue.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES (64u << 20)
#define LEAST_UNIT 256u
#define DEFAULT_PERMILLE 900u /* of the device's memory; the rest is left for other programs */
#define ALLOCATE_FLAGS                                                                                                 \
    ((uint32_t)(GPUHAL_ALLOCATE_NO_WAIT | GPUHAL_ALLOCATE_WITHIN_POOL | GPUHAL_ALLOCATE_NO_EVICT))

/* ---- creating and destroying */

static gpuhal_status invalid(const char *call, const char *what)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s", call, what);
}

static gpuhal_status unknown_flags(const char *call, uint32_t bits)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: flags has unknown bits: 0x%x", call, (unsigned)bits);
}

static gpuhal_status take_desc(const gpuhal_pool_desc *given, gpuhal_pool_desc *out)
{
    const uint32_t flags = GPUHAL_POOL_NO_REUSE_OPPORTUNISTIC | GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES |
                           GPUHAL_POOL_NO_REUSE_FOLLOW_EVENT_DEPENDENCIES | GPUHAL_POOL_CHECKING;
    *out = (gpuhal_pool_desc){.size = sizeof *out};
    if (given) {
        memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    }
    if (given && given->size == 0) {
        return invalid("gpuhal_pool_create", "the size of desc is 0");
    }
    if (out->alignment & (out->alignment - 1)) {
        return invalid("gpuhal_pool_create", "the alignment is not a power of two");
    }
    if (out->limit_permille > 1000) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_pool_create: limit_permille is %u, above 1000",
                                (unsigned)out->limit_permille);
    }
    if (out->flags & ~flags) {
        return unknown_flags("gpuhal_pool_create", out->flags & ~flags);
    }
    return GPUHAL_OK;
}

/* Returns the lower of two limits; 0 means no limit. */
static uint64_t lower_limit(uint64_t one, uint64_t other)
{
    return one == 0 || (other != 0 && other < one) ? other : one;
}

/* Every block begins and ends at a multiple of the unit, so that a unit that the device copies, fills or binds as a
 * whole belongs to only one buffer. */
static uint64_t unit_of(const gpuhal_device *device, uint64_t asked)
{
    const gpuhal_facts *facts = &device->listed->facts;
    uint64_t unit = asked > LEAST_UNIT ? asked : LEAST_UNIT;
    const uint64_t needs[] = {gpuhal_facts_u64(facts, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 1), device->copy_mask + 1,
                              device->fill_mask + 1};
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        unit = needs[i] > unit ? needs[i] : unit;
    }
    return unit;
}

static void complete(gpuhal_pool *pool)
{
    const gpuhal_device *device = pool->device;
    gpuhal_pool_desc *desc = &pool->desc;
    pool->unit = desc->export_kinds ? 1 : unit_of(device, desc->alignment);
    desc->segment_bytes = desc->segment_bytes ? desc->segment_bytes : SEGMENT_BYTES;
    if (desc->segment_bytes > device->allocation_max_bytes) {
        desc->segment_bytes = device->allocation_max_bytes;
    }
    const uint64_t total = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, 0);
    const bool named = desc->limit_bytes > 0 || desc->limit_permille > 0;
    const uint32_t most = named || desc->kind != GPUHAL_MEMORY_DEVICE ? desc->limit_permille : DEFAULT_PERMILLE;
    const uint64_t limit = desc->limit_bytes < UINT64_MAX ? desc->limit_bytes : 0;
    atomic_init(&pool->limit_bytes, lower_limit(limit, total / 1000 * most));
}

static void free_lanes(gpuhal_pool *pool)
{
    for (gpuhal_lane *lane = pool->lanes, *next; lane; lane = next) {
        next = lane->next;
        if (lane->queue) {
            gpuhal_queue_release(lane->queue);
        }
        gpuhal_bins_destroy(lane->bins);
        gpuhal_mutex_finish(&lane->mutex);
        free(lane);
    }
}

static void free_pool(gpuhal_pool *pool)
{
    gpuhal *gpu = pool->device->gpu;
    gpuhal_pools *pools = gpu->layers.pools;
    gpuhal_pool_hold_segments(pool);
    gpuhal_mutex_lock(&pools->mutex);
    gpuhal_pool **link = &pools->first;
    while (*link != pool) {
        link = &(*link)->next;
    }
    *link = pool->next;
    gpuhal_mutex_unlock(&pools->mutex);
    gpuhal_pending_free_all(pool);
    for (uint32_t i = 0; i < pool->segment_space; i++) {
        gpuhal_buffer_release(pool->segments[i].buffer);
    }
    free(pool->segments);
    gpuhal_pool_free_range(pool);
    while (pool->spare) {
        gpuhal_part *part = pool->spare;
        pool->spare = part->next;
        free(part);
    }
    free_lanes(pool);
    gpuhal_blocks_finish(&pool->blocks);
    gpuhal_bins_destroy(pool->common);
    gpuhal_sole_end(pool);
    gpuhal_condition_finish(&pool->condition);
    gpuhal_mutex_finish(&pool->mutex);
    free(pool);
    gpuhal_unreference(gpu);
}

static gpuhal_pool *make_pool(gpuhal_device *device, const gpuhal_pool_desc *desc)
{
    gpuhal_pool *pool = calloc(1, sizeof *pool);
    gpuhal_bins *common = pool ? gpuhal_bins_create() : NULL;
    if (!common) {
        free(pool);
        return NULL;
    }
    pool->device = device;
    pool->desc = *desc;
    pool->trace = &device->gpu->layers.pools->trace;
    pool->checks = (desc->flags & GPUHAL_POOL_CHECKING) || device->gpu->settings.pool_check;
    /* Lanes keep no parts if keep_bytes is set, because a release must then immediately return unused segments above
     * it, nor in pools with exportable memory, because their parts are whole segments. In checking mode no part has a
     * home, so none is kept. */
    pool->keeps = desc->keep_bytes == 0 && desc->export_kinds == 0;
    pool->references = 1;
    pool->common = common;
    pool->pending_end = &pool->pending;
    gpuhal_mutex_init(&pool->mutex);
    gpuhal_condition_init(&pool->condition);
    gpuhal_blocks_init(&pool->blocks);
    complete(pool);
    return pool;
}

gpuhal_status gpuhal_pool_create(gpuhal_device *device, const gpuhal_pool_desc *given, gpuhal_pool **out_pool)
{
    gpuhal_pool_desc desc;
    if (out_pool) {
        *out_pool = NULL;
    }
    if (!device || !out_pool) {
        return invalid("gpuhal_pool_create", "device or out_pool is NULL");
    }
    gpuhal_status status = take_desc(given, &desc);
    status = status ? status : gpuhal_device_open(device);
    if (status) {
        return status;
    }
    const gpuhal_buffer_desc least = {
        .size = sizeof least, .kind = desc.kind, .bytes = 1, .export_kinds = desc.export_kinds};
    gpuhal_buffer_desc checked;
    gpuhal_alloc alloc;
    gpuhal_tag *tag = NULL;
    status = gpuhal_buffer_take_desc("gpuhal_pool_create", &least, &checked);
    status = status ? status : gpuhal_buffer_plan(device, &checked, &alloc);
    status = status ? status : gpuhal_tag_get(device, desc.tag, &tag);
    gpuhal_pool *pool = status ? NULL : make_pool(device, &desc);
    if (!pool) {
        return status ? status : gpuhal_error_host_memory();
    }
    pool->tag = tag;
    gpuhal_pools *pools = device->gpu->layers.pools;
    atomic_fetch_add(&device->gpu->references, 1);
    gpuhal_mutex_lock(&pools->mutex);
    pool->next = pools->first;
    pools->first = pool;
    pool->number = ++pools->created;
    gpuhal_trace_pool(pool, GPUHAL_TRACE_CREATE, 0, 0);
    gpuhal_mutex_unlock(&pools->mutex);
    *out_pool = pool;
    return GPUHAL_OK;
}

/* ---- allocating and releasing */

/* The queue may be NULL. */
static gpuhal_buffer *begin_part(gpuhal_part *part, gpuhal_queue *queue)
{
    atomic_store_explicit(&part->buffer.used_in, queue, memory_order_relaxed);
    atomic_store_explicit(&part->buffer.tag, part->pool->tag, memory_order_relaxed);
    atomic_store_explicit(&part->buffer.references, 1, memory_order_release);
    return &part->buffer;
}

/* The caller holds the mutex. */
static gpuhal_buffer *fill_part(gpuhal_part *part, const gpuhal_request *request, gpuhal_block_id id)
{
    gpuhal_pool *pool = part->pool;
    gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
    gpuhal_buffer *whole = pool->segments[block->region].buffer, *buffer = &part->buffer;
    block->user = part;
    part->block = id;
    part->home = request->queue && !pool->checks ? gpuhal_lane_find(pool, request->queue) : NULL;
    if (part->home) {
        part->home->parts++;
        part->began = gpuhal_lane_count(part->home);
        part->made = part->began + 1;
    }
    buffer->whole = whole;
    buffer->root = whole->root;
    buffer->begin = block->offset;
    buffer->bytes = request->bytes;
    buffer->memory = whole->memory;
    if (whole->export_kinds) { /* the part has no neighbours, so the whole segment can be imported and exported */
        buffer->export_kinds = whole->export_kinds;
        buffer->alignment = whole->alignment;
        buffer->allocated = whole->allocated;
    } else {
        buffer->memory.object = NULL; /* cleared so that a call that forgets to use the whole buffer fails */
        buffer->memory.bytes = block->bytes;
    }
    buffer->memory.address += whole->memory.address ? block->offset : 0;
    buffer->memory.host = whole->memory.host ? (char *)whole->memory.host + block->offset : NULL;
    pool->references++;
    gpuhal_pool_begin_change(pool);
    gpuhal_amount_add(&pool->used, block->bytes);
    gpuhal_amount_add(&pool->requested, request->bytes);
    gpuhal_amount_add(&pool->buffers, 1);
    part->of_store = request->of_store;
    pool->store_bytes += part->of_store ? block->bytes : 0;
    part->segment = block->region;
    part->number = atomic_load_explicit(&pool->buffers.in, memory_order_relaxed);
    gpuhal_trace_part(part, GPUHAL_TRACE_ALLOCATE, request->queue);
    gpuhal_pool_end_change(pool);
    return begin_part(part, request->queue);
}

static gpuhal_status check_request(const gpuhal_pool *pool, const gpuhal_queue *queue, uint64_t bytes, uint32_t flags)
{
    gpuhal *gpu = pool->device->gpu;
    gpuhal_status status = gpuhal_device_check(pool->device);
    if (status) {
        return status;
    }
    if (queue && queue->device->gpu != gpu) {
        return gpuhal_two_objects("gpuhal_pool_allocate", "pool and queue", gpu, queue->device->gpu);
    }
    if (bytes == 0) {
        return invalid("gpuhal_pool_allocate", "a buffer has at least 1 byte");
    }
    if (flags & ~ALLOCATE_FLAGS) {
        return unknown_flags("gpuhal_pool_allocate", flags & ~ALLOCATE_FLAGS);
    }
    /* Requests to the driver are multiples of the unit, so rounding up to it cannot overflow. */
    const uint64_t guard = pool->checks ? GPUHAL_CHECK_BYTES : 0;
    const uint64_t whole = pool->device->allocation_max_bytes & ~(pool->unit - 1);
    const uint64_t most = whole > guard ? whole - guard : 0;
    if (bytes > most) {
        gpuhal_error_set(GPUHAL_ERROR_TOO_LARGE,
                         "%s: %" PRIu64 " bytes requested of a pool, the largest allocation is %" PRIu64,
                         pool->device->id, bytes, most);
        gpuhal_error_add_device(pool->device->candidate->name, pool->device->id);
        gpuhal_error_add_bytes(bytes, UINT64_MAX, most);
        return GPUHAL_ERROR_TOO_LARGE;
    }
    return GPUHAL_OK;
}

static gpuhal_status find_block_unlocks(const gpuhal_request *request, gpuhal_block_id *out_block)
{
    gpuhal_pool *pool = request->pool;
    gpuhal_lane *lane = request->queue ? gpuhal_lane_get(pool, request->queue) : NULL;
    if (!gpuhal_blocks_reserve(&pool->blocks) || (request->queue && !lane)) {
        return gpuhal_error_host_memory();
    }
    if (lane) {
        gpuhal_lane_give_kept(pool, lane);
    }
    *out_block = gpuhal_pool_search(pool, request->queue, request->block_bytes);
    if (!*out_block && gpuhal_pool_give_kept(pool) > 0) {
        *out_block = gpuhal_pool_search(pool, request->queue, request->block_bytes);
    }
    if (*out_block) {
        return GPUHAL_OK;
    }
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_status status = gpuhal_pool_climb(request, out_block);
    gpuhal_mutex_lock(&pool->mutex);
    if (lane) {
        (void)gpuhal_lane_count(lane); /* the climb may have changed the pool, so older parts must not be kept */
    }
    return status;
}

/* Called in checking mode. Releases the buffer on failure. */
static gpuhal_status prepare(gpuhal_queue *queue, gpuhal_buffer **buffer)
{
    gpuhal_status status = gpuhal_check_begin(*buffer, queue);
    if (status) {
        gpuhal_buffer_release(*buffer);
        *buffer = NULL;
    }
    return status;
}

static gpuhal_status allocate(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                              uint64_t timeout_ns, bool of_store, gpuhal_buffer **out_buffer)
{
    if (out_buffer) {
        *out_buffer = NULL;
    }
    if (!pool || !out_buffer) {
        return invalid("gpuhal_pool_allocate", "pool or out_buffer is NULL");
    }
    gpuhal_status status = check_request(pool, queue, bytes, flags);
    if (status) {
        return status;
    }
    const uint64_t mask = pool->unit - 1, guard = pool->checks ? GPUHAL_CHECK_BYTES : 0;
    const gpuhal_request request = {.pool = pool,
                                    .queue = queue,
                                    .bytes = bytes,
                                    .block_bytes = (bytes + guard + mask) & ~mask,
                                    .flags = flags,
                                    .deadline_ns = timeout_ns ? gpuhal_deadline(timeout_ns) : 0,
                                    .of_store = of_store};
    gpuhal_block_id block = 0;
    gpuhal_part *part = of_store ? NULL : gpuhal_part_take_kept(pool, queue, bytes);
    if (part) {
        *out_buffer = begin_part(part, queue);
        return GPUHAL_OK;
    }
    if (pool->checks) {
        gpuhal_pool_poll(pool);
    }
    gpuhal_mutex_lock(&pool->mutex);
    part = gpuhal_part_take(pool);
    status = part ? find_block_unlocks(&request, &block) : gpuhal_error_host_memory();
    if (!status) {
        gpuhal_pool_limit_kept(pool, gpuhal_block_at(&pool->blocks, block)->bytes, bytes);
        *out_buffer = fill_part(part, &request, block);
    } else if (part) {
        gpuhal_part_put_back(part);
        gpuhal_trace_refusal(pool, GPUHAL_TRACE_ALLOCATE, queue, bytes, status);
    }
    gpuhal_mutex_unlock(&pool->mutex);
    return status || !pool->checks ? status : prepare(queue, out_buffer);
}

gpuhal_status gpuhal_pool_allocate(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                   uint64_t timeout_ns, gpuhal_buffer **out_buffer)
{
    return allocate(pool, queue, bytes, flags, timeout_ns, false, out_buffer);
}

gpuhal_status gpuhal_pool_allocate_for_store(gpuhal_pool *pool, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                             uint64_t timeout_ns, gpuhal_buffer **out_buffer)
{
    return allocate(pool, queue, bytes, flags, timeout_ns, true, out_buffer);
}

void gpuhal_part_join_store(gpuhal_buffer *buffer)
{
    gpuhal_part *part = (gpuhal_part *)buffer;
    gpuhal_pool *pool = part->pool;
    gpuhal_mutex_lock(&pool->mutex);
    if (!part->of_store) {
        part->of_store = true;
        pool->store_bytes += gpuhal_block_at(&pool->blocks, part->block)->bytes;
    }
    gpuhal_mutex_unlock(&pool->mutex);
}

/* Releases one reference. First returns unused segments to the driver: all if the pool was destroyed, or those above
 * keep_bytes if it is set. Segments behind work that has ended are also unused. The caller holds the mutex; this
 * function unlocks it. */
static void settle(gpuhal_pool *pool)
{
    const uint64_t keep = pool->destroyed ? 0 : pool->desc.keep_bytes ? pool->desc.keep_bytes : UINT64_MAX;
    uint64_t bytes = 0;
    gpuhal_buffer *list = NULL;
    if (pool->has_unused && keep < UINT64_MAX) {
        pool->has_unused = false;
        gpuhal_mutex_unlock(&pool->mutex);
        gpuhal_pool_poll(pool);
        gpuhal_mutex_lock(&pool->mutex);
        list = gpuhal_pool_take_unused(pool, keep, UINT64_MAX, &bytes);
    }
    if (list) {
        gpuhal_mutex_unlock(&pool->mutex);
        gpuhal_segments_release(list);
        gpuhal_mutex_lock(&pool->mutex);
    }
    const bool last = --pool->references == 0;
    gpuhal_mutex_unlock(&pool->mutex);
    if (last) {
        free_pool(pool);
    }
}

void gpuhal_pool_unreference(gpuhal_pool *pool)
{
    gpuhal_mutex_lock(&pool->mutex);
    settle(pool);
}

void gpuhal_part_release(gpuhal_buffer *buffer)
{
    gpuhal_part *part = (gpuhal_part *)buffer;
    gpuhal_pool *pool = part->pool;
    if (gpuhal_part_keep(part)) {
        return;
    }
    gpuhal_mutex_lock(&pool->mutex);
    if (part->home) {
        gpuhal_lane_give_kept(pool, part->home);
        (void)gpuhal_lane_count(part->home);
    }
    gpuhal_pending *pending = gpuhal_part_give(part);
    gpuhal_trace_part(part, GPUHAL_TRACE_RELEASE, part->home ? part->home->queue : NULL);
    if (pending) {
        gpuhal_mutex_unlock(&pool->mutex);
        gpuhal_pending_record(pool, pending);
        if (pool->checks) {
            gpuhal_pool_poll(pool);
        }
        gpuhal_mutex_lock(&pool->mutex);
    }
    settle(pool);
}

void gpuhal_pool_destroy(gpuhal_pool *pool)
{
    if (!pool || gpuhal_is_inherited(pool->device->gpu)) {
        return;
    }
    gpuhal_mutex_lock(&pool->mutex);
    pool->destroyed = pool->has_unused = true;
    gpuhal_pool_close_lanes(pool);
    gpuhal_trace_pool(pool, GPUHAL_TRACE_DESTROY, 0, 0);
    settle(pool);
}

/* Compares the gpuhal objects because the enqueuing call has not checked its arguments yet. The pool must not record a
 * queue of another gpuhal object, which may be destroyed before the pool. */
gpuhal_status gpuhal_part_use(gpuhal_buffer *buffer, gpuhal_queue *queue)
{
    gpuhal_part *part = (gpuhal_part *)buffer;
    if (queue->device->gpu != buffer->device->gpu) {
        return gpuhal_two_objects("using a buffer", "buffer and queue", buffer->device->gpu, queue->device->gpu);
    }
    gpuhal_mutex_lock(&part->pool->mutex);
    bool added = gpuhal_part_add_use(part, queue);
    if (added) {
        gpuhal_trace_part(part, GPUHAL_TRACE_USE, queue);
    }
    gpuhal_mutex_unlock(&part->pool->mutex);
    if (!added) {
        return gpuhal_error_host_memory();
    }
    atomic_store_explicit(&buffer->used_in, queue, memory_order_relaxed);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_buffer_use(gpuhal_buffer *buffer, gpuhal_queue *queue)
{
    if (!buffer || !queue) {
        return invalid("gpuhal_buffer_use", "an argument is NULL");
    }
    if (!buffer->is_part) {
        return invalid("gpuhal_buffer_use", "the buffer is not of a pool: call gpuhal_queue_keep() for it");
    }
    gpuhal *gpu = buffer->device->gpu;
    if (queue->device->gpu != gpu) {
        return gpuhal_two_objects("gpuhal_buffer_use", "buffer and queue", gpu, queue->device->gpu);
    }
    gpuhal_status status = gpuhal_check(gpu);
    return status ? status : gpuhal_part_use(buffer, queue);
}

/* Address lookups are too rare to justify an index that every release would have to update. The caller holds the
 * mutex. */
static gpuhal_buffer *find_in(gpuhal_pool *pool, const gpuhal_buffer *segment, const uint64_t *offset)
{
    gpuhal_buffer *found = NULL;
    for (gpuhal_block_id id = 1; id < pool->blocks.touched && !found; id++) {
        const gpuhal_block *block = gpuhal_block_at(&pool->blocks, id);
        if (block->user && *offset >= block->offset &&
            *offset - block->offset < block->bytes && pool->segments[block->region].buffer == segment) {
            gpuhal_buffer *buffer = block->user;
            bool inside = *offset - block->offset < buffer->bytes;
            found = inside && gpuhal_buffer_try_retain(buffer) ? buffer : NULL;
        }
    }
    return found;
}

/* The caller has a reference to the segment but not to its pool, which may have been freed. */
gpuhal_buffer *gpuhal_part_find(gpuhal_buffer *segment, uint64_t *offset)
{
    gpuhal_pools *pools = segment->device->gpu->layers.pools;
    gpuhal_buffer *found = NULL;
    gpuhal_mutex_lock(&pools->mutex);
    gpuhal_pool *pool = pools->first;
    while (pool && pool != segment->pool) {
        pool = pool->next;
    }
    if (pool) {
        gpuhal_mutex_lock(&pool->mutex);
        found = find_in(pool, segment, offset);
        gpuhal_mutex_unlock(&pool->mutex);
    }
    gpuhal_mutex_unlock(&pools->mutex);
    *offset -= found ? found->begin : 0;
    gpuhal_buffer_release(segment);
    return found;
}
