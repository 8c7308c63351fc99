/* opencl/share.c: imports the caller's memory: host memory, and OpenCL buffers.
 *
 * With CL_MEM_USE_HOST_PTR a driver may use the host memory directly or copy it (OpenCL 3.0, section 5.2.1). The driver
 * does not report its choice, so the plugin always assumes a copy. memory_flush writes the host's bytes into the
 * buffer, and memory_invalidate reads the buffer into the host memory. The host side of both commands is the imported
 * memory itself. Section 5.2.2 explicitly allows this, and drivers that use the memory directly detect this case and
 * copy nothing (PoCL, Intel). Mapping would be suitable only for reading. A mapping for writing first overwrites the
 * host's bytes with the buffer's old contents or, with CL_MAP_WRITE_INVALIDATE_REGION, leaves them undefined.
 */
#include "device.h"

#include <gpuhal/native.h>

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

/* Maximum time that a driver may take to release host memory after the last command has finished. */
#define LET_GO_SECONDS 5

gpuhal_status gpuhal_opencl_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_opencl_buffer *buffer = out_memory->object;
    void *pointer = alloc->handle.as.pointer;
    uint64_t mask = device->entry->import_alignment - 1;
    if (!pointer || alloc->import_offset != 0 || (((uintptr_t)pointer | alloc->bytes) & mask) != 0) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "the host memory is not aligned to import_alignment_bytes, or is NULL");
    }
    const cl_mem_flags access = alloc->flags & GPUHAL_IMPORT_READ_ONLY ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
    cl_int code = CL_SUCCESS;
    buffer->mem = gpuhal_opencl_api.clCreateBuffer(device->context, access | CL_MEM_USE_HOST_PTR, (size_t)alloc->bytes,
                                                   pointer, &code);
    if (!buffer->mem) {
        return gpuhal_opencl_result(device, "clCreateBuffer", code != CL_SUCCESS ? code : CL_OUT_OF_RESOURCES);
    }
    buffer->imported = true;
    out_memory->host = pointer;
    out_memory->flags = GPUHAL_MEMORY_HOST_CACHED;
    return GPUHAL_OK;
}

/* Shared by the driver, which may call back late, and by release(), which may time out. The last owner frees the
 * object. */
typedef struct farewell {
    sem_t gone;
    atomic_int owners;
} farewell;

static void farewell_drop(farewell *f)
{
    if (atomic_fetch_sub(&f->owners, 1) == 1) {
        sem_destroy(&f->gone);
        free(f);
    }
}

static void CL_CALLBACK buffer_is_gone(cl_mem mem, void *user)
{
    (void)mem;
    farewell *f = user;
    sem_post(&f->gone);
    farewell_drop(f);
}

/* Returns NULL if the driver cannot report the release or memory is short; releasing the last reference must then be
 * enough. The object has two owners from the beginning, because the callback may run as soon as it is registered. */
static farewell *request_callback(const gpuhal_plugin_device *device, cl_mem mem)
{
    farewell *f = NULL;
    if (device->entry->version < 101 || !gpuhal_opencl_api.clSetMemObjectDestructorCallback ||
        !(f = malloc(sizeof *f))) {
        return NULL;
    }
    sem_init(&f->gone, 0, 0);
    atomic_init(&f->owners, 2);
    if (gpuhal_opencl_api.clSetMemObjectDestructorCallback(mem, buffer_is_gone, f) != CL_SUCCESS) {
        sem_destroy(&f->gone);
        free(f);
        return NULL;
    }
    return f;
}

/* Drivers drop their references to a buffer some time after its last command has ended. Only the callback reports that
 * the driver no longer uses the host memory. */
void gpuhal_opencl_release_import(gpuhal_plugin_device *device, gpuhal_opencl_buffer *buffer)
{
    farewell *f = request_callback(device, buffer->mem);
    gpuhal_opencl_api.clReleaseMemObject(buffer->mem);
    if (!f) {
        return;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LET_GO_SECONDS;
    int waited;
    do {
        waited = sem_timedwait(&f->gone, &until);
    } while (waited != 0 && errno == EINTR);
    if (waited != 0) {
        device->host->log(
            device->host, GPUHAL_LOG_WARNING,
            "the OpenCL driver, or the owner of another reference to the buffer, still uses imported host memory");
    }
    farewell_drop(f);
}

/* Called for imported memory only, because all other memory with a host address is coherent. */
static gpuhal_status opencl_memory_flush(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                         uint64_t bytes)
{
    gpuhal_opencl_stream stream = gpuhal_opencl_take_stream(device);
    cl_int code =
        gpuhal_opencl_api.clEnqueueWriteBuffer(stream.queue, gpuhal_opencl_mem(memory), CL_TRUE, (size_t)offset,
                                               (size_t)bytes, (char *)memory->host + offset, 0, NULL, NULL);
    gpuhal_opencl_give_stream(device, stream, code);
    return gpuhal_opencl_result(device, "clEnqueueWriteBuffer", code);
}

static gpuhal_status opencl_memory_invalidate(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                              uint64_t offset, uint64_t bytes)
{
    gpuhal_opencl_stream stream = gpuhal_opencl_take_stream(device);
    cl_int code =
        gpuhal_opencl_api.clEnqueueReadBuffer(stream.queue, gpuhal_opencl_mem(memory), CL_TRUE, (size_t)offset,
                                              (size_t)bytes, (char *)memory->host + offset, 0, NULL, NULL);
    gpuhal_opencl_give_stream(device, stream, code);
    return gpuhal_opencl_result(device, "clEnqueueReadBuffer", code);
}

/* Returns the fault of the caller's buffer, or NULL. *out_bytes is the number of bytes from the offset to the buffer's
 * end. */
static const char *wrap_fault(const gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                              uint64_t *out_bytes)
{
    cl_mem mem = (cl_mem)(uintptr_t)native->values[0];
    cl_mem_object_type type = 0;
    cl_context context = NULL;
    size_t size = 0;
    uint64_t offset = native->values[1];
    if (native->type != GPUHAL_NATIVE_OPENCL_BUFFER || !mem ||
        gpuhal_opencl_api.clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof type, &type, NULL) != CL_SUCCESS ||
        type != CL_MEM_OBJECT_BUFFER) {
        return "the object is not an OpenCL buffer";
    }
    if (gpuhal_opencl_api.clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof context, &context, NULL) != CL_SUCCESS ||
        context != device->context) {
        return "the buffer belongs to another context than the device was opened with: have the device adopt that one";
    }
    if (gpuhal_opencl_api.clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof size, &size, NULL) != CL_SUCCESS ||
        offset > size || bytes > size - offset) {
        return "the buffer is smaller than offset and size say";
    }
    if (offset % device->entry->base_alignment != 0 || (offset != 0 && !gpuhal_opencl_api.clCreateSubBuffer)) {
        return "the offset is not a multiple of binding_alignment_bytes";
    }
    *out_bytes = size - offset;
    return NULL;
}

/* Returns the buffer with one more reference, or a sub-buffer. A sub-buffer has its own reference to the buffer. */
static cl_mem retain_part(cl_mem mem, uint64_t offset, uint64_t bytes, const char **out_call, cl_int *out_code)
{
    if (offset == 0) {
        *out_call = "clRetainMemObject";
        *out_code = gpuhal_opencl_api.clRetainMemObject(mem);
        return *out_code == CL_SUCCESS ? mem : NULL;
    }
    *out_call = "clCreateSubBuffer";
    return gpuhal_opencl_create_part(mem, offset, bytes, out_code);
}

gpuhal_status gpuhal_opencl_wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                        gpuhal_memory *out_memory)
{
    uint64_t room = 0;
    const char *fault = wrap_fault(device, native, bytes, &room);
    if (fault) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, fault);
    }
    gpuhal_opencl_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    const char *call = "";
    cl_int code = CL_SUCCESS;
    buffer->mem = retain_part((cl_mem)(uintptr_t)native->values[0], native->values[1], room, &call, &code);
    if (!buffer->mem) {
        free(buffer);
        return gpuhal_opencl_result(device, call, code != CL_SUCCESS ? code : CL_OUT_OF_RESOURCES);
    }
    out_memory->object = buffer;
    out_memory->bytes = room;
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    return GPUHAL_OK;
}

void gpuhal_opencl_describe_share(gpuhal_ops *ops)
{
    ops->memory_flush = opencl_memory_flush;
    ops->memory_invalidate = opencl_memory_invalidate;
}
