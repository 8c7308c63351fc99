/* faulty_memory.c: memory of the misbehaving plugin: allocate, import, export, map, register, flush and invalidate. */
#include "faulty.h"

#include <gpuhal/native.h>

#include <pthread.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_ALIGNMENT 64u
#define LIVE_MAX        4096

/* Protects the list of live memory and the number of bytes in use. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gpuhal_faulty_memory *live[LIVE_MAX];
static uint64_t used[DEVICES];
static bool ran_out;

uint64_t gpuhal_faulty_used(uint32_t index)
{
    pthread_mutex_lock(&lock);
    uint64_t bytes = used[index % DEVICES];
    pthread_mutex_unlock(&lock);
    return bytes;
}

void gpuhal_faulty_take(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    used[0] += bytes;
    pthread_mutex_unlock(&lock);
}

void gpuhal_faulty_forget(const gpuhal_plugin_device *device)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < LIVE_MAX; i++) {
        if (live[i] != NULL && live[i]->owner != device) {
            memset(live[i]->bytes, 0, live[i]->size);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void count(gpuhal_faulty_memory *memory, bool add)
{
    pthread_mutex_lock(&lock);
    unsigned place = 0;
    while (place < LIVE_MAX - 1 && live[place] != (add ? NULL : memory)) {
        place++;
    }
    live[place] = add ? memory : NULL;
    if (memory->counted) {
        uint64_t *in_use = &used[memory->index];
        *in_use = add ? *in_use + memory->size : *in_use - memory->size;
    }
    pthread_mutex_unlock(&lock);
}

static bool fits(uint32_t index, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    bool room = used[index] <= TOTAL_BYTES && bytes <= TOTAL_BYTES - used[index];
    room = (room || is(exhaust_aliases) || is(good_overcommits)) && !(is(exhaust_sticks) && ran_out);
    ran_out = ran_out || !room;
    pthread_mutex_unlock(&lock);
    return room;
}

bool gpuhal_faulty_use(uint32_t index, uint64_t bytes)
{
    const bool room = fits(index, bytes);
    pthread_mutex_lock(&lock);
    used[index] += room ? bytes : 0;
    pthread_mutex_unlock(&lock);
    return room;
}

void gpuhal_faulty_give_back(uint32_t index, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    used[index] -= bytes;
    pthread_mutex_unlock(&lock);
}

bool gpuhal_faulty_states(gpuhal_memory_kind kind)
{
    const bool coherent = !is(good_incoherent) && !is(clean_nothing);
    return kind <= (is(good_minimal) ? GPUHAL_MEMORY_READBACK
                    : coherent       ? GPUHAL_MEMORY_MIGRATING
                                     : GPUHAL_MEMORY_DEVICE_MAPPED);
}

static bool take_shared(gpuhal_faulty_memory *memory, int descriptor)
{
    memory->bytes = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    memory->mapped = true;
    memory->descriptor = descriptor;
    if (memory->bytes == MAP_FAILED && is(import_closes)) {
        close(descriptor);
    }
    return memory->bytes != MAP_FAILED;
}

static bool take_import(gpuhal_faulty_memory *memory, const gpuhal_handle *import)
{
    if (import->kind == GPUHAL_HANDLE_OPAQUE_FD) {
        return take_shared(memory, (int)import->as.os);
    }
    memory->bytes = import->as.pointer;
    memory->host = memory->bytes;
    memory->lent = true;
    if (is(import_copies) || is(import_elsewhere) || is(good_import_copy) || is(clean_wide)) {
        memory->bytes = memory->to_free = malloc(memory->size);
        memory->host = is(import_elsewhere) ? memory->bytes : memory->host;
        memcpy(memory->bytes, import->as.pointer, memory->size);
    }
    return true;
}

static bool take_exportable(gpuhal_faulty_memory *memory)
{
    int descriptor = memfd_create("test", MFD_CLOEXEC);
    return descriptor >= 0 && ftruncate(descriptor, (off_t)memory->size) == 0 && take_shared(memory, descriptor);
}

/* If the request exceeds the device's free memory, returns the bytes of a live allocation of the same size. Returns
 * NULL if there is no such allocation. */
static unsigned char *taken_already(uint32_t index, uint64_t bytes)
{
    unsigned char *found = NULL;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < LIVE_MAX && !found && used[index] + bytes > TOTAL_BYTES; i++) {
        found = live[i] && live[i]->index == index && live[i]->size == bytes ? live[i]->bytes : NULL;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static bool take_bytes(gpuhal_faulty_memory *memory, const gpuhal_alloc *alloc)
{
    if (is(exhaust_aliases) && (memory->bytes = taken_already(memory->index, memory->size))) {
        return true;
    }
    if (is(offset_32) || is(size_32)) { /* untouched pages use no memory */
        memory->bytes =
            mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        memory->mapped = true;
        return memory->bytes != MAP_FAILED;
    }
    const uint64_t alignment = alloc->alignment > FIRST_ALIGNMENT ? alloc->alignment : FIRST_ALIGNMENT;
    const uint64_t rounded = (memory->size + 8 + alignment - 1) / alignment * alignment;
    memory->to_free = aligned_alloc(alignment, rounded);
    if (memory->to_free == NULL) {
        return false;
    }
    memset(memory->to_free, 0, rounded);
    const bool skewed = is(host_skewed) && alloc->kind == GPUHAL_MEMORY_READBACK && alloc->alignment > 64;
    memory->bytes = (unsigned char *)memory->to_free + (skewed || is(alignment_ignored) ? 8 : 0);
    return true;
}

/* Memory of every kind except DEVICE has a host view. */
static void take_host_view(gpuhal_faulty_memory *memory, const gpuhal_alloc *alloc)
{
    const gpuhal_memory_kind kind = alloc->kind;
    if (kind == GPUHAL_MEMORY_DEVICE && !is(good_visible)) {
        return;
    }
    memory->host = memory->bytes;
    if (is(good_incoherent) || is(clean_nothing)) {
        const uint64_t alignment = alloc->alignment > FIRST_ALIGNMENT ? alloc->alignment : FIRST_ALIGNMENT;
        const uint64_t rounded = (memory->size + alignment - 1) / alignment * alignment;
        memory->host = aligned_alloc(alignment, rounded);
        memset(memory->host, 0, rounded);
    }
    if (is(upload_no_host) && kind == GPUHAL_MEMORY_UPLOAD) {
        memory->host = NULL;
    }
}

static bool offered(const gpuhal_alloc *alloc)
{
    const gpuhal_handle_kind import = alloc->handle.kind;
    const bool known_import = import == 0 || import == GPUHAL_HANDLE_OPAQUE_FD || import == GPUHAL_HANDLE_HOST_POINTER;
    const bool known_export = (alloc->export_kinds & ~(1u << GPUHAL_HANDLE_OPAQUE_FD)) == 0;
    if (is(good_minimal) && (import != 0 || alloc->export_kinds != 0)) {
        return false;
    }
    return (gpuhal_faulty_states(alloc->kind) || is(kind_unknown)) && (known_import || is(import_unknown)) &&
           (known_export || is(export_unknown)) && (alloc->peer_count == 0 || !is(good_minimal)) &&
           !(is(exportable_refused) && alloc->export_kinds != 0 && alloc->kind == GPUHAL_MEMORY_READBACK) &&
           !(alloc->export_kinds != 0 && alloc->kind == GPUHAL_MEMORY_MIGRATING) &&
           !(is(good_exports_host) && alloc->export_kinds != 0 && alloc->kind != GPUHAL_MEMORY_UPLOAD) &&
           !(is(kind_refused) && alloc->kind == GPUHAL_MEMORY_READBACK);
}

static gpuhal_status faulty_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    char value[16];
    if (is(option_in_slot)) {
        (void)host->option(host, "faulty.devices", value, sizeof value);
    }
    if (!offered(alloc)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (is(alloc_beyond)) {
        gpuhal_faulty_read_behind(alloc, sizeof *alloc);
    }
    static _Atomic pid_t first; /* the process that first allocated memory; its children are refused */
    first = first ? first : getpid();
    if (is(fork_crashes) && first != getpid()) {
        signal(SIGSEGV, SIG_DFL);
        raise(SIGSEGV);
    }
    if (is(fork_fails) && first != getpid()) {
        return GPUHAL_ERROR_DRIVER;
    }
    const uint64_t bytes = is(size_wraps) ? (alloc->bytes + 63) & ~UINT64_C(63) : alloc->bytes;
    if (bytes > TOTAL_BYTES / 2) {
        if (is(leak_refusal)) {
            gpuhal_faulty_lose_descriptor();
        }
        gpuhal_status status = is(size_status) ? GPUHAL_ERROR_OUT_OF_MEMORY : GPUHAL_ERROR_TOO_LARGE;
        return is(report_never)
                   ? status
                   : host->report(gpuhal_faulty_host(host), status, "test", 2, "more than the test device has");
    }
    if (alloc->handle.kind == 0 && (is(memory_taken) || !fits(device->index, bytes))) {
        return is(report_never) ? GPUHAL_ERROR_OUT_OF_MEMORY
                                : host->report(host, GPUHAL_ERROR_OUT_OF_MEMORY, "test", 1, "the test device is full");
    }
    gpuhal_faulty_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *memory = (gpuhal_faulty_memory){.size = bytes,
                                     .descriptor = -1,
                                     .owner = device,
                                     .index = device->index,
                                     .kind = alloc->kind,
                                     .counted = alloc->handle.kind == 0};
    const bool is_import =
        alloc->handle.kind == GPUHAL_HANDLE_OPAQUE_FD || alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER;
    const bool taken = is_import                 ? take_import(memory, &alloc->handle)
                       : alloc->export_kinds > 0 ? take_exportable(memory)
                                                 : take_bytes(memory, alloc);
    if (!taken) {
        free(memory);
        return GPUHAL_ERROR_OUT_OF_MEMORY;
    }
    if (!is_import) {
        take_host_view(memory, alloc);
    }
    count(memory, true);
    if (is(leak_allocation)) {
        gpuhal_faulty_lose_memory(512);
    }
    out_memory->object = memory;
    const bool migrating = alloc->kind == GPUHAL_MEMORY_MIGRATING;
    const bool coherent = memory->host == memory->bytes && !(migrating && is(migrating_incoherent));
    out_memory->flags = coherent || is(import_copies) ? GPUHAL_MEMORY_HOST_COHERENT : 0;
    static _Atomic uint64_t newest;
    const bool mixes = is(allocate_static) && bytes < 16384;
    if (mixes) {
        newest = bytes;
        sched_yield();
    }
    out_memory->bytes = is(bytes_fewer) ? bytes - 1 : mixes ? newest : bytes;
    out_memory->address =
        is(allocations_overlap) ? 65536 : (uintptr_t)memory->bytes + (migrating && is(migrating_apart));
    out_memory->host = memory->host;
    out_memory->size += is(memory_size) ? 8 : 0;
    out_memory->size = is(memory_own_size) ? sizeof *out_memory : out_memory->size;
    if (is(memory_long)) {
        gpuhal_faulty_write_behind(out_memory, sizeof *out_memory);
    }
    return GPUHAL_OK;
}

static void faulty_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    (void)device;
    gpuhal_faulty_memory *own = gpuhal_faulty_of(memory);
    count(own, false);
    if (is(read_stale)) {
        gpuhal_faulty_drop_stale(own);
    }
    if (own->mapped) {
        munmap(own->bytes, own->size);
    }
    if (own->descriptor >= 0 && !is(import_leaks)) {
        close(own->descriptor);
    }
    if (own->to_free != NULL && own->host != own->bytes && !own->lent) {
        free(own->host);
    }
    if (!is(recording_set_known)) { /* which still writes to it */
        free(own->to_free);
        free(own);
    }
}

static gpuhal_status move_host_copy(const gpuhal_memory *memory, uint64_t offset, uint64_t bytes, bool invalidate)
{
    const gpuhal_faulty_memory *own = gpuhal_faulty_of(memory);
    if (own->host == NULL || own->host == own->bytes || is(clean_nothing)) {
        return GPUHAL_OK;
    }
    if (is(clean_wide)) {
        offset = 0;
        bytes = own->size;
    }
    if (invalidate) {
        memcpy(own->host + offset, own->bytes + offset, bytes);
    } else {
        memcpy(own->bytes + offset, own->host + offset, bytes);
    }
    return GPUHAL_OK;
}

static gpuhal_status faulty_memory_flush(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                         uint64_t bytes)
{
    (void)device;
    return move_host_copy(memory, offset, bytes, false);
}

static gpuhal_status faulty_memory_invalidate(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                              uint64_t offset, uint64_t bytes)
{
    (void)device;
    return move_host_copy(memory, offset, bytes, true);
}

static gpuhal_status faulty_map(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                uint64_t bytes, uint32_t access, void **out_pointer)
{
    (void)device;
    gpuhal_faulty_memory *own = gpuhal_faulty_of(memory);
    own->open_map = malloc(bytes);
    if (own->open_map == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    memcpy(own->open_map, own->bytes + (is(map_offset) ? 0 : offset), bytes);
    own->map_offset = offset;
    own->map_bytes = bytes;
    own->map_writes = (access & GPUHAL_ACCESS_WRITE) != 0 && !is(map_lost);
    *out_pointer = own->open_map;
    return GPUHAL_OK;
}

static gpuhal_status faulty_unmap(gpuhal_plugin_device *device, const gpuhal_memory *memory, void *pointer)
{
    (void)device;
    gpuhal_faulty_memory *own = gpuhal_faulty_of(memory);
    if (own->map_writes) {
        memcpy(own->bytes + own->map_offset, pointer, own->map_bytes);
    }
    if (is(leak_map)) {
        gpuhal_faulty_lose_memory(2048);
    }
    free(own->open_map);
    own->open_map = NULL;
    return GPUHAL_OK;
}

static gpuhal_status faulty_register(gpuhal_plugin_device *device, void *memory, uint64_t bytes)
{
    (void)memory, (void)bytes;
    if (is(register_once) && device->registered > 0) {
        return GPUHAL_ERROR_BUSY;
    }
    device->registered++;
    return GPUHAL_OK;
}

static gpuhal_status faulty_unregister(gpuhal_plugin_device *device, void *memory)
{
    (void)memory;
    device->registered -= is(register_once) ? 0 : 1;
    return GPUHAL_OK;
}

static gpuhal_status faulty_export(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                   gpuhal_handle *out_handle, uint64_t *out_offset)
{
    (void)device;
    const gpuhal_faulty_memory *own = gpuhal_faulty_of(memory);
    if (kind != GPUHAL_HANDLE_OPAQUE_FD || own->descriptor < 0) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (is(leak_export)) {
        gpuhal_faulty_lose_descriptor();
    }
    out_handle->kind = kind;
    out_handle->as.os = is(export_no_descriptor) ? -1
                        : is(export_own)         ? own->descriptor
                                         : fcntl(own->descriptor, is(export_inherited) ? F_DUPFD : F_DUPFD_CLOEXEC, 0);
    *out_offset = 0;
    out_handle->size = is(handle_own_size) ? sizeof *out_handle : out_handle->size;
    if (is(handle_long)) {
        gpuhal_faulty_write_behind(out_handle, sizeof *out_handle);
    }
    return GPUHAL_OK;
}

/* Wraps the native object of native_memory in a second memory object with the same bytes. */
gpuhal_status gpuhal_faulty_wrap(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                 gpuhal_memory *out_memory)
{
    const gpuhal_faulty_memory *other = (const gpuhal_faulty_memory *)(uintptr_t)native->values[0];
    if (!is(wrap_any_type) && native->type != FAULTY_BUFFER) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    if (!is(wrap_any_size) && bytes > other->size) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    gpuhal_faulty_memory *own = calloc(1, sizeof *own);
    if (own == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *own = (gpuhal_faulty_memory){
        .bytes = other->bytes, .size = other->size, .descriptor = -1, .owner = device, .lent = true};
    if (is(wrap_copies)) {
        own->bytes = own->to_free = malloc(own->size);
    }
    out_memory->object = own;
    out_memory->bytes = own->size;
    if (is(wrap_long)) {
        gpuhal_faulty_write_behind(out_memory, sizeof *out_memory);
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_faulty_native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                          gpuhal_native *out_native)
{
    (void)device;
    if (is(range_native) && (memory->flags & GPUHAL_MEMORY_DEVICE_LOCAL) != 0) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    out_native->type = FAULTY_BUFFER;
    out_native->values[0] = is(native_empty) ? 0 : (uintptr_t)memory->object;
    return GPUHAL_OK;
}

void gpuhal_faulty_describe_memory(gpuhal_ops *ops)
{
    ops->allocate = faulty_allocate;
    ops->release = faulty_release;
    if (is(good_minimal)) {
        return;
    }
    ops->memory_flush = faulty_memory_flush;
    ops->memory_invalidate = faulty_memory_invalidate;
    ops->map = faulty_map;
    ops->unmap = faulty_unmap;
    ops->register_host = faulty_register;
    ops->unregister_host = faulty_unregister;
    ops->export_memory = faulty_export;
}
