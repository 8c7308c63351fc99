/* memory/cached_import.c: see cached_import.h. A buffer's list only grows while the buffer exists, and its entries
 * never change, so no lock is needed. Two threads may import at the same time; the second thread then releases its
 * import. */
#include "memory/cached_import.h"

#include "base/error.h"

#include <stdlib.h>

/* For smaller buffers, staging is faster than importing. */
#define LEAST_BYTES (1u << 20)

/* The page size for locked memory on all supported systems. Host memory is rounded outwards to whole pages and never
 * further, because only pages that contain a byte of the buffer are known to be mapped. */
#define PAGE_BYTES 4096u

typedef struct gpuhal_cached_import {
    struct gpuhal_cached_import *next;
    gpuhal_device *device;
    gpuhal_memory memory;
    uint64_t begin;
    bool refused;
} gpuhal_cached_import;

static const gpuhal_cached_import *find(const gpuhal_buffer *buffer, const gpuhal_device *device)
{
    const gpuhal_cached_import *import = atomic_load_explicit(&buffer->cached_imports, memory_order_acquire);
    while (import && import->device != device) {
        import = import->next;
    }
    return import;
}

bool gpuhal_cached_import_possible(const gpuhal_buffer *buffer, const gpuhal_device *device)
{
    uint64_t kinds = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_IMPORT_KINDS, 0);
    const bool has_pages =
        buffer->memory.host && buffer->kind != GPUHAL_MEMORY_MIGRATING; /* an import would pin them */
    if (buffer->bytes < LEAST_BYTES || !has_pages || !(kinds >> GPUHAL_HANDLE_HOST_POINTER & 1) ||
        gpuhal_import_unit(device) > PAGE_BYTES) {
        return false;
    }
    const gpuhal_cached_import *import = find(buffer, device);
    return !import || !import->refused;
}

/* Imports the memory with the plugin, and returns the entry to cache, also for a refusal. Returns NULL if out of
 * memory. No lock is held during the call, which may page-lock gigabytes. */
static gpuhal_cached_import *ask(const gpuhal_buffer *buffer, gpuhal_device *device)
{
    gpuhal_cached_import *import = calloc(1, sizeof *import);
    if (!import) {
        return NULL;
    }
    uintptr_t first = (uintptr_t)buffer->memory.host & ~(uintptr_t)(PAGE_BYTES - 1);
    import->begin = (uintptr_t)buffer->memory.host - first;
    uint64_t bytes = (import->begin + buffer->bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    const gpuhal_alloc alloc = {
        .size = sizeof alloc,
        .bytes = bytes,
        .handle = {.size = sizeof alloc.handle,
                   .kind = GPUHAL_HANDLE_HOST_POINTER,
                   .as.pointer = (char *)buffer->memory.host - import->begin},
        .flags = gpuhal_buffer_import_flags(buffer),
    };
    import->device = device;
    import->memory.size = sizeof import->memory;
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status =
        gpuhal_device_result(device, call, device->ops.allocate(device->handle, &alloc, &import->memory));
    if (!status && import->memory.bytes < bytes) {
        gpuhal_memory_release(device, &import->memory);
        status = GPUHAL_ERROR_DRIVER;
    }
    import->refused = status != GPUHAL_OK;
    gpuhal_error_forget_report();
    return import;
}

static void destroy_import(gpuhal_cached_import *import)
{
    if (!import->refused) {
        gpuhal_memory_release(import->device, &import->memory);
    }
    free(import);
}

const gpuhal_memory *gpuhal_cached_import_get(gpuhal_buffer *buffer, gpuhal_device *device, uint64_t *out_begin)
{
    /* Read before the list is searched: if another thread adds an entry after this, the exchange below fails. */
    gpuhal_cached_import *head = atomic_load_explicit(&buffer->cached_imports, memory_order_acquire);
    const gpuhal_cached_import *found = find(buffer, device);
    gpuhal_cached_import *made = found ? NULL : ask(buffer, device);
    while (made && !found) {
        made->next = head;
        if (atomic_compare_exchange_weak_explicit(&buffer->cached_imports, &head, made, memory_order_release,
                                                  memory_order_acquire)) {
            found = made;
        } else if ((found = find(buffer, device))) {
            destroy_import(made);
        }
    }
    if (!found || found->refused) {
        return NULL;
    }
    *out_begin = found->begin;
    return &found->memory;
}

/* Relaxed order, because all references are released, and other threads added their entries before they released their
 * references. */
void gpuhal_cached_imports_release(gpuhal_buffer *buffer)
{
    gpuhal_cached_import *import = atomic_load_explicit(&buffer->cached_imports, memory_order_relaxed);
    while (import) {
        gpuhal_cached_import *next = import->next;
        destroy_import(import);
        import = next;
    }
}
