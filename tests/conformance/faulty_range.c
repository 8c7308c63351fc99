/* faulty_range.c: virtual memory of the misbehaving plugin. A range is part of the process's address space; only
 * granules with memory are accessible. */
#include "faulty.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct gpuhal_plugin_range {
    gpuhal_faulty_memory memory; /* gpuhal_memory.object, for transfers */
    const gpuhal_host *host;
    bool refused; /* a commit was refused once */
    bool *has;    /* true for each granule that has memory */
};

static gpuhal_status faulty_granularity(gpuhal_plugin_device *device, uint64_t range_bytes, uint64_t *out_bytes)
{
    static atomic_uint calls;
    (void)device, (void)range_bytes;
    const bool second = atomic_fetch_add(&calls, 1) % 2 == 1;
    *out_bytes = is(range_granule_odd) ? 3 * GRANULE : is(range_granule_wanders) && second ? 2 * GRANULE : GRANULE;
    return GPUHAL_OK;
}

/* Maps zeroed memory or removes it. If a file is given, every mapping begins at its offset 0, so that all chunks alias
 * each other. */
static bool map_granules(const gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes, bool memory)
{
    const bool alias = memory && range->memory.descriptor >= 0;
    const int access = memory ? PROT_READ | PROT_WRITE : PROT_NONE;
    const int flags = alias ? MAP_SHARED | MAP_FIXED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    return mmap(range->memory.bytes + offset, bytes, access, flags, alias ? range->memory.descriptor : -1, 0) !=
           MAP_FAILED;
}

static bool take_addresses(gpuhal_plugin_range *range, const gpuhal_plugin_device *device, uint64_t bytes)
{
    range->host = device->host;
    range->memory =
        (gpuhal_faulty_memory){.size = bytes, .descriptor = -1, .owner = device, .index = device->index, .lent = true};
    range->has = calloc(bytes / GRANULE, sizeof *range->has);
    /* Reserve one granule more, so that the range can begin at a multiple of GRANULE. */
    void *at = mmap(NULL, bytes + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    range->memory.to_free = at;
    range->memory.bytes = (unsigned char *)(((uintptr_t)at + GRANULE - 1) / GRANULE * GRANULE);
    if (is(range_aliases)) {
        range->memory.descriptor = memfd_create("pieces", MFD_CLOEXEC);
        return at != MAP_FAILED && range->has && ftruncate(range->memory.descriptor, (off_t)bytes) == 0;
    }
    return at != MAP_FAILED && range->has;
}

static gpuhal_status faulty_reserve(gpuhal_plugin_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                                    gpuhal_plugin_range **out_range)
{
    gpuhal_plugin_range *range = calloc(1, sizeof *range);
    if (range == NULL || !take_addresses(range, device, bytes)) {
        free(range);
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    range->memory.counted = is(range_reserve_commits) && gpuhal_faulty_use(device->index, bytes / 2);
    const uintptr_t at = (uintptr_t)range->memory.bytes;
    out_memory->object = &range->memory;
    out_memory->bytes = is(range_fewer) ? bytes - 1 : bytes;
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    out_memory->address = is(ranges_overlap) ? GRANULE << 24 : at + (is(range_skewed) ? 64 : 0);
    out_memory->host = is(range_host) ? range->memory.bytes : NULL;
    *out_range = range;
    if (is(range_long)) {
        gpuhal_faulty_write_behind(out_memory, sizeof *out_memory);
    }
    return GPUHAL_OK;
}

/* Imitates a driver that moves a range when it grows. Bytes that are written during the move are lost. */
static void move_range(const gpuhal_plugin_range *range)
{
    unsigned char *copy = malloc(GRANULE);
    if (copy != NULL && range->has[0]) {
        memcpy(copy, range->memory.bytes, GRANULE);
        nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL);
        memcpy(range->memory.bytes, copy, GRANULE);
    }
    free(copy);
}

static void mark(const gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes, bool has)
{
    memset(&range->has[offset / GRANULE], has, bytes / GRANULE * sizeof *range->has);
}

static gpuhal_status refuse(gpuhal_plugin_range *range, uint64_t offset)
{
    range->refused = true;
    if (is(range_refusal_keeps)) {
        gpuhal_faulty_use(range->memory.index, GRANULE);
    }
    if (is(range_refusal_clears) && offset > 0) {
        memset(range->memory.bytes, 0, GRANULE);
    }
    const gpuhal_status status = is(range_refusal_status) ? GPUHAL_ERROR_DRIVER : GPUHAL_ERROR_OUT_OF_MEMORY;
    return range->host->report(range->host, status, "test", 1, "the test device is full");
}

static gpuhal_status faulty_commit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes,
                                   gpuhal_plugin_device *const *peers, uint32_t peer_count)
{
    (void)peers, (void)peer_count;
    if (memchr(&range->has[offset / GRANULE], true, bytes / GRANULE) != NULL) {
        return range->host->report(range->host, GPUHAL_ERROR_DRIVER, "test", 3, "there is memory already");
    }
    /* With good_piece, other programs use all memory except one chunk. */
    if ((is(range_refusal_sticks) && range->refused) || (is(good_piece) && offset > 0) ||
        !gpuhal_faulty_use(range->memory.index, bytes)) {
        return refuse(range, offset);
    }
    if (is(range_moves)) {
        move_range(range);
    }
    if (!map_granules(range, offset, bytes - (is(range_commit_crashes) && bytes > GRANULE ? GRANULE : 0), true)) {
        gpuhal_faulty_give_back(range->memory.index, bytes);
        return GPUHAL_ERROR_OUT_OF_MEMORY;
    }
    mark(range, offset, bytes, true);
    return GPUHAL_OK;
}

static gpuhal_status faulty_decommit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    if (is(range_decommits_more) && offset + bytes < range->memory.size && range->has[(offset + bytes) / GRANULE]) {
        memset(range->memory.bytes + offset + bytes, 0, GRANULE);
    }
    if (!map_granules(range, offset, bytes, false)) {
        return GPUHAL_ERROR_DRIVER;
    }
    mark(range, offset, bytes, is(range_once));
    if (!is(range_decommit_keeps)) {
        gpuhal_faulty_give_back(range->memory.index, bytes);
    }
    return GPUHAL_OK;
}

static void faulty_release_range(gpuhal_plugin_range *range)
{
    uint64_t left = range->memory.counted ? range->memory.size / 2 : 0;
    for (uint64_t i = 0; i < range->memory.size / GRANULE; i++) {
        left += range->has[i] ? GRANULE : 0;
    }
    if (!is(range_release_keeps)) {
        gpuhal_faulty_give_back(range->memory.index, left);
    }
    if (is(range_leaks)) {
        gpuhal_faulty_lose_descriptor();
    }
    if (range->memory.descriptor >= 0) {
        close(range->memory.descriptor);
    }
    munmap(range->memory.to_free, range->memory.size + GRANULE);
    free(range->has);
    free(range);
}

void gpuhal_faulty_describe_ranges(gpuhal_ops *ops)
{
    static const gpuhal_range_ops ranges = {
        .size = sizeof ranges,
        .version = GPUHAL_RANGES_VERSION,
        .range_granularity = faulty_granularity,
        .range_reserve = faulty_reserve,
        .range_commit = faulty_commit,
        .range_decommit = faulty_decommit,
        .range_release = faulty_release_range,
    };
    ops->ranges = &ranges;
}
