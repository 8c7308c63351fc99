/* tests/support/lab.c: see lab.h. */
#include "support/lab.h"

#include "support/pattern.h"
#include "test.h"

#include <gpuhal/native.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

gpuhal_lab_state gpuhal_lab;

struct gpuhal_plugin_device {
    gpuhal_lab_device *lab;
    const gpuhal_host *host;
};

typedef struct block {
    unsigned char *bytes;
    uint64_t count;
    gpuhal_memory_kind kind;
    bool lent;           /* the bytes are somebody else's */
    unsigned char *host; /* imported, with `bytes` a copy of them */
    int descriptor;      /* of a memfd behind the bytes; -1: none */
} block;

static gpuhal_lab_device *lab_of(uint32_t index)
{
    return &gpuhal_lab.devices[index];
}

static void stop_at(uint32_t call)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    if (!(gpuhal_lab.stops & call)) {
        return;
    }
    gpuhal_lab.stopped_thread = pthread_self();
    gpuhal_lab.stopped++;
    while (gpuhal_lab.stops & call) {
        nanosleep(&pause, NULL);
    }
    gpuhal_lab.stopped--;
}

static gpuhal_status start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    (void)host;
    return GPUHAL_OK;
}

static gpuhal_status start_lab(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    stop_at(GPUHAL_LAB_START);
    gpuhal_lab.host = host;
    return start(host, out_instance);
}

static void optional_text(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, const char *value)
{
    if (value) {
        host->text(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_NOT_SUPPORTED, "not set for this test");
    }
}

static void optional_number(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    if (value) {
        host->u64(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_NOT_SUPPORTED, "not set for this test");
    }
}

static void list_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index, const gpuhal_lab_device *lab)
{
    uint32_t kinds = 1u << GPUHAL_MEMORY_DEVICE;
    if (!lab->no_staging_kinds) {
        kinds |= 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK;
    }
    host->device(host, sink, index);
    host->text(host, sink, GPUHAL_FACT_NAME, lab->name ? lab->name : "lab");
    host->u64(host, sink, GPUHAL_FACT_TYPE, lab->type ? lab->type : GPUHAL_DEVICE_GPU);
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, lab->software);
    host->u64(host, sink, GPUHAL_FACT_VENDOR_ID, 0x1ab);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, 100 + index);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, kinds);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, lab->total_bytes ? lab->total_bytes : 1u << 30);
    optional_text(host, sink, GPUHAL_FACT_UUID, lab->uuid);
    optional_text(host, sink, GPUHAL_FACT_PCI_ADDRESS, lab->pci);
    optional_text(host, sink, GPUHAL_FACT_DRIVER_UUID, lab->driver_uuid);
    optional_number(host, sink, GPUHAL_FACT_IMPORT_KINDS, lab->import_kinds);
    optional_number(host, sink, GPUHAL_FACT_EXPORT_KINDS, lab->export_kinds);
    optional_number(host, sink, GPUHAL_FACT_ADOPT_KINDS, lab->adopt_kinds);
    optional_number(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, lab->import_alignment);
    if (lab->allocation_max) {
        host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, lab->allocation_max);
    }
    if (lab->copy_alignment) {
        host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, lab->copy_alignment);
    }
    if (lab->fill_alignment) {
        host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, lab->fill_alignment);
    }
}

static gpuhal_status enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    gpuhal_lab.enumerations++;
    stop_at(GPUHAL_LAB_ENUMERATE);
    for (uint32_t i = 0; i < gpuhal_lab.count; i++) {
        if (!(gpuhal_lab.unplugged >> i & 1)) {
            list_device(host, sink, i, lab_of(i));
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status enumerate_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    static const gpuhal_lab_device plain = {.name = "processor", .type = GPUHAL_DEVICE_CPU};
    list_device(host, sink, 0, &plain);
    return GPUHAL_OK;
}

static gpuhal_status sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                            const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    (void)flags;
    gpuhal_lab.sample_thread = syscall(SYS_gettid);
    for (uint32_t i = 0; i < count; i++) {
        if (gpuhal_lab.stop_key == 0 || gpuhal_lab.stop_key == keys[i]) {
            stop_at(GPUHAL_LAB_SAMPLE);
        }
        if (keys[i] == GPUHAL_VALUE_MEMORY_FREE_BYTES) {
            uint64_t total = lab_of(index)->total_bytes ? lab_of(index)->total_bytes : 1u << 30;
            host->u64(host, sink, keys[i], total - (uint64_t)lab_of(index)->allocated_bytes);
        } else {
            host->missing(host, sink, keys[i], GPUHAL_MISSING_NOT_SUPPORTED, "the lab has no such value");
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status tell_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                               gpuhal_sink *sink)
{
    (void)instance;
    host->u64(host, sink, GPUHAL_LINK_PEER_ADVERTISED, 1);
    stop_at(GPUHAL_LAB_LINK);
    host->u64(host, sink, GPUHAL_LINK_COUNT, from + to);
    return GPUHAL_OK;
}

static void pause_us(uint32_t us)
{
    const struct timespec pause = {.tv_nsec = (long)us * 1000};
    if (us) {
        nanosleep(&pause, NULL);
    }
}

static void raise_most(_Atomic int64_t *most, int64_t now)
{
    int64_t before = atomic_load(most);
    while (now > before && !atomic_compare_exchange_weak(most, &before, now)) {
    }
}

/* Memory with a host address has its alignment; the lab's own is that of malloc, so that a test sees when it forgot to ask. */
static unsigned char *take_bytes(const gpuhal_alloc *alloc, int *out_descriptor)
{
    void *bytes = NULL;
    *out_descriptor = -1;
    if (alloc->export_kinds) {
        *out_descriptor = memfd_create("lab", MFD_CLOEXEC);
        bool sized = *out_descriptor >= 0 && ftruncate(*out_descriptor, (off_t)alloc->bytes) == 0;
        bytes = sized ? mmap(NULL, (size_t)alloc->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *out_descriptor, 0) : MAP_FAILED;
        return bytes == MAP_FAILED ? NULL : bytes;
    }
    uint64_t alignment = alloc->alignment > 64 ? alloc->alignment : 64;
    if (posix_memalign(&bytes, (size_t)alignment, (size_t)alloc->bytes)) {
        return NULL;
    }
    memset(bytes, 0x5a, (size_t)alloc->bytes);
    return bytes;
}

/* A handle of the lab's own kind names the descriptor of the exporter, which stays the exporter's. -1 for any other
 * bytes. */
static int descriptor_of(const gpuhal_handle *handle)
{
    int descriptor = -1;
    memcpy(&descriptor, handle->as.ipc + 60, sizeof descriptor);
    return memcmp(handle->as.ipc, "lab!", 4) == 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 0) : -1;
}

/* The strictest driver there could be: everything that the core promises is looked at. */
static gpuhal_status import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, block *memory)
{
    gpuhal_lab_device *lab = device->lab;
    if (!(lab->import_kinds >> alloc->import.kind & 1) || (alloc->flags & ~(uint32_t)GPUHAL_IMPORT_READ_ONLY)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (lab->fail_import) {
        return device->host->report(device->host, lab->fail_import, "labImport", 8, "told to fail");
    }
    *memory = (block){.count = alloc->bytes, .kind = alloc->kind, .descriptor = -1, .lent = true};
    if (alloc->import.kind == GPUHAL_HANDLE_HOST_POINTER) {
        unsigned char *pointer = alloc->import.as.pointer;
        uint64_t mask = (lab->import_alignment ? lab->import_alignment : 4096) - 1;
        if (!pointer || (((uintptr_t)pointer | alloc->bytes) & mask)) {
            return device->host->report(device->host, GPUHAL_ERROR_DRIVER, "import", 99, "the core broke a rule of plugin.h");
        }
        memory->bytes = pointer;
        if (lab->caches_imports) {
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
    int descriptor = alloc->import.kind == GPUHAL_LAB_HANDLE ? descriptor_of(&alloc->import) : (int)alloc->import.as.os;
    if (fstat(descriptor, &info) || !S_ISREG(info.st_mode) || (uint64_t)info.st_size != alloc->bytes) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, "labImport", 9, "the descriptor is of another kind");
    }
    memory->descriptor = descriptor;
    memory->bytes = mmap(NULL, (size_t)alloc->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor, 0);
    return memory->bytes == MAP_FAILED ? GPUHAL_ERROR_DRIVER : GPUHAL_OK;
}

static gpuhal_status make(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, block *memory)
{
    gpuhal_lab_device *lab = device->lab;
    uint64_t total = lab->total_bytes ? lab->total_bytes : 1u << 30;
    bool staging = alloc->kind != GPUHAL_MEMORY_DEVICE;
    if ((alloc->export_kinds & ~lab->export_kinds) || (alloc->export_kinds >> GPUHAL_HANDLE_HOST_POINTER & 1)) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (lab->fail_allocate) {
        return device->host->report(device->host, lab->fail_allocate, "labAllocate", 7, "told to fail");
    }
    if (!staging && (alloc->bytes > total || (uint64_t)lab->allocated_bytes > total - alloc->bytes)) {
        return device->host->report(device->host, GPUHAL_ERROR_OUT_OF_MEMORY, "labAllocate", 2, "the lab is full");
    }
    *memory = (block){.count = alloc->bytes, .kind = alloc->kind};
    memory->bytes = take_bytes(alloc, &memory->descriptor);
    return memory->bytes ? GPUHAL_OK : GPUHAL_ERROR_OUT_OF_MEMORY;
}

static void count(gpuhal_lab_device *lab, const block *b)
{
    if (b->kind != GPUHAL_MEMORY_DEVICE) {
        raise_most(&lab->staging_bytes_most, atomic_fetch_add(&lab->staging_bytes, (int64_t)b->count) + (int64_t)b->count);
    } else {
        lab->allocated_bytes += (int64_t)b->count;
    }
}

static gpuhal_status allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_lab_device *lab = device->lab;
    bool staging = alloc->kind != GPUHAL_MEMORY_DEVICE, imports = alloc->import.kind != 0;
    if (alloc->kind > GPUHAL_MEMORY_READBACK || (staging && lab->no_staging_kinds)) {
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
    out_memory->bytes = alloc->bytes - (imports && lab->short_imports);
    out_memory->flags = GPUHAL_MEMORY_HOST_CACHED | (lab->not_coherent || memory->host ? 0 : GPUHAL_MEMORY_HOST_COHERENT);
    out_memory->host = staging || !lab->hidden ? memory->bytes : NULL;
    out_memory->address = staging || lab->hidden ? 0 : (uint64_t)(uintptr_t)memory->bytes + (lab->own_addresses ? UINT64_C(1) << 56 : 0);
    if (lab->skewed) {
        out_memory->host = (char *)out_memory->host + 8;
    }
    if (alloc->import.kind == GPUHAL_HANDLE_HOST_POINTER) {
        out_memory->host = alloc->import.as.pointer;
    }
    if (lab->ignores_alignment && !imports) {
        out_memory->address += out_memory->address ? 64 : 0;
        out_memory->host = out_memory->host ? (char *)out_memory->host + 64 : NULL;
    }
    lab->allocations++;
    lab->imports += imports;
    if (!imports) {
        count(lab, memory);
    }
    return GPUHAL_OK;
}

static void release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    block *b = memory->object;
    device->lab->allocations--;
    if (!b->lent && !b->host && b->kind == GPUHAL_MEMORY_DEVICE) {
        device->lab->allocated_bytes -= (int64_t)b->count;
    } else if (!b->lent && !b->host) {
        device->lab->staging_bytes -= (int64_t)b->count;
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
    if (kind == GPUHAL_LAB_HANDLE) {
        memcpy(out_handle->as.ipc, "lab!", 4);
        memcpy(out_handle->as.ipc + 60, &b->descriptor, sizeof b->descriptor);
        return GPUHAL_OK;
    }
    out_handle->as.os = fcntl(b->descriptor, F_DUPFD_CLOEXEC, 0);
    *out_offset = 0;
    return GPUHAL_OK;
}

static gpuhal_status wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes, gpuhal_memory *out_memory)
{
    if (native->type != GPUHAL_NATIVE_OPENCL_BUFFER || bytes > native->values[1]) {
        return device->host->report(device->host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "the object is another one, or too small");
    }
    block *memory = calloc(1, sizeof *memory);
    if (!memory) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *memory = (block){.bytes = (unsigned char *)(uintptr_t)native->values[0], .count = native->values[1], .descriptor = -1, .lent = true};
    out_memory->object = memory;
    out_memory->bytes = native->values[1];
    device->lab->allocations++;
    return GPUHAL_OK;
}

/* The address of a range that keeps the rules; NULL otherwise. */
static unsigned char *range(const gpuhal_lab_device *lab, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes)
{
    const block *b = memory->object;
    uint64_t mask = lab->copy_alignment ? lab->copy_alignment - 1 : 0;
    bool good = bytes > 0 && offset <= b->count && bytes <= b->count - offset && ((offset | bytes) & mask) == 0;
    return good ? b->bytes + offset : NULL;
}

static gpuhal_status broken_rule(const gpuhal_plugin_device *device, const char *call)
{
    return device->host->report(device->host, GPUHAL_ERROR_DRIVER, call, 99, "the core broke a rule of plugin.h");
}

static gpuhal_status copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to, uint64_t to_offset,
                          const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    unsigned char *target = range(device->lab, to, to_offset, bytes);
    const unsigned char *source = range(device->lab, from, from_offset, bytes);
    device->lab->copies++;
    if (device->lab->fail_copy && device->lab->quiet_failures) {
        return device->lab->fail_copy;
    }
    if (device->lab->fail_copy) {
        return device->host->report(device->host, device->lab->fail_copy, "labCopy", 5, "told to fail");
    }
    if (queue || !target || !source || (target < source + bytes && source < target + bytes)) {
        return broken_rule(device, "copy");
    }
    memcpy(target, source, (size_t)bytes);
    pause_us(device->lab->slow_copy_us);
    return GPUHAL_OK;
}

static gpuhal_status write_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to, uint64_t offset,
                                 const void *from, uint64_t bytes)
{
    unsigned char *target = range(device->lab, to, offset, bytes);
    device->lab->writes++;
    if (device->lab->gossip) {
        device->host->report(device->host, GPUHAL_ERROR_DRIVER, "labGossip", 42, "an old story");
    }
    if (device->lab->fail_write) {
        return device->host->report(device->host, device->lab->fail_write, "labWrite", 3, "told to fail");
    }
    if ((device->lab->refuses & GPUHAL_LAB_READ_WRITE) && !to->host) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (queue || !target) {
        return broken_rule(device, "write");
    }
    memcpy(target, from, (size_t)bytes);
    pause_us(device->lab->slow_write_us);
    return GPUHAL_OK;
}

static gpuhal_status read_bytes(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to, const gpuhal_memory *from,
                                uint64_t offset, uint64_t bytes)
{
    const unsigned char *source = range(device->lab, from, offset, bytes);
    device->lab->reads++;
    if (device->lab->fail_read) {
        return device->host->report(device->host, device->lab->fail_read, "labRead", 4, "told to fail");
    }
    if ((device->lab->refuses & GPUHAL_LAB_READ_WRITE) && !from->host) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (queue || !source) {
        return broken_rule(device, "read");
    }
    memcpy(to, source, (size_t)bytes);
    return GPUHAL_OK;
}

static gpuhal_status fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory, uint64_t offset,
                          uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    const block *b = memory->object;
    uint64_t mask = device->lab->fill_alignment ? device->lab->fill_alignment - 1 : 0;
    device->lab->fills++;
    if (queue || bytes == 0 || bytes % pattern_bytes || offset + bytes > b->count || ((offset | bytes) & mask)) {
        return broken_rule(device, "fill");
    }
    for (uint64_t i = 0; i < bytes; i++) {
        b->bytes[offset + i] = pattern_byte(pattern, pattern_bytes, i);
    }
    pause_us(device->lab->slow_write_us);
    return GPUHAL_OK;
}

static gpuhal_status copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                               const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    device->lab->rects++;
    if (device->lab->refuses & GPUHAL_LAB_RECT) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    bool pitches = to->row_pitch >= extent[0] && from->row_pitch >= extent[0] && to->slice_pitch >= to->row_pitch * extent[1] &&
                   from->slice_pitch >= from->row_pitch * extent[1];
    if (queue || !pitches || (!to->memory && !from->memory) ||
        (to->memory == from->memory && (to->row_pitch != from->row_pitch || to->slice_pitch != from->slice_pitch))) {
        return broken_rule(device, "copy_rect");
    }
    for (uint64_t z = 0; z < extent[2]; z++) {
        for (uint64_t y = 0; y < extent[1]; y++) {
            uint64_t at = to->offset + z * to->slice_pitch + y * to->row_pitch;
            uint64_t of = from->offset + z * from->slice_pitch + y * from->row_pitch;
            unsigned char *target = to->memory ? range(device->lab, to->memory, at, extent[0]) : (unsigned char *)to->host + at;
            unsigned char *source = from->memory ? range(device->lab, from->memory, of, extent[0]) : (unsigned char *)from->host + of;
            if (!target || !source) {
                return broken_rule(device, "copy_rect");
            }
            memcpy(target, source, (size_t)extent[0]);
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status make_coherent(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes, bool invalidate)
{
    const block *b = memory->object;
    device->lab->cleans++;
    if (bytes == 0 || offset > b->count || bytes > b->count - offset) {
        return broken_rule(device, invalidate ? "memory_invalidate" : "memory_flush");
    }
    if (b->host) {
        memcpy(invalidate ? b->host + offset : b->bytes + offset, invalidate ? b->bytes + offset : b->host + offset, (size_t)bytes);
    }
    return GPUHAL_OK;
}

static gpuhal_status memory_flush(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes)
{
    return make_coherent(device, memory, offset, bytes, false);
}

static gpuhal_status memory_invalidate(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes)
{
    return make_coherent(device, memory, offset, bytes, true);
}

static gpuhal_status map(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes, uint32_t access,
                         void **out_pointer)
{
    (void)access;
    const block *b = memory->object;
    device->lab->maps++;
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
    device->lab->maps--;
    return GPUHAL_OK;
}

static gpuhal_status describe_as(const gpuhal_lab_device *lab, gpuhal_ops *out_ops)
{
    out_ops->allocate = allocate;
    out_ops->release = release;
    out_ops->copy = copy;
    out_ops->write = lab->no_read_write ? NULL : write_bytes;
    out_ops->read = lab->no_read_write ? NULL : read_bytes;
    out_ops->fill = lab->no_fill ? NULL : fill;
    out_ops->copy_rect = lab->no_rect ? NULL : copy_rect;
    out_ops->memory_flush = lab->not_coherent || lab->caches_imports ? memory_flush : NULL;
    out_ops->memory_invalidate = lab->not_coherent || lab->caches_imports ? memory_invalidate : NULL;
    out_ops->export_memory = lab->export_kinds & ~(1u << GPUHAL_HANDLE_HOST_POINTER) ? export_memory : NULL;
    out_ops->wrap_memory = lab->adopt_kinds ? wrap_memory : NULL;
    out_ops->map = lab->mappable ? map : NULL;
    out_ops->unmap = lab->mappable ? unmap : NULL;
    return GPUHAL_OK;
}

static gpuhal_status describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    return index < gpuhal_lab.count ? describe_as(lab_of(index), out_ops) : GPUHAL_ERROR_NOT_FOUND;
}

static gpuhal_lab_device lab_cpu;

static gpuhal_status describe_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    return index == 0 ? describe_as(&lab_cpu, out_ops) : GPUHAL_ERROR_NOT_FOUND;
}

static gpuhal_status open_lab(const gpuhal_host *host, gpuhal_lab_device *lab, const gpuhal_native *adopt, gpuhal_plugin_device **out_device,
                              gpuhal_ops *ops)
{
    if (adopt && (adopt->type != GPUHAL_NATIVE_OPENCL_DEVICE || adopt->values[0] != GPUHAL_LAB_NATIVE)) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "the lab does not know that object");
    }
    if (adopt) {
        ops->fill = NULL;
    }
    if (lab->fail_open) {
        return lab->quiet_failures ? lab->fail_open : host->report(host, lab->fail_open, "labOpen", 1, "told to fail");
    }
    if (gpuhal_lab.chatty_open) {
        host->log(host, GPUHAL_LOG_WARNING, "opening\nthe lab");
    }
    pause_us(gpuhal_lab.slow_open_ms * 1000);
    gpuhal_plugin_device *device = malloc(sizeof *device);
    if (!device) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *device = (gpuhal_plugin_device){lab, host};
    lab->openings++;
    *out_device = device;
    return GPUHAL_OK;
}

static gpuhal_status open_device(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    stop_at(GPUHAL_LAB_OPEN);
    return open_lab(host, lab_of(index), adopt, out_device, ops);
}

static gpuhal_status open_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    (void)index;
    return open_lab(host, &lab_cpu, adopt, out_device, ops);
}

static void close_device(gpuhal_plugin_device *device)
{
    stop_at(device->lab == &lab_cpu ? 0 : GPUHAL_LAB_CLOSE);
    device->lab->openings--;
    free(device);
}

const gpuhal_plugin *gpuhal_lab_query(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin plugin = {.size = sizeof plugin,
                                         .abi = GPUHAL_ABI,
                                         .name = "lab",
                                         .version = "1",
                                         .start = start_lab,
                                         .enumerate = enumerate,
                                         .describe = describe,
                                         .open = open_device,
                                         .close = close_device,
                                         .sample = sample};
    (void)host;
    plugin.flags = gpuhal_lab.fork_safe ? GPUHAL_PLUGIN_FORK_SAFE : 0;
    plugin.link = gpuhal_lab.links ? tell_link : NULL;
    return host_abi == GPUHAL_ABI ? &plugin : NULL;
}

const gpuhal_plugin *gpuhal_lab_cpu_query(uint32_t host_abi, const gpuhal_host *host)
{
    static const gpuhal_plugin plugin = {.size = sizeof plugin,
                                         .abi = GPUHAL_ABI,
                                         .flags = GPUHAL_PLUGIN_FORK_SAFE,
                                         .name = "cpu",
                                         .version = "1",
                                         .start = start,
                                         .enumerate = enumerate_cpu,
                                         .describe = describe_cpu,
                                         .open = open_cpu,
                                         .close = close_device};
    (void)host;
    return host_abi == GPUHAL_ABI ? &plugin : NULL;
}

gpuhal *gpuhal_lab_open(const gpuhal_config *config, int with_cpu)
{
    static gpuhal_builtin_fn *const both[] = {gpuhal_lab_query, gpuhal_lab_cpu_query, NULL};
    static gpuhal_builtin_fn *const alone[] = {gpuhal_lab_query, NULL};
    gpuhal_config mine = config ? *config : (gpuhal_config){0};
    mine.size = sizeof mine;
    mine.isolation = GPUHAL_ISOLATION_NEVER;
    mine.ignore_environment = 1;
    mine.registry = mine.registry ? mine.registry : "none";
    mine.builtins = with_cpu ? both : alone;
    gpuhal *gpu = NULL;
    if (gpuhal_open(&mine, &gpu)) {
        fail_msg("gpuhal_open: %s", gpuhal_last_error()->sentence);
    }
    return gpu;
}

gpuhal_buffer *gpuhal_lab_buffer(gpuhal *gpu, uint32_t index, uint64_t bytes)
{
    gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes};
    gpuhal_buffer *buffer = NULL;
    if (gpuhal_buffer_create(gpuhal_device_at(gpu, index), &desc, &buffer)) {
        fail_msg("gpuhal_buffer_create: %s", gpuhal_last_error()->sentence);
    }
    return buffer;
}
