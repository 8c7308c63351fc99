/* opencl/memory.c: allocates, frees and maps memory.
 *
 * OpenCL allocates lazily. Device memory is committed by migrating it to the device without its contents. This forces
 * the driver to allocate the memory. Page-locked memory is committed by touching its pages. device.h describes the two
 * kinds of memory.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <stdlib.h>

#define HOST_PAGE      4096u
#define HOST_ALIGNMENT 64u /* guaranteed by the core */

/* OpenCL before 1.2 has no migration, so one byte is written instead. Old drivers then allocate the buffer. Waits for
 * the command, because it may not fail until it is executed. */
static cl_int commit(gpuhal_plugin_device *device, cl_mem mem)
{
    gpuhal_opencl_stream stream = gpuhal_opencl_take_stream(device);
    cl_event event = NULL;
    cl_int code;
    if (gpuhal_opencl_api.clEnqueueMigrateMemObjects && device->entry->version >= 102) {
        code = gpuhal_opencl_api.clEnqueueMigrateMemObjects(stream.queue, 1, &mem,
                                                            CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, &event);
    } else {
        const unsigned char zero = 0;
        code = gpuhal_opencl_api.clEnqueueWriteBuffer(stream.queue, mem, CL_TRUE, 0, 1, &zero, 0, NULL, &event);
    }
    code = gpuhal_opencl_finish(code, event);
    gpuhal_opencl_give_stream(device, stream, code);
    return code;
}

/* If a driver returns neither a buffer nor an error code, it is assumed to be out of memory. */
static gpuhal_status create(gpuhal_plugin_device *device, cl_mem_flags flags, uint64_t bytes, void *under,
                            cl_mem *out_mem)
{
    cl_int code = CL_SUCCESS;
    *out_mem =
        gpuhal_opencl_api.clCreateBuffer(device->context, CL_MEM_READ_WRITE | flags, (size_t)bytes, under, &code);
    return *out_mem ? GPUHAL_OK
                    : gpuhal_opencl_result(device, "clCreateBuffer", code != CL_SUCCESS ? code : CL_OUT_OF_RESOURCES);
}

/* clSVMAlloc() memory used by a buffer. It is freed when the driver has dropped the last reference to the buffer, which
 * may be the application's. Retains the context, which is needed to free the memory. */
typedef struct shared_memory {
    cl_context context;
    void *pointer;
} shared_memory;

static void free_shared(shared_memory *shared)
{
    if (shared->pointer) {
        gpuhal_opencl_api.clSVMFree(shared->context, shared->pointer);
    }
    gpuhal_opencl_api.clReleaseContext(shared->context);
    free(shared);
}

static void CL_CALLBACK buffer_is_gone(cl_mem mem, void *user)
{
    (void)mem;
    free_shared(user);
}

static gpuhal_status create_over(gpuhal_plugin_device *device, shared_memory *shared, gpuhal_memory *out_memory)
{
    gpuhal_opencl_buffer *buffer = out_memory->object;
    if (!shared->pointer) {
        return gpuhal_opencl_result(device, "clSVMAlloc", CL_MEM_OBJECT_ALLOCATION_FAILURE);
    }
    gpuhal_status status = create(device, CL_MEM_USE_HOST_PTR, out_memory->bytes, shared->pointer, &buffer->mem);
    if (status != GPUHAL_OK) {
        return status;
    }
    const cl_int code = gpuhal_opencl_api.clSetMemObjectDestructorCallback(buffer->mem, buffer_is_gone, shared);
    if (code != CL_SUCCESS) {
        gpuhal_opencl_api.clReleaseMemObject(buffer->mem);
    }
    return gpuhal_opencl_result(device, "clSetMemObjectDestructorCallback", code);
}

/* Allocates host-visible device memory. A buffer that is created with clSVMAlloc() memory uses this memory itself
 * (OpenCL 3.0, section 5.2.1). Fine-grained memory need not be mapped (5.6.1), and kernels access it at the host
 * address. clSVMAlloc() has already committed it. */
static gpuhal_status allocate_shared(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                     gpuhal_memory *out_memory)
{
    shared_memory *shared = malloc(sizeof *shared);
    if (!shared || gpuhal_opencl_api.clRetainContext(device->context) != CL_SUCCESS) {
        free(shared);
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
    const uint64_t alignment = alloc->alignment > HOST_ALIGNMENT ? alloc->alignment : HOST_ALIGNMENT;
    shared->context = device->context;
    shared->pointer =
        gpuhal_opencl_api.clSVMAlloc(device->context, flags, (size_t)alloc->bytes, (cl_uint)alignment);
    gpuhal_status status = create_over(device, shared, out_memory);
    if (status != GPUHAL_OK) {
        free_shared(shared);
        return status;
    }
    ((gpuhal_opencl_buffer *)out_memory->object)->shared = true;
    out_memory->host = shared->pointer;
    out_memory->address = (uintptr_t)shared->pointer;
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL | GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED;
    return GPUHAL_OK;
}

/* OpenCL device memory has no address, so an alignment beyond the guaranteed one can be neither achieved nor
 * checked. */
static gpuhal_status allocate_device(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                     gpuhal_memory *out_memory)
{
    gpuhal_opencl_buffer *buffer = out_memory->object;
    if (alloc->alignment > device->entry->base_alignment) {
        return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                                    "OpenCL guarantees no alignment of device memory above binding_alignment_bytes");
    }
    if (device->entry->shares) {
        return allocate_shared(device, alloc, out_memory);
    }
    /* PoCL (3.1, 6.0) allocates host memory when the buffer is first used, and aborts the process if the allocation
     * fails. With this flag clCreateBuffer allocates the memory and can return an error. */
    gpuhal_status status =
        create(device, device->entry->software ? CL_MEM_ALLOC_HOST_PTR : 0, alloc->bytes, NULL, &buffer->mem);
    if (status != GPUHAL_OK) {
        return status;
    }
    status = gpuhal_opencl_result(device, "clEnqueueMigrateMemObjects", commit(device, buffer->mem));
    if (status != GPUHAL_OK) {
        gpuhal_opencl_api.clReleaseMemObject(buffer->mem);
        return status;
    }
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    return GPUHAL_OK;
}

/* If the result is NULL, @p out_code is an error. */
static void *map_blocking(gpuhal_plugin_device *device, cl_mem mem, cl_map_flags flags, uint64_t offset,
                          uint64_t bytes, cl_int *out_code)
{
    gpuhal_opencl_stream stream = gpuhal_opencl_take_stream(device);
    void *pointer = gpuhal_opencl_api.clEnqueueMapBuffer(stream.queue, mem, CL_TRUE, flags, (size_t)offset,
                                                         (size_t)bytes, 0, NULL, NULL, out_code);
    gpuhal_opencl_give_stream(device, stream, pointer ? CL_SUCCESS : *out_code);
    if (!pointer && *out_code == CL_SUCCESS) {
        *out_code = CL_MAP_FAILURE;
    }
    return pointer;
}

static cl_int unmap_blocking(gpuhal_plugin_device *device, cl_mem mem, void *pointer)
{
    gpuhal_opencl_stream stream = gpuhal_opencl_take_stream(device);
    cl_event event = NULL;
    cl_int code = gpuhal_opencl_api.clEnqueueUnmapMemObject(stream.queue, mem, pointer, 0, NULL, &event);
    code = gpuhal_opencl_finish(code, event);
    gpuhal_opencl_give_stream(device, stream, code);
    return code;
}

static void touch(volatile char *start, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += HOST_PAGE) {
        start[at] = 0;
    }
    start[bytes - 1] = 0;
}

/* Aligns the host address, which is the only address. The driver guarantees no alignment, so the allocation includes
 * slack. The sum cannot overflow, because the slack is checked against the largest allocation first. */
static gpuhal_status allocate_host(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_opencl_buffer *buffer = out_memory->object;
    const uint64_t alignment = alloc->alignment > HOST_ALIGNMENT ? alloc->alignment : HOST_ALIGNMENT;
    uint64_t slack = alignment - 1;
    if (slack > device->entry->allocation_max - alloc->bytes) {
        return device->host->report(device->host, GPUHAL_ERROR_TOO_LARGE, NULL, 0,
                                    "with its alignment, above allocation_max_bytes");
    }
    gpuhal_status status = create(device, CL_MEM_ALLOC_HOST_PTR, alloc->bytes + slack, NULL, &buffer->mem);
    if (status != GPUHAL_OK) {
        return status;
    }
    cl_int code = CL_SUCCESS;
    /* Map the whole buffer until it is freed, because its address must not change. */
    buffer->mapped = map_blocking(device, buffer->mem, CL_MAP_READ | CL_MAP_WRITE, 0, alloc->bytes + slack, &code);
    if (!buffer->mapped) {
        gpuhal_opencl_api.clReleaseMemObject(buffer->mem);
        return gpuhal_opencl_result(device, "clEnqueueMapBuffer", code);
    }
    uintptr_t start = ((uintptr_t)buffer->mapped + (uintptr_t)slack) & ~(uintptr_t)slack;
    out_memory->host = (char *)buffer->mapped + (start - (uintptr_t)buffer->mapped);
    out_memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED | GPUHAL_MEMORY_NO_KERNELS;
    touch(out_memory->host, alloc->bytes);
    return GPUHAL_OK;
}

static gpuhal_status opencl_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                     gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    bool foreign = alloc->handle.kind != 0 && alloc->handle.kind != GPUHAL_HANDLE_HOST_POINTER;
    if (alloc->kind > GPUHAL_MEMORY_READBACK || foreign || alloc->export_kinds != 0 || alloc->peer_count != 0 ||
        (alloc->flags & ~(uint32_t)GPUHAL_IMPORT_READ_ONLY) != 0) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (alloc->bytes == 0 || (alloc->alignment & (alloc->alignment - 1)) != 0) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    if (alloc->bytes > device->entry->allocation_max) {
        return host->report(host, GPUHAL_ERROR_TOO_LARGE, NULL, 0, "above CL_DEVICE_MAX_MEM_ALLOC_SIZE");
    }
    gpuhal_opencl_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    out_memory->object = buffer;
    out_memory->bytes = alloc->bytes;
    gpuhal_status status = alloc->handle.kind != 0               ? gpuhal_opencl_import(device, alloc, out_memory)
                           : alloc->kind == GPUHAL_MEMORY_DEVICE ? allocate_device(device, alloc, out_memory)
                                                                 : allocate_host(device, alloc, out_memory);
    if (status != GPUHAL_OK) {
        out_memory->object = NULL;
        out_memory->bytes = 0;
        free(buffer);
    }
    if (status == GPUHAL_ERROR_HOST_MEMORY) {
        /* On software devices host and device memory are the same, so report that the buffer did not fit. */
        return host->report(host, GPUHAL_ERROR_OUT_OF_MEMORY, "clCreateBuffer", CL_OUT_OF_HOST_MEMORY,
                            "CL_OUT_OF_HOST_MEMORY");
    }
    return status;
}

static void opencl_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    gpuhal_opencl_buffer *buffer = memory->object;
    gpuhal_opencl_release_parts(buffer);
    if (buffer->mapped) {
        (void)unmap_blocking(device, buffer->mem, buffer->mapped);
    }
    if (buffer->imported) {
        gpuhal_opencl_release_import(device, buffer);
    } else {
        gpuhal_opencl_api.clReleaseMemObject(buffer->mem);
    }
    free(buffer);
}

/* DISCARD saves a discrete GPU the transfer of the old contents to the host. */
static gpuhal_status opencl_map(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                uint64_t bytes, uint32_t access, void **out_pointer)
{
    *out_pointer = NULL;
    if (memory->host) {
        *out_pointer = (char *)memory->host + offset;
        return GPUHAL_OK;
    }
    cl_map_flags flags = access & GPUHAL_ACCESS_READ ? CL_MAP_READ : 0;
    if (access & GPUHAL_ACCESS_WRITE) {
        bool discard =
            access & GPUHAL_ACCESS_DISCARD && !(access & GPUHAL_ACCESS_READ) && device->entry->version >= 102;
        flags |= discard ? CL_MAP_WRITE_INVALIDATE_REGION : CL_MAP_WRITE;
    }
    cl_int code = CL_SUCCESS;
    *out_pointer = map_blocking(device, gpuhal_opencl_mem(memory), flags, offset, bytes, &code);
    return *out_pointer ? GPUHAL_OK : gpuhal_opencl_result(device, "clEnqueueMapBuffer", code);
}

static gpuhal_status opencl_unmap(gpuhal_plugin_device *device, const gpuhal_memory *memory, void *pointer)
{
    if (memory->host) {
        return GPUHAL_OK;
    }
    return gpuhal_opencl_result(device, "clEnqueueUnmapMemObject",
                                unmap_blocking(device, gpuhal_opencl_mem(memory), pointer));
}

/* The buffer of page-locked memory stays mapped and no other command may use it, so it is not exported. The offset is
 * 0, because memory that wraps part of a buffer has a sub-buffer. */
gpuhal_status gpuhal_opencl_native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                          gpuhal_native *out_native)
{
    if (gpuhal_opencl_mapped(memory)) {
        return device->host->report(device->host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                                    "host memory of OpenCL stays mapped; use its address");
    }
    out_native->type = GPUHAL_NATIVE_OPENCL_BUFFER;
    out_native->values[0] = (uintptr_t)gpuhal_opencl_mem(memory);
    out_native->values[1] = 0;
    return GPUHAL_OK;
}

void gpuhal_opencl_describe_memory(gpuhal_ops *ops)
{
    ops->allocate = opencl_allocate;
    ops->release = opencl_release;
    ops->map = opencl_map;
    ops->unmap = opencl_unmap;
}
