/* tests/support/halting.c: see halting.h. */
#include "support/halting.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

gpuhal_halting_state gpuhal_halting;

struct gpuhal_plugin_device {
    uint32_t index;
};
struct gpuhal_plugin_queue {
    gpuhal_plugin_device *device;
};
struct gpuhal_plugin_event {
    uint64_t time;
};

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool stops_in(const char *slot)
{
    const char *one = gpuhal_halting.slot, *other = gpuhal_halting.also;
    return (one && strcmp(one, slot) == 0) || (other && strcmp(other, slot) == 0);
}

void gpuhal_halting_pass(const char *slot)
{
    if (!stops_in(slot)) {
        return;
    }
    gpuhal_halting.stopped++;
    while (stops_in(slot)) {
        rest();
    }
    gpuhal_halting.stopped--;
}

static void *bytes_of(const gpuhal_memory *memory)
{
    return memory->object;
}

static gpuhal_status allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    (void)device;
    gpuhal_halting_pass("allocate");
    if (alloc->handle.kind || alloc->kind > GPUHAL_MEMORY_READBACK) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    bool staging = alloc->kind != GPUHAL_MEMORY_DEVICE;
    out_memory->object = aligned_alloc(4096, (size_t)(alloc->bytes + 4095) & ~(size_t)4095);
    if (!out_memory->object) {
        return GPUHAL_ERROR_OUT_OF_MEMORY;
    }
    memset(out_memory->object, 0, (size_t)alloc->bytes);
    out_memory->bytes = alloc->bytes;
    out_memory->host = staging || !gpuhal_halting.hidden ? out_memory->object : NULL;
    out_memory->flags = GPUHAL_MEMORY_HOST_CACHED | GPUHAL_MEMORY_DEVICE_LOCAL |
                        (gpuhal_halting.not_coherent ? 0 : GPUHAL_MEMORY_HOST_COHERENT);
    return GPUHAL_OK;
}

static void release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    (void)device;
    gpuhal_halting_pass("release");
    free(memory->object);
}

static gpuhal_status copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                          uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    (void)device;
    gpuhal_halting_pass(queue ? "queued_copy" : "copy");
    memcpy((char *)bytes_of(to) + to_offset, (char *)bytes_of(from) + from_offset, (size_t)bytes);
    return GPUHAL_OK;
}

static gpuhal_status write_slot(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                uint64_t offset, const void *from, uint64_t bytes)
{
    (void)device;
    gpuhal_halting_pass(queue ? "queued_write" : "write");
    memcpy((char *)bytes_of(to) + offset, from, (size_t)bytes);
    return GPUHAL_OK;
}

static gpuhal_status read_slot(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, void *to,
                               const gpuhal_memory *from, uint64_t offset, uint64_t bytes)
{
    (void)device;
    (void)queue;
    gpuhal_halting_pass("read");
    memcpy(to, (char *)bytes_of(from) + offset, (size_t)bytes);
    return GPUHAL_OK;
}

static gpuhal_status fill(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *memory,
                          uint64_t offset, uint64_t bytes, uint32_t pattern, uint32_t pattern_bytes)
{
    (void)device;
    (void)queue;
    gpuhal_halting_pass("fill");
    for (uint64_t i = 0; i < bytes; i += pattern_bytes) {
        memcpy((char *)bytes_of(memory) + offset + i, &pattern, pattern_bytes); /* little-endian processors only */
    }
    return GPUHAL_OK;
}

static gpuhal_status copy_rect(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_plugin_rect *to,
                               const gpuhal_plugin_rect *from, const uint64_t extent[3])
{
    (void)device;
    (void)queue;
    (void)to;
    (void)from;
    (void)extent;
    gpuhal_halting_pass("copy_rect");
    return GPUHAL_ERROR_NOT_SUPPORTED;
}

static gpuhal_status flush_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                  uint64_t bytes)
{
    (void)device;
    (void)memory;
    (void)offset;
    (void)bytes;
    gpuhal_halting_pass("memory_flush");
    return GPUHAL_OK;
}

static gpuhal_status invalidate_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset,
                                       uint64_t bytes)
{
    (void)device;
    (void)memory;
    (void)offset;
    (void)bytes;
    gpuhal_halting_pass("memory_invalidate");
    return GPUHAL_OK;
}

static gpuhal_status query_health(gpuhal_plugin_device *device)
{
    (void)device;
    gpuhal_halting_pass("query_health");
    return GPUHAL_OK;
}

static gpuhal_status map(gpuhal_plugin_device *device, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes,
                         uint32_t access, void **out_pointer)
{
    (void)device;
    (void)bytes;
    (void)access;
    gpuhal_halting_pass("map");
    *out_pointer = (char *)bytes_of(memory) + offset;
    return GPUHAL_OK;
}

static gpuhal_status unmap(gpuhal_plugin_device *device, const gpuhal_memory *memory, void *pointer)
{
    (void)device;
    (void)memory;
    (void)pointer;
    gpuhal_halting_pass("unmap");
    return GPUHAL_OK;
}

static gpuhal_status export_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                   gpuhal_handle *out_handle, uint64_t *out_offset)
{
    (void)device;
    (void)memory;
    gpuhal_halting_pass("export_memory");
    *out_handle =
        (gpuhal_handle){.size = sizeof *out_handle, .kind = kind, .as.os = memfd_create("halting", MFD_CLOEXEC)};
    *out_offset = 0;
    return GPUHAL_OK;
}

static gpuhal_status queue_create(gpuhal_plugin_device *device, const gpuhal_plugin_queue_desc *desc,
                                  gpuhal_plugin_queue **out_queue)
{
    gpuhal_halting_pass("queue_create");
    gpuhal_halting.queue_flags = desc->flags;
    *out_queue = malloc(sizeof **out_queue);
    if (*out_queue) {
        (*out_queue)->device = device;
    }
    return *out_queue ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static void queue_destroy(gpuhal_plugin_queue *queue)
{
    gpuhal_halting_pass("queue_destroy");
    free(queue);
}

static gpuhal_status queue_flush(gpuhal_plugin_queue *queue)
{
    (void)queue;
    gpuhal_halting_pass("queue_flush");
    return GPUHAL_OK;
}

static gpuhal_status event_create(gpuhal_plugin_device *device, const gpuhal_plugin_event_desc *desc,
                                  gpuhal_plugin_event **out_event)
{
    (void)device;
    (void)desc;
    gpuhal_halting_pass("event_create");
    *out_event = calloc(1, sizeof **out_event);
    gpuhal_halting.events++;
    return *out_event ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static void event_destroy(gpuhal_plugin_event *event)
{
    gpuhal_halting_pass("event_destroy");
    free(event);
    gpuhal_halting.events--;
}

static gpuhal_status event_record(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    static _Atomic uint64_t clock;
    (void)queue;
    gpuhal_halting_pass("event_record");
    event->time = ++clock;
    gpuhal_halting.unrecorded = 0;
    return gpuhal_halting.record_says;
}

static gpuhal_status event_query(gpuhal_plugin_event *event)
{
    (void)event;
    gpuhal_halting_pass("event_query");
    gpuhal_halting.answered++;
    return gpuhal_halting.work_goes_on ? GPUHAL_NOT_READY : gpuhal_halting.query_says;
}

static gpuhal_status event_block(gpuhal_plugin_event *event, uint64_t timeout_ns)
{
    (void)event;
    gpuhal_halting_pass("event_block");
    for (uint64_t waited = 0; gpuhal_halting.work_goes_on && waited < timeout_ns; waited += 1000000) {
        rest();
    }
    gpuhal_halting.answered++;
    return gpuhal_halting.work_goes_on ? GPUHAL_NOT_READY : GPUHAL_OK;
}

static gpuhal_status queue_wait(gpuhal_plugin_queue *queue, gpuhal_plugin_event *event)
{
    (void)queue;
    (void)event;
    gpuhal_halting_pass("queue_wait");
    return GPUHAL_OK;
}

static gpuhal_status elapsed(gpuhal_plugin_event *from, gpuhal_plugin_event *to, uint64_t *out_ns)
{
    gpuhal_halting_pass("elapsed");
    *out_ns = to->time - from->time;
    return gpuhal_halting.elapsed_says;
}

static gpuhal_status peer_enable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    (void)device;
    (void)other;
    gpuhal_halting_pass("peer_enable");
    return GPUHAL_OK;
}

static void peer_disable(gpuhal_plugin_device *device, gpuhal_plugin_device *other)
{
    (void)device;
    (void)other;
    gpuhal_halting_pass("peer_disable");
}

static gpuhal_status peer_copy(gpuhal_plugin_queue *queue, gpuhal_plugin_device *to_device, const gpuhal_memory *to,
                               uint64_t to_offset, gpuhal_plugin_device *from_device, const gpuhal_memory *from,
                               uint64_t from_offset, uint64_t bytes)
{
    (void)from_device;
    gpuhal_halting_pass("peer_copy");
    if (gpuhal_halting.fail_peer_copy) {
        return GPUHAL_ERROR_DEVICE_LOST;
    }
    return copy(to_device, queue, to, to_offset, from, from_offset, bytes);
}

static gpuhal_status give_native(const char *slot, gpuhal_native *out_native)
{
    gpuhal_halting_pass(slot);
    out_native->type = GPUHAL_NATIVE_OPENCL_DEVICE;
    return GPUHAL_OK;
}

static gpuhal_status native_device(gpuhal_plugin_device *device, gpuhal_native *out_native)
{
    (void)device;
    return give_native("native_device", out_native);
}

static gpuhal_status native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_native *out_native)
{
    (void)device;
    (void)memory;
    return give_native("native_memory", out_native);
}

static gpuhal_status native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native)
{
    (void)queue;
    return give_native("native_queue", out_native);
}

static gpuhal_status wrap_memory(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                 gpuhal_memory *out_memory)
{
    gpuhal_halting_pass("wrap_memory");
    (void)native;
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = bytes};
    return allocate(device, &alloc, out_memory);
}

static gpuhal_status native_lock(gpuhal_plugin_queue *queue, uint64_t timeout_ns)
{
    (void)queue;
    (void)timeout_ns;
    gpuhal_halting_pass("native_lock");
    gpuhal_halting.native_locks++;
    return GPUHAL_OK;
}

static void native_unlock(gpuhal_plugin_queue *queue)
{
    (void)queue;
    gpuhal_halting_pass("native_unlock");
    gpuhal_halting.native_locks--;
}

static gpuhal_status start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    (void)host;
    return GPUHAL_OK;
}

static gpuhal_status enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    static const char *const uuids[] = {"00000000-0000-0000-0000-0000000000a1", "00000000-0000-0000-0000-0000000000a2"};
    for (uint32_t index = 0; index < 2; index++) {
        host->device(host, sink, index);
        host->text(host, sink, GPUHAL_FACT_NAME, "halting");
        host->text(host, sink, GPUHAL_FACT_VENDOR, "test");
        host->text(host, sink, GPUHAL_FACT_UUID, uuids[index]);
        host->u64(host, sink, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
        host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 0);
        host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, index);
        host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS,
                  1u << GPUHAL_MEMORY_DEVICE | 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK);
        host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_C(1) << 30);
        host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, UINT64_C(1) << 30);
        host->u64(host, sink, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 64);
        host->text(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, "halting");
        host->u64(host, sink, GPUHAL_FACT_EXPORT_KINDS, 1u << GPUHAL_HANDLE_OPAQUE_FD);
        host->u64(host, sink, GPUHAL_FACT_ADOPT_KINDS,
                  1u << GPUHAL_NATIVE_OPENCL_DEVICE | 1u << GPUHAL_NATIVE_OPENCL_BUFFER);
    }
    return GPUHAL_OK;
}

static const gpuhal_queue_ops queues = {
    .size = sizeof queues,
    .version = GPUHAL_QUEUES_VERSION,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_flush = queue_flush,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_block = event_block,
    .queue_wait = queue_wait,
    .elapsed = elapsed,
};
static const gpuhal_peer_ops peers = {
    .size = sizeof peers,
    .version = GPUHAL_PEERS_VERSION,
    .peer_enable = peer_enable,
    .peer_disable = peer_disable,
    .peer_copy = peer_copy,
};
#define NATIVE_SLOTS                                                                                                   \
    .size = sizeof(gpuhal_native_ops), .version = GPUHAL_NATIVE_VERSION, .native_device = native_device,               \
    .native_memory = native_memory, .native_queue = native_queue, .wrap_memory = wrap_memory
static const gpuhal_native_ops native_without_lock = {NATIVE_SLOTS};
static const gpuhal_native_ops native = {NATIVE_SLOTS, .native_lock = native_lock, .native_unlock = native_unlock};

static gpuhal_status describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              gpuhal_ops *ops)
{
    (void)host, (void)instance;
    (void)index;
    uint32_t size = ops->size;
    *ops = (gpuhal_ops){.size = size,
                        .allocate = allocate,
                        .release = release,
                        .copy = copy,
                        .write = gpuhal_halting.no_write ? NULL : write_slot,
                        .read = read_slot,
                        .fill = fill,
                        .copy_rect = copy_rect,
                        .memory_flush = flush_memory,
                        .memory_invalidate = invalidate_memory,
                        .query_health = query_health,
                        .map = map,
                        .unmap = unmap,
                        .export_memory = export_memory,
                        .queues = &queues,
                        .peers = gpuhal_halting.no_peers ? NULL : &peers,
                        .native = gpuhal_halting.no_native_lock ? &native_without_lock : &native};
    gpuhal_halting_describe_ranges(ops);
    gpuhal_halting_describe_programs(ops);
    gpuhal_halting_describe_recordings(ops);
    return GPUHAL_OK;
}

static gpuhal_status open_device(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    (void)host;
    (void)ops;
    gpuhal_halting_pass(adopt ? "adopt" : "open");
    *out_device = malloc(sizeof **out_device);
    if (*out_device) {
        (*out_device)->index = index;
        gpuhal_halting.openings++;
    }
    return *out_device ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static gpuhal_status sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                            const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    (void)index;
    (void)keys;
    (void)count;
    (void)flags;
    gpuhal_halting.samples++;
    host->u64(host, sink, GPUHAL_VALUE_MEMORY_FREE_BYTES, 1);
    return GPUHAL_OK;
}

static void close_device(gpuhal_plugin_device *device)
{
    gpuhal_halting_pass("close");
    free(device);
    gpuhal_halting.openings--;
}

const gpuhal_plugin *gpuhal_halting_query(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin plugin = {.size = sizeof plugin,
                                   .abi = GPUHAL_ABI,
                                   .name = "halting",
                                   .version = "1",
                                   .start = start,
                                   .enumerate = enumerate,
                                   .describe = describe,
                                   .open = open_device,
                                   .close = close_device,
                                   .sample = sample};
    (void)host;
    plugin.flags = (gpuhal_halting.honors_timeouts ? GPUHAL_PLUGIN_HONORS_TIMEOUTS : 0) |
                   (gpuhal_halting.fork_safe ? GPUHAL_PLUGIN_FORK_SAFE : 0);
    return host_abi == GPUHAL_ABI ? &plugin : NULL;
}
