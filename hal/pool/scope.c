/* pool/scope.c: buffers that end together. A scope has the reference with which each of its buffers was allocated, in a
 * list through the parts; the pool's mutex protects lists and the tree of scopes. */
#include "pool/pool.h"

#include "core/error.h"

#include <stdlib.h>
#include <string.h>

struct gpuhal_scope {
    gpuhal_pool *pool; /* with a reference */
    gpuhal_scope *parent, *inner, *next; /* `inner` is the first of those begun in it, linked by `next` */
    gpuhal_part *parts;
    gpuhal_amount requested, buffers; /* of those inside as well */
};

static gpuhal_status invalid(const char *call, const char *what)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: %s", call, what);
}

gpuhal_status gpuhal_scope_begin(gpuhal_pool *pool, gpuhal_scope *outer, gpuhal_scope **out_scope)
{
    if (out_scope) {
        *out_scope = NULL;
    }
    if (!pool || !out_scope || (outer && outer->pool != pool)) {
        return invalid("gpuhal_scope_begin", "pool or out_scope is NULL, or the outer scope is of another pool");
    }
    gpuhal_status status = gpuhal_check(pool->device->gpu);
    if (status) {
        return status;
    }
    gpuhal_scope *scope = calloc(1, sizeof *scope);
    if (!scope) {
        return gpuhal_error_host_memory();
    }
    scope->pool = pool;
    scope->parent = outer;
    gpuhal_mutex_lock(&pool->mutex);
    pool->references++;
    if (outer) {
        scope->next = outer->inner;
        outer->inner = scope;
    }
    gpuhal_mutex_unlock(&pool->mutex);
    *out_scope = scope;
    return GPUHAL_OK;
}

/* With the mutex held. */
static void link_part(gpuhal_scope *scope, gpuhal_part *part)
{
    part->scope = scope;
    part->scope_before = NULL;
    part->scope_after = scope->parts;
    if (scope->parts) {
        scope->parts->scope_before = part;
    }
    scope->parts = part;
    for (gpuhal_scope *each = scope; each; each = each->parent) {
        gpuhal_amount_add(&each->requested, part->buffer.bytes);
        gpuhal_amount_add(&each->buffers, 1);
    }
}

/* With the mutex held: the caller has the scope's reference from now on. */
static void unlink_part(gpuhal_part *part)
{
    gpuhal_scope *scope = part->scope;
    *(part->scope_before ? &part->scope_before->scope_after : &scope->parts) = part->scope_after;
    if (part->scope_after) {
        part->scope_after->scope_before = part->scope_before;
    }
    part->scope = NULL;
    for (gpuhal_scope *each = scope; each; each = each->parent) {
        gpuhal_amount_remove(&each->requested, part->buffer.bytes);
        gpuhal_amount_remove(&each->buffers, 1);
    }
}

gpuhal_status gpuhal_scope_allocate(gpuhal_scope *scope, gpuhal_queue *queue, uint64_t bytes, uint32_t flags,
                                    uint64_t timeout_ns, gpuhal_buffer **out_buffer)
{
    if (out_buffer) {
        *out_buffer = NULL;
    }
    if (!scope) {
        return invalid("gpuhal_scope_allocate", "scope is NULL");
    }
    gpuhal_status status = gpuhal_pool_allocate(scope->pool, queue, bytes, flags, timeout_ns, out_buffer);
    if (!status) {
        gpuhal_mutex_lock(&scope->pool->mutex);
        link_part(scope, (gpuhal_part *)*out_buffer);
        gpuhal_mutex_unlock(&scope->pool->mutex);
    }
    return status;
}

gpuhal_status gpuhal_scope_keep(gpuhal_scope *scope, gpuhal_buffer *buffer)
{
    if (!scope || !buffer || !buffer->is_part) {
        return invalid("gpuhal_scope_keep", "scope or buffer is NULL, or the buffer is not of a pool");
    }
    gpuhal_status status = gpuhal_check(scope->pool->device->gpu);
    if (status) {
        return status;
    }
    gpuhal_part *part = (gpuhal_part *)buffer;
    gpuhal_mutex_lock(&part->pool->mutex);
    const bool inside = part->scope == scope;
    if (inside) {
        unlink_part(part);
    }
    gpuhal_mutex_unlock(&part->pool->mutex);
    return inside ? GPUHAL_OK : invalid("gpuhal_scope_keep", "the buffer is not of this scope");
}

bool gpuhal_scope_owns(const gpuhal_part *part)
{
    gpuhal_mutex_lock(&part->pool->mutex);
    const bool owned = part->scope != NULL;
    gpuhal_mutex_unlock(&part->pool->mutex);
    return owned;
}

/* One that is begun in it, or else the scope itself. With the mutex held. */
static gpuhal_scope *innermost(gpuhal_scope *scope)
{
    while (scope->inner) {
        scope = scope->inner;
    }
    return scope;
}

/* With the mutex held. */
static void unlink_scope(gpuhal_scope *scope)
{
    gpuhal_scope **link = scope->parent ? &scope->parent->inner : NULL;
    while (link && *link != scope) {
        link = &(*link)->next;
    }
    if (link) {
        *link = scope->next;
    }
}

/* Ends a scope in which there is no other. */
static void end_one(gpuhal_scope *scope)
{
    gpuhal_pool *pool = scope->pool;
    gpuhal_mutex_lock(&pool->mutex);
    while (scope->parts) {
        gpuhal_part *part = scope->parts;
        unlink_part(part);
        gpuhal_mutex_unlock(&pool->mutex);
        gpuhal_buffer_release(&part->buffer);
        gpuhal_mutex_lock(&pool->mutex);
    }
    unlink_scope(scope);
    gpuhal_mutex_unlock(&pool->mutex);
    gpuhal_pool_unreference(pool);
    free(scope);
}

void gpuhal_scope_end(gpuhal_scope *scope)
{
    if (!scope || gpuhal_is_inherited(scope->pool->device->gpu)) {
        return;
    }
    for (gpuhal_scope *each = NULL; each != scope;) {
        gpuhal_mutex_lock(&scope->pool->mutex);
        each = innermost(scope);
        gpuhal_mutex_unlock(&scope->pool->mutex);
        end_one(each);
    }
}

gpuhal_status gpuhal_scope_get_statistics(const gpuhal_scope *scope, gpuhal_scope_statistics *out_statistics)
{
    if (!scope || !out_statistics || out_statistics->size == 0) {
        return invalid("gpuhal_scope_get_statistics", "an argument is NULL, or its size is 0");
    }
    gpuhal_status status = gpuhal_check(scope->pool->device->gpu);
    if (status) {
        return status;
    }
    const gpuhal_scope_statistics all = {.size = out_statistics->size,
                                         .requested = gpuhal_amount_read(&scope->requested),
                                         .buffers = gpuhal_amount_read(&scope->buffers)};
    memcpy(out_statistics, &all, all.size < sizeof all ? all.size : sizeof all);
    return GPUHAL_OK;
}
