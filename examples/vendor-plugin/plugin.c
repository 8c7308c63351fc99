/* A complete plugin with one blocking device. The device has 256 MiB of host memory, or as much as the option
 * example.memory_mib states. The plugin requires the public headers plugin.h, code.h and types.h, and example.h for its
 * extension:
 *
 *     cc -shared -fPIC -fvisibility=hidden -I<folder of gpuhal/> plugin.c -o gpuhal-example.so
 *
 * Copy this file and replace aligned_alloc() and memcpy() by calls of your driver. docs/vendor-guide.md describes the
 * next steps. */
#include "example.h"
#ifdef EXAMPLE_QUEUES
#include "queue.h"
#endif

#include <gpuhal/plugin.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MIB 256u
#define ALIGNMENT  64u

/* One start of the plugin by one copy of the core, with its options. The device may be opened several times under one
 * start. */
struct gpuhal_plugin_instance {
    /* must be first, because its functions cast their pointer to an instance */
    example_memory memory;
    uint64_t memory_bytes;
    _Atomic uint64_t bytes_in_use;
};

/* One opening of the device. Each opening stores its host, because another copy of the core may open the device too. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_plugin_instance *instance;
};

static uint64_t bytes_in_use(const example_memory *memory)
{
    return atomic_load(&((const gpuhal_plugin_instance *)memory)->bytes_in_use);
}

/* Converts a number of MiB to bytes. Returns 0 for any other text. */
static uint64_t read_memory(const char *text)
{
    char *end;
    const unsigned long mib = strtoul(text, &end, 10);
    return text[0] >= '1' && text[0] <= '9' && *end == '\0' && mib <= 1u << 20 ? (uint64_t)mib << 20 : 0;
}

/* A real plugin opens the vendor's library here with host->library(). */
static gpuhal_status example_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    char text[16];
    uint64_t bytes = (uint64_t)MEMORY_MIB << 20;
    const gpuhal_status given = host->option(host, "example.memory_mib", text, sizeof text);
    if (given != GPUHAL_ERROR_NOT_FOUND && (given != GPUHAL_OK || (bytes = read_memory(text)) == 0)) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0,
                            "the option example.memory_mib takes a number of MiB");
    }
    gpuhal_plugin_instance *instance = calloc(1, sizeof *instance);
    if (!instance) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    instance->memory = (example_memory){.size = sizeof instance->memory, .bytes_in_use = bytes_in_use};
    instance->memory_bytes = bytes;
    *out_instance = instance;
    return GPUHAL_OK;
}

static void example_stop(const gpuhal_host *host, gpuhal_plugin_instance *instance)
{
    (void)host;
    free(instance);
}

static gpuhal_status example_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    host->device(host, sink, 0);
    host->text(host, sink, GPUHAL_FACT_NAME, "Example Accelerator");
    host->text(host, sink, GPUHAL_FACT_VENDOR, "Example");
    host->u64(host, sink, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_ACCELERATOR);
    /* 0 for real hardware; software devices are used only if selected explicitly */
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 1);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, 0);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS,
              1u << GPUHAL_MEMORY_DEVICE | 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, instance->memory_bytes);
    host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, instance->memory_bytes);
    host->u64(host, sink, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, ALIGNMENT);
    host->missing(host, sink, GPUHAL_FACT_PCI_ADDRESS, GPUHAL_MISSING_NOT_SUPPORTED, "the example is not on a bus");
    return GPUHAL_OK;
}

static gpuhal_status example_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                      gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    gpuhal_plugin_instance *instance = device->instance;
    if (alloc->kind > GPUHAL_MEMORY_READBACK || alloc->handle.kind != 0 || alloc->export_kinds != 0 ||
        alloc->peer_count != 0) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (alloc->bytes > instance->memory_bytes || alloc->alignment > instance->memory_bytes) {
        return host->report(host, GPUHAL_ERROR_TOO_LARGE, NULL, 0, "the device has less");
    }

    uint64_t alignment = alloc->alignment > ALIGNMENT ? alloc->alignment : ALIGNMENT;
    uint64_t bytes = (alloc->bytes + alignment - 1) & ~(alignment - 1);
    if (atomic_fetch_add(&instance->bytes_in_use, bytes) + bytes > instance->memory_bytes) {
        atomic_fetch_sub(&instance->bytes_in_use, bytes);
        return host->report(host, GPUHAL_ERROR_OUT_OF_MEMORY, NULL, 0, "the memory of the device is in use");
    }
    void *start = aligned_alloc((size_t)alignment, (size_t)bytes);
    if (!start) {
        atomic_fetch_sub(&instance->bytes_in_use, bytes);
        return host->report(host, GPUHAL_ERROR_OUT_OF_MEMORY, "aligned_alloc", 0, NULL);
    }
    memset(start, 0, (size_t)bytes); /* touches all pages, because an allocation must commit its memory */

    out_memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED;
    out_memory->object = start;
    out_memory->bytes = bytes;
    out_memory->address = (uint64_t)(uintptr_t)start;
    out_memory->host = start; /* NULL if the host cannot access kind DEVICE */
    return GPUHAL_OK;
}

static void example_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    free(memory->object);
    atomic_fetch_sub(&device->instance->bytes_in_use, memory->bytes);
}

/* Copies bytes. The core has already checked the ranges. With queue NULL, the copy must be complete on return. Without
 * queue.c the plugin has no queues, so `queue` is always NULL. */
static gpuhal_status example_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                  uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    char *target = (char *)to->object + to_offset;
    const char *source = (const char *)from->object + from_offset;
    (void)device;
    (void)queue;
#ifdef EXAMPLE_QUEUES
    if (queue) {
        return example_enqueue(queue, target, source, (size_t)bytes);
    }
#endif
    memcpy(target, source, (size_t)bytes);
    return GPUHAL_OK;
}

/* These three slots are the required minimum. For write, read, fill and some other empty slots the core has a fallback;
 * for the rest it returns NOT_SUPPORTED. */
static gpuhal_status example_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                      gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    if (index != 0) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    out_ops->allocate = example_allocate;
    out_ops->release = example_release;
    out_ops->copy = example_copy;
#ifdef EXAMPLE_QUEUES
    out_ops->queues = &example_queues;
#endif
    return GPUHAL_OK;
}

static gpuhal_status example_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)ops; /* describe() has filled in the slots; an opening that supports less would set some of them to NULL */
    *out_device = NULL;
    if (index != 0) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (adopt) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, "there is no device object to take over");
    }
    gpuhal_plugin_device *device = malloc(sizeof *device);
    if (!device) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    device->host = host;
    device->instance = instance;
    *out_device = device;
    return GPUHAL_OK;
}

static void example_close(gpuhal_plugin_device *device)
{
    free(device);
}

static const void *example_query_extension(const gpuhal_host *host, gpuhal_plugin_instance *instance, const char *name)
{
    (void)host;
    return strcmp(name, EXAMPLE_MEMORY_EXTENSION) == 0 ? &instance->memory : NULL;
}

static const gpuhal_plugin example = {
    .size = sizeof(gpuhal_plugin),
    .abi = GPUHAL_ABI,
    .flags = GPUHAL_PLUGIN_FORK_SAFE, /* ordinary memory survives a fork; most drivers do not */
    .name = "example",
    .version = "1.0.0",
    .start = example_start,
    .enumerate = example_enumerate,
    .describe = example_describe,
    .open = example_open,
    .close = example_close,
    .query_extension = example_query_extension,
    .stop = example_stop,
};

const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host)
{
    if (host_abi >> 16 != GPUHAL_ABI_MAJOR) { /* the core decides about minor versions */
        char why[64];
        snprintf(why, sizeof why, "the example plugin supports plugin ABI %u.x only", GPUHAL_ABI_MAJOR);
        (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, 0, why);
        return NULL;
    }
    return &example;
}
