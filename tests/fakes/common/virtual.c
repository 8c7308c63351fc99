/* tests/fakes/common/virtual.c: physical memory, address ranges, mappings, and memory imported by file descriptor.
 *
 * Each piece of physical memory is a memfd. Each range has one contiguous shadow, and mapping physical memory maps its
 * memfd into the shadow. So the bytes of adjacent mappings are adjacent in the shadow. */
#include "engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct fake_physical {
    struct fake_physical *next;
    int fd;
    size_t size;
    unsigned device;
    unsigned references; /* the handles and the mappings */
    unsigned handles;
    bool exportable, counted; /* counted: the bytes are part of this process's use of the device's budget */
};

typedef struct fake_mapping {
    struct fake_mapping *next;
    uintptr_t address;
    size_t size;
    fake_physical *physical;
    unsigned reached; /* bits of the ordinals with access */
} fake_mapping;

struct fake_import {
    fake_import *next;
    int fd;
    size_t size;
};

static fake_physical *all;
static fake_import *imports;

static fake_physical *physical_find(uintptr_t handle)
{
    fake_physical *physical = all;
    while (physical && ((uintptr_t)physical != handle || !physical->handles)) {
        physical = physical->next;
    }
    return physical;
}

static void let_go(fake_physical *physical)
{
    if (--physical->references) {
        return;
    }
    fake_physical **at = &all;
    while (*at != physical) {
        at = &(*at)->next;
    }
    *at = physical->next;
    if (physical->counted) {
        fake_give(physical->device, physical->size);
    }
    close(physical->fd);
    free(physical);
}

static fake_physical *physical_of(int fd, size_t bytes, unsigned device)
{
    fake_physical *physical = fd < 0 ? NULL : calloc(1, sizeof *physical);
    if (physical) {
        *physical =
            (fake_physical){.next = all, .fd = fd, .size = bytes, .device = device, .references = 1, .handles = 1};
        all = physical;
        fake_report_get()->physical++;
    }
    return physical;
}

static bool is_taken(const fake_region *range, uintptr_t address, size_t bytes)
{
    const fake_mapping *mapping = range->mappings;
    while (mapping && (mapping->address >= address + bytes || address >= mapping->address + mapping->size)) {
        mapping = mapping->next;
    }
    return mapping != NULL;
}

/* Returns how many of the bytes belong to mappings that are completely inside this part of the range. */
static size_t covered(const fake_region *range, uintptr_t address, size_t bytes)
{
    size_t sum = 0;
    for (const fake_mapping *mapping = range->mappings; mapping; mapping = mapping->next) {
        if (mapping->address >= address && mapping->address + mapping->size <= address + bytes) {
            sum += mapping->size;
        }
    }
    return sum;
}

bool fake_range_reached(const fake_region *range, uintptr_t address, size_t bytes, unsigned device)
{
    size_t sum = 0;
    for (const fake_mapping *mapping = range->mappings; mapping; mapping = mapping->next) {
        uintptr_t from = mapping->address > address ? mapping->address : address;
        uintptr_t mapped_end = mapping->address + mapping->size,
                  end = mapped_end < address + bytes ? mapped_end : address + bytes;
        sum += mapping->reached >> device & 1 && from < end ? end - from : 0;
    }
    return sum == bytes;
}

bool fake_range_piece(const fake_region *range, uintptr_t address, uintptr_t *out_start, size_t *out_size)
{
    for (const fake_mapping *mapping = range->mappings; mapping; mapping = mapping->next) {
        if (address - mapping->address < mapping->size) {
            *out_start = mapping->address;
            *out_size = mapping->size;
            return true;
        }
    }
    return false;
}

unsigned fake_region_device(const fake_region *region, uintptr_t address)
{
    const fake_mapping *mapping = region->mappings;
    while (mapping && (address < mapping->address || address >= mapping->address + mapping->size)) {
        mapping = mapping->next;
    }
    return mapping ? mapping->physical->device : region->device;
}

static fake_import **import_find(const fake_import *import)
{
    fake_import **at = &imports;
    while (*at && *at != import) {
        at = &(*at)->next;
    }
    return at;
}

fake_code fake_physical_new(const char *function, size_t bytes, int device, bool exportable,
                            fake_physical **out_physical)
{
    fake_code code;
    if (!bytes || bytes % FAKE_GRANULARITY) {
        fake_report_violation("%s: bytes that are no multiple of the granularity", function);
        return FAKE_ERROR_INVALID_VALUE;
    }
    if (!fake_device_at(device, &code)) {
        return code;
    }
    if (!fake_take((unsigned)device, bytes)) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    int fd = memfd_create("fake-device-memory", MFD_CLOEXEC);
    fake_physical *physical = ftruncate(fd, (off_t)bytes) ? NULL : physical_of(fd, bytes, (unsigned)device);
    if (!physical) {
        fake_give((unsigned)device, bytes);
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    physical->exportable = exportable;
    physical->counted = true;
    *out_physical = physical;
    return FAKE_OK;
}

fake_code fake_physical_release(const char *function, uintptr_t handle)
{
    fake_physical *physical = physical_find(handle);
    if (!physical) {
        fake_report_violation("%s: no handle, or a released one", function);
        return FAKE_ERROR_INVALID_VALUE;
    }
    physical->handles--;
    fake_report_get()->physical--;
    let_go(physical);
    return FAKE_OK;
}

/* Child processes inherit the descriptor unless the caller sets FD_CLOEXEC. */
fake_code fake_physical_export(uintptr_t handle, int *out_fd)
{
    fake_physical *physical = physical_find(handle);
    if (!physical || !physical->exportable) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    *out_fd = dup(physical->fd);
    return *out_fd < 0 ? FAKE_ERROR_OPERATING_SYSTEM : FAKE_OK;
}

/* The caller still owns the descriptor. If the file is physical memory of this process, the same memory is returned. */
fake_code fake_physical_import(int fd, fake_physical **out_physical)
{
    struct stat wanted, known;
    if (fstat(fd, &wanted) || !wanted.st_size || wanted.st_size % FAKE_GRANULARITY) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    for (fake_physical *physical = all; physical; physical = physical->next) {
        if (fstat(physical->fd, &known) == 0 && known.st_ino == wanted.st_ino && known.st_dev == wanted.st_dev) {
            physical->references++;
            physical->handles++;
            fake_report_get()->physical++;
            *out_physical = physical;
            return FAKE_OK;
        }
    }
    *out_physical = physical_of(fcntl(fd, F_DUPFD_CLOEXEC, 0), (size_t)wanted.st_size, 0);
    return *out_physical ? FAKE_OK : FAKE_ERROR_OUT_OF_MEMORY;
}

/* Places the range at an odd multiple of the granularity, so that it never has a larger alignment by chance. */
static uintptr_t reserve_odd(size_t bytes)
{
    const uintptr_t even =
        bytes <= SIZE_MAX - FAKE_GRANULARITY ? fake_reserve(bytes + FAKE_GRANULARITY, 2 * FAKE_GRANULARITY) : 0;
    if (even) {
        munmap((void *)even, FAKE_GRANULARITY);
    }
    return even ? even + FAKE_GRANULARITY : 0;
}

fake_code fake_range_reserve(const char *function, size_t bytes, size_t alignment, uintptr_t *out_address)
{
    if (!bytes || bytes % FAKE_GRANULARITY || (alignment & (alignment - 1))) {
        fake_report_violation("%s: %zu bytes are no multiple of the granularity", function, bytes);
        return FAKE_ERROR_INVALID_VALUE;
    }
    uintptr_t address = alignment ? fake_reserve(bytes, alignment > FAKE_GRANULARITY ? alignment : FAKE_GRANULARITY)
                                  : reserve_odd(bytes);
    uintptr_t shadow = address ? fake_reserve(bytes, 0) : 0;
    if (!shadow || !fake_region_add(FAKE_RANGE, address, bytes, (unsigned char *)shadow, NULL)) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    fake_report_get()->reservations++;
    *out_address = address;
    return FAKE_OK;
}

fake_code fake_range_free(const char *function, uintptr_t address, size_t bytes)
{
    fake_region *range = fake_region_find(address, bytes);
    if (!range || range->kind != FAKE_RANGE || range->address != address || range->size != bytes || range->mappings) {
        fake_report_violation("%s: no whole reservation, or one with mappings", function);
        return FAKE_ERROR_INVALID_VALUE;
    }
    fake_region_free(range);
    return FAKE_OK;
}

fake_code fake_range_map(const char *function, uintptr_t address, size_t bytes, uintptr_t handle)
{
    fake_physical *physical = physical_find(handle);
    fake_region *range = fake_region_find(address, bytes);
    if (!physical || !range || range->kind != FAKE_RANGE) {
        fake_report_violation("%s: no handle, or no reservation", function);
        return FAKE_ERROR_INVALID_VALUE;
    }
    if (is_taken(range, address, bytes) || !bytes || address % FAKE_GRANULARITY || bytes % FAKE_GRANULARITY ||
        bytes > physical->size) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    fake_mapping *mapping = calloc(1, sizeof *mapping);
    unsigned char *shadow = range->shadow + (address - range->address);
    if (!mapping ||
        mmap(shadow, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, physical->fd, 0) == MAP_FAILED) {
        free(mapping);
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    *mapping = (fake_mapping){range->mappings, address, bytes, physical, 0};
    range->mappings = mapping;
    physical->references++;
    fake_report_get()->mappings++;
    return FAKE_OK;
}

fake_code fake_range_unmap(const char *function, uintptr_t address, size_t bytes)
{
    fake_region *range = fake_region_find(address, bytes);
    if (!range || range->kind != FAKE_RANGE || covered(range, address, bytes) != bytes) {
        fake_report_violation("%s: not exactly what was mapped", function);
        return FAKE_ERROR_INVALID_VALUE;
    }
    fake_context_drain(NULL);
    for (fake_mapping **at = &range->mappings; *at;) {
        fake_mapping *mapping = *at;
        if (mapping->address < address || mapping->address >= address + bytes) {
            at = &mapping->next;
            continue;
        }
        *at = mapping->next;
        let_go(mapping->physical);
        free(mapping);
        fake_report_get()->mappings--;
    }
    mmap(range->shadow + (address - range->address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return FAKE_OK;
}

fake_code fake_range_access(const char *function, uintptr_t address, size_t bytes, int device, bool granted)
{
    fake_code code;
    fake_region *range = fake_region_find(address, bytes);
    if (!range || range->kind != FAKE_RANGE || covered(range, address, bytes) != bytes) {
        fake_report_violation("%s: not exactly what was mapped", function);
        return FAKE_ERROR_INVALID_VALUE;
    }
    if (!fake_device_at(device, &code)) {
        return code;
    }
    for (fake_mapping *mapping = range->mappings; mapping; mapping = mapping->next) {
        const bool inside = mapping->address >= address && mapping->address < address + bytes;
        const unsigned owner = mapping->physical->device;
        if (inside && owner != (unsigned)device &&
            !fake_script_peer(fake_script_get(), fake.devices[device].physical, fake.devices[owner].physical)) {
            return FAKE_ERROR_INVALID_DEVICE;
        }
        if (inside) {
            mapping->reached = (mapping->reached & ~(1u << device)) | (granted ? 1u << device : 0);
        }
    }
    return FAKE_OK;
}

fake_code fake_import_new(int fd, size_t bytes, fake_import **out_import)
{
    struct stat file;
    bool good = bytes && fstat(fd, &file) == 0 && (uint64_t)file.st_size >= bytes;
    fake_import *import = good ? calloc(1, sizeof *import) : NULL;
    if (!import) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    *import = (fake_import){imports, fd, bytes};
    imports = import;
    fake_report_get()->imports++;
    *out_import = import;
    return FAKE_OK;
}

fake_code fake_import_free(const char *function, fake_import *import)
{
    fake_import **at = import_find(import);
    if (!*at) {
        fake_report_violation("%s: no imported memory", function);
        return FAKE_ERROR_INVALID_HANDLE;
    }
    *at = import->next;
    close(import->fd);
    free(import);
    fake_report_get()->imports--;
    return FAKE_OK;
}

fake_code fake_import_map(fake_context *context, fake_import *import, size_t offset, size_t bytes,
                          uintptr_t *out_address)
{
    if (!*import_find(import) || !bytes || offset % FAKE_PAGE || offset > import->size ||
        bytes > import->size - offset) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    uintptr_t address = fake_reserve((bytes + FAKE_PAGE - 1) & ~(size_t)(FAKE_PAGE - 1), 0);
    void *shadow = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, import->fd, (off_t)offset);
    if (!address || shadow == MAP_FAILED || !fake_region_add(FAKE_IMPORTED, address, bytes, shadow, context)) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    fake_report_get()->mappings++;
    *out_address = address;
    return FAKE_OK;
}
