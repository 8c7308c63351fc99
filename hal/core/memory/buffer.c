/* memory/buffer.c: creates, counts and frees buffers, and enforces memory limits. */
#include "memory/buffer.h"

#include "base/error.h"
#include "base/log.h"
#include "device/fault_log.h"
#include "memory/cached_import.h"

#include <gpuhal/native.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Charges `bytes` to the device's limit before they are allocated, so that two threads cannot both pass the same check.
 * The limit may be lower than the bytes in use, so compare before subtracting. */
static bool charge(gpuhal_device *device, uint64_t bytes)
{
    uint64_t limit = gpuhal_device_limit(device);
    if (limit == 0) {
        atomic_fetch_add(&device->allocated_bytes, bytes);
        return true;
    }
    uint64_t held = atomic_load(&device->allocated_bytes);
    do {
        if (held > limit || bytes > limit - held) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&device->allocated_bytes, &held, held + bytes));
    return true;
}

void gpuhal_memory_discharge(gpuhal_device *device, uint64_t bytes)
{
    atomic_fetch_sub(&device->allocated_bytes, bytes);
}

void gpuhal_memory_count_in(gpuhal_device *device, uint64_t bytes)
{
    const uint64_t in = atomic_fetch_add(&device->allocated_in, bytes) + bytes;
    const uint64_t now = in - atomic_load(&device->allocated_out);
    uint64_t peak = atomic_load(&device->allocated_peak);
    while (now > peak && !atomic_compare_exchange_weak(&device->allocated_peak, &peak, now)) {
    }
}

/* Reports the limit's numbers rather than the device's, because the limit was the reason. */
static gpuhal_status over_limit(const gpuhal_device *device, uint64_t bytes)
{
    uint64_t limit = gpuhal_device_limit(device);
    uint64_t held = atomic_load(&device->allocated_bytes);
    uint64_t left = limit > held ? limit - held : 0;
    char by[32] = "limit";
    if (limit == atomic_load(&device->lease_bytes)) {
        snprintf(by, sizeof by, "lease %" PRIu64, atomic_load(&device->lease_number));
    }
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                     "%s: %" PRIu64 " bytes requested, %" PRIu64 " left of the %s of %" PRIu64 " bytes", device->id,
                     bytes, left, by, limit);
    gpuhal_error_add_device(device->candidate->name, device->id);
    gpuhal_error_add_bytes(bytes, left, limit);
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

gpuhal_status gpuhal_memory_charge(gpuhal_device *device, uint64_t bytes, uint64_t asked)
{
    return charge(device, bytes) ? GPUHAL_OK : over_limit(device, asked);
}

/* Checks the control group's limit, because above this limit drivers move memory to the host instead of refusing the
 * allocation. For a pool's segment the pool has made this check. */
static gpuhal_status check_groups(gpuhal_device *device, const gpuhal_buffer_desc *desc, uint64_t bytes)
{
    uint64_t limit = UINT64_MAX;
    const uint64_t left = desc->kind == GPUHAL_MEMORY_DEVICE ? gpuhal_device_group_left(device, &limit) : UINT64_MAX;
    if (bytes <= left) {
        return GPUHAL_OK;
    }
    gpuhal_error_set(GPUHAL_ERROR_OUT_OF_MEMORY,
                     "%s: %" PRIu64 " bytes requested, %" PRIu64
                     " left of the limit of this process's control group (dmem.max), %" PRIu64 " bytes",
                     device->id, desc->bytes, left, limit);
    gpuhal_error_add_device(device->candidate->name, device->id);
    gpuhal_error_add_bytes(desc->bytes, left, limit);
    return GPUHAL_ERROR_OUT_OF_MEMORY;
}

gpuhal_buffer *gpuhal_buffer_blank(gpuhal_device *device, uint64_t bytes)
{
    /* Use malloc rather than calloc: before 2.41, glibc has a fast per-thread cache only for malloc, which matters for
     * small allocations. Do not use memset, because compilers turn malloc and memset into calloc. */
    gpuhal_buffer *buffer = malloc(sizeof *buffer);
    if (buffer) {
        *buffer = (gpuhal_buffer){0};
        atomic_init(&buffer->references, 1);
        buffer->device = device;
        buffer->root = buffer->whole = buffer;
        buffer->bytes = bytes;
    }
    return buffer;
}

void gpuhal_buffer_free(gpuhal_buffer *buffer)
{
    free(buffer);
}

static gpuhal_address_range range_from(uint64_t begin, gpuhal_buffer *buffer)
{
    return (gpuhal_address_range){.begin = begin, .bytes = begin ? buffer->bytes : 0, .buffer = buffer};
}

void gpuhal_buffer_enlist(gpuhal_buffer *buffer)
{
    gpuhal_device *device = buffer->device;
    buffer->needs_clean =
        buffer->memory.host && !(buffer->memory.flags & GPUHAL_MEMORY_HOST_COHERENT) && device->ops.memory_flush;
    /* Without needs_clean, only a mapping made by the driver can interfere with transfers, and the driver maps only
     * memory without a host address. */
    buffer->counted = buffer->needs_clean || (!buffer->memory.host && device->ops.map);
    buffer->ranges[GPUHAL_ADDRESS_DEVICE] = range_from(buffer->memory.address, buffer);
    buffer->ranges[GPUHAL_ADDRESS_HOST] = range_from((uintptr_t)buffer->memory.host, buffer);
    if (!buffer->pool && gpuhal_log_wants(device->gpu->log, GPUHAL_LEVEL_INFO)) {
        atomic_init(&buffer->tag, &device->untagged);
        gpuhal_tag_count(&device->untagged, buffer->bytes, true);
    }
    /* From here on other threads can find the buffer, so all its members must be set. */
    gpuhal_address_index_add(device->gpu->layers.addresses, buffer->ranges);
    atomic_fetch_add(&device->gpu->references, 1);
}

typedef struct creation {
    gpuhal_device *device;
    const gpuhal_buffer_desc *desc;
    struct gpuhal_pool *pool; /* for a segment */
    gpuhal_buffer *buffer;
    bool full; /* the device itself is out of memory, regardless of the device's limit */
} creation;

static gpuhal_status create(void *user)
{
    creation *own = user;
    gpuhal_device *device = own->device;
    const gpuhal_buffer_desc *desc = own->desc;
    gpuhal_alloc alloc;
    own->full = false;
    gpuhal_status status = gpuhal_buffer_plan(device, desc, &alloc);
    status = status || own->pool ? status : check_groups(device, desc, alloc.bytes);
    if (status) {
        return status;
    }
    gpuhal_buffer *buffer = gpuhal_buffer_blank(device, desc->bytes);
    if (!buffer) {
        return gpuhal_error_host_memory();
    }
    status = gpuhal_memory_charge(device, alloc.bytes, desc->bytes);
    if (status) {
        gpuhal_buffer_free(buffer);
        return status;
    }
    status = gpuhal_memory_allocate(device, &alloc, desc->bytes, &buffer->memory);
    own->full = status == GPUHAL_ERROR_OUT_OF_MEMORY;
    status = status ? status : gpuhal_memory_check_shareable(device, desc->export_kinds, &buffer->memory);
    if (status) {
        gpuhal_memory_discharge(device, alloc.bytes);
        gpuhal_buffer_free(buffer);
        return status;
    }
    gpuhal_memory_count_in(device, alloc.bytes);
    atomic_init(&buffer->charged, alloc.bytes);
    buffer->allocated = alloc.bytes;
    buffer->pool = own->pool;
    buffer->kind = desc->kind;
    buffer->alignment = alloc.alignment;
    buffer->export_kinds = desc->export_kinds;
    gpuhal_buffer_enlist(buffer);
    own->buffer = buffer;
    return GPUHAL_OK;
}

static gpuhal_status create_or_relieve(creation *own)
{
    const uint64_t held = atomic_load(&own->device->allocated_bytes);
    gpuhal_status status = create(own);
    if (status != GPUHAL_ERROR_OUT_OF_MEMORY) {
        return status;
    }
    const gpuhal_buffer_desc *desc = own->desc;
    gpuhal_relief relief = {.device = own->device,
                            .bytes = desc->bytes,
                            .held_bytes = held,
                            .deadline_ns = desc->timeout_ns ? gpuhal_deadline(desc->timeout_ns) : 0,
                            .asks = !own->pool && !(desc->flags & GPUHAL_ALLOCATE_NO_EVICT),
                            .pool = own->pool,
                            .again = create,
                            .user = own};
    return own->device->gpu->layers.relieve(&relief);
}

gpuhal_status gpuhal_buffer_create(gpuhal_device *device, const gpuhal_buffer_desc *given, gpuhal_buffer **out_buffer)
{
    if (out_buffer) {
        *out_buffer = NULL;
    }
    if (!device || !out_buffer) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_buffer_create: device or out_buffer is NULL");
    }
    gpuhal_buffer_desc desc;
    gpuhal_status status = gpuhal_buffer_take_desc("gpuhal_buffer_create", given, &desc);
    status = status ? status : gpuhal_device_open(device);
    if (status) {
        return status;
    }
    creation own = {.device = device, .desc = &desc};
    status = create_or_relieve(&own);
    *out_buffer = own.buffer;
    if (own.full) {
        gpuhal_fault_log_fault(device, GPUHAL_FAULT_OUT_OF_MEMORY);
    }
    return status;
}

gpuhal_status gpuhal_buffer_create_segment(gpuhal_device *device, const gpuhal_buffer_desc *desc,
                                           struct gpuhal_pool *pool, gpuhal_buffer **out_buffer)
{
    creation own = {.device = device, .desc = desc, .pool = pool};
    gpuhal_status status = create_or_relieve(&own);
    *out_buffer = own.buffer;
    return status;
}

/* Relaxed: the caller has a reference, so the count cannot drop to 0. */
gpuhal_buffer *gpuhal_buffer_retain(gpuhal_buffer *buffer)
{
    if (buffer) {
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    }
    return buffer;
}

void gpuhal_buffer_end(gpuhal_buffer *buffer)
{
    gpuhal *gpu = buffer->device->gpu;
    if (buffer->origin.released) {
        buffer->origin.released(buffer->origin.user, buffer->origin.memory);
    }
    gpuhal_buffer_free(buffer);
    gpuhal_unreference(gpu);
}

/* Releases a reference. The structure of a suballocation outlives its last reference, so one release too many is
 * detected here and undone. */
static bool is_last_reference(gpuhal_buffer *buffer)
{
    const uint32_t before = atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel);
    if (__builtin_expect(before == 0, 0) && buffer->is_part) {
        atomic_fetch_add(&buffer->references, 1);
        buffer->device->gpu->layers.released_twice(buffer);
    }
    return before == 1;
}

/* After the last reference, releases the memory, and then the reference to the original. Originals have no originals,
 * so the loop terminates. The order is: the index entry, imports of the memory, the memory, its charge, and finally the
 * application's callback, which may free the host memory. For a thread that retires work, the service thread makes
 * the callback, because no application function may run during retirement. */
static void unreference(gpuhal_buffer *buffer, bool by_caller)
{
    while (buffer && is_last_reference(buffer)) {
        gpuhal_device *device = buffer->device;
        if (buffer->is_part) {
            device->gpu->layers.release_part(buffer);
            return;
        }
        gpuhal_buffer *original = buffer->origin.original;
        /* A search must not find memory that is being freed. */
        gpuhal_address_index_remove(device->gpu->layers.addresses, buffer->ranges);
        gpuhal_cached_imports_release(buffer);
        if (buffer->range) {
            gpuhal_memory_release_range(buffer);
        } else {
            gpuhal_memory_release(device, &buffer->memory);
        }
        gpuhal_memory_discharge(device, buffer->charged);
        atomic_fetch_add(&device->allocated_out, buffer->charged);
        gpuhal_tag_count(atomic_load(&buffer->tag), buffer->bytes, false);
        if (by_caller || !buffer->origin.released) {
            gpuhal_buffer_end(buffer);
        } else {
            device->gpu->layers.serve_released(buffer);
        }
        buffer = original;
    }
}

void gpuhal_buffer_release(gpuhal_buffer *buffer)
{
    if (buffer && !gpuhal_is_inherited(buffer->device->gpu)) {
        unreference(buffer, true);
    }
}

void gpuhal_buffer_drop(gpuhal_buffer *buffer)
{
    unreference(buffer, false);
}

/* Waits until no other thread writes to the buffer. Returns false if the writing thread is stuck in the driver. Not
 * inlined, so that a small copy need not save and restore registers for it. */
static __attribute__((noinline)) bool begin_writing(gpuhal_buffer *buffer)
{
    gpuhal_device *device = buffer->device;
    gpuhal_mutex_lock(&device->mutex);
    while (buffer->writing && gpuhal_device_is_reachable(device)) {
        gpuhal_condition_wait(&device->condition, &device->mutex);
    }
    bool free_now = !buffer->writing;
    buffer->writing = true;
    gpuhal_mutex_unlock(&device->mutex);
    return free_now;
}

gpuhal_status gpuhal_buffer_refuse_write(const gpuhal_buffer *buffer)
{
    gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: the buffer is host memory that was imported read-only",
                     buffer->device->id);
    gpuhal_error_add_device(buffer->device->candidate->name, buffer->device->id);
    return GPUHAL_ERROR_INVALID_ARGUMENT;
}

/* Increments the number of transfers. A negative value means that the buffer is mapped, or is being mapped or unmapped,
 * and must not be incremented. The acquire order pairs with the unmapping thread's release: the host's writes through
 * the mapping happen before the transfer. */
gpuhal_status gpuhal_buffer_enter_counted(gpuhal_buffer *buffer, bool writes)
{
    int32_t use = atomic_load_explicit(&buffer->use, memory_order_relaxed);
    do {
        if (use < 0) {
            return gpuhal_buffer_busy(buffer);
        }
    } while (!atomic_compare_exchange_weak_explicit(&buffer->use, &use, use + 1, memory_order_acquire,
                                                    memory_order_relaxed));
    if (__builtin_expect(writes && buffer->needs_clean, 0) && !begin_writing(buffer)) {
        atomic_fetch_sub_explicit(&buffer->use, 1, memory_order_release);
        return gpuhal_device_unusable(buffer->device);
    }
    return GPUHAL_OK;
}

static __attribute__((noinline)) void end_writing(gpuhal_buffer *buffer)
{
    gpuhal_mutex_lock(&buffer->device->mutex);
    buffer->writing = false;
    gpuhal_condition_signal_all(&buffer->device->condition);
    gpuhal_mutex_unlock(&buffer->device->mutex);
}

void gpuhal_buffer_leave_counted(gpuhal_buffer *buffer, bool writes)
{
    if (writes && buffer->needs_clean) {
        end_writing(buffer);
    }
    /* Release order, because a thread that maps the idle buffer must see all results of this transfer. The write access
     * is released first, because the buffer may be mapped as soon as the count is 0. */
    atomic_fetch_sub_explicit(&buffer->use, 1, memory_order_release);
}

gpuhal_status gpuhal_buffer_clean(gpuhal_buffer *buffer, uint64_t offset, uint64_t bytes, bool invalidate)
{
    gpuhal_device *device = buffer->device;
    gpuhal_status status = gpuhal_memory_clean(device, &buffer->memory, offset, bytes, invalidate);
    return status ? gpuhal_device_failed(device, status, "making memory coherent") : GPUHAL_OK;
}

uint64_t gpuhal_buffer_bytes(const gpuhal_buffer *buffer)
{
    return buffer ? buffer->bytes : 0;
}

uint64_t gpuhal_buffer_address(const gpuhal_buffer *buffer)
{
    return buffer ? buffer->memory.address : 0;
}

void *gpuhal_buffer_host(const gpuhal_buffer *buffer)
{
    return buffer && (!buffer->is_part || gpuhal_buffer_is_coherent(buffer)) ? buffer->memory.host : NULL;
}

int32_t gpuhal_buffer_is_coherent(const gpuhal_buffer *buffer)
{
    return buffer && buffer->memory.host && (buffer->memory.flags & GPUHAL_MEMORY_HOST_COHERENT) ? 1 : 0;
}

gpuhal_device *gpuhal_buffer_device(const gpuhal_buffer *buffer)
{
    return buffer ? buffer->device : NULL;
}

gpuhal_status gpuhal_buffer_find(gpuhal *gpu, uint64_t address, gpuhal_buffer **out_buffer, uint64_t *out_offset)
{
    if (out_buffer) {
        *out_buffer = NULL;
    }
    if (out_offset) {
        *out_offset = 0;
    }
    if (!gpu || !out_buffer || !out_offset) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_buffer_find: an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    gpuhal_buffer *buffer = NULL;
    for (gpuhal_address_kind kind = GPUHAL_ADDRESS_DEVICE; !buffer && kind < GPUHAL_ADDRESS_KINDS; kind++) {
        buffer = gpuhal_address_index_find(gpu->layers.addresses, kind, address, out_offset);
    }
    if (buffer && buffer->pool) {
        buffer = gpu->layers.find_part(buffer, out_offset);
    }
    if (!buffer) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "no buffer contains the address 0x%" PRIx64, address);
    }
    *out_buffer = buffer;
    return GPUHAL_OK;
}

/* Adds the suballocation's offset to the vendor object's values. Returns 0, or the offset if the values cannot express
 * it. */
static uint64_t begin_inside(gpuhal_native *native, uint64_t begin)
{
    const bool is_pointer = native->type == GPUHAL_NATIVE_CUDA_MEMORY || native->type == GPUHAL_NATIVE_HIP_MEMORY;
    if (!is_pointer && native->type != GPUHAL_NATIVE_OPENCL_BUFFER) {
        return begin;
    }
    native->values[is_pointer ? 0 : 1] += begin;
    return 0;
}

uint64_t gpuhal_buffer_offset(const gpuhal_buffer *buffer)
{
    gpuhal_native native = {.size = sizeof native};
    const bool inside = buffer && buffer->begin > 0 && !gpuhal_device_check(buffer->device);
    if (!inside || !buffer->device->native.native_memory) {
        return 0;
    }
    const gpuhal_call call = gpuhal_call_prompt(buffer->device);
    const gpuhal_status status =
        buffer->device->native.native_memory(buffer->device->handle, &buffer->whole->memory, &native);
    return gpuhal_device_result(buffer->device, call, status) ? 0 : begin_inside(&native, buffer->begin);
}

gpuhal_status gpuhal_buffer_native(const gpuhal_buffer *buffer, gpuhal_native *out_native)
{
    if (!buffer || !out_native) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_buffer_native: an argument is NULL");
    }
    gpuhal_device *device = buffer->device;
    gpuhal_native native = {.size = sizeof native};
    gpuhal_status status = gpuhal_native_check("gpuhal_buffer_native", out_native);
    status = status ? status : gpuhal_device_check(device);
    if (status) {
        return status;
    }
    const gpuhal_call call = gpuhal_call_prompt(device);
    status = device->native.native_memory
                 ? device->native.native_memory(device->handle, &buffer->whole->memory, &native)
                 : GPUHAL_ERROR_NOT_SUPPORTED;
    status = gpuhal_device_result(device, call, status);
    (void)begin_inside(&native, buffer->begin);
    gpuhal_native_give(out_native, status ? (gpuhal_native){0} : native);
    return status ? gpuhal_device_failed(device, status, "getting the vendor's object") : GPUHAL_OK;
}

gpuhal_status gpuhal_buffer_busy(const gpuhal_buffer *buffer)
{
    gpuhal_error_set(GPUHAL_ERROR_BUSY, "%s: the buffer is mapped: unmap it first", buffer->device->id);
    gpuhal_error_add_device(buffer->device->candidate->name, buffer->device->id);
    return GPUHAL_ERROR_BUSY;
}

gpuhal_status gpuhal_buffer_check_separate(const gpuhal_buffer *buffer, const char *action)
{
    if (!buffer->is_part || buffer->export_kinds) {
        return GPUHAL_OK;
    }
    gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED,
                     "%s: the buffer is a part of a pool's memory: %s takes a buffer that has its own memory",
                     buffer->device->id, action);
    gpuhal_error_add_device(buffer->device->candidate->name, buffer->device->id);
    return GPUHAL_ERROR_NOT_SUPPORTED;
}
