/* memory/import.c: imports memory from the caller (host memory, descriptors, vendor objects), and exports handles.
 *
 * Memory and handles belong to the caller until the call succeeds: a failure closes nothing and calls no callback. */
#include "memory/buffer.h"

#include "base/error.h"

#include <inttypes.h>
#include <string.h>

static bool is_kind(gpuhal_handle_kind kind)
{
    return (kind >= GPUHAL_HANDLE_HOST_POINTER && kind <= GPUHAL_HANDLE_IPC) || gpuhal_is_vendor_kind(kind);
}

static bool passes_through_plugin(gpuhal_handle_kind kind)
{
    return gpuhal_is_descriptor_kind(kind) || gpuhal_is_vendor_kind(kind);
}

static gpuhal_status no_such_way(const gpuhal_device *device, const char *action, gpuhal_handle_kind kind)
{
    gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s %s memory as %s", device->id, action,
                     gpuhal_handle_kind_name(kind));
    gpuhal_error_add_device(device->candidate->name, device->id);
    return GPUHAL_ERROR_NOT_SUPPORTED;
}

/* Starts the service thread, which a `released` callback may need. */
static gpuhal_status serve_callbacks(const gpuhal_device *device)
{
    const int error = device->gpu->layers.serve(device->gpu);
    return error ? gpuhal_error_no_thread(error) : GPUHAL_OK;
}

/* Transfers ownership of the memory to the buffer. From now on `released` will be called. Cannot fail. */
static gpuhal_status enlist(gpuhal_buffer *buffer, gpuhal_origin origin, gpuhal_buffer **out_buffer)
{
    buffer->origin = origin;
    buffer->root = origin.original ? origin.original->root : buffer;
    gpuhal_buffer_enlist(buffer);
    (void)gpuhal_buffer_retain(origin.original);
    *out_buffer = buffer;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_buffer_of_import(gpuhal_device *device, const gpuhal_alloc *alloc, uint64_t bytes,
                                      gpuhal_origin origin, gpuhal_buffer **out_buffer)
{
    gpuhal_buffer *buffer = gpuhal_buffer_blank(device, bytes);
    if (!buffer) {
        return gpuhal_error_host_memory();
    }
    gpuhal_status status = gpuhal_memory_allocate(device, alloc, bytes, &buffer->memory);
    if (status) {
        gpuhal_buffer_free(buffer);
        return status;
    }
    buffer->allocated = alloc->bytes;
    buffer->kind = alloc->kind;
    buffer->alignment = alloc->alignment;
    buffer->export_kinds = alloc->export_kinds;
    buffer->read_only = alloc->flags & GPUHAL_IMPORT_READ_ONLY;
    return enlist(buffer, origin, out_buffer);
}

/* The caller's memory, rounded outwards for the plugin. */
typedef struct host_range {
    char *first;
    uint64_t bytes, lead; /* lead is the number of bytes before the caller's memory, included in `bytes` */
} host_range;

/* Both sums contain the caller's numbers, so they are checked for overflow: the rounded range must not be smaller than
 * the caller's. */
static bool round_outwards(const gpuhal_host_import *import, uint64_t unit, host_range *out_range)
{
    uintptr_t lead = (uintptr_t)import->memory & (uintptr_t)(unit - 1), end = 0;
    out_range->first = (char *)import->memory - lead;
    out_range->lead = lead;
    if (__builtin_add_overflow(import->bytes, lead + unit - 1, &out_range->bytes)) {
        return false;
    }
    out_range->bytes &= ~(unit - 1);
    return !__builtin_add_overflow((uintptr_t)out_range->first, out_range->bytes, &end);
}

/* Checks the pointer as far as possible before a driver receives it, because drivers crash on invalid pointers, or pin
 * memory that does not exist. */
static gpuhal_status check_host(const gpuhal_device *device, const gpuhal_host_import *import, host_range *out_range)
{
    const uint64_t unit = gpuhal_import_unit(device);
    const bool written = !(import->flags & GPUHAL_IMPORT_READ_ONLY);
    const bool known = gpuhal_os_is_accessible(import->memory, import->bytes, written);
    if (known && round_outwards(import, unit, out_range) &&
        gpuhal_os_is_accessible(out_range->first, out_range->bytes, written)) {
        return GPUHAL_OK;
    }
    if (known) {
        gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                         "%s imports host memory in multiples of %" PRIu64 " bytes, and %" PRIu64
                         " bytes from %p on, rounded to them, are not all mapped%s",
                         device->id, unit, import->bytes, import->memory, written ? " for reading and writing" : "");
    } else {
        gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                         "gpuhal_buffer_import_host: %" PRIu64 " bytes from %p on are not all mapped for %s",
                         import->bytes, import->memory, written ? "reading and writing" : "reading");
    }
    gpuhal_error_add_device(device->candidate->name, device->id);
    return GPUHAL_ERROR_INVALID_ARGUMENT;
}

static gpuhal_status take_import(gpuhal_device *device, const gpuhal_host_import *given, gpuhal_host_import *out)
{
    *out = (gpuhal_host_import){0};
    if (!device || !given || given->size == 0) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_import_host: an argument is NULL, or the size of import is 0");
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (!out->memory || out->bytes == 0 || (out->flags & ~(uint32_t)GPUHAL_IMPORT_READ_ONLY)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_import_host: memory is NULL, bytes is 0, or a flag is unknown");
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_buffer_import_host(gpuhal_device *device, const gpuhal_host_import *given,
                                        gpuhal_buffer **out_buffer, uint64_t *out_offset)
{
    gpuhal_host_import import;
    host_range range = {0};
    if (!out_buffer || !out_offset) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_import_host: out_buffer or out_offset is NULL");
    }
    *out_buffer = NULL;
    *out_offset = 0;
    gpuhal_status status = take_import(device, given, &import);
    status = status ? status : gpuhal_check(device->gpu);
    if (status) {
        return status;
    }
    if (!(gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_IMPORT_KINDS, 0) >> GPUHAL_HANDLE_HOST_POINTER & 1)) {
        return no_such_way(device, "cannot import", GPUHAL_HANDLE_HOST_POINTER);
    }
    status = gpuhal_device_open(device);
    status = status ? status : check_host(device, &import, &range);
    status = !status && import.released ? serve_callbacks(device) : status;
    if (status) {
        return status;
    }
    const gpuhal_alloc alloc = {
        .size = sizeof alloc,
        .bytes = range.bytes,
        .handle = {.size = sizeof alloc.handle, .kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = range.first},
        .flags = import.flags,
    };
    const gpuhal_origin origin = {.released = import.released, .user = import.user, .memory = import.memory};
    status = gpuhal_buffer_of_import(device, &alloc, range.lead + import.bytes, origin, out_buffer);
    *out_offset = status ? 0 : range.lead;
    return status;
}

gpuhal_status gpuhal_buffer_give_out(gpuhal_buffer *buffer, gpuhal_handle_kind kind, gpuhal_handle *out_handle,
                                     uint64_t *out_offset)
{
    gpuhal_device *device = buffer->device;
    *out_handle = (gpuhal_handle){.size = sizeof *out_handle};
    *out_offset = 0;
    const gpuhal_call call = gpuhal_call_blocking(device, 0);
    gpuhal_status status = device->ops.export_memory ? device->ops.export_memory(device->handle, &buffer->memory, kind,
                                                                                 out_handle, out_offset)
                                                     : GPUHAL_ERROR_NOT_SUPPORTED;
    status = gpuhal_device_result(device, call, status);
    if (status) {
        return gpuhal_device_failed(device, status, "exporting memory as %s", gpuhal_handle_kind_name(kind));
    }
    if (out_handle->kind != kind || (!gpuhal_is_vendor_kind(kind) && !gpuhal_os_is_descriptor(out_handle->as.os))) {
        gpuhal_error_report(GPUHAL_ERROR_DRIVER, "export_memory", 0,
                            "the plugin returned a handle of another kind, or no descriptor");
        return gpuhal_device_failed(device, GPUHAL_ERROR_DRIVER, "exporting memory as %s",
                                    gpuhal_handle_kind_name(kind));
    }
    return GPUHAL_OK;
}

/* Exporting a host pointer needs no plugin call. All other kinds must have been requested when the memory was
 * allocated. */
gpuhal_status gpuhal_buffer_export(gpuhal_buffer *buffer, gpuhal_handle_kind kind, gpuhal_handle *out_handle)
{
    uint64_t offset = 0;
    if (!buffer || !out_handle || !is_kind(kind)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_export: an argument is NULL, or %u is not a kind of handle", kind);
    }
    *out_handle = (gpuhal_handle){.size = sizeof *out_handle};
    gpuhal_status status = gpuhal_device_check(buffer->device);
    status = status ? status : gpuhal_buffer_check_separate(buffer, "exporting it");
    if (status) {
        return status;
    }
    if (kind == GPUHAL_HANDLE_HOST_POINTER) {
        if (!buffer->memory.host || buffer->kind == GPUHAL_MEMORY_MIGRATING) {
            return no_such_way(buffer->device,
                               "has no lasting pages with a host address for this buffer, so cannot export its", kind);
        }
        out_handle->kind = kind;
        out_handle->as.pointer = buffer->memory.host;
        return GPUHAL_OK;
    }
    if (!passes_through_plugin(kind) || !(buffer->export_kinds >> kind & 1)) {
        gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s: the buffer was not created with %s in its export_kinds",
                         buffer->device->id, gpuhal_handle_kind_name(kind));
        gpuhal_error_add_device(buffer->device->candidate->name, buffer->device->id);
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    gpuhal_handle handle;
    status = gpuhal_buffer_give_out(buffer, kind, &handle, &offset);
    if (!status && offset != 0) {
        if (!gpuhal_is_vendor_kind(kind)) {
            gpuhal_os_descriptor_close(handle.as.os);
        }
        gpuhal_error_report(GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                            "it begins inside a larger allocation, which a handle cannot express");
        status = gpuhal_device_failed(buffer->device, GPUHAL_ERROR_NOT_SUPPORTED, "exporting memory as %s",
                                      gpuhal_handle_kind_name(kind));
    }
    if (!status) {
        *out_handle = handle;
    }
    return status;
}

static gpuhal_status check_handle(const gpuhal_device *device, const gpuhal_buffer_desc *desc,
                                  const gpuhal_handle *handle)
{
    if (handle->kind == GPUHAL_HANDLE_HOST_POINTER) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_import: host memory is imported by gpuhal_buffer_import_host()");
    }
    if (!is_kind(handle->kind) || !(desc->export_kinds >> handle->kind & 1)) {
        return gpuhal_error_set(
            GPUHAL_ERROR_INVALID_ARGUMENT,
            "gpuhal_buffer_import: %s is not the kind of the handle, or not among the export_kinds of desc",
            gpuhal_handle_kind_name(handle->kind));
    }
    uint64_t kinds = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_IMPORT_KINDS, 0);
    if (!passes_through_plugin(handle->kind) || !(kinds >> handle->kind & 1)) {
        return no_such_way(device, "cannot import", handle->kind);
    }
    if (!gpuhal_is_vendor_kind(handle->kind) && !gpuhal_os_is_descriptor(handle->as.os)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_import: %" PRIdPTR " is not an open descriptor", handle->as.os);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_buffer_import(gpuhal_device *device, const gpuhal_buffer_desc *given, const gpuhal_handle *handle,
                                   gpuhal_buffer **out_buffer)
{
    gpuhal_buffer_desc desc;
    gpuhal_alloc alloc;
    if (out_buffer) {
        *out_buffer = NULL;
    }
    if (!device || !handle || handle->size < sizeof *handle || !out_buffer) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_import: an argument is NULL, or a size is too small");
    }
    gpuhal_status status = gpuhal_buffer_take_desc("gpuhal_buffer_import", given, &desc);
    status = status ? status : gpuhal_check(device->gpu);
    status = status ? status : check_handle(device, &desc, handle);
    status = status ? status : gpuhal_device_open(device);
    status = status ? status : gpuhal_buffer_plan(device, &desc, &alloc);
    if (status) {
        return status;
    }
    alloc.handle = *handle;
    status = gpuhal_buffer_of_import(device, &alloc, desc.bytes, (gpuhal_origin){0}, out_buffer);
    if (!status && !gpuhal_is_vendor_kind(handle->kind)) {
        gpuhal_os_descriptor_close(handle->as.os);
    }
    return status;
}

gpuhal_status gpuhal_buffer_wrap(gpuhal_device *device, const gpuhal_native *given, uint64_t bytes,
                                 gpuhal_released_fn *released, void *user, gpuhal_buffer **out_buffer)
{
    if (out_buffer) {
        *out_buffer = NULL;
    }
    if (!device || !given || given->size == 0 || bytes == 0 || !out_buffer) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_wrap: an argument is NULL, or a size is 0");
    }
    gpuhal_native native = {0};
    memcpy(&native, given, given->size < sizeof native ? given->size : sizeof native);
    native.size = sizeof native;
    gpuhal_status status = gpuhal_check(device->gpu);
    status = status ? status : gpuhal_device_takes(device, &native);
    status = status ? status : gpuhal_device_open(device);
    status = !status && released ? serve_callbacks(device) : status;
    if (!status && !device->native.wrap_memory) {
        status = gpuhal_device_failed(device, GPUHAL_ERROR_NOT_SUPPORTED, "wrapping memory");
    }
    if (status) {
        return status;
    }
    gpuhal_buffer *buffer = gpuhal_buffer_blank(device, bytes);
    if (!buffer) {
        return gpuhal_error_host_memory();
    }
    buffer->memory.size = sizeof buffer->memory;
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    status =
        gpuhal_device_result(device, call, device->native.wrap_memory(device->handle, &native, bytes, &buffer->memory));
    if (status) {
        gpuhal_buffer_free(buffer);
        return gpuhal_device_failed(device, status, "wrapping %" PRIu64 " bytes of native memory", bytes);
    }
    /* Aligned copies access bytes up to the next multiple of the alignment, so these bytes must belong to the object.
     * Fills do not access them. */
    if (buffer->memory.bytes < ((bytes + device->copy_mask) & ~device->copy_mask)) {
        gpuhal_memory_release(device, &buffer->memory);
        gpuhal_buffer_free(buffer);
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_buffer_wrap: %s copies in steps of %" PRIu64
                                " bytes, so the object must be that large, or the size a multiple of it",
                                device->id, device->copy_mask + 1);
    }
    return enlist(buffer, (gpuhal_origin){.released = released, .user = user}, out_buffer);
}
