/* cpu/share.c: shared memory. Shared memory is either the caller's host memory or the memory of a descriptor (memfd),
 * which other processes can map.
 *
 * A descriptor that this plugin exports is a memfd with a sealed size. No process can shrink it, so no mapping can
 * cause SIGBUS. The seals also distinguish such a memfd from other descriptors. The descriptor stays open as long as
 * the memory exists, because exports and further imports require it. Unlike other memory of this plugin, memfd memory
 * is shared across a fork: the parent sees the child's writes.
 */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

typedef struct record {
    int descriptor; /* -1 for the caller's host memory */
    void *mapping;  /* maps the descriptor from offset 0 */
    uint64_t length;
    uint64_t counted; /* bytes counted against the entry */
} record;

/* Maps the descriptor at a multiple of the alignment, inside a larger reserved range. Returns NULL with errno. */
static void *map_aligned(int descriptor, uint64_t length, uint64_t alignment)
{
    uint64_t page = gpuhal_cpu_page_bytes();
    if (alignment <= page) {
        void *mapping = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        return mapping != MAP_FAILED ? mapping : NULL;
    }
    if (alignment - page > SIZE_MAX - length) {
        errno = ENOMEM;
        return NULL;
    }
    uint64_t room = length + alignment - page;
    char *reserved = mmap(NULL, (size_t)room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        return NULL;
    }
    uint64_t before = gpuhal_cpu_round_up((uintptr_t)reserved, alignment) - (uintptr_t)reserved;
    char *start = reserved + before;
    if (mmap(start, (size_t)length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
        int error = errno;
        munmap(reserved, (size_t)room);
        errno = error;
        return NULL;
    }
    if (before > 0) {
        munmap(reserved, (size_t)before);
    }
    if (room - before > length) {
        munmap(start + length, (size_t)(room - before - length));
    }
    return start;
}

/* Creates a sealed memfd of this size, or returns -1 with errno. The size is set before sealing; F_SEAL_SEAL prevents
 * further seals, such as a seal against writing. */
static int create_sealed(uint64_t length)
{
    int descriptor = memfd_create("gpuhal", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor >= 0 && (ftruncate(descriptor, (off_t)length) != 0 || fcntl(descriptor, F_ADD_SEALS, SEALS) != 0)) {
        int error = errno;
        close(descriptor);
        errno = error;
        return -1;
    }
    return descriptor;
}

int gpuhal_cpu_allocate_shareable(const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    uint64_t length = gpuhal_cpu_round_up(alloc->bytes, gpuhal_cpu_page_bytes());
    record *r = malloc(sizeof *r);
    if (!r) {
        return ENOMEM;
    }
    *r = (record){.descriptor = create_sealed(length), .length = length, .counted = alloc->bytes};
    int error = r->descriptor < 0 ? errno : 0;
    if (error != 0) {
        goto free_record;
    }
    r->mapping = map_aligned(r->descriptor, length, alloc->alignment);
    error = !r->mapping ? errno : 0;
    if (error != 0) {
        goto close_descriptor;
    }
    error = gpuhal_cpu_commit(r->mapping, length);
    if (error != 0) {
        goto unmap;
    }
    gpuhal_cpu_show(r, r->mapping, alloc->bytes, out_memory);
    return 0;

unmap:
    munmap(r->mapping, (size_t)length);
close_descriptor:
    close(r->descriptor);
free_record:
    free(r);
    return error;
}

/* The core has checked that the memory exists, and prevents writes to read-only memory. The caller still owns the
 * memory. */
static gpuhal_status import_pointer(const gpuhal_host *host, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    if (!alloc->handle.as.pointer || alloc->import_offset != 0) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    record *r = malloc(sizeof *r);
    if (!r) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    *r = (record){.descriptor = -1};
    gpuhal_cpu_show(r, alloc->handle.as.pointer, alloc->bytes, out_memory);
    return GPUHAL_OK;
}

/* Returns the fault, or NULL if the descriptor is memory of this plugin with at least @p needed bytes. */
static const char *descriptor_fault(int descriptor, uint64_t needed)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0) {
        return "it is not an open descriptor";
    }
    int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS) {
        return "the descriptor was not exported by this plugin";
    }
    return info.st_size < 0 || (uint64_t)info.st_size < needed
               ? "the memory behind the descriptor is smaller than the requested size"
               : NULL;
}

/* The pages were committed and counted when the exported memory was allocated. */
static gpuhal_status import_descriptor(const gpuhal_host *host, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    gpuhal_os_handle handle = alloc->handle.as.os;
    uint64_t needed = 0;
    if (handle < 0 || handle > INT32_MAX || __builtin_add_overflow(alloc->import_offset, alloc->bytes, &needed) ||
        needed > (uint64_t)INT64_MAX - gpuhal_cpu_page_bytes()) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    const char *fault = descriptor_fault((int)handle, needed);
    if (fault) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, fault);
    }
    record *r = malloc(sizeof *r);
    if (!r) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    *r = (record){.descriptor = (int)handle, .length = gpuhal_cpu_round_up(needed, gpuhal_cpu_page_bytes())};
    r->mapping = map_aligned(r->descriptor, r->length, alloc->alignment);
    if (!r->mapping) {
        int error = errno;
        free(r);
        return host->report(host, error == ENOMEM ? GPUHAL_ERROR_OUT_OF_MEMORY : GPUHAL_ERROR_INVALID_ARGUMENT, "mmap",
                            error, "the descriptor cannot be mapped");
    }
    gpuhal_cpu_show(r, (char *)r->mapping + alloc->import_offset, alloc->bytes, out_memory);
    return GPUHAL_OK;
}

gpuhal_status gpuhal_cpu_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    return alloc->handle.kind == GPUHAL_HANDLE_HOST_POINTER ? import_pointer(device->host, alloc, out_memory)
           : alloc->handle.kind == GPUHAL_HANDLE_OPAQUE_FD  ? import_descriptor(device->host, alloc, out_memory)
                                                            : GPUHAL_ERROR_NOT_SUPPORTED;
}

gpuhal_status gpuhal_cpu_export(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                gpuhal_handle *out_handle, uint64_t *out_offset)
{
    const gpuhal_host *host = device->host;
    const record *r = gpuhal_cpu_is_shared(memory) ? memory->object : NULL;
    if (kind != GPUHAL_HANDLE_OPAQUE_FD || !r || r->descriptor < 0) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0,
                            "the memory was not allocated for export as this kind of handle");
    }
    int copy = fcntl(r->descriptor, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        return host->report(host, GPUHAL_ERROR_DRIVER, "fcntl", errno, "the system gives no further descriptor");
    }
    out_handle->kind = kind;
    out_handle->as.os = copy;
    *out_offset = (uint64_t)((char *)memory->host - (char *)r->mapping);
    return GPUHAL_OK;
}

uint64_t gpuhal_cpu_release_shared(gpuhal_memory *memory)
{
    record *r = memory->object;
    uint64_t counted = r->counted;
    if (r->descriptor >= 0) {
        munmap(r->mapping, (size_t)r->length);
        close(r->descriptor);
    }
    free(r);
    return counted;
}
