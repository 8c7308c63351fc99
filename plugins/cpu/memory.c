/* cpu/memory.c: allocates and frees memory.
 *
 * All pages are committed when allocate() returns. Linux overcommits memory and kills a process when memory runs out,
 * so the plugin first reads the amount of free memory and returns OUT_OF_MEMORY itself. Small allocations use malloc,
 * whose pages are usually present. Larger allocations are separate mappings, aligned so that the system can use huge
 * pages. release() distinguishes the two only by `memory->bytes`. For both, gpuhal_memory.object is the address. For
 * shared memory the object is a record of share.c.
 */
#include "device.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SMALL_BYTES (UINT64_C(64) << 10)
/* Number of allocated bytes between two readings of /proc. A reading takes as long as committing half a MiB. */
#define LOOK_EVERY (UINT64_C(64) << 20)

/* Returns false if the machine is known to have too little free memory. Reads the free memory only after LOOK_EVERY
 * further bytes. Otherwise, or if no file reports the free memory, returns true and relies on the system to reject the
 * allocation. Several threads may reach LOOK_EVERY and read at the same time; this only costs time. Bytes that another
 * thread adds just before the count is reset are lost, but the count only triggers readings. */
static bool machine_has(uint64_t bytes)
{
    static _Atomic uint64_t unseen;
    gpuhal_cpu_memory memory;
    if (atomic_fetch_add(&unseen, bytes) + bytes < LOOK_EVERY) {
        return true;
    }
    atomic_store(&unseen, 0);
    return !gpuhal_cpu_system_memory("", &memory) || bytes <= memory.free;
}

/* Counts the bytes against the entry's limit, which all opened devices of this entry share. total - allocated is never
 * negative, since bytes are added only if they fit. Uses no lock, because a fork could leave the lock locked. */
static bool reserve(gpuhal_cpu_entry *entry, uint64_t bytes)
{
    uint64_t before = atomic_load(&entry->allocated);
    do {
        if (bytes > entry->total - before) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&entry->allocated, &before, before + bytes));
    return true;
}

static int take_committed(uint64_t bytes, uint64_t alignment, void **out_start)
{
    if (bytes >= SMALL_BYTES) {
        return gpuhal_cpu_map_committed(bytes, alignment, out_start);
    }
    uint64_t page = gpuhal_cpu_page_bytes();
    uint64_t own = bytes < page ? GPUHAL_CPU_BINDING_ALIGNMENT : page;
    int error = posix_memalign(out_start, (size_t)(alignment > own ? alignment : own), (size_t)bytes);
    if (error == 0) {
        gpuhal_cpu_touch(*out_start, bytes, page);
    }
    return error;
}

static gpuhal_status no_memory(const gpuhal_host *host, const char *call, int error)
{
    return host->report(host, GPUHAL_ERROR_OUT_OF_MEMORY, call, error,
                        "the machine, or the control group of this process, has too little free memory");
}

static gpuhal_status allocate_own(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const gpuhal_host *host = device->host;
    gpuhal_cpu_entry *entry = device->entry;
    if (alloc->bytes > entry->total) {
        return host->report(host, GPUHAL_ERROR_TOO_LARGE, NULL, 0, "more than the memory of the machine or its limit");
    }
    if (!reserve(entry, alloc->bytes)) {
        return host->report(host, GPUHAL_ERROR_OUT_OF_MEMORY, NULL, 0,
                            entry->limited ? "the limit of the option cpu.devices is reached"
                                           : "the memory of the machine is used up");
    }
    const char *call = alloc->export_kinds != 0      ? "memfd_create"
                       : alloc->bytes >= SMALL_BYTES ? "mmap"
                                                     : "posix_memalign";
    void *start = NULL;
    /* The bytes are already counted, so every later failure must uncount them. */
    int error = !machine_has(alloc->bytes) ? ENOMEM
                : alloc->export_kinds != 0 ? gpuhal_cpu_allocate_shareable(alloc, out_memory)
                                           : take_committed(alloc->bytes, alloc->alignment, &start);
    if (error != 0) {
        atomic_fetch_sub(&entry->allocated, alloc->bytes);
        return no_memory(host, call, error);
    }
    if (alloc->export_kinds == 0) {
        gpuhal_cpu_show(start, start, alloc->bytes, out_memory);
    }
    return GPUHAL_OK;
}

static gpuhal_status cpu_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    const bool shared = alloc->export_kinds != 0 || alloc->handle.kind != 0;
    if (alloc->kind > GPUHAL_MEMORY_MIGRATING || (shared && alloc->kind == GPUHAL_MEMORY_MIGRATING) ||
        (alloc->export_kinds & ~(1u << GPUHAL_HANDLE_OPAQUE_FD)) != 0 || alloc->peer_count != 0 ||
        (alloc->flags & ~(uint32_t)GPUHAL_IMPORT_READ_ONLY) != 0) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    if (alloc->bytes == 0 || (alloc->alignment & (alloc->alignment - 1)) != 0) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    return alloc->handle.kind != 0 ? gpuhal_cpu_import(device, alloc, out_memory)
                                   : allocate_own(device, alloc, out_memory);
}

static void cpu_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    uint64_t bytes = memory->bytes;
    if (gpuhal_cpu_is_shared(memory)) {
        bytes = gpuhal_cpu_release_shared(memory);
    } else if (bytes >= SMALL_BYTES) {
        munmap(memory->object, (size_t)gpuhal_cpu_round_up(bytes, gpuhal_cpu_page_bytes()));
    } else {
        free(memory->object);
    }
    atomic_fetch_sub(&device->entry->allocated, bytes);
}

void gpuhal_cpu_describe_memory(gpuhal_ops *ops)
{
    ops->allocate = cpu_allocate;
    ops->release = cpu_release;
    ops->export_memory = gpuhal_cpu_export;
}
