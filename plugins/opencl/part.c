/* opencl/part.c: sub-buffers. They are needed because a buffer argument of a kernel cannot have an offset. The latest
 * sub-buffers of each memory are cached, so that the next launch with the same range finds its sub-buffer. The cache
 * and each launch have their own references, so another thread may replace a cached sub-buffer at any time. Sub-buffers
 * are released first, because they keep the memory alive.
 */
#include "device.h"

#include <stdlib.h>

#define PLACE_BITS 6u
#define PLACES     (1u << PLACE_BITS)

typedef struct part {
    uint64_t offset, bytes;
    cl_mem mem; /* NULL if unused */
} part;

typedef struct gpuhal_opencl_parts {
    pthread_mutex_t lock; /* protects the places */
    part places[PLACES];
} gpuhal_opencl_parts;

/* A sub-buffer of a sub-buffer must be created from the whole buffer (OpenCL 3.0, section 5.2.1). */
cl_mem gpuhal_opencl_create_part(cl_mem mem, uint64_t offset, uint64_t bytes, cl_int *out_code)
{
    cl_mem whole = NULL;
    size_t start = 0;
    const bool is_part =
        gpuhal_opencl_api.clGetMemObjectInfo(mem, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof whole, &whole, NULL) ==
            CL_SUCCESS &&
        whole && gpuhal_opencl_api.clGetMemObjectInfo(mem, CL_MEM_OFFSET, sizeof start, &start, NULL) == CL_SUCCESS;
    const cl_buffer_region region = {.origin = (is_part ? start : 0) + (size_t)offset, .size = (size_t)bytes};
    return gpuhal_opencl_api.clCreateSubBuffer(is_part ? whole : mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region,
                                               out_code);
}

/* Returns the memory's table, or NULL if out of memory. If two threads create a table, one table is freed. */
static gpuhal_opencl_parts *table_of(gpuhal_opencl_buffer *buffer)
{
    gpuhal_opencl_parts *table = atomic_load_explicit(&buffer->parts, memory_order_acquire), *found = NULL;
    if (table || !(table = calloc(1, sizeof *table))) {
        return table;
    }
    pthread_mutex_init(&table->lock, NULL);
    if (!atomic_compare_exchange_strong(&buffer->parts, &found, table)) {
        pthread_mutex_destroy(&table->lock);
        free(table);
        return found;
    }
    return table;
}

/* Offsets are multiples of large numbers, so the upper bits of a product are used (Fibonacci hashing). */
static part *place_of(gpuhal_opencl_parts *table, uint64_t offset)
{
    return &table->places[(offset * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - PLACE_BITS)];
}

static cl_mem find(gpuhal_opencl_parts *table, uint64_t offset, uint64_t bytes)
{
    cl_mem found = NULL;
    const part *place = place_of(table, offset);
    pthread_mutex_lock(&table->lock);
    if (place->mem && place->offset == offset && place->bytes == bytes &&
        gpuhal_opencl_api.clRetainMemObject(place->mem) == CL_SUCCESS) {
        found = place->mem;
    }
    pthread_mutex_unlock(&table->lock);
    return found;
}

static void keep(gpuhal_opencl_parts *table, const part *added)
{
    if (gpuhal_opencl_api.clRetainMemObject(added->mem) != CL_SUCCESS) {
        return;
    }
    part *place = place_of(table, added->offset);
    pthread_mutex_lock(&table->lock);
    const cl_mem former = place->mem;
    *place = *added;
    pthread_mutex_unlock(&table->lock);
    if (former) {
        gpuhal_opencl_api.clReleaseMemObject(former);
    }
}

cl_mem gpuhal_opencl_take_part(gpuhal_opencl_buffer *buffer, uint64_t offset, uint64_t bytes, cl_int *out_code)
{
    gpuhal_opencl_parts *table = table_of(buffer);
    part wanted = {.offset = offset, .bytes = bytes, .mem = table ? find(table, offset, bytes) : NULL};
    if (wanted.mem) {
        return wanted.mem;
    }
    wanted.mem = gpuhal_opencl_create_part(buffer->mem, offset, bytes, out_code);
    if (wanted.mem && table) {
        keep(table, &wanted);
    }
    return wanted.mem;
}

void gpuhal_opencl_release_parts(gpuhal_opencl_buffer *buffer)
{
    gpuhal_opencl_parts *table = atomic_load(&buffer->parts);
    for (uint32_t i = 0; table && i < PLACES; i++) {
        if (table->places[i].mem) {
            gpuhal_opencl_api.clReleaseMemObject(table->places[i].mem);
        }
    }
    if (table) {
        pthread_mutex_destroy(&table->lock);
    }
    free(table);
}
