/* tests/support/mock_range.c: virtual memory of the mock's devices. See mock.h. The rules are as strict as CUDA's. The
 * memory of a commit can only be decommitted as a whole, only one call at a time may use a range, and bytes without
 * memory cannot be accessed. */
#include "support/mock_device.h"

#include "test.h"

#include <sys/mman.h>

struct gpuhal_plugin_range {
    gpuhal_plugin_device *device;
    uint64_t page_bytes;
    gpuhal_mock_block block;
    uint32_t *commits; /* for each page, the number of the commit that provided its memory, or 0 */
    uint32_t newest;
    _Atomic bool called;
};

bool gpuhal_mock_range_has(const gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    const uint64_t page = range->page_bytes;
    bool has = true;
    for (uint64_t i = offset / page; i <= (offset + bytes - 1) / page && has; i++) {
        has = range->commits[i] != 0;
    }
    return has;
}

static gpuhal_status broken_rule(const gpuhal_plugin_device *device, const char *call)
{
    return device->host->report(device->host, GPUHAL_ERROR_DRIVER, call, 99, "the core broke a rule of plugin.h");
}

static gpuhal_status granularity(gpuhal_plugin_device *device, uint64_t range_bytes, uint64_t *out_bytes)
{
    const gpuhal_mock_device *mock = device->mock;
    *out_bytes = mock->large_range_bytes && range_bytes > mock->large_range_bytes ? 4 * mock->page_bytes
                                                                                  : mock->page_bytes;
    return GPUHAL_OK;
}

static gpuhal_status reserve(gpuhal_plugin_device *device, uint64_t bytes, gpuhal_memory *out_memory,
                             gpuhal_plugin_range **out_range)
{
    gpuhal_mock_device *mock = device->mock;
    if (mock->fail_reserve) {
        return device->host->report(device->host, mock->fail_reserve, "mockReserve", 11, "made to fail");
    }
    uint64_t page = 0;
    (void)granularity(device, bytes, &page);
    if (bytes % page) {
        return broken_rule(device, "range_reserve");
    }
    void *at = NULL;
    gpuhal_plugin_range *range = calloc(1, sizeof *range);
    uint32_t *commits = calloc((size_t)(bytes / page), sizeof *commits);
    if (!range || !commits || posix_memalign(&at, (size_t)page, (size_t)bytes)) {
        free(range);
        free(commits);
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "mockReserve", 1, "no host memory");
    }
    mprotect(at, (size_t)bytes, PROT_NONE);
    range->device = device;
    range->page_bytes = page;
    range->commits = commits;
    range->block = (gpuhal_mock_block){.bytes = at, .count = bytes, .descriptor = -1, .range = range};
    out_memory->object = &range->block;
    out_memory->bytes = bytes;
    out_memory->flags = GPUHAL_MEMORY_DEVICE_LOCAL;
    out_memory->address = (uint64_t)(uintptr_t)at + (mock->range_skewed ? 64 : 0);
    out_memory->host = mock->range_host ? at : NULL;
    mock->ranges++;
    *out_range = range;
    return GPUHAL_OK;
}

/* Returns false if the call breaks a rule. */
static bool begin(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    const uint64_t page = range->page_bytes;
    const bool inside = bytes > 0 && offset <= range->block.count && bytes <= range->block.count - offset;
    return inside && (offset | bytes) % page == 0 && !atomic_exchange(&range->called, true);
}

static gpuhal_status commit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes,
                            gpuhal_plugin_device *const *peers, uint32_t peer_count)
{
    gpuhal_plugin_device *device = range->device;
    gpuhal_mock_device *mock = device->mock;
    const uint64_t page = range->page_bytes, total = mock->total_bytes ? mock->total_bytes : 1u << 30;
    (void)peers;
    bool good = begin(range, offset, bytes) && peer_count == 0;
    for (uint64_t i = offset / page; i < (offset + bytes) / page && good; i++) {
        good = range->commits[i] == 0;
    }
    if (!good) {
        return broken_rule(device, "range_commit");
    }
    gpuhal_mock_pause(mock->slow_range_us);
    gpuhal_status status = mock->fail_commit;
    if (status) {
        status = device->host->report(device->host, status, "mockCommit", 12, "made to fail");
    } else if ((uint64_t)mock->allocated_bytes + bytes > total) {
        status = device->host->report(device->host, GPUHAL_ERROR_OUT_OF_MEMORY, "mockCommit", 2, "the mock is full");
    } else {
        mprotect(range->block.bytes + offset, (size_t)bytes, PROT_READ | PROT_WRITE);
        memset(range->block.bytes + offset, 0x5a, (size_t)bytes);
        range->newest++;
        for (uint64_t i = offset / page; i < (offset + bytes) / page; i++) {
            range->commits[i] = range->newest;
        }
        mock->allocated_bytes += (int64_t)bytes;
        mock->commits++;
    }
    range->called = false;
    return status;
}

static gpuhal_status decommit(gpuhal_plugin_range *range, uint64_t offset, uint64_t bytes)
{
    gpuhal_plugin_device *device = range->device;
    gpuhal_mock_device *mock = device->mock;
    const uint64_t page = range->page_bytes, first = offset / page, end = (offset + bytes) / page;
    if (!begin(range, offset, bytes)) {
        return broken_rule(device, "range_decommit");
    }
    bool whole = (first == 0 || range->commits[first - 1] != range->commits[first]) &&
                 (end * page == range->block.count || range->commits[end - 1] != range->commits[end]);
    for (uint64_t i = first; i < end && whole; i++) {
        whole = range->commits[i] != 0;
    }
    gpuhal_mock_pause(mock->slow_range_us);
    if (!whole || mock->fail_decommit) {
        range->called = false;
        return whole ? device->host->report(device->host, mock->fail_decommit, "mockDecommit", 13, "made to fail")
                     : broken_rule(device, "range_decommit");
    }
    memset(&range->commits[first], 0, (size_t)(end - first) * sizeof *range->commits);
    mprotect(range->block.bytes + offset, (size_t)bytes, PROT_NONE);
    mock->allocated_bytes -= (int64_t)bytes;
    mock->decommits++;
    range->called = false;
    return GPUHAL_OK;
}

static void release(gpuhal_plugin_range *range)
{
    gpuhal_mock_device *mock = range->device->mock;
    const uint64_t page = range->page_bytes, pages = range->block.count / page;
    for (uint64_t i = 0; i < pages; i++) {
        mock->allocated_bytes -= range->commits[i] ? (int64_t)page : 0;
    }
    mprotect(range->block.bytes, (size_t)range->block.count, PROT_READ | PROT_WRITE);
    free(range->block.bytes);
    free(range->commits);
    free(range);
    mock->ranges--;
}

void gpuhal_mock_describe_ranges(const gpuhal_mock_device *mock, gpuhal_ops *out_ops)
{
    static const gpuhal_range_ops ranges = {
        .size = sizeof ranges,
        .version = GPUHAL_RANGES_VERSION,
        .range_granularity = granularity,
        .range_reserve = reserve,
        .range_commit = commit,
        .range_decommit = decommit,
        .range_release = release,
    };
    out_ops->ranges = mock->page_bytes > 0 ? &ranges : NULL;
}
