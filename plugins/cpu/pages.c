/* cpu/pages.c: mappings with committed pages, which are huge pages if available. */
#include "device.h"

#include "../common/clock.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE  (UINT64_C(2) << 20)
#define HUGE_PIECE (UINT64_C(2) * HUGE_PAGE)
#define SLOW_NS    UINT64_C(50000000)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

uint64_t gpuhal_cpu_page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

void gpuhal_cpu_touch(volatile char *start, uint64_t bytes, uint64_t page)
{
    for (uint64_t at = 0; at < bytes; at += page) {
        start[at] = 0;
    }
    start[bytes - 1] = 0;
}

int gpuhal_cpu_commit(void *start, uint64_t length)
{
    if (madvise(start, (size_t)length, MADV_POPULATE_WRITE) == 0) {
        return 0;
    }
    if (errno != EINVAL) {
        return errno;
    }
    gpuhal_cpu_touch(start, length, gpuhal_cpu_page_bytes()); /* Linux before 5.14 */
    return 0;
}

/* Commits huge pages as long as they are available. If memory is fragmented, the system first moves other pages. This
 * takes 35 ms per huge page (214 MiB took 3.8 s). So the function requests huge pages in chunks, and stops after a slow
 * chunk. The rest gets ordinary pages first. Huge pages are requested for the rest afterwards, so that khugepaged
 * creates them in the background. */
static int commit_huge(char *start, uint64_t length)
{
    uint64_t at = 0;
    bool quick = true;
    int error = 0;
    while (quick && error == 0 && at < length) {
        const uint64_t piece = length - at < HUGE_PIECE ? length - at : HUGE_PIECE;
        const uint64_t began = gpuhal_plugin_now_ns();
        /* Fails if huge pages are disabled; the mapping uses ordinary pages. */
        quick = madvise(start + at, (size_t)piece, MADV_HUGEPAGE) == 0;
        error = gpuhal_cpu_commit(start + at, piece);
        quick = quick && gpuhal_plugin_now_ns() - began < SLOW_NS;
        at += piece;
    }
    if (error == 0 && at < length) {
        error = gpuhal_cpu_commit(start + at, length - at);
        (void)madvise(start + at, (size_t)(length - at), MADV_HUGEPAGE);
    }
    return error;
}

/* If the alignment is larger than a page, maps more than necessary and unmaps both ends. */
int gpuhal_cpu_map_committed(uint64_t bytes, uint64_t alignment, void **out_start)
{
    uint64_t page = gpuhal_cpu_page_bytes();
    uint64_t length = gpuhal_cpu_round_up(bytes, page);
    if (bytes >= HUGE_PAGE && alignment < HUGE_PAGE) {
        alignment = HUGE_PAGE;
    }
    uint64_t slack = alignment > page ? alignment - page : 0;
    if (slack > SIZE_MAX - length) {
        return ENOMEM;
    }
    char *mapping = mmap(NULL, (size_t)(length + slack), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
        return errno;
    }
    uint64_t before = slack > 0 ? gpuhal_cpu_round_up((uintptr_t)mapping, alignment) - (uintptr_t)mapping : 0;
    char *start = mapping + before;
    if (before > 0) {
        munmap(mapping, (size_t)before);
    }
    if (slack > before) {
        munmap(start + length, (size_t)(slack - before));
    }
    int error = bytes >= HUGE_PAGE ? commit_huge(start, length) : gpuhal_cpu_commit(start, length);
    if (error != 0) {
        munmap(start, (size_t)length);
        return error;
    }
    *out_start = start;
    return 0;
}
