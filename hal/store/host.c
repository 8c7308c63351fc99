/* store/host.c: copies of entries in host memory: page-locked if the device supports this, pageable otherwise and for
 * an exchange. */
#include "store/store.h"

#include "base/error.h"

#include <gpuhal/transfer.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Creates a pool of READBACK memory (the device writes, the host reads) or else of UPLOAD memory. Pageable memory needs
 * no pool. */
gpuhal_status gpuhal_host_open(gpuhal_store *store)
{
    const uint32_t kinds = store->device->memory_kinds;
    const bool cached = kinds >> GPUHAL_MEMORY_READBACK & 1, any = cached || (kinds >> GPUHAL_MEMORY_UPLOAD & 1);
    if (!any || store->desc.host_bytes == 0) {
        return GPUHAL_OK;
    }
    const gpuhal_pool_desc desc = {.size = sizeof desc,
                                   .kind = cached ? GPUHAL_MEMORY_READBACK : GPUHAL_MEMORY_UPLOAD,
                                   .limit_bytes = store->desc.host_bytes == UINT64_MAX ? 0 : store->desc.host_bytes};
    return gpuhal_pool_create(store->device, &desc, &store->host_pool);
}

void gpuhal_host_close(gpuhal_store *store)
{
    gpuhal_pool_destroy(store->host_pool);
}

/* ---- a copy */

void gpuhal_host_release(gpuhal_host_copy *copy)
{
    if (copy && atomic_fetch_sub(&copy->references, 1) == 1) {
        for (uint32_t i = 0; i < copy->count; i++) {
            gpuhal_buffer_release(copy->parts[i].buffer);
            if (!copy->parts[i].buffer) {
                free(copy->parts[i].memory);
            }
        }
        free(copy);
    }
}

gpuhal_host_copy *gpuhal_host_retain(gpuhal_host_copy *copy)
{
    if (copy) {
        atomic_fetch_add(&copy->references, 1);
    }
    return copy;
}

static gpuhal_status allocate(gpuhal_pool *pool, uint64_t bytes, gpuhal_host_part *part)
{
    if (!pool) {
        part->memory = bytes <= SIZE_MAX ? malloc((size_t)bytes) : NULL;
        return part->memory ? GPUHAL_OK : gpuhal_error_host_memory();
    }
    const uint32_t flags = GPUHAL_ALLOCATE_NO_WAIT | GPUHAL_ALLOCATE_NO_EVICT;
    gpuhal_status status = gpuhal_pool_allocate(pool, NULL, bytes, flags, 0, &part->buffer);
    /* Only transfers write this memory. The host sees the bytes after each transfer, even if it is not coherent. */
    part->memory = status ? NULL : part->buffer->memory.host;
    return status;
}

static gpuhal_status create(gpuhal_pool *pool, const gpuhal_entry *entry, gpuhal_host_copy **out_copy)
{
    gpuhal_host_copy *copy = calloc(1, sizeof *copy + entry->part_count * sizeof *copy->parts);
    gpuhal_status status = copy ? GPUHAL_OK : gpuhal_error_host_memory();
    *out_copy = NULL;
    if (!copy) {
        return status;
    }
    atomic_init(&copy->references, 1);
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        copy->count = i + 1;
        status = allocate(pool, entry->parts[i].bytes, &copy->parts[i]);
    }
    if (status) {
        gpuhal_host_release(copy);
        return status;
    }
    *out_copy = copy;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_host_create(gpuhal_store *store, const gpuhal_entry *entry, gpuhal_host_copy **out_copy)
{
    return create(store->host_pool, entry, out_copy);
}

gpuhal_status gpuhal_host_create_spare(const gpuhal_entry *entry, gpuhal_host_copy **out_copy)
{
    return create(NULL, entry, out_copy);
}

gpuhal_status gpuhal_host_take(gpuhal_host_copy *copy, const gpuhal_entry *entry)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        const gpuhal_host_part *to = &copy->parts[i];
        const gpuhal_entry_part *from = &entry->parts[i];
        status = to->buffer ? gpuhal_copy(NULL, to->buffer, 0, from->device, 0, from->bytes)
                            : gpuhal_read(NULL, to->memory, from->device, 0, from->bytes);
    }
    return status;
}

gpuhal_status gpuhal_host_give(const gpuhal_host_copy *copy, const gpuhal_entry *entry, gpuhal_queue *queue)
{
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < entry->part_count && !status; i++) {
        const gpuhal_host_part *from = &copy->parts[i];
        const gpuhal_entry_part *to = &entry->parts[i];
        status = from->buffer ? gpuhal_copy(queue, to->device, 0, from->buffer, 0, to->bytes)
                              : gpuhal_write(NULL, to->device, 0, from->memory, to->bytes);
    }
    return status;
}
