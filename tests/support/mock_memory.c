/* tests/support/mock_memory.c: memory and transfer slots of the mock's devices. See mock.h. */
#include "support/mock_device.h"

#include "support/pattern.h"
#include "test.h"

#include <gpuhal/native.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef gpuhal_mock_block block;

static void raise_most(_Atomic int64_t *most, int64_t now)
{
    int64_t before = atomic_load(most);
    while (now > before && !atomic_compare_exchange_weak(most, &before, now)) {
    }
}

/* Guarantees only the requested alignment, but at least 64, so that a test can fail if the core requests too little. */
static unsigned char *take_bytes(const gpuhal_alloc *alloc, int *out_descriptor)
{
    void *bytes = NULL;
    *out_descriptor = -1;
    if (alloc->export_kinds) {
        *out_descriptor = memfd_create("mock", MFD_CLOEXEC);
        bool sized = *out_descriptor >= 0 && ftruncate(*out_descriptor, (off_t)alloc->bytes) == 0;
        bytes = sized ? mmap(NULL, (size_t)alloc->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *out_descriptor, 0)
                      : MAP_FAILED;
        return bytes == MAP_FAILED ? NULL : bytes;
    }
    uint64_t alignment = alloc->alignment > 64 ? alloc->alignment : 64;
    if (posix_memalign(&bytes, (size_t)alignment, (size_t)alloc->bytes)) {
        return NULL;
    }
    memset(bytes, 0x5a, (size_t)alloc->bytes);
    return bytes;
}

/* The mock's own kind of handle contains the exporter's descriptor, which the exporter keeps. Returns -1 for other
 * handles. */
static int descriptor_of(const gpuhal_handle *handle)
{
    int descriptor = -1;
    memcpy(&descriptor, handle->as.ipc + 60, sizeof descriptor);
    return memcmp(handle->as.ipc, "mock!", 4) == 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1;
}

/* Checks every guarantee of the core, like the strictest possible driver. */
static gpuhal_status import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, block *memory)
{
    gpuhal_mock_device *mock = device->mock;
    if (!(mock->import_kinds >> alloc->handle.kind & 1) || (alloc->flags & ~(uint32_t)GPUHAL_IMPORT_READ_ONLY)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (mock->fail_import) {
        return device->host->report(device->host, mock->fail_import, "mockImport", 8, "made to fail");
    }
    *memory = (block){.count = alloc->bytes, .kind = alloc->kind, .descriptor = -1, .lent = true};
    if (alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER) {
        unsigned char *pointer = alloc->handle.as.pointer;
        uint64_t mask = (mock->import_alignment ? mock->import_alignment : 4096) - 1;
        if (!pointer || (((uintptr_t)pointer | alloc->bytes) & mask)) {
            return device->host->report(device->host, GPUHAL_ERROR_DRIVER, "import", 99,
                                        "the core broke a rule of plugin.h");
        }
        memory->bytes = pointer;
        if (mock->caches_imports) {
            memory->host = pointer;
            memory->lent = false;
            memory->bytes = malloc((size_t)alloc->bytes);
            if (!memory->bytes) {
                return GPUHAL_ERROR_HOST_MEMORY;
            }
            memcpy(memory->bytes, pointer, (size_t)alloc->bytes);
        }
        return GPUHAL_OK;
    }
    struct stat info;
    int descriptor =
        alloc->handle.kind == GPUHAL_MOCK_HANDLE ? descriptor_of(&alloc->handle) : (int)alloc->handle.as.os;
    if (fstat(descriptor, &info) || !S_ISREG(info.st_mode) || (uint64_t)info.st_size != alloc->bytes) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "mockImport", 9,
                                    "the descriptor is of another kind");
    }
    memory->descriptor = descriptor;
    memory->bytes = mmap(NULL, (size_t)alloc->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor, 0);
    return memory->bytes == MAP_FAILED ? GPUHAL_ERROR_DRIVER : GPUHAL_OK;
}

static gpuhal_status make(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, block *memory)
{
    gpuhal_mock_device *mock = device->mock;
    uint64_t total = mock->total_bytes ? mock->total_bytes : 1u << 30;
    bool staging = alloc->kind != GPUHAL_MEMORY_DEVICE;
    if ((alloc->export_kinds & ~mock->export_kinds) || (alloc->export_kinds >> GPUHAL_HANDLE_HOST_POINTER & 1)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (mock->fail_allocate) {
        return device->host->report(device->host, mock->fail_allocate, "mockAllocate", 7, "made to fail");
    }
    if (!staging && (alloc->bytes > total || (uint64_t)mock->allocated_bytes > total - alloc->bytes)) {
        return device->host->report(device->host, GPUHAL_ERROR_OUT_OF_MEMORY, "mockAllocate", 2, "the mock is full");
    }
    *memory = (block){.count = alloc->bytes, .kind = alloc->kind};
    memory->bytes = take_bytes(alloc, &memory->descriptor);
    return memory->bytes ? GPUHAL_OK : GPUHAL_ERROR_OUT_OF_MEMORY;
}

static void count(gpuhal_mock_device *mock, const block *b)
{
    if (b->kind != GPUHAL_MEMORY_DEVICE) {
        raise_most(&mock->staging_bytes_most,
                   atomic_fetch_add(&mock->staging_bytes, (int64_t)b->count) + (int64_t)b->count);
    } else {
        mock->allocated_bytes += (int64_t)b->count;
    }
}

static gpuhal_status allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_mock_device *mock = device->mock;
    bool staging = alloc->kind != GPUHAL_MEMORY_DEVICE, imports = alloc->handle.kind != 0;
    const bool migrating = alloc->kind == GPUHAL_MEMORY_MIGRATING && mock->migrating;
    if (!migrating && (alloc->kind > GPUHAL_MEMORY_READBACK || (staging && mock->no_staging_kinds))) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    block *memory = calloc(1, sizeof *memory);
    if (!memory) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    gpuhal_status status = imports ? import(device, alloc, memory) : make(device, alloc, memory);
    if (status) {
        free(memory);
        return status;
    }
    out_memory->object = memory;
    out_memory->bytes = alloc->bytes - (imports && mock->short_imports);
    out_memory->flags =
        GPUHAL_MEMORY_HOST_CACHED | (mock->not_coherent || memory->host ? 0 : GPUHAL_MEMORY_HOST_COHERENT);
    out_memory->host = staging || !mock->hidden ? memory->bytes : NULL;
    out_memory->address = (staging && !migrating) || mock->hidden
                              ? 0
                              : (uint64_t)(uintptr_t)memory->bytes + (mock->own_addresses ? UINT64_C(1) << 56 : 0);
    if (mock->skewed) {
        out_memory->host = (char *)out_memory->host + 8;
    }
    if (alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER) {
        out_memory->host = alloc->handle.as.pointer;
    }
    if (mock->ignores_alignment && !imports) {
        out_memory->address += out_memory->address ? 64 : 0;
        out_memory->host = out_memory->host ? (char *)out_memory->host + 64 : NULL;
    }
    mock->allocations++;
    mock->imports += imports;
    if (!imports) {
        count(mock, memory);
    }
    return GPUHAL_OK;
}

static void release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    block *b = memory->object;
    device->mock->allocations--;
    if (!b->lent && !b->host && b->kind == GPUHAL_MEMORY_DEVICE) {
        device->mock->allocated_bytes -= (int64_t)b->count;
    } else if (!b->lent && !b->host) {
        device->mock->staging_bytes -= (int64_t)b->count;
    }
    if (b->descriptor >= 0) {
        munmap(b->bytes, (size_t)b->count);
        close(b->descriptor);
    } else if (!b->lent) {
        free(b->bytes);
    }
    free(b);
}

static gpuhal_status export_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                   gpuhal_handle *out_handle, uint64_t *out_offset)
{
    (void)device;
    const block *b = memory->object;
    if (b->descriptor < 0) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    out_handle->kind = kind;
    if (kind == GPUHAL_MOCK_HANDLE) {
        memcpy(out_handle->as.ipc, "mock!", 4);
        memcpy(out_handle->as.ipc + 60, &b->descriptor, sizeof b->descriptor);
        return GPUHAL_OK;
    }
    out_handle->as.os = fcntl(b->descriptor, F_DUPFD_CLOEXEC, 0);
    *out_offset = 0;
    return GPUHAL_OK;
}

static gpuhal_status wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                 gpuhal_memory *out_memory)
{
    if (native->type != GPUHAL_NATIVE_OPENCL_BUFFER || bytes > native->values[1]) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                                    "the object is another one, or too small");
    }
    block *memory = calloc(1, sizeof *memory);
    if (!memory) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *memory = (block){.bytes = (unsigned char *)(uintptr_t)native->values[0],
                      .count = native->values[1],
                      .descriptor = -1,
                      .lent = true};
    out_memory->object = memory;
    out_memory->bytes = native->values[1];
    device->mock->allocations++;
    return GPUHAL_OK;
}

unsigned char *gpuhal_mock_range(const gpuhal_mock_device *mock, const gpuhal_memory *memory, uint64_t offset,
                                 uint64_t bytes)
{
    const block *b = memory->object;
    uint64_t mask = mock->copy_alignment ? mock->copy_alignment - 1 : 0;
    bool good = bytes > 0 && offset <= b->count && bytes <= b->count - offset && ((offset | bytes) & mask) == 0;
    good = good && (!b->range || gpuhal_mock_range_has(b->range, offset, bytes));
    return good ? b->bytes + offset : NULL;
}

static gpuhal_status broken_rule(const gpuhal_plugin_device *device, const char *call)
{
    return device->host->report(device->host, GPUHAL_ERROR_DRIVER, call, 99, "the core broke a rule of plugin.h");
}

static gpuhal_status copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                          uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    unsigned char *target = gpuhal_mock_range(device->mock, to, to_offset, bytes);
    const unsigned char *source = gpuhal_mock_range(device->mock, from, from_offset, bytes);
    device->mock->copies++;
    if (device->mock->fail_copy && device->mock->quiet_failures) {
        return device->mock->fail_copy;
    }
    if (device->mock->fail_copy) {
        return device->host->report(device->host, device->mock->fail_copy, "mockCopy", 5, "made to fail");
    }
    if (queue || !target || !source || (target < source + bytes && source < target + bytes)) {
        return broken_rule(device, "copy");
    }
    memcpy(target, source, (size_t)bytes);
    gpuhal_mock_pause(device->mock->slow_copy_us);
    return GPUHAL_OK;
}

static gpuhal_status write_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t offset, const void *from, uint64_t bytes)
{
    unsigned char *target = gpuhal_mock_range(device->mock, to, offset, bytes);
    device->mock->writes++;
    if (device->mock->spurious_report) {
        device->host->report(device->host, GPUHAL_ERROR_DRIVER, "mockSpurious", 42, "an old story");
    }
    if (device->mock->fail_write) {
        return device->host->report(device->host, device->mock->fail_write, "mockWrite", 3, "made to fail");
    }
    if ((device->mock->refuses & GPUHAL_MOCK_READ_WRITE) && !to->host) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (queue || !target) {
        return broken_rule(device, "write");
    }
    memcpy(target, from, (size_t)bytes);
    gpuhal_mock_pause(device->mock->slow_write_us);
    return GPUHAL_OK;
}

static gpuhal_status read_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                                const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    const unsigned char *source = gpuhal_mock_range(device->mock, from, offset, bytes);
    device->mock->reads++;
    if (device->mock->fail_read) {
        return device->host->report(device->host, device->mock->fail_read, "mockRead", 4, "made to fail");
    }
    if ((device->mock->refuses & GPUHAL_MOCK_READ_WRITE) && !from->host) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (queue || !source) {
        return broken_rule(device, "read");
    }
    memcpy(to, source, (size_t)bytes);
    return GPUHAL_OK;
}

static gpuhal_status fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                          uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    const block *b = memory->object;
    uint64_t mask = device->mock->fill_alignment ? device->mock->fill_alignment - 1 : 0;
    device->mock->fills++;
    if (queue || bytes == 0 || bytes % pattern_bytes || offset + bytes > b->count || ((offset | bytes) & mask) ||
        (b->range && !gpuhal_mock_range_has(b->range, offset, bytes))) {
        return broken_rule(device, "fill");
    }
    for (uint64_t i = 0; i < bytes; i++) {
        b->bytes[offset + i] = pattern_byte(pattern, pattern_bytes, i);
    }
    gpuhal_mock_pause(device->mock->slow_write_us);
    return GPUHAL_OK;
}

static gpuhal_status copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                               const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    device->mock->rects++;
    if (device->mock->refuses & GPUHAL_MOCK_RECT) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    bool pitches = to->row_pitch >= extent[0] && from->row_pitch >= extent[0] &&
                   to->slice_pitch >= to->row_pitch * extent[1] && from->slice_pitch >= from->row_pitch * extent[1];
    if (queue || !pitches || (!to->memory && !from->memory) ||
        (to->memory == from->memory && (to->row_pitch != from->row_pitch || to->slice_pitch != from->slice_pitch))) {
        return broken_rule(device, "copy_rect");
    }
    for (uint64_t z = 0; z < extent[2]; z++) {
        for (uint64_t y = 0; y < extent[1]; y++) {
            uint64_t at = to->offset + z * to->slice_pitch + y * to->row_pitch;
            uint64_t of = from->offset + z * from->slice_pitch + y * from->row_pitch;
            unsigned char *target = to->memory ? gpuhal_mock_range(device->mock, to->memory, at, extent[0])
                                               : (unsigned char *)to->host + at;
            unsigned char *source = from->memory ? gpuhal_mock_range(device->mock, from->memory, of, extent[0])
                                                 : (unsigned char *)from->host + of;
            if (!target || !source) {
                return broken_rule(device, "copy_rect");
            }
            memcpy(target, source, (size_t)extent[0]);
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status make_coherent(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                   uint64_t bytes, bool invalidate)
{
    const block *b = memory->object;
    device->mock->cleans++;
    if (bytes == 0 || offset > b->count || bytes > b->count - offset) {
        return broken_rule(device, invalidate ? "memory_invalidate" : "memory_flush");
    }
    if (b->host) {
        memcpy(invalidate ? b->host + offset : b->bytes + offset, invalidate ? b->bytes + offset : b->host + offset,
               (size_t)bytes);
    }
    return GPUHAL_OK;
}

static gpuhal_status memory_flush(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                  uint64_t bytes)
{
    return make_coherent(device, memory, offset, bytes, false);
}

static gpuhal_status memory_invalidate(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                       uint64_t bytes)
{
    return make_coherent(device, memory, offset, bytes, true);
}

static gpuhal_status map(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes,
                         uint32_t access, void **out_pointer)
{
    (void)access;
    const block *b = memory->object;
    device->mock->maps++;
    if (bytes == 0 || offset + bytes > b->count) {
        return broken_rule(device, "map");
    }
    *out_pointer = b->bytes + offset;
    return GPUHAL_OK;
}

static gpuhal_status unmap(gpuhal_plugin_device *device, const gpuhal_memory *memory, void *pointer)
{
    (void)memory;
    (void)pointer;
    device->mock->maps--;
    return GPUHAL_OK;
}

gpuhal_status gpuhal_mock_describe(const gpuhal_mock_device *mock, gpuhal_ops *out_ops)
{
    static const gpuhal_native_ops native = {
        .size = sizeof native, .version = GPUHAL_NATIVE_VERSION, .wrap_memory = wrap_memory};
    out_ops->allocate = allocate;
    out_ops->release = release;
    out_ops->copy = copy;
    out_ops->write = mock->no_read_write ? NULL : write_bytes;
    out_ops->read = mock->no_read_write ? NULL : read_bytes;
    out_ops->fill = mock->no_fill ? NULL : fill;
    out_ops->copy_rect = mock->no_rect ? NULL : copy_rect;
    out_ops->memory_flush = mock->not_coherent || mock->caches_imports ? memory_flush : NULL;
    out_ops->memory_invalidate = mock->not_coherent || mock->caches_imports ? memory_invalidate : NULL;
    out_ops->export_memory = mock->export_kinds & ~(1u << GPUHAL_HANDLE_HOST_POINTER) ? export_memory : NULL;
    out_ops->native = mock->adopt_kinds ? &native : NULL;
    out_ops->map = mock->mappable ? map : NULL;
    out_ops->unmap = mock->mappable ? unmap : NULL;
    gpuhal_mock_describe_ranges(mock, out_ops);
    gpuhal_mock_describe_programs(mock, out_ops);
    return GPUHAL_OK;
}
