/* tests/fakes/common/memory.c: device memory, page-locked memory, and the lookup of memory by address. */
#include "engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { POISON_AT_MOST = 1 << 20 };

static size_t pages(size_t bytes)
{
    return (bytes + FAKE_PAGE - 1) & ~(size_t)(FAKE_PAGE - 1);
}

static bool touches(const fake_region *region, uintptr_t address, size_t bytes)
{
    return address < region->address + region->size && region->address < address + bytes;
}

/* Checks only the last region that begins at or before the address. If a program registers memory around a known
 * region, HIP does not find addresses after the inner region (device.cpp, MemObjMap::FindMemObj). */
fake_region *fake_region_find(uintptr_t address, size_t bytes)
{
    fake_region *found = NULL;
    for (fake_region *region = fake.regions; region; region = region->next) {
        if (region->address <= address && (!found || region->address > found->address)) {
            found = region;
        }
    }
    const size_t before = found ? address - found->address : 0;
    return found && before <= found->size && bytes <= found->size - before ? found : NULL;
}

static fake_region *touching(uintptr_t address, size_t bytes)
{
    fake_region *region = fake.regions;
    while (region && !touches(region, address, bytes)) {
        region = region->next;
    }
    return region;
}

fake_region *fake_region_add(fake_region_kind kind, uintptr_t address, size_t bytes, unsigned char *shadow,
                             fake_context *context)
{
    fake_region *region = calloc(1, sizeof *region);
    if (!region) {
        return NULL;
    }
    static unsigned ids; /* under the lock */
    *region =
        (fake_region){fake.regions, kind, address, bytes, shadow, context, context ? context->device : 0, ++ids, NULL};
    fake.regions = region;
    return region;
}

static void region_remove(fake_region *region)
{
    fake_region **at = &fake.regions;
    while (*at != region) {
        at = &(*at)->next;
    }
    *at = region->next;
    free(region);
}

uintptr_t fake_reserve(size_t bytes, size_t alignment)
{
    if (bytes + alignment < bytes) {
        return 0;
    }
    void *base = mmap(NULL, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return 0;
    }
    uintptr_t start = (uintptr_t)base,
              wanted = alignment ? (start + alignment - 1) & ~(uintptr_t)(alignment - 1) : start;
    if (wanted > start) {
        munmap(base, wanted - start);
    }
    if (alignment > wanted - start) {
        munmap((void *)(wanted + bytes), alignment - (wanted - start));
    }
    return wanted;
}

bool fake_take(unsigned ordinal, uint64_t bytes)
{
    fake_device *device = &fake.devices[ordinal];
    if (bytes > device->memory || device->taken + device->plan->used > device->memory - bytes) {
        return false;
    }
    device->taken += bytes;
    fake_report_get()->device_bytes[device->physical] += bytes;
    return true;
}

void fake_give(unsigned ordinal, uint64_t bytes)
{
    fake.devices[ordinal].taken -= bytes;
    fake_report_get()->device_bytes[fake.devices[ordinal].physical] -= bytes;
}

uint64_t fake_free_bytes(unsigned ordinal)
{
    const fake_device *device = &fake.devices[ordinal];
    return device->memory - device->taken - device->plan->used;
}

/* Uses huge pages for large memory if the system has them, because most of the memory is written only once. */
static void *map_memory(size_t size, int flags)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (memory != MAP_FAILED) {
        (void)madvise(memory, size, MADV_HUGEPAGE);
    }
    return memory;
}

/* New memory has exactly the alignment that the vendor promises, which is less than a page. Memory of at most 1 MiB is
 * filled with 0xcd. So tests find callers that rely on a larger alignment, or on zeros in such memory. */
fake_code fake_memory_new(fake_context *context, size_t bytes, uintptr_t *out_address)
{
    const size_t offset = fake_vendor.alignment;
    size_t size = bytes && bytes <= SIZE_MAX - 2 * FAKE_PAGE ? pages(bytes + offset) : 0;
    if (!size || !fake_take(context->device, pages(bytes))) {
        return bytes ? FAKE_ERROR_OUT_OF_MEMORY : FAKE_ERROR_INVALID_VALUE;
    }
    uintptr_t base = fake_reserve(size, 0);
    unsigned char *shadow = map_memory(size, MAP_NORESERVE);
    if (!base || shadow == MAP_FAILED ||
        !fake_region_add(FAKE_DEVICE_MEMORY, base + offset, bytes, shadow + offset, context)) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    if (bytes <= POISON_AT_MOST) {
        memset(shadow, 0xcd, size);
    }
    fake_report_get()->allocations++;
    *out_address = base + offset;
    return FAKE_OK;
}

fake_code fake_host_memory_new(fake_context *context, fake_region_kind kind, size_t bytes, void **out_memory)
{
    if (!bytes) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    const size_t offset = (size_t)fake_script_get()->host_offset;
    size_t size = bytes <= SIZE_MAX - 2 * FAKE_PAGE ? pages(bytes + offset) : SIZE_MAX - FAKE_PAGE + 1;
    unsigned char *memory = map_memory(size, 0);
    if (memory == MAP_FAILED || !fake_region_add(kind, (uintptr_t)memory + offset, bytes, memory + offset, context)) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    fake_report_get()->host_allocations++;
    *out_memory = memory + offset;
    return FAKE_OK;
}

void fake_region_free(fake_region *region)
{
    const unsigned char *shadow = region->shadow - region->address % FAKE_PAGE;
    const size_t size = pages(region->size + region->address % FAKE_PAGE);
    fake_report *report = fake_report_get();
    switch (region->kind) {
    case FAKE_DEVICE_MEMORY:
        fake_give(region->device, pages(region->size));
        report->allocations--;
        break;
    case FAKE_HOST_MEMORY:
    case FAKE_MANAGED_MEMORY:
        report->host_allocations--;
        break;
    case FAKE_REGISTERED_MEMORY:
        report->registrations--;
        break;
    case FAKE_IMPORTED:
        report->mappings--;
        break;
    case FAKE_RANGE:
        report->reservations--;
        break;
    }
    if (region->kind != FAKE_REGISTERED_MEMORY) {
        munmap((void *)(uintptr_t)shadow, size);
    }
    if (region->address != (uintptr_t)region->shadow) {
        munmap((void *)(region->address - region->address % FAKE_PAGE), size);
    }
    region_remove(region);
}

fake_code fake_memory_free(const char *function, uintptr_t address, fake_region_kind kind, fake_region_kind other,
                           fake_code unknown)
{
    fake_region *region = fake_region_find(address, 1);
    if (!region || region->address != address || (region->kind != kind && region->kind != other)) {
        fake_report_violation("%s: %#lx is nothing that it could free", function, (unsigned long)address);
        return unknown;
    }
    fake_context_drain(NULL);
    fake_region_free(region);
    return FAKE_OK;
}

/* Checks that every page is mapped. Each system call checks many pages, because a range may have hundreds of millions
 * of pages. */
static bool is_mapped(uintptr_t address, size_t bytes)
{
    enum { PAGES = 16384 };
    unsigned char resident[PAGES];
    const uintptr_t end = address + bytes;
    for (uintptr_t page = address - address % FAKE_PAGE; page < end; page += PAGES * FAKE_PAGE) {
        const size_t left = end - page, most = (size_t)PAGES * FAKE_PAGE;
        if (mincore((void *)page, left < most ? left : most, resident) && errno == ENOMEM) {
            return false;
        }
    }
    return true;
}

bool fake_pages_are_known(const void *memory, size_t bytes)
{
    const uintptr_t address = (uintptr_t)memory;
    return touching(address - address % FAKE_PAGE, pages(bytes + address % FAKE_PAGE)) != NULL;
}

/* Drivers pin memory for writing unless a flag says that the device only reads it. */
static bool is_writable(uintptr_t address)
{
    enum { POPULATE_READ = 22, POPULATE_WRITE = 23 }; /* MADV_…, Linux 5.14 */
    void *page = (void *)(address - address % FAKE_PAGE);
    return madvise(page, FAKE_PAGE, POPULATE_WRITE) == 0 || madvise(page, FAKE_PAGE, POPULATE_READ) != 0;
}

fake_code fake_host_memory_register(fake_context *context, void *memory, size_t bytes, bool read_only)
{
    uintptr_t address = (uintptr_t)memory;
    if (!memory || !bytes || address + bytes < address || !is_mapped(address, bytes) ||
        (!read_only && !is_writable(address))) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    if (!fake_region_add(FAKE_REGISTERED_MEMORY, address, bytes, memory, context)) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    fake_report_get()->registrations++;
    return FAKE_OK;
}

bool fake_region_is_host(const fake_region *region)
{
    return region->kind == FAKE_HOST_MEMORY || region->kind == FAKE_REGISTERED_MEMORY ||
           region->kind == FAKE_MANAGED_MEMORY;
}

fake_code fake_place_find(const char *function, fake_context *context, uintptr_t address, size_t bytes, bool host,
                          fake_place *out)
{
    const fake_region *region = fake_region_find(address, bytes);
    *out = (fake_place){.bytes = (unsigned char *)address, .pageable = true, .ordinal = context->device};
    if (!region && host && !touching(address, bytes)) {
        return FAKE_OK;
    }
    if (!region) {
        fake_report_violation("%s: %#lx with %zu bytes is no memory of one allocation", function,
                              (unsigned long)address, bytes);
        return FAKE_ERROR_INVALID_VALUE;
    }
    *out = (fake_place){.bytes = region->shadow + (address - region->address),
                        .device = !fake_region_is_host(region) || region->kind == FAKE_MANAGED_MEMORY};
    out->ordinal = fake_region_device(region, address);
    if (region->kind == FAKE_RANGE && !fake_range_reached(region, address, bytes, context->device)) {
        fake_report_violation("%s: %#lx with %zu bytes is not mapped for device %u", function, (unsigned long)address,
                              bytes, context->device);
        return FAKE_ERROR_INVALID_VALUE;
    }
    return FAKE_OK;
}
